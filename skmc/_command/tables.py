"""Table files: the kinds of their columns, and how missing cells are filled."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skmc._command.failure import CommandError, UsageError

if TYPE_CHECKING:
    from skmc.base import BaseCompleter

LARGEST = np.sqrt(np.finfo(float).max)  # the square of a larger number overflows
DATE = re.compile(
    r"\d{4}[-/]\d{1,2}([-/]\d{1,2})?([T ].*)?"
    r"|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}( .*)?"
    r"|\d{1,2}:\d\d(:\d\d.*)?"
)
# A column with a larger share of different words holds names, not categories.
MAX_CATEGORY_SHARE = 0.8


@dataclass
class Column:
    """One column of a file.

    ``kind`` is "number", "whole" (numbers, all of them integers), "category", "level"
    (ordered ``levels``), or "kept": the column stays unchanged and is not learned from.
    """

    name: str
    kind: str
    values: list  # None where missing
    levels: tuple = ()

    @property
    def numeric(self) -> bool:
        return self.kind in ("number", "whole")

    @property
    def n_missing(self) -> int:
        return sum(value is None for value in self.values)


class TableFile(ABC):
    """A file with named columns, of which only the missing cells change."""

    columns: list[Column]

    def __init__(self, path: str, names: Sequence[str]):
        self.path = path
        self.names = list(names)
        self.warnings: list[str] = []
        self.changes: dict[int, list] = {}  # position of a column -> filled values

    @abstractmethod
    def place(self, k: int, i: int) -> str:
        """Name a row and a column for an error message."""

    @abstractmethod
    def column(self, k: int, values: list, categorical: bool) -> Column:
        """Describe a column that may be completed by its cells."""

    @abstractmethod
    def values(self, k: int) -> list:
        """The cells of a column, None where missing."""

    def describe(self, options: Namespace, index: Collection[int]) -> None:
        """Find out what the columns hold; those in ``index`` stay unchanged."""
        index = {*index, *self._chosen(options.index, "--index")}
        categorical = self._chosen(options.categorical, "--categorical")
        self.columns = []
        for k, name in enumerate(self.names):
            values = self.values(k)
            if k in index or all(value is None for value in values):
                self.columns.append(Column(name, "kept", values))
            else:
                self.columns.append(self.column(k, values, k in categorical))
        self.warnings += [
            f"{self.path}: column {c.name!r} has no observed cell and stays empty"
            for c in self.columns
            if c.n_missing == len(c.values)
        ]

    def _chosen(self, chosen: list[str], option: str) -> set[int]:
        for name in chosen:
            if name not in self.names:
                raise UsageError(
                    f"{option} {name}: no such column; the columns are "
                    f"{', '.join(self.names)}"
                )
        return {k for k, name in enumerate(self.names) if name in chosen}

    def numbers(self, k: int, kind: str, values: list) -> Column:
        """A column of numbers, all of which a completer can take."""
        for i, value in enumerate(values):
            if value is not None and abs(value) > LARGEST:
                what = "infinite" if np.isinf(value) else "too large to be squared"
                raise CommandError(
                    f"{self.place(k, i)}: {value:g} is {what}; empty that cell"
                )
        return Column(self.names[k], kind, values)

    def words(self, k: int, words: list) -> Column:
        """A column of categories; a column of dates or of names is kept."""
        seen = [word for word in words if word is not None]
        if all(isinstance(w, str) and DATE.fullmatch(w.strip()) for w in seen):
            return self.kept(k, words, "dates are not completed")
        if len(seen) > 2 and len(set(seen)) > MAX_CATEGORY_SHARE * len(seen):
            reason = "nearly all words of this column differ, so it cannot be inferred"
            return self.kept(k, words, reason)
        return Column(self.names[k], "category", words)

    def kept(self, k: int, values: list, reason: str) -> Column:
        """A column that stays unchanged, so it must not have missing cells."""
        name = self.names[k]
        if None in values:
            raise CommandError(
                f"{self.place(k, values.index(None))}: the cell is missing, and "
                f"{reason}; fill it, or keep the column unchanged with --index '{name}'"
            )
        return Column(name, "kept", values)

    @property
    def n_cells(self) -> int:
        return sum(len(column.values) for column in self.columns)

    def notes(self) -> list[str]:
        """What the reader of a completed file should know of its columns."""
        kept = [c for c in self.columns if c.kind == "kept"]
        full = [c.name for c in kept if c.n_missing < len(c.values)]
        words = [c.name for c in self.columns if c.kind == "category"]
        return [
            f"{what}: {', '.join(map(repr, names))}"
            for what, names in (
                ("columns left unchanged", full),
                ("columns completed as categories", words),
            )
            if names
        ]

    def complete(self, completer: BaseCompleter) -> int:
        """Fill the missing cells and count them.

        A table of numbers goes to the completer directly. Any other table goes through
        `MixedCompleter`, which standardizes, so ``scaling="auto"`` becomes None.
        """
        used = [k for k, c in enumerate(self.columns) if c.kind != "kept"]
        if all(c.n_missing == len(c.values) for c in self.columns):
            raise CommandError(
                f"{self.path} has no observed cell; at least one is needed"
            )
        columns = [self.columns[k] for k in used]
        if not any(column.n_missing for column in columns):
            return 0
        table = np.empty((len(columns[0].values), len(used)), object)
        for place, column in enumerate(columns):
            table[:, place] = column.values
        from sklearn.base import clone

        inner = clone(completer)
        if all(column.numeric for column in columns):
            completed = inner.fit_transform(table.astype(float))
        else:
            if inner.get_params().get("scaling") == "auto":
                inner.set_params(scaling=None)
            from skmc.completers import MixedCompleter

            mixed = MixedCompleter(
                inner,
                categorical=[p for p, c in enumerate(columns) if c.kind == "category"],
                ordinal={p: c.levels for p, c in enumerate(columns) if c.levels},
            )
            completed = mixed.fit_transform(table)
        self.changes = {
            k: [
                new if old is None else old
                for old, new in zip(column.values, completed[:, place], strict=True)
            ]
            for place, (k, column) in enumerate(zip(used, columns, strict=True))
            if column.n_missing
        }
        return sum(self.columns[k].n_missing for k in self.changes)

    def matrix(self) -> np.ndarray:
        """The numeric columns, standardized; NaN where missing."""
        numeric = [c.values for c in self.columns if c.numeric]
        if not numeric:
            raise CommandError(
                f"{self.path} has no numeric column to compare methods on"
            )
        X = np.array(numeric, dtype=float).T
        deviation = np.nanstd(X, axis=0)
        return (X - np.nanmean(X, axis=0)) / np.where(deviation > 0, deviation, 1)


def whole(value: float | int, dtype: Any) -> int:
    """Round to the nearest number of an integer type; observed integers stay exact."""
    if isinstance(value, int):
        return value
    limits = np.iinfo(dtype)
    return min(max(round(float(value)), int(limits.min)), int(limits.max))
