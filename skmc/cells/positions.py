"""Positions of cells: validation, and conversion from identifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skmc.cells.containers import is_na


def identified(
    labels: ArrayLike,  # (n_cells,)
    name: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct identifiers and their positions."""
    mixed = isinstance(labels, (list, tuple))  # NumPy would make texts of numbers
    values = np.array(labels, object) if mixed else np.asarray(labels)
    if values.dtype.kind == "O":
        missing = np.array([is_na(x) or x != x for x in values], bool)
    else:
        missing = values != values
    if np.any(missing):
        raise ValueError(
            f"{name} is missing at position {np.argmax(missing)}; leave that row out."
        )
    if values.dtype.kind == "O":
        _check_texts(values.tolist(), name)
        values = np.asarray(values.tolist())
    if values.dtype.kind == "f" and (values == values.round()).all():
        values = values.astype(np.int64)  # pandas stores incomplete integers as floats
    if values.dtype.kind not in "iu":
        values = values.astype(str)
    ids, positions = np.unique(values, return_inverse=True)
    return ids, positions


def _check_texts(labels: list[Any], name: str) -> None:
    """Raise an error if a text and another object would be the same identifier."""
    if all(isinstance(label, str) for label in labels):
        return
    texts: dict[str, Any] = {}
    for label in dict.fromkeys(labels):
        other = texts.setdefault(str(label), label)
        if other != label:
            raise ValueError(
                f"{name} has both {other!r} and {label!r}, which would be the same "
                f"identifier; convert the column to one type, such as astype(str), if "
                "they are the same, or rename one of them."
            )


LARGER = "correct it or give the matrix a larger shape"
FIT_AGAIN = "correct it, or fit again with its cells"


def check_positions(
    rows: ArrayLike,
    cols: ArrayLike,
    shape: tuple[int, ...] | None,
    remedy: str = LARGER,
) -> tuple[np.ndarray, np.ndarray]:
    """Validate integer positions inside a matrix of ``shape``.

    Without a shape there is no upper bound.
    """
    rows, cols = np.asarray(rows), np.asarray(cols)
    if rows.ndim != 1 or rows.shape != cols.shape:
        raise ValueError(
            "rows and cols must be one-dimensional and of equal length, got "
            f"shapes {rows.shape} and {cols.shape}."
        )
    n_rows, n_cols = (np.inf, np.inf) if shape is None else shape
    return (
        check_index(rows, n_rows, "rows", remedy),
        check_index(cols, n_cols, "cols", remedy),
    )


def check_index(
    index: ArrayLike, size: float, name: str, remedy: str = LARGER
) -> np.ndarray:
    """Validate positions below ``size``."""
    index = np.asarray(index)
    if index.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {index.shape}.")
    if index.dtype.kind not in "iu" and index.size:
        raise TypeError(
            f"{name} must be integers, got dtype {index.dtype}; for cells with names, "
            "use Entries.from_frame(table, 'user', 'item', 'rating')."
        )
    outside = (index < 0) | (index >= size)
    if outside.any():
        first = outside.argmax()
        raise ValueError(
            f"{name} contains {index[first]} at position {first}, outside "
            f"0..{size - 1}; {remedy}."
        )
    return index.astype(np.int64)
