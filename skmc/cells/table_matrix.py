"""The matrix that represents a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skmc.cells.like_observed import LikeObserved
from skmc.cells.one_hot import Calibration, OneHot


@dataclass(frozen=True, eq=False)
class Layout:
    """What one cell of a table is in a matrix: its columns, and its bounds.

    Parameters
    ----------
    first_columns : int ndarray of shape (n_cols,)
        For each column, the first one that represents the same cell of the table. The
        columns of a category are missing together, so that a held-out
        cell cannot be read from another of its columns.
    bounds : LikeObserved or None, default=None
        Bounds of the columns, in which draws are truncated.
    categories : sequence of (int ndarray, OneHot), default=()
        Columns of the matrix of each category.
    """

    first_columns: np.ndarray
    bounds: LikeObserved | None = None
    categories: Sequence[tuple[np.ndarray, OneHot]] = ()

    @property
    def measured_columns(self) -> np.ndarray:
        """Columns whose values have distances: all but those of categories."""
        of_categories = [columns for columns, _ in self.categories]
        places = np.arange(len(self.first_columns))
        return np.setdiff1d(places, np.concatenate([*of_categories, []]))

    def calibrated(
        self,
        matrix: np.ndarray,  # (n_rows, n_cols)
        calibrations: Sequence[Calibration] | None = None,
    ) -> np.ndarray:  # (n_rows, n_cols)
        """Replace the scores of categories by probabilities."""
        calibrated = matrix.copy()
        for number, (columns, category) in enumerate(self.categories):
            proba = category.probabilities(matrix[:, columns])
            if calibrations is not None:
                proba = calibrations[number].apply(proba, category.shares)
            calibrated[:, columns] = category.represent(proba)
        return calibrated


@dataclass(frozen=True, eq=False)
class TableMatrix:
    """A matrix that represents a table, which `fit` takes as any other container.

    Parameters
    ----------
    cells : ndarray of shape (n_rows, n_cols)
        NaN where a cell is missing.
    layout : Layout or None
        The cells of the table. None if the matrix represents no table.
    """

    cells: np.ndarray
    layout: Layout | None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.cells.shape[0], self.cells.shape[1]

    def __len__(self) -> int:
        return len(self.cells)

    def to_cells(self) -> np.ndarray:  # (n_rows, n_cols)
        """Return the matrix."""
        return self.cells


def layout_of(X: object) -> Layout | None:
    """Find what the cells of a container are in a table."""
    return getattr(X, "layout", None) if hasattr(X, "to_cells") else None
