"""Held-out cells of a category, and the probabilities that candidates give to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skmc.cells import Entries
from skmc.completers._mixtures import calibration
from skmc.tables import Calibration, Categorical, Table


@dataclass(frozen=True)
class HeldOutCategory:
    """Held-out cells of the columns that represent a category.

    Parameters
    ----------
    columns : int ndarray of shape (q,)
        Columns of the matrix.
    place : int ndarray of shape (n, q)
        Position of each cell among all held-out cells.
    proba : ndarray of shape (n, q, n_candidates)
        Probabilities that the candidates give to the categories.
    true : int ndarray of shape (n,)
        Positions of the true categories.
    category : Categorical
        The column of the table.
    """

    columns: np.ndarray
    place: np.ndarray
    proba: np.ndarray
    true: np.ndarray
    category: Categorical

    @classmethod
    def all_of(
        cls, table: Table, cells: Entries, residuals: np.ndarray
    ) -> list[HeldOutCategory]:
        """Find the cells of all categories of a table.

        ``residuals`` of shape (n_cells, n_candidates) are those of the numbers that the
        candidates predict.
        """
        return [
            cls._of(columns, category, cells, residuals)
            for columns, category in table.categories
        ]

    @classmethod
    def _of(
        cls,
        columns: np.ndarray,
        category: Categorical,
        cells: Entries,
        residuals: np.ndarray,
    ) -> HeldOutCategory:
        # The cells of a row in one part are sorted by column, and held out together.
        first = np.flatnonzero(cells.cols == columns[0])
        place = first[:, None] + np.arange(len(columns))
        truth = cells.values[place]
        proba = [
            category.probabilities(truth - residual)
            for residual in residuals[place].transpose(2, 0, 1)
        ]
        return cls(columns, place, np.stack(proba, 2), truth.argmax(1), category)

    @property
    def residuals(self) -> np.ndarray:
        """Residuals of the probabilities, in units of the matrix."""
        truth = self.true[:, None] == np.arange(len(self.columns))
        return (truth[..., None] - self.proba) / self.category.deviation

    @property
    def likelihood(self) -> np.ndarray:
        """Probabilities of the true category, and its share in the last column."""
        own = self.proba[np.arange(len(self.true)), self.true]
        return np.column_stack([own, self.category.shares[self.true]])

    def calibration(self, weights: np.ndarray) -> Calibration:
        """The calibration of the weighted probabilities."""
        return calibration(self.proba @ weights, self.true, self.category.shares)
