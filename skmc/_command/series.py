"""Completion of the columns of a table over time."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from skmc._command.failure import CommandError

if TYPE_CHECKING:
    from skmc import SeriesCompleter
    from skmc._command.tables import TableFile


def complete_series(file: TableFile, time: str, completer: SeriesCompleter) -> int:
    """Complete the columns of numbers over time, and count the completed cells."""
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
    file.fitted = completer
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "time=0 is not sorted")
        try:
            whole = file.fitted.fit(rows).transform(rows)
        except ValueError as problem:
            reason = str(problem)
            for own in ("time=0", "column 0"):
                reason = reason.replace(own, f"column {time!r}")
            raise CommandError(f"{file.path}: {reason}") from problem

    missing = dict(zip(used, source.missing.T, strict=True))

    def columns_of(found: Any) -> dict[int, list]:
        """The completed columns, by their positions in the file."""
        completed = source.completed(found[:, 1:].astype(float))
        columns = dict(zip(used, completed.T.tolist(), strict=True))
        return {k: values for k, values in columns.items() if missing[k].any()}

    file.drawn = [columns_of(whole)]
    file.choose(0)
    if file.level is not None:
        file.check_names(file.changes)
        low, high = map(columns_of, completer.predict_interval(rows, file.level))
        for k, lost in missing.items():
            if lost.any():
                ends = np.array([low[k], high[k]], object)
                ends[:, ~lost] = None
                file.bounds[k] = tuple(ends.tolist())
    return int(source.missing.sum())


def _times(values: list) -> list:
    """Whole numbers, such as years, or the texts and dates of a column."""
    try:
        return [int(str(value)) for value in values]
    except (TypeError, ValueError):
        return values
