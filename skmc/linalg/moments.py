"""Expected sums over rows, from which a Gaussian follows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg.gaussian import Gaussian
from skmc.linalg.parts import Parts
from skmc.linalg.patterns import Patterns


@dataclass(frozen=True, eq=False)
class ExpectedSums(Parts):
    r"""What a Gaussian expects of the sums of rows and of their products.

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
        Of the observed cells.
    """

    count: Tensor
    first: Tensor
    second: Tensor
    log_likelihood: Tensor

    @classmethod
    def of(cls, model: Gaussian, values: Tensor, seen: Tensor) -> ExpectedSums:
        """What ``model`` expects of some rows.

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
        """Sums over the rows of both.

        Parameters
        ----------
        other : ExpectedSums
            Of other rows.

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
            How many rows the prior counts as.
        variance : Tensor of shape (n_cols,)
            Variance of the columns in these rows.

        Returns
        -------
        Gaussian
        """
        mean = self.first / self.count
        scatter = self.second - self.count * torch.outer(mean, mean)
        scatter = (scatter + scatter.mT) / 2
        scatter.diagonal().add_(weight * variance)
        return Gaussian(mean, scatter / (self.count + weight))
