"""One column of a table as it was read."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, cast

import numpy as np

from skmc.cells import cure_of_marks

# Types of pandas' missing values; pandas is optional, so it is not imported for this.
MISSING_TYPES = ("NAType", "NaTType")
SINGLE_PRECISION = ("float32", "float16", "float[pyarrow]")  # in names of types
LARGEST = float(np.sqrt(np.finfo(float).max))  # the square of a larger number overflows
Marks = tuple[object, ...]


class RawColumn:
    """One column of a table as read.

    Parameters
    ----------
    column : Series or ndarray of shape (n_rows,)
        Values of the column.
    label : str
        Description of the column in messages.
    marks : tuple, default=()
        Values that mark missing cells.
    weights : ndarray of shape (n_rows,) or None, default=None
        Weight of each cell. Cells of weight 0 are missing.
    """

    def __init__(
        self,
        column: Any,
        label: str,
        marks: Marks = (),
        weights: np.ndarray | None = None,
    ) -> None:
        self.column, self.label = column, label
        self.marks, self.weights = marks, weights
        self._hidden: Any = weights is not None and weights == 0

    @property
    def dtype(self) -> Any:
        """Type of the column."""
        return self.column.dtype

    @cached_property
    def values(self) -> list[Any]:
        """The cells as Python objects."""
        return to_list(self.column)

    @cached_property
    def missing(self) -> np.ndarray:
        """True where a cell is missing."""
        if self.plain:
            return np.asarray(np.isnan(self.floats))
        if hasattr(self.column, "isna"):  # pandas, a thousand cells at once
            gone = np.asarray(self.column.isna(), bool)
        else:
            gone = np.array([is_missing(value) for value in self.values], bool)
        if any(not is_missing(mark) for mark in self.marks):
            gone = gone | np.array([self.is_mark(value) for value in self.values])
        return gone | self._hidden

    @cached_property
    def times(self) -> np.ndarray | None:
        """The column in microseconds, if its type is one of times without a zone."""
        if isinstance(self.dtype, np.dtype) and self.dtype.kind in "mM":
            return np.asarray(self.column).astype(f"{self.dtype.kind}8[us]")
        return None

    @cached_property
    def seen(self) -> list[Any]:
        """The observed cells."""
        pairs = zip(self.values, self.missing, strict=True)
        return [value for value, gone in pairs if not gone]

    @property
    def seen_weights(self) -> np.ndarray | None:
        """Weight of each observed cell; None if all are 1."""
        return None if self.weights is None else self.weights[~self.missing]

    def is_mark(self, value: object) -> bool:
        """Whether a value marks missing cells."""
        return any(
            _holds(value == mark) and _is_bool(value) is _is_bool(mark)
            for mark in self.marks
        )

    @cached_property
    def plain(self) -> bool:
        """Whether the type of the column is numeric."""
        if hasattr(self.dtype, "is_numeric"):  # polars
            return bool(self.dtype.is_numeric()) and not self.dtype.is_decimal()
        return self.dtype.kind in "iuf" and not hasattr(self.dtype, "categories")

    @cached_property
    def numeric(self) -> bool:
        """Whether all observed cells are numbers, not codes of categories."""
        if self.plain or hasattr(self.dtype, "categories") or self.times is not None:
            return self.plain
        return all(
            isinstance(v, (Real, Decimal)) and not _is_bool(v) for v in self.seen
        )

    @cached_property
    def floats(self) -> np.ndarray:
        """The column in floating point, NaN where a cell is missing."""
        if not self.plain:
            return np.array([*map(self._float, range(len(self.values)))])
        values = self._plain_floats()
        hidden = self._hidden
        for mark in self.marks:
            if isinstance(mark, Real) and not _is_bool(mark):
                hidden = hidden | (values == float(mark))
        return np.where(hidden, values.dtype.type(np.nan), values)

    @property
    def overflow(self) -> str | None:
        """Message of a number that cannot be squared, if there is one."""
        wrong = np.abs(self.floats.astype(float)) > LARGEST
        if not wrong.any():
            return None
        row = int(wrong.argmax())
        value, what, remedy = self.floats[row], "infinity", "replace it with NaN"
        if not np.isinf(value):
            what, remedy = f"{value:g}, whose square overflows,", "use another unit"
        return f"{self.label} contains {what} in row {row}; {remedy}"

    def _float(self, row: int) -> float:
        value = self.values[row]
        if self.missing[row]:
            return np.nan
        if not isinstance(value, (Real, Decimal, np.bool_)):
            raise ValueError(
                f"{self.label} holds {value!r} in row {row}, which is not a number; "
                f"replace it with a number or NaN.{cure_of_marks([value])}"
            )
        return float(value)

    def _plain_floats(self) -> np.ndarray:
        name = str(self.dtype).lower()
        single = any(part in name for part in SINGLE_PRECISION)
        dtype = np.float32 if single else float
        if isinstance(self.column, np.ndarray):
            return self.column.astype(dtype)
        if hasattr(self.dtype, "is_numeric"):
            return np.asarray(self.column.cast(float).to_numpy()).astype(dtype)
        if hasattr(self.column, "sparse"):
            return np.asarray(self.column.sparse.to_dense(), dtype)
        return np.asarray(self.column.to_numpy(dtype, na_value=np.nan))


def to_list(column: Any) -> list[Any]:
    """Convert a column to a list of Python objects."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        column = column.astype(f"{column.dtype.kind}8[us]")  # to Python's dates
    return column.to_list() if hasattr(column, "to_list") else column.tolist()


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or pandas' NA or NaT."""
    if value is None or type(value).__name__ in MISSING_TYPES:
        return True
    return _holds(value != value)


def marks_of(missing_values: object) -> Marks:
    """List the values that mark missing cells.

    A number also marks texts that write it, and a text of a number marks the number:
    which of them a cell is depends on the other cells of its column.
    """
    single = isinstance(missing_values, str) or not isinstance(missing_values, Iterable)
    all_marks = (
        [missing_values] if single else [*cast(Iterable[object], missing_values)]
    )
    for mark in tuple(all_marks):
        if isinstance(mark, str):
            with suppress(ValueError):
                all_marks.append(float(mark))
        elif isinstance(mark, Real) and not _is_bool(mark) and not is_missing(mark):
            number: Any = mark
            is_integer = float(number).is_integer()
            all_marks.append(str(int(number)) if is_integer else repr(float(number)))
    return tuple(all_marks)


def _holds(comparison: object) -> bool:
    """Whether a comparison is true; the comparison of an array is not."""
    return isinstance(comparison, (bool, np.bool_)) and bool(comparison)


def _is_bool(value: object) -> bool:
    return isinstance(value, (bool, np.bool_))
