"""Alternating least squares: the solver, its half-steps and its line search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.cells import Side, SparseObserved, SparseValues, prior_mean
from skmc.linalg import LowRank, RowModel, conjugate_gradients, padded
from skmc.solvers import RowModelResult, Solver, State
from skmc.solvers.row_systems import (
    Systems,
    gradient,
    improved,
    panels_of,
    solved,
    solved_rows,
    with_uncertain_prior,
)

PLAIN = 2  # plain sweeps before conjugate ones
# Gradients are in single precision while the residual is above the first number and
# the root mean square of the cells is between the other two.
FAR = 1e-4
SINGLE = (1e-6, 1e6)
# Smallest and largest number of conjugate gradient steps of a half-step, and the share
# of the residual that may be left; without and with the zeros of implicit feedback,
# which are in the coordinates of `Systems.whitened`.
STEPS = {False: (3, 6, 0.03), True: (2, 10, 0.2)}
LINK_STEPS = 20  # of conjugate gradients for a map; enough from a warm start
FARTHEST = 100.0  # longest step of a line search
ROWS = 2**17  # of temporary arrays

Sides = tuple[Tensor, Tensor]  # one value for the rows and one for the columns
Links = tuple[Sequence[Tensor], Sequence[Tensor]]  # maps of linear priors


@dataclass(frozen=True, kw_only=True)
class ALSState(State):
    """An iterate of `ALS`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    rows : Tensor of shape (m, rank + 1)
        Factors and bias of each row.
    cols : Tensor of shape (n, rank + 1)
        Factors and bias of each column.
    next_cols : Tensor of shape (n, rank + 1)
        Factors and biases of the columns after the next step.
    links : pair of sequences of Tensor of shape (p, rank + 1)
        Map ``B`` of each linear prior of the rows, and of the columns.
    steps : pair of int
        Numbers of conjugate gradient steps of the next half-steps of the rows and of
        the columns; 0 means an exact solution.
    misfit : Tensor of shape ()
        Squared distance from the observed cells.
    slopes : pair of Tensor of shape ()
        Norms of the gradient with respect to ``rows`` and to ``cols``.
    n_steps : int
        Number of steps done.
    last : Sweep or None
        Last sweep, from which the next conjugate direction follows.
    """

    rows: Tensor  # (m, rank + 1), factors and a bias
    cols: Tensor  # (n, rank + 1)
    next_cols: Tensor  # (n, rank + 1)
    links: Links
    steps: tuple[int, int]
    misfit: Tensor
    slopes: tuple[Tensor, Tensor]
    n_steps: int
    last: Sweep | None

    @property
    def X(self) -> LowRank:
        """The completion."""
        return LowRank.with_biases(self.rows, self.cols)


@dataclass(frozen=True, eq=False, kw_only=True)
class ALSResult(RowModelResult):
    """Factors and biases of rows and of columns, and the maps of their priors."""

    factors: Sides  # (m, rank + 1), (n, rank + 1)
    links: Links  # (p, rank + 1)


class ALS(Solver):
    r"""Alternating least squares for factors and biases of rows and columns.

    .. math::

        \min \tfrac12 \|P(U V^\top + b 1^\top + 1 c^\top - M)\|_F^2
        + \frac{\lambda}{2} (\sum_i p_i (\|u_i\|^2 + b_i^2)
        + \sum_j q_j (\|v_j\|^2 + c_j^2))

    *sums* over cells, rows and columns; ``p_i`` and ``q_j`` are the numbers of observed
    cells of a row and of a column, or the sums of their weights, to the power of
    ``per_cell``. A step solves for all columns, then for all rows. Without biases of
    rows (columns), ``b`` (``c``) is zero.

    From the third step on, and without linear priors, the change of a step is replaced
    by a conjugate direction and an exact line search along it: the objective on the
    line is a polynomial of degree four. This takes fewer steps. If the direction is not
    one of descent, the iterate of the plain step is taken.

    A half-step takes three steps of conjugate gradients for all rows at once, from the
    current factors. Each lowers the objective, at a small part of the cost of exact
    solutions. Where more than .03 of the residual is left, the next half-step of that
    side takes one more step; after six, or if numbers are too large for single
    precision, all further half-steps of that side are exact. Gradients far from the
    solution are computed in single precision. With ``implicit``, the numbers are two
    steps, .2 of the residual and ten steps.

    With linear priors (`Side`), ``w_i = (u_i, b_i)`` in the penalty becomes ``w_i - (S
    B)_i``, and ``link_weight tr(B' P B) / 2`` is added for each. A step then begins
    with conjugate gradients for ``B``.

    Parameters
    ----------
    start : Tensor of shape (m, rank) or callable
        Factors of the rows before the first step, or a function that returns them.
    weight : float > 0
        Weight ``lambda`` of the squared factors and biases.
    row_biases, col_biases : bool
        Whether rows, and columns, have biases.
    per_cell : float in [0, 1]
        Exponent of the number of cells of a row or column in the weight of its penalty.
    link_weight : float > 0, default=1.0
        Weight of ``tr(B' P B) / 2`` for each linear prior.
    implicit : bool, default=False
        Whether all cells are also zeros of weight 1, which count in ``p_i`` and
        ``q_j``. ``|X|_F^2 / 2`` is then added to the objective, and ``F' F`` to each
        system; no cell is formed.
    start_biases : Tensor of shape (m,), optional
        Biases of the rows before the first step; zero by default.
    start_cols : Tensor of shape (n, rank + 1), optional
        Factors and biases of the columns before the first step; zero by default.

    References
    ----------
    Zhou, Wilkinson, Schreiber, Pan. Large-scale parallel collaborative filtering for
    the Netflix prize. AAIM (2008). Hu, Koren, Volinsky. Collaborative filtering for
    implicit feedback datasets. ICDM (2008). De Sterck, Winlaw. A nonlinearly
    preconditioned conjugate gradient algorithm for rank-R canonical tensor
    approximation. Numerical Linear Algebra with Applications 22 (2015).
    """

    def __init__(
        self,
        start: Tensor | Callable[[], Tensor],
        weight: float,
        *,
        row_biases: bool,
        col_biases: bool,
        per_cell: float,
        link_weight: float = 1.0,
        implicit: bool = False,
        start_biases: Tensor | None = None,
        start_cols: Tensor | None = None,
    ):
        self.start = start
        self.start_biases = start_biases
        self.start_cols = start_cols
        biases = row_biases, col_biases
        self.objective = Objective(weight, biases, per_cell, link_weight, implicit)

    def init(self, data: SparseObserved) -> ALSState:
        start = self.start() if callable(self.start) else self.start
        rows = pad(start.to(data.device), (0, 1))
        if self.start_biases is not None:
            rows[:, -1] = self.start_biases
        zero = partial(torch.zeros, dtype=data.dtype, device=data.device)
        cols = self.start_cols
        if cols is None:
            cols = zero(data.shape[1], rows.shape[1])
        links = [
            [zero(side.size, rows.shape[1]) for side in sides] for sides in data.sides
        ]
        infinite = rows.new_full((), torch.inf)
        first = HalfStep(rows, infinite, infinite, infinite, zero(()))
        fewest = STEPS[self.objective.implicit][0]
        steps, dtype = (fewest, fewest), _precision(data, infinite)
        pair = (links[0], links[1])
        return self._state(data, first, cols, pair, steps, dtype, 0, None)

    def step(self, data: SparseObserved, state: ALSState) -> ALSState:
        links = state.links
        if links[0]:
            links = self.objective.link(data, 0, state.rows, links[0]), links[1]
        cols, steps = state.next_cols, state.steps
        dtype = _precision(data, self.residual(data, None, state))
        half = self._half(data, 0, state.rows, cols, links[0], steps[0], dtype)
        steps = next_steps(steps[0], half, self.objective.implicit), steps[1]
        n_steps, last = state.n_steps + 1, None
        if n_steps > PLAIN and not any(links):
            faster = self._conjugate(data, state, half.factors, dtype)
            if faster is not None:
                rows, cols, last = faster
                del half  # the plain factors of all rows
                half = self._half(data, 0, rows, cols, (), None, dtype)
        return self._state(data, half, cols, links, steps, dtype, n_steps, last)

    def _conjugate(
        self, data: SparseObserved, state: ALSState, rows: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor, Sweep] | None:
        """Take a step along a conjugate direction; return rows and columns.

        The result is None if no point there is better than the plain sweep, which leads
        to ``rows`` and ``state.next_cols``.
        """
        now, swept = (state.rows, state.cols), (rows, state.next_cols)
        counts = self.objective.counts(data, 0), self.objective.counts(data, 1)
        change = rows - state.rows, state.next_cols - state.cols
        direction = conjugate(change, state.last, counts)
        curve = self.objective.along(data, now, direction, dtype)
        step = best_step(curve)
        if step is None:
            return None
        new_rows, new_cols = (
            torch.add(W, D, alpha=step) for W, D in zip(now, direction, strict=True)
        )
        # Rows without cells are not in the objective; they stay at the sweep's zero.
        for W, count, plain in zip((new_rows, new_cols), counts, swept, strict=True):
            empty = count[:, 0] == 0
            W[empty] = plain[empty]
        return new_rows, new_cols, Sweep(change, direction)

    def _state(
        self,
        data: SparseObserved,
        half: HalfStep,
        cols: Tensor,
        links: Links,
        steps: tuple[int, int],
        dtype: torch.dtype,
        n_steps: int,
        last: Sweep | None,
    ) -> ALSState:
        """Make the iterate after a half-step of the rows.

        The gradient with respect to the columns needs the same products as the next
        half-step, which is therefore computed here.
        """
        rows = half.factors
        if links[1]:
            links = links[0], self.objective.link(data, 1, cols, links[1])
        ahead = self._half(data, 1, cols, rows, links[1], steps[1], dtype)
        penalty = self.objective.weight * (half.penalty + ahead.penalty)
        for axis, maps in enumerate(links):
            for side, B in zip(data.sides[axis], maps, strict=True):
                links_penalty = (B * side.penalty(B)).sum()
                penalty = penalty + self.objective.link_weight * links_penalty
        if self.objective.implicit:
            penalty = penalty + LowRank(rows[:, :-1], cols[:, :-1]).squared_norm()
        return ALSState(
            objective=(ahead.misfit + penalty) / 2,
            rows=rows,
            cols=cols,
            next_cols=ahead.factors,
            links=links,
            steps=(steps[0], next_steps(steps[1], ahead, self.objective.implicit)),
            misfit=ahead.misfit,
            slopes=(half.after.sqrt(), ahead.before.sqrt()),
            n_steps=n_steps,
            last=last,
        )

    def _half(
        self,
        data: SparseObserved,
        axis: int,
        own: Tensor,
        others: Tensor,
        links: Sequence[Tensor],
        steps: int | None,
        dtype: torch.dtype,
    ) -> HalfStep:
        """Take a half-step of the rows (``axis=0``) or the columns, see `Systems`."""
        model = self.objective.model(others, axis)
        rank = model.F.shape[1]
        inputs = [own[:, :rank]]
        maps = [B[:, :rank] for B in links]
        if links:
            inputs.append(torch.as_tensor(prior_mean(data.sides[axis], maps)))
        cells = data.T if axis else data
        systems = Systems(model, steps, dtype, judge=bool(axis))
        factors, *sums = zip(*cells.map(half_step, inputs, systems), strict=True)
        whole = (torch.stack(x).sum(dtype=torch.float64).to(own) for x in sums)
        solved_factors = inputs[0] if steps is None else torch.cat(factors)
        biases = self.objective.biases[axis]
        return HalfStep(
            solved_factors if biases else pad(solved_factors, (0, 1)), *whole
        )

    def residual(
        self, data: SparseObserved, previous: object, current: ALSState
    ) -> Tensor:
        """``(|dF/dU| |U| + |dF/dV| |V|) / |P(M)|^2``.

        With linear priors, ``|dF/dB| |B|`` of each is added to the numerator.
        """
        size = torch.zeros_like(current.misfit)
        for axis, W in enumerate((current.rows, current.cols)):
            size = size + current.slopes[axis] * W.norm()
            size = size + self.objective.of_links(data, axis, W, current.links[axis])
        # If all cells are zero, columns of zeros fit them with any rows.
        energy = data.energy
        return torch.where(energy > 0, size / energy, torch.zeros_like(size))

    def misfit(self, data: SparseObserved, state: ALSState, X: LowRank) -> Tensor:
        return state.misfit

    def result(self, state: ALSState) -> ALSResult:
        model = self.objective.model(state.cols, 0, state.links[0])
        factors = state.rows, state.cols
        return ALSResult(X=state.X, models=[model], factors=factors, links=state.links)


def _precision(data: SparseObserved, residual: Tensor) -> torch.dtype:
    """Precision of gradients: their rounding errors must be relatively small."""
    size = (data.energy / data.n_observed).sqrt()
    enough = (residual > FAR) & (SINGLE[0] < size) & (size < SINGLE[1])
    return torch.float32 if enough else data.energy.dtype


@dataclass(frozen=True)
class Objective:
    """The objective of `ALS`; ``data`` are the observed cells in memory or in blocks.

    Parameters
    ----------
    weight : float > 0
        Weight ``lambda`` of the squared factors and biases.
    biases : pair of bool
        Whether rows, and columns, have biases.
    per_cell : float
        Exponent of the sum of the weights of the cells of a row or column, which
        multiplies its penalty.
    link_weight : float > 0
        Weight of ``tr(B' P B) / 2`` for each linear prior.
    implicit : bool
        Whether all unobserved cells are zeros of weight 1.
    """

    weight: float
    biases: tuple[bool, bool]
    per_cell: float
    link_weight: float
    implicit: bool

    def counts(self, data: SparseObserved, axis: int) -> Tensor:  # (m, 1)
        """Weight of the penalty of each row (``axis=0``) or column."""
        counts = (data.T if axis else data).counts[:, None]
        return (counts + data.shape[1 - axis] * self.implicit) ** self.per_cell

    def model(
        self,
        others: Tensor,  # (n, rank + 1)
        axis: int,
        links: Sequence[Tensor] = (),  # (p, rank + 1)
    ) -> RowModel:
        """The model that gives factors and biases of one side from the other."""
        factors, offset = others[:, :-1], others[:, -1].clone()
        F = pad(factors, (0, 1), value=1.0) if self.biases[axis] else factors
        eye = torch.eye(F.shape[1], dtype=F.dtype, device=F.device)
        zero = F.new_zeros(F.shape[1])
        precision = self.weight * eye
        sides = tuple(B[:, : F.shape[1]] for B in links)
        return RowModel(
            F, offset, precision, zero, self.per_cell, self.implicit, sides=sides
        )

    def link(
        self,
        data: SparseObserved,
        axis: int,
        W: Tensor,  # (m, rank + 1)
        links: Sequence[Tensor],  # (p, rank + 1)
    ) -> Sequence[Tensor]:  # (p, rank + 1)
        """Fit the map ``B`` of each linear prior of one side to its factors."""
        if not links:
            return links
        maps, sides = list(links), data.sides[axis]
        weight = self.weight * self.counts(data, axis)
        for k, side in enumerate(sides):
            others = prior_mean(sides[:k] + sides[k + 1 :], maps[:k] + maps[k + 1 :])

            def system(Z: Tensor, side: Side = side) -> Tensor:
                own = side.pull(weight * side.mean(Z))
                return own + self.link_weight * side.penalty(Z)

            right = side.pull(weight * (W - others))
            maps[k], _ = conjugate_gradients(system, right, maps[k], LINK_STEPS)
        return maps

    def of_links(
        self,
        data: SparseObserved,
        axis: int,
        W: Tensor,  # (m, rank + 1)
        links: Sequence[Tensor],  # (p, rank + 1)
    ) -> Tensor | float:  # ()
        """Sum of ``|dF/dB| |B|`` over the linear priors of one side."""
        if not links:
            return 0.0
        size, sides = W.new_zeros(()), data.sides[axis]
        off = self.counts(data, axis) * (W - prior_mean(sides, links))
        for side, B in zip(sides, links, strict=True):
            grad = self.link_weight * side.penalty(B) - side.pull(self.weight * off)
            size = size + grad.norm() * B.norm()
        return size

    def along(
        self,
        data: SparseObserved,
        now: Sides,  # (m, rank + 1)
        direction: Sides,  # (m, rank + 1)
        dtype: torch.dtype,
    ) -> Tensor:  # (5,)
        """Twice the objective without linear priors along a line, as a polynomial."""
        end = None if self.biases[0] else -1
        line = (
            padded(
                torch.cat([pad(x[:, :-1], (0, 1), value=one)[:, :end], x[:, -1:]], 1)
            ).to(dtype)
            for x, one in ((now[1], 1.0), (direction[1], 0.0))
        )
        own = now[0][:, :end], direction[0][:, :end]
        curve = torch.stack(list(data.map(misfit_along, own, *line))).sum(0)
        for axis, (W, D) in enumerate(zip(now, direction, strict=True)):
            penalty = penalty_along(W, D, self.counts(data, axis))
            curve = curve + self.weight * penalty.to(curve)
        if self.implicit:
            (U, V), (P, Q) = ([W[:, :-1] for W in pair] for pair in (now, direction))
            curve = curve + squares_along((U, P), (V, Q), dtype)
        return curve


def posterior_model(
    data: SparseObserved,
    factors: Sides,  # (m, rank + 1), (n, rank + 1)
    links: Links,  # (p, rank + 1)
    axis: int,
    biases: tuple[bool, bool],
    noise: float,
) -> RowModel:
    """The model of a row (``axis=0``) or a column, given the other side.

    The prior has the mean and the covariance of the factors of this side, or of what
    linear priors do not explain of them, after a step of EM: the factors are shrunk.
    """
    objective = Objective(noise, biases, 0.0, 1.0, False)
    model = objective.model(factors[1 - axis], axis, links[axis])
    cells = data.T if axis else data
    own = factors[axis][:, : model.F.shape[1]]
    own = own - prior_mean(cells.sides[0], model.sides)
    model = model.with_prior_of(own[cells.counts > 0], noise)
    return with_uncertain_prior(cells, model, noise)


def with_posteriors(
    data: SparseObserved,
    factors: Sides,  # (m, rank + 1), (n, rank + 1)
    links: Links,  # (p, rank + 1)
    biases: tuple[bool, bool],
    noise: tuple[float, float | None],
) -> RowModelResult:
    """Posterior means of the rows and perhaps of the columns, and the last model.

    The columns are given the rows, and the rows then these columns. Without a noise for
    them, the columns stay as they are.
    """
    rows, cols = factors
    model = posterior_model(data, (rows, cols), links, 0, biases, noise[0])
    rows = pad(solved(data, model), (0, not biases[0]))
    if noise[1] is not None:
        model = posterior_model(data, (rows, cols), links, 1, biases, noise[1])
        cols = pad(solved(data.T, model), (0, not biases[1]))
        model = posterior_model(data, (rows, cols), links, 0, biases, noise[0])
        rows = pad(solved(data, model), (0, not biases[0]))
    return RowModelResult(X=LowRank.with_biases(rows, cols), models=[model])


class HalfStep(NamedTuple):
    """Result of a half-step; all fields but ``factors`` are sums over the rows.

    Parameters
    ----------
    factors : Tensor of shape (m, rank)
        New factors and biases; empty if only the gradient is computed.
    before, after : Tensor of shape ()
        Squared norms of the gradient before and after the half-step.
    misfit : Tensor of shape ()
        Squared distance from the observed cells before the half-step.
    penalty : Tensor of shape ()
        Penalty without its weight, before or after the half-step.
    """

    factors: Tensor
    before: Tensor
    after: Tensor
    misfit: Tensor
    penalty: Tensor


def half_step(
    data: SparseValues,
    own: Sequence[Tensor],  # (m, rank)
    systems: Systems,
) -> HalfStep:
    """Compute factors of some rows from the current ones, given those of the columns.

    The result depends only on the arguments. So the function can be called for one
    chunk of rows after another, in memory or in blocks, or as tasks of a cluster.
    """
    W, model, steps = own[0], systems.model, systems.steps
    mean = own[1] if len(own) > 1 else 0.0
    new, before = W, W.new_full((), torch.inf)
    after = misfit = before
    if systems.judge or steps != 0:
        slope, misfit = gradient(data, W, systems, mean)
        before = slope.square().sum()
        if steps:
            new, after = improved(data, W, slope, systems)
            after = after.sum()
    if steps is None:
        after, new = before, W.new_empty(0)
    elif not torch.isfinite(after):
        new = solved_rows(data, own[1:], model)
        after = after if steps else torch.zeros_like(after)
    count = (data.counts + data.shape[1] * model.zeros) ** model.per_cell
    off = (W if systems.judge or steps is None else new) - mean
    return HalfStep(new, before, after, misfit, (off.square().sum(1) * count).sum())


def next_steps(steps: int, half: HalfStep, implicit: bool) -> int:
    """Number of conjugate gradient steps of the next half-step of a side."""
    _, most, left = STEPS[implicit]
    if steps and torch.isfinite(half.after):
        enough = bool(half.after <= left**2 * half.before)
        if enough or steps < most:
            return steps + (not enough)
    return 0


@dataclass(frozen=True)
class Sweep:
    """The last sweep of rows and columns, for conjugate directions.

    Parameters
    ----------
    change : pair of Tensor of shape (m, rank + 1), (n, rank + 1)
        Change of factors and biases in the plain sweep.
    direction : pair of Tensor of shape (m, rank + 1), (n, rank + 1)
        Direction of the step that was taken instead.
    """

    change: Sides
    direction: Sides


def conjugate(
    change: Sides,  # (m, rank + 1)
    last: Sweep | None,
    counts: Sides,  # (m, 1)
) -> Sides:  # (m, rank + 1)
    """Make the change of a sweep conjugate to the last direction.

    The sweep is the preconditioner: the result is ``change + beta direction``, with the
    non-negative ``beta`` of Polak and Ribiere for changes instead of gradients. Rows
    are weighted by their numbers of cells, as in the systems.
    """
    if last is None:
        return change
    size = moved = change[0].new_zeros(())
    for side in zip(change, last.change, counts, strict=True):
        for new, old, count in _in_blocks(*side):
            size = size + (count * old).mul_(old).sum()
            moved = moved + (count * new).mul_(new - old).sum()
    beta = (moved / size).nan_to_num(0.0, 0.0, 0.0).clamp_min(0.0)
    rows, cols = (
        (beta * old).add_(new) for new, old in zip(change, last.direction, strict=True)
    )
    return rows, cols


def misfit_along(
    data: SparseValues,
    own: Sequence[Tensor],  # (m, rank)
    cols: Tensor,  # (n, k)
    change: Tensor,  # (n, k)
) -> Tensor:  # (5,)
    """Squared distance of some rows from their cells, as a polynomial of the step."""
    W, D = (pad(x.to(cols), (0, cols.shape[1] - x.shape[1])) for x in own)
    curve = W.new_zeros(5, dtype=torch.float64)
    W[:, own[0].shape[1]] = 1.0
    for panel, part in panels_of(data, cols):
        V, Q = cols[part], change[part]
        first = panel.at(LowRank(W, V)).sub_(panel.values.to(W.dtype))
        second = panel.at(LowRank(D, V)).add_(panel.at(LowRank(W, Q)))
        third = panel.at(LowRank(D, Q))
        curve = curve + torch.stack(
            [
                panel.inner(first, first),
                2 * panel.inner(first, second),
                panel.inner(second, second) + 2 * panel.inner(first, third),
                2 * panel.inner(second, third),
                panel.inner(third, third),
            ]
        )
    return curve


def penalty_along(
    W: Tensor,  # (m, rank + 1)
    D: Tensor,  # (m, rank + 1)
    counts: Tensor,  # (m, 1)
) -> Tensor:  # (5,)
    """Coefficients of ``sum_i counts_i |w_i + t d_i|^2``."""
    curve = W.new_zeros(5, dtype=torch.float64)
    for w, d, count in _in_blocks(W, D, counts):
        # A sum with another output type would convert all numbers first.
        for k, (a, b) in enumerate(((w, w), (2 * w, d), (d, d))):
            curve[k] += (count * a).mul_(b).sum(1).sum(dtype=torch.float64)
    return curve


def _in_blocks(*parts: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Blocks of rows, so that temporary arrays are small."""
    return zip(*(part.split(ROWS) for part in parts), strict=True)


def squares_along(
    rows: Sides,  # (m, rank)
    cols: Sides,  # (n, rank)
    dtype: torch.dtype,
) -> Tensor:  # (5,)
    """Coefficients of ``|(U + t P) (V + t Q)'|_F^2``."""
    grams = [
        (W.mT @ W, W.mT @ D + D.mT @ W, D.mT @ D)
        for W, D in ((W.to(dtype), D.to(dtype)) for W, D in (rows, cols))
    ]
    coefficients = grams[0][0].new_zeros(5, dtype=torch.float64)
    for i, A in enumerate(grams[0]):
        for j, B in enumerate(grams[1]):
            coefficients[i + j] += (A * B).sum(dtype=torch.float64)
    return coefficients


def best_step(
    coefficients: Tensor,  # (5,)
) -> float | None:
    """Positive minimizer of a polynomial of degree four."""
    numbers = coefficients.tolist()
    if not all(map(math.isfinite, numbers)):
        return None
    curve = np.polynomial.Polynomial(numbers)
    roots = curve.deriv().roots()
    steps = roots.real[abs(roots.imag) <= 1e-6 * abs(roots)]
    steps = steps[(steps > 0) & (steps < FARTHEST)]
    if not len(steps) or curve(steps).min() >= numbers[0]:
        return None
    return float(steps[curve(steps).argmin()])
