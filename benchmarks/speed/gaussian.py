"""How fast `GaussianCompleter` is: ``python -m benchmarks.speed.gaussian [parts]``.

Ratios are of medians inside one run, measured in turns on the same cores; 5 means: the
other takes five times as long. gcimpute takes part where it is installed. Errors are
root mean squares over the hidden cells, in units of the columns' standard deviations.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from benchmarks.shared.pages import hardware
from benchmarks.shared.timing import in_turns
from skmc import GaussianCompleter, patterns


def covariance(n_cols: int) -> np.ndarray:
    A = np.random.RandomState(1).randn(n_cols, n_cols)
    return A @ A.T / n_cols + 0.3 * np.eye(n_cols)


def table(n_rows: int, n_cols: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows with a fifth missing, and the hidden cells."""
    rng = np.random.RandomState(0)
    truth = rng.multivariate_normal(np.zeros(n_cols), covariance(n_cols), n_rows)
    return truth, patterns.random(truth, 0.2, spare=True, random_state=0)


def bent(n_rows: int, n_cols: int) -> tuple[np.ndarray, np.ndarray]:
    """Monotone functions of Gaussian rows; every third column has five levels."""
    truth, hidden = table(n_rows, n_cols)
    levels = np.digitize(truth, [-1.5, -0.5, 0.5, 1.5]).astype(float)
    ordinal = np.arange(n_cols) % 3 == 0
    return np.where(ordinal, levels, np.sign(truth) * truth**2), hidden


def measured(ways: dict[str, Callable], problem) -> dict:
    """Seconds, ratios to the first way, and errors."""
    truth, hidden = problem
    X = np.where(hidden, np.nan, truth)
    errors = {}

    def run(name):
        def once():
            completed = np.asarray(ways[name](X))
            off = (completed - truth) / np.nanstd(X, axis=0)
            errors[name] = float(np.sqrt(np.square(off[hidden]).mean()))

        return once

    seconds = in_turns(*map(run, ways))
    return {
        "seconds": dict(zip(ways, seconds.tolist(), strict=True)),
        "ratio": dict(zip(ways, (seconds / seconds[0]).tolist(), strict=True)),
        "RMSE": errors,
    }


def normal() -> dict:
    """2000 x 20, the weight chosen or given, against chained Bayesian ridges."""
    return measured(
        {
            "ours": lambda X: GaussianCompleter(random_state=0).fit_transform(X),
            "ours, ridge given": lambda X: GaussianCompleter(1.0).fit_transform(X),
            "IterativeImputer": lambda X: IterativeImputer().fit_transform(X),
        },
        table(2000, 20),
    )


def copula() -> dict:
    """2000 x 20, skewed and ordinal columns, against gcimpute."""
    ways = {
        "ours": lambda X: GaussianCompleter(
            marginals="copula", random_state=0
        ).fit_transform(X)
    }
    if importlib.util.find_spec("gcimpute"):
        from gcimpute.gaussian_copula import GaussianCopula

        ways["gcimpute"] = lambda X: GaussianCopula(verbose=0).fit_transform(X=X)
    return measured(ways, bent(2000, 20))


def rows() -> dict:
    """Rows a second of `transform`, 20 columns, and of a fit as rows grow."""
    completer = GaussianCompleter(random_state=0).fit(table(2000, 20)[0])
    result = {}
    for n_rows in (1000, 10_000, 100_000):
        truth, hidden = table(n_rows, 20)
        X = np.where(hidden, np.nan, truth)
        start = time.perf_counter()
        completer.transform(X)
        middle = time.perf_counter()
        GaussianCompleter(random_state=0).fit(X)
        result[n_rows] = {
            "rows a second": n_rows / (middle - start),
            "seconds of a fit": time.perf_counter() - middle,
        }
    return result


PARTS = {"normal": normal, "copula": copula, "rows": rows}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(hardware(), "load", os.getloadavg())
    for part in sys.argv[1:] or list(PARTS):
        print(part, json.dumps(PARTS[part](), indent=2), flush=True)
