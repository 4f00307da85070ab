"""Intervals from the errors of a stack on held-out cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

PRIOR = 10  # cells as many as the error of all columns counts for


@dataclass(frozen=True)
class Spread:
    r"""Errors on held-out cells: their size in each column, and their quantiles.

    The deviation of a column is

    .. math::

        s_j^2 = \frac{\sum_i r_{ij}^2 + a\, r^2}{n_j + a}

    over its ``n_j`` held-out cells, with the mean square :math:`r^2` over all columns
    and ``a`` = 10. Intervals are :math:`x \pm q s_j` with the quantile ``q`` of
    :math:`|r_{ij}| / s_j` over all held-out cells, the conformal correction.

    Parameters
    ----------
    std : ndarray of shape (n_cols,)
        :math:`s_j`.
    scores : ndarray
        :math:`|r_{ij}| / s_j`, in ascending order.
    """

    std: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, residuals: np.ndarray, cols: np.ndarray, unit: np.ndarray) -> Spread:
        """Measure residuals in the columns ``cols``, in these ``unit`` (n_cols,)."""
        if not len(residuals):
            return cls(np.full(len(unit), np.nan), residuals)
        squares = np.square(residuals)
        total = np.bincount(cols, squares, len(unit)) + PRIOR * squares.mean()
        std = np.sqrt(total / (np.bincount(cols, minlength=len(unit)) + PRIOR))
        sizes = np.maximum(std[cols], np.finfo(float).tiny)
        return cls(std * unit, np.sort(np.abs(residuals) / sizes))

    def half_widths(self, level: float) -> np.ndarray:
        """Half of the interval of each column that has the share ``level``."""
        if not len(self.scores):
            return self.std
        n = len(self.scores)
        half: np.ndarray = (
            self.std * self.scores[min(math.ceil(level * (n + 1)), n) - 1]
        )
        return half
