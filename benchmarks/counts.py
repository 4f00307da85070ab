"""Smoothing of counts, beside MAGIC and scikit-learn, on simulated cells.

The expected counts of 100 genes in 300 cells follow from programs, from types of cells
or from a path; 50 more genes have the same relative level in all cells. Sizes of cells
vary. Counts are Poisson's, or vary more ("overdispersed"). "error" is the root mean
squared error of the square roots of the expected counts, divided by that of the counts
themselves; square roots give genes of all levels a similar weight. "false" is the share
of the pairs of the 50 genes whose correlation is above .5 in absolute value, after
division by the true sizes of the cells. It is 0 for the expected counts, which do not
vary then.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Results, run
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import KNNImputer
from sklearn.model_selection import GridSearchCV

from skmc import FactorizationCompleter, SVDCompleter
from skmc.model_selection import CountSplit, ErrorScorer

SEEDS = 5
N_CELLS, N_GENES, N_EQUAL = 300, 100, 50
RANKS = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24]


def levels(name: str, rng: np.random.RandomState) -> np.ndarray:
    """Relative levels of the genes that differ between cells."""
    if name == "programs":
        return rng.gamma(0.5, 2, (N_CELLS, 4)) @ rng.gamma(0.5, 1, (4, N_GENES))
    if name == "types":
        return rng.gamma(0.5, 4, (6, N_GENES))[rng.choice(6, N_CELLS)]
    time, peaks = rng.rand(N_CELLS, 1), rng.rand(N_GENES)
    return rng.gamma(2, 4, N_GENES) * np.exp(-np.square((time - peaks) / 0.15))


def simulated(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, the expected ones, and sizes of the cells."""
    rng = np.random.RandomState(seed)
    equal = np.tile(rng.gamma(2, 1, N_EQUAL), (N_CELLS, 1))
    size = np.exp(0.4 * rng.randn(N_CELLS, 1))
    expected = size * np.hstack([levels(name.split(",")[0], rng), equal])
    means = expected
    if name.endswith("overdispersed"):
        means = expected * rng.gamma(3, 1 / 3, expected.shape)
    return rng.poisson(means).astype(float), expected, size


def chosen(completer: Any, counts: np.ndarray) -> np.ndarray:
    search = GridSearchCV(
        completer,
        {"rank": RANKS},
        cv=CountSplit(n_splits=3, random_state=0),
        scoring=ErrorScorer("rmse"),
    )
    best = search.fit(search.cv.thin(counts)).best_estimator_
    return np.asarray(best.reconstruction_)


def truncated(counts: np.ndarray) -> np.ndarray:
    svd = TruncatedSVD(50, random_state=0)
    return svd.inverse_transform(svd.fit_transform(counts))


def by_magic(counts: np.ndarray) -> np.ndarray:
    """As its guide says: on square roots of counts of equal sizes."""
    size = counts.sum(1, keepdims=True) / np.median(counts.sum(1))
    size = np.maximum(size, 1e-9)
    magic = importlib.import_module("magic").MAGIC(random_state=0, n_jobs=1, verbose=0)
    return size * np.square(magic.fit_transform(np.sqrt(counts / size)))


METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "counts": lambda counts: counts,
    "MAGIC": by_magic,
    "TruncatedSVD(50)": truncated,
    "KNNImputer, zeros missing": KNNImputer(missing_values=0).fit_transform,
    "`SVDCompleter`, rank by `CountSplit`": lambda counts: chosen(
        SVDCompleter(), counts
    ),
    "`FactorizationCompleter`, rank by `CountSplit`": lambda counts: chosen(
        FactorizationCompleter(lambda_ridge=0.1, random_state=0), counts
    ),
    "`SVDCompleter`, zeros missing": SVDCompleter(
        4, missing_values=0, tol=1e-2
    ).fit_transform,
}


def smoothed(name: str, method: str, seed: int) -> dict[str, Any]:
    counts, expected, size = simulated(name, seed)
    found = np.maximum(METHODS[method](counts), 0)
    errors = [np.square(np.sqrt(X) - np.sqrt(expected)).mean() for X in (found, counts)]
    equal = (found / size)[:, N_GENES:]
    with np.errstate(invalid="ignore"):  # a gene that became constant
        correlations = np.nan_to_num(np.corrcoef(equal.T))
    pairs = correlations[np.triu_indices(N_EQUAL, 1)]
    return {
        "error": (errors[0] / errors[1]) ** 0.5,
        "false": float((np.abs(pairs) > 0.5).mean()),
    }


def counts(results: Results) -> None:
    for kind in ("programs", "types", "path"):
        for name in (kind, f"{kind}, overdispersed"):
            for seed in range(SEEDS):
                for method in METHODS:
                    key = ("counts", name, "", method, seed)
                    results.measure(key, smoothed, name, method, seed)


if __name__ == "__main__":
    run(__doc__, counts)
