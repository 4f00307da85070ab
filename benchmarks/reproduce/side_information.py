"""Features and graphs of rows and columns: drugs and targets, ratings, new films."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

from benchmarks.pages import hardware, table, write_page
from benchmarks.reproduce import cold_films
from benchmarks.reproduce.ratings import MAX_RATING, MIN_RATING, split
from benchmarks.reproduce.results import Results
from skmc import BayesianFactorizationCompleter, FactorizationCompleter
from skmc.datasets import load_drug_target, load_flixster, load_movielens

NAME = "side-information"
SETS = ("nuclear_receptor", "gpcr", "ion_channel")
SETTINGS = {"CVS1": "pairs", "CVS2": "new drugs", "CVS3": "new targets"}
METHODS = {"features": "similarities", "none": {}, "mean": None, "als": "similarities"}
N_FOLDS = 10


def run(results: Results, *parts: str) -> None:
    """Measure ``drugs``, ``ratings`` and ``films``, or some of them."""
    measures = {"drugs": drugs, "ratings": ratings, "films": cold_films.films}
    for part in parts or measures:
        measures[part](results)


def folds(shape: tuple[int, int], setting: str, seed: int):
    """Cells to hide: random pairs, whole rows or whole columns."""
    m, n = shape
    items = {"CVS1": m * n, "CVS2": m, "CVS3": n}[setting]
    parts = KFold(N_FOLDS, shuffle=True, random_state=seed)
    for _, part in parts.split(np.arange(items)):
        hidden = np.zeros(shape, bool)
        if setting == "CVS1":
            hidden.flat[part] = True
        elif setting == "CVS2":
            hidden[part] = True
        else:
            hidden[:, part] = True
        yield hidden


def drugs(results: Results) -> None:
    """AUC and AUPR over ten folds, with similarities as features and without."""
    for name in SETS:
        data = load_drug_target(name)
        truth = data.data.astype(float)
        known = {
            "row_features": data.row_graph,
            "col_features": data.col_graph,
        }
        for setting in SETTINGS:
            for method, given in METHODS.items():
                if method == "none" and setting != "CVS1":
                    continue
                given = known if given == "similarities" else given

                def score(
                    completer, given=given, setting=setting, truth=truth, known=known
                ):
                    found = {"auc": [], "aupr": []}
                    for hidden in folds(truth.shape, setting, 0):
                        X = np.where(hidden, np.nan, truth)
                        values = means(X, setting)
                        if given is not None:
                            values = completer.fit(X, **given).reconstruction_
                        pair = truth[hidden], values[hidden]
                        found["auc"].append(roc_auc_score(*pair))
                        found["aupr"].append(average_precision_score(*pair))
                    return {k: float(np.mean(v)) for k, v in found.items()}

                completer = BayesianFactorizationCompleter(
                    scaling="global", random_state=0
                )
                if method == "als":
                    completer = FactorizationCompleter(random_state=0)
                key = f"drugs/{name}/{setting}/{method}/0"
                results.measure(key, completer, score, None)


def means(X: np.ndarray, setting: str) -> np.ndarray:
    """Means of what is known: of the targets, or of the drugs for new targets."""
    axis = 1 if setting == "CVS3" else 0
    return np.broadcast_to(np.nanmean(X, axis, keepdims=True), X.shape)


def rmse(completer, parts, graphs) -> float:
    train, test, low, high = parts
    guess = completer.fit(train, **graphs).predict_entries(test.rows, test.cols)
    return float(np.sqrt(np.square(np.clip(guess, low, high) - test.values).mean()))


def ratings(results: Results) -> None:
    """RMSE with the graphs of users and items, and without."""
    flixster, movielens = load_flixster(), load_movielens("100k")
    cells = flixster.entries
    cases = {
        "Flixster": (
            (cells[~flixster.test], cells[flixster.test], 0.5, 5),
            flixster,
        ),
        "100k, u1": ((*split("100k", "u1", 0), MIN_RATING, MAX_RATING), movielens),
    }
    for case, (parts, data) in cases.items():
        graphs = {name: (data[name] + data[name].T) / 2 for name in GRAPHS}
        for implicit in (False, True):
            for method, given in (("graphs", graphs), ("none", {})):

                def score(completer, parts=parts, given=given):
                    return {"rmse": rmse(completer, parts, given)}

                completer = BayesianFactorizationCompleter(
                    implicit=implicit, random_state=0
                )
                key = (
                    f"ratings/{case}/{'implicit' if implicit else 'plain'}, {method}/0"
                )
                results.measure(key, completer, score, None)


GRAPHS = ("row_graph", "col_graph")


def write(results: Results) -> None:
    """Write the page from the records."""

    def shown(key: str, name: str) -> str:
        mean = results.mean(key, name)
        return "-" if mean is None else f"{mean:.{4 if name == 'rmse' else 3}f}"

    rows = [
        [f"{name}, {setting} ({SETTINGS[setting]})"]
        + [
            shown(f"drugs/{name}/{setting}/{method}", metric)
            for method in ("als", "features", "none", "mean")
            for metric in ("auc", "aupr")
        ]
        for name in SETS
        for setting in SETTINGS
    ]
    kinds = ("least squares", "Bayesian", "Bayesian, no features", "means")
    drugs_table = table(
        ["", *[x for kind in kinds for x in (f"{kind}: AUC", "AUPR")]],
        rows,
    )
    ratings_table = table(
        ["", "plain", "with graphs", "implicit", "with graphs"],
        [
            [case]
            + [
                shown(f"ratings/{case}/{kind}, {method}", "rmse")
                for kind in ("plain", "implicit")
                for method in ("none", "graphs")
            ]
            for case in ("Flixster", "100k, u1")
        ],
    )
    page = f"""\
# Features and graphs

`FactorizationCompleter` (least squares) and `BayesianFactorizationCompleter` at their
defaults, which choose weights on held-out known cells or sample them; one seed.
{hardware()}

    python -m benchmarks.reproduce side-information

## Drugs and targets

Mean over ten folds. In CVS1, pairs are held out; in CVS2 and CVS3, whole drugs and
whole targets, which are then answered from their features alone. Features of a drug are
its similarities to all drugs, likewise for targets. Held-out pairs are missing, not
zero. Means are those of each target, or of each drug in CVS3. A dash was not measured.
Published results on these data, such as those of
[NRLMF](https://doi.org/10.1371/journal.pcbi.1004760), hold pairs out as zeros.

{drugs_table}

## Ratings

RMSE of `BayesianFactorizationCompleter`, predictions clipped to the scale. Flixster is
the matrix and the split of [Monti et al. 2017](https://arxiv.org/abs/1704.06803). The
graphs are those of the files.

{ratings_table}"""
    write_page(NAME, [page, cold_films.section(results)])
