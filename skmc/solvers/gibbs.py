"""Bayesian factorization by Gibbs sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.cells import SparseObserved, SparseValues
from skmc.linalg import LowRank, Randomness, RowModel
from skmc.solvers.gibbs_draws import (
    Indicator,
    draw_link,
    draw_relative,
    gamma,
    normal_wishart,
)
from skmc.solvers.solver import Solver, State

# For data of variance 1: the initial precision of the noise, and the initial standard
# deviation of factors, times the root of the rank. With .3 for the latter, the error
# on held-out ratings of MovieLens-1M is .004 higher: factors grow slowly.
FIRST_NOISE, FIRST_SIZE = 2.0, 1.0


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
        known = sum(means[self.implicit :], torch.zeros_like(factors.W))
        normal = rng.normal(len(known), self.rank + 1, std=1.0).to(known)
        own = [factors.W, normal * noise**-0.5, known]
        if factors.relative is not None:
            own.append(factors.relative)
        model = self._model(factors, others, noise)
        found = zip(*data.map(_drawn, own, model), strict=True)
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
        """Infinity: there is no optimum, and more draws are better.

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

    def misfit(self, data: SparseObserved, state: GibbsState, X: LowRank) -> Tensor:
        return 2 * state.objective

    def outputs(self, state: GibbsState) -> dict[str, Any]:
        kept = state.kept or [self._model(state.rows, state.cols, state.noise)]
        return {"X": state.X, "rows": kept}


def _drawn(
    data: SparseValues, own: Sequence[Tensor], model: RowModel
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw factors of some rows, given the previous ones, and sum squared residuals.

    The first sum is that of all cells. If the noise differs between columns, the second
    one is that of each row, with their relative precisions.
    """
    previous, normal, known, *relative = own
    weights = data.weighted(relative[0][data.rows]) if relative else data.weights
    cells = data.starts, data.cols, data.values
    W = model.solve(*cells, normal, known, weights, previous)
    columns = torch.cat([model.F, model.offset[:, None]], 1)
    squares = data.residual(LowRank(pad(W, (0, 1), value=1.0), columns)).square()
    misfit = sums = data.weighted(squares).sum().view(1)
    if model.relative is not None:
        sums = data.row_sums(squares * model.relative[data.cols])
    return W, misfit, sums
