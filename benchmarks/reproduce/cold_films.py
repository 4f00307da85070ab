"""Ratings of films of which no rating is known, from their genres."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from benchmarks.reproduce.ratings import MAX_RATING, MIN_RATING
from benchmarks.shared.pages import table
from benchmarks.shared.results import Results
from skmc import BayesianFactorizationCompleter, Entries, FactorizationCompleter
from skmc.datasets import load_movielens

N_FOLDS, SEED = 10, 0
ALPHAS = (1.0, 3.0, 10.0, 30.0, 100.0)
COMPLETERS = {
    "`FactorizationCompleter`": partial(FactorizationCompleter, random_state=SEED),
    "`BayesianFactorizationCompleter`": partial(
        BayesianFactorizationCompleter, random_state=SEED
    ),
}
KNOWN = ("nothing", "genres", "graph")
MEANS = "mean of the user"
BASELINES = {
    "`Ridge`": lambda: RidgeCV(ALPHAS),
    "`HistGradientBoostingRegressor`": lambda: HistGradientBoostingRegressor(
        random_state=SEED
    ),
}
TASTES = "`Ridge` of user x genre"


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


def films(results: Results) -> None:
    """RMSE over all ratings, each predicted without any rating of its film."""
    data = load_movielens("100k")
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

    for method, (make, function) in predict.items():

        def score(_, make=make, function=function):
            size = data.entries.matrix_shape[1]
            square, count, each = np.zeros(size), np.zeros(size), []
            for train, test in folds(data.entries):
                first = () if make is None else (make(),)
                guess = function(*first, train=train, test=test)
                off = np.square(np.clip(guess, MIN_RATING, MAX_RATING) - test.values)
                square += np.bincount(test.cols, off, size)
                count += np.bincount(test.cols, minlength=size)
                each.append(np.sqrt(off.mean()))
            means = {
                "rmse": square.sum() / count.sum(),
                "film": (square / count).mean(),
            }
            error = float(np.std(each, ddof=1) / N_FOLDS**0.5)
            return {k: float(np.sqrt(v)) for k, v in means.items()} | {"error": error}

        results.measure(f"films/{method}/{SEED}", None, score, None)


def fields(results: Results) -> dict[str, object]:
    """The fields of the page, from the records."""

    def shown(method: str, known: str) -> str:
        key = f"films/{method}, {known}"
        rmse, film, seconds = (
            results.mean(key, name) for name in ("rmse", "film", "seconds")
        )
        return "-" if rmse is None else f"{rmse:.4f}, {film:.4f} ({seconds:.0f})"

    methods = (*COMPLETERS, MEANS, *BASELINES, TASTES)
    rows = [[name, *(shown(name, known) for known in KNOWN)] for name in methods]
    error = results.mean("films/`FactorizationCompleter`, genres", "error")
    return {
        "n_folds": N_FOLDS,
        "seed": SEED,
        "films_error": "-" if error is None else f"{error:.3f}",
        "alphas": ", ".join(f"{alpha:.0f}" for alpha in ALPHAS),
        "films": table(["", *KNOWN], rows),
    }
