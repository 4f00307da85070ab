"""Restriction of values to the decimals and range of the observed ones."""

from __future__ import annotations

from collections.abc import Callable
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
        cells: np.ndarray,  # (n_rows, n_cols)
        low: ArrayLike | None = None,  # (n_cols,)
        high: ArrayLike | None = None,  # (n_cols,)
    ) -> LikeObserved:
        """Find decimals and range of the observed cells."""
        observed = [column[~np.isnan(column)] for column in cells.T]
        decimals = np.array([_decimals(values) for values in observed], float)
        smallest = np.array([v.min() if len(v) else -np.inf for v in observed], float)
        largest = np.array([v.max() if len(v) else np.inf for v in observed], float)
        low, high = (
            np.full(len(observed), np.nan if end is None else end, float)
            for end in (low, high)
        )
        smallest[high <= smallest], largest[low >= largest] = -np.inf, np.inf
        # Bounds of rounded values are rounded themselves, if a value lies between them.
        inner = _rounded(low, decimals, np.ceil), _rounded(high, decimals, np.floor)
        decimals[inner[0] > inner[1]] = np.nan
        low, high = (
            np.where(np.isnan(decimals), end, own)
            for end, own in zip((low, high), inner, strict=True)
        )
        return cls(
            decimals,
            np.where(np.isnan(low), smallest, low),
            np.where(np.isnan(high), largest, high),
        )

    @classmethod
    def within(
        cls,
        low: np.ndarray,  # (n_cols,)
        high: np.ndarray,  # (n_cols,)
    ) -> LikeObserved:
        """Restrict values to bounds, whatever their decimals."""
        return cls(
            np.full(len(low), np.nan),
            np.where(np.isnan(low), -np.inf, low),
            np.where(np.isnan(high), np.inf, high),
        )

    def apply(
        self,
        values: np.ndarray,  # (k, n_cols)
    ) -> np.ndarray:  # (k, n_cols)
        """Round values to the decimals of their columns and clip them to the range."""
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


def _rounded(
    bounds: np.ndarray, decimals: np.ndarray, inwards: Callable[..., Any]
) -> np.ndarray:
    """The nearest numbers inside of bounds with some number of decimals."""
    unit = 10.0 ** np.nan_to_num(decimals)
    scaled = bounds * unit
    nearest = np.rint(scaled)  # a multiple of .1 is not exact
    exact = np.isclose(scaled, nearest, rtol=1e-12, atol=0)
    return np.where(exact, bounds, inwards(scaled) / unit)
