"""Reading of tables by completers: columns and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skmc.base import CHOICES, Estimator, read_row_weights, read_weights
from skmc.cells import Container, Entries
from skmc.tables.frames import as_table, marks_of_columns, raw_columns
from skmc.tables.table import Table


def table_for(
    completer: Any,
    X: Container,
    weights: np.ndarray | None = None,  # (n_rows, n_columns)
) -> Table:
    """Describe a table as a completer reads it."""
    if isinstance(completer, Estimator):
        choices = completer._choices(X)
    else:  # another imputer
        given = {} if completer is None else completer.get_params(deep=False)
        choices = {name: given[name] for name in CHOICES if name in given}
    choices["like_observed"] = choices.get("like_observed") is not False
    return Table.of(X, weights=weights, **choices)


def read_table_weights(
    X: Container, cell_weight: Container | None, missing_values: object
) -> np.ndarray | None:
    """Read the weights of the cells of a table."""
    if cell_weight is None and isinstance(X, Entries):
        cell_weight = X.weights
    if cell_weight is None:
        return None
    raws = raw_columns(as_table(X), marks_of_columns(missing_values))
    observed = ~np.stack([raw.missing for raw in raws], 1)
    rows, cols = np.nonzero(observed)
    weights = np.zeros(observed.shape)
    weights[rows, cols] = read_weights(cell_weight, X, rows, cols, observed.shape)
    return weights


def weights_of_table_rows(
    X: Any,
    sample_weight: ArrayLike,  # (n_rows,)
) -> np.ndarray:  # (n_rows, n_columns)
    """Read the weights of rows, and repeat them in all columns."""
    rows = read_row_weights(sample_weight, X, len(X))
    return np.repeat(rows[:, None], X.shape[1], 1)


def matrix_weights(
    table: Table,
    weights: np.ndarray,  # (n_rows, n_columns)
) -> np.ndarray:  # (n_rows, n_matrix_columns)
    """Convert the weights of a table to those of the matrix that represents it."""
    repeated = [k for k, column in table.used for _ in range(column.width)]
    return weights[:, repeated]
