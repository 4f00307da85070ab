"""Conditional expectations of rows under a Gaussian factor model with noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg.parts import Parts

BLOCK = 2**22  # largest number of elements in memory


@dataclass(frozen=True, eq=False)
class Scores:
    """Posterior distribution of the factors of some rows.

    Parameters
    ----------
    rows : slice
        Range of the rows.
    mean : Tensor of shape (k, rank)
        Expected factors.
    covariance : Tensor of shape (k, rank, rank)
        Posterior covariance of the factors.
    log_likelihood : Tensor of shape ()
        Log-likelihood of the observed cells of these rows.
    """

    rows: slice
    mean: Tensor  # (k, rank)
    covariance: Tensor  # (k, rank, rank)
    log_likelihood: Tensor  # ()


@dataclass(frozen=True, eq=False)
class FactorGaussian(Parts):
    r"""Rows ``x = mean + F u + e`` with ``u ~ N(0, I)`` and ``e_j ~ N(0, noise_j)``.

    Given the observed cells ``o`` of a row, its factors are Gaussian:

    .. math::

        V = (I + F_o^T \Psi_o^{-1} F_o)^{-1}, \qquad
        E[u | x_o] = V F_o^T \Psi_o^{-1} (x_o - \mu_o),

    so that a row costs ``rank^3``, whatever the number of its columns.

    Parameters
    ----------
    mean : Tensor of shape (n_cols,)
        Column means, in double precision like the other two.
    loadings : Tensor of shape (n_cols, rank)
        Loadings ``F``.
    noise : Tensor of shape (n_cols,)
        Variances of the noise, the diagonal of ``Psi``.
    """

    mean: Tensor  # (n_cols,)
    loadings: Tensor  # (n_cols, rank)
    noise: Tensor  # (n_cols,)

    def extended(self, mean: Tensor, factor: Tensor) -> FactorGaussian:
        """Rescale the columns, and append independent ones of variance 1.

        Parameters
        ----------
        mean : Tensor of shape (n_more,)
            Means of the present and the new columns.
        factor : Tensor of shape (n_cols,)
            Factors that rescale the present columns.

        Returns
        -------
        FactorGaussian
        """
        n = len(factor)
        loadings = mean.new_zeros(len(mean), self.loadings.shape[1])
        loadings[:n] = self.loadings * factor[:, None]
        noise = torch.ones_like(mean)
        noise[:n] = self.noise * factor.square()
        return FactorGaussian(mean, loadings, noise)

    @property
    def covariance(self) -> Tensor:
        """Covariance of the rows, shape (n_cols, n_cols)."""
        return self.loadings @ self.loadings.mT + self.noise.diag()

    def scores(self, values: Tensor, mask: Tensor) -> Iterator[Scores]:
        """Posterior of the factors, in parts of bounded memory.

        Parameters
        ----------
        values : Tensor of shape (n_rows, n_cols)
            Rows in double precision; unobserved values are ignored.
        mask : bool Tensor of shape (n_rows, n_cols)
            True where observed.

        Yields
        ------
        Scores
        """
        F, rank = self.loadings, self.loadings.shape[1]
        weighted = F / self.noise[:, None]
        outer = (weighted[:, :, None] * F[:, None, :]).flatten(1)
        eye = torch.eye(rank, dtype=F.dtype, device=F.device)
        size = max(1, BLOCK // max(rank**2, len(F)))
        for begin in range(0, len(values), size):
            rows = slice(begin, min(begin + size, len(values)))
            seen = mask[rows].to(F.dtype)
            Y = torch.where(mask[rows], values[rows] - self.mean, 0.0)
            precision = eye + (seen @ outer).view(-1, rank, rank)
            L, failed = torch.linalg.cholesky_ex(precision)
            L = torch.where(failed[:, None, None] == 0, L, torch.nan)
            root = torch.linalg.solve_triangular(L, eye.expand_as(L), upper=False)
            V = root.mT @ root
            b = Y @ weighted
            u = (V @ b[..., None])[..., 0]
            constant = (seen @ self.noise.log()).sum() + seen.sum() * math.log(
                2 * math.pi
            )
            constant = constant + 2 * L.diagonal(dim1=1, dim2=2).log().sum()
            quadratic = (Y.square() / self.noise).sum() - (b * u).sum()
            yield Scores(rows, u, V, -(constant + quadratic) / 2)

    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Replace the cells that ``mask`` leaves out by conditional expectations."""
        factors = torch.cat([part.mean for part in self.scores(values, mask)])
        return torch.where(mask, values, self.mean + factors @ self.loadings.mT)

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
        F, noise = self.loadings, self.noise
        means, variances = [], []
        for part in self.scores(values, mask):
            seen = mask[part.rows]
            explained = torch.einsum("jr,krs,js->kj", F, part.covariance, F)
            guess = self.mean + part.mean @ F.mT
            # Diagonal of the inverse covariance of the observed cells, by Woodbury.
            variance = torch.where(seen, noise / (1 - explained / noise), 0.0)
            off = (values[part.rows] - guess) / noise
            own = torch.where(seen, values[part.rows] - off * variance, guess)
            means.append(own)
            variances.append(torch.where(seen, variance, noise + explained))
        return torch.cat(means), torch.cat(variances)

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
        return self.mean + normal @ torch.linalg.cholesky(self.covariance).mT
