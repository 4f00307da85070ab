"""Completion of the columns of a table over time."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from skmc._command.failure import CommandError

if TYPE_CHECKING:
    from skmc._command.tables import TableFile
    from skmc.base import BaseCompleter


def complete_series(
    file: TableFile, time: str, completer: BaseCompleter | None
) -> tuple[dict[int, list], dict[int, tuple[list, ...]], int]:
    """Complete the columns of numbers over time.

    Returns the completed columns and the ends of their intervals, by position of the
    column, and the number of completed cells.
    """
    from skmc import SeriesCompleter
    from skmc.tables import Source, Table

    at = file.names.index(time)
    used = [
        k for k, c in enumerate(file.columns) if k != at and c.numeric and not c.empty
    ]
    if not used:
        raise CommandError(f"{file.path} has no column of numbers besides {time!r}")
    others = [c.name for k, c in enumerate(file.columns) if k not in (at, *used)]
    file.found["left unchanged"] = [repr(name) for name in (time, *others)]
    cells = np.empty((len(file.columns[at].values), len(used)), object)
    for place, k in enumerate(used):
        cells[:, place] = file.columns[k].values
    source = Source.of(Table.of(cells), cells)
    rows = np.empty((len(cells), 1 + len(used)), object)
    rows[:, 0] = _times(file.values(at))
    rows[:, 1:] = source.numbers
    file.fitted = SeriesCompleter(completer, time=0, random_state=file.seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "time=0 is not sorted")
        try:
            whole = file.fitted.fit(rows).transform(rows)
        except ValueError as problem:
            reason = str(problem)
            for own in ("time=0", "column 0"):
                reason = reason.replace(own, f"column {time!r}")
            raise CommandError(f"{file.path}: {reason}") from problem

    def columns_of(found: Any) -> dict[int, list]:
        completed = source.completed(found[:, 1:].astype(float))
        return {
            k: completed[:, place].tolist()
            for place, k in enumerate(used)
            if source.missing[:, place].any()
        }

    bounds: dict[int, tuple[list, ...]] = {}
    if file.level is not None:
        ends = file.fitted.predict_interval(rows, file.level)
        low, high = map(columns_of, ends)
        missing = dict(zip(used, source.missing.T, strict=True))
        for k in low:
            bounds[k] = tuple(
                [
                    value if lost else None
                    for value, lost in zip(end, missing[k], strict=True)
                ]
                for end in (low[k], high[k])
            )
    return columns_of(whole), bounds, int(source.missing.sum())


def _times(values: list) -> list:
    """Whole numbers, such as years, or the texts and dates of a column."""
    try:
        return [int(value) for value in values]
    except (TypeError, ValueError):
        return values
