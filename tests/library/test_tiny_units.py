"""Numbers that are next to zero, all zero or all equal have a finite completion."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from conftest import COMPLETERS, make
from hypothesis import HealthCheck, given, settings
from hypothesis.extra.numpy import array_shapes, arrays

from skmc.sensing import (
    LinearSensingRegressor,
    NuclearSensingRegressor,
    SpectralSensingRegressor,
)

QUICK = {
    "max_iter": 3,
    "n_draws": 3,
    "n_burn_in": 1,
    "candidates": ("mean", "knn", "svd"),
}


@st.composite
def cells(draw):
    """A matrix of the smallest numbers of its dtype, NaN where a cell is missing."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    limits = np.finfo(dtype)
    unit = draw(st.sampled_from([limits.smallest_subnormal, limits.tiny]))
    shape = draw(array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=9))
    multiples = draw(st.sampled_from([[0], [1], [0, 1], [-1, 0, 1, 2, 40]]))
    values = draw(arrays(dtype, shape, elements=st.sampled_from(multiples))) * unit
    seen = draw(arrays(bool, shape, elements=st.sampled_from([True] * 3 + [False])))
    seen[0, 0] = True
    return np.where(seen, values, np.nan).astype(dtype)


@pytest.mark.parametrize("cls", COMPLETERS)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(X=cells(), scaling=st.sampled_from(["auto", "columns", "global", None]))
def test_a_finite_completion(cls, X, scaling):
    completer = make(cls, **QUICK, scaling=scaling)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        completed = completer.fit_transform(X)
        again = completer.transform(X[:1] * 2)
    assert np.isfinite(completed).all() and np.isfinite(again).all()
    np.testing.assert_array_equal(completed[~np.isnan(X)], X[~np.isnan(X)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "cls", [LinearSensingRegressor, NuclearSensingRegressor, SpectralSensingRegressor]
)
def test_measurements_next_to_zero(cls, dtype):
    rng = np.random.RandomState(0)
    A = rng.randint(0, 2, (12, 3, 4)).astype(dtype)
    y = (np.arange(12) == 3) * np.finfo(dtype).smallest_subnormal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(cls().fit(A, y.astype(dtype)).matrix_).all()
