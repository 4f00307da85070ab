"""Formats of dates in text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y-%m"),
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y"),
)
TIMES = (
    *("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f"),
    *("T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f", "T%H:%M:%SZ", "T%H:%M:%S.%fZ"),
)
FORMATS = (*map("".join, product(DATES, TIMES)), "%H:%M", "%H:%M:%S")


@dataclass(frozen=True)
class DateFormat:
    """A format of dates in text.

    Parameters
    ----------
    pattern : str
        Format, as in `datetime.datetime.strftime`.
    padded : bool
        Whether days, months and hours begin with zeros, as in 01/05/2020.
    """

    pattern: str
    padded: bool

    @classmethod
    def of(cls, texts: Sequence[str]) -> list[DateFormat]:
        """Find the formats that reproduce all texts."""
        unique = sorted(set(texts))
        distinct: dict[tuple, DateFormat] = {}
        if not any(map(str.isdigit, unique[0])):
            return []
        for pattern, padded in product(FORMATS, (True, False)):
            form = cls(pattern, padded)
            if all(map(form.reproduces, unique)):
                distinct.setdefault(tuple(map(form.read, unique)), form)
        return list(distinct.values())

    def read(self, text: str) -> dt.datetime | None:
        """Read a date."""
        try:
            return dt.datetime.strptime(text.strip(), self.pattern)
        except ValueError:
            return None

    def write(self, date: dt.datetime) -> str:
        """Write a date."""
        pattern = self.pattern.replace("%Y", f"{date.year:04}")  # also before 1000
        for code in () if self.padded else ("%d", "%m", "%H"):
            pattern = pattern.replace(code, str(int(date.strftime(code))))
        return date.strftime(pattern)

    def reproduces(self, text: str) -> bool:
        """Whether a text is unchanged by reading and writing."""
        date = self.read(text)
        return date is not None and self.write(date) == text.strip()


def as_dates(times: Sequence[Any]) -> list[Any]:
    """Read texts as dates, if all times are texts in one format."""
    times = list(times)
    words = [time for time in times if isinstance(time, str)]
    formats = DateFormat.of(words) if words and len(words) == len(times) else []
    return [formats[0].read(word) for word in words] if len(formats) == 1 else times
