"""Periods of series, by their autocorrelation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import fft

LEAST = 0.1  # smallest autocorrelation of a period
SHARE = 0.5  # of the largest autocorrelation, for the shortest period
GAIN = 0.05  # of a multiple of the shortest period over its neighbors
MAX_PERIODS = 2
ROUNDING = 1e-9  # of the largest value; a smaller deviation is rounding


def find_periods(
    cells: np.ndarray,  # (n_times, n_series)
    calendar: Sequence[int],
) -> list[int]:
    """Find the lengths of periods.

    These are a day, a week and a year, as far as they repeat at least twice, have whole
    numbers of times, and the autocorrelation of the observed cells is above .1. Series
    without such a period have others, which must repeat at least three times: two waves
    of a random walk are alike by chance. These are the lag of the shortest peak of the
    autocorrelation that reaches half of the highest peak, and of the shortest that is
    within .05 of the highest. A multiple of the shortest period is left out if the
    autocorrelation is not ``.05`` higher there than at the multiples before and after
    it.
    """
    related = autocorrelation(cells)
    known = [p for p in calendar if 2 <= p <= len(cells) // 2 and related[p] > LEAST]
    if known:
        return _distinct(known, related)
    lags = np.arange(1, len(related) - 1)
    peak = (related[1:-1] > related[:-2]) & (related[1:-1] >= related[2:])
    times = np.flatnonzero((~np.isnan(cells)).any(1))
    peak &= (related[1:-1] > LEAST) & (lags >= 2) & (lags <= np.ptp(times) // 3)
    if not peak.any():
        return []
    lags = lags[peak]
    heights = related[lags]
    least = SHARE * heights.max(), heights.max() - GAIN
    return _distinct([int(lags[heights >= height][0]) for height in least], related)


def _distinct(periods: list[int], related: np.ndarray) -> list[int]:
    """The shortest period, and the best of the others that are not its multiples."""
    first, *longer = periods

    def gain(p: int) -> float:
        around = [k for k in (p - first, p + first) if 0 < k < len(related)]
        return float(related[p] - related[around].max(initial=0))

    found = [p for p in longer if p != first and gain(p) > GAIN]
    return [first, *sorted(found, key=lambda p: -related[p])[: MAX_PERIODS - 1]]


def autocorrelation(
    cells: np.ndarray,  # (n_times, n_series)
) -> np.ndarray:  # (n_times // 2 + 1,)
    """Autocorrelation of the observed cells around a quadratic trend of each series.

    All series are standardized, and the mean is over all pairs of cells.
    """
    seen = ~np.isnan(cells)
    z = np.where(seen, cells - _trend(cells, seen), 0.0)
    deviation = np.sqrt(np.square(z).sum(0) / seen.sum(0))
    varies = deviation > ROUNDING * np.nanmax(np.abs(cells), 0)
    z *= np.where(varies, 1 / np.where(varies, deviation, 1), 0)
    size = fft.next_fast_len(2 * len(cells), real=True)

    def of_pairs(values: np.ndarray) -> np.ndarray:
        power = np.square(np.abs(fft.rfft(values, size, axis=0))).sum(1)
        return fft.irfft(power, size)[: len(cells) // 2 + 1]

    counts = np.rint(of_pairs(seen.astype(float)))
    return np.where(counts > 0, of_pairs(z) / np.maximum(counts, 1), 0.0)


def _trend(cells: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Polynomial of degree 2 that is fitted to the observed cells of each series."""
    basis = np.polynomial.legendre.legvander(np.linspace(-1, 1, len(cells)), 2)
    found = np.empty(cells.shape)
    for s, mask in enumerate(seen.T):
        found[:, s] = (
            basis @ np.linalg.lstsq(basis[mask], cells[mask, s], rcond=None)[0]
        )
    return found
