"""Completion of the columns of a table over time."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from skmc._command.failure import CommandError

if TYPE_CHECKING:
    from skmc import SeriesCompleter
    from skmc._command.tables import TableFile


def complete_series(
    file: TableFile, time: str, unit: str | None, completer: SeriesCompleter
) -> int:
    """Complete the columns of numbers over time, and count the completed cells."""
    from skmc.tables import Source, Table

    keys = [file.names.index(name) for name in (time, unit) if name is not None]
    used = [
        k
        for k, column in enumerate(file.columns)
        if k not in keys and column.numeric and not column.empty
    ]
    if not used:
        raise CommandError(f"{file.path} has no column of numbers besides {time!r}")
    others = [c.name for k, c in enumerate(file.columns) if k not in (*keys, *used)]
    unchanged = [*(file.names[k] for k in keys), *others]
    file.found["left unchanged"] = [repr(name) for name in unchanged]
    cells = np.array([file.columns[k].values for k in used], object).T
    source = Source.of(Table.of(cells), cells)
    rows = np.empty((len(cells), len(keys) + len(used)), object)
    rows[:, 0] = _times(file.values(keys[0]))
    for k in keys[1:]:
        rows[:, 1] = file.values(k)
    rows[:, len(keys) :] = source.numbers
    file.fitted = completer
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "time=0 is not sorted")
        try:
            whole = file.fitted.fit(rows).transform(rows)
        except ValueError as problem:
            reason = str(problem)
            for own in ("time=0", "column 0"):
                reason = reason.replace(own, f"column {time!r}")
            reason = reason.replace("unit=1", f"column {unit!r}")
            raise CommandError(f"{file.path}: {reason}") from problem

    def completed(found: Any) -> np.ndarray:
        """The completed columns of numbers."""
        return np.asarray(source.completed(found[:, len(keys) :].astype(float)))

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
