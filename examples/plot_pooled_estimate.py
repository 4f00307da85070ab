"""
How uncertain is an estimate from a table with missing cells?
=============================================================

We estimate the slope of a regression from a table of which a third is missing. An
analysis of a table that was completed once ignores that cells were missing, and its
standard error is too small. `MultipleCompletion` completes the table many times and
includes the noise of single cells, and `pool` adds the variance between the completions
(Rubin's rules).
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skmc import SVDCompleter, patterns
from skmc.uncertainty import MultipleCompletion, pool


def table(seed):
    """Twelve columns that are explained by three factors, up to noise."""
    rng = np.random.RandomState(seed)
    return rng.randn(150, 3) @ rng.randn(3, 12) + 0.7 * rng.randn(150, 12)


def slope(X):
    """Regress column 0 on the next two; the first coefficient and its variance."""
    A = np.column_stack([X[:, 1:3], np.ones(len(X))])
    coefficients, residual, *_ = np.linalg.lstsq(A, X[:, 0])
    variance = residual[0] / (len(X) - 3) * np.linalg.inv(A.T @ A)
    return coefficients[0], variance[0, 0]


# %%
# Thirty repetitions of the experiment
# ------------------------------------
# The target is the slope that an analysis of the complete table would have found. An
# interval of two standard errors should contain it in nineteen of twenty cases, or even
# more often, because both slopes come from the same rows.
results = {"completed once": [], "pooled": []}
for seed in range(30):
    X = table(seed)
    hidden = patterns.random(X, 0.33, spare=True, random_state=seed)
    holes = np.ma.masked_array(X, hidden)
    completer = SVDCompleter(rank=3, tol=0.01)
    aim = slope(X)[0]
    found, variance = slope(completer.fit_transform(holes))
    results["completed once"].append((found - aim, variance**0.5))
    many = MultipleCompletion(completer, n_draws=20, random_state=seed).fit(holes)
    pooled = pool(*zip(*map(slope, many.sample(20, random_state=seed)), strict=True))
    results["pooled"].append((pooled.estimate - aim, pooled.std_error))

# %%
# Coverage of the intervals
# -------------------------
figure, axes = plt.subplots(
    1, 2, figsize=(11, 4), sharey=True, sharex=True, layout="constrained"
)
for ax, (name, rows) in zip(axes, results.items(), strict=True):
    error, size = np.array(rows).T
    inside = np.abs(error) < 2 * size
    order = np.argsort(error)
    for chosen, color in ((inside, "tab:blue"), (~inside, "tab:red")):
        at = np.flatnonzero(chosen[order])
        ax.errorbar(at, error[order][at], 2 * size[order][at], fmt=".", color=color)
    ax.axhline(0, color="black", lw=0.8)
    ax.set_title(f"{name}: {inside.sum()} of {len(rows)} intervals contain the slope")
    ax.set_xlabel("experiments, sorted by error")
    print(
        f"{name}: {inside.mean():.0%}, mean standard error {size.mean():.3f}, ", end=""
    )
    print(f"error {np.sqrt(np.mean(error**2)):.3f}")
axes[0].set_ylabel("slope minus slope of all cells")
target = Path(sys.argv[0] or "pooled.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
