"""Transformation of columns to standard normal variables, and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from skmc.cells import Scaling

MOST_LEVELS = 32  # largest number of values that are treated as ordered levels
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class NormalMarginals:
    """Marginals of normal columns, which are standardized.

    Parameters
    ----------
    scaling : Scaling
        Means and standard deviations of the observed cells.
    """

    scaling: Scaling

    def scores(self, cells: np.ndarray) -> np.ndarray:
        return self.scaling.standardise(torch.from_numpy(cells.astype(float))).numpy()

    def undo(self, z: Tensor) -> Tensor:
        return self.scaling.undo(z)

    def mean(self, m: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self.undo(torch.from_numpy(m)).numpy()

    def std(self, m: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return np.sqrt(variance) * self.scaling.scale.numpy()

    def limits(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Scores of bounds, (2, n_cols)."""
        return self.scores(np.stack([low, high]))


@dataclass(frozen=True, eq=False)
class Column:
    """The distribution of the observed cells of a column.

    Level ``i`` is an interval of normal scores between two edges. Its own score is the
    conditional mean in this interval, so the scores have mean 0.

    Parameters
    ----------
    levels : ndarray of shape (k,)
        Distinct values, in ascending order.
    edges : ndarray of shape (k + 1,)
        Edges of the intervals, from minus infinity to infinity.
    centres : ndarray of shape (k,)
        Normal score of each level.
    """

    levels: np.ndarray
    edges: np.ndarray
    centres: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray) -> Column:
        levels, count = np.unique(x if len(x) else np.zeros(1), return_counts=True)
        share = count / count.sum()
        edges = ndtri(np.concatenate([[0], np.cumsum(share)[:-1], [1]]))
        density = np.exp(-np.square(edges) / 2) / np.sqrt(2 * np.pi)
        return cls(levels.astype(float), edges, -np.diff(density) / share)

    @property
    def is_ordinal(self) -> bool:
        return len(self.levels) <= MOST_LEVELS

    def scores(self, x: np.ndarray) -> np.ndarray:
        return np.interp(x, self.levels, self.centres)

    def quantiles(self, z: np.ndarray) -> np.ndarray:
        if self.is_ordinal:
            return self.levels[np.searchsorted(self.edges[1:-1], z)]
        return np.interp(z, self.centres, self.levels)

    def limits(self, low: float, high: float) -> tuple[float, float]:
        """The interval of the scores of values between two bounds.

        There is none if all values are outside of the bounds.
        """
        inside = np.flatnonzero((self.levels >= low) & (self.levels <= high))
        if not len(inside):
            return -np.inf, np.inf
        first, last = inside[0], inside[-1]
        if self.is_ordinal:
            return self.edges[first], self.edges[last + 1]
        ends = self.scores(np.array([low, high]))
        return (
            -np.inf if first == 0 else ends[0],
            np.inf if last == len(self.levels) - 1 else ends[1],
        )

    def moments(
        self, m: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the values of normal scores."""
        s = np.sqrt(variance)[:, None]
        if self.is_ordinal:
            below = ndtr((self.edges - m[:, None]) / np.maximum(s, 1e-12))
            values, weights = self.levels, np.diff(below)
        else:
            values, weights = self.quantiles(m[:, None] + s * NODES), WEIGHTS
        mean = (values * weights).sum(1)
        second = (np.square(values - mean[:, None]) * weights).sum(1)
        return mean, np.sqrt(second)


@dataclass(frozen=True, eq=False)
class CopulaMarginals:
    """Marginals of columns that are monotone functions of normal variables.

    Parameters
    ----------
    columns : list of Column
        Distributions of the observed cells.
    """

    columns: list[Column] = field(repr=False)

    @classmethod
    def of(cls, cells: np.ndarray) -> CopulaMarginals:
        return cls([Column.of(x[~np.isnan(x)]) for x in cells.T])

    def _each(self, apply: Any, *arrays: np.ndarray) -> np.ndarray:
        columns = zip(self.columns, *(a.T for a in arrays), strict=True)
        return np.stack([apply(column, *x) for column, *x in columns], axis=1)

    def scores(self, cells: np.ndarray) -> np.ndarray:
        return self._each(Column.scores, cells)

    def undo(self, z: Tensor) -> Tensor:
        return torch.from_numpy(self._each(Column.quantiles, z.numpy()))

    def limits(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Scores of bounds, (2, n_cols)."""
        return self._each(lambda c, x: np.array(c.limits(*x)), np.stack([low, high]))

    def mean(self, m: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self._each(lambda c, *moments: c.moments(*moments)[0], m, variance)

    def std(self, m: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self._each(lambda c, *moments: c.moments(*moments)[1], m, variance)
