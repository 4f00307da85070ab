"""Columns of tables: what they hold, as numbers and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array

from skmc.containers import to_cells

NO_VALUE = ("NAType", "NaTType")  # pandas', which must not be imported for this


@dataclass(frozen=True)
class Numeric:
    """A column of numbers, standardised."""

    kind: ClassVar[str] = "numeric"
    mean: float
    deviation: float
    span: float

    @classmethod
    def of(cls, values: np.ndarray) -> Numeric:
        span = float(values.max() - values.min()) or 1.0
        return cls(float(values.mean()), float(values.std()) or 1.0, span)

    @property
    def width(self) -> int:
        return 1

    def encode(self, values: np.ndarray) -> np.ndarray:
        return ((values - self.mean) / self.deviation)[:, None]

    def decode(self, block: np.ndarray) -> np.ndarray:
        return block[:, 0] * self.deviation + self.mean

    def error(self, guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return np.abs(guess - truth) / self.span


@dataclass(frozen=True)
class Ordinal:
    """A column of levels: their numbers, standardised."""

    kind: ClassVar[str] = "ordinal"
    levels: tuple
    mean: float
    deviation: float

    @classmethod
    def of(cls, codes: np.ndarray, levels: tuple) -> Ordinal:
        return cls(levels, float(codes.mean()), float(codes.std()) or 1.0)

    @property
    def width(self) -> int:
        return 1

    def encode(self, values: np.ndarray) -> np.ndarray:
        return ((values - self.mean) / self.deviation)[:, None]

    def decode(self, block: np.ndarray) -> np.ndarray:
        number = np.rint(block[:, 0] * self.deviation + self.mean)
        return number.clip(0, len(self.levels) - 1)

    def error(self, guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return np.abs(guess - truth) / max(len(self.levels) - 1, 1)


@dataclass(frozen=True)
class Categorical:
    """A column of categories: one-hot, less their shares, of total variance one."""

    kind: ClassVar[str] = "categorical"
    levels: tuple
    shares: np.ndarray
    deviation: float

    @classmethod
    def of(cls, codes: np.ndarray, levels: tuple) -> Categorical:
        shares = np.bincount(codes.astype(int), minlength=len(levels)) / len(codes)
        deviation = float((shares * (1 - shares)).sum()) ** 0.5
        return cls(levels, shares, deviation or 1.0)

    @property
    def width(self) -> int:
        return len(self.levels)

    def encode(self, values: np.ndarray) -> np.ndarray:
        block = (values[:, None] == np.arange(self.width)) - self.shares
        block[np.isnan(values)] = np.nan
        return block / self.deviation

    def decode(self, block: np.ndarray) -> np.ndarray:
        return (block * self.deviation + self.shares).argmax(1).astype(float)

    def error(self, guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return (guess != truth).astype(float)


Column = Numeric | Ordinal | Categorical


def as_table(X: Any) -> Any:
    """A DataFrame as it is; all else as an array, of objects unless of numbers."""
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
    return column.to_list() if hasattr(column, "to_list") else column.tolist()


def is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in NO_VALUE or value != value


def is_numeric(dtype: Any, seen: list) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return dtype.is_numeric()
    if getattr(dtype, "kind", "O") != "O" or hasattr(dtype, "categories"):
        return dtype.kind in "iufc"
    return all(
        isinstance(v, Real) and not isinstance(v, (bool, np.bool_)) for v in seen
    )


def label(X: Any, k: int) -> str:
    names = getattr(X, "columns", None)
    return f"column {k}" + ("" if names is None else f" ({list(names)[k]!r})")


def sorted_levels(column: Any, seen: list, where: str) -> tuple:
    """In pandas' order of categories, or sorted."""
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
    """Positions among the levels, NaN where a value is none of them."""
    place = {level: float(code) for code, level in enumerate(levels)}
    return np.array([place.get(v, np.nan) for v in values], float)


def position_of(X: Any, column: Any, parameter: str) -> int:
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
    """A copy of ``X`` with new values where cells are missing, by columns."""
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
