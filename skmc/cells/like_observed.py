"""Restriction of values to the decimals and range of the observed ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

MAX_DECIMALS = 15  # of a number above one in double precision
SAMPLE = 1000  # cells checked first for many decimals


@dataclass(frozen=True)
class LikeObserved:
    """Decimals and range of the observed values of each column.

    Parameters
    ----------
    decimals : ndarray of shape (n_cols,)
        Largest number of decimals of the observed values: 0 for integers. NaN for
        columns whose values have as many decimals as floating-point numbers can have,
        and for columns without an observed value.
    low, high : ndarray of shape (n_cols,)
        Smallest and largest values; infinite without a bound.
    """

    decimals: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(
        cls,
        cells: np.ndarray,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
    ) -> LikeObserved:
        """Find decimals and range of the observed cells.

        Parameters
        ----------
        cells : ndarray of shape (n_rows, n_cols)
            NaN where a cell is missing. Decimals are those of its precision: 0.1 in
            single precision has one.
        low, high : float, or array-like of shape (n_cols,), or None, default=None
            Bounds. None, and NaN for single columns, stand for the smallest and the
            largest observed value.

        Returns
        -------
        LikeObserved
        """
        observed = [column[~np.isnan(column)] for column in cells.T]
        return cls(
            np.array([_decimals(values) for values in observed]),
            _bound(low, [v.min() if len(v) else -np.inf for v in observed]),
            _bound(high, [v.max() if len(v) else np.inf for v in observed]),
        )

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Round values to the decimals of their columns and clip them to the range.

        Parameters
        ----------
        values : ndarray of shape (k, n_cols)
            Completed cells.

        Returns
        -------
        ndarray of shape (k, n_cols)
        """
        rounded = np.array(values, copy=True)
        for digits in np.unique(self.decimals[~np.isnan(self.decimals)]):
            chosen = self.decimals == digits
            rounded[:, chosen] = np.round(values[:, chosen], int(digits))
        return rounded.clip(self.low, self.high).astype(values.dtype)


def _decimals(values: np.ndarray) -> float:
    for digits in range(MAX_DECIMALS if len(values) else 0):
        for part in (values[:SAMPLE], values):
            if (np.round(part, digits) != part).any():
                break
        else:
            return digits
    return np.nan


def _bound(given: object, observed: list[Any]) -> np.ndarray:
    found = np.array(observed, float)
    if given is None:
        return found
    bound = np.broadcast_to(np.asarray(given, float), found.shape)
    return np.where(np.isnan(bound), found, bound)
