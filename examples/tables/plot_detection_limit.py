"""
Intensities below a detection limit
===================================

A mass spectrometer measures forty proteins in two groups of thirty samples. Intensities
below the limit of a protein are missing, and a few others are lost. A protein that is
lower in the second group is missing there more often. How large is the difference
between the groups? `GaussianCompleter` answers with and without limits.
"""

import matplotlib.pyplot as plt
import numpy as np

from skmc import GaussianCompleter

# %%
# Samples of two groups
# ---------------------
# Logarithms of intensities follow three factors. Half of the proteins are lower in the
# second group.
rng = np.random.RandomState(0)
n_rows, n_cols = 60, 40
group = np.arange(n_rows) % 2
difference = np.where(np.arange(n_cols) < 20, -rng.uniform(0.5, 2, n_cols), 0)
truth = 25 + rng.randn(n_rows, 3) @ rng.randn(3, n_cols)
truth += 0.5 * rng.randn(n_rows, n_cols) + np.outer(group, difference)
limit = np.array([np.quantile(x, rng.uniform(0.1, 0.4)) for x in truth.T])
below = truth < limit
X = np.where(below | (rng.uniform(size=truth.shape) < 0.05), np.nan, truth)
print(f"{np.isnan(X).mean():.0%} missing, {below.mean():.0%} below the limit")

# %%
# Three completions
# -----------------
# One column more says to which group a sample belongs.
groups = np.column_stack([X, group])
limits = np.append(np.nanmin(X, axis=0), np.nan)
completions = {
    "half minimum": np.where(np.isnan(X), np.nanmin(X, 0) - 1, X),
    "no limits": GaussianCompleter(random_state=0).fit_transform(groups)[:, :-1],
    "limits": GaussianCompleter(lower_limit=limits, random_state=0).fit_transform(
        groups
    )[:, :-1],
}

# %%
# Differences between the groups
# ------------------------------
# Without limits, low values are completed as average ones and differences shrink. Half
# of the minimum is wrong for proteins far below their limit, and for lost ones.
figure, axes = plt.subplots(
    1, 3, figsize=(9, 3.4), sharex=True, sharey=True, layout="constrained"
)
true = truth[group == 1].mean(0) - truth[group == 0].mean(0)
for axis, (name, completed) in zip(axes, completions.items(), strict=True):
    found = completed[group == 1].mean(0) - completed[group == 0].mean(0)
    error = np.sqrt(np.square(found - true).mean())
    axis.axline((0, 0), slope=1, color="gray", ls=":")
    axis.scatter(true, found, s=15)
    axis.set(title=f"{name}: error {error:.2f}", xlabel="true difference")
axes[0].set_ylabel("difference after completion")
plt.show()
