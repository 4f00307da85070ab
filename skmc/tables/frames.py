"""Reading and writing of the columns of data frames and arrays."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_array

from skmc import base
from skmc.base import check_names
from skmc.cells import Container, to_cells
from skmc.compatibility import safe_indexing
from skmc.tables.raw_column import Marks, RawColumn, is_missing, to_list


def as_table(X: Container) -> Any:
    """Return a DataFrame unchanged and anything else as an array.

    Parameters
    ----------
    X : DataFrame, or container as for completers
        Table to convert.

    Returns
    -------
    DataFrame or ndarray
        Array of objects unless all its values are numbers.
    """
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
    """Add tables with words and missing cells to the input of an estimator.

    Parameters
    ----------
    tags : sklearn.utils.Tags
        Tags of the estimator, which are changed.

    Returns
    -------
    sklearn.utils.Tags
    """
    tags.input_tags.allow_nan = True
    tags.input_tags.sparse = True
    tags.input_tags.string = True
    tags.input_tags.categorical = True
    tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return tags


def raw_columns(
    X: Any, marks: Marks = (), weights: np.ndarray | None = None
) -> list[RawColumn]:
    """List the columns of a table.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    marks : tuple, default=()
        Values that mark missing cells.
    weights : ndarray of shape (n_rows, n_cols) or None, default=None
        Weight of each cell.

    Returns
    -------
    list of RawColumn
    """
    every = itertools.repeat(None) if weights is None else weights.T
    return [
        RawColumn(column_of(X, k), label(X, k), marks, own)
        for k, own in zip(range(X.shape[1]), every, strict=False)
    ]


def column_of(X: Container, k: int) -> Any:
    """Return one column of a table.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    k : int
        Position of the column.

    Returns
    -------
    Series or ndarray of shape (n_rows,)
    """
    return safe_indexing(X, k, axis=1)


def label(X: Container, k: int) -> str:
    """Describe a column for an error message.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    k : int
        Position of the column.

    Returns
    -------
    str
    """
    names = getattr(X, "columns", None)
    return f"column {k}" + ("" if names is None else f" ({list(names)[k]!r})")


def position_of(X: Any, column: object, parameter: str) -> int:
    """Find the position of a column that a parameter names.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    column : str or int
        Name or position.
    parameter : str
        Name of the parameter, for the error.

    Returns
    -------
    int
    """
    return base.position_of(column, parameter, getattr(X, "columns", ()), X.shape[1])


def filled(
    X: Any,
    new: Mapping[int, Any],
    missing: np.ndarray,
    kinds: Sequence[str | None],
) -> Any:
    """Copy a table and fill its missing cells.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    new : mapping of int to sequence
        Values of the missing cells, from the top, by position of the column.
    missing : bool ndarray of shape (n_rows, n_cols)
        True where a cell is missing.
    kinds : sequence of str or None
        Kinds of the columns.

    Returns
    -------
    DataFrame or ndarray
        Table of the type of ``X``.
    """
    if not hasattr(X, "columns"):
        X = X.copy()
        for k, values in new.items():
            X[missing[:, k], k] = values
        numbers = X.dtype.kind == "O" and set(kinds) == {"numeric"}
        return X.astype(float) if numbers else X
    made = {}
    for k, values in new.items():
        column = column_of(X, k)
        whole = np.array(to_list(column), dtype=object)
        whole[missing[:, k]] = values
        made[k] = _like(column, whole.tolist(), kinds[k] == "numeric")
    return _replaced(X, made)


def without(X: Any, hidden: np.ndarray) -> Any:
    """Copy a table without some of its cells.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    hidden : bool ndarray of shape (n_rows, n_cols)
        Cells to hide.

    Returns
    -------
    DataFrame or ndarray
        Table of the type of ``X``, with missing cells in their place.
    """
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
    """Make a table with the names and index of another.

    Parameters
    ----------
    X : DataFrame or ndarray
        Table with the names and the index.
    values : sequence of sequences
        New columns.

    Returns
    -------
    DataFrame or ndarray
        Table of the type of ``X``. An array holds objects unless all values are
        numbers.
    """
    if not hasattr(X, "columns"):
        numbers = all(isinstance(new, np.ndarray) for new in values)
        whole = np.empty(X.shape, float if numbers else object)
        for k, new in enumerate(values):
            whole[:, k] = new
        return whole
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


def _like(column: Any, values: list[Any], numeric: bool) -> Any:
    """A Series of new values, with the old dtype if it can represent them."""
    cls, dtype = type(column), column.dtype
    polars = hasattr(dtype, "is_numeric")
    integers = dtype.is_integer() if polars else dtype.kind in "iu"
    if integers and all(v == int(v) for v in values if not is_missing(v)):
        values = [None if is_missing(v) else int(v) for v in values]
    elif integers:
        arrow = "pyarrow" in str(dtype)
        dtype = None if polars else "double[pyarrow]" if arrow else "Float64"
    if polars:
        return cls(column.name, values, dtype=dtype, strict=False)
    if numeric and str(dtype) == "object" and not isinstance(values[0], Decimal):
        dtype = float
    return cls(values, index=column.index, name=column.name, dtype=dtype)
