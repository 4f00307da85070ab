"""Features and graphs of rows and columns: drugs and targets, ratings, new films."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.reproduce import cold_films, drug_targets
from benchmarks.reproduce.ratings import MAX_RATING, MIN_RATING, split
from benchmarks.shared.pages import table, write_page
from benchmarks.shared.results import Results
from skmc import AutoCompleter, BayesianFactorizationCompleter
from skmc.datasets import load_flixster, load_movielens

NAME = "side-information"


def run(results: Results, *parts: str) -> None:
    """Measure ``drugs``, ``ratings`` and ``films``, or some of them."""
    measures = {
        "drugs": drug_targets.drugs,
        "ratings": ratings,
        "films": cold_films.films,
    }
    for part in parts or measures:
        measures[part](results)


def rmse(completer, parts, graphs) -> float:
    train, test, low, high = parts
    completer.fit(train, **graphs)
    if hasattr(completer, "predict_entries"):
        guess = completer.predict_entries(test.rows, test.cols)
    else:
        guess = completer.reconstruction_[test.rows, test.cols]
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
        for kind, make in KINDS.items():
            for method, given in (("graphs", graphs), ("none", {})):

                def score(completer, parts=parts, given=given):
                    record = {"rmse": rmse(completer, parts, given)}
                    if isinstance(completer, AutoCompleter):
                        record["verdict"] = completer.verdict_
                    return record

                # The budget of AutoCompleter is counted in processor seconds, because
                # other programs run on the same machine.
                with mock.patch("time.perf_counter", time.process_time):
                    key = f"ratings/{case}/{kind}, {method}/0"
                    results.measure(key, make(random_state=0), score, None)


GRAPHS = ("row_graph", "col_graph")
BAYESIAN = partial(BayesianFactorizationCompleter, heteroscedastic=True)
KINDS: dict[str, Callable[..., Any]] = {
    "plain": BAYESIAN,
    "implicit": partial(BAYESIAN, implicit=True),
    "auto": AutoCompleter,
}


def write(results: Results) -> None:
    """Write the page from the records."""

    def shown(key: str) -> str:
        mean = results.mean(key, "rmse")
        return "-" if mean is None else f"{mean:.4f}"

    ratings_table = table(
        ["", *(f"{kind}{how}" for kind in KINDS for how in ("", ", graphs"))],
        [
            [case]
            + [
                shown(f"ratings/{case}/{kind}, {method}")
                for kind in KINDS
                for method in ("none", "graphs")
            ]
            for case in ("Flixster", "100k, u1")
        ],
    )
    stacks = "\n".join(
        f"- {case}, {how}: {record['verdict'].split(':')[0]}; {record['seconds']:.0f} s"
        for case in ("Flixster", "100k, u1")
        for how in ("none", "graphs")
        if (record := results.records.get(f"ratings/{case}/auto, {how}/0"))
    )
    fields = {
        **drug_targets.fields(results),
        "ratings": ratings_table,
        "stacks": stacks,
        **cold_films.fields(results),
    }
    write_page(NAME, fields)
