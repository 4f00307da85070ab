"""Reading and writing of the columns of data frames and arrays."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_array

from skmc import base
from skmc.base import check_names
from skmc.cells import Container, as_frame, to_cells
from skmc.compatibility import safe_indexing
from skmc.tables.column_type import ColumnType
from skmc.tables.raw_column import Marks, RawColumn, is_missing, marks_of, to_list

AnyMarks = Marks | Mapping[Any, Marks]  # of all columns, or by name or position
WIDTH = re.compile(r"(u?)int(\d+)", re.IGNORECASE)  # of integers, in names of types
EXACT = 2**53  # all smaller integers are floats


def as_table(X: Container) -> Any:
    """Return a DataFrame unchanged, and anything else as a DataFrame or array."""
    X = as_frame(X, exact=True)
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        check_names(X)
        return X
    if isinstance(X, (list, tuple)):
        X = np.array(X, dtype=object)
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "OUS":
        hidden, X = np.ma.getmaskarray(X), X.data.astype(object)
        X[hidden] = None
    elif not (isinstance(X, np.ndarray) and X.dtype.kind in "OUS"):
        X = to_cells(X)
    dtype = object if X.dtype.kind in "OUS" else None
    return check_array(X, dtype=dtype, ensure_all_finite=False)


def with_tables(tags: Tags) -> Tags:
    """Add tables with words and missing cells to the input of an estimator."""
    tags.input_tags.allow_nan = True
    tags.input_tags.sparse = True
    tags.input_tags.string = True
    tags.input_tags.categorical = True
    tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return tags


def raw_columns(
    X: Any,
    marks: AnyMarks = (),
    weights: np.ndarray | None = None,  # (n_rows, n_cols)
) -> list[RawColumn]:
    """List the columns of a table."""
    every = itertools.repeat(None) if weights is None else weights.T
    if isinstance(marks, Mapping):
        given = {position_of(X, c, "missing_values"): own for c, own in marks.items()}
        marks_of_column = [given.get(k, ()) for k in range(X.shape[1])]
    else:
        marks_of_column = [marks] * X.shape[1]
    return [
        RawColumn(column_of(X, k), label(X, k), marks_of_column[k], own)
        for k, own in zip(range(X.shape[1]), every, strict=False)
    ]


def marks_of_columns(missing_values: object) -> AnyMarks:
    """List the values that mark missing cells, in all columns or in each."""
    if isinstance(missing_values, Mapping):
        return {column: marks_of(own) for column, own in missing_values.items()}
    return marks_of(missing_values)


def column_of(X: Container, k: int) -> Any:  # (n_rows,)
    """Return one column of a table."""
    return safe_indexing(X, k, axis=1)


def label(X: Container, k: int) -> str:
    """Describe a column for an error message."""
    names = getattr(X, "columns", None)
    return f"column {k}" + ("" if names is None else f" ({list(names)[k]!r})")


def position_of(X: Any, column: object, parameter: str) -> int:
    """Find the position of a column that a parameter names."""
    return base.position_of(column, parameter, getattr(X, "columns", ()), X.shape[1])


def positions_of(X: Any, columns: Any, parameter: str) -> list[int]:
    """Find the positions of columns, selected as in `ColumnTransformer`."""
    n_cols = X.shape[1]
    if callable(columns):
        columns = columns(X)
    if columns is None:
        return []
    if isinstance(columns, slice):
        ends = [columns.start, columns.stop]
        names = [isinstance(end, str) for end in ends]
        first, last = (
            position_of(X, end, parameter) if named else end
            for end, named in zip(ends, names, strict=True)
        )
        return list(range(n_cols))[first : last + names[1] if names[1] else last]
    if isinstance(columns, (str, int)):
        columns = [columns]
    columns = list(columns)
    if columns and all(isinstance(column, (bool, np.bool_)) for column in columns):
        if len(columns) != n_cols:
            raise ValueError(
                f"{parameter} is a mask of {len(columns)} columns, but X has {n_cols}; "
                "give one True or False for each column."
            )
        return np.flatnonzero(columns).tolist()
    return [position_of(X, column, parameter) for column in columns]


def filled(
    X: Any,
    new: Mapping[int, Any],
    missing: np.ndarray,  # (n_rows, n_cols)
    kinds: Sequence[str | None],
    types: Mapping[int, ColumnType] = MappingProxyType({}),
) -> Any:
    """Copy a table and fill its missing cells."""
    if not hasattr(X, "columns"):
        others = any(not _is_number(value) for own in new.values() for value in own)
        X = X.astype(object if others else X.dtype)
        for k, values in new.items():
            X[missing[:, k], k] = values
        numbers = X.dtype.kind == "O" and set(kinds) == {"numeric"}
        return X.astype(float) if numbers and _are_floats(X.flat) else X
    made = {}
    for k, values in new.items():
        column, gone = column_of(X, k), missing[:, k]
        cells = np.array(to_list(column), dtype=object)
        cells[gone] = values
        numeric = kinds[k] in ("numeric", None)  # or an empty column, which is zero
        made[k] = _like(column, cells.tolist(), gone, numeric, types.get(k))
    return _replaced(X, made)


def without(
    X: Any,
    hidden: np.ndarray,  # (n_rows, n_cols)
) -> Any:
    """Copy a table without some of its cells."""
    if not hasattr(X, "columns"):
        return np.where(hidden, np.nan, X)
    made = {}
    for k in np.flatnonzero(hidden.any(0)).tolist():
        column, seen = column_of(X, k), ~hidden[:, k]
        if hasattr(X, "with_columns"):  # polars
            cls = type(column)
            empty = cls(column.name, [None] * len(column), dtype=column.dtype)
            made[k] = column.zip_with(cls(seen.tolist()), empty)
        else:
            made[k] = column.where(seen)
    return _replaced(X, made)


def same_columns(X: Any, values: Sequence[Any]) -> Any:
    """Make a table with the names and index of another."""
    if not hasattr(X, "columns"):
        numbers = all(isinstance(new, np.ndarray) for new in values)
        matrix = np.empty(X.shape, float if numbers else object)
        for k, new in enumerate(values):
            matrix[:, k] = new
        return matrix
    made = {}
    for k, new in enumerate(values):
        column = column_of(X, k)
        if hasattr(X, "with_columns"):
            made[k] = type(column)(column.name, new)
        else:
            made[k] = type(column)(new, index=column.index, name=column.name)
    return _replaced(X, made)


def _replaced(X: Any, made: Mapping[int, Any]) -> Any:
    """Copy a data frame, and replace some columns."""
    if hasattr(X, "with_columns"):  # polars
        return X.with_columns(list(made.values()))
    X = X.copy()
    for k, column in made.items():
        X.isetitem(k, column)
    return X


def _like(
    column: Any,
    values: list[Any],
    new: np.ndarray,
    numeric: bool,
    in_fit: ColumnType | None,
) -> Any:
    """A Series of new values, with the old dtype or that of the fit if it holds them.

    Otherwise, a categorical dtype gets further categories, or the library infers one.
    """
    cls, dtype = type(column), column.dtype
    polars = hasattr(dtype, "is_numeric")
    integers = dtype.is_integer() if polars else dtype.kind in "iu"
    if integers and all(v == int(v) for v in values if not is_missing(v)):
        low, high = _limits(str(dtype))
        values = [
            None if is_missing(v) else min(max(int(v), low), high) for v in values
        ]
    elif integers:
        arrow = "pyarrow" in str(dtype)
        dtype = None if polars else "double[pyarrow]" if arrow else "Float64"
    if not polars and numeric and not isinstance(values[0], Decimal):
        dtype = float if str(dtype) == "object" and _are_floats(values) else dtype
    candidates = [dtype, None if in_fit is None else in_fit.dtype(cls)]
    untyped = str(column.dtype) == "object" and new.all()
    if untyped and in_fit is not None and in_fit.name != "object":
        candidates.reverse()
    known = [getattr(found, "categories", None) for found in candidates]
    candidates += [_with_categories(found, values) for found in candidates]
    asked = np.flatnonzero(new).tolist()
    for candidate, categories in zip(candidates, [*known, None, None], strict=True):
        if candidate is None or not _has_all(categories, values):
            continue
        try:
            found = _series(column, values, candidate)
        except (TypeError, ValueError, OverflowError, NotImplementedError):
            continue
        held = to_list(found)
        if all(_is_same(held[i], values[i]) for i in asked):
            return found
    return _series(column, values, None)


def _series(column: Any, values: list[Any], dtype: Any) -> Any:
    cls = type(column)
    if hasattr(column.dtype, "is_numeric"):  # polars
        return cls(column.name, values, dtype=dtype, strict=False)
    return cls(values, index=column.index, name=column.name, dtype=dtype)


def _has_all(categories: Any, values: list[Any]) -> bool:
    """Whether values are categories; a dtype without these has all."""
    possible = None if categories is None else set(categories)
    return possible is None or all(is_missing(v) or v in possible for v in values)


def _with_categories(dtype: Any, values: list[Any]) -> Any:
    """A categorical dtype of pandas with further values, None for other dtypes."""
    if not hasattr(dtype, "ordered"):
        return None
    distinct = dict.fromkeys(
        [*dtype.categories, *(v for v in values if not is_missing(v))]
    )
    return type(dtype)(list(distinct), dtype.ordered)


def _limits(name: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer type, by its name."""
    match = WIDTH.search(name)
    unsigned, bits = (match[1], int(match[2])) if match else ("", 64)
    return (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _are_floats(values: Iterable[Any]) -> bool:
    """Whether a conversion to floats changes no integer."""
    large = (v for v in values if isinstance(v, int) and abs(v) > EXACT)
    return all(float(v) == v for v in large)


def _is_number(value: Any) -> bool:
    number = isinstance(value, (Real, Decimal))
    return number and not isinstance(value, (bool, np.bool_))


def _is_same(held: Any, value: Any) -> bool:
    """Whether a dtype has kept a value, possibly with another precision."""
    for kind in (dt.timedelta, dt.date):  # a datetime is a date, too
        if isinstance(held, kind):
            return isinstance(value, kind)
    if _is_number(held):
        is_integer = isinstance(held, (int, np.integer))
        return (
            _is_number(value)
            and not is_missing(held)
            and (not is_integer or held == value)
        )
    return isinstance(held, type(value)) and bool(held == value)
