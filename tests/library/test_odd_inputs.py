"""Errors for nonsensical inputs name the argument and the remedy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    MeanCompleter,
    MixedCompleter,
    TreesCompleter,
    patterns,
    pictures,
)
from skmc.persistence import save
from skmc.uncertainty import MultipleCompletion

X = np.ma.masked_greater(np.random.RandomState(0).randn(12, 5), 1.5)
HUGE = 10**12
ODD = {
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
