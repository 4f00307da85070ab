"""Cells in the pattern of the missing ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skmc.cells import Container, to_cells
from skmc.cells.copies import merged
from skmc.linalg import Seed, seed_of
from skmc.patterns._observed import begin, hide_likely, observed_in, spared
from skmc.patterns.gaps import MAX_MOVES, moved_gaps

MIN_MISSING = 10  # fewer missing cells may be adjacent by chance
CORRELATED = 0.3  # smallest correlation of indicators of missing cells
BLOCK = 256  # columns whose correlations with all columns are held at a time


def like_missing(
    X: Container,
    fraction: float = 0.1,
    *,
    missing: ArrayLike | None = None,
    random_state: Seed = None,
) -> np.ndarray:
    """Observed cells that are distributed like the missing ones, or like other cells.

    Errors on these cells estimate the errors on the missing ones. If missing cells of
    consecutive rows are adjacent (a sensor that was off), these gaps are moved to other
    rows of their columns, and to other columns if there are too few. If cells of
    neighboring columns are adjacent, too (holes in a picture), the whole pattern is
    shifted, repeatedly or in part, until ``fraction`` is reached. Otherwise cells are
    chosen at random, from each column in proportion to its share of missing cells, and
    at most a third of a column. Columns that are missing together (a page of a
    questionnaire, the last years of a panel) are hidden together: a chosen cell brings
    along those that are missing in a random row in which its column is missing. If
    nothing is missing, the pattern is `random`.

    Parameters
    ----------
    X : matrix of any container
        The matrix with its missing cells.
    fraction : float in [0, 1], default=0.1
        Approximate share of the observed cells to hide. Every row and every column
        keeps at least one.
    missing : bool array of shape (n_rows, n_cols) or None, default=None
        Cells whose distribution to follow, such as the missing cells of another table
        of this shape. None are the missing cells of ``X``.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
        True at the cells to hide.

    See Also
    --------
    random : Single cells, whatever the pattern of the missing ones.
    skmc.model_selection.CellSplit : Folds in this pattern.

    Notes
    -----
    Missing cells count as adjacent if the indicator of missing cells, centered by rows
    and columns, has a correlation of more than ``0.3`` with itself shifted by one row
    or by one column. Columns count as missing together if their indicators have a
    correlation of more than ``0.3`` and of three standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import patterns
    >>> X = np.ones((30, 20))
    >>> X[3:9, 4:10] = np.nan
    >>> hidden = patterns.like_missing(X, 0.05, random_state=0)
    >>> rows, cols = np.nonzero(hidden)
    >>> int(np.ptp(rows)) + 1, int(np.ptp(cols)) + 1
    (6, 6)
    """
    observed, rng = begin(X, fraction, random_state)
    lost = ~observed if missing is None else _checked(missing, observed.shape)
    free = spared(observed, rng)
    n_hidden = min(round(fraction * observed.sum()), free.sum())
    hidden = np.zeros(observed.shape, bool)
    along_rows, along_cols = _adjacent(lost)
    if n_hidden and along_rows and not along_cols:
        hidden = moved_gaps(lost, observed, n_hidden, rng)
        emptied = np.flatnonzero(~(observed & ~hidden).any(1))
        hidden[emptied, observed[emptied].argmax(1)] = False
        return hidden
    if n_hidden and along_rows:
        for _ in range(MAX_MOVES):
            shift = [rng.randint(n) for n in observed.shape]
            copy = np.roll(lost, shift, (0, 1)) & free
            if (excess := copy.sum() / n_hidden) > 1.5:
                copy &= _window(observed.shape, 1 / excess, rng)
            hidden |= copy
            if hidden.sum() >= 0.75 * n_hidden:
                return hidden
    # An empty column carries no information about missing cells elsewhere.
    share = lost.mean(0) * observed.any(0)
    likely = free * np.where(share > 0, share, 0 if share.any() else 1)
    if not likely.any():
        likely = free * 1.0
    # At most a third of the column with the most missing cells.
    n_hidden = min(n_hidden, round(likely.sum() / (likely.max() or 1) / 3))
    if not n_hidden:
        return hidden
    hidden = hide_likely(likely, observed, n_hidden / observed.sum(), rng)
    if not (related := _related(lost)):
        return hidden
    larger = _brought_along(np.where(hidden, 0, -1), free, lost, related, rng)
    share = n_hidden / observed.sum() * hidden.sum() / (larger == 0).sum()
    hidden = hide_likely(likely, observed, share, rng)
    labels = _brought_along(np.where(hidden, 0, -1), free, lost, related, rng)
    return labels == 0


def parts_like_missing(
    X: Container, n_parts: int = 8, *, random_state: Seed = None
) -> np.ndarray:
    """Disjoint parts of the observed cells, each distributed like the missing ones.

    If missing cells are adjacent, each part is a draw of `like_missing` of ``1 /
    n_parts`` of the cells, without those of earlier parts. Otherwise the parts divide
    the columns with missing cells, or all columns if nothing is missing, at random and
    evenly. Cells of a row in columns that are missing together are in the same part, if
    they are missing in a random other row. No part contains all observed cells of a row
    or of a column. Rows that are copies of each other have the same parts, so that no
    copy shows what another one hides.
    """
    if n_parts < 2:
        raise ValueError(f"n_parts must be at least 2, got {n_parts}.")
    seed = seed_of(random_state)
    cells = to_cells(X)
    distinct, place = merged(cells) if cells.ndim == 2 and cells.size else (cells, None)
    if place is not None and len(distinct) < len(cells):
        labels = parts_like_missing(distinct, n_parts, random_state=seed)[place]
        return np.where(np.isnan(cells), -1, labels)
    observed = observed_in(cells)
    labels = np.full(observed.shape, -1)
    if _adjacent(~observed)[0]:
        for k in range(n_parts):
            drawn = like_missing(X, 1 / n_parts, random_state=seed + k)
            labels[drawn & (labels < 0)] = k
    else:
        n_missing = (~observed).sum(0) * observed.any(0)
        free = observed & (observed.sum(0) > 1) & (observed.sum(1, keepdims=True) > 1)
        free &= (n_missing > 0) | ~n_missing.any()
        rows, cols = np.nonzero(free)
        lot = np.random.RandomState(seed % 2**32).permutation(len(rows))
        order = lot[np.argsort(cols[lot], kind="stable")]
        labels[rows[order], cols[order]] = np.arange(len(order)) % n_parts
        rng = np.random.RandomState(seed % 2**32)
        labels = _brought_along(labels, free, ~observed, _related(~observed), rng)
    _spare(labels, observed)
    _spare(labels.T, observed.T)
    # Numbers without a gap; the last one is that of no part.
    used = np.bincount(labels[labels >= 0], minlength=n_parts) > 0
    numbers: np.ndarray = np.append(np.cumsum(used) - 1, -1)[labels]
    return numbers


def _checked(missing: ArrayLike, shape: tuple[int, int]) -> np.ndarray:
    lost = np.asarray(missing)
    if lost.shape != shape or lost.dtype != bool:
        raise ValueError(
            f"missing must be boolean and have the shape of X, {shape}; got "
            f"{lost.dtype} and {lost.shape}."
        )
    return lost


def _spare(labels: np.ndarray, observed: np.ndarray) -> None:
    """Leave a cell of each row out of the parts, if they were all in the same."""
    highest = np.where(observed, labels, -1).max(1)
    lowest = np.where(observed, labels, labels.max() + 1).min(1)
    in_one_part = np.flatnonzero((lowest == highest) & (lowest >= 0))
    labels[in_one_part, observed[in_one_part].argmax(1)] = -1


def _adjacent(missing: np.ndarray) -> tuple[bool, bool]:
    """Whether cells of neighboring rows, and of neighboring columns, miss together."""
    R = missing - missing.mean(0) - missing.mean(1, keepdims=True) + missing.mean()
    least = CORRELATED * np.square(R).sum()
    if missing.sum() < MIN_MISSING or least == 0:
        return False, False
    along_rows, along_cols = (R[1:] * R[:-1]).sum(), (R[:, 1:] * R[:, :-1]).sum()
    return bool(along_rows > least), bool(along_cols > least)


def _related(missing: np.ndarray) -> dict[int, np.ndarray]:
    """Other columns that are missing together with each column, if there are any."""
    share = missing.mean(0)
    partial = np.flatnonzero((share > 0) & (share < 1))
    Z = (missing[:, partial] - share[partial]) / np.sqrt(share * (1 - share))[partial]
    Z = Z.astype(np.float32) / np.sqrt(len(missing), dtype=np.float32)
    least = max(CORRELATED, 3 / np.sqrt(len(missing)))
    related = {}
    for start in range(0, len(partial), BLOCK):
        close = least < Z[:, start : start + BLOCK].T @ Z
        for k, others in enumerate(close, start):
            others[k] = False
            if others.any():
                related[int(partial[k])] = partial[others]
    return related


def _brought_along(
    labels: np.ndarray,
    free: np.ndarray,
    missing: np.ndarray,
    related: dict[int, np.ndarray],
    rng: np.random.RandomState,
) -> np.ndarray:
    """Give labels of cells to those that are missing together with them elsewhere."""
    labels, free = labels.copy(), free.copy()
    n_observed = (~missing).sum(1)
    for col in rng.permutation([*related]):
        rows = np.flatnonzero(free[:, col] & (labels[:, col] >= 0))
        others = related[col]
        donors = rng.choice(np.flatnonzero(missing[:, col]), len(rows))
        brought = missing[np.ix_(donors, others)] & free[np.ix_(rows, others)]
        brought &= (brought.sum(1) + 1 < n_observed[rows])[:, None]  # some cells remain
        i, j = np.nonzero(brought)
        labels[rows[i], others[j]] = labels[rows[i], col]
        free[rows[i], others[j]] = free[rows, col] = False
    return labels


def _window(
    shape: tuple[int, int], share: float, rng: np.random.RandomState
) -> np.ndarray:
    """A rectangle with a given share of the cells, at a random place."""
    inside = np.ones(shape, bool)
    for axis, size in enumerate(shape):
        length = max(1, round(share**0.5 * size))
        start = rng.randint(size - length + 1)
        place = np.arange(size)
        within = (place >= start) & (place < start + length)
        inside &= within[:, None] if axis == 0 else within
    return inside
