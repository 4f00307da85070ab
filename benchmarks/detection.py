"""Cells that are missing because they lie below a limit of detection.

Between 5 and 45 % of each column are hidden. A share of these are the smallest cells of
the column, the others are random. "error" is the root mean squared error of the hidden
cells in deviations of their columns, and "bias" the mean error of those below the
limit. The tables have logarithms: made ones, and real ones that had no missing cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Results, run
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_wine

from skmc import GaussianCompleter, KNNCompleter, SVDCompleter
from skmc.datasets import load_expression

SEEDS = 3
SHARES = 0.0, 0.5, 1.0


def intensities(seed: int) -> np.ndarray:
    """Logarithms of 400 intensities in 60 samples, which three factors determine."""
    rng = np.random.RandomState(seed)
    base, loadings = rng.normal(25, 2, 400), 0.8 * rng.randn(3, 400)
    return base + rng.randn(60, 3) @ loadings + 0.6 * rng.randn(60, 400)


def genes(name: str) -> np.ndarray:
    """At most 300 complete columns, rows are samples."""
    X = np.asarray(load_expression(name).data, float)
    X = X[~np.isnan(X).any(1)]
    X = X.T if X.shape[0] > X.shape[1] else X
    return X[:, np.random.RandomState(0).permutation(X.shape[1])[:300]]


TABLES = {
    "made, 60 x 400": intensities,
    "made, few columns": lambda seed: intensities(seed)[:, :6],
    "breast cancer": lambda seed: np.log2(load_breast_cancer().data[:200, :10] + 1e-3),
    "wine": lambda seed: np.log2(load_wine().data),
    "yeast": lambda seed: genes("yeast_spellman1998"),
    "Khan": lambda seed: genes("khan_srbct_missing"),
}


def half_minimum(X: np.ndarray) -> np.ndarray:
    """Half of the smallest intensity; one less in logarithms to base 2."""
    return np.where(np.isnan(X), np.nanmin(X, 0) - 1, X)


def low_draws(X: np.ndarray) -> np.ndarray:
    """MinProb: draws around the percentile 1, with the median deviation of a row."""
    rng = np.random.RandomState(0)
    center = np.nanquantile(X, 0.01, axis=0)
    deviation = np.nanmedian(np.nanstd(X, 0, ddof=1))
    return np.where(np.isnan(X), center + deviation * rng.randn(*X.shape), X)


def quantile_regression(X: np.ndarray) -> np.ndarray:
    """QRILC: draws below the limit of a normal distribution of each column.

    Its mean and deviation are the line of the observed quantiles over normal ones.
    """
    found, rng = X.copy(), np.random.RandomState(0)
    for j, x in enumerate(X.T):
        seen = ~np.isnan(x)
        share = 1 - seen.mean()
        if not 0 < share < 1:
            continue
        at = np.linspace(share + 0.001, 0.999, 100)
        values = np.quantile(x[seen], (at - share) / (1 - share))
        slope, middle = np.polyfit(stats.norm.ppf(at), values, 1)
        end = stats.norm.ppf(share + 0.001)
        draws = stats.truncnorm.rvs(-np.inf, end, size=(~seen).sum(), random_state=rng)
        found[~seen, j] = middle + slope * draws
    return found


METHODS: dict[str, Any] = {
    "GaussianCompleter": GaussianCompleter(random_state=0).fit_transform,
    'GaussianCompleter(lower_limit="min")': GaussianCompleter(
        lower_limit="min", random_state=0
    ).fit_transform,
    'GaussianCompleter(lower_limit="min", censored="all")': GaussianCompleter(
        lower_limit="min", censored="all", random_state=0
    ).fit_transform,
    "KNNCompleter": KNNCompleter().fit_transform,
    "SVDCompleter": SVDCompleter(random_state=0).fit_transform,
    "half minimum": half_minimum,
    "MinProb": low_draws,
    "QRILC": quantile_regression,
}


def hidden_cells(
    X: np.ndarray, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The hidden cells, and which of them are the smallest of their column."""
    rng = np.random.RandomState(seed)
    hidden, below = np.zeros(X.shape, bool), np.zeros(X.shape, bool)
    for j, part in enumerate(rng.uniform(0.05, 0.45, X.shape[1])):
        order, n = X[:, j].argsort(kind="stable"), int(part * len(X))
        k = int(share * n)
        below[order[:k], j] = True
        hidden[rng.choice(order[k:], n - k, replace=False), j] = True
    return hidden | below, below


def completed(name: str, share: float, method: str, seed: int) -> dict[str, Any]:
    truth = TABLES[name](seed)
    hidden, below = hidden_cells(truth, share, seed)
    off = METHODS[method](np.where(hidden, np.nan, truth)) - truth
    off /= truth.std(0)
    bias = {"bias": off[below].mean()} if below.any() else {}
    return {"error": np.square(off[hidden]).mean() ** 0.5, **bias}


def detection(results: Results) -> None:
    for name in TABLES:
        for share in SHARES:
            for seed in range(SEEDS):
                for method in METHODS:
                    key = ("detection", name, f"{share:.0%} below", method, seed)
                    results.measure(key, completed, name, share, method, seed)


if __name__ == "__main__":
    run(__doc__, detection)
