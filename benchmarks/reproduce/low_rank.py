"""The low-rank family on pictures, ratings, drug targets, networks' data and genes.

``python -m benchmarks.reproduce low-rank [PART ...]`` fits what is not in
``low-rank.json`` yet and writes ``low-rank.md``, which describes the protocols. Nothing
is chosen by hidden cells: completers have their defaults, which choose on held-out
observed cells.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

from benchmarks.reproduce.ratings import ratings
from benchmarks.shared.problems import (
    FIRST_SEED,
    PICTURES,
    SMALL_PICTURES,
    completion_error,
    energy_lost,
    hide,
    matrix,
    nonlinear_matrix,
)
from benchmarks.shared.results import Results
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


def completer(method: str, seed: int):
    return {**METHODS, **MORE_METHODS}[method](seed)


RANDOM = ("random 30 %", "random 50 %")
PICTURE_CASES = [
    *((name, pattern) for name in PICTURES for pattern in RANDOM),
    *((name, pattern) for pattern in ("text", "texture") for name in SMALL_PICTURES),
]


def pictures(results: Results) -> None:
    """NMAE over hidden pixels."""
    truth, _ = matrix("Barbara")
    X = hide(truth, "random 30 %", 0)
    results.measure(
        "pictures/Barbara, random 30 %/TNNR-ADMM, r=10/0",
        completer("TNNR-ADMM, r=10", 0),
        completion_error(X, truth, {"nmae": nmae}),
    )
    for seed in SEEDS:
        for name, pattern in PICTURE_CASES:
            truth, _ = matrix(name)
            if seed and not (name in SMALL_PICTURES and pattern in RANDOM):
                continue  # fixed masks, and pictures without check values
            X = hide(truth, pattern, seed)
            score = completion_error(X, truth, {"nmae": nmae})
            for method in METHODS:
                key = f"pictures/{name}, {pattern}/{method}/{seed}"
                results.measure(key, completer(method, seed), score)


NETFLIX = ("random 70 %", "random 75 %", "random 80 %")


def netflix(results: Results) -> None:
    """RMSE on the test cells of the file's split, NMAE at random."""
    data = load_syn_netflix()
    split = np.ma.masked_array(data.data.astype(np.float32), ~data.train)
    for seed in SEEDS:
        for method in METHODS:

            def score(completer) -> dict[str, float]:
                completed = completer.fit_transform(split)
                return {"rmse": rmse(completed, data.data, data.test)}

            key = f"netflix/split/{method}/{seed}"
            results.measure(key, completer(method, seed), score)
        for pattern in NETFLIX:
            X = hide(data.data, pattern, seed)
            score = completion_error(X, data.data, {"nmae": nmae})
            for method in METHODS:
                key = f"netflix/{pattern}/{method}/{seed}"
                results.measure(key, completer(method, seed), score)


def drugs(results: Results) -> None:
    """NMAE at random; AUC and AUPR over five folds of all pairs."""
    for seed in FOLD_SEEDS:
        for name in ("IC", "GPCR"):
            truth, _ = matrix(name)
            for method in METHODS:
                key = f"drugs/{name}, five folds/{method}/{seed}"
                score = ranking(truth, method, seed)
                results.measure(key, completer(method, seed), score, limit=None)
    for seed in SEEDS:
        for name in ("IC", "GPCR"):
            truth, _ = matrix(name)
            X = hide(truth, "random 20 %", seed)
            score = completion_error(X, truth, {"nmae": nmae})
            for method in METHODS:
                key = f"drugs/{name}, random 20 %/{method}/{seed}"
                results.measure(key, completer(method, seed), score)


def ranking(truth: np.ndarray, method: str, seed: int):
    """Return a score: how well completed values rank pairs, the mean of five folds."""

    def score(_) -> dict[str, float]:
        found: dict[str, list[float]] = {"auc": [], "aupr": []}
        folds = KFold(5, shuffle=True, random_state=seed)
        for _, fold in folds.split(np.arange(truth.size)):
            hidden = np.zeros(truth.shape, bool)
            hidden.flat[fold] = True
            X = np.ma.masked_array(truth.astype(np.float32), hidden)
            values = completer(method, seed).fit_transform(X)[hidden]
            found["auc"].append(roc_auc_score(truth[hidden], values))
            found["aupr"].append(average_precision_score(truth[hidden], values))
        return {name: float(np.mean(values)) for name, values in found.items()}

    return score


SYNTHETIC = (10, 30, 50, 80)


def synthetic(results: Results) -> None:
    """Share of the hidden cells' energy that is lost, in percent."""
    for seed in SEEDS:
        rng = np.random.RandomState(FIRST_SEED + seed)
        truth = nonlinear_matrix(rng)
        for percent in SYNTHETIC:
            hidden = rng.random_sample(truth.shape) <= percent / 100
            X = np.ma.masked_array(truth.astype(np.float32), hidden)
            score = completion_error(X, truth, {"percent": energy_lost})
            for method in METHODS:
                key = f"synthetic/{percent} %/{method}/{seed}"
                results.measure(key, completer(method, seed), score)


GENES = {"Khan": "khan_srbct_missing", "yeast": "yeast_spellman1998"}
GENES_HIDDEN = (5, 10, 20)
GENES_METHODS = (
    *(method for method in METHODS if method not in ("TNNR-APGL", "TNN-WRE")),
    "KNN, k=10",
    "means",
)


def spread_error(X, M, cells) -> float:
    """Root mean square error over the standard deviation of the hidden truth."""
    return rmse(X, M, cells) / float(np.std(M[cells]))


def expression(results: Results) -> None:
    """NRMSE over hidden cells."""
    for name, file in GENES.items():
        truth = load_expression(file).data
        for seed in GENES_SEEDS[name]:
            for percent in GENES_HIDDEN:
                hidden = patterns.random(
                    truth, percent / 100, random_state=FIRST_SEED + seed
                )
                X = np.where(hidden, np.nan, truth).astype(np.float32)

                def score(completer, X=X, truth=truth, hidden=hidden):
                    error = spread_error(completer.fit_transform(X), truth, hidden)
                    return {"nrmse": error}

                for method in GENES_METHODS:
                    key = f"expression/{name}, {percent} %/{method}/{seed}"
                    results.measure(key, completer(method, seed), score)


PARTS = {
    "pictures": pictures,
    "netflix": netflix,
    "drugs": drugs,
    "synthetic": synthetic,
    "ratings": ratings,
    "expression": expression,
}


def run(results: Results, *names: str) -> None:
    """Fit the parts that are named, or all of them."""
    if unknown := set(names) - set(PARTS):
        raise SystemExit(f"unknown parts {sorted(unknown)}; there are {list(PARTS)}")
    for name in names or PARTS:
        PARTS[name](results)
