"""Matrices whose rows are windows of several series."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

MAX_OFFSETS = 4  # of a row besides its own cells

Kind = Literal["times", "periods", "slots"]


@dataclass(frozen=True)
class Span:
    """Consecutive times of several series.

    Parameters
    ----------
    start : int
        Position of the first time; periods begin at multiples of their length.
    n_times : int
        Number of times.
    n_series : int
        Number of series.
    """

    start: int
    n_times: int
    n_series: int

    @property
    def stop(self) -> int:
        """Position after the last time."""
        return self.start + self.n_times

    def periods(self, period: int) -> np.ndarray:
        """List the periods with a time of this span.

        Parameters
        ----------
        period : int
            Number of times in a period.

        Returns
        -------
        int ndarray of shape (n_periods,)
        """
        return np.arange(self.start // period, -(-self.stop // period))


@dataclass(frozen=True)
class Windows:
    r"""An arrangement of the cells of several series in the rows of a matrix.

    Time :math:`t = d P + j` is slot j of period d. A row has its own cells, and those
    that are b times later, for the offsets b:

    - "times": row t has the cells of all series at time t;
    - "periods": row (d, s) has all slots of period d of series s;
    - "slots": row (j, s) has slot j of all periods of series s.

    Parameters
    ----------
    kind : {"times", "periods", "slots"}
        Meaning of the rows.
    period : int >= 1
        Number P of times in a period.
    offsets : tuple of int, default=()
        Offsets b of the other cells of a row.
    """

    kind: Kind
    period: int = 1
    offsets: tuple[int, ...] = ()

    def n_rows(self, span: Span) -> int:
        """Number of rows for some times.

        Parameters
        ----------
        span : Span
            The times.

        Returns
        -------
        int
        """
        if self.kind == "times":
            return span.n_times
        periods = len(span.periods(self.period))
        return (periods if self.kind == "periods" else self.period) * span.n_series

    def n_own(self, span: Span) -> int:
        """Number of cells of a row at offset 0.

        Parameters
        ----------
        span : Span
            The times.

        Returns
        -------
        int
        """
        if self.kind == "times":
            return span.n_series
        return self.period if self.kind == "periods" else len(span.periods(self.period))

    def places(self, rows: np.ndarray, span: Span) -> np.ndarray:
        """Find the cells of rows in the series.

        Parameters
        ----------
        rows : int ndarray of shape (k,)
            Numbers of the rows.
        span : Span
            The times.

        Returns
        -------
        int ndarray of shape (k, (1 + n_offsets) * n_own)
            Positions in the flat array of shape (n_times, n_series); its size for cells
            outside of it. The own cells of a row come first.
        """
        P, periods = self.period, span.periods(self.period)
        if self.kind == "times":
            own, series = rows[:, None] + span.start, np.arange(span.n_series)
        else:
            k, s = np.divmod(rows, span.n_series)
            series = s[:, None, None]
            if self.kind == "periods":
                own = (periods[k] * P)[:, None] + np.arange(P)
            else:
                own = periods * P + k[:, None]
        offsets = np.array([0, *self.offsets])[:, None]
        time = own[:, None] + offsets - span.start
        inside = (time >= 0) & (time < span.n_times)
        outside = span.n_times * span.n_series
        place = np.where(inside, time * span.n_series + series, outside)
        return place.reshape(len(rows), -1)


def widest(
    windows: Windows, offsets: Iterable[tuple[int, ...]], span: Span, n_cols: int
) -> Windows:
    """Add offsets while there are at most four, and few enough columns.

    Parameters
    ----------
    windows : Windows
        Windows without offsets.
    offsets : iterable of tuple of int
        Offsets that are added together, the most useful first.
    span : Span
        Times of the fit.
    n_cols : int
        Largest number of columns.

    Returns
    -------
    Windows
    """
    taken: tuple[int, ...] = ()
    for more in offsets:
        both = taken + tuple(b for b in more if b not in taken)
        if len(both) <= MAX_OFFSETS and (1 + len(both)) * windows.n_own(span) <= n_cols:
            taken = both
    return Windows(windows.kind, windows.period, taken)
