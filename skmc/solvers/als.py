"""Factorization by alternating least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Side, SparseObserved, prior_mean
from skmc.linalg import LowRank, RowModel, conjugate_gradients
from skmc.solvers.als_half import (
    STEPS,
    Effort,
    HalfStep,
    half_step,
    next_steps,
    product,
    with_bias,
)
from skmc.solvers.als_line import (
    Sweep,
    best_step,
    conjugate,
    misfit_along,
    penalty_along,
    squares_along,
)
from skmc.solvers.solver import Solver, State

CG_STEPS = 20  # enough from a warm start
PLAIN = 2  # sweeps before conjugate ones
# Gradients are computed in single precision while the residual is above the first
# number, if the root mean square of the cells is between the others.
FAR = 1e-4
SINGLE = (1e-6, 1e6)


@dataclass(frozen=True, kw_only=True)
class ALSState(State):
    """An iterate of `ALS`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : LowRank
        The completion.
    rows : Tensor of shape (m, rank + 1)
        Factors and bias of each row.
    cols : Tensor of shape (n, rank + 1)
        Factors and bias of each column.
    next_cols : Tensor of shape (n, rank + 1)
        Factors and biases of the columns after the next step.
    links : pair of sequences of Tensor of shape (p, rank + 1)
        ``B`` of each linear prior of the rows, and of the columns.
    steps : pair of int
        Conjugate gradients of the next half-step of the rows, and of the columns; 0
        means that systems are solved exactly.
    misfit : Tensor of shape ()
        Squared distance from the observed cells.
    slopes : pair of Tensor of shape ()
        Norms of the gradient with respect to ``rows`` and to ``cols``.
    n_steps : int
        Steps done.
    last : Sweep or None
        What the next conjugate direction needs.
    """

    X: LowRank
    rows: Tensor  # (m, rank + 1), factors and a bias
    cols: Tensor  # (n, rank + 1)
    next_cols: Tensor  # (n, rank + 1)
    links: tuple[Sequence[Tensor], Sequence[Tensor]]
    steps: tuple[int, int]
    misfit: Tensor
    slopes: tuple[Tensor, Tensor]
    n_steps: int
    last: Sweep | None


class ALS(Solver):
    r"""Alternating least squares for factors and biases of rows and columns.

    .. math::

        \min \tfrac12 \|P(U V^\top + b 1^\top + 1 c^\top - M)\|_F^2
        + \frac{\lambda}{2} (\sum_i p_i (\|u_i\|^2 + b_i^2)
        + \sum_j q_j (\|v_j\|^2 + c_j^2))

    *sums* over cells, rows and columns. If ``per_cell``, ``p_i`` and ``q_j`` are the
    numbers of observed cells of a row and of a column, else 1. A step solves for all
    columns, then for all rows. Without biases of rows (columns), ``b`` (``c``) is zero.

    From the third step on, and without linear priors, the change of a step is replaced
    by a conjugate direction and the best step along it: the objective is a polynomial
    of degree four there. This takes less than half as many steps. The iterate to which
    a plain step would lead is taken if the direction does not descend.

    A half-step takes three steps of conjugate gradients for all rows at once, from the
    present factors. Each lowers the objective, at a small part of the cost of exact
    solutions. Where more than .03 of the residual is left, the next half-step of that
    side takes one more; after six, or if numbers are too large for single precision,
    all further ones of that side are exact. Gradients far from the solution are
    computed in single precision.

    With linear priors (`Side`), ``w_i = (u_i, b_i)`` in the penalty becomes ``w_i - (S
    B)_i``, and ``link_weight tr(B' P B) / 2`` is added for each. A step then begins
    with conjugate gradients for ``B``.

    Parameters
    ----------
    start : Tensor of shape (m, rank)
        The factors of the rows before the first step.
    weight : float > 0
        ``lambda``, which multiplies the squared factors and biases.
    row_biases, col_biases : bool
        Whether rows, and columns, have biases.
    per_cell : bool
        Whether the penalty of a row or column counts once for each of its cells.
    link_weight : float > 0, default=1.0
        Multiplies ``tr(B' P B) / 2`` for each linear prior.
    implicit : bool, default=False
        Whether all unobserved cells are zeros that count once, in addition to the
        observed cells. ``|X|_F^2 / 2`` is then added to the objective, and ``F' F`` to
        each system; no cell is formed.
    start_biases : Tensor of shape (m,), optional
        The biases of the rows before the first step; zero by default.
    start_cols : Tensor of shape (n, rank + 1), optional
        The factors and biases of the columns before the first step; zero by default.
    conjugate : bool, default=True
        Whether steps are conjugate; otherwise all are plain.

    References
    ----------
    Zhou, Wilkinson, Schreiber, Pan. Large-scale parallel collaborative filtering for
    the Netflix prize. AAIM (2008). Hu, Koren, Volinsky. Collaborative filtering for
    implicit feedback datasets. ICDM (2008). De Sterck, Winlaw. A nonlinearly
    preconditioned conjugate gradient algorithm for rank-R canonical tensor
    approximation. Numerical Linear Algebra with Applications 22 (2015).
    """

    eager = "rows of similar length are solved together, and lengths are shapes"

    def __init__(
        self,
        start: Tensor,
        weight: float,
        *,
        row_biases: bool,
        col_biases: bool,
        per_cell: bool,
        link_weight: float = 1.0,
        implicit: bool = False,
        start_biases: Tensor | None = None,
        start_cols: Tensor | None = None,
        conjugate: bool = True,
    ):
        self.start = start
        self.start_biases = start_biases
        self.start_cols = start_cols
        self.conjugate = conjugate
        self.weight = weight
        self.row_biases = row_biases
        self.col_biases = col_biases
        self.per_cell = per_cell
        self.link_weight = link_weight
        self.implicit = implicit

    def init(self, data: SparseObserved) -> ALSState:
        rows = with_bias(self.start.to(data.device), 0.0)
        if self.start_biases is not None:
            rows[:, -1] = self.start_biases
        zero = partial(torch.zeros, dtype=data.dtype, device=data.device)
        cols = zero(data.shape[1], rows.shape[1])
        if self.start_cols is not None:
            cols = self.start_cols
        links = [
            [zero(side.size, rows.shape[1]) for side in sides] for sides in data.sides
        ]
        infinite = rows.new_full((), torch.inf)
        own = rows if self.row_biases else rows[:, :-1]
        first = HalfStep(own, infinite, infinite, infinite, zero(()))
        steps, dtype = (STEPS[0], STEPS[0]), self._precision(data, infinite)
        pair = (links[0], links[1])
        return self._state(data, first, cols, pair, steps, dtype, 0, None)

    def step(self, data: SparseObserved, state: ALSState) -> ALSState:
        links = self._link(data, 0, state.rows, state.links[0]), state.links[1]
        cols, steps = state.next_cols, state.steps
        dtype = self._precision(data, self.residual(data, None, state))
        effort = Effort(steps[0], dtype)
        half = self._half(data, 0, state.rows, cols, links[0], effort)
        steps = next_steps(steps[0], half), steps[1]
        n_steps, last = state.n_steps + 1, None
        if self.conjugate and n_steps > PLAIN and not any(links):
            rows = self._whole(half.factors, self.row_biases)
            found = self._conjugate(data, state, rows, dtype)
            if found is not None:
                rows, cols, last, off = found
                half = self._half(data, 0, rows, cols, (), Effort(None, dtype), off)
        return self._state(data, half, cols, links, steps, dtype, n_steps, last)

    def _conjugate(
        self,
        data: SparseObserved,
        state: ALSState,
        rows: Tensor,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Sweep, Tensor | None] | None:
        """Rows and columns after a step along a conjugate direction.

        The last part are the residuals at the cells, if they are in memory. None if
        there is no better point there than those after a plain sweep, which are
        ``rows`` and ``state.next_cols``.
        """
        m = len(rows)
        W = torch.cat([state.rows, state.cols])
        change = torch.cat([rows, state.next_cols]) - W
        counts = torch.cat([self._counts(data, axis) for axis in (0, 1)])[:, None]
        direction = conjugate(change, state.last, counts)
        own, others = torch.cat([W, direction], 1).tensor_split([m])
        curve, residuals = self._misfit_along(data, own, others, dtype)
        curve = curve + self.weight * penalty_along(W, direction, counts).to(curve)
        if self.implicit:
            U, V = W[:, :-1].tensor_split([m])
            P, Q = direction[:, :-1].tensor_split([m])
            curve = curve + squares_along((U, P), (V, Q))
        step = best_step(curve)
        if step is None:
            return None
        # Rows without cells are not in the objective; they stay at a sweep's zero.
        W = W + torch.where(counts > 0, step * direction, change)
        off = None
        if residuals:
            first, second, third = residuals
            off = first.add_(second, alpha=step).add_(third, alpha=step**2)
        return W[:m], W[m:], Sweep(change, direction), off

    def _misfit_along(
        self, data: SparseObserved, rows: Tensor, cols: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, list[Tensor]]:
        return misfit_along(data, rows, cols, dtype)

    def _precision(self, data: SparseObserved, residual: Tensor) -> torch.dtype:
        """Of gradients: their error must be small beside them."""
        size = (data.energy / data.n_observed).sqrt()
        enough = (residual > FAR) & (SINGLE[0] < size) & (size < SINGLE[1])
        return torch.float32 if enough else data.energy.dtype

    def _state(
        self,
        data: SparseObserved,
        half: HalfStep,
        cols: Tensor,
        links: tuple[Sequence[Tensor], Sequence[Tensor]],
        steps: tuple[int, int],
        dtype: torch.dtype,
        n_steps: int,
        last: Sweep | None,
    ) -> ALSState:
        """The iterate after a half-step for the rows.

        The gradient with respect to the columns needs the same products as the next
        half-step, which is therefore made here.
        """
        rows = self._whole(half.factors, self.row_biases)
        links = links[0], self._link(data, 1, cols, links[1])
        ahead = self._half(data, 1, cols, rows, links[1], Effort(steps[1], dtype))
        X = product(rows, cols)
        penalty = self.weight * (half.penalty + ahead.penalty)
        for axis, maps in enumerate(links):
            for side, B in zip(data.sides[axis], maps, strict=True):
                penalty = penalty + self.link_weight * (B * side.penalty(B)).sum()
        if self.implicit:
            penalty = penalty + X.squared_norm()
        return ALSState(
            X=X,
            objective=(ahead.misfit + penalty) / 2,
            rows=rows,
            cols=cols,
            next_cols=self._whole(ahead.factors, self.col_biases),
            links=links,
            steps=(steps[0], next_steps(steps[1], ahead)),
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
        effort: Effort,
        off: Tensor | None = None,
    ) -> HalfStep:
        """A half-step for the rows (``axis=0``) or for the columns.

        ``off`` are the residuals at the cells, if they are known.
        """
        model = self._model(others, (self.row_biases, self.col_biases)[axis])
        rank = model.F.shape[1]
        known = prior_mean(data.sides[axis], [B[:, :rank] for B in links])
        cells, own = data.T if axis else data, own[:, :rank]
        if not (links and self.implicit):
            return half_step(cells, own, model, effort, bool(axis), known, off)
        shrunk = self._shrunk(model)
        mean = prior_mean(data.sides[axis], [B[:, :rank] @ shrunk for B in links])
        half = half_step(cells, own, model, effort, bool(axis), mean)
        off = (own if axis else half.factors) - known
        return half._replace(penalty=off.square().sum())

    def _shrunk(self, model: RowModel) -> Tensor:
        """Maps means of linear priors to those of the systems.

        ``lambda |w - m|^2 + |F w|^2`` is ``(w - m')' (lambda I + F'F) (w - m')`` plus a
        constant, with this times ``m`` for ``m'``.
        """
        return self.weight * torch.linalg.inv(model.precision)

    def _whole(self, W: Tensor, biases: bool) -> Tensor:
        return W if biases else with_bias(W, 0.0)

    def _link(
        self, data: SparseObserved, axis: int, W: Tensor, links: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        """``B`` of each linear prior of one side, given its factors ``W``."""
        if not links:
            return links
        found, sides = list(links), data.sides[axis]
        weight = self.weight * self._counts(data, axis)[:, None]
        for k, side in enumerate(sides):
            others = prior_mean(sides[:k] + sides[k + 1 :], found[:k] + found[k + 1 :])

            def system(Z: Tensor, side: Side = side) -> Tensor:
                own = side.pull(weight * side.mean(Z))
                return own + self.link_weight * side.penalty(Z)

            right = side.pull(weight * (W - others))
            found[k], _ = conjugate_gradients(system, right, found[k], CG_STEPS)
        return found

    def _model(self, others: Tensor, biases: bool) -> RowModel:
        """How factors and biases of one side follow from those of the other."""
        factors, offset = others[:, :-1], others[:, -1].clone()
        F = with_bias(factors, 1.0) if biases else factors
        eye = torch.eye(F.shape[1], dtype=F.dtype, device=F.device)
        zero = F.new_zeros(F.shape[1])
        precision = self.weight * eye
        if self.implicit:
            precision = precision + F.mT @ F
        return RowModel(F, offset, precision, zero, self.per_cell)

    def _counts(self, data: SparseObserved, axis: int) -> Tensor:
        counts = (data.T if axis else data).counts
        return counts if self.per_cell else torch.ones_like(counts)

    def residual(self, data: SparseObserved, previous, current: ALSState) -> Tensor:
        """``(|dF/dU| |U| + |dF/dV| |V|) / |P(M)|^2``.

        With linear priors, ``|dF/dB| |B|`` of each is added to the numerator.

        Parameters
        ----------
        data : SparseObserved
            The observed cells.
        previous : State
            The state before the last step.
        current : ALSState
            The state after it.

        Returns
        -------
        Tensor of shape ()
        """
        size = torch.zeros_like(current.misfit)
        for axis, W in enumerate((current.rows, current.cols)):
            size = size + current.slopes[axis] * W.norm()
            if not current.links[axis]:
                continue
            sides, links = data.sides[axis], current.links[axis]
            off = self._counts(data, axis)[:, None] * (W - prior_mean(sides, links))
            for side, B in zip(sides, links, strict=True):
                grad = self.link_weight * side.penalty(B) - side.pull(self.weight * off)
                size = size + grad.norm() * B.norm()
        # Cells that are all zero are fitted by columns of zeros, whatever the rows.
        energy = data.energy
        return torch.where(energy > 0, size / energy, torch.zeros_like(size))

    def misfit(self, data: SparseObserved, state: ALSState, X: LowRank) -> Tensor:
        return state.misfit

    def outputs(self, state: ALSState) -> dict[str, Any]:
        model = self._model(state.cols, self.row_biases)
        rank = model.F.shape[1]
        sides = tuple(B[:, :rank] for B in state.links[0])
        if self.implicit:
            sides = tuple(B @ self._shrunk(model) for B in sides)
        return {"X": state.X, "rows": [replace(model, sides=sides)]}
