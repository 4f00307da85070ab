"""One column of a table as it was read."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

# Types of pandas' missing values; pandas is optional, so it is not imported for this.
MISSING_TYPES = ("NAType", "NaTType")
SINGLE_PRECISION = ("float32", "float16", "float[pyarrow]")  # in names of types


class RawColumn:
    """One column of a table as it was read.

    Parameters
    ----------
    column : Series or ndarray of shape (n_rows,)
        The column.
    label : str
        What messages call it.
    """

    def __init__(self, column: Any, label: str) -> None:
        self.column, self.label = column, label

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
        return np.array([is_missing(value) for value in self.values], bool)

    @cached_property
    def seen(self) -> list[Any]:
        """The observed cells."""
        pairs = zip(self.values, self.missing, strict=True)
        return [value for value, gone in pairs if not gone]

    @cached_property
    def plain(self) -> bool:
        """Whether the type of the column is numeric."""
        if hasattr(self.dtype, "is_numeric"):  # polars
            return bool(self.dtype.is_numeric()) and not self.dtype.is_decimal()
        return self.dtype.kind in "iuf" and not hasattr(self.dtype, "categories")

    @cached_property
    def numeric(self) -> bool:
        """Whether all observed cells are numbers, and not codes of categories."""
        if self.plain or hasattr(self.dtype, "categories"):
            return self.plain
        return all(
            isinstance(v, (Real, Decimal)) and not isinstance(v, (bool, np.bool_))
            for v in self.seen
        )

    @cached_property
    def floats(self) -> np.ndarray:
        """A column of numbers in floating point, NaN where a cell is missing."""
        if not self.plain:
            pairs = zip(self.values, self.missing, strict=True)
            return np.array([np.nan if gone else float(v) for v, gone in pairs])
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
    """Convert a column to a list of Python objects.

    Parameters
    ----------
    column : Series or ndarray
        A column of the table.

    Returns
    -------
    list
    """
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        column = column.astype(f"{column.dtype.kind}8[us]")  # to Python's dates
    return column.to_list() if hasattr(column, "to_list") else column.tolist()


def is_missing(value: object) -> bool:
    """Tell whether a value is None, NaN, or pandas' NA or NaT.

    Parameters
    ----------
    value : object
        Value of a cell.

    Returns
    -------
    bool
    """
    if value is None or type(value).__name__ in MISSING_TYPES:
        return True
    differs = value != value
    return bool(differs) if isinstance(differs, (bool, np.bool_)) else False
