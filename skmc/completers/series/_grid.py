"""Times as positions on a grid of equal steps."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from skmc.base import warn_user

DAY = 86_400_000_000  # microseconds
MONTH = 28 * DAY  # no month is shorter
ALMOST = 0.01
MOST_POSITIONS = 10  # for each row, in long series
LONG = 100_000  # positions


def ticks_of(times: Sequence[object], name: str) -> np.ndarray:
    """Convert times to whole numbers: microseconds, or the numbers themselves.

    Parameters
    ----------
    times : sequence of datetime, date, int or float
        Times. Those with a time zone are converted to UTC, where all steps are equal.
    name : str
        Name of the times in messages.

    Returns
    -------
    datetime64[us] or int64 ndarray of shape (n_times,)

    Raises
    ------
    ValueError
        A time is missing or is not a time, or two times are equal.
    """
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
    def of(cls, ticks: np.ndarray, name: str) -> TimeGrid:
        """Find the grid of some times.

        The unit is a month if all times are on the same day of months, or on their last
        days. The step is the most frequent difference, or the largest that divides all
        differences if two times would share a position. Position 0 is the midnight
        before the first time.

        Parameters
        ----------
        ticks : datetime64[us] or int64 ndarray of shape (n_times,)
            Sorted times.
        name : str
            Name of the times in messages.

        Returns
        -------
        TimeGrid
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

    def positions(self, ticks: np.ndarray) -> np.ndarray:
        """Find the nearest positions.

        Parameters
        ----------
        ticks : datetime64[us] or int64 ndarray of shape (n_times,)
            Times.

        Returns
        -------
        int ndarray of shape (n_times,)
            Distinct positions, in the order of the times.

        Raises
        ------
        ValueError
            The times have another type than those of the grid, are finer than its
            steps, or are so far apart that most positions are empty.
        """
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

    @property
    def calendar(self) -> list[int]:
        """Numbers of steps in a day, a week and a year, if they are nearly whole."""
        units = {"M": [12.0], "us": [DAY, 7 * DAY, 365.25 * DAY], "1": []}
        sizes = [size / self.step for size in units[self.unit]]
        return [round(n) for n in sizes if abs(n - round(n)) < ALMOST * n]


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
