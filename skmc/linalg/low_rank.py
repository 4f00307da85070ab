"""Products of factors, and sparse matrices plus such products, without forming them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

BLOCK = 2**22  # largest number of elements gathered at once
VECTOR = 8  # numbers in a register


def padded(
    factors: Tensor,  # (m, rank)
) -> Tensor:  # (m, k)
    """Append columns of zeros, so that rows fill registers."""
    missing = -factors.shape[1] % VECTOR
    return pad(factors, (0, missing)) if missing else factors


@dataclass(frozen=True, eq=False)
class LowRank:
    """``left @ right'``, shapes ``(*batch, m, rank)`` and ``(*batch, n, rank)``.

    Parameters
    ----------
    left : Tensor of shape (\\*batch, m, rank)
        The left factor.
    right : Tensor of shape (\\*batch, n, rank)
        The right factor.
    """

    left: Tensor
    right: Tensor

    @classmethod
    def with_biases(
        cls,
        rows: Tensor,  # (m, rank + 1)
        cols: Tensor,  # (n, rank + 1)
    ) -> LowRank:
        """``U V' + b 1' + 1 c'`` of factors whose last column is a bias."""
        return cls(
            torch.cat([rows, torch.ones_like(rows[:, :1])], 1),
            torch.cat([pad(cols[:, :-1], (0, 1), value=1.0), cols[:, -1:]], 1),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the product, ``(m, n)``."""
        return self.left.shape[-2], self.right.shape[-2]

    def dense(self) -> Tensor:  # (*batch, m, n)
        """Form the product."""
        return self.left @ self.right.mT

    def squared_norm(self) -> Tensor:  # (*batch,)
        """``|.|_F^2``, shape ``(*batch,)``."""
        left, right = self.left, self.right
        return ((left.mT @ left) * (right.mT @ right)).sum((-2, -1))

    def at(
        self,
        rows: Tensor,  # (n_cells,)
        cols: Tensor,  # (n_cells,)
    ) -> Tensor:  # (n_cells,)
        """Single cells, ``(n_cells,)``."""
        size = max(1, BLOCK // max(1, self.left.shape[-1]))
        products = [
            (self.left[i] * self.right[j]).sum(-1)
            for i, j in zip(rows.split(size), cols.split(size), strict=True)
        ]
        return torch.cat(products)

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.left @ (self.right.mT @ other)

    @property
    def mT(self) -> LowRank:
        """The transpose."""
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

    Parameters
    ----------
    sparse : Tensor of shape (m, n), layout sparse_csr
        The sparse part.
    transposed : Tensor of shape (n, m), layout sparse_csr
        Transpose of the sparse part.
    low : LowRank
        The low-rank part.
    """

    sparse: Tensor  # (m, n), layout sparse_csr
    transposed: Tensor  # (n, m), layout sparse_csr
    low: LowRank

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the sum, ``(m, n)``."""
        return self.sparse.shape[0], self.sparse.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """Data type of both parts."""
        return self.low.left.dtype

    @property
    def device(self) -> torch.device:
        """Device of both parts."""
        return self.low.left.device

    @property
    def mostly_empty(self) -> bool:
        """Whether less than a quarter of the cells are stored."""
        m, n = self.shape
        return 4 * self.sparse.values().numel() < m * n

    def dense(self) -> Tensor:  # (m, n)
        """Form the sum."""
        return self.sparse.to_dense() + self.low.dense()

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.sparse @ other + self.low @ other

    @property
    def mT(self) -> SparsePlusLowRank:
        """The transpose."""
        return SparsePlusLowRank(self.transposed, self.sparse, self.low.mT)


def compressed_rows(
    starts: Tensor,  # (m + 1,)
    cols: Tensor,  # (n_cells,)
    values: Tensor,  # (n_cells,)
    shape: tuple[int, int],
) -> Tensor:  # (m, n)
    """Make a sparse matrix from compressed rows, without PyTorch's beta warning."""
    with warnings.catch_warnings():  # the layout is in beta
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(starts, cols, values, shape)
