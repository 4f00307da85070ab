"""Fits to some cells of a table, and their errors on others.

The observed cells of a table are `Entries` of the numbers of its `Source`. They exclude
cells whose values are missing for a completer, such as rare categories, and columns
that are not completed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skmc.base import Estimator
from skmc.cells import Container, Entries
from skmc.tables.fit_arguments import table_for
from skmc.tables.frames import as_table, without
from skmc.tables.source import Source
from skmc.tables.table_errors import errors_of


def source_of(X: Container, completer: Estimator | None) -> Source:
    """Read a table."""
    X = as_table(X)
    return Source.of(table_for(completer, X), X)


def completed_by(
    completer: Any,
    source: Source,
    numbers: np.ndarray,  # (n_rows, n_columns)
) -> np.ndarray:  # (n_rows, n_columns)
    """Fit a completer to some cells of a table."""
    table = source.table
    completed = completer.fit_transform(_part(completer, source, numbers))
    if completed.shape != numbers.shape:
        raise ValueError(
            f"{type(completer).__name__} returned a table of shape {completed.shape} "
            f"for one of shape {numbers.shape}; set it to keep empty columns and to "
            "add no columns."
        )
    return table.read(completed)[0]


def _part(completer: Any, source: Source, numbers: np.ndarray) -> Any:
    """The table without hidden cells, which the completer is set to read alike."""
    kinds, left = source.table.kinds, source.table.left
    if hasattr(completer, "add_indicator"):
        completer.set_params(add_indicator=False)
    if reader := completer._reader() if isinstance(completer, Estimator) else None:
        categorical = [k for k, kind in enumerate(kinds) if kind == "categorical"]
        chosen = [k for k, kind in enumerate(kinds) if not (kind or k in left)]
        reader.set_params(
            categorical=categorical, passthrough=chosen, keep_empty_features=True
        )
    hidden = np.isnan(numbers) & np.array([kind is not None for kind in kinds])
    return without(source.X, hidden)


def drawn_by(
    completer: Any,
    source: Source,
    numbers: np.ndarray,  # (n_rows, n_columns)
    n_draws: int,
    seed: int,
) -> np.ndarray:  # (n_draws, n_rows, n_columns)
    """Fit a completer to some cells of a table, and draw the others."""
    table = source.table
    given = _part(completer, source, numbers)
    draws = completer.fit(given).sample(given, n_draws, seed)
    return np.stack([table.read(draw)[0] for draw in draws])


def cell_errors(
    source: Source,
    cells: Entries,
    found: np.ndarray,  # (n_cells,)
) -> np.ndarray:  # (n_cells,)
    """Compare values with those of some cells of a table."""
    guess = np.full(cells.matrix_shape, np.nan)
    guess[cells.rows, cells.cols] = found
    errors = errors_of(source.table, guess, source.numbers)
    return np.nan_to_num(errors[cells.rows, cells.cols], nan=1.0)
