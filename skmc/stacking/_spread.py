"""Intervals from the errors of a stack on held-out cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma

from skmc.model_selection import HeldOutErrors

TINY = np.finfo(float).tiny
EXACT = 1e-12  # smallest mean square of a column, relative to that of all
NEWTON = 8  # steps to the inverse of trigamma
PRIOR = 10.0  # number of cells that the error of all columns counts as


@dataclass(frozen=True)
class Spread:
    r"""Standard deviations of cells, and quantiles of the errors relative to them.

    The deviation of a cell is

    .. math::

        u_{ij}^2 = s_j^2 + v_{ij}, \qquad
        s_j^2 = \frac{\sum_i r_{ij}^2 + a\, r^2}{n_j + a},

    where :math:`v_{ij}` is the variance of the members' predictions, :math:`r_{ij}` the
    errors on the ``n_j`` held-out cells of the column, :math:`r^2` their mean square in
    all columns, and ``a`` = 10. For columns with ten cells or more, ``a`` and ``r^2``
    are those of the inverse gamma distribution of the variances of such columns, by
    empirical Bayes: if some columns follow from others exactly, and others do not, both
    are small. Intervals are :math:`x \pm q u_{ij}` with the quantile ``q`` of
    :math:`|r_{ij}| / u_{ij}` over all held-out cells, the conformal correction.

    Parameters
    ----------
    std : ndarray of shape (n_cols,)
        Standard deviations :math:`s_j` of the columns.
    errors : HeldOutErrors
        Relative errors :math:`r_{ij} / u_{ij}`.
    """

    std: np.ndarray
    errors: HeldOutErrors

    @classmethod
    def of(
        cls,
        residuals: np.ndarray,
        variances: np.ndarray,
        donors: np.ndarray,
        cols: np.ndarray,
        n_cols: int,
    ) -> Spread:
        """Compute the spread of held-out cells of ``donors`` in the columns ``cols``.

        A donor is a row in one part of the cells.
        """
        if not len(residuals):
            nothing = HeldOutErrors(residuals, donors, cols)
            return cls(np.full(n_cols, np.nan), nothing)
        squares, count = np.square(residuals), np.bincount(cols, minlength=n_cols)
        total, many = np.bincount(cols, squares, n_cols), count >= PRIOR
        own = _prior(total[many], count[many]) if many.sum() > 1 else None
        prior, mean = (np.full(n_cols, x) for x in (PRIOR, squares.mean()))
        if own is not None:
            prior[many], mean[many] = own
        std = np.sqrt((total + prior * mean) / (count + prior))
        size = np.maximum(np.hypot(std[cols], np.sqrt(variances)), TINY)
        return cls(std, HeldOutErrors.of(residuals / size, donors, cols))

    def deviations(self, variances: np.ndarray) -> np.ndarray:
        """Return :math:`u_{ij}` from :math:`v_{ij}`, of shape (n_rows, n_cols)."""
        return np.hypot(self.std, np.sqrt(variances))

    def quantile(self, level: float) -> float:
        """Return ``q`` for intervals with the share ``level`` of the cells."""
        scores = np.sort(np.abs(self.errors.values))
        n = len(scores)
        return scores[min(math.ceil(level * (n + 1)), n) - 1] if n else np.nan


def _prior(total: np.ndarray, count: np.ndarray) -> tuple[float, float] | None:
    """Number of cells and variance of the distribution of columns; None if all agree.

    The logarithm of the mean square of ``n`` cells varies by ``trigamma(n / 2)``, and
    that of the variances of columns by ``trigamma(a / 2)``.
    """
    half, least = count / 2, EXACT * total.sum() / count.sum()
    level = np.log(np.maximum(total / count, max(least, TINY)))
    level -= digamma(half) - np.log(half)
    more = level.var(ddof=1) - polygamma(1, half).mean()
    if more <= polygamma(1, PRIOR / 2):
        return None
    found = 0.5 + 1 / more
    for _ in range(NEWTON):
        value = polygamma(1, found)
        found += value * (1 - value / more) / polygamma(2, found)
    return 2 * found, float(np.exp(level.mean() + digamma(found) - np.log(found)))
