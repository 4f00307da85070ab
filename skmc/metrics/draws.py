"""Scores of draws and intervals, which also judge how uncertain a completion is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from skmc.cells import Container, in_order, labels_of, to_cells
from skmc.metrics.errors import compared

ROWS = 1000  # whose distances are computed at once


def check_level(level: float) -> None:
    """Require the probability of an interval to lie in (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}.")


def crps(draws: ArrayLike, M: Container, cells: ArrayLike | None = None) -> float:
    r"""Continuous ranked probability score, in units of the data.

    .. math::

        \frac1K \sum_k |x_k - m| - \frac{1}{2 K (K - 1)} \sum_{k, l} |x_k - x_l|

    for the draws :math:`x_1, \ldots, x_K` of a cell with the truth m; the *mean* is
    over the cells. Its expectation is smallest if the draws come from the distribution
    of m. That of a single draw is the mean absolute error.

    Parameters
    ----------
    draws : array-like of shape (n_draws, n_rows, n_cols)
        Completed matrices. Quantiles at equally spaced levels serve as draws, too.
    M : container of shape (n_rows, n_cols)
        The truth.
    cells : bool array of shape (n_rows, n_cols) or None, default=None
        The cells to compare, for example the completed ones. None means all cells that
        are known in ``M``.

    Returns
    -------
    float

    See Also
    --------
    interval_score : Judges intervals instead of draws.
    energy_distance : Judges whole rows.

    References
    ----------
    Gneiting, Raftery. Strictly proper scoring rules, prediction, and estimation.
    Journal of the American Statistical Association 102 (2007).

    Examples
    --------
    >>> from skmc.metrics import crps
    >>> crps([[[0.0]], [[2.0]]], [[1.0]])  # far apart, and the truth between
    0.0
    """
    pairs = [compared(draw, M, cells) for draw in cast(Iterable[Any], draws)]
    values, (_, truth, _) = np.sort([x for x, _, _ in pairs], axis=0), pairs[0]
    n = len(values)
    # A sorted value is the larger one in a pair with each value before it.
    ranks = (2 * np.arange(n) - n + 1)[:, None]
    apart = (ranks * values).sum(0) / max(n * (n - 1), 1)
    return float((np.abs(values - truth).mean(0) - apart).mean())


def interval_score(
    low: Container,
    high: Container,
    M: Container,
    level: float = 0.9,
    cells: ArrayLike | None = None,
) -> float:
    r"""Width of intervals, and a penalty for each truth outside, in units of the data.

    .. math:: h - l + \frac{2}{1 - \text{level}} \left((l - m)_+ + (m - h)_+\right)

    The *mean* is over the cells. Its expectation is smallest for the central interval
    of the distribution of m.

    Parameters
    ----------
    low, high : container of shape (n_rows, n_cols)
        Ends of the intervals, as `skmc.uncertainty.MultipleCompletion.interval` returns
        them.
    M : container of shape (n_rows, n_cols)
        The truth.
    level : float in (0, 1), default=0.9
        Probability with which the intervals are meant to hold the truth.
    cells : bool array of shape (n_rows, n_cols) or None, default=None
        The cells to compare. None means all cells that are known in ``M``.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        ``level`` is not in (0, 1), or an interval ends before it begins.

    See Also
    --------
    crps : Judges draws instead of intervals.

    Examples
    --------
    >>> from skmc.metrics import interval_score
    >>> interval_score([[0.0, 0.0]], [[1.0, 1.0]], [[0.5, 2.0]], level=0.5)
    3.0
    """
    check_level(level)
    (bottom, truth, _), (top, _, _) = compared(low, M, cells), compared(high, M, cells)
    if (bottom > top).any():
        raise ValueError("low exceeds high at a compared cell; exchange them.")
    outside = np.maximum(bottom - truth, 0) + np.maximum(truth - top, 0)
    return float((top - bottom + 2 / (1 - level) * outside).mean())


def energy_distance(X: Container, M: Container) -> float:
    r"""Distance between the distributions of completed rows and of true rows.

    .. math:: 2 E \|x - m\| - E \|x - x'\| - E \|m - m'\|

    with independent rows x of the completion and m of the truth, in units of the
    standard deviations of the columns of ``M``; constant columns have unit 1. It is
    zero only for equal distributions, so it judges spread and correlations, unlike
    errors of single cells: draws are better than conditional means. For several draws,
    take the mean of their distances.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        A completed matrix.
    M : container of shape (n_rows, n_cols), or of another number of rows
        Rows without missing cells of the true distribution. Rows with a missing cell
        are left out.

    Returns
    -------
    float
        At least 0.

    Raises
    ------
    ValueError
        ``X`` has a missing cell, the numbers of columns differ, or ``M`` has no
        complete row.

    See Also
    --------
    crps : Judges single cells.

    References
    ----------
    Székely, Rizzo. Energy statistics: A class of statistics based on distances. Journal
    of Statistical Planning and Inference 143 (2013).

    Näf, Grzesiak, Scornet. What is a good imputation under MAR missingness?
    arXiv:2403.19196 (2024).

    Examples
    --------
    >>> from skmc.metrics import energy_distance
    >>> energy_distance([[1.0], [0.0]], [[0.0], [1.0]])
    0.0
    """
    X = in_order(X, None, labels_of(M)[1], "X", "M")
    values, truth = np.asarray(to_cells(X), float), np.asarray(to_cells(M, name="M"))
    truth = truth[~np.isnan(truth).any(1)].astype(float)
    if np.isnan(values).any():
        raise ValueError("X has missing cells; complete it first.")
    if values.shape[1] != truth.shape[1]:
        raise ValueError(
            f"X has {values.shape[1]} columns, and M has {truth.shape[1]}; they must "
            "be the same."
        )
    if not len(truth):
        raise ValueError("M has no row without a missing cell; nothing to compare.")
    deviation = truth.std(0)
    unit = np.where(deviation > 0, deviation, 1.0)
    x, m = values / unit, truth / unit
    between = 2 * _mean_distance(x, m) - _mean_distance(x, x) - _mean_distance(m, m)
    return max(between, 0.0)  # but for rounding it is not negative


def _mean_distance(a: np.ndarray, b: np.ndarray) -> float:
    """The mean Euclidean distance of all pairs of rows."""
    total = sum(cdist(a[k : k + ROWS], b).sum() for k in range(0, len(a), ROWS))
    return float(total) / (len(a) * len(b))


def scale_reduction(chains: ArrayLike) -> float:
    r"""Potential scale reduction of chains, R-hat, which is near 1 if they agree.

    .. math::

        \hat R = \sqrt{\frac{n - 1}{n} + \frac{B}{W}}

    for the later half of each chain, of :math:`n` steps: :math:`B` is the variance of
    the means of the chains, and :math:`W` the *mean* of the variances within them. Of
    several quantities, both are means over all of them. Values above 1.1 say that the
    chains still depend on their starts.

    Parameters
    ----------
    chains : array-like of shape (n_steps, n_chains) or (n_steps, n_chains, n)
        Values of one or of n quantities, such as means of imputed cells.

    Returns
    -------
    float
        NaN for fewer than three steps. A single chain is taken to agree.

    See Also
    --------
    skmc.plot.ConvergenceDisplay : Draws the chains.

    References
    ----------
    Gelman, Rubin. Inference from iterative simulation using multiple sequences.
    Statistical Science 7 (1992).

    Examples
    --------
    >>> from skmc.metrics import scale_reduction
    >>> round(scale_reduction([[0, 9], [9, 0], [1, 0], [2, 1], [1, 2], [0, 1]]), 2)
    0.87
    """
    chains = np.asarray(chains, float)
    later = chains[len(chains) // 2 :]
    n = len(later)
    if n < 2:
        return math.nan
    within = later.var(0, ddof=1).mean()
    between = later.mean(0).var(0, ddof=1).mean() if later.shape[1] > 1 else 0.0
    ratio = between / within if within > 0 else 0.0
    return math.sqrt((n - 1) / n + ratio)
