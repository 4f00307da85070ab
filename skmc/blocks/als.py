"""Alternating least squares over blocks that are not in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from skmc.blocks.observed import Block
from skmc.linalg import LowRank, RowModel
from skmc.solvers import ALS, ALSState, half_step, product, too_slow, with_bias


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
    exact : pair of bool
        Whether the systems of the rows, and of the columns, are to be solved exactly.
    misfit : Tensor of shape ()
        Squared distance from the observed cells.
    row_slope : Tensor of shape ()
        Norm of the gradient with respect to ``rows``.
    next_cols : Tensor of shape (n, rank + 1)
        The factors and biases of the columns after the next step.
    col_slope : Tensor of shape ()
        Norm of the gradient with respect to ``cols``.
    """

    next_cols: Tensor
    col_slope: Tensor


class BlockALS(ALS):
    """`ALS` for a `BlockObserved`, with two passes a sweep.

    The iterates are those of `ALS`. The pass over blocks of columns, which improves
    the columns for the next sweep, also evaluates the gradient at the present iterate:
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
        first = Sums(infinite, infinite, infinite, infinite)
        return self._state_at(data, rows, cols, first, (False, False))

    def step(self, data: Any, state: Any) -> BlockALSState:
        cols, exact = state.next_cols, state.exact
        rows, sums = self._pass(data, "row", state.rows, cols, exact[0], False)
        exact = too_slow(exact[0], sums.before, sums.after), exact[1]
        return self._state_at(data, rows, cols, sums, exact)

    def _state_at(
        self,
        data: Any,
        rows: Tensor,
        cols: Tensor,
        sums: Sums,
        exact: tuple[bool, bool],
    ) -> BlockALSState:
        next_cols, own = self._pass(data, "col", cols, rows, exact[1], True)
        penalty = sums.penalty + own.penalty
        return BlockALSState(
            X=product(rows, cols),
            objective=(sums.value + self.weight * penalty) / 2,
            rows=rows,
            cols=cols,
            exact=(exact[0], too_slow(exact[1], own.before, own.after)),
            misfit=sums.value,
            next_cols=next_cols,
            row_slope=sums.after.sqrt(),
            col_slope=own.before.sqrt(),
        )

    def _pass(
        self, data: Any, side: str, own: Tensor, others: Tensor, *flags: bool
    ) -> tuple[Tensor, Sums]:
        """A half-step over all blocks of one side."""
        biases = self.row_biases if side == "row" else self.col_biases
        model = self._model(others, biases)
        own = own[:, : model.F.shape[1]]
        parts = data.map(side, block_step, own, model, *flags, self.device)
        factors, sums = zip(*parts, strict=True)
        W = torch.cat(factors)
        total = Sums(*(torch.stack(values).sum() for values in zip(*sums, strict=True)))
        return (W if biases else with_bias(W, 0.0)), total

    def _col_slope(self, data: Any, state: Any) -> Tensor:
        return state.col_slope


class Sums(NamedTuple):
    """Sums over the rows of a block, or of all blocks.

    Parameters
    ----------
    before, after : Tensor of shape ()
        Squared norms of the gradient before and after a half-step.
    value : Tensor of shape ()
        Squared misfit.
    penalty : Tensor of shape ()
        Penalty, without its weight.
    """

    before: Tensor
    after: Tensor
    value: Tensor
    penalty: Tensor


def block_step(
    block: Block,
    own: Tensor,
    model: RowModel,
    exact: bool,
    judge_own: bool,
    device: Any,
) -> tuple[Tensor, Sums]:
    """Take a half-step for the rows of one block.

    This function depends on nothing but its arguments: `BlockALS` calls it for one
    block after the other, or as tasks of a cluster.

    Parameters
    ----------
    block : Block
        The cells of some rows, or of some columns.
    own : Tensor of shape (n_rows of the block, rank)
        Present factors and biases of these rows.
    model : RowModel
        Made of the factors of the other side.
    exact : bool
        Whether the systems are to be solved exactly.
    judge_own : bool
        Whether the penalty is that of ``own``, and ``before`` is needed; otherwise they
        are those of the new factors, and ``value`` is needed.
    device : device
        Where to compute. "auto" is CUDA if this process has a CUDA device.

    Returns
    -------
    factors : Tensor of shape (n_rows of the block, rank)
        The new factors and biases.
    sums : Sums
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    cells, model, own = block.cells(device), model.to(device), own.to(device)
    W, before, after = half_step(cells, own, model, exact)
    count = cells.counts if model.per_cell else torch.ones_like(cells.counts)
    if judge_own:
        at, value = own, torch.zeros_like(after)
        if torch.isinf(before):
            before = cells.slope(model, own).square().sum()
    else:
        at, offset = W, model.offset[cells.cols]
        difference = cells.at(LowRank(W, model.F)) + offset - cells.values
        value = difference.square().sum()
    penalty = (at.square().sum(1) * count).sum()
    return W.cpu(), Sums(before.cpu(), after.cpu(), value.cpu(), penalty.cpu())
