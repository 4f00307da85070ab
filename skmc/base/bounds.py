"""Bounds of the values of completed cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any

import numpy as np

from skmc.base.completer import BaseCompleter
from skmc.cells import Container, Given, LikeObserved

# A number for all columns, by name, or for each column.
Values = Annotated[Sequence[Any] | np.ndarray, "array-like"]
Limits = float | Mapping[Any, Any] | Values | None


class TakesBounds(BaseCompleter):
    """Base class of completers of tables, whose completions and draws can be bounded.

    Completions are clipped. Draws are truncated: `sample` draws cells outside of the
    bounds again.

    Parameters
    ----------
    min_value : float, array-like, dict or None, default=None
        Smallest value of completed cells and of draws: one for all columns, one for
        each, or by name or position. None, NaN and columns that a dict does not list
        have no bound. Try 0 for amounts and counts. Completions are clipped, and draws
        are from the distribution between the bounds.
    max_value : as min_value, default=None
        Largest value, at least ``min_value``.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.
    """

    _: KW_ONLY
    min_value: Limits = None
    max_value: Limits = None

    def _given(self, X: Container, known: Mapping[str, Any]) -> Given:
        given = super()._given(X, known)
        self._bounds_of(given.statistics.shape[1])  # raises an error
        return given

    def _bounds_of(self, n_cols: int) -> LikeObserved | None:
        names = getattr(self, "feature_names_in_", ())
        low, high = bounds_of(self.min_value, self.max_value, names, n_cols)
        if np.isnan(low).all() and np.isnan(high).all():
            return None
        return LikeObserved.within(low, high)


def bounds_of(
    min_value: Limits,  # (n_cols,)
    max_value: Limits,  # (n_cols,)
    names: Sequence[Any],
    n_cols: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Read the bounds of each column."""
    low = limits_of(min_value, "min_value", names, n_cols)
    high = limits_of(max_value, "max_value", names, n_cols)
    if (low > high).any():
        k = int((low > high).argmax())
        name = f"column {k}" + (f" ({names[k]!r})" if len(names) else "")
        raise ValueError(
            f"min_value={low[k]:g} of {name} is above max_value={high[k]:g}; exchange "
            "or correct them."
        )
    return low, high


def limits_of(
    given: Limits,  # (n_cols,)
    parameter: str,
    names: Sequence[Any],
    n_cols: int,
) -> np.ndarray:  # (n_cols,)
    """Read a number for each column."""
    of_columns = np.full(n_cols, np.nan)
    if given is None:
        return of_columns
    by_column = given if isinstance(given, Mapping) else {}
    try:
        if isinstance(given, Mapping):
            limits = np.array([*given.values()], float)
        else:
            limits = np.asarray(given, float)
    except (TypeError, ValueError) as problem:
        raise ValueError(
            f"{parameter}={given!r} must have numbers; give NaN, or no entry in a dict,"
            " to columns without a bound."
        ) from problem
    if by_column:
        places = [position_of(column, parameter, names, n_cols) for column in by_column]
        of_columns[places] = limits
    elif limits.shape in ((), (n_cols,)):
        of_columns[:] = limits
    elif not isinstance(given, Mapping):
        raise ValueError(
            f"{parameter} has shape {limits.shape}, but X has {n_cols} columns; give "
            "one number, one for each column, or a dict by name."
        )
    return of_columns


def position_of(column: Any, parameter: str, names: Sequence[Any], n_cols: int) -> int:
    """Find the position of a column that a parameter names."""
    names = list(names)
    if isinstance(column, (str, tuple)) and column in names:
        return names.index(column)
    number = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
    if number and 0 <= column < n_cols:
        return int(column)
    raise ValueError(
        f"{parameter} names column {column!r}, but X has "
        f"{names or f'{n_cols} columns'}; pass names or positions."
    )
