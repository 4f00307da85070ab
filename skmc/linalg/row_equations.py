"""Normal equations of the rows of a sparse matrix, in blocks of similar rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK = 2**21  # largest number of elements gathered at once, to fit in the cache
SIMILAR = 1.5  # rows of one block differ in length by at most this factor
SHORT = 16  # ... or are all at most this long


@dataclass(frozen=True, eq=False)
class RowSystems:
    """Systems ``gram w = right`` of some rows: sums of ``f f'`` and ``f y`` over cells.

    Parameters
    ----------
    rows : int64 Tensor of shape (k,)
        Positions of the rows.
    gram : Tensor of shape (k, rank, rank)
        Left sides.
    right : Tensor of shape (k, rank)
        Right sides.
    count : Tensor of shape (k,)
        Number of cells of each row, or the sum of their weights.
    """

    rows: Tensor  # (k,), positions
    gram: Tensor  # (k, rank, rank)
    right: Tensor  # (k, rank)
    count: Tensor  # (k,), numbers of cells


def normal_equations(
    starts: Tensor,  # (m + 1,)
    cols: Tensor,  # (n_cells,)
    values: Tensor,  # (n_cells,)
    F: Tensor,  # (n, rank)
    weights: Tensor | None = None,  # (n_cells,)
) -> Iterator[RowSystems]:
    """Systems of rows of similar length, in blocks of bounded memory.

    Blocks are independent, so they can be solved on different machines. Parameters are
    as in `RowModel.solve`.
    """
    rank = F.shape[1]
    count = starts.diff()
    lengths, order = count.sort(stable=True)
    # Padding points to a row of zeros.
    F = torch.cat([F, F.new_zeros(1, rank)])
    cols = torch.cat([cols, cols.new_full((1,), len(F) - 1)])
    values = torch.cat([values, values.new_zeros(1)])
    if weights is not None:
        weights = torch.cat([weights, weights.new_zeros(1)])
    begin = 0
    while begin < len(lengths):
        most = max(SHORT, int(SIMILAR * lengths[begin]))
        end = int(torch.searchsorted(lengths, most, right=True))
        end = min(end, begin + max(1, BLOCK // (max(most, rank) * rank)))
        rows, width = order[begin:end], int(lengths[end - 1])
        at = starts[rows, None] + torch.arange(width, device=cols.device)
        at = torch.where(at < starts[rows + 1, None], at, len(values) - 1)
        seen = F[cols[at]]
        left, cells = seen, lengths[begin:end]
        if weights is not None:
            own = weights[at]
            left, cells = seen * own[..., None], own.sum(1)
        right = (values[at][:, None] @ left)[:, 0]
        yield RowSystems(rows, left.mT @ seen, right, cells)
        begin = end
