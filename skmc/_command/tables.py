"""Columns of a table file: what they hold, and their holes filled."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skmc._command.failure import CommandError, UsageError
from skmc.base import BaseCompleter
from skmc.tables import MixedCompleter

LARGEST = np.sqrt(np.finfo(float).max)  # the square of a larger number overflows
DATE = re.compile(
    r"\d{4}[-/]\d{1,2}([-/]\d{1,2})?([T ].*)?"
    r"|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}( .*)?"
    r"|\d{1,2}:\d\d(:\d\d.*)?"
)
# Of the words in a column: where more of them differ they are names, not categories.
NAMES = 0.8


@dataclass
class Column:
    """One column of a file.

    ``kind`` is "number", "whole" (numbers, all of them whole), "category", "level"
    (ordered ``levels``), or "kept": it is left as it is and nothing learns from it.
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


def of_numbers(name: str, kind: str, values: list, where: Callable) -> Column:
    """Numbers that a completer takes; ``where`` says the place of a row."""
    for i, value in enumerate(values):
        if value is not None and abs(value) > LARGEST:
            what = "infinite" if np.isinf(value) else "too large to be squared"
            raise CommandError(f"{where(i)}: {value:g} is {what}; empty that cell")
    return Column(name, kind, values)


def of_words(name: str, words: list, where: Callable) -> Column:
    """Categories; dates and names of rows are kept, and have to be there."""
    seen = [word for word in words if word is not None]
    if all(isinstance(w, str) and DATE.fullmatch(w.strip()) for w in seen):
        reason = "dates are not completed"
    elif len(seen) > 2 and len(set(seen)) > NAMES * len(seen):
        reason = "nearly all words there differ, so nothing says which it is"
    else:
        return Column(name, "category", words)
    return kept_whole(name, words, reason, where)


def kept_whole(name: str, values: list, reason: str, where: Callable) -> Column:
    """A column that is kept as it is because nothing has to be done."""
    if None in values:
        raise CommandError(
            f"{where(values.index(None))}: the cell is missing, and {reason}; fill it, "
            f"or leave the column as it is with --index '{name}'"
        )
    return Column(name, "kept", values)


def positions(names: Sequence[str], chosen: list[str], option: str) -> set[int]:
    for name in chosen:
        if name not in names:
            raise UsageError(f"{option} {name}: no such column; {', '.join(names)} are")
    return {k for k, name in enumerate(names) if name in chosen}


def complete(
    columns: list[Column], completer: BaseCompleter, path: str
) -> dict[int, list]:
    """Position of a column -> its values with the missing ones filled.

    Tables of numbers go to the completer as they are. Others go through
    `MixedCompleter`, which standardises, so that ``scaling="auto"`` becomes None.
    """
    used = [k for k, c in enumerate(columns) if c.kind != "kept"]
    if all(c.n_missing == len(c.values) for c in columns):
        raise CommandError(f"{path} has no observed cell; at least one is needed")
    if not any(columns[k].n_missing for k in used):
        return {}
    table = np.empty((len(columns[0].values), len(used)), object)
    for place, k in enumerate(used):
        table[:, place] = columns[k].values
    if all(columns[k].numeric for k in used):
        completed = clone(completer).fit_transform(table.astype(float))
    else:
        inner = clone(completer)
        if inner.get_params().get("scaling") == "auto":
            inner.set_params(scaling=None)
        categorical = [p for p, k in enumerate(used) if columns[k].kind == "category"]
        levels = {p: columns[k].levels for p, k in enumerate(used) if columns[k].levels}
        mixed = MixedCompleter(inner, categorical=categorical, ordinal=levels)
        completed = mixed.fit_transform(table)
    return {
        k: [
            found if value is None else value
            for value, found in zip(columns[k].values, completed[:, place], strict=True)
        ]
        for place, k in enumerate(used)
        if columns[k].n_missing
    }


def scaled_matrix(columns: list[Column], path: str) -> np.ndarray:
    """The numbers, each column less its mean and over its deviation; NaN missing."""
    numeric = [c.values for c in columns if c.numeric]
    if not numeric:
        raise CommandError(f"{path} has no column of numbers to compare methods on")
    X = np.array(numeric, dtype=float).T
    deviation = np.nanstd(X, axis=0)
    return (X - np.nanmean(X, axis=0)) / np.where(deviation > 0, deviation, 1)


def whole(value: float | int, dtype: Any) -> int:
    """The nearest number that the type has; one that was there is exact."""
    if isinstance(value, int):
        return value
    limits = np.iinfo(dtype)
    return min(max(round(float(value)), int(limits.min)), int(limits.max))


def notes(columns: list[Column], path: str) -> list[str]:
    """What a reader of the answer has to know of its columns."""
    empty = [c for c in columns if c.n_missing == len(c.values)]
    kept = [c.name for c in columns if c.kind == "kept" and c not in empty]
    said = [
        f"warning: {path}: column {c.name!r} has no observed cell and is left empty"
        for c in empty
    ]
    if kept:
        said.append(f"left as they are, columns {', '.join(map(repr, kept))}")
    words = [c.name for c in columns if c.kind == "category"]
    if words:
        said.append(f"taken for categories, columns {', '.join(map(repr, words))}")
    return said
