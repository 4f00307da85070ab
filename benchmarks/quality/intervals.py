"""Coverage of 90 % intervals: ``python -m benchmarks.quality.intervals``.

Fits what is not in ``docs/reproduction/records/intervals.json`` yet and writes
``intervals.md``. The truth is used for the coverage only.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from benchmarks.shared.pages import dots, table, write_page
from benchmarks.shared.results import Results
from skmc import (
    AutoCompleter,
    BayesianFactorizationCompleter,
    GaussianCompleter,
    SVDCompleter,
    patterns,
)
from skmc.datasets import load_table
from skmc.uncertainty import MultipleCompletion

LEVEL, QUANTILE = 0.9, 1.6449
SIX = ["means", "KNN", "IALM", "Gaussian", "copula", "Bayesian"]
TABLES = {
    "airfoil": lambda: load_table("airfoil").data,
    "breast cancer": lambda: load_breast_cancer().data,
    "concrete": lambda: load_table("concrete").data,
    "diabetes": lambda: load_diabetes().data,
    "energy": lambda: load_table("energy_efficiency").data,
    "wine": lambda: load_wine().data,
}
MNAR = "MNAR 30 %"
MECHANISMS = {
    "MCAR 20 %": lambda X: patterns.random(X, 0.2, random_state=0),
    "MCAR 40 %": lambda X: patterns.random(X, 0.4, random_state=0),
    "MAR 30 %": lambda X: patterns.mar(X, 0.3, random_state=0),
    MNAR: lambda X: patterns.mnar(X, 0.3, random_state=0),
}


def by_deviation(completer: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A normal interval around each completed cell."""
    mean = completer.fit_transform(X)
    half = QUANTILE * completer.predict_std(X)
    return mean - half, mean + half


def by_draws(completer: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return MultipleCompletion(completer, random_state=0).fit(X).interval(LEVEL)


METHODS: dict[str, Any] = {
    "`GaussianCompleter`, `predict_std`": lambda X: by_deviation(
        GaussianCompleter(random_state=0), X
    ),
    '`GaussianCompleter(marginals="copula")`, `predict_std`': lambda X: by_deviation(
        GaussianCompleter(marginals="copula", random_state=0), X
    ),
    "`BayesianFactorizationCompleter`, `predict_std`": lambda X: by_deviation(
        BayesianFactorizationCompleter(random_state=0), X
    ),
    "`AutoCompleter` of six candidates, `predict_interval`": lambda X: (
        AutoCompleter(SIX, random_state=0).fit(X).predict_interval(X, LEVEL)
    ),
    "`MultipleCompletion(SVDCompleter())`": lambda X: by_draws(SVDCompleter(), X),
    "`MultipleCompletion(GaussianCompleter())`": lambda X: by_draws(
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


def run(results: Results) -> None:
    for name, load in TABLES.items():
        truth = np.asarray(load(), float)
        for mechanism, hide in MECHANISMS.items():
            hidden = hide(truth)
            X = np.where(hidden, np.nan, truth)
            for method, interval in METHODS.items():

                def score(_: Any, given: Any = (interval, X, truth, hidden)) -> dict:
                    return coverage(*given)

                results.measure(f"{mechanism}/{name}/{method}/0", None, score, None)


def page(results: Results) -> None:
    parts = []
    means: dict[str, dict[str, float]] = {}
    for mechanism in MECHANISMS:
        rows = []
        for method in METHODS:
            row = [method]
            for name in TABLES:
                key = f"{mechanism}/{name}/{method}"
                found = results.mean(key, "coverage"), results.mean(key, "width")
                row.append(
                    "" if found[0] is None else f"{found[0]:.2f} ({found[1]:.2f})"
                )
            rows.append(row)
            keys = [f"{mechanism}/{name}/{method}" for name in TABLES]
            shares = [results.mean(key, "coverage") for key in keys]
            means.setdefault(method, {})[mechanism] = float(np.mean(shares))
        parts += [f"## {mechanism}", table(["", *TABLES], rows)]
    kept = [row[m] for row in means.values() for m in MECHANISMS if m != MNAR]
    lost = [row[MNAR] for row in means.values()]
    fields = {
        "kept": f"{min(kept):.2f} to {max(kept):.2f}",
        "lost": f"{min(lost):.2f} to {max(lost):.2f}",
        "chart": dots(
            "intervals", "Share of hidden cells in 90 % intervals", means, at=LEVEL
        ),
        "coverage": "\n\n".join(parts),
    }
    write_page("intervals", fields)


def main() -> None:
    warnings.simplefilter("ignore")
    results = Results("intervals")
    if "page" not in sys.argv[1:]:
        run(results)
    page(results)


if __name__ == "__main__":
    main()
