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
        weights: np.ndarray | None = None,  # (n_rows, n_columns)
        **choices: Any,
    ) -> Table:
        """Describe each column by its observed cells."""
        rules, marks = Rules.of(X, **choices), marks_of_columns(missing_values)
        columns: list[Any] = []
        left, problems = {}, []
        raws = raw_columns(X, marks, weights)
        for k, raw in enumerate(raws):
            try:
                column, reason = rules.column(raw, k)
            except CannotComplete as problem:
                problems.append(str(problem))
                continue
            columns.append(column)
            if column and (wrong := rules.wrong_bound(raw, k, column.kind)):
                problems.append(wrong)
            if reason:
                left[k] = reason
        if problems:
            raise ValueError(f"X cannot be completed: {'; and '.join(problems)}.")
        if cls(columns, left).only_numbers:  # the completer scales these
            columns = [
                replace(c, mean=0.0, deviation=1.0) if _is_numeric(c) else c
                for c in columns
            ]
        ends = zip(rules.low.tolist(), rules.high.tolist(), strict=True)
        limits = {k: own for k, own in enumerate(ends) if _is_numeric(columns[k])}
        limits |= {k: c.ends for k, c in enumerate(columns) if isinstance(c, Dates)}
        types = {}
        if hasattr(X, "columns"):
            types = {k: ColumnType.of(raw.dtype) for k, raw in enumerate(raws)}
        return cls(columns, left, marks, limits, types)

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
        """Positions of columns without an observed cell."""
        return [k for k, reason in self.left.items() if reason == NO_CELL]

    def kept_columns(self, keep_empty_features: bool) -> list[int]:
        """List the columns that a completer returns."""
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
        """Read a table."""
        numbers = np.full(X.shape, np.nan)
        missing = np.zeros(X.shape, bool)
        raws = raw_columns(X, self.marks)
        for k, column in self.used:
            numbers[:, k] = column.read(raws[k])
            missing[:, k] = raws[k].missing & column.fills(raws[k])
        return numbers, missing

    def encode(
        self,
        numbers: np.ndarray,  # (n_rows, n_columns)
    ) -> np.ndarray:  # (n_rows, n_matrix_columns)
        """Represent the table by a matrix."""
        return np.hstack([column.encode(numbers[:, k]) for k, column in self.used])

    def blocks(
        self,
        matrix: np.ndarray,  # (n_rows, n_matrix_columns)
    ) -> Iterator[tuple[int, Column, np.ndarray]]:
        """Divide a matrix into the parts that represent one column each."""
        start = 0
        for k, column in self.used:
            yield k, column, matrix[:, start : start + column.width]
            start += column.width

    def decode(
        self,
        matrix: np.ndarray,  # (n_rows, n_matrix_columns)
    ) -> np.ndarray:  # (n_rows, n_columns)
        """Recover the table from a completed matrix."""
        numbers = np.full((len(matrix), len(self.columns)), np.nan)
        for k, column, block in self.blocks(matrix):
            numbers[:, k] = column.decode(block)
        return numbers

    def numbers(
        self,
        matrix: np.ndarray,  # (n_rows, n_matrix_columns)
    ) -> np.ndarray:  # (n_rows, n_columns)
        """Recover the columns of numbers, with NaN in all others."""
        return np.where(self.numeric, self.decode(matrix), np.nan)

    def write(
        self,
        X: Container,
        numbers: np.ndarray,  # (n_rows, n_columns)
        missing: np.ndarray,  # (n_rows, n_columns)
    ) -> Any:
        """Copy a table and fill its missing cells."""
        new = {
            k: column.restore(numbers[missing[:, k], k])
            for k, column in self.used
            if missing[:, k].any()
        }
        return filled(X, new, missing, self.kinds, self.types)


def _is_numeric(column: Column | None) -> bool:
    return column is not None and column.kind == "numeric"
