"""Reading partly observed matrices from any container."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from numbers import Real
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike

from skmc.cells.labeled import as_frame, is_data_array
from skmc.cells.marks import cure_of_marks


class Shaped(Protocol):
    """A data frame, sparse matrix, tensor, `Entries` or Dask collection."""

    @property
    def shape(self) -> tuple[Any, ...]:
        """Lengths of the axes; those of Dask collections may be unknown."""


Container = ArrayLike | Sequence[Sequence[float | None]] | Shaped
SPARSEST = 10_000  # rows or columns for each cell; beyond, positions are identifiers
FEW = 10**7  # rows or columns, for which vectors fit in memory
NOT_A_NUMBER = (
    "which is not a number; MixedCompleter completes tables with text, categories and "
    "dates by any completer"
)


def to_cells(X: Any, *, name: str = "X", missing_values: float = np.nan) -> np.ndarray:
    """Read any container into one float array with NaN where a cell is missing.

    The following cells are missing: masked cells of a `numpy.ma.MaskedArray` (whatever
    lies under the mask), NaN and None in arrays, lists and tensors, nulls of a
    DataFrame or Arrow table, cells that a SciPy sparse matrix or `Entries` does not
    store (a stored zero is a zero), and cells equal to ``missing_values``. A sparse
    ``X`` of AnnData is read as AnnData defines it: cells that it does not store are
    zeros.

    Parameters
    ----------
    X : container
        A matrix.
    name : str, default="X"
        Name of ``X`` in error messages.
    missing_values : float, default=numpy.nan
        Another number that marks missing cells.

    Returns
    -------
    ndarray of float32 (for input of at most that precision) or float64
        In C order, whatever the layout of the container: the last bits of sums depend
        on the order in memory, and may decide between two donors. It can share memory
        with ``X``. The number of dimensions is not checked.

    Raises
    ------
    ValueError
        Infinite or complex values, numbers whose square overflows, or text (with the
        position of the first one); duplicates in a sparse matrix.
    TypeError
        Another object that is not a number, with its position.
    """
    check_mark(missing_values)
    if not is_data_array(X):  # which may have more dimensions
        X = as_frame(X)
    if hasattr(X, "to_cells"):  # Entries
        cells, unstored = X.to_cells(), None
    elif sp.issparse(X):
        rows, cols, values = sparse_cells(X, name=name, missing_values=missing_values)
        return dense(X.shape, rows, cols, values)
    elif isinstance(X, np.ma.MaskedArray):
        unstored = np.ma.getmaskarray(X)
        cells = _to_float(X.filled(), X, name, unstored)
    elif isinstance(X, torch.Tensor):
        if X.layout is not torch.strided:
            raise TypeError(
                f"{name} is a sparse tensor; pass its stored cells as a SciPy sparse "
                f"array, or {name}.to_dense() if all others are zeros."
            )
        X = X.detach().cpu().resolve_conj()
        array = X.float() if X.dtype is torch.bfloat16 else X
        cells, unstored = _to_float(array.numpy(), X, name), None
    elif hasattr(X, "columns") and hasattr(X, "to_numpy"):
        cells, unstored = _to_float(X.to_numpy(), X, name), None
        if np.isnan(cells).all():  # columns of nulls have no precision
            cells = cells.astype(float)
    else:
        if isinstance(X, (list, tuple)) and any(
            isinstance(row, np.ma.MaskedArray) for row in X
        ):
            return to_cells(np.ma.stack(X), name=name, missing_values=missing_values)
        cells, unstored = _to_float(_as_array(X, name), X, name), None

    missing = np.isnan(cells) | (cells == missing_values)
    if unstored is not None:
        missing |= unstored
    _refuse_what_overflows(cells, missing, X, name, lambda where: np.argwhere(where)[0])
    if missing.any():
        cells = np.where(missing, cells.dtype.type(np.nan), cells)
    return np.asarray(cells, order="C")


def check_mark(missing_values: object) -> None:
    """Require a number that can mark missing cells of a matrix."""
    if isinstance(missing_values, bool) or not isinstance(missing_values, Real):
        raise TypeError(
            f"missing_values must be a number, got {missing_values!r}; set cells with "
            "other marks to NaN, or pass a table to MixedCompleter."
        )


def _as_array(X: object, name: str) -> np.ndarray:
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"{name} is not rectangular: every row needs the same number of cells."
        ) from error
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
        array = np.asarray(X, dtype=object)  # keeps numbers among text as numbers
    if array.ndim == 0:
        remedy = ""
        if is_path(X):
            remedy = "; read the file first, for example with pandas.read_csv"
        raise TypeError(
            f"{name} must be a matrix in an array, list, DataFrame, sparse matrix, "
            f"tensor or Entries, got {type(X).__name__}{remedy}."
        )
    return array


def sparse_cells(
    X: Any, *, name: str = "X", missing_values: float = np.nan
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and values of the stored cells of a SciPy sparse matrix.

    The matrix is never made dense. Errors are those of `to_cells`.
    """
    check_mark(missing_values)
    coo = X.tocoo()
    if coo.ndim != 2:
        raise ValueError(f"Expected 2D array, got a {coo.ndim}D sparse array {name}.")
    check_sparsity(coo.shape, coo.nnz)
    place = np.ravel_multi_index((coo.row, coo.col), coo.shape)
    if len(np.unique(place)) < coo.nnz:
        raise ValueError(
            f"{name} stores some cells more than once; use "
            "Entries.from_triplets(..., duplicates='mean') or sum_duplicates()."
        )
    values = _to_float(coo.data, X, name)
    missing = np.isnan(values) | (values == missing_values)
    _refuse_what_overflows(
        values,
        missing,
        X,
        name,
        lambda where: (coo.row[where.argmax()], coo.col[where.argmax()]),
    )
    return coo.row[~missing], coo.col[~missing], values[~missing]


def _to_float(
    array: np.ndarray, X: object, name: str, unread: np.ndarray | None = None
) -> np.ndarray:
    """Convert to float32 or float64; ignored cells may hold anything."""
    kind = array.dtype.kind
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has dtype {array.dtype}; "
            "pass the real and imaginary parts as columns."
        )
    if kind in "mM":
        raise TypeError(
            f"{name} holds dates or durations ({array.dtype}), which are not numbers; "
            "pass a data frame to MixedCompleter, or subtract a date and divide by a "
            "unit."
        )
    if kind in "fiub":
        small = kind == "f" and array.itemsize <= 4
        return array.astype(np.float32 if small else float, copy=False)
    return _cell_by_cell(array, X, name, unread)


def check_sparsity(shape: tuple[int, ...], n_cells: int) -> None:
    """Require a shape that follows from positions and not from identifiers."""
    for size, what in zip(shape, ("rows", "columns"), strict=True):
        if size > max(FEW, SPARSEST * n_cells):
            raise ValueError(
                f"{n_cells} cells of a matrix of {size} {what} are identifiers rather "
                "than positions; use Entries.from_frame(table, 'user', 'item', "
                "'rating'), or numpy.unique(..., return_inverse=True)."
            )


def dense(
    shape: tuple[int, int],
    rows: Any,  # (n_cells,)
    cols: Any,  # (n_cells,)
    values: Any,  # (n_cells,)
) -> np.ndarray:
    """Write single cells into an array with NaN elsewhere."""
    try:
        cells = np.full(shape, np.nan, values.dtype)
    except MemoryError:
        size = shape[0] * shape[1] * values.itemsize / 2**30
        raise MemoryError(
            f"a dense {shape[0]} x {shape[1]} matrix takes {size:.0f} GiB; "
            "FactorizationCompleter, BayesianFactorizationCompleter and "
            "SoftImputeCompleter keep it sparse. If rows and columns are identifiers, "
            "use Entries.from_frame"
        ) from None
    cells[rows, cols] = values
    return cells


def is_path(value: object) -> bool:
    """Whether an object is a path, which cannot be a matrix."""
    return isinstance(value, (str, os.PathLike))


def is_number(text: str | bytes) -> bool:
    """Whether a text is a number, also with a decimal comma."""
    plain = text.decode(errors="replace") if isinstance(text, bytes) else text
    try:
        return math.isfinite(float(plain.replace(",", ".")))
    except ValueError:
        return False


def is_na(value: object) -> bool:
    """Whether an object is None or pandas' missing value."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _cell_by_cell(
    array: np.ndarray, X: object, name: str, unread: np.ndarray | None
) -> np.ndarray:
    """Read objects: None and pandas.NA are missing, text raises an error."""
    cells = np.full(array.shape, np.nan)
    for place, value in np.ndenumerate(array):
        if is_na(value) or (unread is not None and unread[place]):
            continue
        if isinstance(value, np.generic):
            value = value.item()
        where = f"{name} holds {value!r} at {describe(place, X)}"
        if isinstance(value, (str, bytes)):  # float reads b"4" as well as "4"
            if is_number(value):
                raise ValueError(
                    f"{where}, which is text; convert it to numbers, for example with "
                    f"pandas.to_numeric or {name}.astype(float)."
                    + cure_of_marks(array.flat)
                )
            raise ValueError(f"{where}, {NOT_A_NUMBER}.{cure_of_marks(array.flat)}")
        try:
            cells[place] = float(value)
        except OverflowError as error:
            raise ValueError(
                f"{name} holds an integer of {len(str(value))} digits at "
                f"{describe(place, X)}; use other units or mask that cell."
            ) from error
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}, {NOT_A_NUMBER} ({error}).") from error
        if isinstance(value, (Fraction, int)) and float(cells[place]) != value:
            raise ValueError(
                f"{where}, which a float cannot represent; convert that column to "
                "floats first, or list it in passthrough of MixedCompleter."
            )
    return cells


def _refuse_what_overflows(
    values: np.ndarray, missing: np.ndarray, X: object, name: str, place: Callable
) -> None:
    """Refuse infinite and overflowing values; ``place`` finds the first True."""
    largest = np.sqrt(np.finfo(values.dtype).max)
    for wrong, what, remedy in (
        (np.isinf(values), "infinity", "replace it with NaN or mask"),
        (
            np.abs(values) > largest,
            f"a number above {largest:.0e}, whose square overflows,",
            "use other units or mask",
        ),
    ):
        wrong = wrong & ~missing
        if wrong.any():
            where = describe(tuple(place(wrong)), X)
            raise ValueError(f"{name} contains {what} at {where}; {remedy} that cell.")


def describe(place: tuple, X: object = None) -> str:
    """Describe a position, as ``row 3, column 1 ('age')``."""
    row, *column = (int(i) for i in place)
    if not column:
        return f"position {row}"
    names = getattr(X, "columns", None)
    label = "" if names is None else f" ({list(names)[column[0]]!r})"
    return f"row {row}, column {column[0]}{label}"
