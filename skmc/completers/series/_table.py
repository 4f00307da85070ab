"""A table whose rows are times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.base import warn_user
from skmc.completers.series._grid import TimeGrid, ticks_of
from skmc.tables import (
    DateFormat,
    RawColumn,
    filled,
    position_of,
    raw_columns,
    same_columns,
)

LARGEST = np.sqrt(np.finfo(float).max)


@dataclass(frozen=True, eq=False)
class TimeTable:
    """The series of a table, and the times of its rows.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    columns : list of int
        Positions of the columns that are series.
    cells : ndarray of shape (n_rows, n_series)
        Their cells, NaN where missing.
    ticks : ndarray of shape (n_rows,) or None
        Times of the rows, see `ticks_of`. None if they have equal steps.
    name : str
        Name of the times in messages.
    """

    X: Any
    columns: list[int]
    cells: np.ndarray
    ticks: np.ndarray | None
    name: str

    @classmethod
    def read(
        cls, X: Any, time: str | int | None, columns: list[int] | None = None
    ) -> TimeTable:
        """Read a table.

        Parameters
        ----------
        X : DataFrame or ndarray
            Result of `as_table`.
        time : str, int or None
            Column of times. None means the index of a data frame, if it has dates or
            distinct whole numbers.
        columns : list of int or None, default=None
            Columns that are series. None finds those of numbers, and warns of others
            and of those without an observed cell.

        Returns
        -------
        TimeTable

        Raises
        ------
        ValueError
            There is no series, a number is infinite, the times are not distinct times,
            or the index has several levels.
        """
        if not len(X):
            raise ValueError("X has no rows (0 sample(s)).")
        at = None if time is None else position_of(X, time, "time")
        raws = raw_columns(X)
        if columns is None:
            columns = _series(raws, at)
        for raw in (raws[k] for k in columns):
            if not raw.numeric:
                raise ValueError(f"{raw.label} has values that are not numbers.")
            if (np.abs(raw.floats) > LARGEST).any():
                raise ValueError(
                    f"{raw.label} has a number that is infinite, or above "
                    f"{LARGEST:.0e}, whose square overflows; mask it, or use other "
                    "units."
                )
        cells = [raws[k].floats.astype(float) for k in columns]
        name, times = f"time={time!r}", None
        if at is not None:
            times = _times(raws[at])
        elif hasattr(X, "index") and hasattr(X.index, "to_list"):
            name, times = "The index", _index(X.index)
        ticks = None if times is None else ticks_of(times, name)
        return cls(X, columns, np.stack(cells, 1), ticks, name)

    def grid(self) -> TimeGrid:
        """Find the grid of the times, of which there must be two."""
        if len(self.cells) < 2:
            raise ValueError(
                "X has a single time (n_samples = 1); at least two are needed."
            )
        if self.ticks is None:
            return TimeGrid(0, 1, "1")
        if (self.ticks[1:] < self.ticks[:-1]).any():
            warn_user(f"{self.name} is not sorted; the rows are taken in its order.")
        return TimeGrid.of(np.sort(self.ticks), self.name)

    def positions(self, grid: TimeGrid) -> np.ndarray:
        """Find the positions of the rows on a grid.

        Parameters
        ----------
        grid : TimeGrid
            Grid of the fit.

        Returns
        -------
        int ndarray of shape (n_rows,)
        """
        if self.ticks is None:
            return np.arange(len(self.cells))
        return grid.positions(self.ticks)

    def completed(self, values: np.ndarray) -> Any:
        """Fill the missing cells of the series.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_series)
            Values; those at missing cells are used.

        Returns
        -------
        DataFrame or ndarray
        """
        missing = np.zeros(self.X.shape, bool)
        missing[:, self.columns] = np.isnan(self.cells)
        new = {
            k: values[missing[:, k], s].tolist()
            for s, k in enumerate(self.columns)
            if missing[:, k].any()
        }
        kinds: list[str | None] = [None] * self.X.shape[1]
        for k in self.columns:
            kinds[k] = "numeric"
        return filled(self.X, new, missing, kinds)

    def like(self, values: np.ndarray) -> Any:
        """Make a table of other values, NaN in columns that are not series.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_series)
            Values.

        Returns
        -------
        DataFrame or ndarray
        """
        found = [np.full(len(values), np.nan) for _ in range(self.X.shape[1])]
        for s, k in enumerate(self.columns):
            found[k] = values[:, s]
        return same_columns(self.X, found)


def _series(raws: list[RawColumn], time: int | None) -> list[int]:
    words = [r.label for k, r in enumerate(raws) if k != time and not r.numeric]
    empty = [r.label for r in raws if r.missing.all()]
    if words:
        warn_user(f"Columns that are not numbers are left as they are: {words}.")
    if empty:
        warn_user(f"Series without an observed cell stay missing: {empty}.")
    found = [
        k
        for k, raw in enumerate(raws)
        if k != time and raw.numeric and not raw.missing.all()
    ]
    if not found:
        raise ValueError("X has no series: no column of numbers with an observed cell.")
    return found


def _times(raw: RawColumn) -> list[Any]:
    """The times in a column; texts are read as dates."""
    found = _dates(raw.values)
    if any(isinstance(time, str) for time in found):
        raise ValueError(
            f"The times in {raw.label} are not dates in one format, or day and month "
            "cannot be told apart; convert them to dates first."
        )
    return found


def _index(index: Any) -> list[Any] | None:
    """The times in an index; None if its rows are only numbered or named."""
    if getattr(index, "nlevels", 1) > 1:
        raise ValueError(_of_levels(index))
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    whole = getattr(index.dtype, "kind", "O") in "iu" and index.is_unique
    times = _dates(index.to_list())
    dates = any(hasattr(time, "isoformat") for time in times)
    return times if dates or whole else None


def _of_levels(index: Any) -> str:
    """Say that rows are of several series, and how each series gets a column."""
    names = [k if name is None else name for k, name in enumerate(index.names)]
    kinds = [level.dtype.kind for level in index.levels]
    others = [name for name, kind in zip(names, kinds, strict=True) if kind != "M"]
    if len(others) in (0, len(names)):  # the last one is usually the time
        others = names[:-1]
    unstacked = repr(others[0] if len(others) == 1 else others)
    return (
        f"The index has the levels {names}, but rows must be times; give each series a "
        f"column first, such as X[column].unstack({unstacked})."
    )


def _dates(times: list[Any]) -> list[Any]:
    """Read texts as dates, if they have one format."""
    words = [time for time in times if isinstance(time, str)]
    formats = DateFormat.of(words) if len(words) == len(times) else []
    return [formats[0].read(word) for word in words] if len(formats) == 1 else times
