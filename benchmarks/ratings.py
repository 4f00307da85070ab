"""Stars of MovieLens and Flixster: our completers, myFM and published results.

``stars``: the usual splits, beside published results, and 30 and 50 % held out.
``graphs``: with the graphs of users and films, and without. ``films``: films of which
no rating is known, from their genres (``ratings/u.item`` of MovieLens).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
from common import Results, run
from problems import MAX_RATING, MIN_RATING, prediction_error, split
from scipy.sparse import csr_array, eye_array, hstack
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from skmc import (
    AutoCompleter,
    BayesianFactorizationCompleter,
    Entries,
    FactorizationCompleter,
    IALMCompleter,
    SoftImputeCompleter,
)
from skmc.datasets import load_flixster, load_movielens

SEEDS = range(3)
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


class MyFM:
    """myFM on indicators of user and film, and of what each user and film was rated.

    As in its examples: ten factors, 512 samples, and implicit features with rows of
    Euclidean norm one.
    """

    def __init__(self, implicit: bool):
        self.implicit = implicit

    def fit(self, train: Entries) -> MyFM:
        from myfm import MyFMRegressor

        m, n = train.matrix_shape
        ones = np.ones(len(train)), (train.rows, train.cols)
        seen = csr_array(ones, train.matrix_shape)
        self.blocks = [eye_array(m, format="csr")], [eye_array(n, format="csr")]
        if self.implicit:
            for block, rated in zip(self.blocks, (seen, seen.T.tocsr()), strict=True):
                counts = np.maximum(rated.sum(1), 1)
                block.append(rated.multiply(counts[:, None] ** -0.5).tocsr())
        self.model = MyFMRegressor(rank=10, random_seed=42)
        self.model.fit(
            None,
            train.values,
            X_rel=self._relations(train.rows, train.cols),
            group_shapes=[m, n, n, m] if self.implicit else [m, n],
            n_iter=512,
            n_kept_samples=512,
        )
        return self

    def _relations(self, rows, cols):
        from myfm import RelationBlock

        places = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        return [
            RelationBlock(place, hstack(block).tocsr())
            for place, block in zip(places, self.blocks, strict=True)
        ]

    def predict_entries(self, rows, cols) -> np.ndarray:
        return self.model.predict(None, self._relations(rows, cols))


OURS = {name: make for name, make in METHODS.items() if name != "Soft-Impute"}
FOLDS = [f"u{k}" for k in range(1, 6)]
TENTH, SHARES = "90/10", ["30 %", "50 %"]
BEST = {  # of the folds of MovieLens-100K
    **OURS,
    "Bayesian, implicit, 400 draws": lambda seed: BayesianFactorizationCompleter(
        n_draws=400, implicit=True, heteroscedastic=True, random_state=seed
    ),
}
THEIRS = {
    "myFM": lambda seed: MyFM(implicit=False),
    "myFM, implicit": lambda seed: MyFM(implicit=True),
}
# RMSE. GLocal-K stops at the epoch with the lowest RMSE on the *test* ratings. Splits
# of MovieLens-1M are other random ones.
PUBLISHED = {
    ("MovieLens-100k", "u1"): {
        "sRGCNN (Monti et al. 2017, arXiv 1704.06803)": 0.929,
        "GC-MC (van den Berg et al. 2018, arXiv 1706.02263)": 0.910,
        "GC-MC with features (van den Berg et al. 2018, arXiv 1706.02263)": 0.905,
        "IGMC (Zhang, Chen 2020, arXiv 1904.12058)": 0.905,
        "GLocal-K (github.com/usydnlp/Glocal_K)": 0.889,
    },
    ("MovieLens-1m", TENTH): {
        "GC-MC (van den Berg et al. 2018, arXiv 1706.02263)": 0.832,
        "SparseFC (Muller et al. 2018, proceedings.mlr.press/v80/muller18a)": 0.824,
        "GLocal-K (github.com/usydnlp/Glocal_K)": 0.823,
    },
}


# Size, protocols, methods, seeds, time limit of a fit in seconds.
CASES: list[tuple[str, list[str], dict[str, Any], range, int | None]] = [
    ("100k", FOLDS, BEST, range(1), None),
    ("1m", [TENTH], METHODS, range(1), None),
    ("100k", ["u1"], METHODS, SEEDS, None),
    ("100k", SHARES, TUNED, SEEDS, None),
    ("100k", SHARES, DENSE, range(1), 120),
    ("1m", SHARES, TUNED, range(1), 600),
    ("100k", FOLDS, THEIRS, range(1), None),
    ("1m", [TENTH], THEIRS, range(1), None),
]


def fitted(size: str, protocol: str, make: Callable, seed: int) -> dict[str, float]:
    return prediction_error(*split(size, protocol, seed))(make(seed))


def stars(results: Results) -> None:
    for size, protocols, methods, seeds, limit in CASES:
        for protocol in protocols:
            for seed in seeds:
                for method, make in methods.items():
                    key = ("stars", f"MovieLens-{size}", protocol, method, seed)
                    case = size, protocol, make, seed
                    results.measure(key, fitted, *case, limit=limit)
    for data, printed in PUBLISHED.items():
        results.published("stars", *data, "rmse", printed)


# ------------------------------------------------------- graphs of users and of films

GRAPHS = ("row_graph", "col_graph")
BAYESIAN = partial(BayesianFactorizationCompleter, heteroscedastic=True)
KINDS: dict[str, Callable[..., Any]] = {
    "Bayesian": BAYESIAN,
    "Bayesian, implicit": partial(BAYESIAN, implicit=True),
    "auto": AutoCompleter,
}


@cache
def linked(name: str) -> tuple:
    """Ratings to fit and to predict, their range, and the graphs."""
    if name == "Flixster":
        data = load_flixster()
        parts = data.entries[~data.test], data.entries[data.test], 0.5, 5
    else:
        data = load_movielens("100k")
        parts = *split("100k", "u1", 0), MIN_RATING, MAX_RATING
    return parts, {graph: (data[graph] + data[graph].T) / 2 for graph in GRAPHS}


def with_graphs(name: str, kind: str, given: bool) -> dict[str, Any]:
    (train, test, low, high), graphs = linked(name)
    completer = KINDS[kind](random_state=0)
    # The budget of AutoCompleter is counted in processor seconds, because other
    # programs run on the same machine.
    with mock.patch("time.perf_counter", time.process_time):
        completer.fit(train, **(graphs if given else {}))
    if hasattr(completer, "predict_entries"):
        guess = completer.predict_entries(test.rows, test.cols)
    else:
        guess = completer.reconstruction_[test.rows, test.cols]
    off = np.clip(guess, low, high) - test.values
    found = {"rmse": float(np.sqrt(np.square(off).mean()))}
    return {**found, "verdict": completer.verdict_} if kind == "auto" else found


def graphs(results: Results) -> None:
    for name, protocol in (("Flixster", "its split"), ("MovieLens-100k", "u1")):
        for kind in KINDS:
            for given in (True, False):
                method = f"{kind}, {'graphs' if given else 'no graphs'}"
                key = ("graphs", name, protocol, method)
                results.measure(key, with_graphs, name, kind, given, limit=None)


# ------------------------------------------------- films of which no rating is known

N_FOLDS, SEED = 10, 0
ALPHAS = (1.0, 3.0, 10.0, 30.0, 100.0)
COMPLETERS = {
    "FactorizationCompleter": partial(FactorizationCompleter, random_state=SEED),
    "BayesianFactorizationCompleter": partial(
        BayesianFactorizationCompleter, random_state=SEED
    ),
}
MEANS = "mean of the user"
BASELINES = {
    "Ridge": lambda: RidgeCV(ALPHAS),
    "HistGradientBoostingRegressor": lambda: HistGradientBoostingRegressor(
        random_state=SEED
    ),
}
TASTES = "Ridge of user x genre"


def folds(cells: Entries):
    """Ratings to train on and to predict: each film is hidden once."""
    films = np.arange(cells.matrix_shape[1])
    for _, part in KFold(N_FOLDS, shuffle=True, random_state=SEED).split(films):
        hidden = np.isin(cells.cols, part)
        yield cells[~hidden], cells[hidden]


def by_completer(completer: Any, given: dict, train: Entries, test: Entries) -> Any:
    return completer.fit(train, **given).predict_entries(test.rows, test.cols)


def user_means(train: Entries, test: Entries) -> Any:
    """What completers fill columns with of which nothing is known."""
    size = train.matrix_shape[0]
    count = np.bincount(train.rows, minlength=size)
    return (np.bincount(train.rows, train.values, size) / count)[test.rows]


def by_means(model: Any, genres: np.ndarray, train: Entries, test: Entries) -> Any:
    """Regress on genres and on the user's mean, which scikit-learn cross-fits."""
    parts = KFold(5, shuffle=True, random_state=SEED)
    encoder = TargetEncoder(target_type="continuous", cv=parts)
    columns = make_column_transformer((encoder, [0]), remainder="passthrough")
    pipeline = make_pipeline(columns, model)
    X, Z = (np.column_stack([c.rows, genres[c.cols]]) for c in (train, test))
    return pipeline.fit(X, train.values).predict(Z)


def by_tastes(genres: np.ndarray, train: Entries, test: Entries) -> Any:
    """Regress on users, genres and their products; alpha by folds over films."""

    def features(cells: Entries) -> sp.csr_array:
        one = np.ones(len(cells))
        place = np.arange(len(cells)), cells.rows
        users = sp.csr_array((one, place), (len(cells), cells.matrix_shape[0]))
        own = sp.csr_array(genres[cells.cols].astype(float))
        parts = [users, own, *(users * own[:, [k]] for k in range(own.shape[1]))]
        return sp.hstack(parts).tocsr()

    search = GridSearchCV(
        Ridge(solver="sparse_cg"),
        {"alpha": list(ALPHAS)},
        cv=GroupKFold(3),
        scoring="neg_mean_squared_error",
    )
    X = features(train)
    return search.fit(X, train.values, groups=train.cols).predict(features(test))


def predicted_films(make: Any, function: Callable) -> dict[str, float]:
    """RMSE over all ratings, each predicted without any rating of its film."""
    entries = load_movielens("100k").entries
    size = entries.matrix_shape[1]
    square, count, each = np.zeros(size), np.zeros(size), []
    for train, test in folds(entries):
        first = () if make is None else (make(),)
        guess = function(*first, train=train, test=test)
        off = np.square(np.clip(guess, MIN_RATING, MAX_RATING) - test.values)
        square += np.bincount(test.cols, off, size)
        count += np.bincount(test.cols, minlength=size)
        each.append(np.sqrt(off.mean()))
    means = {"rmse": square.sum() / count.sum(), "film": (square / count).mean()}
    error = float(np.std(each, ddof=1) / N_FOLDS**0.5)
    return {k: float(np.sqrt(v)) for k, v in means.items()} | {"error": error}


def films(results: Results) -> None:
    data = load_movielens("100k")
    if "genres" not in data:
        raise FileNotFoundError("ratings/u.item of MovieLens-100K, for genres of films")
    genres = data.genres
    graph = (data.col_graph + data.col_graph.T) / 2
    given = {"genres": {"col_features": genres}, "graph": {"col_graph": graph}}
    predict: dict[str, Any] = {f"{MEANS}, nothing": (None, user_means)}
    for name, model in BASELINES.items():
        predict[f"{name}, genres"] = model, partial(by_means, genres=genres)
    predict[f"{TASTES}, genres"] = None, partial(by_tastes, genres=genres)
    for known in given:
        for name, make in COMPLETERS.items():
            function = partial(by_completer, given=given[known])
            predict[f"{name}, {known}"] = make, function
    for method, case in predict.items():
        key = ("films", "MovieLens-100k", "ten folds", method)
        results.measure(key, predicted_films, *case, limit=None)


if __name__ == "__main__":
    run(__doc__, stars, graphs, films)
