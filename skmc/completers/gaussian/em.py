"""Expectation maximization for Gaussian rows with missing cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skmc.blocks import ChunkedRows
from skmc.cells import Observed
from skmc.completers.gaussian.distributions import (
    Expected,
    ExpectedSums,
    FactorGaussian,
    Gaussian,
    Patterns,
    Scores,
)
from skmc.linalg import LowRank, Parts
from skmc.solvers import Result, Solver, State, norm, relative_norm

LEAST_NOISE = 0.05  # smallest initial noise of a column


@dataclass(frozen=True, kw_only=True)
class EMState(State):
    """A Gaussian, and its expectations of the missing cells.

    Parameters
    ----------
    objective : Tensor of shape ()
        Negative penalized log-likelihood of the observed cells, minus a lower bound.
    X : Tensor of shape (n_rows, n_cols)
        Completion.
    model : Gaussian
        Distribution of the rows.
    expected : Expected
        Statistics of the completed rows.
    patterns : Patterns
        Positions of the observed cells, grouped.
    """

    X: Tensor
    model: Gaussian
    expected: Expected
    patterns: Patterns


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianResult(Result):
    """A completion, the distribution of its rows, and where EM can go on."""

    model: Any
    state: EMState | None = None


class EM(Solver[Observed, EMState]):
    r"""Maximum of the penalized likelihood of Gaussian rows, by EM.

    Over the mean and the covariance of the rows, with the log-likelihood of the
    observed cells :math:`x_{io}`,

    .. math::

        \min_{\mu, S} \; -\sum_i w_i \log N(x_{io};\, \mu_o, S_{oo})
        + \frac{\lambda}{2} \left(\mathrm{tr}\, S^{-1} + \log\det S\right),

    which is the posterior mode under an inverse Wishart prior: :math:`\lambda` is the
    number of rows that it counts as, with uncorrelated columns of variance 1. The
    expectation step completes the rows and sums their conditional covariances
    :math:`C_i` (zero except for missing cells); the maximization step is

    .. math::

        \mu = \frac1n \sum_i w_i \hat x_i, \qquad
        S = \frac{\sum_i w_i \left[(\hat x_i - \mu)(\hat x_i - \mu)^T + C_i\right]
        + \lambda I}{n + \lambda}, \qquad n = \sum_i w_i.

    No step raises the objective. The weight :math:`w_i` of a row is that of its cells,
    1 without weights. Rows without an observed cell do not count.

    Parameters
    ----------
    ridge : float
        Weight ``lambda`` of the prior.
    start : Gaussian, EMState or None, default=None
        Initial distribution, or a state from the same cells with another ``ridge``;
        None is mean 0 and covariance ``I``.

    References
    ----------
    Dempster, Laird, Rubin. Maximum likelihood from incomplete data via the EM
    algorithm. Journal of the Royal Statistical Society B 39 (1977). Schafer. Analysis
    of incomplete multivariate data. Chapman and Hall (1997).
    """

    def __init__(self, ridge: float, start: Any = None):
        self.ridge = ridge
        self.start = start

    def init(self, data: Observed) -> EMState:
        if isinstance(last := self.start, EMState):
            return self._state(data, last.model, last.patterns, last.expected)
        values = data.values.double()
        eye = torch.eye(values.shape[1], dtype=values.dtype, device=values.device)
        model = last or Gaussian(values.new_zeros(len(eye)), eye)
        patterns = Patterns.of(data.mask, row_weights(data))
        return self._expect(data, model, patterns)

    def _expect(self, data: Observed, model: Gaussian, patterns: Patterns) -> EMState:
        expected = model.expect(data.values.double(), patterns)
        return self._state(data, model, patterns, expected)

    def _state(
        self, data: Observed, model: Gaussian, patterns: Patterns, expected: Expected
    ) -> EMState:
        trace = model.precision.diagonal().sum()
        penalty = self.ridge / 2 * (trace + model.logdet)
        return EMState(
            objective=penalty - expected.log_likelihood - _floor(data, self.ridge),
            X=data.fill((model.mean + expected.deviations).to(data.values)),
            model=model,
            expected=expected,
            patterns=patterns,
        )

    def step(self, data: Observed, state: EMState) -> EMState:
        return self._expect(data, self._maximize(state), state.patterns)

    def _maximize(self, state: EMState) -> Gaussian:
        Y, weights = state.expected.deviations, state.patterns.weights
        weighted, n = weights[:, None] * Y, weights.sum()
        shift = weighted.sum(0) / n
        scatter = weighted.mT @ Y - n * torch.outer(shift, shift)
        scatter = scatter + state.expected.scatter
        scatter = (scatter + scatter.mT) / 2
        scatter.diagonal().add_(self.ridge)
        return Gaussian(state.model.mean + shift, scatter / (n + self.ridge))

    def residual(self, data: Observed, previous: EMState, current: EMState) -> Tensor:
        """Relative change of mean and covariance in the last step."""
        a, b = previous.model, current.model
        moved = torch.hypot((a.mean - b.mean).norm(), norm(a.covariance - b.covariance))
        return moved / norm(b.covariance)

    def result(self, state: EMState) -> GaussianResult:
        return GaussianResult(X=state.X, model=state.model, state=state)


@dataclass(frozen=True, kw_only=True)
class ChunkedEMState(State):
    """An iterate of `ChunkedEM`.

    Parameters
    ----------
    objective : Tensor of shape ()
        Negative penalized log-likelihood of the observed cells.
    X : LowRank
        Zero, because the completion is not formed.
    model : Gaussian
        Distribution of the rows.
    sums : ExpectedSums
        Expected sums over all rows.
    """

    X: LowRank
    model: Gaussian
    sums: ExpectedSums


class ChunkedEM(EM):
    """`EM` for `ChunkedRows`: a step is one pass, whose expected sums are added.

    Iterates and parameters are those of `EM`.
    """

    def init(self, data: Any) -> Any:
        zero = torch.zeros(data.shape[1], dtype=data.dtype)
        eye = torch.eye(len(zero), dtype=zero.dtype)
        return self._expect_all(data, self.start or Gaussian(zero, eye))

    def step(self, data: Any, state: Any) -> Any:
        variance = torch.ones_like(state.model.mean)
        return self._expect_all(data, state.sums.gaussian(self.ridge, variance))

    def _expect_all(self, data: ChunkedRows, model: Gaussian) -> ChunkedEMState:
        sums = ExpectedSums(*data.total(_expected, model))
        penalty = model.precision.diagonal().sum() + model.logdet
        return ChunkedEMState(
            objective=self.ridge / 2 * penalty - sums.log_likelihood,
            X=data.zero(),
            model=model,
            sums=sums,
        )


@dataclass(frozen=True, eq=False)
class FactorSums(Parts):
    """Expected sums over the cells of each column, with weights.

    Parameters
    ----------
    gram : Tensor of shape (n_cols, (rank + 1)^2)
        Second moments of the factors and a one.
    cross : Tensor of shape (n_cols, rank + 1)
        Products of the same variables with the cells.
    squares : Tensor of shape (n_cols,)
        Squares of the cells.
    count : Tensor of shape (n_cols,)
        Weights of the cells.
    """

    gram: Tensor
    cross: Tensor
    squares: Tensor
    count: Tensor

    @classmethod
    def zero(cls, model: FactorGaussian) -> FactorSums:
        """Sums over no cells."""
        n, rank = model.loadings.shape
        zeros = model.mean.new_zeros
        return cls(zeros(n, (rank + 1) ** 2), zeros(n, rank + 1), zeros(n), zeros(n))

    def add(
        self,
        part: Scores,
        times: Tensor,  # (k, n_cols)
        x: Tensor,  # (k, n_cols)
    ) -> None:
        """Add the cells of some rows, in place."""
        u = torch.cat([part.mean, part.mean.new_ones(len(part.mean), 1)], 1)
        second = u[:, :, None] * u[:, None, :]
        second[:, :-1, :-1] += part.covariance
        self.gram.add_(times.mT @ second.flatten(1))
        self.cross.add_((times * x).mT @ u)
        self.squares.add_((times * x.square()).sum(0))
        self.count.add_(times.sum(0))


@dataclass(frozen=True, kw_only=True)
class FactorEMState(State):
    """A factor model of the columns, and its expectations of the rows.

    Parameters
    ----------
    objective : Tensor of shape ()
        Negative penalized log-likelihood of the observed cells, minus a lower bound.
    X : Tensor of shape (n_rows, n_cols)
        Completion.
    model : FactorGaussian
        Distribution of the rows.
    sums : FactorSums
        Expected sums of factors and cells.
    """

    X: Tensor
    model: FactorGaussian
    sums: FactorSums


class FactorEM(Solver[Observed, FactorEMState]):
    r"""Maximum of the penalized likelihood of a factor model, by EM.

    ``x_ij = mu_j + f_j' u_i + e_ij`` with ``u_i ~ N(0, I)``, ``e_ij ~ N(0, psi_j)``.
    The objective is the negative log-likelihood of the observed cells plus

    .. math::

        \frac{\lambda}{2} \sum_j \left(\log\psi_j + \frac{1 + |f_j|^2}{\psi_j}\right),

    as from ``lambda`` rows whose cells have variance 1 and are independent of the
    factors. The expectation step finds the posterior of each :math:`u_i`. The
    maximization step is a regression per column over the rows that have it, with
    :math:`\tilde u = (u, 1)`:

    .. math::

        (f_j, \mu_j) = (\sum_{i} E[\tilde u_i \tilde u_i^T] + \lambda D
        )^{-1} \sum_{i} x_{ij} E[\tilde u_i], \qquad
        \psi_j = \frac{\sum_i x_{ij}^2 - (f_j, \mu_j)^T \sum_i x_{ij} E[\tilde u_i]
        + \lambda}{n_j + \lambda},

    where ``D`` is the identity with a zero for the intercept. Sums over rows are
    weighted by the weights of the rows. No step raises the objective.

    Parameters
    ----------
    ridge : float
        Weight ``lambda`` of the prior.
    rank : int
        Number of factors.
    start : FactorGaussian or None, default=None
        Initial model; None is the principal components of the zero-filled data.

    References
    ----------
    Rubin, Thayer. EM algorithms for ML factor analysis. Psychometrika 47 (1982).
    """

    def __init__(self, ridge: float, rank: int, start: FactorGaussian | None = None):
        self.ridge = ridge
        self.rank = rank
        self.start = start

    def init(self, data: Observed) -> FactorEMState:
        return self._expect(data, self.start or self._components(data))

    def _components(self, data: Observed) -> FactorGaussian:
        values = data.values.double()
        weights, n_cols = row_weights(data), values.shape[1]
        values = weights.sqrt()[:, None] * values
        tall = len(values) >= n_cols
        gram = values.mT @ values if tall else values @ values.mT
        energy, basis = torch.linalg.eigh(gram)
        basis = basis[:, -self.rank :]
        if not tall:
            scale = energy[-self.rank :].clamp_min(torch.finfo(energy.dtype).tiny)
            basis = values.mT @ basis / scale.sqrt()
        # Approximate share of the rows that have both cells of a product.
        n = weights.sum()
        share = (data.n_observed.double() / (n * n_cols)).square()
        F = basis * (energy[-self.rank :].clamp_min(0) / (n * share)).sqrt()
        noise = (1 - F.square().sum(1)).clamp_min(LEAST_NOISE)
        return FactorGaussian(values.new_zeros(n_cols), F, noise)

    def _expect(self, data: Observed, model: FactorGaussian) -> FactorEMState:
        values, times = data.values.double(), data.times.double()
        sums, weights = FactorSums.zero(model), row_weights(data)
        likelihood, X = values.new_zeros(()), torch.empty_like(values)
        for part in model.scores(values, data.mask):
            sums.add(part, times[part.rows], values[part.rows])
            likelihood = likelihood + weights[part.rows] @ part.log_likelihood
            X[part.rows] = model.mean + part.mean @ model.loadings.mT
        return FactorEMState(
            objective=self._objective(data, model, likelihood),
            X=data.fill(X.to(data.values)),
            model=model,
            sums=sums,
        )

    def _objective(
        self, data: Observed, model: FactorGaussian, likelihood: Tensor
    ) -> Tensor:
        size_of = 1 + model.loadings.square().sum(1)
        penalty = self.ridge / 2 * (model.noise.log() + size_of / model.noise).sum()
        return penalty - likelihood - _floor(data, self.ridge)

    def step(self, data: Observed, state: FactorEMState) -> FactorEMState:
        return self._expect(data, self._maximize(state))

    def _maximize(self, state: FactorEMState) -> FactorGaussian:
        sums, size = state.sums, self.rank + 1
        system = sums.gram.view(-1, size, size).clone()
        diagonal = system.diagonal(dim1=1, dim2=2)
        diagonal[:, :-1] += self.ridge
        # A column without an observed cell has mean 0.
        diagonal.masked_fill_(sums.count[:, None] == 0, 1.0)
        w, _ = torch.linalg.solve_ex(system, sums.cross[..., None])
        left = sums.squares - (w[..., 0] * sums.cross).sum(1)
        noise = (left + self.ridge) / (sums.count + self.ridge)
        return FactorGaussian(w[:, -1, 0], w[:, :-1, 0], noise)

    def residual(
        self, data: Observed, previous: FactorEMState, current: FactorEMState
    ) -> Tensor:
        """Relative change of the completion in the last step."""
        return relative_norm(current.X - previous.X, current.X)

    def result(self, state: FactorEMState) -> GaussianResult:
        return GaussianResult(X=state.X, model=state.model)


def row_weights(data: Observed) -> Tensor:  # (n_rows,)
    """Weight of each row, that of its observed cells; 0 if it has none."""
    return data.times.amax(1).double()


def _floor(data: Observed, ridge: float) -> Tensor:
    """A lower bound of the objective: no variance is below ``ridge / (n + ridge)``.

    Without a ridge there is no bound, and the result is 0.
    """
    if not ridge:
        return data.values.new_zeros((), dtype=torch.float64)
    least = ridge / (row_weights(data).sum() + ridge)
    return data.n_observed.double() / 2 * (2 * math.pi * least).log()


def _expected(values: Tensor, seen: Tensor, model: Gaussian) -> tuple[Tensor, ...]:
    sums = ExpectedSums.of(model, values, seen)
    return sums.count, sums.first, sums.second, sums.log_likelihood
