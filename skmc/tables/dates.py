"""Columns of dates, times and durations."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import numpy as np

from skmc.cells import LikeObserved
from skmc.tables.column import Floats
from skmc.tables.date_formats import DateFormat
from skmc.tables.numbers import Numeric
from skmc.tables.raw_column import RawColumn

# Steps of dates and of durations, the coarsest first.
DATE_UNITS = ("Y", "M", "D", "h", "m", "s", "ms", "us")
DURATION_UNITS = DATE_UNITS[2:]
# Types of values; a datetime is a date, too, so it comes first.
FORMS = {"timedelta": dt.timedelta, "datetime": dt.datetime, "date": dt.date}


class NotDates(Exception):
    """The values are dates that cannot be read; the text says why."""


@dataclass(frozen=True)
class Dates(Numeric):
    """A column of dates, times or durations, represented by a standardized number.

    The number counts the coarsest unit in which all observed values are whole: years,
    months, days, hours, minutes, seconds, milliseconds or microseconds. Completions are
    whole numbers of this unit. Times with a zone are counted in local time of that
    zone. Standard deviations are durations; a year has 365.2425 days, and a month a
    twelfth of them.

    Parameters
    ----------
    mean, deviation, span, like, exponent : object
        Statistics of the counts, as in `Numeric`.
    unit : str
        Code of the unit in NumPy, as in ``datetime64[D]``.
    form : {"date", "datetime", "timedelta"}
        Type of the values, or of the dates that texts denote.
    zone : str or None
        Time zone: a name of `zoneinfo`, or a number of seconds.
    text : DateFormat or None
        Format of dates in text; None if the values are not text.
    ends : pair of float
        Bounds of the counts; NaN where there is none.
    """

    kind: ClassVar[str | None] = "date"
    unit: str = "D"
    form: str = "date"
    zone: str | None = None
    text: DateFormat | None = None
    ends: tuple[float, float] = (np.nan, np.nan)

    @classmethod
    def describe(
        cls,
        raw: RawColumn,
        like: Callable[..., LikeObserved | None],
        low: Any = None,
        high: Any = None,
    ) -> Dates | None:
        """Describe a column of dates."""
        ends = {"low": low, "high": high}
        if raw.times is not None:
            fine = raw.times[~raw.missing]
            native = "timedelta" if fine.dtype.kind == "m" else "datetime"
            return cls._counting(raw, like, fine, ends, form=native)
        seen, text = raw.seen, None
        if all(isinstance(value, str) for value in seen):
            formats = DateFormat.of(seen)
            if len(formats) > 1:
                raise NotDates("day and month of its dates cannot be told apart")
            if not formats:
                return None
            text = formats[0]
            seen = [text.read(value) for value in seen]
        form = _form(seen[0])
        if form is None or any(_form(value) != form for value in seen):
            return None
        zones = {_zone(value) for value in seen}
        if len(zones) > 1:
            raise NotDates("its times have several time zones")
        fields = {"form": form, "zone": zones.pop(), "text": text}
        return cls._counting(raw, like, _fine(seen, form), ends, **fields)

    @classmethod
    def _counting(
        cls,
        raw: RawColumn,
        like: Callable[..., LikeObserved | None],
        fine: np.ndarray,
        bounds: Mapping[str, Any],
        **fields: Any,
    ) -> Dates:
        """Describe observed cells in microseconds."""
        units = DURATION_UNITS if fine.dtype.kind == "m" else DATE_UNITS
        unit = next(u for u in units if (_counted(fine, u, back=True) == fine).all())
        counts = _counted(fine, unit).astype(float)
        ends = []
        for name, bound in bounds.items():
            end = _bound(raw, bound, fields["form"], fields.get("text"))
            if end is not None:
                count = float(_counted(end, unit)[0])
                inside = (_counted(end, unit, back=True) == end).all() or name == "high"
                ends.append(count if inside else count + 1)
            else:
                ends.append(np.nan)
        if ends[0] > ends[1]:
            raise ValueError(
                f"min_value={bounds['low']!r} of {raw.label} is after "
                f"max_value={bounds['high']!r}; exchange or correct them."
            )
        fields |= {"unit": unit, "ends": (ends[0], ends[1])}
        return cls.of(counts, like(counts[:, None], *ends), raw.seen_weights, **fields)

    def read(self, raw: RawColumn) -> Floats:
        kind = "m" if self.form == "timedelta" else "M"
        plain = self.zone is None and self.text is None and self.form != "date"
        if plain and raw.times is not None and raw.times.dtype.kind == kind:
            counts = _counted(raw.times, self.unit).astype(float)
            return np.where(raw.missing, np.nan, counts)
        values = raw.values
        if self.text is not None:
            values = [self.text.read(v) if isinstance(v, str) else None for v in values]
        in_form = np.array([_form(value) == self.form for value in values])
        in_form &= ~raw.missing  # pandas' NaT is a datetime
        numbers = np.full(len(values), np.nan)
        if in_form.any():
            seen = [values[i] for i in np.flatnonzero(in_form)]
            numbers[in_form] = _counted(_fine(seen, self.form), self.unit)
        return numbers

    def rounded(self, values: Floats) -> Floats:
        return np.rint(super().rounded(values))

    def deviations(self, block: Floats) -> list[dt.timedelta | None]:
        unit = np.ones(1, f"m8[{self.unit}]").astype("m8[us]").astype(float)
        durations = np.rint(super().deviations(block) * unit).astype("m8[us]")
        deviations: list[dt.timedelta | None] = durations.tolist()
        return deviations

    def restore(self, values: Floats) -> list[Any]:
        code = "m8" if self.form == "timedelta" else "M8"
        counts = np.rint(values).astype(np.int64).astype(f"{code}[{self.unit}]")
        times = counts.astype(f"{code}[us]").tolist()
        if self.form == "date":
            times = [value.date() for value in times]
        if self.zone is not None:
            zone = _tzinfo(self.zone)
            times = [value.replace(tzinfo=zone) for value in times]
        return times if self.text is None else [self.text.write(v) for v in times]


def _bound(
    raw: RawColumn, bound: Any, form: str, text: DateFormat | None
) -> np.ndarray | None:
    """A bound in microseconds, (1,)."""
    if bound is None:
        return None
    value = bound
    if isinstance(bound, str):
        formats = [text] if text else DateFormat.of([bound])
        value = formats[0].read(bound) if formats and formats[0] else None
    elif isinstance(bound, (np.datetime64, np.timedelta64)):
        value = bound.astype(f"{bound.dtype.kind}8[us]").item()
    duration = isinstance(value, dt.timedelta)
    if value is None or duration != (form == "timedelta"):
        kind = "durations" if form == "timedelta" else "dates"
        raise ValueError(
            f"min_value or max_value of {raw.label} is {bound!r}, but the column has "
            f"{kind}; give one of them, such as {raw.seen[0]!r}."
        )
    if not duration and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    return _fine([value], "timedelta" if duration else "datetime")


def _form(value: object) -> str | None:
    return next((name for name, cls in FORMS.items() if isinstance(value, cls)), None)


def _zone(value: object) -> str | None:
    zone = getattr(value, "tzinfo", None)
    if zone is None:
        return None
    name = getattr(zone, "key", getattr(zone, "zone", None))
    return name or str(zone.utcoffset(value).total_seconds())


def _tzinfo(zone: str) -> dt.tzinfo:
    try:
        return dt.timezone(dt.timedelta(seconds=float(zone)))
    except ValueError:
        return ZoneInfo(zone)


def _fine(values: list[Any], form: str) -> np.ndarray:
    """Convert to microseconds, in local time of the zone."""
    if form == "timedelta":
        return np.array(values, "m8[us]")
    if form == "datetime":
        values = [value.replace(tzinfo=None) for value in values]
    return np.array(values, "M8[us]")


def _counted(fine: np.ndarray, unit: str, *, back: bool = False) -> np.ndarray:
    """Count whole units, as integers or converted back to microseconds."""
    coarse = fine.astype(f"{fine.dtype.kind}8[{unit}]")
    return coarse.astype(fine.dtype) if back else coarse.astype(np.int64)
