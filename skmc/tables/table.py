"""A table as a matrix, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from skmc.base import BaseCompleter
from skmc.cells import Container
from skmc.tables.column import Column
from skmc.tables.frames import filled, raw_columns
from skmc.tables.kinds import NO_CELL, CannotComplete, Rules
from skmc.tables.raw_column import Marks, marks_of


@dataclass(frozen=True)
class Table:
    """The columns of a table, which a matrix represents.

    Parameters
    ----------
    columns : list of Column or None
        None for columns that are left as they are.
    left : dict of int to str
        Why columns are left as they are, by position; those that the caller chose are
        not among them.
    marks : tuple, default=()
        Values that mark missing cells.
    """

    columns: list[Column | None]
    left: dict[int, str]
    marks: Marks = ()

    @classmethod
    def of(
        cls,
        X: Container,
        *,
        missing_values: object = (),
        weights: np.ndarray | None = None,
        **choices: Any,
    ) -> Table:
        """Describe each column by its observed cells.

        Parameters
        ----------
        X : DataFrame or ndarray
            What `as_table` returns.
        missing_values : object or sequence of objects, default=()
            Values that mark missing cells.
        weights : ndarray of shape (n_rows, n_columns) or None, default=None
            How often each cell counts in the statistics; 0 hides it. Kinds of columns
            do not depend on weights above 0.
        **choices : object
            As for `Rules.of`.

        Returns
        -------
        Table

        Raises
        ------
        ValueError
            Some columns cannot be completed.
        """
        rules, marks = Rules.of(X, **choices), marks_of(missing_values)
        found: list[Any] = []
        left, problems = {}, []
        for k, raw in enumerate(raw_columns(X, marks, weights)):
            try:
                column, reason = rules.column(raw, k)
            except CannotComplete as problem:
                problems.append(str(problem))
                continue
            found.append(column)
            if reason:
                left[k] = reason
        if problems:
            raise ValueError(f"X cannot be completed: {'; and '.join(problems)}.")
        if cls(found, left).only_numbers:  # which the completer scales
            found = [c and replace(c, mean=0.0, deviation=1.0) for c in found]
        return cls(found, left, marks)

    @property
    def used(self) -> list[tuple[int, Column]]:
        """The columns that are not left as they are, with their positions."""
        return [(k, c) for k, c in enumerate(self.columns) if c is not None]

    @property
    def kinds(self) -> list[str | None]:
        """The kind of each column, None for columns that are left as they are."""
        return [None if column is None else column.kind for column in self.columns]

    @property
    def only_numbers(self) -> bool:
        """Whether all columns that are not left as they are hold numbers."""
        return set(self.kinds) <= {"numeric", None}

    @property
    def numeric(self) -> np.ndarray:
        """Which columns hold numbers."""
        return np.array([kind == "numeric" for kind in self.kinds])

    @property
    def measured(self) -> np.ndarray:
        """Which columns hold values that have distances: all but categories."""
        return np.array([kind not in ("categorical", None) for kind in self.kinds])

    @property
    def empty(self) -> list[int]:
        """Columns that are left as they are because no cell is observed."""
        return [k for k, reason in self.left.items() if reason == NO_CELL]

    @property
    def first_columns(self) -> np.ndarray:
        """For each column of the matrix, the first that represents the same column."""
        widths = [column.width for _, column in self.used]
        return np.repeat(np.cumsum([0, *widths[:-1]]), widths)

    def completer_of(self, completer: BaseCompleter) -> Any:
        """Clone a completer for the matrix, which is standardized.

        Parameters
        ----------
        completer : completer
            Its ``scaling="auto"`` becomes None unless the table holds only numbers.

        Returns
        -------
        completer
            A `TakesTables` holds out the cells of a category together.
        """
        own = clone(completer)
        if hasattr(own, "_first_columns"):
            own._first_columns = self.first_columns
        if not self.only_numbers and own.get_params().get("scaling") == "auto":
            own.set_params(scaling=None)
        return own

    def read(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Read a table.

        Parameters
        ----------
        X : DataFrame or ndarray
            What `as_table` returns.

        Returns
        -------
        numbers : ndarray of shape (n_rows, n_columns)
            Numbers and positions of levels, NaN where missing or unknown.
        missing : bool ndarray of shape (n_rows, n_columns)
            Cells to complete; False in columns that are left as they are.
        """
        numbers = np.full(X.shape, np.nan)
        missing = np.zeros(X.shape, bool)
        raws = raw_columns(X, self.marks)
        for k, column in self.used:
            numbers[:, k], missing[:, k] = column.read(raws[k]), raws[k].missing
        return numbers, missing

    def encode(self, numbers: np.ndarray) -> np.ndarray:
        """Represent the table by a matrix.

        Parameters
        ----------
        numbers : ndarray of shape (n_rows, n_columns)
            As `read` returns them.

        Returns
        -------
        ndarray of shape (n_rows, n_matrix_columns)
            A table of numbers alone stays as it is.
        """
        return np.hstack([column.encode(numbers[:, k]) for k, column in self.used])

    def blocks(self, matrix: np.ndarray) -> Iterator[tuple[int, Column, np.ndarray]]:
        """Divide a matrix into the parts that represent one column each.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_matrix_columns)
            Further columns are left out.

        Yields
        ------
        k : int
            Position of the column.
        column : Column
            The column.
        block : ndarray of shape (n_rows, width)
            The part.
        """
        start = 0
        for k, column in self.used:
            yield k, column, matrix[:, start : start + column.width]
            start += column.width

    def decode(self, matrix: np.ndarray) -> np.ndarray:
        """Recover the table from a completed matrix.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_matrix_columns)
            Further columns are left out.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Numbers and positions; NaN in columns that are left as they are.
        """
        numbers = np.full((len(matrix), len(self.columns)), np.nan)
        for k, column, block in self.blocks(matrix):
            numbers[:, k] = column.decode(block)
        return numbers

    def numbers(self, matrix: np.ndarray) -> np.ndarray:
        """Recover the columns of numbers, with NaN in all others.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_matrix_columns)
            A completed matrix.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
        """
        return np.where(self.numeric, self.decode(matrix), np.nan)

    def write(self, X: Container, numbers: np.ndarray, missing: np.ndarray) -> Any:
        """Copy a table and fill its missing cells.

        Parameters
        ----------
        X : DataFrame or ndarray
            What `as_table` returns.
        numbers : ndarray of shape (n_rows, n_columns)
            The completed table, as `decode` returns it.
        missing : bool ndarray of shape (n_rows, n_columns)
            As `read` returns it.

        Returns
        -------
        DataFrame or ndarray
            Of the type of ``X``.
        """
        new = {
            k: column.restore(numbers[missing[:, k], k])
            for k, column in self.used
            if missing[:, k].any()
        }
        return filled(X, new, missing, self.kinds)
