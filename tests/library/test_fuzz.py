"""Any input gives a clear error, or a finite completion that keeps its cells."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from conftest import COMPLETERS, make
from hypothesis import HealthCheck, event, given, settings
from hypothesis.extra.numpy import array_shapes, arrays

from skmc import Entries, KNNCompleter, MeanCompleter, SVDCompleter

pytestmark = pytest.mark.slow

# Short fits: what the answer is worth is not asked here.
QUICK = {
    "max_iter": 3,
    "n_draws": 3,
    "n_burn_in": 1,
    "candidates": {
        "means": MeanCompleter(),
        "KNN": KNNCompleter(device="cpu"),
        "SVD": SVDCompleter(1, max_iter=3, device="cpu"),
    },
}
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
    tables = {"pandas": (np.bool_,), "polars": (np.bool_, np.float16, object)}
    if dtype in tables.get(kind, ()):  # columns of categories, or of no type of polars
        values = values.astype(float)
    return BUILD[kind], values, observed


def _frame(values, observed):
    """Columns of the dtype itself where nothing is missing."""
    frame = pd.DataFrame(values)
    return frame if observed.all() else frame.astype(float).where(observed)


def _sparse(values, observed):
    stored = np.asarray(values[observed], float)
    return sp.coo_array((stored, np.nonzero(observed)), shape=values.shape)


BUILD = {
    "array": lambda values, observed: _nan(values, observed),
    "transposed": lambda values, observed: (
        np.ascontiguousarray(_nan(values, observed).T).T
    ),
    "sliced": lambda values, observed: np.repeat(_nan(values, observed), 2, 1)[:, ::2],
    "masked": lambda values, observed: np.ma.masked_array(values, ~observed),
    "list of masked": lambda values, observed: list(
        np.ma.masked_array(values, ~observed)
    ),
    "list": lambda values, observed: [
        [value if seen else None for value, seen in zip(*pair, strict=True)]
        for pair in zip(values.tolist(), observed.tolist(), strict=True)
    ],
    "object": lambda values, observed: np.where(
        observed, values.astype(object), np.array(None)
    ),
    "pandas": _frame,
    "polars": lambda values, observed: pl.DataFrame(
        {
            str(j): pl.Series(
                [v if o else None for v, o in zip(c, seen, strict=True)], strict=False
            )
            for j, (c, seen) in enumerate(
                zip(values.T.tolist(), observed.T, strict=True)
            )
        }
    ),
    "tensor": lambda values, observed: torch.tensor(_nan(values, observed)),
    "sparse": _sparse,
    "entries": lambda values, observed: Entries(_nan(values, observed)),
}


def _nan(values, observed):
    if observed.all() and values.dtype != object:
        return values
    return np.where(observed, values, np.nan).astype(
        values.dtype if values.dtype in (np.float16, np.float32) else float
    )


@pytest.mark.parametrize("cls", COMPLETERS)
@settings(
    max_examples=200,  # of each: over 5 000 together
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
        X = build(values, observed)
        completed = completer.fit_transform(X)
        again = completer.transform(X)
        # The same numbers under another mask are new rows.
        flipped = observed ^ (np.indices(observed.shape).sum(0) % 3 == 0)
        flipped &= np.isfinite(exact)
        folded = completer.transform(build(values, flipped))
    assert completed.shape == values.shape
    # A column without an observed cell is left empty if the columns have units.
    known = observed.any(0)
    for whole in (completed, folded, completer.reconstruction_):
        assert np.isfinite(whole[:, known]).all()
    empty = ~np.isfinite(completed[:, ~known])
    assert empty.all() or not empty.any()
    np.testing.assert_array_equal(completed[observed], exact[observed])
    np.testing.assert_array_equal(folded[flipped], exact[flipped])
    np.testing.assert_array_equal(completed, again)


def test_a_frame_of_nulls_has_no_precision():
    """New rows are completed in double precision, which large cells need."""
    large = 3.4028235677973366e38
    completer = MeanCompleter().fit(pl.DataFrame({"a": [large, large]}))
    with pytest.warns(UserWarning, match="no observed cell"):
        completed = completer.transform(pl.DataFrame({"a": [None]}))
    assert completed.item() == large
