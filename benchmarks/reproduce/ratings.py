"""MovieLens: RMSE on the usual splits, NMAE at 30 and 50 % held out."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.shared.results import Results
from skmc import (
    BayesianFactorizationCompleter,
    Entries,
    FactorizationCompleter,
    IALMCompleter,
    SoftImputeCompleter,
)
from skmc.datasets import load_movielens

SEEDS = range(3)
MIN_RATING, MAX_RATING = 1, 5
TUNED = {
    "Factorization": lambda seed: FactorizationCompleter(random_state=seed),
    "Soft-Impute": lambda seed: SoftImputeCompleter(
        scaling="global", fixed_effects=None, random_state=seed
    ),
}
METHODS = {
    **TUNED,
    "Bayesian": lambda seed: BayesianFactorizationCompleter(
        heteroscedastic=True, random_state=seed
    ),
    "Bayesian, implicit": lambda seed: BayesianFactorizationCompleter(
        implicit=True, heteroscedastic=True, random_state=seed
    ),
}
DENSE = {"IALM": lambda seed: IALMCompleter(scaling="global")}


def split(size: str, protocol: str, seed: int) -> tuple[Entries, Entries]:
    """The ratings for training and those to predict."""
    data = load_movielens(size)
    n_ratings = len(data.entries)
    if protocol in data.splits:
        test = data.splits[protocol]
    elif protocol == "90/10":
        test = np.random.default_rng(7).random(n_ratings) < 0.1
    else:
        rng = np.random.RandomState(20210909 + seed)
        test = rng.random_sample(n_ratings) <= int(protocol.split()[0]) / 100
    return data.entries[~test], data.entries[test]


def prediction_error(train: Entries, test: Entries):
    def score(completer) -> dict[str, float]:
        predicted = completer.fit(train).predict_entries(test.rows, test.cols)
        error = np.clip(predicted, MIN_RATING, MAX_RATING) - test.values
        return {
            "rmse": float(np.sqrt(np.square(error).mean())),
            "nmae": float(np.abs(error).mean() / (MAX_RATING - MIN_RATING)),
        }

    return score


# Size, protocol, methods, seeds, time limit of a fit in seconds.
CASES: list[tuple[str, str, dict[str, Any], range, int | None]] = [
    ("100k", "u1", METHODS, SEEDS, None),
    ("1m", "90/10", METHODS, range(1), None),
    ("100k", "30 %", TUNED, SEEDS, None),
    ("100k", "50 %", TUNED, SEEDS, None),
    ("100k", "30 %", DENSE, range(1), 120),
    ("100k", "50 %", DENSE, range(1), 120),
    ("1m", "30 %", TUNED, range(1), 600),
    ("1m", "50 %", TUNED, range(1), 600),
]


def ratings(results: Results) -> None:
    for size, protocol, methods, seeds, limit in CASES:
        for seed in seeds:
            score = prediction_error(*split(size, protocol, seed))
            for method, make in methods.items():
                key = f"ratings/{size}, {protocol}/{method}/{seed}"
                results.measure(key, make(seed), score, limit)
