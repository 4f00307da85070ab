"""Factorization by alternating least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skmc.cells import SparseObserved
from skmc.linalg import LowRank, RowModel
from skmc.solvers.solver import Solver, State


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
    """

    X: LowRank
    rows: Tensor  # (m, rank + 1), factors and a bias
    cols: Tensor  # (n, rank + 1)


class ALS(Solver):
    r"""Alternating least squares for factors and biases of rows and columns.

    .. math::

        \min \tfrac12 \|P(U V^\top + b 1^\top + 1 c^\top - M)\|_F^2
        + \frac{\lambda}{2} (\sum_i p_i (\|u_i\|^2 + b_i^2)
        + \sum_j q_j (\|v_j\|^2 + c_j^2))

    *sums* over cells, rows and columns. If ``per_cell``, ``p_i`` and ``q_j`` are the
    numbers of observed cells of a row and of a column, else 1. A step solves for all
    columns, then for all rows. Without biases of rows (columns), ``b`` (``c``) is zero.

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
    start_biases : Tensor of shape (m,), optional
        The biases of the rows before the first step; zero by default.

    References
    ----------
    Zhou, Wilkinson, Schreiber, Pan. Large-scale parallel collaborative filtering for
    the Netflix prize. AAIM (2008).
    """

    def __init__(
        self,
        start: Tensor,
        weight: float,
        *,
        row_biases: bool,
        col_biases: bool,
        per_cell: bool,
        start_biases: Tensor | None = None,
    ):
        self.start = start
        self.start_biases = start_biases
        self.weight = weight
        self.row_biases = row_biases
        self.col_biases = col_biases
        self.per_cell = per_cell

    def init(self, data: SparseObserved) -> ALSState:
        rows = with_bias(self.start.to(data.values.device), 0.0)
        if self.start_biases is not None:
            rows[:, -1] = self.start_biases
        cols = data.values.new_zeros(data.shape[1], rows.shape[1])
        return self._state(data, rows, cols)

    def step(self, data: SparseObserved, state: ALSState) -> ALSState:
        cols = self._solve(data.T, state.rows, self.col_biases)
        rows = self._solve(data, cols, self.row_biases)
        return self._state(data, rows, cols)

    def _solve(self, data: SparseObserved, others: Tensor, biases: bool) -> Tensor:
        model = self._model(others, biases)
        W = model.solve(data.starts, data.cols, data.values)
        return W if biases else with_bias(W, 0.0)

    def _model(self, others: Tensor, biases: bool) -> RowModel:
        """How factors and biases of one side follow from those of the other."""
        factors, offset = others[:, :-1], others[:, -1].clone()
        F = with_bias(factors, 1.0) if biases else factors
        eye = torch.eye(F.shape[1], dtype=F.dtype, device=F.device)
        zero = F.new_zeros(F.shape[1])
        return RowModel(F, offset, self.weight * eye, zero, self.per_cell)

    def _state(self, data: SparseObserved, rows: Tensor, cols: Tensor) -> ALSState:
        X = product(rows, cols)
        penalty = (rows.square().sum(1) * self._counts(data)).sum()
        penalty = penalty + (cols.square().sum(1) * self._counts(data.T)).sum()
        objective = (data.misfit(X) + self.weight * penalty) / 2
        return ALSState(X=X, objective=objective, rows=rows, cols=cols)

    def _counts(self, data: SparseObserved) -> Tensor:
        count = data.starts.diff().to(data.values.dtype)
        return count if self.per_cell else torch.ones_like(count)

    def residual(self, data: SparseObserved, previous, current: ALSState) -> Tensor:
        """``|dF/dV| |V| / |P(M)|^2``, as the gradient in the rows' factors is zero.

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
        R = data.residual(current.X)
        ones = with_bias(current.rows[:, :-1], 1.0)
        pull = data.T.matrix(R[data.by_column]) @ ones
        if not self.col_biases:
            pull = torch.cat([pull[:, :-1], torch.zeros_like(pull[:, :1])], 1)
        grad = pull + self.weight * self._counts(data.T)[:, None] * current.cols
        energy = data.energy.clamp_min(torch.finfo(R.dtype).tiny)
        return grad.norm() * current.cols.norm() / energy

    def outputs(self, state: ALSState) -> dict[str, Any]:
        return {"X": state.X, "rows": [self._model(state.cols, self.row_biases)]}


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
