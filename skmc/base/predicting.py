"""Predictions of single cells, by positions or by identifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skmc.base.identifiers import positions
from skmc.base.lazy import is_lazy, lazy_entries
from skmc.blocks import tables_of
from skmc.cells import Entries, StoredEntries, check_positions

if TYPE_CHECKING:
    from skmc.base.completer import BaseCompleter


def cells_at(completer: BaseCompleter, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
    """Predict single cells, see `BaseCompleter.predict_entries`.

    Parameters
    ----------
    completer : BaseCompleter
        Fitted.
    rows, cols : array-like of shape (n_cells,)
        Positions or identifiers.

    Returns
    -------
    ndarray of shape (n_cells,)
    """
    if is_lazy(rows):
        later: np.ndarray = lazy_entries(completer, rows, cols)
        return later
    if np.ndim(rows) == 0:
        rows = np.full(np.shape(cols), rows)
    if np.ndim(cols) == 0:
        cols = np.full(np.shape(rows), cols)
    priors, fitted = completer._priors, completer._fitted
    if priors.ids is None:
        return fitted.at(*check_positions(rows, cols, priors.shape))
    if np.shape(rows) != np.shape(cols) or np.ndim(rows) != 1:
        raise ValueError(
            "rows and cols must be one-dimensional and of equal length, got "
            f"shapes {np.shape(rows)} and {np.shape(cols)}."
        )
    i = positions(priors.ids[0], rows, "rows")
    j = positions(priors.ids[1], cols, "cols")
    values = np.where(i < 0, priors.col_means[j], priors.row_means[i])
    values[(i < 0) & (j < 0)] = priors.mean
    known = (i >= 0) & (j >= 0)
    values[known] = fitted.at(i[known], j[known])
    return values


def score_of_cells(completer: BaseCompleter, X: Entries | StoredEntries) -> float:
    """Compare cells with the model's values, see `BaseCompleter.score`.

    Parameters
    ----------
    completer : BaseCompleter
        Fitted.
    X : Entries or StoredEntries
        The cells. Those that are not in memory are read once.

    Returns
    -------
    float
    """
    parts: Any
    if not isinstance(X, Entries):
        tables = tables_of(X.source, X.columns[:3])
        parts = (
            [table[name].to_numpy() for name in table.column_names]
            for table in tables
            if len(table)
        )
    else:
        cells: Entries = X[X.values != completer.missing_values]
        if not len(cells) or cells.matrix_shape != completer._shape:
            raise ValueError(
                f"X is {cells!r}; score needs cells of the fitted matrix, which has "
                f"shape {completer._shape}."
            )
        parts = [(cells.rows, cells.cols, cells.values)]
    low, high = completer.data_range_
    total, count = 0.0, 0
    for rows, cols, values in parts:
        guess = completer.predict_entries(rows, cols)
        total += float(np.abs(guess - values).sum())
        count += len(values)
        low, high = min(low, values.min()), max(high, values.max())
    if not count:
        raise ValueError(f"{X!r} has no cells.")
    return -total / count / ((high - low) or 1.0)
