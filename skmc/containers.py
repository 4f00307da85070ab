"""What the containers of partly observed matrices mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch


def to_cells(X: Any, *, name: str = "X", missing_values: float = np.nan) -> np.ndarray:
    """Read any container into one float array with NaN where a cell is missing.

    Missing are: masked cells of a `numpy.ma.MaskedArray` (whatever lies under the
    mask), NaN and None in arrays, lists and tensors, nulls of a DataFrame, cells that
    a SciPy sparse matrix or `Entries` does not store (a stored zero is a zero), and
    cells equal to ``missing_values``.

    Returns
    -------
    ndarray of float32 (for input of at most that precision) or float64
        Not validated for its number of dimensions.

    Raises
    ------
    ValueError
        Infinite or complex values, or NaN besides another ``missing_values``, with
        the place of the first one; duplicates in a sparse matrix.
    TypeError
        Something that is not a number, with its place.
    """
    unstored = None
    if hasattr(X, "to_cells"):  # Entries
        cells = X.to_cells()
        unstored = np.isnan(cells)
    elif sp.issparse(X):
        cells, unstored = _from_sparse(X, name)
    elif isinstance(X, np.ma.MaskedArray):
        unstored = np.ma.getmaskarray(X)
        cells = _to_float(np.where(unstored, 0, X.data), X, name)
    elif isinstance(X, torch.Tensor):
        cells = _to_float(X.detach().cpu().resolve_conj().numpy(), X, name)
    elif hasattr(X, "columns") and hasattr(X, "to_numpy"):
        cells = _to_float(X.to_numpy(), X, name)
    else:
        cells = _to_float(_as_array(X, name), X, name)

    stored = np.ones(cells.shape, bool) if unstored is None else ~unstored
    _refuse(np.isinf(cells) & stored, X, name, "infinity", "replace it by NaN or mask")
    if not np.isnan(missing_values):
        _refuse(
            np.isnan(cells) & stored,
            X,
            name,
            f"NaN, but missing_values is {missing_values}",
            "set missing_values=numpy.nan or mask",
        )
        stored &= cells != missing_values
    if not stored.all():
        cells = np.where(stored, cells, cells.dtype.type(np.nan))
    return cells


def _as_array(X: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"{name} is not rectangular: every row needs the same number of cells."
        ) from error


def _from_sparse(X: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    coo = X.tocoo()
    if coo.ndim != 2:
        raise ValueError(f"Expected 2D array, got a {coo.ndim}D sparse array {name}.")
    place = np.ravel_multi_index((coo.row, coo.col), coo.shape)
    if len(np.unique(place)) < coo.nnz:
        raise ValueError(
            f"{name} stores some cells more than once; use "
            "Entries.from_triplets(..., duplicates='mean') or sum_duplicates()."
        )
    values = _to_float(coo.data, X, name)
    cells = np.zeros(coo.shape, values.dtype)
    unstored = np.ones(coo.shape, bool)
    cells[coo.row, coo.col] = values
    unstored[coo.row, coo.col] = False
    return cells, unstored


def _to_float(array: np.ndarray, X: Any, name: str) -> np.ndarray:
    if array.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has dtype {array.dtype}; "
            "pass the real and imaginary parts as columns."
        )
    dtype = np.float32 if array.dtype.kind == "f" and array.itemsize <= 4 else float
    try:
        return array.astype(dtype, copy=False)
    except (TypeError, ValueError):
        return _cell_by_cell(array, X, name)


def _cell_by_cell(array: np.ndarray, X: Any, name: str) -> np.ndarray:
    """Objects that are no float: pandas.NA is missing, all else is an error."""
    cells = np.full(array.shape, np.nan)
    for place, value in np.ndenumerate(array):
        if value is None or type(value).__name__ == "NAType":
            continue
        if isinstance(value, np.generic):
            value = value.item()
        try:
            cells[place] = float(value)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{name} holds {value!r} at {describe(place, X)}, which is no number; "
                f"encode it or leave the column out ({error})."
            ) from error
    return cells


def _refuse(wrong: np.ndarray, X: Any, name: str, what: str, remedy: str) -> None:
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} contains {what} at {describe(place, X)}; {remedy} that cell."
        )


def describe(place: tuple, X: Any = None) -> str:
    """``row 3, column 1 ('age')``."""
    row, *column = (int(i) for i in place)
    if not column:
        return f"position {row}"
    names = getattr(X, "columns", None)
    label = "" if names is None else f" ({list(names)[column[0]]!r})"
    return f"row {row}, column {column[0]}{label}"
