"""Conditional distributions of rows, under a Gaussian or a Gaussian copula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import NOT_IN_MEMORY, Fitted
from skmc.cells import Container
from skmc.completers._marginals import NormalMarginals
from skmc.linalg import Seed
from skmc.solvers import EM, FactorEM, Solver

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
    """

    model: Any
    marginals: Any
    cells: np.ndarray | None = None
    sums: Any = None

    def in_memory(self) -> np.ndarray:
        """The fitted matrix, or an AttributeError if it was not in memory."""
        if self.cells is None:
            raise AttributeError(NOT_IN_MEMORY)
        return self.cells

    def predict(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        if not everywhere and isinstance(self.marginals, NormalMarginals):
            # Missing cells only; their means need no variances.
            scores = self.marginals.undo(self.model(*self.scores(cells)))
            return np.asarray(scores.numpy())
        return np.asarray(self.marginals.mean(*self.given_others(cells)))

    def whole(self) -> np.ndarray:
        return self._expected(self.in_memory())

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        which, at = np.unique(rows, return_inverse=True)
        values: np.ndarray = self._expected(self.in_memory()[which])[at, cols]
        return values

    def _expected(self, cells: np.ndarray) -> np.ndarray:
        return self.rows(cells).astype(cells.dtype)

    def scores(self, cells: np.ndarray) -> tuple[Tensor, Tensor]:
        """Scores of cells, and a mask of the scores that are used."""
        scores = torch.from_numpy(self.marginals.scores(cells))
        # The fit has not learned how other columns depend on a constant one.
        varies = torch.from_numpy(self.statistics.varies)
        return scores, ~torch.isnan(scores) & varies

    def given_others(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the score of each cell, given the others in its row."""
        mean, variance = self.model.given_others(*self.scores(cells))
        return mean.numpy(), variance.numpy()

    def std(self, cells: np.ndarray) -> np.ndarray:
        """Standard deviation of each cell, given the others in its row."""
        std: np.ndarray = self.marginals.std(*self.given_others(cells))
        std[:, self.statistics.empty_cols] = np.nan
        return std

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw the missing cells given the observed ones."""
        scores, seen = self.scores(cells)
        found = np.empty((n_samples, *cells.shape), cells.dtype)
        model = self.model
        for k in range(n_samples):
            # A draw z, corrected by the conditional mean of the difference at observed
            # cells.
            z = model.draw(torch.from_numpy(rng.standard_normal(cells.shape)))
            off = model(scores - z + model.mean, seen) - model.mean
            drawn = self.marginals.undo(z + off).numpy()
            drawn = self.statistics.fill(cells, drawn)
            found[k] = np.where(np.isnan(cells), drawn, cells)
        return found


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

    For multiple imputation, use `skmc.uncertainty.pool`. The noise of single cells
    is included; the uncertainty of the mean and the covariance is not.

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
    return self._fitted.sample(self._read(X, reset=False), n_samples, rng)
