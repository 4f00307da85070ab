"""Cells, rows and columns that are hidden at random, or by their values."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from skmc.cells import Container, to_cells
from skmc.linalg import Seed
from skmc.patterns._observed import begin, hide_likely, spared


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

    See Also
    --------
    mar : Depends on other cells of the row.
    mnar : Depends on the cell itself.
    like_missing : In the pattern of the missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import patterns
    >>> patterns.random(np.ones((4, 5)), 0.25, random_state=0).sum()
    np.int64(5)
    """
    observed, rng = begin(X, fraction, random_state)
    free = spared(observed, rng) if spare else observed
    n_hidden = min(round(fraction * observed.sum()), free.sum())
    hidden = np.zeros(observed.shape, bool)
    hidden.flat[rng.permutation(np.flatnonzero(free))[:n_hidden]] = True
    return hidden


def rows(
    X: Container, fraction: float = 0.1, *, random_state: Seed = None
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

    See Also
    --------
    columns : Whole columns.
    random : Single cells.
    """
    observed, rng = begin(X, fraction, random_state)
    chosen = rng.permutation(len(observed))[: round(fraction * len(observed))]
    hidden = np.zeros(observed.shape, bool)
    hidden[chosen] = True
    return hidden & observed


def columns(
    X: Container, fraction: float = 0.1, *, random_state: Seed = None
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

    See Also
    --------
    rows : Whole rows.
    random : Single cells.
    """
    return rows(to_cells(X).T, fraction, random_state=random_state).T


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
        Slope of the logit of the likelihood over the standardized value.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)

    See Also
    --------
    mnar : Depends on the cell itself.
    random : Depends on nothing.
    """
    observed, rng = begin(X, fraction, random_state)
    n_cols = observed.shape[1]
    shown = rng.permutation(n_cols)[: max(1, n_cols // 3)]
    z = _standardized(to_cells(X))[:, shown]
    score = np.where(np.isnan(z), 0, z).mean(1, keepdims=True)
    likelihood = np.broadcast_to(expit(steepness * score), observed.shape)
    free = observed.copy()
    free[:, shown] = False
    share = fraction * observed.sum() / max(1, free.sum())
    return hide_likely(likelihood, free, min(1.0, share), rng)


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
        Slope of the logit of the likelihood over the standardized value.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of cells.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)

    See Also
    --------
    mar : Depends on other cells of the row.
    random : Depends on nothing.
    """
    observed, rng = begin(X, fraction, random_state)
    z = np.where(observed, _standardized(to_cells(X)), 0)
    return hide_likely(expit(steepness * z), observed, fraction, rng)


def _standardized(cells: np.ndarray) -> np.ndarray:
    observed = ~np.isnan(cells)
    count = np.maximum(observed.sum(0), 1)
    mean = np.where(observed, cells, 0).sum(0) / count
    deviation = np.sqrt((np.where(observed, cells - mean, 0) ** 2).sum(0) / count)
    return (cells - mean) / np.where(deviation > 0, deviation, 1)


def per_row(
    X: Container, fraction: float = 0.2, *, random_state: Seed = None
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

    See Also
    --------
    row_tail : The last columns of rows.
    random : Single cells of the whole matrix.
    """
    observed, rng = begin(X, fraction, random_state)
    count = observed.sum(1)
    n_hidden = np.ceil(fraction * count).clip(max=np.maximum(count - 1, 0))
    lot = np.where(observed, rng.random_sample(observed.shape), 2.0)
    rank = lot.argsort(1).argsort(1)
    return (rank < n_hidden[:, None]) & observed
