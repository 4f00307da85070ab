"""The observed cells of a table as samples."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from skmc.base import Estimator
from skmc.cells import Container, Entries
from skmc.tables.errors import errors_of
from skmc.tables.frames import as_table, without
from skmc.tables.reading import table_for
from skmc.tables.source import Source
from skmc.tables.takes_tables import TakesTables


class TableEntries(Entries):
    """Observed cells of a table, which can be held out like those of a matrix.

    They exclude cells whose values are missing for a completer, such as rare
    categories, and columns that are not completed.

    Attributes
    ----------
    source : Source
        Table. ``values`` are its numbers and the positions of its levels,
        categories and dates.
    """

    source: Source

    @classmethod
    def of(cls, X: Container, completer: Estimator | None) -> Self:
        """Read a table.

        Parameters
        ----------
        X : DataFrame, or container as for completers
            The table.
        completer : estimator or None
            Completer whose parameters determine how the table is read, as for
            `table_for`.

        Returns
        -------
        TableEntries
        """
        X = as_table(X)
        source = Source.of(table_for(completer, X), X)
        cells: Any = cls.of_matrix(source.numbers)
        cells.source = source
        return cells

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        if isinstance(part, TableEntries):
            part.source = self.source
        return part

    def to_table(self) -> Any:
        """Return the table with only these cells.

        Returns
        -------
        DataFrame or ndarray
            Table, in which columns that are not completed are unchanged.
        """
        hidden = np.zeros(self.matrix_shape, bool)
        hidden[:, [k for k, _ in self.source.table.used]] = True
        hidden[self.rows, self.cols] = False
        return without(self.source.X, hidden)

    def completed_by(self, completer: Any) -> np.ndarray:
        """Fit a completer to these cells.

        Parameters
        ----------
        completer : completer
            Completer of tables, which is not cloned. With fewer cells, columns of
            categories might not be recognized: the parameter ``categorical`` is set to
            them, and a `TakesTables` is fitted to the matrix that represents the table.
            Empty columns are kept.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The completed table as numbers and positions; NaN in columns that are not
            completed, and in cells that the completer has left missing.
        """
        table = self.source.table
        if isinstance(completer, TakesTables):
            inner, cells = table.completer_of(completer), self.to_cells()
            matrix = inner.fit_transform(table.encode(cells))
            return np.where(np.isnan(cells), table.decode(matrix), cells)
        if hasattr(completer, "categorical"):
            kinds = enumerate(table.kinds)
            categorical = [k for k, kind in kinds if kind == "categorical"]
            completer.set_params(categorical=categorical, keep_empty_features=True)
        completed = completer.fit_transform(self.to_table())
        if completed.shape != self.matrix_shape:
            raise ValueError(
                f"{type(completer).__name__} returned a table of shape "
                f"{completed.shape} for one of shape {self.matrix_shape}; set it to "
                "keep empty columns and to add no columns."
            )
        return table.read(completed)[0]

    def errors(self, found: np.ndarray) -> np.ndarray:
        """Compare predictions with the values of these cells.

        Parameters
        ----------
        found : ndarray of shape (n_cells,)
            Predicted numbers and positions; NaN counts as the largest error.

        Returns
        -------
        ndarray of shape (n_cells,)
            Errors as in `Column.error`; 1 at NaN.
        """
        guess = np.full(self.matrix_shape, np.nan)
        guess[self.rows, self.cols] = found
        errors = errors_of(self.source.table, guess, self.source.numbers)
        return np.nan_to_num(errors[self.rows, self.cols], nan=1.0)
