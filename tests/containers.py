"""Containers of a matrix, and the check of any completion of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
import torch

from skmc import Entries, KNNCompleter, MeanCompleter, SVDCompleter

pd, pl = import_module("pandas"), import_module("polars")
# Short fits: what the answer is worth is not asked here.
QUICK: dict[str, Any] = {
    "max_iter": 3,
    "n_draws": 3,
    "n_burn_in": 1,
    "candidates": {
        "means": MeanCompleter(),
        "KNN": KNNCompleter(device="cpu"),
        "SVD": SVDCompleter(1, max_iter=3, device="cpu"),
    },
}
# The dtypes that a data frame has as categories, or not at all.
NOT_IN_FRAMES = {"pandas": (np.bool_,), "polars": (np.bool_, np.float16, object)}


def with_nan(values: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """An array of the dtype itself where nothing is missing, else of floats."""
    if observed.all() and values.dtype != object:
        return values
    return np.where(observed, values, np.nan).astype(
        values.dtype if values.dtype in (np.float16, np.float32) else float
    )


def lists(values: np.ndarray, observed: np.ndarray) -> list[list[object]]:
    return [
        [value if seen else None for value, seen in zip(*pair, strict=True)]
        for pair in zip(values.tolist(), observed.tolist(), strict=True)
    ]


def pandas_frame(values: np.ndarray, observed: np.ndarray) -> Any:
    """Columns of the dtype itself where nothing is missing."""
    frame = pd.DataFrame(values)
    return frame if observed.all() else frame.astype(float).where(observed)


def polars_frame(values: np.ndarray, observed: np.ndarray) -> Any:
    columns = zip(values.T.tolist(), observed.T, strict=True)
    return pl.DataFrame(
        {
            str(j): pl.Series(
                [v if o else None for v, o in zip(c, seen, strict=True)], strict=False
            )
            for j, (c, seen) in enumerate(columns)
        }
    )


def sparse(values: np.ndarray, observed: np.ndarray) -> Any:
    stored = np.asarray(values[observed], float)
    return sp.coo_array((stored, np.nonzero(observed)), shape=values.shape)


BUILD: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "array": with_nan,
    "transposed": lambda values, observed: (
        np.ascontiguousarray(with_nan(values, observed).T).T
    ),
    "sliced": lambda values, observed: np.repeat(with_nan(values, observed), 2, 1)[
        :, ::2
    ],
    "masked": lambda values, observed: np.ma.masked_array(values, ~observed),
    "list of masked": lambda values, observed: list(
        np.ma.masked_array(values, ~observed)
    ),
    "list": lists,
    "object": lambda values, observed: np.where(
        observed, values.astype(object), np.array(None)
    ),
    "pandas": pandas_frame,
    "polars": polars_frame,
    "tensor": lambda values, observed: torch.tensor(with_nan(values, observed)),
    "sparse": sparse,
    "entries": lambda values, observed: Entries(with_nan(values, observed)),
}


def check_completion(
    completer: Any,
    build: Callable[[np.ndarray, np.ndarray], Any],
    values: np.ndarray,
    observed: np.ndarray,
) -> None:
    """Assert that a completion is finite, keeps its cells, and changes no input.

    ``build(values, observed)`` makes the container.
    """
    exact = values.astype(float)
    X = build(values, observed)
    before = content(X)
    try:
        completed = completer.fit_transform(X)
    except ValueError as error:  # a matrix of several units
        if "a method for pictures" not in str(error):
            raise
        return
    again = completer.transform(X)
    # The same numbers under another mask are new rows.
    flipped = observed ^ (np.indices(observed.shape).sum(0) % 3 == 0)
    flipped &= np.isfinite(exact)
    folded = completer.transform(build(values, flipped))
    assert content(X) == before, "the input is changed"
    known = observed.any(0)
    kept = np.ones_like(known) if completer.keep_empty_features else known
    assert completed.shape == (len(values), kept.sum()), "the shape is wrong"
    # A column without an observed cell is left empty if the columns have units.
    for whole in (completed, folded, completer.reconstruction_[:, kept]):
        assert np.isfinite(whole[:, known[kept]]).all(), "a hole is left"
    empty = ~np.isfinite(completed[:, ~known[kept]])
    assert empty.all() or not empty.any(), "a part of the empty columns is filled"
    for filled, seen in ((completed, observed), (folded, flipped)):
        mine, cells = bits(filled[seen[:, kept]]), bits(exact[:, kept][seen[:, kept]])
        np.testing.assert_array_equal(mine, cells, "observed cells are changed")
    np.testing.assert_array_equal(completed, again, "transform differs")


def bits(cells: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(cells, float).view(np.int64)


def content(X: Any) -> str:
    """A digest of all numbers of a container."""
    return joblib.hash(list(_arrays(X)))


def _arrays(X: Any) -> Iterator[object]:
    if isinstance(X, np.ma.MaskedArray):
        yield from (X.data, np.ma.getmaskarray(X))
    elif sp.issparse(X) or isinstance(X, Entries):
        # Not what SciPy notes about the order of the cells.
        yield from (v for v in vars(X).values() if isinstance(v, np.ndarray))
        yield dict(X) if getattr(X, "format", "") == "dok" else None
    elif isinstance(X, torch.Tensor):
        yield X.detach()
    elif isinstance(X, pl.DataFrame):
        yield X.to_dict(as_series=False)
    elif isinstance(X, pd.DataFrame):
        yield from (X.to_numpy(object), list(X.index), list(X.columns))
    elif isinstance(X, list):
        yield from (list(_arrays(row)) for row in X)
    else:
        yield X
