"""
Multiple imputation with a regression
=====================================

A regression on a table that was completed once takes the completed cells for observed
ones. Its standard errors are too small. Multiple imputation completes the table many
times, repeats the regression, and pools the results by Rubin's rules.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from skmc import ChainedCompleter, GaussianCompleter
from skmc.uncertainty import pool, pooled_fit

# %%
# A table and a regression
# ------------------------
# The progression of diabetes in 442 patients is explained by six measurements. We hide
# 30 % of the measurements. Nearly all patients then have a gap.
patients = load_diabetes(as_frame=True, scaled=False).frame
names = ["age", "bmi", "bp", "s3", "s5", "s6"]
truth = patients[[*names, "target"]]
truth = (truth - truth.mean()) / truth.std()
missing = np.random.RandomState(0).uniform(size=truth.shape) < 0.3
missing[:, -1] = False
table = truth.mask(missing)


def regression(table):
    """Coefficients of all columns but the last, and their variances."""
    A, y = np.asarray(table)[:, :-1], np.asarray(table)[:, -1]
    A = np.column_stack([np.ones(len(A)), A])
    coefficients, squares, *_ = np.linalg.lstsq(A, y, rcond=None)
    covariance = squares[0] / (len(A) - A.shape[1]) * np.linalg.inv(A.T @ A)
    return coefficients[1:], np.diag(covariance)[1:]


# %%
# Twenty completions
# ------------------
# `sample` draws the missing cells from their distribution, given the observed ones. The
# outcome is a column of the table, too: otherwise the draws would not depend on it, and
# the coefficients would be too small. Completers without `sample` are drawn by
# `skmc.uncertainty.MultipleCompletion`.
#
# `pooled_fit` fits the regression to each draw and pools the coefficients.
completer = ChainedCompleter(n_draws=20, random_state=0).fit(table)
draws = [
    pd.DataFrame(draw, columns=table.columns)
    for draw in completer.sample(table, 20, random_state=0)
]
result = pooled_fit(LinearRegression(), draws, "target").summary().loc[names]
print(result.drop(columns=["statistic", "fmi"]).round(3))

# %%
# Other analyses of the same table
# --------------------------------
# Rows without a gap are few, and their standard errors are large.
analyses = {
    "nothing missing": regression(truth),
    f"{len(table.dropna())} rows without a gap": regression(table.dropna()),
    "completed once": regression(completer.transform(table)),
    "multiple imputation": (result["estimate"], result["std_error"] ** 2),
}
for name, (_, variance) in analyses.items():
    print(f"{name:>22}: mean standard error {np.sqrt(variance).mean():.3f}")

# %%
# Which standard errors are right?
# --------------------------------
# In 50 simulated tables, the coefficient is known to be 0.5. An interval of 95 %
# should contain it in 19 of 20 tables.
rng = np.random.RandomState(0)
covered = {"completed once": 0, "multiple imputation": 0}
for seed in range(50):
    factor = rng.randn(100, 1)
    columns = 0.7 * factor + 0.7 * rng.randn(100, 3)
    outcome = columns @ [0.5, 0.5, 0.5] + rng.randn(100)
    holes = np.column_stack([columns, outcome])
    holes[:, :-1][rng.uniform(size=(100, 3)) < 0.4] = np.nan
    completer = GaussianCompleter(random_state=seed).fit(holes)
    once, variance = regression(completer.transform(holes))
    covered["completed once"] += (
        abs(once[0] - 0.5) < t.ppf(0.975, 96) * variance[0] ** 0.5
    )
    draws = completer.sample(holes, 20, random_state=seed)
    many = pool(*zip(*map(regression, draws), strict=True), dof=96)
    size = t.ppf(0.975, many.dof[0]) * many.std_error[0]
    covered["multiple imputation"] += abs(many.estimate[0] - 0.5) < size
for name, count in covered.items():
    print(f"{name:>20}: {count / 50:.0%} of the intervals contain the coefficient")

# %%
# Coefficients with intervals of 95 %
# -----------------------------------
figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
for k, (name, (estimate, variance)) in enumerate(analyses.items()):
    place = np.arange(len(names)) + 0.15 * (k - 1.5)
    size = 2 * np.sqrt(variance)
    axis.errorbar(place, estimate, size, fmt="o", ms=4, label=name)
axis.axhline(0, color="0.7", lw=0.8)
axis.set_xticks(range(len(names)), names)
axis.set(ylabel="coefficient, standardized", ylim=(-0.5, 0.75))
axis.legend(loc="upper right", ncols=2)
plt.show()
