"""Where the observed cells of a sparsely observed matrix are."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from skmc.linalg import LowRank, compressed_rows, padded


class SparsePositions:
    """Positions of some cells, sorted by row and then by column.

    Attributes
    ----------
    rows, cols : int64 or int32 Tensor of shape (n_cells,)
        Positions, each cell once.
    shape : tuple of int
        ``(n_rows, n_cols)``.
    """

    rows: Tensor
    cols: Tensor
    shape: tuple[int, int]

    @cached_property
    def starts(self) -> Tensor:
        """Where each row begins among the cells, and the end, ``(n_rows + 1,)``."""
        return _starts(self.rows, self.shape[0])

    @cached_property
    def by_column(self) -> Tensor:
        """The order of the cells by column and then by row, ``(n_cells,)``."""
        return self.cols.argsort(stable=True)

    def matrix(self, values: Tensor) -> Tensor:
        """A sparse matrix, in compressed rows, with ``values`` at the cells.

        Parameters
        ----------
        values : Tensor of shape (n_cells,)
            In the order of the cells.

        Returns
        -------
        Tensor of shape (n_rows, n_cols), layout sparse_csr
        """
        return compressed_rows(*self._pattern, values, self.shape)

    @cached_property
    def _pattern(self) -> tuple[Tensor, Tensor]:
        return self.starts.to(self._kind), self.cols.to(self._kind)

    @property
    def _kind(self) -> torch.dtype:
        """The smallest type of positions."""
        small = len(self.rows) < 2**31 and max(self.shape) < 2**31
        return torch.int32 if small else torch.int64

    def at(self, X: LowRank) -> Tensor:
        """``X`` at the cells, ``(n_cells,)``.

        Parameters
        ----------
        X : LowRank
            A completion.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        if X.left.shape[1] == 0:
            return X.left.new_zeros(len(self.rows))
        left, right = X.left, X.right
        differentiable = left.requires_grad or right.requires_grad
        differentiable = differentiable and torch.is_grad_enabled()
        if left.dtype is torch.float64 and not differentiable and left.is_cpu:
            # `sampled_addmm` sums a register number by number; this calls BLAS.
            rows, cols = self.rows.contiguous(), self.cols.contiguous()
            return torch.ops.aten._embedding_bag_per_sample_weights_backward(
                left, right, cols, self.starts[:-1], rows, 0
            )
        if left.dtype is torch.float32:
            # Shorter rows take many times as long, and remainders a third longer.
            left, right = padded(left), padded(right)
        found = self.matrix(left.new_zeros(len(self.rows)))
        # Without ``out``, the pattern is copied, which takes longer than the products.
        out = None if differentiable else found
        found = torch.sparse.sampled_addmm(found, left, right.mT, beta=0.0, out=out)
        return found.values()

    def spread(self, sums: Tensor) -> Tensor:
        """Statistics of columns, or of all cells, at the cells.

        Parameters
        ----------
        sums : Tensor of shape (1, n_cols) or (1, 1)
            As returned by `sums`.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        return sums[0, self.cols] if sums.shape[1] > 1 else sums[0]

    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each row begins among the cells, and the columns of the cells.

        Returns
        -------
        starts : int64 ndarray of shape (n_rows + 1,)
        cols : int32 ndarray of shape (n_cells,)
        """
        return self.starts.cpu().numpy(), self.cols.cpu().numpy().astype(np.int32)


def _starts(index: Tensor, n: int) -> Tensor:
    starts = index.new_zeros(n + 1)
    starts[1:] = torch.bincount(index, minlength=n).cumsum(0)
    return starts
