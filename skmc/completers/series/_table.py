"""A table whose rows are times, of one set of series or of several units."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np

from skmc.base import warn_user
from skmc.cells import cure_of_marks
from skmc.patterns import gap_lengths
from skmc.tables import (
    AnyMarks,
    RawColumn,
    as_dates,
    filled,
    position_of,
    raw_columns,
    same_columns,
)

DAY = 86_400_000_000  # microseconds
MONTH = 28 * DAY  # no month is shorter
ALMOST = 0.01
MOST_POSITIONS = 10  # for each row, in long series
LONG = 100_000  # positions
DATES_AS_VALUES = (
    " To complete dates and durations, make numbers of them, such as (X['due'] - "
    "X['due'].min()) / pd.Timedelta('1D')."
)
# The unit of a series, None in a table without units, and the position of its column.
Series = tuple[Any, int]


@dataclass(frozen=True, eq=False)
class TimeTable:
    """The series of a table, and the times of its rows.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    series : list of (unit, int)
        Series: the unit, None without units, and the position of the column.
    cells : ndarray of shape (n_times, n_series)
        Their cells, NaN where missing. Without units, times are rows of the table.
    ticks : ndarray of shape (n_times,) or None
        The times, see `ticks_of`. None if they have equal steps.
    rows : dict of unit to int ndarray
        Rows of each unit in the table.
    at : int ndarray of shape (n_rows,)
        Positions of the rows in ``cells``.
    name : str
        Name of the times in messages.
    """

    X: Any
    series: list[Series]
    cells: np.ndarray
    ticks: np.ndarray | None
    rows: dict[Any, np.ndarray]
    at: np.ndarray
    name: str

    @classmethod
    def read(
        cls,
        X: Any,
        time: str | int | None,
        unit: str | int | None,
        series: list[Series] | None = None,
        units: Collection[Any] = (),
        marks: AnyMarks = (),
    ) -> TimeTable:
        """Read a table."""
        if not len(X):
            raise ValueError("X has no rows (0 sample(s)).")
        raws = raw_columns(X, marks)
        rows, owner = _units(X, raws, unit, None if series is None else units)
        levels = getattr(getattr(X, "index", None), "names", ())
        at = None if time is None or time in levels else position_of(X, time, "time")
        name, times = f"time={time!r}", None
        if at is not None:
            times = _times(raws[at])
        elif time is not None:
            times = as_dates(X.index.get_level_values(time).to_list())
        elif hasattr(X, "index") and hasattr(X.index, "to_list"):
            name, times = "The index", _index(X.index, unit)
            if times is None and getattr(X.columns.dtype, "kind", "O") == "M":
                raise ValueError(
                    "The columns of X are dates, and its rows are not; rows must be "
                    "times: pass X.T."
                )
        ticks, position = _ticks(times, rows, name)
        if series is None:
            counted = type(getattr(X, "index", None)).__name__ == "RangeIndex"
            timed = times is not None and (time is not None or not counted)
            columns = _numbers(raws, {at, owner}, timed=timed)
        else:
            columns = sorted({k for _, k in series})
        by_column = {k: _floats(raws[k]) for k in columns}
        if series is None:
            series = _observed(by_column, rows, raws)
        n_times = int(position.max()) + 1
        cells = np.full((n_times, len(series)), np.nan)
        for s, (of, k) in enumerate(series):
            own = rows.get(of, np.empty(0, int))
            cells[position[own], s] = by_column[k][own]
        return cls(X, series, cells, ticks, rows, position, name)

    @property
    def present(self) -> np.ndarray:
        """The cells that have a row in the table, of shape (n_times, n_series)."""
        found = np.zeros(self.cells.shape, bool)
        for s, (unit, _) in enumerate(self.series):
            found[self.at[self.rows.get(unit, np.empty(0, int))], s] = True
        return found

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

    def positions(self, grid: TimeGrid) -> np.ndarray:  # (n_times,)
        """Find the positions of the times on a grid."""
        if self.ticks is None:
            return np.arange(len(self.cells))
        return grid.positions(self.ticks)

    def cells_at(self, other: TimeTable) -> np.ndarray:  # (n_times, n_series)
        """The cells of this table at the times of another one."""
        ours, theirs = self.ticks, other.ticks
        if ours is None or theirs is None:
            if len(self.cells) != len(other.cells):
                raise ValueError(
                    f"y has {len(self.cells)} times, X has {len(other.cells)}; pass "
                    "the truth of all rows of X."
                )
            return self.cells
        order = np.argsort(ours, kind="stable")
        place = np.searchsorted(ours, theirs, sorter=order).clip(max=len(ours) - 1)
        absent = ours[order[place]] != theirs
        if absent.any():
            raise ValueError(
                f"y has no row for the time {theirs[absent.argmax()]} of X; pass the "
                "truth of all rows of X."
            )
        return self.cells[order[place]]

    def gap_lengths(self) -> np.ndarray:  # (n_times, n_series)
        """Number of consecutive missing rows of the series around each missing cell."""
        order = np.arange(len(self.cells))
        if self.ticks is not None:
            order = np.argsort(self.ticks, kind="stable")
        present, found = self.present, np.zeros(self.cells.shape, int)
        for s in range(len(self.series)):
            own = order[present[order, s]]
            found[own, s] = gap_lengths(np.isnan(self.cells[own, s : s + 1]))[:, 0]
        return found

    def completed(
        self,
        values: np.ndarray,  # (n_times, n_series)
    ) -> Any:
        """Fill the missing cells of the series."""
        found = self._by_rows(np.where(np.isnan(self.cells), values, np.nan))
        missing = np.zeros(self.X.shape, bool)
        kinds: list[str | None] = [None] * self.X.shape[1]
        for k, own in found.items():
            missing[:, k], kinds[k] = ~np.isnan(own), "numeric"
        new = {k: own[missing[:, k]].tolist() for k, own in found.items()}
        new = {k: own for k, own in new.items() if own}
        return filled(self.X, new, missing, kinds)

    def like(
        self,
        values: np.ndarray,  # (n_times, n_series)
    ) -> Any:
        """Make a table of other values, NaN in columns that are not series."""
        found = self._by_rows(values)
        none = np.full(len(self.at), np.nan)
        columns = range(self.X.shape[1])
        return same_columns(self.X, [found.get(k, none) for k in columns])

    def _by_rows(self, values: np.ndarray) -> dict[int, np.ndarray]:
        """The values of each column of series at the rows of the table."""
        found = {k: np.full(len(self.at), np.nan) for _, k in self.series}
        for s, (unit, k) in enumerate(self.series):
            own = self.rows.get(unit, np.empty(0, int))
            found[k][own] = values[self.at[own], s]
        return found


def _units(
    X: Any,
    raws: list[RawColumn],
    unit: str | int | None,
    known: Collection[Any] | None,
) -> tuple[dict[Any, np.ndarray], int | None]:
    """Rows of each unit, by the first ones, and the column of the units.

    ``known`` are the units of the fit; None in a fit.
    """
    if unit is None:
        return {None: np.arange(len(X))}, None
    if unit in getattr(getattr(X, "index", None), "names", ()):
        owner, values = None, X.index.get_level_values(unit).to_list()
    else:
        owner = position_of(X, unit, "unit")
        values = raws[owner].values
    rows: dict[Any, list[int]] = {}
    for row, of in enumerate(values):
        if of is None or of != of:
            raise ValueError(
                f"unit={unit!r} is missing in row {row}; name its unit, or drop it."
            )
        if known is not None and of not in known:
            raise ValueError(
                f"unit={unit!r} has {of!r} in row {row}, which has no series in the "
                "fit; fit again with its rows."
            )
        rows.setdefault(of, []).append(row)
    return {of: np.array(own) for of, own in rows.items()}, owner


def _ticks(
    times: list[Any] | None, rows: dict[Any, np.ndarray], name: str
) -> tuple[np.ndarray | None, np.ndarray]:
    """Times of the cells, and the position of each row among them.

    Without units, these are the rows in their order, and with units the sorted times.
    """
    n_rows = sum(map(len, rows.values()))
    position = np.arange(n_rows)
    if times is None:  # at consecutive times of each unit
        for own in rows.values():
            position[own] = np.arange(len(own))
        return None, position
    if None in rows:
        return ticks_of(times, name), position
    parts = {
        unit: ticks_of([times[row] for row in own], f"{name} of unit {unit!r}")
        for unit, own in rows.items()
    }
    if len({part.dtype for part in parts.values()}) > 1:
        raise ValueError(f"{name} has both dates and numbers; use one of them.")
    ticks = np.unique(np.concatenate([*parts.values()]))
    for unit, part in parts.items():
        position[rows[unit]] = np.searchsorted(ticks, part)
    return ticks, position


def _numbers(
    raws: list[RawColumn], others: set[int | None], *, timed: bool
) -> list[int]:
    """The columns of numbers, besides those of times and units."""
    own = [k for k in range(len(raws)) if k not in others]
    left = [raws[k] for k in own if not raws[k].numeric]
    if not timed and (dates := next(filter(_has_dates, left), None)) is not None:
        time = getattr(dates.column, "name", own[left.index(dates)])
        warn_user(
            f"The index has no times, so that rows are taken for consecutive ones, but "
            f"{dates.label} has dates; pass time={time!r}."
        )
        left.remove(dates)
    if left:
        words = [raw.label for raw in left]
        warn_user(
            f"Columns that are not numbers are left as they are: {words}."
            + (DATES_AS_VALUES if any(map(_of_times, left)) else "")
            + cure_of_marks(value for raw in left for value in raw.values)
        )
    return [k for k in own if raws[k].numeric]


def _of_times(raw: RawColumn) -> bool:
    return any(isinstance(value, (dt.date, dt.timedelta)) for value in raw.seen[:1])


def _has_dates(raw: RawColumn) -> bool:
    """Whether all cells of a column are dates, or texts in one format of dates."""
    times = [] if raw.missing.any() else as_dates(raw.values)
    return bool(times) and all(hasattr(time, "isoformat") for time in times)


def _floats(raw: RawColumn) -> np.ndarray:
    if raw.overflow:
        raise ValueError(f"{raw.overflow}.")
    return raw.floats.astype(float)


def _observed(
    by_column: dict[int, np.ndarray], rows: dict[Any, np.ndarray], raws: list[RawColumn]
) -> list[Series]:
    """The series with an observed cell; warns of the others."""
    found, empty = [], []
    for unit, own in rows.items():
        for k, values in by_column.items():
            if np.isnan(values[own]).all():
                of = "" if unit is None else f" of {unit!r}"
                empty.append(f"{raws[k].label}{of}")
            else:
                found.append((unit, k))
    if empty:
        warn_user(f"Series without an observed cell stay missing: {empty}.")
    if not found:
        raise ValueError("X has no series: no column of numbers with an observed cell.")
    return found


def _times(raw: RawColumn) -> list[Any]:
    """The times in a column; texts are read as dates."""
    found = as_dates(raw.values)
    if any(isinstance(time, str) for time in found):
        raise ValueError(
            f"The times in {raw.label} are not dates in one format, or day and month "
            "cannot be told apart; convert them to dates first."
        )
    return found


def _index(index: Any, unit: str | int | None) -> list[Any] | None:
    """The times in an index; None if its rows are only numbered or named."""
    of_units = unit is not None and unit in index.names
    if of_units:
        index = index.droplevel(unit) if index.nlevels > 1 else index[:0]
    if getattr(index, "nlevels", 1) > 1:
        raise ValueError(_of_levels(index))
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    # Rows of several units that are only numbered do not have their numbers as times.
    whole = getattr(index.dtype, "kind", "O") in "iu"
    whole = whole and (of_units or (unit is None and index.is_unique))
    times = as_dates(index.to_list())
    dates = any(hasattr(time, "isoformat") for time in times)
    return times if dates or whole else None


def _of_levels(index: Any) -> str:
    """Say that rows are of several series, and how they are told apart."""
    names = [k if name is None else name for k, name in enumerate(index.names)]
    kinds = [level.dtype.kind for level in index.levels]
    others = [name for name, kind in zip(names, kinds, strict=True) if kind != "M"]
    if len(others) in (0, len(names)):  # the last one is usually the time
        others = names[:-1]
    unstacked = repr(others[0] if len(others) == 1 else others)
    named = f"pass unit={unstacked}, or " if len(others) == 1 else ""
    return (
        f"The index has the levels {names}, but rows must be times; {named}give each "
        f"series a column first, such as X[column].unstack({unstacked})."
    )


@dataclass(frozen=True)
class TimeGrid:
    """Equal steps of time.

    Parameters
    ----------
    origin : int
        Position 0, in units.
    step : int
        Units in a step.
    unit : {"us", "M", "1"}
        Microseconds, months, or the numbers themselves.
    """

    origin: int
    step: int
    unit: str

    @classmethod
    def of(
        cls,
        ticks: np.ndarray,  # (n_times,)
        name: str,
    ) -> TimeGrid:
        """Find the grid of some times.

        The unit is a month if all times are on the same day of months, or on their last
        days. The step is the most frequent difference, or the largest that divides all
        differences if two times would share a position. Position 0 is the midnight
        before the first time.
        """
        unit = "1"
        if ticks.dtype.kind == "M":
            unit = "M" if _monthly(ticks) else "us"
        counts = _counts(ticks, unit)
        steps = np.diff(counts)
        if not len(steps):
            return cls(int(counts[0]), 1, unit)
        sizes, often = np.unique(steps, return_counts=True)
        step = int(sizes[often.argmax()])
        if (np.diff(np.rint((counts - counts[0]) / step)) < 1).any():
            step = int(np.gcd.reduce(steps))
            if int(counts[-1] - counts[0]) // step > MOST_POSITIONS * len(ticks):
                step = max(1, int(steps.min()))
                warn_user(
                    f"{name} is irregular; its times are moved to the nearest of equal "
                    "steps. Resample the series if this is too coarse."
                )
        origin = int(counts[0])
        if unit == "us" and DAY % step == 0:
            origin -= origin % DAY - origin % step
        return cls(origin, step, unit)

    def positions(
        self,
        ticks: np.ndarray,  # (n_times,)
    ) -> np.ndarray:  # (n_times,)
        """Find the nearest positions."""
        if (ticks.dtype.kind == "M") != (self.unit != "1"):
            raise ValueError(
                "The times of the fit and of X must both be dates, or both be numbers "
                "or without times; pass the same index or column."
            )
        exact = (_counts(ticks, self.unit) - self.origin) / self.step
        found = np.rint(exact).astype(np.int64)
        order = np.argsort(ticks, kind="stable")
        # Times that share a position take the next ones.
        index = np.arange(len(found))
        found[order] = np.maximum.accumulate(found[order] - index) + index
        if np.abs(found - exact).max() >= 1:
            raise ValueError(
                "The times of X are finer than the steps of the fit, so several rows "
                "would share a position; resample X."
            )
        if np.ptp(found) > max(LONG, MOST_POSITIONS * len(found)):
            raise ValueError(
                f"{len(found)} times span {np.ptp(found)} steps, so most of the series "
                "would be empty; resample them, or pass the values without times."
            )
        return found

    def warn_of_gaps(
        self,
        positions: np.ndarray,  # (n_times,)
    ) -> None:
        """Warn if no two times are consecutive, as days in a fit of hours."""
        steps = np.diff(np.sort(positions))
        if len(steps) > 1 and steps.min() > 1:
            warn_user(
                f"The times of X are {steps.min()} or more steps of the fit apart, so "
                "that all times between them are missing; fit to series of the same "
                "step, or resample X."
            )

    @property
    def calendar(self) -> list[int]:
        """Numbers of steps in a day, a week and a year, if they are nearly whole."""
        units = {"M": [12.0], "us": [DAY, 7 * DAY, 365.25 * DAY], "1": []}
        sizes = [size / self.step for size in units[self.unit]]
        return [round(n) for n in sizes if abs(n - round(n)) < ALMOST * n]


def ticks_of(times: Sequence[object], name: str) -> np.ndarray:  # (n_times,)
    """Convert times to whole numbers: microseconds, or the numbers themselves."""
    plain: list[object] = []
    for k, time in enumerate(times):
        if isinstance(time, dt.datetime) and time.tzinfo is not None and time == time:
            time = time.astimezone(dt.UTC).replace(tzinfo=None)
        if not (isinstance(time, dt.date) or _is_whole(time)) or time != time:
            raise ValueError(
                f"{name} has {time!r} in row {k}, which is not a time; use dates, or "
                "whole numbers of equal steps."
            )
        plain.append(time)
    dates = [isinstance(time, dt.date) for time in plain]
    if any(dates) and not all(dates):
        raise ValueError(f"{name} has both dates and numbers; use one of them.")
    ticks = np.array(plain, "M8[us]" if all(dates) else np.int64)
    values, counts = np.unique(ticks, return_counts=True)
    if (counts > 1).any():
        first = (counts > 1).argmax()
        raise ValueError(
            f"{name} has the time {values[first]} {counts[first]} times. If the rows "
            "belong to several series, such as shops, name their column by unit=. If "
            "clocks were set back, give the times a time zone. Otherwise, drop or "
            "average duplicates."
        )
    return ticks


def _is_whole(time: object) -> bool:
    return isinstance(time, SupportsFloat) and float(time) == np.rint(float(time))


def _monthly(ticks: np.ndarray) -> bool:
    if len(ticks) < 2 or (np.diff(ticks).astype(np.int64) < MONTH).any():
        return False
    months = ticks.astype("M8[M]")
    since, until = ticks - months, (months + 1).astype("M8[us]") - ticks
    return bool((since == since[0]).all() or (until == until[0]).all())


def _counts(ticks: np.ndarray, unit: str) -> np.ndarray:
    if unit == "M":
        ticks = ticks.astype("M8[M]")
    return ticks.astype(np.int64)
