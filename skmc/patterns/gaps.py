"""Gaps: consecutive rows in which a column is missing, and blocks of the last columns.

Rows are times and columns are series, or rows are units and columns are times.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skmc.cells import Container
from skmc.linalg import Seed
from skmc.patterns._observed import begin

MAX_MOVES = 20  # of the pattern of the missing cells


def runs(
    X: Container,
    length: int = 10,
    fraction: float = 0.1,
    *,
    random_state: Seed = None,
) -> np.ndarray:
    """Gaps of consecutive rows in single columns, such as a sensor that is off.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    length : int in [1, n_rows), default=10
        Number of rows of each gap.
    fraction : float in [0, 1], default=0.1
        Approximate share of the observed cells to hide. Gaps of a column are at least
        a row apart, so that about ``length / (length + 1)`` can be hidden at most.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)

    See Also
    --------
    row_tail : The last columns of rows.
    columns : Whole columns.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import patterns
    >>> patterns.runs(np.ones((9, 1)), 3, 0.3, random_state=0).astype(int).ravel()
    array([1, 1, 1, 0, 0, 0, 0, 0, 0])
    """
    observed, rng = begin(X, fraction, random_state)
    n_rows, n_cols = observed.shape
    if not 1 <= length < n_rows:
        raise ValueError(f"length must lie in [1, {n_rows}), got {length}.")
    place = np.arange(n_rows)[:, None] + rng.randint(length + 1, size=n_cols)
    slot, inside = np.divmod(place, length + 1)
    within = observed & (inside < length)
    lot = rng.random_sample((slot.max() + 1, n_cols))[slot, np.arange(n_cols)]
    lots = np.sort(lot[within])  # cells of a gap have the same lot
    n_hidden = round(fraction * observed.sum())
    bound = lots[min(n_hidden, len(lots) - 1)] if n_hidden else 0.0
    return within & (lot < bound if n_hidden < len(lots) else True)


def row_tail(
    X: Container, length: int, fraction: float = 0.1, *, random_state: Seed = None
) -> np.ndarray:
    """The last columns of random rows, such as the years after a treatment.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    length : int in [1, n_cols)
        Number of the last columns.
    fraction : float in [0, 1], default=0.1
        Share of the rows, and at least one row if it is positive.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of rows.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)

    See Also
    --------
    runs : Gaps of consecutive rows.
    per_row : A share of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import patterns
    >>> patterns.row_tail(np.ones((3, 4)), 2, 0.3, random_state=0).astype(int)
    array([[0, 0, 0, 0],
           [0, 0, 0, 0],
           [0, 0, 1, 1]])
    """
    observed, rng = begin(X, fraction, random_state)
    n_rows, n_cols = observed.shape
    if not 1 <= length < n_cols:
        raise ValueError(f"length must lie in [1, {n_cols}), got {length}.")
    hidden = np.zeros(observed.shape, bool)
    hidden[rng.permutation(n_rows)[: int(np.ceil(fraction * n_rows))], -length:] = True
    return hidden & observed


def gap_lengths(
    missing: np.ndarray,  # (n_times, n_series)
    *,
    so_far: bool = False,
) -> np.ndarray:  # (n_times, n_series)
    """Length of the gap that each missing cell is in."""
    _, start, stop = _gaps(missing)
    sizes, by_column = stop - start, np.zeros(missing.shape[::-1], int)
    lengths = np.repeat(sizes, sizes)
    if so_far:
        lengths = np.arange(1, len(lengths) + 1) - np.repeat(
            np.cumsum(sizes) - sizes, sizes
        )
    by_column[missing.T] = lengths
    return by_column.T


def moved_gaps(
    missing: np.ndarray,  # (n_times, n_series)
    observed: np.ndarray,  # (n_times, n_series)
    n_hidden: int,
    rng: np.random.RandomState,
    *,
    step: int = 1,
) -> np.ndarray:  # (n_times, n_series)
    """Choose observed cells in gaps like those of the missing ones.

    Gaps are moved in time in their own series, and then, if there were too few, to
    other series, where gaps at the first or last time stay there. If gaps of several
    series begin and end together, so many of them are hidden together that the number
    of series without a cell at these times approaches that of the pattern. If no gap
    fits into half of a series, single cells are hidden.
    """
    n_times, n_series = missing.shape
    hidden, left = np.zeros(missing.shape, bool), n_hidden
    room = observed.sum(0) // 2  # cells of each series that may still be hidden
    series, start, stop = _gaps(missing)
    edge = (start == 0) | (stop == n_times)
    together = missing.sum(1)
    for move in range(MAX_MOVES if len(series) else 0):
        shift = step * rng.randint(n_times // step)
        column, stays = series, np.zeros(len(series), bool)
        if move >= MAX_MOVES // 2:
            column, stays = (series + rng.randint(n_series)) % n_series, edge
        first = np.where(stays, start, (start + shift) % n_times)
        last = first + stop - start
        complete = last <= n_times
        lacking = np.roll(together, shift) - (~observed | hidden).sum(1)
        for some, a, b in _events(
            column[complete], first[complete], last[complete], lacking, rng
        ):
            if left <= 0:
                return hidden
            more = observed[a:b, some] & ~hidden[a:b, some]
            fits = more.sum(0) <= room[some]
            some, more = some[fits], more[:, fits]
            room[some] -= more.sum(0)
            left -= more.sum()
            hidden[a:b, some] |= more
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
    change = np.diff(start, prepend=-1) | np.diff(stop, prepend=-1)
    bounds = np.append(np.flatnonzero(change), len(series))
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
