"""Columns that say which cells of a table were missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from skmc.base import missing_indicator
from skmc.tables.frames import AnyMarks, raw_columns


def indicator_for(X: Any, marks: AnyMarks = ()) -> Any:
    """Make an indicator of the columns in which cells are missing."""
    names = getattr(X, "columns", ())
    return missing_indicator(np.asarray(missing_cells(X, marks).any(0)), names)


def with_indicator(
    completed: Any, X: Any, indicator: Any, names: Any, marks: AnyMarks = ()
) -> Any:
    """Append the columns of an indicator to a completed table."""
    flags = indicator.transform(np.where(missing_cells(X, marks), np.nan, 0.0))
    if not hasattr(completed, "columns"):
        return np.hstack([completed, flags.astype(completed.dtype)])
    columns = dict(zip(indicator.get_feature_names_out(names), flags.T, strict=True))
    if hasattr(completed, "with_columns"):  # polars
        return completed.with_columns(**columns)
    return completed.assign(**columns)


def missing_cells(X: Any, marks: AnyMarks = ()) -> np.ndarray:  # (n_rows, n_cols)
    """Find the missing cells of a table."""
    return np.stack([raw.missing for raw in raw_columns(X, marks)], 1)
