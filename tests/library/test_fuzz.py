"""Any input gives a clear error, or a finite completion that keeps its cells."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from conftest import COMPLETERS, make
from containers import BUILD, NOT_IN_FRAMES, QUICK, check_completion
from hypothesis import HealthCheck, event, given, settings
from hypothesis.extra.numpy import array_shapes, arrays

from skmc import MeanCompleter

DTYPES = [np.float32, np.float64, np.int32, np.uint8, np.bool_, np.float16, object]


@st.composite
def matrices(draw):
    """``(build, values, observed)``: a container, and what it should mean."""
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=7))
    dtype = draw(st.sampled_from(DTYPES))
    if dtype is object or np.issubdtype(dtype, np.floating):
        width = {np.float16: 16, np.float32: 32}.get(dtype, 64)
        large = {16: 1e4, 32: 1e18, 64: 1e150}[width]
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
    event(kind)
    if dtype in NOT_IN_FRAMES.get(kind, ()):
        values = values.astype(float)
    return BUILD[kind], values, observed


@pytest.mark.parametrize("cls", COMPLETERS)
@settings(
    max_examples=40,  # of each: 1 000 together, and 1 500 more in tests/long
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(matrix=matrices(), data=st.data())
def test_a_clear_error_or_a_finite_answer(cls, matrix, data):
    build, values, observed = matrix
    scaling = data.draw(
        st.sampled_from(["auto", "columns", "global", None]), label="scaling"
    )
    early = data.draw(st.booleans(), label="early_stopping")
    completer = make(cls, **QUICK, scaling=scaling, early_stopping=early)
    exact = values.astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not observed.any() or np.isinf(exact[observed]).any():
            with pytest.raises(ValueError, match=r"no observed cell|contains infinity"):
                completer.fit(build(values, observed))
            return
        check_completion(completer, build, values, observed)


def test_a_frame_of_nulls_has_no_precision():
    """New rows are completed in double precision, which large cells need."""
    large = 3.4028235677973366e38
    completer = MeanCompleter().fit(pl.DataFrame({"a": [large, large]}))
    completed = completer.transform(pl.DataFrame({"a": [None]}))
    assert completed.item() == large
