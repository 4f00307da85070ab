"""Columns of tables: what they hold, as numbers and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array

from skmc.cells import to_cells

NO_VALUE = ("NAType", "NaTType")  # pandas', which must not be imported for this


@dataclass(frozen=True)
class Numeric:
    """A column of numbers, standardised.

    Parameters
    ----------
    mean : float
        Of the observed values.
    deviation : float
        Standard deviation of the observed values, all columns of a category taken
        together; 1 where it is 0.
    span : float
        Largest less least observed value; 1 where it is 0.
    """

    kind: ClassVar[str] = "numeric"
    mean: float
    deviation: float
    span: float

    @classmethod
    def of(cls, values: np.ndarray) -> Numeric:
        """Describe a column by its observed values.

        Parameters
        ----------
        values : ndarray of shape (n_observed,)
            What was observed of the column.

        Returns
        -------
        Numeric
        """
        span = float(values.max() - values.min()) or 1.0
        return cls(float(values.mean()), float(values.std()) or 1.0, span)

    @property
    def width(self) -> int:
        """Columns of the matrix that stand for this one."""
        return 1

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Write the column as columns of the matrix.

        Parameters
        ----------
        values : ndarray of shape (n_rows,)
            Numbers, NaN where missing.

        Returns
        -------
        ndarray of shape (n_rows, width)
        """
        return ((values - self.mean) / self.deviation)[:, None]

    def decode(self, block: np.ndarray) -> np.ndarray:
        """Read the column out of the completed matrix.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Columns of the completed matrix.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return block[:, 0] * self.deviation + self.mean

    def error(self, guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Absolute errors over the range of the column.

        Parameters
        ----------
        guess : ndarray of shape (n_rows,)
            Numbers, or positions of levels.
        truth : ndarray of shape (n_rows,)
            Numbers, or positions of levels.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return np.abs(guess - truth) / self.span


@dataclass(frozen=True)
class Ordinal:
    """A column of levels: their numbers, standardised.

    Parameters
    ----------
    levels : tuple
        Lowest first, or the categories.
    mean : float
        Of the observed values.
    deviation : float
        Standard deviation of the observed values, all columns of a category taken
        together; 1 where it is 0.
    """

    kind: ClassVar[str] = "ordinal"
    levels: tuple
    mean: float
    deviation: float

    @classmethod
    def of(cls, codes: np.ndarray, levels: tuple) -> Ordinal:
        """Describe a column by its observed levels.

        Parameters
        ----------
        codes : ndarray of shape (n_observed,)
            Positions among the levels.
        levels : tuple
            Lowest first, or the categories.

        Returns
        -------
        Ordinal
        """
        return cls(levels, float(codes.mean()), float(codes.std()) or 1.0)

    @property
    def width(self) -> int:
        """Columns of the matrix that stand for this one."""
        return 1

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Write the column as columns of the matrix.

        Parameters
        ----------
        values : ndarray of shape (n_rows,)
            Positions among the levels, NaN where missing.

        Returns
        -------
        ndarray of shape (n_rows, width)
        """
        return ((values - self.mean) / self.deviation)[:, None]

    def decode(self, block: np.ndarray) -> np.ndarray:
        """Take the nearest levels to the completed matrix.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Columns of the completed matrix.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        number = np.rint(block[:, 0] * self.deviation + self.mean)
        return number.clip(0, len(self.levels) - 1)

    def error(self, guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Levels in between, over the most there can be.

        Parameters
        ----------
        guess : ndarray of shape (n_rows,)
            Numbers, or positions of levels.
        truth : ndarray of shape (n_rows,)
            Numbers, or positions of levels.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return np.abs(guess - truth) / max(len(self.levels) - 1, 1)


@dataclass(frozen=True)
class Categorical:
    """A column of categories: one-hot, less their shares, of total variance one.

    Parameters
    ----------
    levels : tuple
        Lowest first, or the categories.
    shares : ndarray of shape (n_levels,)
        Of the categories among the observed values.
    deviation : float
        Standard deviation of the observed values, all columns of a category taken
        together; 1 where it is 0.
    """

    kind: ClassVar[str] = "categorical"
    levels: tuple
    shares: np.ndarray
    deviation: float

    @classmethod
    def of(cls, codes: np.ndarray, levels: tuple) -> Categorical:
        """Describe a column by its observed categories.

        Parameters
        ----------
        codes : ndarray of shape (n_observed,)
            Positions among the levels.
        levels : tuple
            Lowest first, or the categories.

        Returns
        -------
        Categorical
        """
        shares = np.bincount(codes.astype(int), minlength=len(levels)) / len(codes)
        deviation = float((shares * (1 - shares)).sum()) ** 0.5
        return cls(levels, shares, deviation or 1.0)

    @property
    def width(self) -> int:
        """Columns of the matrix that stand for this one."""
        return len(self.levels)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Write the column as columns of the matrix.

        Parameters
        ----------
        values : ndarray of shape (n_rows,)
            Positions among the levels, NaN where missing.

        Returns
        -------
        ndarray of shape (n_rows, width)
        """
        block = (values[:, None] == np.arange(self.width)) - self.shares
        block[np.isnan(values)] = np.nan
        return block / self.deviation

    def decode(self, block: np.ndarray) -> np.ndarray:
        """Take the categories of the largest scores.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Columns of the completed matrix.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return (block * self.deviation + self.shares).argmax(1).astype(float)

    def error(self, guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """One where the guess is wrong, else zero.

        Parameters
        ----------
        guess : ndarray of shape (n_rows,)
            Numbers, or positions of levels.
        truth : ndarray of shape (n_rows,)
            Numbers, or positions of levels.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return (guess != truth).astype(float)


Column = Numeric | Ordinal | Categorical


def as_table(X: Any) -> Any:
    """A DataFrame as it is; all else as an array, of objects unless of numbers.

    Parameters
    ----------
    X : DataFrame, or container as for completers
        What a user gave.

    Returns
    -------
    DataFrame or ndarray
    """
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
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


def to_list(column: Any) -> list:
    """The values of a column, of Python's types.

    Parameters
    ----------
    column : Series or ndarray
        One column of the table.

    Returns
    -------
    list
    """
    return column.to_list() if hasattr(column, "to_list") else column.tolist()


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or pandas' NA or NaT.

    Parameters
    ----------
    value : object
        Of a cell.

    Returns
    -------
    bool
    """
    return value is None or type(value).__name__ in NO_VALUE or value != value


def is_numeric(dtype: Any, seen: list) -> bool:
    """Whether a column holds numbers.

    Parameters
    ----------
    dtype : dtype of NumPy, pandas or polars
        Of the column.
    seen : list
        Its observed values.

    Returns
    -------
    bool
    """
    if hasattr(dtype, "is_numeric"):  # polars
        return dtype.is_numeric()
    if getattr(dtype, "kind", "O") != "O" or hasattr(dtype, "categories"):
        return dtype.kind in "iufc"
    return all(
        isinstance(v, Real) and not isinstance(v, (bool, np.bool_)) for v in seen
    )


def label(X: Any, k: int) -> str:
    """How errors name a column.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    k : int
        Its position.

    Returns
    -------
    str
    """
    names = getattr(X, "columns", None)
    return f"column {k}" + ("" if names is None else f" ({list(names)[k]!r})")


def sorted_levels(column: Any, seen: list, where: str) -> tuple:
    """In pandas' order of categories, or sorted.

    Parameters
    ----------
    column : Series or ndarray
        One column of the table.
    seen : list
        Its observed values.
    where : str
        How an error names the column.

    Returns
    -------
    tuple
    """
    for value in seen:
        if not isinstance(value, (str, Real, np.bool_)):
            raise TypeError(
                f"X holds {value!r} in {where}, which is neither a number nor a "
                "category (text, boolean, number); convert the column or leave it out."
            )
    present = set(seen)
    categories = getattr(column.dtype, "categories", None)
    if categories is not None:
        return tuple(c for c in categories if c in present)
    return tuple(sorted(present, key=lambda v: (isinstance(v, str), v)))


def codes(values: Sequence, levels: tuple) -> np.ndarray:
    """Positions among the levels, NaN where a value is none of them.

    Parameters
    ----------
    values : sequence
        Of a column.
    levels : tuple
        Lowest first, or the categories.

    Returns
    -------
    ndarray of shape (n_values,)
    """
    place = {level: float(code) for code, level in enumerate(levels)}
    return np.array([place.get(v, np.nan) for v in values], float)


def position_of(X: Any, column: Any, parameter: str) -> int:
    """The position of a column that a parameter names.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    column : str or int
        Name or position.
    parameter : str
        Whose value it is, for the error.

    Returns
    -------
    int
    """
    names = list(getattr(X, "columns", ()))
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and 0 <= column < X.shape[1]:
        return int(column)
    raise ValueError(
        f"{parameter} names column {column!r}, but X has "
        f"{names or f'{X.shape[1]} columns'}; give names or positions."
    )


def filled(X: Any, new: dict[int, Any], missing: np.ndarray, kinds: list) -> Any:
    """A copy of ``X`` with new values where cells are missing, by columns.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    new : dict of int to sequence
        Position of a column -> values of its missing cells, from the top.
    missing : bool ndarray of shape (n_rows, n_cols)
        True where a cell is missing.
    kinds : list of str or None
        Of the columns.

    Returns
    -------
    DataFrame or ndarray
        As ``X``.
    """
    if not hasattr(X, "columns"):
        X = X.copy()
        for k, values in new.items():
            X[missing[:, k], k] = values
        numbers = X.dtype.kind == "O" and set(kinds) == {"numeric"}
        return X.astype(float) if numbers else X
    made = {}
    for k, values in new.items():
        column = _safe_indexing(X, k, axis=1)
        whole = np.array(to_list(column), dtype=object)
        whole[missing[:, k]] = values
        made[k] = _like(column, whole.tolist(), kinds[k] == "numeric")
    if hasattr(X, "with_columns"):  # polars
        return X.with_columns(list(made.values()))
    X = X.copy()
    for k, column in made.items():
        X.isetitem(k, column)
    return X


def _like(column: Any, values: list, numeric: bool) -> Any:
    """A Series of new values, and of the old one's dtype if that can hold them."""
    cls, dtype = type(column), column.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        if dtype.is_numeric() and not dtype.is_float():
            dtype = None
        return cls(column.name, values, dtype=dtype, strict=False)
    if numeric and dtype.kind in "iu":
        dtype = "Float64"
    elif numeric and dtype.kind == "O":
        dtype = float
    return cls(values, index=column.index, name=column.name, dtype=dtype)
