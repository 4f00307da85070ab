"""Anything goes in: a clear error or a finite answer that keeps its cells comes out."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from conftest import COMPLETERS, make
from hypothesis import HealthCheck, event, given, settings
from hypothesis.extra.numpy import array_shapes, arrays

from skmc import Entries

DTYPES = [np.float32, np.float64, np.int32, np.uint8, np.bool_, np.float16, object]


@st.composite
def matrices(draw):
    """``(X, values, observed)``: a container, and what it should mean."""
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=7))
    dtype = draw(st.sampled_from(DTYPES))
    if dtype is object or np.issubdtype(dtype, np.floating):
        width = {np.float16: 16, np.float32: 32}.get(dtype, 64)
        large = {16: 1e4, 32: 1e20, 64: 1e100}[width]
        bound = draw(st.sampled_from([1.0, 100.0, large]))
        bound = float(np.float32(bound)) if width == 32 else bound
        numbers = st.floats(-bound, bound, width=width, allow_subnormal=False)
        if draw(st.integers(0, 9)) == 0:
            numbers |= st.sampled_from([np.inf, -np.inf])
        values = draw(
            arrays(float if dtype is object else dtype, shape, elements=numbers)
        )
    else:
        values = draw(arrays(dtype, shape))
    observed = draw(arrays(bool, shape, elements=st.sampled_from([True] * 3 + [False])))
    kind = draw(st.sampled_from(list(BUILD)))
    nan = np.where(observed, values.astype(float), np.nan)
    if dtype is np.float32:
        nan = nan.astype(np.float32)
    event(kind)
    return BUILD[kind](nan, values, observed, dtype), nan, observed


BUILD = {
    "array": lambda nan, values, observed, dtype: nan,
    "masked": lambda nan, values, observed, dtype: np.ma.masked_array(
        values, ~observed
    ),
    "list": lambda nan, values, observed, dtype: [
        [value if seen else None for value, seen in zip(*pair, strict=True)]
        for pair in zip(nan.tolist(), observed.tolist(), strict=True)
    ],
    "object": lambda nan, values, observed, dtype: nan.astype(object),
    "frame": lambda nan, values, observed, dtype: pd.DataFrame(nan),
    "tensor": lambda nan, values, observed, dtype: torch.tensor(nan),
    "sparse": lambda nan, values, observed, dtype: sp.coo_array(
        (nan[observed], np.nonzero(observed)), shape=nan.shape
    ),
    "entries": lambda nan, values, observed, dtype: (
        Entries(nan) if np.isfinite(nan[observed]).all() else nan
    ),
}


@pytest.mark.parametrize("cls", COMPLETERS)
@settings(
    max_examples=450,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(matrix=matrices(), data=st.data())
def test_a_clear_error_or_a_finite_answer(cls, matrix, data):
    X, values, observed = matrix
    scaling = data.draw(st.sampled_from(["auto", "columns", "global", None]), label="scaling")
    early = data.draw(st.booleans(), label="early_stopping")
    completer = make(cls, max_iter=3, scaling=scaling, early_stopping=early)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not observed.any() or np.isinf(values).any():
            with pytest.raises(ValueError, match=r"no observed cell|contains infinity"):
                completer.fit(X)
            return
        completed = completer.fit_transform(X)
        again = completer.transform(X)
    assert completed.shape == values.shape
    assert np.isfinite(completed).all()
    np.testing.assert_array_equal(completed[observed], values[observed])
    np.testing.assert_array_equal(completed, again)
    assert np.isfinite(completer.reconstruction_).all()
