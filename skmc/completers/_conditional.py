"""Conditional distributions of rows, under a Gaussian or a Gaussian copula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import NOT_IN_MEMORY, Fitted
from skmc.cells import Container, LikeObserved
from skmc.completers._marginals import CopulaMarginals, NormalMarginals
from skmc.linalg import Gaussian, Seed, threads_for_rows, truncated_normal
from skmc.solvers import EM, FactorEM, Solver

STEPS = 3  # of data augmentation between two draws of the model
REDRAWS = 5  # of rows outside of bounds
SWEEPS = 10  # of Gibbs sampling of the rows that are still outside

if TYPE_CHECKING:
    from skmc.completers.gaussian import GaussianCompleter


@dataclass(eq=False)
class Conditional(Fitted):
    """Conditional distributions of the missing cells of rows.

    Parameters
    ----------
    model : Gaussian or FactorGaussian
        Distribution of the scores of a row.
    marginals : NormalMarginals or CopulaMarginals
        Map from cells to scores and back.
    cells : ndarray of shape (n_rows, n_cols) or None, default=None
        Fitted matrix, if it was in memory.
    sums : ExpectedSums or None, default=None
        Expected sums over all rows after `partial_fit`.
    first_columns : ndarray of shape (n_cols,) or None, default=None
        For each column of a matrix that represents a table, the first column that
        represents the same cell.
    """

    model: Any
    marginals: Any
    cells: np.ndarray | None = None
    sums: Any = None
    first_columns: np.ndarray | None = None

    def in_memory(self) -> np.ndarray:
        """The fitted matrix, or an AttributeError if it was not in memory."""
        if self.cells is None:
            raise AttributeError(NOT_IN_MEMORY)
        return self.cells

    def predict(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        if not everywhere and isinstance(self.marginals, NormalMarginals):
            # Missing cells only; their means need no variances.
            return self.marginals.undo(self.model(*self.scores(cells))).numpy()
        return self.marginals.mean(*self.given_others(cells))

    def whole(self) -> np.ndarray:
        return self._expected(self.in_memory())

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        which, at = np.unique(rows, return_inverse=True)
        return self._expected(self.in_memory()[which])[at, cols]

    def _expected(self, cells: np.ndarray) -> np.ndarray:
        return self.rows(cells).astype(cells.dtype)

    def scores(self, cells: np.ndarray) -> tuple[Tensor, Tensor]:
        """Scores of cells, and a mask of the scores that are used."""
        scores = torch.from_numpy(self.marginals.scores(cells))
        # The fit has not learned how other columns depend on a constant one.
        varies = torch.from_numpy(self.statistics.varies)
        return scores, ~torch.isnan(scores) & varies

    def given_others(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the score of each cell, given the others in its row.

        Columns that represent one cell of a table are no others of each other.
        """
        moments = self.model.given_others(*self.scores(cells))
        mean, variance = moments[0].numpy(), moments[1].numpy()
        for columns in self._shared_cells():
            rows = np.flatnonzero(~np.isnan(cells[:, columns[0]]))
            rest = cells[rows]
            rest[:, columns] = np.nan
            moments = self.model.given_others(*self.scores(rest))
            at = np.ix_(rows, columns)
            mean[at] = moments[0][:, columns].numpy()
            variance[at] = moments[1][:, columns].numpy()
        return mean, variance

    def _shared_cells(self) -> list[np.ndarray]:
        """Columns of each cell of a table that several of them represent."""
        if self.first_columns is None:
            return []
        first, count = np.unique(self.first_columns, return_counts=True)
        return [np.flatnonzero(self.first_columns == k) for k in first[count > 1]]

    def std(self, cells: np.ndarray) -> np.ndarray:
        """Standard deviation of each cell, given the others in its row."""
        std = self.marginals.std(*self.given_others(cells))
        std[:, self.statistics.empty_cols] = np.nan
        return std

    def sample(
        self,
        cells: np.ndarray,
        n_samples: int,
        ridge: float,
        rng: np.random.RandomState,
        bounds: LikeObserved | None = None,
    ) -> np.ndarray:
        """Draw the missing cells given the observed ones, within bounds."""
        scores, seen = self.scores(cells)
        found = np.empty((n_samples, *cells.shape), cells.dtype)
        limits = self._limits(bounds)
        models = self._posterior(ridge, rng, limits)
        for k, model in zip(range(n_samples), models, strict=False):
            drawn = _drawn(model, scores, seen, rng, limits)
            values = self.statistics.fill(cells, self.marginals.undo(drawn).numpy())
            if bounds is not None:
                values = self._into(values, cells, bounds, rng)
            found[k] = np.where(np.isnan(cells), values, cells)
        return found

    def _into(
        self,
        values: np.ndarray,
        cells: np.ndarray,
        bounds: LikeObserved,
        rng: np.random.RandomState,
    ) -> np.ndarray:
        """Draw values of a copula again if no observed value is within the bounds."""
        low, high = bounds.low, bounds.high
        place = np.nonzero(np.isnan(cells) & ((values < low) | (values > high)))
        if len(place[0]) and isinstance(self.marginals, CopulaMarginals):
            moments = self.given_others(cells)
            mean = self.marginals.mean(*moments)[place]
            std = self.marginals.std(*moments)[place]
            ends = low[place[1]], high[place[1]]
            values[place] = truncated_normal(mean, std, *ends, rng)
        return bounds.apply(values)

    def _limits(self, bounds: LikeObserved | None) -> tuple[Tensor, Tensor] | None:
        """Bounds of the scores of columns that vary."""
        if bounds is None:
            return None
        varies, ends = self.statistics.varies, (-np.inf, np.inf)
        pairs = zip(self.marginals.limits(bounds.low, bounds.high), ends, strict=True)
        low, high = (torch.from_numpy(np.where(varies, z, end)) for z, end in pairs)
        return low, high

    def _posterior(
        self,
        ridge: float,
        rng: np.random.RandomState,
        limits: tuple[Tensor, Tensor] | None,
    ) -> Iterator[Any]:
        """Draw models by data augmentation, or repeat a model that allows no draws."""
        model = self.model
        if self.cells is None or not isinstance(model, Gaussian):
            yield from repeat(model)
        scores = torch.from_numpy(self.marginals.scores(self.cells))
        seen = ~torch.isnan(scores)
        while True:
            for _ in range(STEPS):
                whole = _drawn(model, scores, seen, rng, limits)
                model = Gaussian.from_posterior(whole, ridge, rng)
            yield model


def _drawn(
    model: Any,
    scores: Tensor,
    seen: Tensor,
    rng: np.random.RandomState,
    limits: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Draw the missing scores given the observed ones, within limits.

    A draw z of the whole rows is corrected by the conditional mean of the difference at
    observed cells. Rows outside of the limits are drawn again, or by Gibbs sampling
    after several draws outside.
    """

    def free(scores: Tensor, seen: Tensor) -> Tensor:
        z = model.draw(torch.from_numpy(rng.standard_normal(scores.shape)))
        drawn: Tensor = z + model(scores - z + model.mean, seen) - model.mean
        return drawn

    drawn = free(scores, seen)
    if limits is None:
        return drawn
    low, high = limits
    for _ in range(REDRAWS):
        outside = (~seen & ((drawn < low) | (drawn > high))).any(1)
        if not outside.any():
            return drawn
        drawn[outside] = free(scores[outside], seen[outside])
    bounded = low.isfinite() | high.isfinite()
    precision = torch.linalg.inv(model.covariance)
    x, known = drawn[outside], seen[outside]
    x = torch.where(known, x, x.clamp(low, high))
    for _ in range(SWEEPS):
        for j in bounded.nonzero()[:, 0].tolist():
            rows = ~known[:, j]
            variance = 1 / precision[j, j]
            pull = (x[rows] - model.mean) @ precision[j] * variance
            mean, std = (x[rows, j] - pull).numpy(), float(variance.sqrt())
            ends = float(low[j]), float(high[j])
            x[rows, j] = torch.from_numpy(truncated_normal(mean, std, *ends, rng))
        if not (known | bounded).all():
            x = free(x, known | bounded)
    drawn[outside] = x
    return drawn


def em(ridge: float, rank: int | None, start: Any) -> Solver:
    return EM(ridge, start) if rank is None else FactorEM(ridge, rank, start)


def learned(fitted: Conditional) -> dict[str, Any]:
    """The fitted attributes of a model."""
    location, covariance = fitted.model.mean, fitted.model.covariance
    if isinstance(fitted.marginals, NormalMarginals):
        scale = fitted.marginals.scaling.scale[0]
        location = fitted.marginals.undo(location)[0]
        covariance = covariance * torch.outer(scale, scale)
    return {
        "location_": location.numpy(),
        "covariance_": covariance.numpy(),
        "_fitted": fitted,
    }


def predict_std(self: GaussianCompleter, X: Container) -> np.ndarray:
    """Standard deviation of the cells that `transform` returns.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_samples, n_features)
        Rows, which need not be rows of the fit.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Conditional on the observed cells of the row; 0 for these cells themselves
        (with ``keep_observed=False``: conditional on the others). All columns of
        ``X`` are included; empty ones have NaN.
    """
    check_is_fitted(self)
    cells = self._read(X, reset=False)
    with threads_for_rows(cells):
        std = self._fitted.std(cells)
    if self.keep_observed:
        std[~np.isnan(cells) & ~self._priors.empty_cols] = 0.0
    return std.astype(cells.dtype, copy=False)


def sample(
    self: GaussianCompleter,
    X: Container,
    n_samples: int = 1,
    random_state: Seed = None,
) -> np.ndarray:
    """Draw the missing cells from their joint distribution given the observed ones.

    For multiple imputation, use `skmc.uncertainty.pool`. Each draw has a mean and a
    covariance of its own, from their posterior distribution given the fitted cells, by
    three steps of data augmentation. Where the covariance has factors, and after a fit
    to a collection of Dask, all draws have those of the fit.

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
    rng = check_random_state(random_state)
    cells = self._read(X, reset=False)
    with threads_for_rows(cells, n_samples):
        parts = cells, n_samples, self.lambda_ridge_, rng, self._bounds
        return self._fitted.sample(*parts)
