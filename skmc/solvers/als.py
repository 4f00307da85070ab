"""Factorization by alternating least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Side, SparseObserved, prior_mean
from skmc.linalg import LowRank, RowModel, conjugate_gradients
from skmc.solvers.solver import Solver, State

CG_STEPS = 20  # enough from a warm start
# Below this rank, exact solutions cost no more than the steps.
INEXACT_RANK = 8
# Steps must shrink the residual of a half-step to this share of it.
SHRINKS = 1 / 3


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
    links : pair of sequences of Tensor of shape (p, rank + 1)
        ``B`` of each linear prior of the rows, and of the columns.
    exact : pair of bool
        Whether the systems of the rows, and of the columns, are to be solved exactly.
    misfit : Tensor of shape ()
        Squared distance from the observed cells.
    row_slope : Tensor of shape ()
        Norm of the gradient with respect to ``rows``.
    """

    X: LowRank
    rows: Tensor  # (m, rank + 1), factors and a bias
    cols: Tensor  # (n, rank + 1)
    links: tuple[Sequence[Tensor], Sequence[Tensor]] = ((), ())
    exact: tuple[bool, bool] = (False, False)
    misfit: Tensor
    row_slope: Tensor


class ALS(Solver):
    r"""Alternating least squares for factors and biases of rows and columns.

    .. math::

        \min \tfrac12 \|P(U V^\top + b 1^\top + 1 c^\top - M)\|_F^2
        + \frac{\lambda}{2} (\sum_i p_i (\|u_i\|^2 + b_i^2)
        + \sum_j q_j (\|v_j\|^2 + c_j^2))

    *sums* over cells, rows and columns. If ``per_cell``, ``p_i`` and ``q_j`` are the
    numbers of observed cells of a row and of a column, else 1. A step solves for all
    columns, then for all rows. Without biases of rows (columns), ``b`` (``c``) is zero.

    From rank 8 on, a half-step takes three steps of conjugate gradients for all rows at
    once, from the present factors. Each lowers the objective, at a small part of the
    cost of exact solutions. Where they shrink the residual by less than a factor of
    three, half-steps of that side are exact from then on.

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

    References
    ----------
    Zhou, Wilkinson, Schreiber, Pan. Large-scale parallel collaborative filtering for
    the Netflix prize. AAIM (2008). Hu, Koren, Volinsky. Collaborative filtering for
    implicit feedback datasets. ICDM (2008).
    """

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
    ):
        self.start = start
        self.start_biases = start_biases
        self.weight = weight
        self.row_biases = row_biases
        self.col_biases = col_biases
        self.per_cell = per_cell
        self.link_weight = link_weight
        self.implicit = implicit

    def init(self, data: SparseObserved) -> ALSState:
        rows = with_bias(self.start.to(data.values.device), 0.0)
        if self.start_biases is not None:
            rows[:, -1] = self.start_biases
        cols = data.values.new_zeros(data.shape[1], rows.shape[1])
        zero = cols.new_zeros
        links = [
            [zero(side.size, rows.shape[1]) for side in sides] for sides in data.sides
        ]
        infinite = rows.new_full((), torch.inf)
        return self._state(data, rows, cols, (links[0], links[1]), infinite)

    def step(self, data: SparseObserved, state: ALSState) -> ALSState:
        col_links = self._link(data.T, state.cols, state.links[1])
        row_links = self._link(data, state.rows, state.links[0])
        exact_rows, exact_cols = state.exact
        cols, exact_cols, _ = self._solve(
            data.T, state.cols, state.rows, self.col_biases, col_links, exact_cols
        )
        rows, exact_rows, slope = self._solve(
            data, state.rows, cols, self.row_biases, row_links, exact_rows
        )
        new = self._state(data, rows, cols, (row_links, col_links), slope)
        return replace(new, exact=(exact_rows, exact_cols))

    def _solve(
        self,
        data: SparseObserved,
        own: Tensor,
        others: Tensor,
        biases: bool,
        links: Sequence[Tensor],
        exact: bool,
    ) -> tuple[Tensor, bool, Tensor]:
        """Factors and biases of one side, whether to solve exactly, and the slope."""
        model, known = self._given(data, others, biases, links)
        own = own[:, : model.F.shape[1]]
        W, before, after = half_step(data, own, model, exact, known)
        exact = too_slow(exact, before, after)
        return (W if biases else with_bias(W, 0.0)), exact, after.sqrt()

    def _given(
        self,
        data: SparseObserved,
        others: Tensor,
        biases: bool,
        links: Sequence[Tensor],
    ) -> tuple[RowModel, Tensor | float]:
        """The systems of one side, and what is added to the mean of each row."""
        model = self._model(others, biases)
        rank = model.F.shape[1]
        return model, prior_mean(data.sides[0], [B[:, :rank] for B in links])

    def _link(
        self, data: SparseObserved, W: Tensor, links: Sequence[Tensor]
    ) -> list[Tensor]:
        """``B`` of each linear prior of the rows, given their factors ``W``."""
        found, sides = list(links), data.sides[0]
        weight = self.weight * self._counts(data)[:, None]
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

    def _state(
        self,
        data: SparseObserved,
        rows: Tensor,
        cols: Tensor,
        links: tuple[Sequence[Tensor], Sequence[Tensor]],
        slope: Tensor,
    ) -> ALSState:
        X = product(rows, cols)
        penalty = self._penalty(data, rows, links[0])
        penalty = penalty + self._penalty(data.T, cols, links[1])
        if self.implicit:
            penalty = penalty + X.squared_norm()
        misfit = data.misfit(X)
        return ALSState(
            X=X,
            objective=(misfit + penalty) / 2,
            rows=rows,
            cols=cols,
            links=links,
            misfit=misfit,
            row_slope=slope,
        )

    def _penalty(
        self, data: SparseObserved, W: Tensor, links: Sequence[Tensor]
    ) -> Tensor:
        off = W - prior_mean(data.sides[0], links)
        penalty = self.weight * (off.square().sum(1) * self._counts(data)).sum()
        for side, B in zip(data.sides[0], links, strict=True):
            penalty = penalty + self.link_weight * (B * side.penalty(B)).sum()
        return penalty

    def _counts(self, data: SparseObserved) -> Tensor:
        return data.counts if self.per_cell else torch.ones_like(data.counts)

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
        size = current.row_slope * current.rows.norm()
        size = size + self._col_slope(data, current) * current.cols.norm()
        for axis, W in enumerate((current.rows, current.cols)):
            if current.links[axis]:
                cells = data.T if axis else data
                size = size + self._link_residual(cells, W, current.links[axis])
        return size / data.energy.clamp_min(torch.finfo(size.dtype).tiny)

    def _col_slope(self, data: SparseObserved, state: ALSState) -> Tensor:
        cells, cols = data.T, state.cols
        model, known = self._given(cells, state.rows, self.col_biases, state.links[1])
        return cells.slope(model, cols[:, : model.F.shape[1]], known).norm()

    def _link_residual(
        self, data: SparseObserved, W: Tensor, links: Sequence[Tensor]
    ) -> Tensor | float:
        off = W - prior_mean(data.sides[0], links)
        off = self.weight * self._counts(data)[:, None] * off
        size: Tensor | float = 0.0
        for side, B in zip(data.sides[0], links, strict=True):
            grad = self.link_weight * side.penalty(B) - side.pull(off)
            size = size + grad.norm() * B.norm()
        return size

    def misfit(self, data: SparseObserved, state: ALSState, X: LowRank) -> Tensor:
        return state.misfit

    def outputs(self, state: ALSState) -> dict[str, Any]:
        model = self._model(state.cols, self.row_biases)
        rank = model.F.shape[1]
        sides = tuple(B[:, :rank] for B in state.links[0])
        return {"X": state.X, "rows": [replace(model, sides=sides)]}


def half_step(
    data: SparseObserved,
    own: Tensor,
    model: RowModel,
    exact: bool,
    known: Tensor | float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Factors of one side, given those of the other, from the present ones.

    Parameters
    ----------
    data : SparseObserved
        The observed cells.
    own : Tensor of shape (m, rank)
        The present factors and biases.
    model : RowModel
        Made of the factors of the other side.
    exact : bool
        Whether the systems are to be solved exactly.
    known : Tensor of shape (m, rank) or float, default=0.0
        What is added to the mean of each row.

    Returns
    -------
    factors : Tensor of shape (m, rank)
        The solutions, exact or improved.
    before, after : Tensor of shape ()
        Squared norms of the gradient of the objective, at ``own`` and at ``factors``.
    """
    failed = False
    if not exact and model.F.shape[1] >= INEXACT_RANK:
        W, before, after = data.improved(model, own, known)
        if torch.isfinite(after):
            return W, before, after
        failed = True
    W = model.solve(
        data.starts, data.cols, data.values, known=known, weights=data.weights
    )
    infinite = W.new_tensor(torch.inf)
    return W, infinite, infinite if failed else torch.zeros_like(infinite)


def too_slow(exact: bool, before: Tensor, after: Tensor) -> bool:
    """Whether systems are to be solved exactly, after a `half_step`.

    Parameters
    ----------
    exact : bool
        Whether they already are.
    before, after : Tensor of shape ()
        Squared norms of the gradient.

    Returns
    -------
    bool
    """
    shrank = torch.isfinite(after) & (after <= SHRINKS**2 * before)
    return exact or not bool(shrank)


def with_bias(factors: Tensor, value: float) -> Tensor:
    """Append a column of one value.

    Parameters
    ----------
    factors : Tensor of shape (m, rank)
        The factors.
    value : float
        The bias.

    Returns
    -------
    Tensor of shape (m, rank + 1)
    """
    return torch.cat([factors, factors.new_full((len(factors), 1), value)], 1)


def product(rows: Tensor, cols: Tensor) -> LowRank:
    """``U V' + b 1' + 1 c'`` of factors whose last column is a bias.

    Parameters
    ----------
    rows : Tensor of shape (m, rank + 1)
        Factors and bias of each row.
    cols : Tensor of shape (n, rank + 1)
        Factors and bias of each column.

    Returns
    -------
    LowRank
    """
    return LowRank(
        torch.cat([rows, torch.ones_like(rows[:, :1])], 1),
        torch.cat([with_bias(cols[:, :-1], 1.0), cols[:, -1:]], 1),
    )
