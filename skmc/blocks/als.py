"""Alternating least squares over blocks that are not in memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from skmc.blocks.observed import Block
from skmc.linalg import RowModel
from skmc.solvers import ALS, Effort, HalfStep, half_step, misfit_along


class BlockALS(ALS):
    """`ALS` for a `BlockObserved`, with two passes a sweep.

    The iterates are those of `ALS`: a half-step is a pass over the blocks of one side.

    Parameters are those of `ALS`.
    """

    eager = "blocks are read from files"

    def _half(
        self,
        data: Any,
        axis: int,
        own: Tensor,
        others: Tensor,
        links: Any,
        effort: Effort,
        off: Tensor | None = None,
    ) -> HalfStep:
        model = self._model(others, (self.row_biases, self.col_biases)[axis])
        own = own[:, : model.F.shape[1]]
        options = (model, effort, bool(axis), data.systems_on)
        parts = data.map(("row", "col")[axis], block_step, own, *options)
        factors, *sums = zip(*parts, strict=True)
        return HalfStep(torch.cat(factors), *(torch.stack(s).sum() for s in sums))

    def _counts(self, data: Any, axis: int) -> Tensor:
        counts = data.counts(("row", "col")[axis])
        return counts if self.per_cell else torch.ones_like(counts)

    def _misfit_along(
        self, data: Any, rows: Tensor, cols: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, list[Tensor]]:
        parts = data.map("row", block_misfit_along, rows, cols, dtype, data.systems_on)
        return torch.stack(list(parts)).sum(0), []


def block_misfit_along(
    block: Block, rows: Tensor, cols: Tensor, dtype: torch.dtype, device: Any
) -> Tensor:
    """`misfit_along` of one block.

    Parameters
    ----------
    block : Block
        The cells of some rows.
    rows : Tensor of shape (n_rows of the block, 2 (rank + 1))
        Factors and biases of these rows, and their direction.
    cols : Tensor of shape (n, 2 (rank + 1))
        The same for all columns.
    dtype : torch.dtype
        Precision at the cells.
    device : device
        Where to compute, as in `block_step`.

    Returns
    -------
    float64 Tensor of shape (5,)
    """
    device = _device(device)
    cells, rows, cols = block.cells(device), rows.to(device), cols.to(device)
    return misfit_along(cells, rows, cols, dtype)[0].cpu()


def _device(device: Any) -> Any:
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def block_step(
    block: Block, own: Tensor, model: RowModel, effort: Effort, judge: bool, device: Any
) -> HalfStep:
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
    effort, judge : Effort and bool
        As in `skmc.solvers.half_step`.
    device : device
        Where to compute. "auto" is CUDA if this process has a CUDA device.

    Returns
    -------
    HalfStep
    """
    device = _device(device)
    cells, model, own = block.cells(device), model.to(device), own.to(device)
    found = half_step(cells, own, model, effort, judge)
    return HalfStep(*(part.cpu() for part in found))
