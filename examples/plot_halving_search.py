"""
Halving: can poor weights be dropped before their fits have finished?
=====================================================================

Thirty-six pairs of AIR's weights are compared on three folds of the cells of a damaged
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
from sklearn.model_selection import KFold

from skmc import AIRCompleter, Entries, patterns
from skmc.datasets import load_photo
from skmc.model_selection import BatchedGridSearchCV, BatchedHalvingSearchCV

photo = load_photo("flower").astype(float)[60:100, 80:130]
damaged = Entries(
    np.ma.masked_array(photo, patterns.random(photo, 0.3, random_state=0))
)

# %%
# The same candidates with both searches
# --------------------------------------
weights = np.logspace(-3, 2, 6)
grid = {"lambda_row": weights, "lambda_col": weights}
completer = AIRCompleter(max_iter=400, random_state=0)
cells = KFold(3, shuffle=True, random_state=0)
searches = {}
for kind in (BatchedGridSearchCV, BatchedHalvingSearchCV):
    start = time.perf_counter()
    searches[kind] = search = kind(completer, grid, cv=cells).fit(damaged)
    print(
        f"{kind.__name__}: {time.perf_counter() - start:.1f} s, score "
        f"{search.best_score_:.4f}, weights "
        + ", ".join(f"{value:.3g}" for value in search.best_params_.values())
    )
whole, halving = searches.values()

# %%
# The score of each candidate
# ---------------------------
# Each line is one pair of weights and shows its error on held-out cells. The lines of
# candidates that were dropped end early.
results = halving.cv_results_
pairs = np.array([(p["lambda_row"], p["lambda_col"]) for p in results["params"]])
figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
for pair in np.unique(pairs, axis=0):
    mine = (pairs == pair).all(1)
    axis.plot(
        results["n_resources"][mine],
        -results["mean_test_score"][mine],
        marker=".",
        color=plt.cm.viridis(np.log(pair.prod() / 1e-6) / np.log(1e10)),
    )
least = -whole.best_score_
axis.axhline(least, color="tab:red", ls="--", label="best of the whole grid")
for end, count in zip(halving.n_resources_, halving.n_candidates_, strict=True):
    axis.annotate(
        f"{count}",
        (end, 0),
        (0, 4),
        axis.get_xaxis_transform(),
        textcoords="offset points",
        ha="center",
    )
axis.set(xscale="log", xlabel="iterations (above: number of candidates)")
axis.set_ylabel("NMAE on held-out cells, mean of 3 folds")
axis.set_title("Darker lines have smaller weights")
axis.legend()
target = Path(sys.argv[0] or "halving.py").with_suffix(".png")
figure.savefig(target, dpi=100)
print(f"Wrote {target}")
