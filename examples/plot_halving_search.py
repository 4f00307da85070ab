"""
Halving: can poor weights be dropped before their fits have finished?
=====================================================================

Twenty-five pairs of AIR's weights are compared on three folds of the cells of a damaged
picture. `BatchedHalvingSearchCV` solves all fits together and repeatedly continues with
the better half of the candidates. `BatchedGridSearchCV` runs each fit to its end.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from sklearn.model_selection import KFold

from skmc import AIRCompleter, Entries, patterns
from skmc.datasets import load_photo
from skmc.model_selection import BatchedGridSearchCV, BatchedHalvingSearchCV

photo = load_photo("flower").astype(float)[60:90, 80:120]
damaged = Entries(
    np.ma.masked_array(photo, patterns.random(photo, 0.3, random_state=0))
)

# %%
# The same candidates with both searches
# --------------------------------------
weights = np.logspace(-3, 1, 5)
grid = {"lambda_row": weights, "lambda_col": weights}
completer = AIRCompleter(scaling="global", max_iter=1000, random_state=0)
cells = KFold(3, shuffle=True, random_state=0)
searches, seconds = {}, {}
for kind in (BatchedGridSearchCV, BatchedHalvingSearchCV):
    start = time.perf_counter()
    searches[kind] = search = kind(completer, grid, cv=cells).fit(damaged)
    seconds[kind.__name__] = time.perf_counter() - start
    print(
        f"{kind.__name__}: {seconds[kind.__name__]:.1f} s, score "
        f"{search.best_score_:.4f}, weights "
        + ", ".join(f"{value:.3g}" for value in search.best_params_.values())
    )
whole, halving = searches.values()

# %%
# What is saved
# -------------
# Each line is one pair of weights and shows its error on held-out cells. The lines of
# candidates that were dropped end early: they are the time that halving saves.
results = halving.cv_results_
pairs = np.array([(p["lambda_row"], p["lambda_col"]) for p in results["params"]])
figure, (axis, bars) = plt.subplots(
    1, 2, figsize=(11, 4.5), width_ratios=[2.4, 1], layout="constrained"
)
colors = plt.cm.ScalarMappable(LogNorm(weights[0], weights[-1]), "viridis")
for pair in np.unique(pairs, axis=0):
    mine = (pairs == pair).all(1)
    axis.plot(
        results["n_resources"][mine],
        -results["mean_test_score"][mine],
        marker=".",
        color=colors.to_rgba(np.sqrt(pair.prod())),
    )
least = -whole.best_score_
axis.axhline(least, color="tab:red", ls="--", label="best of the whole grid")
counts = zip(halving.n_resources_, halving.n_candidates_, strict=True)
axis.set_xscale("log")
axis.set_xticks(
    halving.n_resources_, [f"{end}\n({count} pairs)" for end, count in counts]
)
axis.minorticks_off()
axis.set(xlabel="iterations", ylabel="NMAE on held-out cells, mean of 3 folds")
axis.legend()
figure.colorbar(colors, ax=axis, label="geometric mean of the two weights")
bars.bar(["whole grid", "halving"], list(seconds.values()), color=["0.6", "tab:green"])
bars.set_ylabel("seconds")
ratio = seconds["BatchedGridSearchCV"] / seconds["BatchedHalvingSearchCV"]
bars.set_title(f"{ratio:.1f} times as fast")
target = Path(sys.argv[0] or "halving.py").with_suffix(".png")
figure.savefig(target, dpi=100)
print(f"Wrote {target}")
