"""Gaps of series: their lengths, and observed cells in gaps like them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

MAX_MOVES = 20  # of the pattern of the missing cells


def gap_lengths(missing: np.ndarray, *, so_far: bool = False) -> np.ndarray:
    """Length of the gap that each missing cell is in.

    Parameters
    ----------
    missing : bool ndarray of shape (n_times, n_series)
        Missing cells.
    so_far : bool, default=False
        Whether the cells of a gap are counted from its start up to the cell.

    Returns
    -------
    int ndarray of shape (n_times, n_series)
        Number of consecutive missing cells of the series; 0 for observed cells.
    """
    _, start, stop = _gaps(missing)
    sizes, found = stop - start, np.zeros(missing.shape[::-1], int)
    lengths = np.repeat(sizes, sizes)
    if so_far:
        lengths = np.arange(1, len(lengths) + 1) - np.repeat(
            np.cumsum(sizes) - sizes, sizes
        )
    found[missing.T] = lengths
    return found.T


def like_gaps(
    missing: np.ndarray,
    observed: np.ndarray,
    step: int,
    share: float,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Choose observed cells in gaps like those of the missing ones.

    The pattern of the missing cells is moved in time and to other series, and some of
    its gaps are hidden. If gaps of several series begin and end together, so many of
    them are hidden together that the number of series without a cell at these times
    approaches that of the pattern. If nothing is missing, or no gap fits into half of a
    series, single cells are hidden.

    Parameters
    ----------
    missing : bool ndarray of shape (n_times, n_series)
        Missing cells.
    observed : bool ndarray of shape (n_times, n_series)
        Observed cells. Times without a row in the data are neither.
    step : int
        The pattern is moved by multiples of this number of times.
    share : float in (0, 1)
        Approximate share of the observed cells to hide. Each series keeps at least half
        of them.
    rng : RandomState
        Source of the random choice.

    Returns
    -------
    bool ndarray of shape (n_times, n_series)
        True at the cells to hide.
    """
    n_times, n_series = missing.shape
    hidden, n_hidden = np.zeros(missing.shape, bool), round(share * observed.sum())
    room = observed.sum(0) // 2  # cells of each series that may still be hidden
    for _ in range(MAX_MOVES if missing.any() else 0):
        if n_hidden <= 0:
            break
        shift = step * rng.randint(n_times // step), rng.randint(n_series)
        moved = np.roll(missing, shift, (0, 1))
        gaps, lacking = _gaps(moved), moved.sum(1) - (~observed | hidden).sum(1)
        for series, start, stop in _events(*gaps, lacking, rng):
            if n_hidden <= 0:
                break
            more = observed[start:stop, series] & ~hidden[start:stop, series]
            fits = more.sum(0) <= room[series]
            series, more = series[fits], more[:, fits]
            room[series] -= more.sum(0)
            n_hidden -= more.sum()
            hidden[start:stop, series] |= more
    if not hidden.any():
        hidden.flat[rng.permutation(np.flatnonzero(observed))[:n_hidden]] = True
    return hidden


def _events(
    series: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    lacking: np.ndarray,
    rng: np.random.RandomState,
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Yield series of gaps that begin and end together, in random order.

    There are as many series as are ``lacking`` at one of the times, and at least one.
    """
    order = np.lexsort([rng.rand(len(series)), stop, start])
    series, start, stop = series[order], start[order], stop[order]
    first = np.diff(start, prepend=-1) | np.diff(stop, prepend=-1)
    bounds = [*np.flatnonzero(first), len(series)]
    for k in rng.permutation(len(bounds) - 1):
        a, b = bounds[k : k + 2]
        n_series = max(1, lacking[start[a] : stop[a]].max())
        yield series[a : min(b, a + n_series)], start[a], stop[a]


def _gaps(missing: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Series, start and stop of each gap, series by series."""
    padded = np.zeros((missing.shape[1], len(missing) + 2), np.int8)
    padded[:, 1:-1] = missing.T
    change = np.diff(padded, axis=1)
    series, start = np.nonzero(change == 1)
    return series, start, np.nonzero(change == -1)[1]
