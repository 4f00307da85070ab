"""Errors for nonsensical inputs name the argument and the remedy."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import COMPLETERS, make

import skmc
from skmc import (
    AIRCompleter,
    AutoCompleter,
    AutoencoderCompleter,
    Entries,
    FactorizationCompleter,
    GroupedCompleter,
    KNNCompleter,
    MaskedToNaN,
    MeanCompleter,
    MixedCompleter,
    SeriesCompleter,
    TreesCompleter,
    patterns,
    pictures,
)
from skmc.cells import to_cells
from skmc.model_selection import compare
from skmc.persistence import save
from skmc.uncertainty import MultipleCompletion

X = np.ma.masked_greater(np.random.RandomState(0).randn(12, 5), 1.5)
HUGE = 10**12
STARS = {"user": ["ann", "bob"], "film": [3, 7], "stars": [4.0, 1.0]}
NUMBERS = pd.DataFrame(X.filled(np.nan), columns=list("abcde"))
WITH_TEXT = NUMBERS.astype(object).replace({"b": {NUMBERS["b"].iloc[3]: "high"}})
ALS = FactorizationCompleter(1, lambda_ridge=0.1, random_state=0)


def from_frame(frame, *names):
    return (
        lambda _: Entries.from_frame(frame, *names),
        ValueError,
        r"names column '(\w+)', but frame has \['user', 'film', 'stars'\]",
    )


def path_given(call):
    """Something takes a path for a matrix."""
    return (
        lambda folder: call(folder / "table.csv"),
        TypeError,
        "X must be a matrix .*Path; read the file first, for example with pandas.read",
    )


def text_in_new_rows(completer):
    return (
        lambda _: completer.fit(NUMBERS).transform(WITH_TEXT),
        ValueError,
        r"(column 1 \('b'\) holds 'high' in row 3|'high' at row 3, column \d \('b'\)), "
        "which is not a number; ",
    )


def no_mark(completer, missing_values):
    return (
        lambda _: completer(missing_values=missing_values).fit(NUMBERS),
        ValueError,
        r"'missing_values' parameter of \w+ must not be (None|<NA>), which always",
    )


ODD = {
    "no such column of rows": from_frame(STARS, "usr", "film", "stars"),
    "no such column of columns": from_frame(pd.DataFrame(STARS), "user", "f", "stars"),
    "no such column of values": from_frame(pl.DataFrame(STARS), "user", "film", "rate"),
    "no such column of weights": from_frame(STARS, "user", "film", "stars", "weight"),
    "a file as a frame": (
        lambda folder: Entries.from_frame(str(folder), "user", "film", "stars"),
        TypeError,
        "frame must be a table .*got str; read the file first, or use .*from_csv",
    ),
    "a file for fit": path_given(MeanCompleter().fit),
    "a file for a table": path_given(MixedCompleter(MeanCompleter()).fit),
    "a file for a stack": path_given(AutoCompleter().fit),
    "a file for cells": path_given(Entries),
    "a file for compare": path_given(lambda path: compare([MeanCompleter()], path)),
    "a file for a pattern": path_given(patterns.random),
    "a picture's file": (
        lambda folder: pictures.complete(str(folder / "photo.png")),
        TypeError,
        r"picture is the path '.*photo.png'; read the file first, .*PIL.Image.open",
    ),
    "a mask's file": (
        lambda folder: pictures.estimate(X, folder / "mask.png"),
        TypeError,
        "mask is the path '.*mask.png'; read the file first",
    ),
    "text": (
        lambda _: MeanCompleter().fit([[1, "four"]]),
        ValueError,
        "'four' at row 0, column 1, which is not a number; MixedCompleter completes",
    ),
    "numbers as text": (
        lambda _: MeanCompleter().fit(np.array([["1.5", "2"]])),
        ValueError,
        r"'1.5' at row 0, column 0, which is text; .*X.astype\(float\)",
    ),
    "text in new rows of numbers": text_in_new_rows(MeanCompleter()),
    "text in new rows of a table": text_in_new_rows(MixedCompleter(MeanCompleter())),
    "text in new rows of series": text_in_new_rows(SeriesCompleter()),
    "text in new rows of groups": text_in_new_rows(
        GroupedCompleter(MeanCompleter(), by="a")
    ),
    "no mark of missing cells": no_mark(MeanCompleter, None),
    "pandas' mark of missing cells": no_mark(AutoCompleter, pd.NA),
    "no mark in a table": no_mark(MixedCompleter, pd.NA),
    "a user outside of the fit": (
        lambda _: ALS.fit(X).recommend(12),
        ValueError,
        r"users contains 12 at position 0, outside 0\.\.11; .* a new row as a dict",
    ),
    "a similar user outside of the fit": (
        lambda _: ALS.fit(X).similar_users([12]),
        ValueError,
        r"users contains 12 .* outside 0\.\.11; correct it, or fit again",
    ),
    "a cell outside of the fit": (
        lambda _: MeanCompleter().fit(X).predict_entries([12], [0]),
        ValueError,
        r"rows contains 12 .* outside 0\.\.11; correct it, or fit again",
    ),
    "a number among identifiers": (
        lambda _: ALS.fit(Entries.from_frame(STARS, *STARS)).recommend(5),
        TypeError,
        r"users must be strings, .* such as \['ann'\]; got \[5\]",
    ),
    "a candidate in another spelling": (
        lambda _: AutoCompleter(["SVD"]).fit(X),
        ValueError,
        r"candidates contains 'SVD'; did you mean 'svd'\? The names are \['air'",
    ),
    "a candidate by its class": (
        lambda _: AutoCompleter("SVDCompleter").fit(X),
        ValueError,
        "candidates contains 'SVDCompleter'; did you mean 'svd'",
    ),
    "a candidate without a list": (
        lambda _: AutoCompleter("svd").fit(X),
        ValueError,
        r"candidates is 'svd'; pass a list of names: \['svd'\]",
    ),
    "a class in another spelling": (
        lambda _: skmc.AirCompleter,
        AttributeError,
        "module 'skmc' has no attribute 'AirCompleter'; did you mean 'AIRCompleter'",
    ),
    "a class of the room in another spelling": (
        lambda _: skmc.completers.KnnCompleter,
        AttributeError,
        "no attribute 'KnnCompleter'; did you mean 'KNNCompleter'",
    ),
    "nothing of this name": (
        lambda _: skmc.nonsense,
        AttributeError,
        "module 'skmc' has no attribute 'nonsense'$",
    ),
    "an integer beyond floats": (
        lambda _: MeanCompleter().fit([[10**400, 1.0]]),
        ValueError,
        "X holds an integer of 401 digits at row 0, column 0; use other units",
    ),
    "a fraction that is no float": (
        lambda _: MeanCompleter().fit(pd.DataFrame({"a": [Fraction(1, 3), 1]})),
        ValueError,
        r"Fraction\(1, 3\) at row 0, column 0 \('a'\).*convert that column",
    ),
    "limits of other columns": (
        lambda _: MixedCompleter(MeanCompleter(), min_value=[1, 2]).fit(
            pd.DataFrame(X.filled(np.nan))
        ),
        ValueError,
        r"min_value has shape \(2,\), but X has 5 columns; give",
    ),
    "a file in no folder": (
        lambda folder: save(MeanCompleter().fit(X), folder / "none" / "fit.skmc"),
        FileNotFoundError,
        "folder .*none does not exist; create it first",
    ),
    "a folder as a file": (
        lambda folder: save(MeanCompleter().fit(X), folder),
        IsADirectoryError,
        "is a folder; name a file in it",
    ),
    "no rows": (
        lambda _: MultipleCompletion(MeanCompleter()).fit(np.zeros((0, 3))),
        ValueError,
        r"0 sample\(s\)",
    ),
    "no columns": (
        lambda _: MultipleCompletion(MeanCompleter()).fit(np.zeros((3, 0))),
        ValueError,
        r"0 feature\(s\)",
    ),
    "factors beyond memory": (
        lambda _: AIRCompleter(width=HUGE, max_iter=1).fit(X),
        MemoryError,
        "AIRCompleter needs more memory than there is. Lower the sizes",
    ),
    "a layer beyond memory": (
        lambda _: AutoencoderCompleter(hidden=(HUGE,), max_iter=1).fit(X),
        MemoryError,
        "Lower the sizes among its parameters",
    ),
    "no workers": (
        lambda _: TreesCompleter(n_jobs=0).fit(X),
        ValueError,
        "'n_jobs' parameter of TreesCompleter must be .* Got 0",
    ),
    "blocks of no pixels": (
        lambda _: pictures.complete(X, block=0),
        ValueError,
        "block must be an int >= 1, got 0",
    ),
    "blocks of parts of pixels": (
        lambda _: pictures.complete(X, block=1.5),
        ValueError,
        "block must be an int >= 1, got 1.5",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_the_argument_and_the_remedy_are_named(name, tmp_path):
    call, error, message = ODD[name]
    with pytest.raises(error, match=message):
        call(tmp_path)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
@pytest.mark.parametrize("name", ["like_missing", "random", "rows", "mar", "per_row"])
def test_an_empty_matrix_has_no_cell_to_hide(name, shape):
    with pytest.raises(ValueError, match=r"X has shape \(., .\), and so no cell"):
        getattr(patterns, name)(np.zeros(shape), 0.3)


def test_means_of_rows_do_not_depend_on_the_order_in_memory():
    """Row means fill empty columns, in new rows as in those of the fit."""
    X = np.random.RandomState(0).randn(20, 13)
    X[:, 4] = np.nan
    completer = MeanCompleter()
    with pytest.warns(UserWarning, match="no observed cell"):
        completed = completer.fit_transform(X)
    assert np.isfinite(completed[:, 4]).all()
    found = completer.transform(np.asfortranarray(X))
    np.testing.assert_array_equal(found, completed)


def test_predictions_beyond_single_precision_are_its_largest_numbers():
    completer = MeanCompleter().fit(np.eye(3, dtype=np.float32))
    huge = np.full((1, 3), -1e300)
    completed = completer._completed(np.full((1, 3), np.nan, np.float32), huge)
    np.testing.assert_array_equal(completed, np.finfo(np.float32).min)


WORDS = pd.DataFrame({"a": pd.Series([1.5, "NA", 2.0, 4.0] * 5, dtype=object)})
WORDS["t"] = pd.date_range("2020-01-01", periods=20)
TEXTS = WORDS.assign(a=WORDS["a"].astype(str))
CURE = r"pass missing_values=\['NA'\] to MixedCompleter"


def names_the_cure(read, X):
    """In the error, or in a warning of what can also complete words."""
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            read(X)
        except ValueError as error:
            said.append(str(error))
    said += [str(w.message) for w in caught]
    assert any(re.search(CURE, text) for text in said), said


@pytest.mark.parametrize("frame", [WORDS, TEXTS], ids=["objects", "texts"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "array", "list"])
@pytest.mark.parametrize(
    "read",
    [
        *(lambda X, cls=cls: make(cls).fit(X) for cls in COMPLETERS),
        to_cells,
        Entries,
        MaskedToNaN().fit,
    ],
)
def test_a_word_for_missing_cells_gets_its_cure(read, kind, frame):
    X = frame[["a"]]
    X = {"pandas": X, "array": X.to_numpy(object), "list": X.to_numpy().tolist()}.get(
        kind, X
    )
    if kind == "polars":
        X = pl.DataFrame({"a": frame["a"].tolist()}, strict=False)
    names_the_cure(read, X)


@pytest.mark.parametrize("cls", [KNNCompleter, AutoCompleter])
def test_the_cure_of_a_word_helps(cls):
    """A completer of numbers names the one that takes the cure."""
    with pytest.raises(ValueError, match=r"MixedCompleter\(..., missing_values=\['NA'"):
        cls(missing_values=["NA"]).fit(X)
    completed = MixedCompleter(KNNCompleter(), missing_values=["NA"]).fit_transform(
        WORDS[["a"]].assign(b=range(20))
    )
    assert completed["a"].dtype == float and not completed["a"].isna().any()


@pytest.mark.parametrize(
    "read",
    [
        lambda X: MixedCompleter(MeanCompleter()).fit(X[["a"]]),
        lambda X: SeriesCompleter(time="t").fit(X),
        lambda X: AutoCompleter(["mean"]).fit(X[["a"]]),
        lambda X: Entries.from_frame(X.assign(i=range(20)), "t", "i", "a"),
        lambda X: (
            MixedCompleter(MeanCompleter())
            .fit(pd.DataFrame({"a": np.arange(20.0)}))
            .transform(X[["a"]])
        ),
    ],
    ids=["table", "series", "stack", "entries", "new rows"],
)
def test_readers_of_tables_name_the_cure_of_a_word(read):
    names_the_cure(read, WORDS)
