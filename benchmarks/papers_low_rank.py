"""The low-rank family on pictures, ratings, drug targets and genes.

Completers have their defaults, which choose on held-out observed cells; nothing is
chosen by hidden cells.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from common import TOO_SLOW, Results, run
from problems import (
    FIRST_SEED,
    PICTURES,
    SMALL_PICTURES,
    completion_error,
    energy_lost,
    hide,
    matrix,
    nonlinear_matrix,
)
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

from skmc import (
    FactorizationCompleter,
    IALMCompleter,
    KNNCompleter,
    MeanCompleter,
    NCARLCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    SVTCompleter,
    TNNRCompleter,
    patterns,
)
from skmc.datasets import load_expression, load_syn_netflix
from skmc.metrics import nmae, rmse

SEEDS = range(3)
FOLD_SEEDS = range(1)  # each judges all pairs once
GENES_SEEDS = {"yeast": range(1), "Khan": SEEDS}  # yeast takes 8 minutes a seed
METHODS = {
    "IALM": lambda seed: IALMCompleter(scaling="global"),
    "SVT": lambda seed: SVTCompleter(scaling="global"),
    "Soft-Impute": lambda seed: SoftImputeCompleter(
        scaling="global", fixed_effects=None, random_state=seed
    ),
    "Factorization": lambda seed: FactorizationCompleter(random_state=seed),
    "TNNR-ADMM": lambda seed: TNNRCompleter(scaling="global", random_state=seed),
    "TNNR-APGL": lambda seed: TNNRCompleter(
        scaling="global", solver="apgl", random_state=seed
    ),
    "TNN-WRE": lambda seed: TNNRCompleter(
        scaling="global", weighted=True, random_state=seed
    ),
    "NCARL": lambda seed: NCARLCompleter(scaling="global", random_state=seed),
    "SVD": lambda seed: SVDCompleter(random_state=seed),
    "KNN": lambda seed: KNNCompleter(),
}
MORE_METHODS = {
    "means": lambda seed: MeanCompleter(),
    "KNN, k=10": lambda seed: KNNCompleter(10),
    "TNNR-ADMM, r=10": lambda seed: TNNRCompleter(10),
}


def fit_all(
    results: Results,
    case: tuple[str, str, str],
    seed: int,
    score: Callable,
    methods: Any = METHODS,
    limit: int | None = TOO_SLOW,
) -> None:
    for method in methods:
        completer = {**METHODS, **MORE_METHODS}[method](seed)
        results.measure((*case, method, seed), score, completer, limit=limit)


RANDOM = ("random 30 %", "random 50 %")
PICTURE_CASES = [
    *((name, pattern) for name in PICTURES for pattern in RANDOM),
    *((name, pattern) for pattern in ("text", "texture") for name in SMALL_PICTURES),
]


def pictures(results: Results) -> None:
    """NMAE over hidden pixels."""
    for seed in SEEDS:
        for name, pattern in PICTURE_CASES:
            if seed and not (name in SMALL_PICTURES and pattern in RANDOM):
                continue  # fixed masks, and pictures without check values
            truth, _ = matrix(name)
            X = hide(truth, pattern, seed)
            score = completion_error(X, truth, {"nmae": nmae})
            first = (name, pattern, seed) == ("Barbara", "random 30 %", 0)
            methods = [*METHODS, *["TNNR-ADMM, r=10"] * first]
            fit_all(results, ("pictures", name, pattern), seed, score, methods)


NETFLIX = ("random 70 %", "random 75 %", "random 80 %")


def netflix(results: Results) -> None:
    """RMSE on the test cells of the file's split, NMAE at random."""
    data = load_syn_netflix()
    split = np.ma.masked_array(data.data.astype(np.float32), ~data.train)

    def score(completer: Any) -> dict[str, float]:
        return {"rmse": rmse(completer.fit_transform(split), data.data, data.test)}

    for seed in SEEDS:
        fit_all(results, ("ratings", "Syn-Netflix", "its split"), seed, score)
        for pattern in NETFLIX:
            X = hide(data.data, pattern, seed)
            error = completion_error(X, data.data, {"nmae": nmae})
            fit_all(results, ("ratings", "Syn-Netflix", pattern), seed, error)


def drugs(results: Results) -> None:
    """NMAE at random; AUC and AUPR over five folds of all pairs."""
    for name in ("IC", "GPCR"):
        truth, _ = matrix(name)
        for seed in FOLD_SEEDS:
            for method, make in METHODS.items():
                key = ("drugs", name, "five folds", method, seed)
                results.measure(key, ranking, truth, make, seed, limit=None)
        for seed in SEEDS:
            X = hide(truth, "random 20 %", seed)
            score = completion_error(X, truth, {"nmae": nmae})
            fit_all(results, ("drugs", name, "random 20 %"), seed, score)


def ranking(truth: np.ndarray, make: Callable, seed: int) -> dict[str, float]:
    """How well completed values rank pairs, the mean of five folds."""
    found: dict[str, list[float]] = {"auc": [], "aupr": []}
    folds = KFold(5, shuffle=True, random_state=seed)
    for _, fold in folds.split(np.arange(truth.size)):
        hidden = np.zeros(truth.shape, bool)
        hidden.flat[fold] = True
        X = np.ma.masked_array(truth.astype(np.float32), hidden)
        values = make(seed).fit_transform(X)[hidden]
        found["auc"].append(roc_auc_score(truth[hidden], values))
        found["aupr"].append(average_precision_score(truth[hidden], values))
    return {name: float(np.mean(values)) for name, values in found.items()}


def synthetic(results: Results) -> None:
    """Share of the hidden cells' energy that is lost, in percent."""
    for seed in SEEDS:
        rng = np.random.RandomState(FIRST_SEED + seed)
        truth = nonlinear_matrix(rng)
        for percent in (10, 30, 50, 80):
            hidden = rng.random_sample(truth.shape) <= percent / 100
            X = np.ma.masked_array(truth.astype(np.float32), hidden)
            score = completion_error(X, truth, {"percent": energy_lost})
            fit_all(results, ("synthetic", "tanh", f"{percent} %"), seed, score)


GENES = {"Khan": "khan_srbct_missing", "yeast": "yeast_spellman1998"}
GENES_HIDDEN = (5, 10, 20)
GENES_METHODS = (
    *(method for method in METHODS if method not in ("TNNR-APGL", "TNN-WRE")),
    "KNN, k=10",
    "means",
)


def spread_error(
    X: np.ndarray, truth: np.ndarray, hidden: np.ndarray, completer: Any
) -> dict[str, float]:
    """Root mean square error over the standard deviation of the hidden truth."""
    error = rmse(completer.fit_transform(X), truth, hidden)
    return {"nrmse": error / float(np.std(truth[hidden]))}


def expression(results: Results) -> None:
    for name, file in GENES.items():
        truth = load_expression(file).data
        for seed in GENES_SEEDS[name]:
            for percent in GENES_HIDDEN:
                hidden = patterns.random(
                    truth, percent / 100, random_state=FIRST_SEED + seed
                )
                X = np.where(hidden, np.nan, truth).astype(np.float32)
                score = partial(spread_error, X, truth, hidden)
                case = ("expression", name, f"{percent} %")
                fit_all(results, case, seed, score, GENES_METHODS)


if __name__ == "__main__":
    run(__doc__, pictures, netflix, drugs, synthetic, expression)
