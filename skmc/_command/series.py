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
    cells = np.array([file.columns[k].values for k in used], object).T
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

    def completed(found: Any) -> np.ndarray:
        """The completed columns of numbers."""
        return np.asarray(source.completed(found[:, 1:].astype(float)))

    file.drawn = [file.filled(used, completed(whole), source.missing)]
    if file.level is not None:
        file.check_names(file.drawn[0])
        ends = completer.predict_interval(rows, file.level)
        file.keep_bounds(used, [completed(end) for end in ends], source.missing)
    return int(source.missing.sum())


def _times(values: list) -> list:
    """Whole numbers, such as years, or the texts and dates of a column."""
    try:
        return [int(str(value)) for value in values]
    except (TypeError, ValueError):
        return values
