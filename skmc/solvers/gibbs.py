"""Bayesian factorization by Gibbs sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Side, SparseObserved
from skmc.linalg import OVER, LowRank, Randomness, RowModel, conjugate_gradients
from skmc.solvers.half_steps import product, with_bias
from skmc.solvers.solver import Solver, State

CG_STEPS = 20  # enough from a warm start
# In the first draw, for data of variance 1: the precision of the noise, and the
# standard deviation of factors, times the root of the rank. With .3 for the latter, the
# error on held-out ratings of MovieLens-1M is .004 higher: factors grow slowly.
FIRST_NOISE, FIRST_SIZE = 2.0, 1.0
FREEDOM = [2.0**k for k in range(1, 9)]  # of the noise in rows, and in columns
TRIES = 8  # of a Gamma variable; each succeeds with a probability above .95


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
    links : list of Tensor of shape (p, rank + 1)
        ``B`` of each linear prior: what is known about a row moves its mean by
        ``S B``.
    link_precisions : sequence of Tensor of shape () or float
        Precision of the prior of each of the ``links``.
    relative : Tensor of shape (m,) or None
        Precision of the noise in each row, relative to that of all cells. None if it
        does not differ.
    freedom : Tensor of shape () or None
        Degrees of freedom of the distribution of ``relative``.
    """

    W: Tensor  # (m, rank + 1)
    mean: Tensor  # (rank + 1,)
    precision: Tensor  # (rank + 1, rank + 1)
    links: list[Tensor]  # (p, rank + 1)
    link_precisions: Sequence[Tensor | float]
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
        The completion.
    rows : Factors
        Factors of the rows.
    cols : Factors
        Factors of the columns.
    noise : Tensor of shape ()
        Precision of the noise that is common to all cells.
    rng : Randomness
        Where random numbers come from.
    iteration : int
        Steps done.
    kept : list of RowModel
        One of each draw since the burn-in.
    """

    X: LowRank
    rows: Factors
    cols: Factors
    noise: Tensor  # (), precision of the noise
    rng: Randomness
    iteration: int
    kept: list[RowModel]


class Gibbs(Solver):
    r"""Draws of factors, biases and hyper-parameters given the observed cells.

    .. math::

        M_{ij} = u_i^\top v_j + b_i + c_j + e_{ij}, \qquad
        e_{ij} \sim N(0, 1 / (\alpha a_i d_j))

    ``(u_i, b_i)`` and ``(v_j, c_j)`` are Gaussian, each with a mean and a precision
    matrix that are drawn from the normal-Wishart prior with mean 0, identity scale and
    ``rank + 1`` degrees of freedom. ``alpha`` and the precision of the links are Gamma
    with shape and rate of a half. The relative precisions ``a_i`` of the noise in rows
    are Gamma with shape and rate of half their degrees of freedom, which are one of 2,
    4, ..., 256, each equally likely; those of the columns, ``d_j``, likewise. The mean
    of the rows is ``mu + S B``, with one sum for each linear prior of the data
    (`Side`), likewise for columns. ``implicit`` is a linear prior, too: row ``i`` of
    its ``S`` is ``1 / sqrt(k)`` at the ``k`` columns in which the row has cells. ``B``
    is drawn by perturbed conjugate gradients, from a Gaussian prior whose precision is
    ``P`` times a multiple of that of the factors. A step draws everything once. Draws
    of factors, biases and ``B`` are over-relaxed: they have their distribution given
    the others, and a correlation of -.6 with those before. On ratings, this halves the
    variance of averages over many draws.

    Parameters
    ----------
    rng : Randomness
        Where random numbers come from.
    rank : int
        Number of factors.
    n_burn_in : int
        Number of first draws that are not kept. The answer is the average of the
        others.
    implicit : bool
        Whether the positions of the observed cells inform the factors.
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

    eager = "rows of similar length are drawn together, and lengths are shapes"

    def __init__(
        self,
        rng: Randomness,
        rank: int,
        n_burn_in: int,
        implicit: bool,
        heteroscedastic: bool = False,
    ):
        self.rng = rng
        self.rank = rank
        self.n_burn_in = n_burn_in
        self.implicit = implicit
        self.heteroscedastic = heteroscedastic

    def init(self, data: SparseObserved) -> GibbsState:
        rng = self.rng.stream(1)
        rows, cols = (self._first(data, rng, axis) for axis in (0, 1))
        return GibbsState(
            X=product(rows.W, cols.W),
            objective=data.energy / 2,
            rows=rows,
            cols=cols,
            noise=data.values.new_tensor(FIRST_NOISE, dtype=torch.float64),
            rng=rng,
            iteration=0,
            kept=[],
        )

    def _first(self, data: SparseObserved, rng: Randomness, axis: int) -> Factors:
        values, size = data.values, self.rank + 1
        n_rows = [data.shape[axis], *(side.size for side in data.sides[axis])]
        std = FIRST_SIZE * self.rank**-0.5
        W, *links = (rng.normal(n, size, std=std).to(values) for n in n_rows)
        if self.implicit:
            links = [values.new_zeros(data.shape[1 - axis], size), *links]
        eye = torch.eye(size, dtype=values.dtype, device=values.device)
        return Factors(
            W,
            values.new_zeros(size),
            eye,
            links,
            [1.0] * len(links),
            torch.ones_like(W[:, 0]) if self.heteroscedastic else None,
        )

    def _sides(self, data: SparseObserved) -> tuple[Side, ...]:
        """The linear priors of the rows; that of ``implicit`` is the first."""
        implicit = (Side(data.indicator),) if self.implicit else ()
        return implicit + data.sides[0]

    def step(self, data: SparseObserved, state: GibbsState) -> GibbsState:
        rng, noise = state.rng, state.noise
        rows = self._draw(data, state.rows, state.cols, noise, rng)
        cols = self._draw(data.T, state.cols, rows, noise, rng)
        X = product(rows.W, cols.W)
        squares = data.residual(X).square()
        misfit = weighed = data.weighted(squares).sum()
        if rows.relative is not None and cols.relative is not None:
            sums = data.row_sums(squares * cols.relative[data.cols])
            relative, freedom = draw_relative(rng, data.counts, noise * sums)
            rows = replace(rows, relative=relative, freedom=freedom)
            sums = data.sums(squares * relative[data.rows], by_column=True)[0]
            relative, freedom = draw_relative(rng, data.T.counts, noise * sums)
            cols = replace(cols, relative=relative, freedom=freedom)
            weighed = (sums * relative).sum()
        total = data.counts.double().sum()
        noise = gamma(rng, (total + 1) / 2, (weighed.double() + 1) / 2)
        kept = state.kept
        if state.iteration >= self.n_burn_in:
            kept = [*kept, self._model(rows, cols, noise)]
        return GibbsState(
            X=X,
            objective=misfit / 2,
            rows=rows,
            cols=cols,
            noise=noise,
            rng=rng,
            iteration=state.iteration + 1,
            kept=kept,
        )

    def _draw(
        self,
        data: SparseObserved,
        factors: Factors,
        others: Factors,
        noise: Tensor,
        rng: Randomness,
    ) -> Factors:
        """Distribution, links and factors of the rows, given those of the columns."""
        sides = self._sides(data)
        means = [side.mean(B) for side, B in zip(sides, factors.links, strict=True)]
        # The rows of B have the precision of the factors, too, times p P.
        linked = list(zip(sides, factors.links, factors.link_precisions, strict=True))
        scatter = sum(p * (B.mT @ side.penalty(B)).double() for side, B, p in linked)
        n_linked = sum(len(B) for _, B, _ in linked)
        mean, precision = normal_wishart(rng, factors.W - sum(means), scatter, n_linked)
        links, link_precisions = [], []
        for k, side in enumerate(sides):
            rest = factors.W - mean - sum(means[:k] + means[k + 1 :])
            B, p = draw_link(
                rng, side, rest, precision, factors.links[k], factors.link_precisions[k]
            )
            means[k] = side.mean(B)
            links.append(B)
            link_precisions.append(p)
        factors = replace(
            factors,
            mean=mean,
            precision=precision,
            links=links,
            link_precisions=link_precisions,
        )
        weights = data.weights
        if factors.relative is not None:
            weights = data.weighted(factors.relative[data.rows])
        W = self._model(factors, others, noise).solve(
            data.starts,
            data.cols,
            data.values,
            lambda k, rank: rng.normal(k, rank, std=1.0).to(factors.W) * noise**-0.5,
            known=sum(means[self.implicit :]),
            weights=weights,
            previous=factors.W,
        )
        return replace(factors, W=W)

    def _model(self, factors: Factors, others: Factors, noise: Tensor) -> RowModel:
        """How rows follow from their cells, given the columns' factors and biases."""
        return RowModel(
            with_bias(others.W[:, :-1], 1.0),
            others.W[:, -1].clone(),
            factors.precision / noise,
            factors.mean,
            link=factors.links[0] if self.implicit else None,
            noise=1 / noise,
            sides=tuple(factors.links[self.implicit :]),
            relative=others.relative,
            freedom=factors.freedom,
        )

    def residual(self, data: SparseObserved, previous, current) -> Tensor:
        """Infinity: there is no optimum, more draws are better.

        Parameters
        ----------
        data : SparseObserved
            The observed cells.
        previous : State
            The state before the last step.
        current : State
            The state after it.

        Returns
        -------
        Tensor of shape ()
        """
        return torch.full_like(current.objective, torch.inf)

    def outputs(self, state: GibbsState) -> dict[str, Any]:
        kept = state.kept or [self._model(state.rows, state.cols, state.noise)]
        return {"X": state.X, "rows": kept}


def gamma(rng: Randomness, shape: Tensor, rate: Tensor) -> Tensor:
    """Gamma variables by the method of Marsaglia and Tsang.

    Parameters
    ----------
    rng : Randomness
        Where random numbers come from.
    shape : Tensor
        At least 1.
    rate : Tensor of the same shape
        One over the scale.

    Returns
    -------
    Tensor of the same shape
        In double precision, on the device of ``rate``.
    """
    rate = rate.double()
    d = (shape.to(rate) - 1 / 3).reshape(-1, 1)
    z = rng.normal(len(d), TRIES, std=1.0).to(d)
    u = 0.5 + rng.uniform(len(d), TRIES, 0.5).to(d)
    v = (1 + z / (3 * d.sqrt())).clamp_min(0) ** 3
    fits = u.log() < z.square() / 2 + d - d * v + d * v.log()
    first = (fits * torch.arange(TRIES, 0, -1, device=d.device)).argmax(1, keepdim=True)
    return (d * v.gather(1, first)).view(rate.shape) / rate


def draw_relative(
    rng: Randomness, counts: Tensor, sums: Tensor
) -> tuple[Tensor, Tensor]:
    """Relative precision of the noise in each row, and its degrees of freedom.

    The latter are drawn first, from their distribution without the former.

    Parameters
    ----------
    rng : Randomness
        Where random numbers come from.
    counts : Tensor of shape (m,)
        Cells of each row.
    sums : Tensor of shape (m,)
        Sum of the squared residuals of each row, times the precision of each cell if
        the rows did not differ.

    Returns
    -------
    relative : Tensor of shape (m,)
    freedom : Tensor of shape ()
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
    rng: Randomness, W: Tensor, more: Tensor | float = 0.0, n_more: int = 0
) -> tuple[Tensor, Tensor]:
    """Mean and precision of Gaussian rows ``W``, drawn from their posterior.

    Parameters
    ----------
    rng : Randomness
        Where random numbers come from.
    W : Tensor of shape (m, rank + 1)
        Factors and bias of each row.
    more : Tensor of shape (rank + 1, rank + 1) or float, default=0.0
        Sum of ``w w'`` over other rows with this precision, whose mean is zero.
    n_more : int, default=0
        Number of those rows.

    Returns
    -------
    tuple of Tensor
    """
    n, k = W.shape
    X = W.double()
    strength = 2.0  # of the prior mean, in rows
    mean = X.mean(0)
    centered = X - mean
    scatter = centered.mT @ centered + torch.eye(k).to(X) + more
    scatter += strength * n / (strength + n) * torch.outer(mean, mean)
    root = torch.linalg.cholesky(torch.linalg.inv(scatter))
    # Bartlett: a Wishart matrix is A A' in the frame of its scale.
    shape = (n + n_more + torch.arange(k, 0, -1).to(X)) / 2
    squares = gamma(rng, shape, torch.full_like(shape, 0.5))
    A = rng.normal(k, k, std=1.0).to(X).tril(-1) + squares.sqrt().diag()
    root = root @ A
    precision = root @ root.mT
    z = rng.normal(k, 1, std=1.0).to(X)
    spread = torch.linalg.cholesky((strength + n) * precision)
    drawn = torch.linalg.solve_triangular(spread.mT, z, upper=True)[:, 0]
    return (n * mean / (strength + n) + drawn).to(W), precision.to(W)


def draw_link(
    rng: Randomness,
    side: Side,
    W: Tensor,
    precision: Tensor,
    B: Tensor,
    p: Tensor | float,
) -> tuple[Tensor, Tensor]:
    """``B`` given ``W ~ N(S B, precision^-1)`` and a Gaussian prior, and its precision.

    The solution of ``(S' S + p P) B = S' (W + E_1) + sqrt(p) P^(1/2) E_2`` with ``E``
    from ``N(0, precision^-1)`` is a draw; a few steps of conjugate gradients
    approximate it. The draw is over-relaxed.

    Parameters
    ----------
    rng : Randomness
        Where random numbers come from.
    side : Side
        ``S`` and ``P``.
    W : Tensor of shape (m, rank + 1)
        The rows' factors, less the means that do not depend on ``B``.
    precision : Tensor of shape (rank + 1, rank + 1)
        Precision matrix of these rows.
    B : Tensor of shape (p, rank + 1)
        The last draw, from which conjugate gradients start.
    p : Tensor of shape () or float
        Precision of ``B`` in units of ``P`` and of ``precision``.

    Returns
    -------
    B : Tensor of shape (p, rank + 1)
    p : Tensor of shape ()
    """
    root = torch.linalg.cholesky(precision)

    def noise(rows: int) -> Tensor:
        z = rng.normal(rows, W.shape[1], std=1.0).to(W)
        return torch.linalg.solve_triangular(root.mT, z.mT, upper=True).mT

    drawn = side.pull(noise(len(W))) + p**0.5 * side.noise(noise)
    right = (1 + OVER) * side.pull(W) + (1 - OVER**2) ** 0.5 * drawn
    found, _ = conjugate_gradients(
        lambda Z: side.pull(side.mean(Z)) + p * side.penalty(Z), right, B, CG_STEPS
    )
    B = found - OVER * B
    size = ((B @ precision) * side.penalty(B)).sum().double()
    return B, gamma(rng, size.new_tensor(B.numel() + 1) / 2, (size + 1) / 2)
