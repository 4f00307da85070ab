"""Errors of completed cells of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skmc import patterns
from skmc.base import HIDDEN_TO_SCORE
from skmc.cells import in_order_of
from skmc.tables.frames import as_table
from skmc.tables.source import Source
from skmc.tables.table import Table

Complete = Callable[[np.ndarray], np.ndarray]


def errors(source: Source, y: Any, complete: Complete) -> np.ndarray:
    """Compare completed cells with the truth."""
    table, numbers = source.table, source.numbers
    if y is None or np.ndim(y) == 1:
        truth = numbers
        hidden = patterns.per_row(truth, HIDDEN_TO_SCORE, random_state=0)
        problem = "no row with two observed cells, one of which to hide; pass the truth"
    else:
        y = as_table(in_order_of(y, source.X, "y"))
        if y.shape != source.X.shape:
            raise ValueError(f"y has shape {y.shape}, X has {source.X.shape}.")
        truth, _ = table.read(y)
        hidden = source.missing & ~np.isnan(truth)
        problem = "no missing cell that y knows"
    if not hidden.any():
        raise ValueError(f"X has {problem}.")
    given = table.encode(np.where(hidden, np.nan, numbers))
    guess = table.decode(complete(given))
    return np.where(hidden, errors_of(table, guess, truth), np.nan)


def errors_of(
    table: Table,
    guess: np.ndarray,  # (n_rows, n_columns)
    truth: np.ndarray,  # (n_rows, n_columns)
) -> np.ndarray:  # (n_rows, n_columns)
    """Compare cells with the truth."""
    of_cells = np.full(truth.shape, np.nan)
    for k, column in table.used:
        of_cells[:, k] = column.error(guess[:, k], truth[:, k])
    return of_cells
