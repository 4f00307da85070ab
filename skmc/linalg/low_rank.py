"""Matrices that are products, or a sparse matrix plus a product: never formed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class LowRank:
    """``left @ right'``, shapes ``(*batch, m, rank)`` and ``(*batch, n, rank)``."""

    left: Tensor
    right: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.left.shape[-2], self.right.shape[-2]

    def dense(self) -> Tensor:
        return self.left @ self.right.mT

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.left @ (self.right.mT @ other)

    @property
    def mT(self) -> LowRank:
        return LowRank(self.right, self.left)

    def __add__(self, other: LowRank) -> LowRank:
        return LowRank(
            torch.cat([self.left, other.left], -1),
            torch.cat([self.right, other.right], -1),
        )

    def __mul__(self, factor: float | Tensor) -> LowRank:
        return LowRank(self.left * factor, self.right)


@dataclass(frozen=True, eq=False)
class SparsePlusLowRank:
    """``sparse + low``; a product costs ``n_cells + (m + n) rank`` per column.

    ``sparse`` and ``transposed`` hold the same sparse matrix in compressed rows, one of
    them transposed, so that products with either are fast.
    """

    sparse: Tensor  # (m, n), layout sparse_csr
    transposed: Tensor  # (n, m), layout sparse_csr
    low: LowRank

    @property
    def shape(self) -> tuple[int, int]:
        return self.sparse.shape[0], self.sparse.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.low.left.dtype

    @property
    def device(self) -> torch.device:
        return self.low.left.device

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.sparse @ other + self.low @ other

    @property
    def mT(self) -> SparsePlusLowRank:
        return SparsePlusLowRank(self.transposed, self.sparse, self.low.mT)
