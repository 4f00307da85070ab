"""Cells in the pattern of the missing ones."""

from __future__ import annotations

import numpy as np

from skmc.cells import Container
from skmc.linalg import Seed, seed_of
from skmc.patterns._observed import begin, hide_likely, observed_in, spared

MIN_MISSING = 20  # fewer missing cells may be adjacent by chance
MAX_MOVES = 20


def like_missing(
    X: Container, fraction: float = 0.1, *, random_state: Seed = None
) -> np.ndarray:
    """Observed cells that are distributed like the missing ones.

    Errors on these cells estimate the errors on the missing ones. If missing cells are
    adjacent (holes in a picture, a sensor that was off), their pattern is shifted to
    other places, repeatedly or in part, until ``fraction`` is reached. Otherwise cells
    are chosen at random, from each column in proportion to its share of missing cells,
    and at most a third of a column. If nothing is missing, the pattern is `random`.

    Parameters
    ----------
    X : matrix of any container
        The matrix with its missing cells.
    fraction : float in [0, 1], default=0.1
        Approximate share of the observed cells to hide. Every row and every column
        keeps at least one.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
        True at the cells to hide.

    Notes
    -----
    Missing cells count as adjacent if the indicator of missing cells, centered by rows
    and columns, has a correlation of more than 0.3 with itself shifted by one row or by
    one column. This rule is our own.

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
    free = spared(observed, rng)
    n_hidden = min(round(fraction * observed.sum()), free.sum())
    hidden = np.zeros(observed.shape, bool)
    if n_hidden and _adjacent(~observed):
        for _ in range(MAX_MOVES):
            shift = [rng.randint(size) for size in observed.shape]
            copy = np.roll(~observed, shift, (0, 1)) & free
            if (excess := copy.sum() / n_hidden) > 1.5:
                copy &= _window(observed.shape, 1 / excess, rng)
            hidden |= copy
            if hidden.sum() >= 0.75 * n_hidden:
                return hidden
    # An empty column carries no information about missing cells elsewhere.
    share = (~observed).mean(0) * observed.any(0)
    likely = free * np.where(share > 0, share, 0 if share.any() else 1)
    if not likely.any():
        likely = free * 1.0
    # At most a third of the column with the most missing cells.
    n_hidden = min(n_hidden, round(likely.sum() / (likely.max() or 1) / 3))
    if not n_hidden:
        return hidden
    return hide_likely(likely, observed, n_hidden / observed.sum(), rng)


def parts_like_missing(
    X: Container, n_parts: int = 8, *, random_state: Seed = None
) -> np.ndarray:
    """Disjoint parts of the observed cells, each distributed like the missing ones.

    If missing cells are adjacent, each part is a draw of `like_missing` of ``1 /
    n_parts`` of the cells, without those of earlier parts. Otherwise the parts divide
    the columns with missing cells, or all columns if nothing is missing, at random and
    evenly. Rows and columns with one observed cell keep it.

    Parameters
    ----------
    X : matrix of any container
        The matrix with its missing cells.
    n_parts : int >= 2, default=8
        Number of parts. There may be fewer if there are few cells.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    int ndarray of shape (n_rows, n_cols)
        Number of the part, from 0, and -1 at cells in no part.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import patterns
    >>> parts = patterns.parts_like_missing(np.ones((6, 4)), 3, random_state=0)
    >>> np.bincount(parts.ravel())
    array([8, 8, 8])
    """
    if n_parts < 2:
        raise ValueError(f"n_parts must be at least 2, got {n_parts}.")
    observed = observed_in(X)
    seed = seed_of(random_state)
    labels = np.full(observed.shape, -1)
    if _adjacent(~observed):
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
    # Numbers without a gap.
    found, number = np.unique(labels, return_inverse=True)
    return number.reshape(labels.shape) - int(found[0] < 0)


def _adjacent(missing: np.ndarray) -> bool:
    """Whether missing cells are adjacent more often than by chance."""
    R = missing - missing.mean(0) - missing.mean(1, keepdims=True) + missing.mean()
    energy = np.square(R).sum()
    if missing.sum() < MIN_MISSING or energy == 0:
        return False
    shifted = max((R[1:] * R[:-1]).sum(), (R[:, 1:] * R[:, :-1]).sum())
    return bool(shifted > 0.3 * energy)


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
