"""The path from ``fit`` to the result: cells are read once, in one way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import COMPLETERS, KINDS, low_rank, make

import skmc
from skmc import (
    AIRCompleter,
    AutoCompleter,
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SeriesCompleter,
    SVDCompleter,
    SVTCompleter,
)
from skmc.cells import containers

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*no observed cell",
    "ignore::sklearn.exceptions.ConvergenceWarning",  # fits are cut short
    "ignore:.*not close to low rank",
)


def holed(dtype=float):
    """A matrix with equal rows, an empty row, an empty and a constant column."""
    X = (low_rank(24, 7) + 3).astype(dtype)
    X[np.random.RandomState(0).uniform(size=X.shape) < 0.2] = np.nan
    X[5] = X[4]
    X[9] = np.nan
    X[:, 3] = np.nan
    X[~np.isnan(X[:, 2]), 2] = 2.0
    return X


TABLES = {
    "float64": (holed, {}),
    "float32": (lambda: holed(np.float32), {}),
    "frame": (lambda: pd.DataFrame(holed()).add_prefix("c"), {}),
    "masked": (lambda: np.ma.masked_invalid(holed()), {}),
    "sparse": (lambda: Entries(holed()), {}),
    "every value": (holed, {"keep_observed": False}),
    "columns dropped": (holed, {"keep_empty_features": False, "add_indicator": True}),
}
WAYS = [
    pytest.param(cls, way, id=f"{cls.__name__}-{way}")
    for cls in COMPLETERS
    for way in (TABLES if cls in KINDS else ("float32", "columns dropped"))
]


@pytest.mark.parametrize(("cls", "way"), WAYS)
def test_fit_transform_is_fit_and_transform(cls, way):
    """The results are equal to the last bit."""
    data, params = TABLES[way]
    # "apgl" takes weights.
    completer, X = make(cls, max_iter=8, solver="apgl", **params), data()
    known = [{}]
    if "cell_weight" in cls.takes() and way in ("float64", "float32"):
        known.append({"cell_weight": np.random.RandomState(1).randint(3, size=X.shape)})
    for given in known:
        at_once = completer.fit_transform(X, **given)
        again = completer.fit(X, **given).transform(X)
        np.testing.assert_array_equal(np.asarray(at_once), np.asarray(again))
        assert np.asarray(at_once).dtype == np.asarray(again).dtype


def strided(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), 1e9, X.dtype)
    wide[::2, 1::3] = X
    return wide[::2, 1::3]


def backwards(X):
    return X[::-1, ::-1].copy()[::-1, ::-1]


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def masked_fortran(X):
    missing = np.asfortranarray(np.isnan(X))
    return np.ma.masked_array(np.asfortranarray(np.where(missing, 1e9, X)), missing)


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": strided,
    "backwards": backwards,
    "read-only": read_only,
    "frame": pd.DataFrame,
    "masked, fortran": masked_fortran,
    "tensor": lambda X: torch.from_numpy(X.T.copy()).T,
}
# The frames of the fits have names, the arrays of the calls have none.
unnamed = pytest.mark.filterwarnings("ignore:X (does not have|has) .*feature names")


# Weights, and graphs; and no choice of parameters.
TAKE_MORE = {
    "solver": "apgl",
    "regularizer": "dirichlet",
    "rank": 2,
    "lambda_ridge": 0.1,
    "lambda_side": 0.1,
}


def answers(completer, X, truth, **known):
    """What a completer says of cells, some of them in new rows."""
    found = [completer.fit_transform(X, **known), completer.score(X, truth)]
    new = X.iloc[3:9] if isinstance(X, pd.DataFrame) else X[3:9]
    found.append(completer.transform(new + 0.01))
    if hasattr(completer, "sample"):
        found.append(completer.sample(X, 2, random_state=0))
    for name in {"predict_std", "predict_interval"} & set(dir(completer)):
        found.append(getattr(completer, name)(X))
    return [np.asarray(part) for part in found]


@unnamed
@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
def test_answers_do_not_depend_on_the_order_in_memory(cls):
    """To the last bit, which can decide between two donors; and X is not changed."""
    rng = np.random.RandomState(0)
    truth = low_rank(30, 8) + 3 + 0.1 * rng.randn(30, 8)
    X = np.where(rng.uniform(size=truth.shape) < 0.2, np.nan, truth)
    expected = answers(make(cls, max_iter=8), X.copy(), truth)
    every = issubclass(cls, (GaussianCompleter, KNNCompleter, MeanCompleter))
    for name in LAYOUTS if every else ("strided", "masked, fortran"):
        layout = LAYOUTS[name]
        Y = layout(X)
        found = answers(make(cls, max_iter=8), Y, layout(truth))
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)
        kept = np.ma.filled(Y, np.nan) if name.startswith("masked") else Y
        np.testing.assert_array_equal(np.asarray(kept), X, err_msg=name)


@pytest.mark.filterwarnings("ignore:None of the candidates takes")
@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
def test_side_information_is_read_in_any_order_in_memory(cls):
    rng = np.random.RandomState(0)
    X = low_rank(30, 8) + 3 + 0.1 * rng.randn(30, 8)
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    graph = rng.randint(2, size=(8, 8)).astype(float)
    sides = {
        "cell_weight": rng.uniform(1, 3, X.shape),
        "row_features": rng.randn(30, 3),
        "col_graph": graph + graph.T,
    }
    for name in sides.keys() & set(cls.takes()):
        one, *others = (
            make(cls, max_iter=8, **TAKE_MORE).fit_transform(
                X, **{name: layout(sides[name])}
            )
            for layout in (np.copy, strided, pd.DataFrame)
        )
        for other in others:
            np.testing.assert_array_equal(one, other, err_msg=name)


GAUSSIAN = GaussianCompleter(1.0, max_iter=3)
WRAPPED = [MixedCompleter(GAUSSIAN), SeriesCompleter(GAUSSIAN, random_state=0)]


@unnamed
@pytest.mark.parametrize("completer", WRAPPED, ids=["mixed", "series"])
def test_tables_do_not_depend_on_the_order_in_memory(completer):
    X = holed()[:, [0, 1, 2, 4, 5, 6]]
    one = completer.fit_transform(X.copy())
    for layout in ("fortran", "strided", "frame"):
        other = completer.fit_transform(LAYOUTS[layout](X))
        np.testing.assert_array_equal(one, np.asarray(other))


def test_words_do_not_depend_on_the_order_in_memory():
    X = np.empty((24, 4), object)
    X[:] = holed()[:, :1]
    X[:, :3] = holed()[:, [0, 1, 5]]
    X[:, 3] = np.where(X[:, 1].astype(float) > 3, "high", "low")
    X[::5, 3] = None
    frame = pd.DataFrame(X).infer_objects()
    completer = MixedCompleter(GaussianCompleter(1.0))
    one = completer.fit_transform(X.copy())
    for other in (np.asfortranarray(X), strided(X), frame):
        found = completer.fit_transform(other)
        np.testing.assert_array_equal(one, np.asarray(found, object))


@pytest.mark.parametrize(
    ("completer", "most"),
    [
        (AIRCompleter(0.1, 0.1, max_iter=5), 1),
        (FactorizationCompleter(2, lambda_ridge=0.1), 1),
        (AutoCompleter({"a": make(SVTCompleter), "b": make(SVTCompleter)}), None),
    ],
    ids=["AIR", "factorization", "stack"],
)
def test_cells_are_read_once(completer, most, monkeypatch):
    """A stack reads them once, and each of its fits once more."""
    reads, fits = [], []
    real, fit = containers._as_array, type(make(AIRCompleter))._run_fit
    monkeypatch.setattr(
        containers, "_as_array", lambda *args: reads.append(1) or real(*args)
    )

    def counting(self, *args, **known):
        fits.append(1)
        return fit(self, *args, **known)

    monkeypatch.setattr(skmc.base.BaseCompleter, "_run_fit", counting)
    completer.fit_transform(holed()[:, :3])
    assert len(reads) <= (most or len(fits))


class Logarithms(SVDCompleter):
    """A subclass whose fit does more than the one that it inherits."""

    def fit(self, X, y=None):
        return super().fit(np.log(X), y)

    def transform(self, X):
        return np.exp(super().transform(np.log(X)))


def test_a_fit_that_does_more_is_called_by_fit_transform():
    X = np.exp(holed()[:, :4])
    found = make(Logarithms, rank=1).fit_transform(X)
    expected = np.exp(make(SVDCompleter, rank=1).fit_transform(np.log(X)))
    np.testing.assert_allclose(found, expected)
