"""The path from ``fit`` to the result: cells are read once, in one way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest import COMPLETERS, low_rank, make

import skmc
from skmc import AIRCompleter, AutoCompleter, Entries, FactorizationCompleter
from skmc.cells import containers

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*no observed cell",
    "ignore::sklearn.exceptions.ConvergenceWarning",  # fits are cut short
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


KINDS = {
    "float64": (holed, {}),
    "float32": (lambda: holed(np.float32), {}),
    "frame": (lambda: pd.DataFrame(holed()).add_prefix("c"), {}),
    "masked": (lambda: np.ma.masked_invalid(holed()), {}),
    "sparse": (lambda: Entries(holed()), {}),
    "every value": (holed, {"keep_observed": False}),
    "columns dropped": (holed, {"keep_empty_features": False, "add_indicator": True}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
def test_fit_transform_is_fit_and_transform(cls, kind):
    """The results are equal to the last bit."""
    data, params = KINDS[kind]
    # "apgl" takes weights.
    completer, X = make(cls, max_iter=8, solver="apgl", **params), data()
    known = [{}]
    if "cell_weight" in cls.takes() and kind in ("float64", "float32"):
        known.append({"cell_weight": np.random.RandomState(1).randint(3, size=X.shape)})
    for given in known:
        at_once = completer.fit_transform(X, **given)
        again = completer.fit(X, **given).transform(X)
        np.testing.assert_array_equal(np.asarray(at_once), np.asarray(again))
        assert np.asarray(at_once).dtype == np.asarray(again).dtype


@pytest.mark.parametrize(
    ("completer", "most"),
    [
        (AIRCompleter(max_iter=5), 1),
        (FactorizationCompleter(2, lambda_ridge=0.1), 1),
        (AutoCompleter({"a": make(AIRCompleter), "b": make(AIRCompleter)}), None),
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
