"""Cells that may be marks of missing values."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from skmc.base import KeepsEmpty, doubtful_number, warn_of_empty_columns, warn_user
from skmc.base.doubts import LEAST_LEVELS
from skmc.cells import Container, cure_of_marks, may_mark_missing
from skmc.exceptions import (
    ColumnsLeftWarning,
    DoubtfulCellsWarning,
    LongFormWarning,
    UnknownCategoriesWarning,
)
from skmc.tables.column import Floats
from skmc.tables.frames import raw_columns
from skmc.tables.kinds import most_categories
from skmc.tables.levels import Categorical, Levels
from skmc.tables.source import Source
from skmc.tables.table import Table

MAX_LONG = 5  # columns of a table in long form
REPEATS = 3  # mean number of rows of a unit or a time, in long form
LEAST = 5  # units or times
NAMES = str, int, dt.date
MOST_SAID = 5  # categories of a column in a warning
FAR = 10  # ranges of the other dates from a single date


def warn_of_columns(completer: KeepsEmpty, X: Any, table: Table) -> None:
    """Warn about columns that are not completed, and about doubtful cells."""
    names = list(getattr(X, "columns", range(X.shape[1])))
    empty = table.empty
    reasons = [f"{names[k]!r} ({table.left[k]})" for k in table.left if k not in empty]
    columns = ", ".join(reasons)
    if not any(table.kinds):
        if empty and not reasons:
            raise ValueError("X has no observed cell; at least one is needed.")
        raise ValueError(
            f"X has no column that can be completed: {columns or 'all pass through'}. "
            "MixedCompleter completes columns nevertheless that are listed in "
            f"categorical.{cure_of_marks(_doubts(X, table).values())}"
        )
    remedy = f"; set keep_empty_features=False of {type(completer).__name__} to drop"
    zeros = [k for k in empty if table.columns[k] is not None]
    others = [k for k in empty if table.columns[k] is None]
    for columns_of, kept in (
        (zeros, f"filled with 0{remedy} such columns"),
        (others, f"left empty, as words and dates have no zero{remedy} such columns"),
    ):
        warn_of_empty_columns(completer, np.array(columns_of, int), names, kept)
    if reasons:
        warn_user(
            f"Columns that cannot be inferred are left as they are: {columns}. "
            "MixedCompleter completes them nevertheless if they are listed in "
            "categorical, and is silent if they are listed in passthrough.",
            ColumnsLeftWarning,
        )
    most = most_categories(len(X))
    wordy = [
        repr(names[k])
        for k, column in table.used
        if isinstance(column, Categorical)
        and len(column.levels) == most
        and len({*raw_columns(X, table.marks)[k].seen}) > most
    ]
    if wordy:
        warn_user(
            f"Completions are among the {most} most frequent categories of "
            f"{', '.join(wordy)}, which have more. Merge rare categories, or list such "
            "columns in passthrough of MixedCompleter.",
            ColumnsLeftWarning,
        )
    if (ids := _long_form(X, table)) is not None:
        warn_user(
            "X looks like ratings or a panel in long form, because each of its rows "
            f"has another pair of {ids[0]!r} and {ids[1]!r}. If so, pass "
            "Entries.from_frame to FactorizationCompleter for ratings, or X to "
            "SeriesCompleter(unit=..., time=...) for series. If not, list one of the "
            "two in passthrough of MixedCompleter, or ignore this warning.",
            LongFormWarning,
        )
    if doubts := _doubts(X, table):
        marks = list(dict.fromkeys(doubts.values()))
        warn_user(
            "Some cells may mark missing ones; if they do, replace them with NaN, or "
            f"pass missing_values={marks} to MixedCompleter: {'; '.join(doubts)}.",
            DoubtfulCellsWarning,
        )


def unknown_categories(source: Source) -> dict[int, Counter]:
    """Observed values of columns that are not among their levels, and their numbers."""
    found = {}
    for k, column in source.table.used:
        unknown = np.isnan(source.numbers[:, k]) & ~source.missing[:, k]
        if isinstance(column, Levels) and unknown.any():
            values = raw_columns(source.X, source.table.marks)[k].values
            found[k] = Counter(values[row] for row in np.flatnonzero(unknown))
    return found


def warn_of_unknown(source: Source, rare: Mapping[int, Sequence]) -> None:
    """Warn about categories of rows that are neither levels nor ``rare`` in the fit."""
    said = []
    for k, found in unknown_categories(source).items():
        for word in rare.get(k, ()):
            found.pop(word, None)
        names = ", ".join(f"{word!r} ({n})" for word, n in found.most_common(MOST_SAID))
        more = f" and {len(found) - MOST_SAID} others" * (len(found) > MOST_SAID)
        if found:
            said.append(f"{source.names[k]!r} has {names}{more}")
    if said:
        warn_user(
            "Some categories were not in the fit, with their numbers of cells: "
            f"{'; '.join(said)}. They are kept, and other cells of their rows are "
            "completed without them.",
            UnknownCategoriesWarning,
        )


def _long_form(X: Any, table: Table) -> tuple[Any, Any] | None:
    """Find two columns that name the row and the column of a matrix.

    Their values occur at least three times on average, but no pair occurs twice. Then
    chance would produce several equal pairs.
    """
    names = list(getattr(X, "columns", range(X.shape[1])))
    if not 2 < len(names) <= MAX_LONG:
        return None
    repeated = []
    for k, raw in enumerate(raw_columns(X, table.marks)):
        chosen = table.columns[k] is None and k not in table.left
        if chosen or not all(isinstance(value, NAMES) for value in raw.values):
            continue
        codes: dict[Any, int] = {}
        places = np.array([codes.setdefault(value, len(codes)) for value in raw.values])
        if LEAST <= len(codes) <= len(places) / REPEATS:
            repeated.append((names[k], places, len(codes)))
    for (one, rows, _), (other, cols, n_cols) in combinations(repeated, 2):
        if len(np.unique(rows * n_cols + cols)) == len(rows):
            return one, other
    return None


def _doubts(X: Container, table: Table) -> dict[str, Any]:
    """Find the first doubtful cell of each column: a description, and its value."""
    said = {}
    raws = raw_columns(X, table.marks)
    for k, (raw, column) in enumerate(zip(raws, table.columns, strict=True)):
        doubt = None
        if column is not None and column.kind == "numeric":
            doubt = doubtful_number(raw.floats.astype(float))
        elif column is not None and column.kind == "date":
            doubt = doubtful_date(raw.values, column.read(raw))
        elif k in table.left or (column is not None and column.kind == "categorical"):
            cells = zip(raw.values, raw.missing, strict=True)
            doubt = doubtful_word([None if gone else word for word, gone in cells])
        if doubt is not None:
            said[f"{raw.label}, row {doubt[0]}: {doubt[1]}"] = raw.values[doubt[0]]
    return said


def doubtful_date(
    values: Sequence[Any],
    counts: Floats,  # (n_rows,)
) -> tuple[int, str] | None:
    """Find a date that may mark missing cells, such as 9999-12-31.

    It is ten times as far from all others as these are from each other, or repeated and
    further.
    """
    levels, often = np.unique(counts[~np.isnan(counts)], return_counts=True)
    if len(levels) < LEAST_LEVELS:
        return None
    for end, others in ((0, levels[1:]), (-1, levels[:-1])):
        gap = np.abs(others - levels[end]).min()
        if gap > np.ptp(others) * (1 if often[end] > 1 else FAR):
            row = int(np.flatnonzero(counts == levels[end])[0])
            return row, f"{values[row]} is very far from all other dates"
    return None


def doubtful_word(words: list) -> tuple[int, str] | None:
    """Find a text that may mark missing cells.

    It is one of `skmc.cells.MISSING_WORDS`, or has no letter and no digit.
    """
    for row, word in enumerate(words):
        if may_mark_missing(word):
            return row, f"{word!r} counts as a word"
    return None
