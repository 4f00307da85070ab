"""Draws of the missing cells."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skmc.base.completer import BaseCompleter
from skmc.base.reading import read_rows
from skmc.cells import Container, LikeObserved
from skmc.linalg import Seed, threads_for_rows, truncated_normal

REDRAWS = 20  # of rows outside of bounds


class Samples(BaseCompleter):
    """Mixin of completers whose model is a distribution of the missing cells.

    See Also
    --------
    PartialFit : For models that learn more cells.
    """

    def sample(
        self, X: Container, n_samples: int = 1, random_state: Seed = None
    ) -> Any:
        """Draw the missing cells from their distribution given the observed ones.

        For multiple imputation, use `skmc.uncertainty.pool`. The notes of the class say
        which distribution this is.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.
        n_samples : int >= 1, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Source of random numbers.

        Returns
        -------
        ndarray of shape (n_samples, n_rows, n_features)
            Draws, in which observed cells are unchanged.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
        rng = check_random_state(random_state)
        cells = read_rows(self, X)
        with threads_for_rows(cells, n_samples):
            draws = self._drawn_rows(cells, n_samples, rng)
        if (empty := self._priors.empty_cols).any():
            draws[..., empty] = self._priors.fill(cells, draws[0])[:, empty]
        if self._like is not None:
            draws = np.stack([self._like.apply(draw) for draw in draws])
        return np.where(np.isnan(cells), draws, cells).astype(cells.dtype, copy=False)

    def _drawn_rows(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw rows, in which missing cells are within the bounds."""
        draws: np.ndarray = cast(Any, self._fitted).sample(cells, n_samples, rng)
        if self._bounds is not None:
            _redraw(draws, cells, self._bounds, self._fitted, rng)
        return draws


def _redraw(
    draws: np.ndarray,
    cells: np.ndarray,
    bounds: LikeObserved,
    fitted: Any,
    rng: np.random.RandomState,
) -> None:
    """Draw rows again, in place, until their missing cells are within bounds.

    Rows with many bounded cells are rarely within all bounds. So single cells are
    replaced in the second half of the redraws. Cells that are still outside are drawn
    from a normal distribution between the bounds, with mean and deviation of their
    draws.
    """
    low, high = bounds.low, bounds.high
    sums, squares = np.zeros(cells.shape), np.zeros(cells.shape)
    for number in range(REDRAWS):
        outside = np.isnan(cells) & ((draws < low) | (draws > high))
        rows = np.flatnonzero(outside.any((0, 2)))
        if not len(rows):
            return
        again = fitted.sample(cells[rows], len(draws), rng).astype(float)
        sums[rows] += again.sum(0)
        squares[rows] += np.square(again).sum(0)
        inside = (low <= again) & (again <= high)
        better = outside[:, rows] & inside
        if number < REDRAWS // 2:
            whole = (inside | ~np.isnan(cells[rows])).all(2, keepdims=True)
            better = whole & outside[:, rows].any(2, keepdims=True)
        draws[:, rows] = np.where(better, again, draws[:, rows])
    outside = np.isnan(cells) & ((draws < low) | (draws > high))
    _, row, col = place = np.nonzero(outside)
    n = REDRAWS * len(draws)
    mean = sums[row, col] / n
    std = np.sqrt(np.maximum(squares[row, col] / n - np.square(mean), 0))
    draws[place] = truncated_normal(mean, std, low[col], high[col], rng)
