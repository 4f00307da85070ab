r"""Conditional expectations of Gaussian rows.

Let ``K`` be the inverse of the covariance ``S``, and ``o``, ``m`` the observed and the
missing columns of a row ``x`` with mean zero. All that is needed follows from a small
system in the missing columns, or from one in the observed columns:

.. math::

    E[x_m | x_o] = -K_{mm}^{-1} K_{mo} x_o = S_{mo} S_{oo}^{-1} x_o, \qquad
    Var[x_m | x_o] = K_{mm}^{-1} = S_{mm} - S_{mo} S_{oo}^{-1} S_{om},

    \log\det S_{oo} = \log\det S + \log\det K_{mm}, \qquad
    S_{oo}^{-1} = K_{oo} - K_{om} K_{mm}^{-1} K_{mo}.

With ``a = S_oo^-1 x_o`` an observed cell given the *other* observed cells of its row
has the variance ``1 / (S_oo^-1)_jj`` and the mean ``x_j - a_j / (S_oo^-1)_jj``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from skmc.linalg.parts import Parts
from skmc.linalg.patterns import BLOCK, Group, Patterns

TINY = 1e-12  # of the trace, added to a scatter without a ridge


@dataclass(frozen=True, eq=False)
class Expected:
    """Expectations of partly observed rows under a Gaussian.

    Parameters
    ----------
    deviations : Tensor of shape (n_rows, n_cols)
        Completed rows minus the mean.
    scatter : Tensor of shape (n_cols, n_cols)
        Sum over rows of the conditional covariances; zero for rows without a cell.
    log_likelihood : Tensor of shape ()
        Log-likelihood of the observed cells.
    """

    deviations: Tensor  # (n_rows, n_cols)
    scatter: Tensor  # (n_cols, n_cols)
    log_likelihood: Tensor  # ()


@dataclass(frozen=True, eq=False)
class Gaussian(Parts):
    """A normal distribution of rows, and their completion.

    Parameters
    ----------
    mean : Tensor of shape (n_cols,)
        Mean of each column, in double precision.
    covariance : Tensor of shape (n_cols, n_cols)
        Covariance of the columns, in double precision.
    """

    mean: Tensor  # (n_cols,)
    covariance: Tensor  # (n_cols, n_cols)

    def extended(self, mean: Tensor, factor: Tensor) -> Gaussian:
        """Rescale the columns, and append uncorrelated ones of variance 1.

        Parameters
        ----------
        mean : Tensor of shape (n_more,)
            Means of the present and the new columns.
        factor : Tensor of shape (n_cols,)
            Factors that rescale the present columns.

        Returns
        -------
        Gaussian
        """
        n = len(factor)
        covariance = torch.eye(len(mean), dtype=mean.dtype)
        covariance[:n, :n] = self.covariance * torch.outer(factor, factor)
        return Gaussian(mean, covariance)

    @classmethod
    def from_posterior(
        cls, rows: Tensor, ridge: float, rng: np.random.RandomState
    ) -> Gaussian:
        """Draw a distribution from the posterior given complete rows.

        The covariance is inverse Wishart with ``n_rows - 1 + ridge`` degrees of
        freedom, at least ``n_cols``. The scale matrix is the scatter of the rows plus
        ``ridge`` times the identity. The mean is normal given the covariance.

        Parameters
        ----------
        rows : Tensor of shape (n_rows, n_cols)
            Complete rows, in double precision.
        ridge : float
            Weight of the prior, in rows with uncorrelated columns of variance 1.
        rng : RandomState
            Source of random numbers.

        Returns
        -------
        Gaussian
        """
        n, d = rows.shape
        mean = rows.mean(0)
        scale = (rows - mean).mT @ (rows - mean)
        scale.diagonal().add_(max(ridge, TINY * float(scale.diagonal().sum())))
        # Bartlett's decomposition of the inverse of the covariance.
        freedom = max(n - 1 + ridge, d) - np.arange(d)
        A = np.tril(rng.standard_normal((d, d)), -1)
        A[np.diag_indices(d)] = np.sqrt(rng.chisquare(freedom))
        root = torch.linalg.solve_triangular(
            torch.from_numpy(A).mT, torch.linalg.cholesky(scale), upper=True, left=False
        )
        normal = torch.from_numpy(rng.standard_normal(d))
        return cls(mean + root @ normal / math.sqrt(n), root @ root.mT)

    @cached_property
    def root(self) -> Tensor:
        """Cholesky factor of the covariance, NaN if it is not positive definite."""
        L, failed = torch.linalg.cholesky_ex(self.covariance)
        return torch.where(failed == 0, L, torch.nan)

    @cached_property
    def precision(self) -> Tensor:
        """Inverse of the covariance."""
        return torch.cholesky_inverse(self.root)

    @property
    def logdet(self) -> Tensor:
        """Log determinant of the covariance."""
        return 2 * self.root.diagonal().log().sum()

    def expect(self, values: Tensor, patterns: Patterns) -> Expected:
        """Complete rows and sum their conditional covariances.

        Parameters
        ----------
        values : Tensor of shape (n_rows, n_cols)
            Rows in double precision; unobserved values are ignored.
        patterns : Patterns
            Positions of the observed cells, grouped.

        Returns
        -------
        Expected
        """
        seen, S = patterns.seen, self.covariance
        K = self.precision
        Y = torch.where(seen, values - self.mean, 0.0)
        scatter = {missing: torch.zeros_like(S) for missing in (True, False)}
        right = {True: _padded(Y @ K), False: _padded(Y)}
        solved = {missing: torch.zeros_like(right[True]) for missing in (True, False)}
        by_observed = Y.new_zeros(())  # rows solved in their observed columns
        constant = Y.new_zeros(())
        for group in patterns.groups:
            side = group.missing
            inverse, logdets = group.inverses(K if side else S)
            _add_blocks(scatter[side], group, inverse)
            for rows, pattern in group.blocks():
                columns = group.columns[pattern]
                b = right[side][rows[:, None], columns]
                x = (inverse[pattern] @ b[..., None])[..., 0]
                solved[side][rows[:, None], columns] = x
            constant = constant + (group.count * logdets).sum()
            if not side:
                by_observed = by_observed + group.count.sum()
        # The other rows with an observed cell derive S_oo from S.
        some = seen.any(1).sum()
        constant = constant + (some - by_observed) * self.logdet
        left = scatter[True] + by_observed * S - S @ scatter[False] @ S
        guess = solved[False][:, :-1] @ S - solved[True][:, :-1]
        Y = torch.where(seen, Y, guess)
        # (Y @ K) * Y would lose digits where K is large.
        white = torch.linalg.solve_triangular(self.root, Y.mT, upper=False)
        quadratic = white.square().sum()
        n_observed = seen.sum()
        likelihood = -(constant + quadratic + n_observed * math.log(2 * math.pi)) / 2
        return Expected(Y, left, likelihood)

    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Replace the cells that ``mask`` leaves out by conditional expectations."""
        return self.mean + self.expect(values, Patterns.of(mask)).deviations

    def given_others(self, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of every cell given the *other* observed cells of its row.

        Parameters
        ----------
        values : Tensor of shape (n_rows, n_cols)
            Rows.
        mask : bool Tensor of shape (n_rows, n_cols)
            True where observed.

        Returns
        -------
        mean : Tensor of shape (n_rows, n_cols)
        variance : Tensor of shape (n_rows, n_cols)
        """
        patterns = Patterns.of(mask)
        K = self.precision
        Y = self.expect(values, patterns).deviations
        # Variance of missing cells, and its inverse for observed ones.
        diagonal = torch.where(mask, K.diagonal(), self.covariance.diagonal())
        for group in patterns.groups:
            matrix = K if group.missing else self.covariance
            padded = _padded(matrix).mT
            inverse, _ = group.inverses(matrix)
            size = max(1, BLOCK // (group.columns.shape[1] * len(matrix)))
            parts = zip(group.columns.split(size), inverse.split(size), strict=True)
            found = []
            for columns, inv in parts:
                cross = padded[columns]  # (p, size, n_cols)
                part = matrix.diagonal() - (cross * (inv @ cross)).sum(1)
                own = inv.diagonal(dim1=1, dim2=2)
                found.append(_padded(part).scatter(1, columns, own)[:, :-1])
            diagonal[group.rows] = torch.cat(found)[group.pattern]
        variance = torch.where(mask, 1 / diagonal, diagonal)
        own = Y - torch.where(mask, (Y @ K) * variance, 0.0)
        return self.mean + own, variance

    def draw(self, normal: Tensor) -> Tensor:
        """Transform standard normal numbers to rows of this distribution.

        Parameters
        ----------
        normal : Tensor of shape (n_rows, n_cols)
            Independent standard normal numbers.

        Returns
        -------
        Tensor of shape (n_rows, n_cols)
        """
        return self.mean + normal @ self.root.mT


@dataclass(frozen=True, eq=False)
class ExpectedSums(Parts):
    r"""Expected sums of rows and of their products under a Gaussian.

    For complete rows the sums of :math:`1`, :math:`x` and :math:`x x^\top` are
    sufficient for mean and covariance. Missing cells are replaced by their expectations
    given the observed ones, and their conditional covariances are added. Sums of
    different rows add up; rows without a cell do not count.

    Parameters
    ----------
    count : Tensor of shape ()
        Number of rows.
    first : Tensor of shape (n_cols,)
        Sum of expected rows.
    second : Tensor of shape (n_cols, n_cols)
        Sum of expected products.
    log_likelihood : Tensor of shape ()
        Log-likelihood of the observed cells.
    """

    count: Tensor
    first: Tensor
    second: Tensor
    log_likelihood: Tensor

    @classmethod
    def of(cls, model: Gaussian, values: Tensor, seen: Tensor) -> ExpectedSums:
        """Expected sums of some rows under ``model``.

        Parameters
        ----------
        model : Gaussian
            A distribution of rows.
        values : float64 Tensor of shape (n_rows, n_cols)
            Rows.
        seen : bool Tensor of shape (n_rows, n_cols)
            True where observed.

        Returns
        -------
        ExpectedSums
        """
        some = seen.any(1)
        expected = model.expect(values[some], Patterns.of(seen[some]))
        rows = model.mean + expected.deviations
        second = rows.mT @ rows + expected.scatter
        count, likelihood = some.sum().to(values), expected.log_likelihood
        return cls(count, rows.sum(0), second, likelihood)

    def plus(self, other: ExpectedSums) -> ExpectedSums:
        """Add the sums of other rows.

        Parameters
        ----------
        other : ExpectedSums
            Sums of the other rows.

        Returns
        -------
        ExpectedSums
        """
        return self.map(torch.add, other)

    def gaussian(self, weight: float, variance: Tensor) -> Gaussian:
        """The most probable Gaussian, see `skmc.solvers.EM`.

        Parameters
        ----------
        weight : float
            Number of rows that the prior counts as.
        variance : Tensor of shape (n_cols,)
            Variance of the columns under the prior.

        Returns
        -------
        Gaussian
        """
        mean = self.first / self.count
        scatter = self.second - self.count * torch.outer(mean, mean)
        scatter = (scatter + scatter.mT) / 2
        scatter.diagonal().add_(weight * variance)
        return Gaussian(mean, scatter / (self.count + weight))


def _add_blocks(total: Tensor, group: Group, blocks: Tensor) -> None:
    """Add each block to its place, times the number of rows that have it."""
    n = len(total)
    padded = total.new_zeros((n + 1) * (n + 1))
    weighted = group.count[:, None, None] * blocks
    padded.index_add_(0, group.place(n).flatten(), weighted.flatten())
    total += padded.view(n + 1, n + 1)[:n, :n]


def _padded(rows: Tensor) -> Tensor:
    """Append the column of zeros that padded positions refer to."""
    return torch.cat([rows, rows.new_zeros(len(rows), 1)], 1)
