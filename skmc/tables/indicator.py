"""Columns that say which cells of a table were missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from skmc.base import missing_indicator
from skmc.tables.frames import AnyMarks, raw_columns


def indicator_for(X: Any, marks: AnyMarks = ()) -> Any:
    """Make an indicator of the columns in which cells are missing.

    Parameters
    ----------
    X : DataFrame or ndarray
        Table of the fit.
    marks : tuple, default=()
        Values that mark missing cells.

    Returns
    -------
    sklearn.impute.MissingIndicator
    """
    names = getattr(X, "columns", ())
    return missing_indicator(np.asarray(missing_cells(X, marks).any(0)), names)


def with_indicator(
    completed: Any, X: Any, indicator: Any, names: Any, marks: AnyMarks = ()
) -> Any:
    """Append the columns of an indicator to a completed table.

    Parameters
    ----------
    completed : DataFrame or ndarray
        Completed table.
    X : DataFrame or ndarray
        The table with its missing cells.
    indicator : sklearn.impute.MissingIndicator
        Result of `indicator_for` for the table of the fit.
    names : ndarray of str
        Names of the columns of ``X``.
    marks : tuple, default=()
        Values that mark missing cells.

    Returns
    -------
    DataFrame or ndarray
        Columns of bool in a DataFrame.
    """
    flags = indicator.transform(np.where(missing_cells(X, marks), np.nan, 0.0))
    if not hasattr(completed, "columns"):
        return np.hstack([completed, flags.astype(completed.dtype)])
    columns = dict(zip(indicator.get_feature_names_out(names), flags.T, strict=True))
    if hasattr(completed, "with_columns"):  # polars
        return completed.with_columns(**columns)
    return completed.assign(**columns)


def missing_cells(X: Any, marks: AnyMarks = ()) -> np.ndarray:
    """Find the missing cells of a table.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    marks : tuple, default=()
        Values that mark missing cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
    """
    return np.stack([raw.missing for raw in raw_columns(X, marks)], 1)
