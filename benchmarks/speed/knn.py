"""Nearest neighbors found in clusters: ``python -m benchmarks.speed.knn [SIZE ...]``.

Time of ``fit_transform``, the share of neighbors that is found, and the error of hidden
cells of the first 2000 rows, for rows x 20 columns that depend on four quantities.
Without clusters, 2000 rows are completed, and the time is that of these rows times the
rest.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from benchmarks.shared.pages import hardware, record
from skmc import KNNCompleter
from skmc.metrics import rmse

N_COLS, QUANTITIES, NOISE, HIDDEN = 20, 4, 0.1, 0.2
RECALLS = (1.0, 0.9)
SOME = 2000


def problem(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A complete table, and the cells to hide."""
    rng = np.random.RandomState(0)
    M = rng.randn(n_rows, QUANTITIES) @ rng.randn(QUANTITIES, N_COLS)
    M += NOISE * rng.randn(n_rows, N_COLS)
    return M, rng.random_sample(M.shape) < HIDDEN


def measured(n_rows: int) -> dict:
    """Each share of neighbors."""
    M, hidden = problem(n_rows)
    X = np.where(hidden, np.nan, M)
    found = {}
    for recall in RECALLS:
        some = min(SOME, n_rows) if recall == 1 else n_rows
        start = time.perf_counter()
        completer = KNNCompleter(recall=recall, device="cpu").fit(X)
        fitted = time.perf_counter()
        completed = completer.transform(X[:some])
        end = time.perf_counter()
        found[f"recall={recall:g}"] = {
            "seconds": fitted - start + (end - fitted) * n_rows / some,
            "recall_": completer.recall_,
            "RMSE": rmse(completed[:SOME], M[:SOME], hidden[:SOME]),
        }
        print(n_rows, found, flush=True)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for size in map(int, sys.argv[1:] or ("100000", "1000000")):
        record(
            "speed-knn",
            {f"{size} x {N_COLS}": {"hardware": hardware(), **measured(size)}},
        )
