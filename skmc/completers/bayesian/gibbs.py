"""Gibbs sampling of factors, biases and their distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.cells import Side, SparseObserved, SparseValues
from skmc.linalg import OVER, LowRank, Randomness, RowModel, conjugate_gradients
from skmc.solvers import RowModelResult, Solver, State

# For data of variance 1: the initial precision of the noise, and the initial standard
# deviation of factors, times the root of the rank. With .3 for the latter, the error
# on held-out ratings of MovieLens-1M is .004 higher: factors grow slowly.
FIRST_NOISE, FIRST_SIZE = 2.0, 1.0
LINK_STEPS = 20  # of conjugate gradients for a map; enough from a warm start
FREEDOM = [2.0**k for k in range(1, 9)]  # degrees of freedom of the noise
TRIES = 8  # proposals of a Gamma variable, each accepted with probability > .95


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors and biases of the rows (or of the columns), and their distribution.

    Parameters
    ----------
    W : Tensor of shape (m, rank + 1)
        Factors and bias of each row.
    mean : Tensor of shape (rank + 1,)
        Mean of the rows of ``W``.
    precision : Tensor of shape (rank + 1, rank + 1)
        Precision matrix of the rows of ``W``.
    links : list of (Tensor of shape (p, rank + 1), Tensor of shape () or float)
        Map ``B`` of each linear prior and the precision of its own prior. The side
        information shifts the means of the rows by ``S B``.
    relative : Tensor of shape (m,) or None
        Precision of the noise in each row, relative to that of all cells. None if it is
        the same in all rows.
    freedom : Tensor of shape () or None
        Degrees of freedom of the distribution of ``relative``.
    """

    W: Tensor  # (m, rank + 1)
    mean: Tensor  # (rank + 1,)
    precision: Tensor  # (rank + 1, rank + 1)
    links: Sequence[tuple[Tensor, Tensor | float]]  # (p, rank + 1), precision
    relative: Tensor | None  # (m,)
    freedom: Tensor | None = None  # ()


@dataclass(frozen=True, kw_only=True)
class GibbsState(State):
    """A draw of `Gibbs`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : LowRank
        Completion.
    rows : Factors
        Factors of the rows.
    cols : Factors
        Factors of the columns.
    noise : Tensor of shape ()
        Precision of the noise that is common to all cells.
    rng : Randomness
        Source of random numbers.
    iteration : int
        Number of steps done.
    kept : list of RowModel
        Row models of each draw since the burn-in.
    """

    X: LowRank
    rows: Factors
    cols: Factors
    noise: Tensor  # (), precision of the noise
    rng: Randomness
    iteration: int
    kept: list[RowModel]


@dataclass(eq=False)
class Gibbs(Solver[SparseObserved, GibbsState]):
    r"""Draws of factors, biases and hyper-parameters given the observed cells.

    .. math::

        M_{ij} = u_i^\top v_j + b_i + c_j + e_{ij}, \qquad
        e_{ij} \sim N(0, 1 / (\alpha a_i d_j))

    ``(u_i, b_i)`` and ``(v_j, c_j)`` are Gaussian. The mean and the precision matrix of
    each are drawn from the normal-Wishart prior with mean 0, identity scale and
    ``rank + 1`` degrees of freedom. ``alpha`` and the precision of the links have Gamma
    priors with shape and rate of a half. The relative precisions ``a_i`` of the noise
    in rows are Gamma with shape and rate of half their degrees of freedom, which are
    one of 2, 4, ..., 256 with equal probability; the same holds for the columns and
    ``d_j``. The mean of the rows is ``mu + S B``, with one summand for each linear
    prior of the data (`Side`), and likewise for columns. ``implicit`` is also a linear
    prior: row ``i`` of its ``S`` is ``1 / sqrt(k)`` at the ``k`` columns in which the
    row has cells. ``B`` is drawn by perturbed conjugate gradients, from a Gaussian
    prior whose precision is ``P`` times a multiple of that of the factors. A step draws
    everything once. Draws of factors, biases and ``B`` are over-relaxed: they have the
    correct conditional distribution and a correlation of ``-.6`` with the previous
    draws. So averages over many draws vary less.

    A half-step is one pass over the cells, in chunks of rows, and the products of
    ``implicit`` are further ones. Random numbers are drawn for all rows at once. So the
    draws depend on chunks, blocks and workers only by rounding.

    Parameters
    ----------
    rng : Randomness
        Source of random numbers.
    rank : int
        Number of factors.
    n_burn_in : int
        Number of first draws that are dropped. The completion is the average of the
        others.
    implicit : bool
        Whether the set of observed cells informs the factors.
    heteroscedastic : bool, default=False
        Whether the noise differs between rows and between columns. Otherwise ``a`` and
        ``d`` are 1.

    References
    ----------
    Salakhutdinov, Mnih. Bayesian probabilistic matrix factorization using Markov chain
    Monte Carlo. ICML (2008). Links: Simm et al. Macau: scalable Bayesian factorization
    with high-dimensional side information using MCMC. MLSP (2017). Over-relaxation:
    Barone, Frigessi. Improving stochastic relaxation for Gaussian random fields.
    Probability in the Engineering and Informational Sciences 4 (1990).
    """

    rng: Randomness
    rank: int
    n_burn_in: int
    implicit: bool
    heteroscedastic: bool = False

    def init(self, data: SparseObserved) -> GibbsState:
        rng = self.rng.stream(1)
        rows, cols = (self._first(data, rng, axis) for axis in (0, 1))
        return GibbsState(
            X=LowRank.with_biases(rows.W, cols.W),
            objective=data.energy / 2,
            rows=rows,
            cols=cols,
            noise=rows.W.new_tensor(FIRST_NOISE, dtype=torch.float64),
            rng=rng,
            iteration=0,
            kept=[],
        )

    def _first(self, data: SparseObserved, rng: Randomness, axis: int) -> Factors:
        like, size = data.zero().left, self.rank + 1
        n_rows = [data.shape[axis], *(side.size for side in data.sides[axis])]
        std = FIRST_SIZE * self.rank**-0.5
        W, *links = (rng.normal(n, size, std=std).to(like) for n in n_rows)
        if self.implicit:
            links = [like.new_zeros(data.shape[1 - axis], size), *links]
        eye = torch.eye(size, dtype=like.dtype, device=like.device)
        return Factors(
            W,
            like.new_zeros(size),
            eye,
            [(B, 1.0) for B in links],
            torch.ones_like(W[:, 0]) if self.heteroscedastic else None,
        )

    def step(self, data: SparseObserved, state: GibbsState) -> GibbsState:
        rng, T = state.rng, data.T
        rows, *_ = self._draw(data, T, state.rows, state.cols, state.noise, rng)
        cols, misfit, weighed = self._draw(T, data, state.cols, rows, state.noise, rng)
        total = data.counts.double().sum()
        noise = gamma(rng, (total + 1) / 2, (weighed.double() + 1) / 2)
        kept = state.kept
        if state.iteration >= self.n_burn_in:
            kept = [*kept, self._model(rows, cols, noise)]
        return replace(
            state,
            X=LowRank.with_biases(rows.W, cols.W),
            objective=misfit / 2,
            rows=rows,
            cols=cols,
            noise=noise,
            iteration=state.iteration + 1,
            kept=kept,
        )

    def _draw(
        self,
        data: SparseObserved,
        T: SparseObserved,
        factors: Factors,
        others: Factors,
        noise: Tensor,
        rng: Randomness,
    ) -> tuple[Factors, Tensor, Tensor]:
        """Draw distribution, links, factors and noise of the rows, given the columns'.

        Also return the sum of squared residuals, without and with relative precisions.
        """
        sides = data.sides[0]
        if self.implicit:  # its prior is the first
            sides = (Indicator(data, transposed=T), *sides)
        pairs = zip(sides, factors.links, strict=True)
        linked = [(side, *link) for side, link in pairs]
        means = [side.mean(B) for side, B, _ in linked]
        # The rows of B also have the precision of the factors, times p P.
        scatter = sum(p * (B.mT @ side.penalty(B)).double() for side, B, p in linked)
        n_linked = sum(len(B) for _, B, _ in linked)
        mean, precision = normal_wishart(rng, factors.W - sum(means), scatter, n_linked)
        links = []
        for k, (side, B, p) in enumerate(linked):
            rest = factors.W - mean - sum(means[:k] + means[k + 1 :])
            links.append(draw_link(rng, side, rest, precision, B, p))
            means[k] = side.mean(links[k][0])
        factors = replace(factors, mean=mean, precision=precision, links=links)
        prior_means = sum(means[self.implicit :], torch.zeros_like(factors.W))
        normal = rng.normal(len(prior_means), self.rank + 1, std=1.0).to(prior_means)
        of_rows = [factors.W, normal * noise**-0.5, prior_means]
        if factors.relative is not None:
            of_rows.append(factors.relative)
        model = self._model(factors, others, noise)
        found = zip(*data.map(_drawn, of_rows, model), strict=True)
        W, misfits, sums = (torch.cat(parts) for parts in found)
        factors = replace(factors, W=W)
        if factors.relative is not None:
            relative, freedom = draw_relative(rng, data.counts, noise * sums)
            factors = replace(factors, relative=relative, freedom=freedom)
            sums = sums * relative
        return factors, misfits.sum(), sums.sum()

    def _model(self, factors: Factors, others: Factors, noise: Tensor) -> RowModel:
        """Model of the rows given their cells and the columns' factors and biases."""
        links = [B for B, _ in factors.links]
        return RowModel(
            pad(others.W[:, :-1], (0, 1), value=1.0),
            others.W[:, -1].clone(),
            factors.precision / noise,
            factors.mean,
            link=links[0] if self.implicit else None,
            noise=1 / noise,
            sides=tuple(links[self.implicit :]),
            relative=others.relative,
            freedom=factors.freedom,
        )

    def residual(
        self, data: SparseObserved, previous: GibbsState, current: GibbsState
    ) -> Tensor:
        """Infinity: there is no optimum, and more draws are better."""
        return torch.full_like(current.objective, torch.inf)

    def misfit(self, data: SparseObserved, state: GibbsState, X: LowRank) -> Tensor:
        return 2 * state.objective

    def result(self, state: GibbsState) -> RowModelResult:
        kept = state.kept or [self._model(state.rows, state.cols, state.noise)]
        return RowModelResult(X=state.X, models=kept)


def _drawn(
    data: SparseValues, own: Sequence[Tensor], model: RowModel
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw factors of some rows, given the previous ones, and sum squared residuals.

    The first sum is that of all cells. If the noise differs between columns, the second
    one is that of each row, with their relative precisions.
    """
    previous, normal, prior_means, *relative = own
    weights = data.weighted(relative[0][data.rows]) if relative else data.weights
    cells = data.starts, data.cols, data.values
    W = model.solve(*cells, normal, prior_means, weights, previous)
    columns = torch.cat([model.F, model.offset[:, None]], 1)
    squares = data.residual(LowRank(pad(W, (0, 1), value=1.0), columns)).square()
    misfit = sums = data.weighted(squares).sum().view(1)
    if model.relative is not None:
        sums = data.row_sums(squares * model.relative[data.cols])
    return W, misfit, sums


def gamma(rng: Randomness, shape: Tensor, rate: Tensor) -> Tensor:
    """Draw Gamma variables by the method of Marsaglia and Tsang."""
    rate = rate.double()
    d = (shape.to(rate) - 1 / 3).reshape(-1, 1)
    z = rng.normal(len(d), TRIES, std=1.0).to(d)
    u = 0.5 + rng.uniform(len(d), TRIES, 0.5).to(d)
    v = (1 + z / (3 * d.sqrt())).clamp_min(0) ** 3
    fits = u.log() < z.square() / 2 + d - d * v + d * v.log()
    first = (fits * torch.arange(TRIES, 0, -1, device=d.device)).argmax(1, keepdim=True)
    return (d * v.gather(1, first)).view(rate.shape) / rate


def draw_relative(
    rng: Randomness,
    counts: Tensor,  # (m,)
    sums: Tensor,  # (m,)
) -> tuple[Tensor, Tensor]:
    """Draw the relative precision of the noise in each row, and its degrees of freedom.

    The degrees of freedom are drawn first, from their marginal distribution.
    """
    half = counts.new_tensor(FREEDOM).double() / 2
    shape, rate = half[:, None] + counts / 2, half[:, None] + sums / 2
    chance = (shape.lgamma() - shape * rate.log()).sum(1)
    chance += len(counts) * (half * half.log() - half.lgamma())
    below = chance.softmax(0).cumsum(0) < 0.5 + rng.uniform(1, 1, 0.5)[0].to(half)
    drawn = half.take(below.sum().clamp_max(len(half) - 1))
    relative = gamma(rng, drawn + counts / 2, drawn + sums / 2)
    return relative.to(counts), 2 * drawn.to(counts)


def normal_wishart(
    rng: Randomness,
    W: Tensor,  # (m, rank + 1)
    more: Tensor | float = 0.0,  # (rank + 1, rank + 1)
    n_more: int = 0,
) -> tuple[Tensor, Tensor]:
    """Draw mean and precision of Gaussian rows ``W`` from their posterior."""
    n, k = W.shape
    X = W.double()
    strength = 2.0  # weight of the prior mean, in rows
    mean = X.mean(0)
    centered = X - mean
    scatter = centered.mT @ centered + torch.eye(k).to(X) + more
    scatter += strength * n / (strength + n) * torch.outer(mean, mean)
    root = torch.linalg.cholesky(torch.linalg.inv(scatter))
    # Bartlett decomposition: a Wishart matrix is A A' in the frame of its scale.
    shape = (n + n_more + torch.arange(k, 0, -1).to(X)) / 2
    squares = gamma(rng, shape, torch.full_like(shape, 0.5))
    A = rng.normal(k, k, std=1.0).to(X).tril(-1) + squares.sqrt().diag()
    root = root @ A
    precision = root @ root.mT
    z = rng.normal(k, 1, std=1.0).to(X)
    spread = torch.linalg.cholesky((strength + n) * precision)
    drawn = torch.linalg.solve_triangular(spread.mT, z, upper=True)[:, 0]
    return (n * mean / (strength + n) + drawn).to(W), precision.to(W)


@dataclass(frozen=True, eq=False)
class Indicator(Side):
    """A linear prior whose ``S`` has ``1 / sqrt(k)`` at the ``k`` cells of a row.

    Parameters
    ----------
    matrix : SparseObserved or BlockObserved
        The observed cells.
    root : None
        ``P = I``.
    transposed : SparseObserved or BlockObserved
        The transpose of ``matrix``.
    """

    transposed: Any = None

    def mean(self, B: Tensor, rows: Tensor | None = None) -> Tensor:
        return self._scale * _sums(self.matrix, B)

    def pull(self, W: Tensor) -> Tensor:
        return _sums(self.transposed, self._scale * W)

    @cached_property
    def _scale(self) -> Tensor:
        data: Any = self.matrix
        one = torch.ones(data.shape[1], 1, dtype=data.dtype, device=data.device)
        return _sums(data, one).clamp_min(1).rsqrt()


def _sums(data: Any, Z: Tensor) -> Tensor:
    """Sums of the rows of ``Z`` that belong to the cells of each row."""
    return torch.cat(list(data.map(_sums_of_rows, (), Z)))


def _sums_of_rows(data: SparseValues, own: Sequence[Tensor], Z: Tensor) -> Tensor:
    return data.matrix(Z.new_ones(len(data.values))) @ Z


def draw_link(
    rng: Randomness,
    side: Side,
    W: Tensor,  # (m, rank + 1)
    precision: Tensor,  # (rank + 1, rank + 1)
    B: Tensor,  # (p, rank + 1)
    p: Tensor | float,  # ()
) -> tuple[Tensor, Tensor]:
    """Draw ``B`` given ``W ~ N(S B, precision^-1)``, and the precision of its prior.

    The solution of ``(S' S + p P) B = S' (W + E_1) + sqrt(p) P^(1/2) E_2`` with ``E``
    from ``N(0, precision^-1)`` is a draw; a few steps of conjugate gradients
    approximate it. The draw is over-relaxed.
    """
    root = torch.linalg.cholesky(precision)

    def noise(rows: int) -> Tensor:
        z = rng.normal(rows, W.shape[1], std=1.0).to(W)
        return torch.linalg.solve_triangular(root.mT, z.mT, upper=True).mT

    drawn = side.pull(noise(len(W))) + p**0.5 * side.noise(noise)
    right = (1 + OVER) * side.pull(W) + (1 - OVER**2) ** 0.5 * drawn
    mean, _ = conjugate_gradients(
        lambda Z: side.pull(side.mean(Z)) + p * side.penalty(Z), right, B, LINK_STEPS
    )
    B = mean - OVER * B
    size = ((B @ precision) * side.penalty(B)).sum().double()
    return B, gamma(rng, size.new_tensor(B.numel() + 1) / 2, (size + 1) / 2)
