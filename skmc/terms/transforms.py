"""Linear maps from a matrix to the list of items that a Laplacian compares.

``T(X)`` has one item per row, shape ``(*batch, n_items, item_size)``; ``adjoint`` is
the transpose of that map, and ``between(L, X)`` is ``T*(L T(X))`` for a symmetric L.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg import matmul


@dataclass(frozen=True)
class Rows:
    """The rows themselves: ``T(X) = X``."""

    name = "rows"

    def n_items(self, n_rows: int, n_cols: int) -> int:
        """Number of items of a matrix."""
        return n_rows

    def __call__(self, X: Tensor) -> Tensor:
        return X

    def adjoint(
        self,
        items: Tensor,  # (*batch, k, p)
        n_rows: int,
        n_cols: int,
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        """Put items back into a matrix."""
        return items

    def between(
        self,
        L: Tensor,  # (*batch, k, k)
        X: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        """``T*(L T(X))``."""
        return matmul(L, X)


@dataclass(frozen=True)
class Columns:
    """The columns: ``T(X) = X'``."""

    name = "columns"

    def n_items(self, n_rows: int, n_cols: int) -> int:
        """Number of items of a matrix."""
        return n_cols

    def __call__(self, X: Tensor) -> Tensor:
        return X.mT

    def adjoint(
        self,
        items: Tensor,  # (*batch, k, p)
        n_rows: int,
        n_cols: int,
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        """Put items back into a matrix."""
        return items.mT

    def between(
        self,
        L: Tensor,  # (*batch, k, k)
        X: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        """``T*(L T(X))``."""
        return matmul(X, L)


@dataclass(frozen=True)
class Blocks:
    """Disjoint blocks of ``size x size``, each written as one row of ``size**2``.

    Blocks start at the upper left corner. Rows and columns after the last whole block
    are in no block, so this transform ignores them.

    Parameters
    ----------
    size : int
        Number of rows and of columns of a block.
    """

    size: int

    @property
    def name(self) -> str:
        """Key of the blocks in ``laplacians_``."""
        return f"blocks{self.size}"

    def n_items(self, n_rows: int, n_cols: int) -> int:
        """Number of items of a matrix."""
        return (n_rows // self.size) * (n_cols // self.size)

    def __call__(self, X: Tensor) -> Tensor:
        b = self.size
        rows, cols = X.shape[-2] // b, X.shape[-1] // b
        X = X[..., : rows * b, : cols * b]
        X = X.unflatten(-1, (cols, b)).unflatten(-3, (rows, b))
        return X.transpose(-3, -2).flatten(-2).flatten(-3, -2)

    def adjoint(
        self,
        items: Tensor,  # (*batch, k, p)
        n_rows: int,
        n_cols: int,
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        """Put items back into a matrix, zero outside of whole blocks."""
        b = self.size
        rows, cols = n_rows // b, n_cols // b
        items = items.unflatten(-2, (rows, cols)).unflatten(-1, (b, b))
        inside = items.transpose(-3, -2).flatten(-2).flatten(-3, -2)
        X = inside.new_zeros((*inside.shape[:-2], n_rows, n_cols))
        X[..., : rows * b, : cols * b] = inside
        return X

    def between(
        self,
        L: Tensor,  # (*batch, k, k)
        X: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        """``T*(L T(X))``."""
        return self.adjoint(matmul(L, self(X)), *X.shape[-2:])


Transform = Rows | Columns | Blocks


def squared_distances(
    items: Tensor,  # (*batch, k, p)
) -> Tensor:  # (*batch, k, k)
    """``|t_i - t_j|^2`` of all pairs: ``(*batch, k, p) -> (*batch, k, k)``."""
    gram = items @ items.mT
    norms = torch.diagonal(gram, dim1=-2, dim2=-1)
    return norms[..., :, None] + norms[..., None, :] - 2 * gram
