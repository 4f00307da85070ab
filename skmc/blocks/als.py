"""Alternating least squares over blocks that are not in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skmc.blocks.observed import Block
from skmc.linalg import LowRank, RowModel
from skmc.solvers import ALS, ALSState, product, with_bias


@dataclass(frozen=True, kw_only=True)
class BlockALSState(ALSState):
    """An iterate of `BlockALS`.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    X : LowRank
        The completion.
    rows : Tensor of shape (m, rank + 1)
        Factors and bias of each row.
    cols : Tensor of shape (n, rank + 1)
        Factors and bias of each column.
    links : pair of sequences
        Empty: cells that are not in memory have no linear priors.
    misfit : Tensor of shape ()
        Squared distance from the observed cells.
    next_cols : Tensor of shape (n, rank + 1)
        The solution for the columns, given ``rows``.
    grad : Tensor of shape ()
        Norm of the gradient with respect to ``cols``.
    """

    misfit: Tensor
    next_cols: Tensor
    grad: Tensor


class BlockALS(ALS):
    """`ALS` for a `BlockObserved`, with two passes a sweep.

    The iterates are those of `ALS`. The pass over blocks of columns, which solves for
    the columns of the next sweep, also evaluates the gradient at the present iterate:
    both need the same cells and the same factors. A fit therefore makes one pass more
    than its sweeps need. The pass over blocks of rows also evaluates the misfit.

    Parameters are those of `ALS`, and:

    Parameters
    ----------
    start : Tensor of shape (m, rank)
        The factors of the rows before the first step.
    weight : float > 0
        ``lambda``, which multiplies the squared factors and biases.
    device : device, default="cpu"
        Where the systems are solved. Factors are kept on the CPU.
    **options : object
        Further parameters of `ALS`.
    """

    def __init__(
        self, start: Tensor, weight: float, *, device: Any = "cpu", **options: Any
    ):
        super().__init__(start, weight, **options)
        self.device = device

    def init(self, data: Any) -> BlockALSState:
        rows = with_bias(self.start, 0.0)
        if self.start_biases is not None:
            rows[:, -1] = self.start_biases
        cols = data.values.new_zeros(data.shape[1], rows.shape[1])
        infinite = rows.new_full((), torch.inf)
        return self._state_at(data, rows, cols, infinite, infinite)

    def step(self, data: Any, state: Any) -> BlockALSState:
        cols = state.next_cols
        model = self._model(cols, self.row_biases)
        parts = data.map("row", half_step, None, model, self.device)
        rows, misfit, penalty = self._joined(parts, self.row_biases)
        return self._state_at(data, rows, cols, misfit, penalty)

    def _state_at(
        self,
        data: Any,
        rows: Tensor,
        cols: Tensor,
        misfit: Tensor,
        penalty: Tensor,
    ) -> BlockALSState:
        model = self._model(rows, self.col_biases)
        own = cols if self.col_biases else cols[:, :-1]
        parts = data.map("col", half_step, own, model, self.device)
        next_cols, grad, col_penalty = self._joined(parts, self.col_biases)
        objective = (misfit + self.weight * (penalty + col_penalty)) / 2
        return BlockALSState(
            X=product(rows, cols),
            objective=objective,
            rows=rows,
            cols=cols,
            misfit=misfit,
            next_cols=next_cols,
            grad=grad.sqrt(),
        )

    def _joined(self, parts: Any, biases: bool) -> tuple[Tensor, Tensor, Tensor]:
        factors, *sums = zip(*parts, strict=True)
        W = torch.cat(factors)
        first, second = (torch.stack(values).sum() for values in sums)
        return (W if biases else with_bias(W, 0.0)), first, second

    def residual(self, data: Any, previous: Any, current: Any) -> Tensor:
        energy = data.energy.clamp_min(torch.finfo(data.values.dtype).tiny)
        return current.grad * current.cols.norm() / energy

    def misfit(self, data: Any, state: BlockALSState, X: LowRank) -> Tensor:
        return state.misfit


def half_step(
    block: Block, own: Tensor | None, model: RowModel, device: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve for the rows of one block, given the factors of the other side.

    This function depends on nothing but its arguments: `BlockALS` calls it for one
    block after the other, or as tasks of a cluster.

    Parameters
    ----------
    block : Block
        The cells of some rows, or of some columns.
    own : Tensor of shape (n_rows of the block, rank) or None
        Present factors and biases of these rows.
    model : RowModel
        Made of the factors of the other side.
    device : device
        Where to compute. "auto" is CUDA if this process has a CUDA device.

    Returns
    -------
    factors : Tensor of shape (n_rows of the block, rank)
        Solutions of the systems of ``model``.
    value : Tensor of shape ()
        Without ``own`` the squared misfit at the solution. With ``own`` the squared
        norm of the gradient of the objective at ``own``.
    penalty : Tensor of shape ()
        Penalty of the solution, or of ``own``, without its weight.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    cells, model = block.cells(device), model.to(device)
    count = torch.ones_like(cells.values[:1]).expand(block.shape[0])
    if model.per_cell:
        count = cells.starts.diff().to(cells.values.dtype)
    W = model.solve(cells.starts, cells.cols, cells.values)
    at = W if own is None else own.to(device)
    difference = cells.at(LowRank(at, model.F)) + model.offset[cells.cols]
    difference -= cells.values
    penalty = (at.square().sum(1) * count).sum()
    value = difference.square().sum()
    if own is not None:
        grad = cells.matrix(difference) @ model.F
        grad += (at @ model.precision) * count[:, None]
        value = grad.square().sum()
    return W.cpu(), value.cpu(), penalty.cpu()
