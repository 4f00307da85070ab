"""A table as a matrix, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skmc.cells import Container, Layout, LikeObserved
from skmc.tables.column import Column
from skmc.tables.column_type import ColumnType
from skmc.tables.dates import Dates
from skmc.tables.frames import AnyMarks, filled, marks_of_columns, raw_columns
from skmc.tables.kinds import NO_CELL, CannotComplete, Rules
from skmc.tables.levels import Categorical
from skmc.tables.numbers import Numeric


@dataclass(frozen=True)
class Table:
    """Descriptions of the columns of a table that a matrix represents.

    Parameters
    ----------
    columns : list of Column or None
        Description of each column; None for columns that are not completed.
    left : dict of int to str
        Reasons why columns are not completed, by position; columns that the caller
        chose are not included.
    marks : tuple, or mapping of column to tuple, default=()
        Values that mark missing cells.
    limits : dict of int to tuple of float, default={}
        Bounds of columns of numbers and dates that the caller has chosen, by position.
    types : dict of int to ColumnType, default={}
        Types of the columns of a data frame, by position.
    """

    columns: list[Column | None]
    left: dict[int, str]
    marks: AnyMarks = ()
    limits: dict[int, tuple[float, float]] = field(default_factory=dict)
    types: dict[int, ColumnType] = field(default_factory=dict)

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
            Result of `as_table`.
        missing_values : object or sequence of objects, default=()
            Values that mark missing cells.
        weights : ndarray of shape (n_rows, n_columns) or None, default=None
            Weight of each cell in the statistics; 0 hides it. Kinds of columns
            do not depend on weights above 0.
        **choices : object
            Parameters of `Rules.of`.

        Returns
        -------
        Table

        Raises
        ------
        ValueError
            Some columns cannot be completed.
        """
        rules, marks = Rules.of(X, **choices), marks_of_columns(missing_values)
        found: list[Any] = []
        left, problems = {}, []
        raws = raw_columns(X, marks, weights)
        for k, raw in enumerate(raws):
            try:
                column, reason = rules.column(raw, k)
            except CannotComplete as problem:
                problems.append(str(problem))
                continue
            found.append(column)
            if column and (wrong := rules.wrong_bound(raw, k, column.kind)):
                problems.append(wrong)
            if reason:
                left[k] = reason
        if problems:
            raise ValueError(f"X cannot be completed: {'; and '.join(problems)}.")
        if cls(found, left).only_numbers:  # the completer scales these
            found = [
                replace(c, mean=0.0, deviation=1.0) if _is_numeric(c) else c
                for c in found
            ]
        ends = zip(rules.low.tolist(), rules.high.tolist(), strict=True)
        limits = {k: own for k, own in enumerate(ends) if _is_numeric(found[k])}
        limits |= {k: c.ends for k, c in enumerate(found) if isinstance(c, Dates)}
        types = {}
        if hasattr(X, "columns"):
            types = {k: ColumnType.of(raw.dtype) for k, raw in enumerate(raws)}
        return cls(found, left, marks, limits, types)

    @property
    def bounds(self) -> LikeObserved | None:
        """Bounds of the columns of the matrix in which draws are truncated.

        Values that are rounded to the bound are within it. None if there are none.
        """
        low, high = [], []
        for k, column in self.used:
            ends = self.limits.get(k, (np.nan, np.nan))
            if isinstance(column, Numeric):
                ends = column.standardized(*ends)
            low += [ends[0]] * column.width
            high += [ends[1]] * column.width
        if np.isnan([*low, *high]).all():
            return None
        return LikeObserved.within(np.array(low), np.array(high))

    @property
    def used(self) -> list[tuple[int, Column]]:
        """The columns that are completed, with their positions."""
        return [(k, c) for k, c in enumerate(self.columns) if c is not None]

    @property
    def kinds(self) -> list[str | None]:
        """The kind of each column, None for columns that are not completed."""
        return [None if column is None else column.kind for column in self.columns]

    @property
    def only_numbers(self) -> bool:
        """Whether all completed columns hold numbers."""
        return set(self.kinds) <= {"numeric", None}

    @property
    def numeric(self) -> np.ndarray:
        """Mask of the columns that hold numbers."""
        return np.array([kind == "numeric" for kind in self.kinds])

    @property
    def measured(self) -> np.ndarray:
        """Mask of the columns whose values have distances: all but categories."""
        return np.array([kind not in ("categorical", None) for kind in self.kinds])

    @property
    def empty(self) -> list[int]:
        """Positions of columns without an observed cell, of which nothing is known."""
        return [k for k, reason in self.left.items() if reason == NO_CELL]

    def kept_columns(self, keep_empty_features: bool) -> list[int]:
        """List the columns that a completer returns.

        Parameters
        ----------
        keep_empty_features : bool
            Whether empty columns are kept.

        Returns
        -------
        list of int
            Positions of the columns.
        """
        dropped = [] if keep_empty_features else self.empty
        return [k for k in range(len(self.columns)) if k not in dropped]

    @property
    def layout(self) -> Layout:
        """What the columns of the table are in the matrix."""
        widths = [column.width for _, column in self.used]
        place = np.arange(sum(widths))
        categories = [
            (block[0], column)
            for _, column, block in self.blocks(place[None])
            if isinstance(column, Categorical)
        ]
        first = np.repeat(np.cumsum([0, *widths[:-1]]), widths)
        return Layout(first, self.bounds, categories)

    def read(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Read a table.

        Parameters
        ----------
        X : DataFrame or ndarray
            Result of `as_table`.

        Returns
        -------
        numbers : ndarray of shape (n_rows, n_columns)
            Numbers and positions of levels, NaN where missing or unknown.
        missing : bool ndarray of shape (n_rows, n_columns)
            Cells to complete; False in columns that are not completed.
        """
        numbers = np.full(X.shape, np.nan)
        missing = np.zeros(X.shape, bool)
        raws = raw_columns(X, self.marks)
        for k, column in self.used:
            numbers[:, k] = column.read(raws[k])
            missing[:, k] = raws[k].missing & column.fills(raws[k])
        return numbers, missing

    def encode(self, numbers: np.ndarray) -> np.ndarray:
        """Represent the table by a matrix.

        Parameters
        ----------
        numbers : ndarray of shape (n_rows, n_columns)
            Result of `read`.

        Returns
        -------
        ndarray of shape (n_rows, n_matrix_columns)
            Matrix; a table of numbers alone is not changed.
        """
        return np.hstack([column.encode(numbers[:, k]) for k, column in self.used])

    def blocks(self, matrix: np.ndarray) -> Iterator[tuple[int, Column, np.ndarray]]:
        """Divide a matrix into the parts that represent one column each.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_matrix_columns)
            Matrix, whose further columns are ignored.

        Yields
        ------
        k : int
            Position of the column.
        column : Column
            Description of the column.
        block : ndarray of shape (n_rows, width)
            Columns of the matrix that represent it.
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
            Completed matrix, whose further columns are ignored.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Numbers and positions; NaN in columns that are not completed.
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
            Completed matrix.

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
            Result of `as_table`.
        numbers : ndarray of shape (n_rows, n_columns)
            Completed table, from `decode`.
        missing : bool ndarray of shape (n_rows, n_columns)
            Mask of the missing cells, from `read`.

        Returns
        -------
        DataFrame or ndarray
            Table of the type of ``X``.
        """
        new = {
            k: column.restore(numbers[missing[:, k], k])
            for k, column in self.used
            if missing[:, k].any()
        }
        return filled(X, new, missing, self.kinds, self.types)


def _is_numeric(column: Column | None) -> bool:
    return column is not None and column.kind == "numeric"
