"""Patterns of cells to hide, for experiments and for validation.

Every pattern takes a matrix ``X`` (any container, see `skmc.cells.to_cells`) and
returns a boolean array of its shape, True at the *observed* cells to hide. Cells that
are already missing are never counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from skmc.cells import Container, to_cells
from skmc.linalg import Seed, seed_of

MIN_MISSING = 20  # fewer missing cells may be adjacent by chance
MAX_MOVES = 20


def _observed(X: Container) -> np.ndarray:
    observed = ~np.isnan(to_cells(X))
    if observed.ndim != 2:
        raise ValueError(f"X must be a matrix, got {observed.ndim} dimensions.")
    return observed


def _fraction(fraction: float) -> float:
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must lie in [0, 1], got {fraction}.")
    return fraction


def _hide_likely(
    likelihood: np.ndarray,
    observed: np.ndarray,
    fraction: float,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Sample ``fraction`` of the observed cells in proportion to ``likelihood``."""
    n_hidden = round(fraction * observed.sum())
    # The largest log(p) + Gumbel noise are a weighted sample without replacement.
    with np.errstate(divide="ignore"):
        keys = np.log(likelihood) + rng.gumbel(size=observed.shape)
    order = np.argsort(np.where(observed, keys, -np.inf), axis=None)
    hidden = np.zeros(observed.size, bool)
    hidden[order[observed.size - n_hidden :]] = True
    return hidden.reshape(observed.shape) & observed


def random(
    X: Container,
    fraction: float = 0.3,
    *,
    spare: bool = False,
    random_state: Seed = None,
) -> np.ndarray:
    """Cells missing completely at random (MCAR).

    Parameters
    ----------
    X : matrix of any container
        The matrix. Cells that are already missing are not hidden.
    fraction : float in [0, 1], default=0.3
        Share of the observed cells to hide.
    spare : bool, default=False
        Whether every row and every column keeps at least one observed cell. Fewer
        cells than ``fraction`` are hidden if this requires it.
    random_state : int, RandomState instance or None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
        True at the cells to hide.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import patterns
    >>> patterns.random(np.ones((4, 5)), 0.25, random_state=0).sum()
    np.int64(5)
    """
    observed = _observed(X)
    rng = np.random.RandomState(seed_of(random_state) % 2**32)
    free = _spared(observed, rng) if spare else observed
    n_hidden = min(round(_fraction(fraction) * observed.sum()), free.sum())
    hidden = np.zeros(observed.shape, bool)
    hidden.flat[rng.permutation(np.flatnonzero(free))[:n_hidden]] = True
    return hidden


def like_missing(
    X: Container,
    fraction: float = 0.1,
    *,
    random_state: Seed = None,
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
    observed = _observed(X)
    rng = np.random.RandomState(seed_of(random_state) % 2**32)
    free = _spared(observed, rng)
    n_hidden = min(round(_fraction(fraction) * observed.sum()), free.sum())
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
    # An empty column says nothing about how cells are lost elsewhere.
    share = (~observed).mean(0) * observed.any(0)
    likely = free * np.where(share > 0, share, 0 if share.any() else 1)
    if not likely.any():
        likely = free * 1.0
    # At most a third of the column with the most missing cells.
    n_hidden = min(n_hidden, round(likely.sum() / (likely.max() or 1) / 3))
    if not n_hidden:
        return hidden
    return _hide_likely(likely, observed, n_hidden / observed.sum(), rng)


def parts_like_missing(
    X: Container,
    n_parts: int = 8,
    *,
    random_state: Seed = None,
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
        The number of the part, from 0, and -1 at cells that are in none.

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
    observed = _observed(X)
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


def _spared(observed: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """The observed cells, except one of each row and one of each column."""
    lot = np.where(observed, rng.random_sample(observed.shape), -1)
    kept = (lot == lot.max(1, keepdims=True)) | (lot == lot.max(0, keepdims=True))
    return observed & ~kept


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


def patch(
    X: Any, boxes: Any = ((70, 100, 150, 190), (200, 230, 200, 230))
) -> np.ndarray:
    """Rectangles, given as ``(row_start, row_stop, col_start, col_stop)``.

    The default is the "patch" mask of the AIR paper, for 240 x 240.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    boxes : sequence of four int each
        The rectangles to hide.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
    """
    observed = _observed(X)
    hidden = np.zeros(observed.shape, bool)
    for top, bottom, left, right in boxes:
        if not (
            0 <= top < bottom <= observed.shape[0]
            and 0 <= left < right <= observed.shape[1]
        ):
            raise ValueError(
                f"box {(top, bottom, left, right)} does not lie in a matrix of shape "
                f"{observed.shape}; give (row_start, row_stop, col_start, col_stop)."
            )
        hidden[top:bottom, left:right] = True
    return hidden & observed


def texture(X: Container, mask_image: Any) -> np.ndarray:
    """Cells where a picture of the same shape is dark, below half of its range.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    mask_image : array of shape (n_rows, n_cols)
        The picture.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
    """
    observed, picture = _observed(X), np.asarray(mask_image)
    if picture.shape != observed.shape:
        raise ValueError(
            f"mask_image has shape {picture.shape}, X has {observed.shape}; resize it."
        )
    middle = (float(picture.min()) + float(picture.max())) / 2
    return (picture < middle) & observed


def text(
    X: Container, words: str = "lorem ipsum", *, height: float = 0.1
) -> np.ndarray:
    """Words written over the matrix, line after line.

    Parameters
    ----------
    X : matrix of any container
        The matrix. Cells that are already missing are not hidden.
    words : str
        Text, repeated to fill each line.
    height : float in (0, 1]
        Height of a line as a share of the number of rows.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)

    Raises
    ------
    ImportError
        Pillow is not installed (``pip install skmc[plot]``).
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ImportError(
            "patterns.text needs Pillow: pip install 'skmc[plot]'."
        ) from error
    observed = _observed(X)
    if not 0 < height <= 1:
        raise ValueError(f"height must lie in (0, 1], got {height}.")
    n_rows, n_cols = observed.shape
    line = max(8, round(height * n_rows))
    picture = Image.new("L", (n_cols, n_rows))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=0.8 * line)
    row = (words + " ") * (1 + n_cols // max(1, len(words)))
    for start in range(0, n_rows, line):
        draw.text((0, start), row, fill=255, font=font)
    return (np.asarray(picture) > 127) & observed


def rows(
    X: Container,
    fraction: float = 0.1,
    *,
    random_state: Seed = None,
) -> np.ndarray:
    """All cells of randomly chosen rows.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    fraction : float in [0, 1], default=0.1
        Share of the rows to hide.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
    """
    observed = _observed(X)
    rng = np.random.RandomState(seed_of(random_state) % 2**32)
    chosen = rng.permutation(len(observed))[
        : round(_fraction(fraction) * len(observed))
    ]
    hidden = np.zeros(observed.shape, bool)
    hidden[chosen] = True
    return hidden & observed


def columns(
    X: Container,
    fraction: float = 0.1,
    *,
    random_state: Seed = None,
) -> np.ndarray:
    """All cells of randomly chosen columns.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    fraction : float in [0, 1], default=0.1
        Share of the columns to hide.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
    """
    cells = to_cells(X)
    return rows(cells.T, fraction, random_state=random_state).T


def mar(
    X: Container,
    fraction: float = 0.3,
    *,
    steepness: float = 3.0,
    random_state: Seed = None,
) -> np.ndarray:
    """Cells missing at random (MAR): likely where *other* cells of the row are large.

    A random third of the columns (at least one) is never hidden. The likelihood of
    the other cells is ``expit(steepness * s)``, where ``s`` is the row's mean
    standardized value over those columns.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    fraction : float in [0, 1], default=0.3
        Share of the observed cells to hide.
    steepness : float >= 0, default=3.0
        How strongly the likelihood depends on the standardized value.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
    """
    cells = to_cells(X)
    observed = _observed(X)
    rng = np.random.RandomState(seed_of(random_state) % 2**32)
    n_cols = observed.shape[1]
    shown = rng.permutation(n_cols)[: max(1, n_cols // 3)]
    z = _standardized(cells)[:, shown]
    score = np.where(np.isnan(z), 0, z).mean(1, keepdims=True)
    likelihood = np.broadcast_to(expit(steepness * score), observed.shape)
    free = observed.copy()
    free[:, shown] = False
    share = _fraction(fraction) * observed.sum() / max(1, free.sum())
    return _hide_likely(likelihood, free, min(1.0, share), rng)


def mnar(
    X: Container,
    fraction: float = 0.3,
    *,
    steepness: float = 3.0,
    random_state: Seed = None,
) -> np.ndarray:
    """Cells missing not at random (MNAR): likely where the cell *itself* is large.

    The likelihood is ``expit(steepness * z)``, where ``z`` is the value, standardized
    by column.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    fraction : float in [0, 1], default=0.3
        Share of the observed cells to hide.
    steepness : float >= 0, default=3.0
        How strongly the likelihood depends on the standardized value.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
    """
    cells = to_cells(X)
    observed = _observed(X)
    rng = np.random.RandomState(seed_of(random_state) % 2**32)
    z = np.where(observed, _standardized(cells), 0)
    return _hide_likely(expit(steepness * z), observed, _fraction(fraction), rng)


def _standardized(cells: Any) -> np.ndarray:
    observed = ~np.isnan(cells)
    count = np.maximum(observed.sum(0), 1)
    mean = np.where(observed, cells, 0).sum(0) / count
    deviation = np.sqrt((np.where(observed, cells - mean, 0) ** 2).sum(0) / count)
    return (cells - mean) / np.where(deviation > 0, deviation, 1)


def per_row(
    X: Container,
    fraction: float = 0.2,
    *,
    random_state: Seed = None,
) -> np.ndarray:
    """The same share of each row's observed cells, such as a hold-out per user.

    Every row keeps at least one cell. In rows with two or more observed cells, at least
    one is hidden.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    fraction : float in [0, 1], default=0.2
        Share of each row's observed cells to hide.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
    """
    observed = _observed(X)
    rng = np.random.RandomState(seed_of(random_state) % 2**32)
    count = observed.sum(1)
    n_hidden = np.ceil(_fraction(fraction) * count).clip(max=np.maximum(count - 1, 0))
    lot = np.where(observed, rng.random_sample(observed.shape), 2.0)
    rank = lot.argsort(1).argsort(1)
    return (rank < n_hidden[:, None]) & observed
