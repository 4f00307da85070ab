"""Errors along each weight: ``python -m benchmarks.quality.weights [page | WORD ...]``.

Words choose the curves whose titles contain one of them.

One table and one picture that scikit-learn carries. The ranges that docstrings
recommend come from these curves, and from the papers.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_sample_image, load_wine

from benchmarks.shared import made
from benchmarks.shared.pages import best, dots, folded, record, table, write_page
from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    DMFCompleter,
    FactorizationCompleter,
    GaussianCompleter,
    GradualNSRCompleter,
    LinkedFactorizationCompleter,
    NCARLCompleter,
    NSRCompleter,
    SoftImputeCompleter,
    SVTCompleter,
    TNNRCompleter,
)
from skmc.metrics import rmse

NAME = "weights"
DATA = "wine", "china"
FLAT = 1.05  # a larger ratio of errors matters
SEED = {"random_state": 0}
CONSTANT_MU = {**SEED, "mu_max": 1.0, "max_iter": 400}


def along(low: float, high: float) -> list[float]:
    """Half decades from ``low`` to ``high``."""
    count = round(2 * np.log10(high / low)) + 1
    return [float(f"{w:.2g}") for w in np.geomspace(low, high, count)]


# The class, the weight, values, and a completer with a value.
CURVES: list[tuple[str, list[float], Callable[[float], Any]]] = [
    (
        "AIRCompleter: lambda_row = lambda_col",
        along(0.0025, 25),
        lambda w: AIRCompleter(w, w, **SEED),
    ),
    (
        'DMFCompleter("tv"): lambda_row = lambda_col',
        along(1e-3, 10),
        lambda w: DMFCompleter("tv", lambda_row=w, lambda_col=w, **SEED),
    ),
    (
        'DMFCompleter("dirichlet"): lambda_row = lambda_col',
        along(1e-3, 10),
        lambda w: DMFCompleter("dirichlet", lambda_row=w, lambda_col=w, **SEED),
    ),
    (
        "AutoencoderCompleter: lambda_weights",
        along(0.01, 30),
        lambda w: AutoencoderCompleter(lambda_weights=w, **SEED),
    ),
    (
        "FactorizationCompleter: lambda_ridge",
        along(0.001, 1),
        lambda w: FactorizationCompleter(lambda_ridge=w, **SEED),
    ),
    (
        "GaussianCompleter: lambda_ridge",
        along(0.01, 300),
        lambda w: GaussianCompleter(lambda_ridge=w, **SEED),
    ),
    (
        "LinkedFactorizationCompleter: lambda_ridge",
        along(0.1, 100),
        lambda w: LinkedFactorizationCompleter(lambda_ridge=w, **SEED),
    ),
    (
        "NCARLCompleter: alpha",
        along(1, 1e5),
        lambda w: NCARLCompleter(alpha=w, n_neighbors=5, **SEED),
    ),
    (
        "NCARLCompleter: lambda_noise",
        along(1e-6, 0.1),
        lambda w: NCARLCompleter(lambda_noise=w, n_neighbors=5, **SEED),
    ),
    (
        "NSRCompleter: lambda_decoder",
        along(0.1, 100),
        lambda w: NSRCompleter(lambda_decoder=w, **SEED),
    ),
    (
        "NSRCompleter: lambda_encoder",
        along(0.02, 200),
        lambda w: NSRCompleter(lambda_decoder=8.0, lambda_encoder=w, **SEED),
    ),
    (
        "NSRCompleter: lambda_skip",
        along(0.002, 20),
        lambda w: NSRCompleter(lambda_decoder=8.0, lambda_skip=w, **SEED),
    ),
    (
        "GradualNSRCompleter: alpha",
        along(1e-3, 10),
        lambda w: GradualNSRCompleter(alpha=w, **CONSTANT_MU),
    ),
    (
        "GradualNSRCompleter: beta",
        along(1e-3, 10),
        lambda w: GradualNSRCompleter(beta=w, **CONSTANT_MU),
    ),
    (
        "GradualNSRCompleter: lambda_weights",
        along(1e-4, 1),
        lambda w: GradualNSRCompleter(lambda_weights=w, **CONSTANT_MU),
    ),
    (
        "SVTCompleter: tau",
        along(0.05, 50),
        lambda w: SVTCompleter(tau=w),
    ),
    (
        "SoftImputeCompleter: lambda_nuclear",
        along(0.001, 1),
        lambda w: SoftImputeCompleter(w, **SEED),
    ),
    (
        'TNNRCompleter("apgl"): lambda_fit',
        along(0.1, 1000),
        lambda w: TNNRCompleter(solver="apgl", lambda_fit=w, **SEED),
    ),
]


def problems() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The truth and the hidden cells, all columns of the table standardized."""
    wine = load_wine().data
    picture = load_sample_image("china.jpg").mean(2)[80:400:4, 100:420:4] / 255
    found = {"wine": (wine - wine.mean(0)) / wine.std(0), "china": picture}
    rng = np.random.RandomState(0)
    return {name: (X, rng.uniform(size=X.shape) < 0.3) for name, X in found.items()}


def measure(words: list[str]) -> None:
    """Record RMSE over hidden cells relative to their deviation, curve by curve."""
    for title, weights, make in CURVES:
        if words and not any(word in title for word in words):
            continue
        rows = {}
        for name, (truth, hidden) in problems().items():
            start = time.process_time()
            errors = []
            for weight in weights:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    done = make(weight).fit_transform(np.where(hidden, np.nan, truth))
                errors.append(float(rmse(done, truth, hidden) / truth[hidden].std()))
            rows[name] = {"errors": errors, "seconds": time.process_time() - start}
        record(NAME, {title: {"weights": weights, **rows}})


def page() -> None:
    """Write a table for each weight."""
    parts, ranges = [], {}
    for title, curve in made.known(NAME).items():
        errors = {name: curve[name]["errors"] for name in DATA}
        weights = [f"{weight:g}" for weight in curve["weights"]]
        columns = [best([f"{e:.3f}" for e in errors[name]]) for name in DATA]
        rows = zip(weights, *columns, strict=True)
        parts.append(folded(title, table(["weight", *DATA], rows)))
        ranges[title] = {name: max(e) / min(e) for name, e in errors.items()}
    most = max(ranges, key=lambda title: max(ranges[title].values()))
    flat = [title for title, row in ranges.items() if max(row.values()) < FLAT]
    fields = {
        "most": most,
        "factor": f"{max(ranges[most].values()):.2g}",
        "n_flat": len(flat),
        "n_weights": len(ranges),
        "flat": f"{100 * FLAT - 100:.0f} %",
        "chart": dots(NAME, "Largest / lowest error along the weight", ranges, at=1),
        "curves": "\n\n".join(parts),
    }
    write_page(NAME, fields)


if __name__ == "__main__":
    if sys.argv[1:] != ["page"]:
        measure(sys.argv[1:])
    page()
