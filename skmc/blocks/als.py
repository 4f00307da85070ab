"""Alternating least squares over blocks that are not in memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from skmc.blocks.observed import Block
from skmc.linalg import RowModel
from skmc.solvers import ALS, Effort, HalfStep, half_step


class BlockALS(ALS):
    """`ALS` for a `BlockObserved`, with two passes a sweep.

    The iterates are those of `ALS`: a half-step is a pass over the blocks of one side.

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

    def _half(
        self,
        data: Any,
        axis: int,
        own: Tensor,
        others: Tensor,
        links: Any,
        effort: Effort,
    ) -> HalfStep:
        model = self._model(others, (self.row_biases, self.col_biases)[axis])
        own = own[:, : model.F.shape[1]]
        options = (model, effort, bool(axis), self.device)
        parts = data.map(("row", "col")[axis], block_step, own, *options)
        factors, *sums = zip(*parts, strict=True)
        return HalfStep(torch.cat(factors), *(torch.stack(s).sum() for s in sums))


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
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    cells, model, own = block.cells(device), model.to(device), own.to(device)
    found = half_step(cells, own, model, effort, judge)
    return HalfStep(*(part.cpu() for part in found))
