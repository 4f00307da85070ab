"""Predictions of missing cells of series, which are weighted afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import gen_batches

from skmc.completers.gaussian import GaussianCompleter

MAX_ROWS = 10_000  # rows of windows that a completer is fitted to
CHUNK = 10_000  # rows that are completed at a time
N_COLUMNS = 300  # largest number of columns of windows with offsets
MAX_OFFSETS = 4  # of a row besides its own cells

Kind = Literal["times", "periods", "slots"]


def members_for(
    completer: Any, periods: Sequence[int], span: Span, causal: bool, seed: int
) -> list[Any]:
    """Make the members for the periods of some series.

    Without ``causal``, there are windows of all kinds, with and without offsets.
    """
    found: list[Any] = [
        Interpolation(causal),
        *(SeasonalMean(p) for p in periods or [1]),
    ]
    plain, around = Windows("times"), [(-1, 1), (-2, 2)]
    offsets: list[tuple[int, ...]]
    if causal:
        offsets = [(-1,), *((-p,) for p in periods), (-2,)]
    else:
        whole = [(-p, p) for p in periods]
        offsets = [*whole[:1], around[0], *whole[1:], around[1]]
    arranged = [plain, widest(plain, offsets, span, N_COLUMNS)]
    for p in () if causal else periods:
        for plain, unit in ((Windows("periods", p), p), (Windows("slots", p), 1)):
            if plain.n_rows(span) >= plain.n_own(span):
                offsets = [(a * unit, b * unit) for a, b in around]
                arranged += [plain, widest(plain, offsets, span, N_COLUMNS)]
    for windows in dict.fromkeys(arranged):
        # A single column says nothing about its missing cells.
        if windows.offsets or windows.n_own(span) > 1:
            found.append(Windowed(windows, completer, seed))
    return found


@dataclass
class Interpolation:
    """Linear interpolation in time; beyond the ends, the nearest observed cell.

    Parameters
    ----------
    causal : bool, default=False
        Whether the last observed cell is repeated instead.
    """

    causal: bool = False
    name = "interpolation"
    transfers = True

    def fit(self, cells: np.ndarray, start: int) -> Self:
        return self

    def with_choice(self) -> Self:
        return self

    def predict(self, cells: np.ndarray, start: int) -> np.ndarray:
        time, found = np.arange(len(cells)), np.full(cells.shape, np.nan)
        for s in range(cells.shape[1]):
            seen = np.flatnonzero(~np.isnan(cells[:, s]))
            if not len(seen):
                continue
            if self.causal:
                last = np.searchsorted(seen, time, "right") - 1
                found[:, s] = np.where(last < 0, np.nan, cells[seen[last], s])
            else:
                found[:, s] = np.interp(time, seen, cells[seen, s])
        return found


@dataclass
class SeasonalMean:
    """Mean of each slot of a period of each series.

    Slots without an observed cell have the mean of their series.

    Parameters
    ----------
    period : int, default=1
        Number of times in a period.
    """

    period: int = 1
    means: np.ndarray = field(init=False)  # (period, n_series)
    transfers = True

    @property
    def name(self) -> str:
        return f"mean of slots of {self.period}" if self.period > 1 else "mean"

    def fit(self, cells: np.ndarray, start: int) -> Self:
        slot = (start + np.arange(len(cells))) % self.period
        seen = ~np.isnan(cells)
        total = np.zeros((self.period, cells.shape[1]))
        count = np.zeros(total.shape)
        np.add.at(total, slot, np.where(seen, cells, 0))
        np.add.at(count, slot, seen)
        means = total.sum(0) / count.sum(0)
        self.means = np.where(count > 0, total / np.maximum(count, 1), means)
        return self

    def with_choice(self) -> Self:
        return self

    def predict(self, cells: np.ndarray, start: int) -> np.ndarray:
        return self.means[(start + np.arange(len(cells))) % self.period]


@dataclass
class Windowed:
    """A completer of rows that are windows.

    Parameters
    ----------
    windows : Windows
        Arrangement of the rows.
    completer : estimator
        Completer of the rows, which is cloned.
    seed : int
        Seed of the choice of rows, if there are more than 10 000.
    """

    windows: Windows
    completer: Any
    seed: int
    used: np.ndarray = field(init=False)  # columns with an observed cell
    fitted: Any = field(init=False)

    @property
    def transfers(self) -> bool:
        """Whether other times than those of the fit have rows with these columns."""
        return self.windows.kind != "slots"

    @property
    def name(self) -> str:
        kind, P, offsets = self.windows.kind, self.windows.period, self.windows.offsets
        period = "" if kind == "times" else f" of {P}"
        return f"{kind}{period}" + (f", offsets {offsets}" if offsets else "")

    def fit(self, cells: np.ndarray, start: int) -> Self:
        span, rng = Span(start, *cells.shape), np.random.RandomState(self.seed)
        rows = rng.permutation(self.windows.n_rows(span))[:MAX_ROWS]
        M = _flat(cells)[self.windows.places(np.sort(rows), span)]
        M = M[~np.isnan(M).all(1)]
        self.used = ~np.isnan(M).all(0)
        self.fitted = clone(self.completer).fit(M[:, self.used])
        return self

    def with_choice(self) -> Windowed:
        """The same with the prior that the last fit chose, which takes longest."""
        if not isinstance(self.completer, GaussianCompleter):
            return self
        return replace(self, completer=self.completer._with_choice_of(self.fitted))

    def predict(self, cells: np.ndarray, start: int) -> np.ndarray:
        span, flat = Span(start, *cells.shape), _flat(cells)
        n_own, found = self.windows.n_own(span), np.full(len(flat), np.nan)
        for chunk in gen_batches(self.windows.n_rows(span), CHUNK):
            place = self.windows.places(np.arange(chunk.start, chunk.stop), span)
            M, own = flat[place], place[:, :n_own]
            lost = np.isnan(M[:, :n_own]) & (own < cells.size)
            asked = lost.any(1) & ~np.isnan(M[:, self.used]).all(1)
            if not asked.any():
                continue
            whole = np.full((asked.sum(), M.shape[1]), np.nan)
            whole[:, self.used] = self.fitted.transform(M[asked][:, self.used])
            found[own[asked]] = whole[:, :n_own]
        return found[:-1].reshape(cells.shape)


def _flat(cells: np.ndarray) -> np.ndarray:
    """All cells, and a missing one in place of those outside."""
    return np.append(cells.ravel(), np.nan)


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

    def periods(self, period: int) -> np.ndarray:  # (n_periods,)
        """List the periods with a time of this span."""
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
        """Number of rows for some times."""
        if self.kind == "times":
            return span.n_times
        periods = len(span.periods(self.period))
        return (periods if self.kind == "periods" else self.period) * span.n_series

    def n_own(self, span: Span) -> int:
        """Number of cells of a row at offset 0."""
        if self.kind == "times":
            return span.n_series
        return self.period if self.kind == "periods" else len(span.periods(self.period))

    def places(
        self,
        rows: np.ndarray,  # (k,)
        span: Span,
    ) -> np.ndarray:  # (k, (1 + n_offsets) * n_own)
        """Find the cells of rows in the series."""
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
    """Add offsets while there are at most four, and few enough columns."""
    taken: tuple[int, ...] = ()
    for more in offsets:
        both = taken + tuple(b for b in more if b not in taken)
        if len(both) <= MAX_OFFSETS and (1 + len(both)) * windows.n_own(span) <= n_cols:
            taken = both
    return Windows(windows.kind, windows.period, taken)
