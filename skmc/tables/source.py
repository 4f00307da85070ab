"""A table represented by a matrix, and predictions for its cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.cells import Container
from skmc.tables.frames import same_columns
from skmc.tables.levels import Categorical
from skmc.tables.table import Table


@dataclass(frozen=True, eq=False)
class Source:
    """A table that a matrix represents.

    Parameters
    ----------
    table : Table
        Description of the columns.
    X : DataFrame or ndarray
        Data of the table.
    numbers : ndarray of shape (n_rows, n_columns)
        Cells of the table, from `Table.read`.
    missing : bool ndarray of shape (n_rows, n_columns)
        Mask of the missing cells.
    """

    table: Table
    X: Any
    numbers: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, table: Table, X: Container) -> Source:
        """Read a table."""
        return cls(table, X, *table.read(X))

    @property
    def matrix(self) -> np.ndarray:
        """The matrix, NaN where a cell is missing."""
        return self.table.encode(self.numbers)

    @property
    def names(self) -> list[Any]:
        """Names of the columns; positions if there are no names."""
        return list(getattr(self.X, "columns", range(self.X.shape[1])))

    @property
    def categories(self) -> dict[Any, list[Any]]:
        """Categories of each column of categories."""
        return {
            self.names[k]: list(column.levels)
            for k, column in self.table.used
            if isinstance(column, Categorical)
        }

    def completed(
        self,
        numbers: np.ndarray,  # (n_rows, n_columns)
        *,
        only_measured: bool = False,
    ) -> Any:
        """Fill the missing cells for which there are numbers."""
        numbers = numbers.copy()
        for k, column in self.table.used:
            numbers[:, k] = column.rounded(numbers[:, k])
        fill = self.missing & ~np.isnan(numbers)
        if only_measured:
            fill &= self.table.measured
        return self.table.write(self.X, numbers, fill)

    def deviations(
        self,
        matrix: np.ndarray,  # (n_rows, n_matrix_columns)
    ) -> Any:
        """Return standard deviations of the cells, from those of the matrix."""
        deviations: list[Any] = [
            np.full(len(matrix), np.nan) for _ in self.table.columns
        ]
        for k, column, block in self.table.blocks(matrix):
            observed = ~self.missing[:, [k]]
            deviations[k] = column.deviations(np.where(observed, 0.0, block))
        return same_columns(self.X, deviations)

    def probabilities(
        self,
        matrix: np.ndarray,  # (n_rows, n_matrix_columns)
    ) -> dict[Any, np.ndarray]:  # (n_rows, n_categories)
        """Return the probabilities of the categories."""
        probabilities = {}
        for k, column, block in self.table.blocks(matrix):
            if isinstance(column, Categorical):
                codes = self.numbers[:, [k]]
                holds = codes == np.arange(column.width)
                sure = np.where(np.isnan(codes), np.nan, holds)
                guess = column.probabilities(block)
                probabilities[self.names[k]] = np.where(
                    self.missing[:, [k]], guess, sure
                )
        return probabilities
