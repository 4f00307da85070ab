"""Predictions of missing cells of series, which are weighted afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import gen_batches

from skmc.completers.series._windows import Span, Windows

MAX_ROWS = 10_000  # rows of windows that a completer is fitted to
CHUNK = 10_000  # rows that are completed at a time


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
