"""Cells of a sparse matrix: positions, sums and products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.linalg import (
    LowRank,
    RowPairs,
    compressed_rows,
    in_threads,
    padded,
    work_of,
)

SUMMED = 2**16  # elements summed at once in single precision
CHUNK = 2**20  # cells whose temporary arrays fit in the cache


class SparsePositions:
    """Positions of cells, sorted by row and then by column.

    Attributes
    ----------
    rows, cols : int64 or int32 Tensor of shape (n_cells,)
        Positions without duplicates.
    shape : tuple of int
        Shape of the matrix, ``(n_rows, n_cols)``.
    """

    rows: Tensor
    cols: Tensor
    shape: tuple[int, int]

    @cached_property
    def starts(self) -> Tensor:
        """Start of each row among the cells, and the end, ``(n_rows + 1,)``."""
        starts = self.rows.new_zeros(self.shape[0] + 1)
        starts[1:] = torch.bincount(self.rows, minlength=self.shape[0]).cumsum(0)
        return starts

    @cached_property
    def by_column(self) -> Tensor:
        """Order of the cells by column and then by row, ``(n_cells,)``."""
        return self.cols.argsort(stable=True)

    @cached_property
    def pairs(self) -> RowPairs:
        """The pairs of cells in the same row; their number grows with its square."""
        return RowPairs.of(self.starts, self.rows, self.cols, self.shape[1])

    def matrix(self, values: Tensor) -> Tensor:
        """Sparse matrix, in compressed rows, with ``values`` at the cells.

        Parameters
        ----------
        values : Tensor of shape (n_cells,)
            Values in the order of the cells.

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
        """The smallest integer type for the positions."""
        small = len(self.rows) < 2**31 and max(self.shape) < 2**31
        return torch.int32 if small else torch.int64

    def at(self, X: LowRank) -> Tensor:
        """Values of ``X`` at the cells, ``(n_cells,)``.

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
        if left.dtype is torch.float32:
            # Shorter rows take many times as long, and unpadded ones a third longer.
            left, right = padded(left), padded(right)
        products = self.matrix(left.new_zeros(len(self.rows)))
        differentiable = left.requires_grad or right.requires_grad
        # Without ``out``, PyTorch copies the pattern, which is slower than the product.
        out = None if differentiable and torch.is_grad_enabled() else products
        products = torch.sparse.sampled_addmm(
            products, left, right.mT, beta=0.0, out=out
        )
        return products.values()

    def spread(self, sums: Tensor) -> Tensor:
        """Broadcast statistics of columns, or of all cells, to the cells.

        Parameters
        ----------
        sums : Tensor of shape (1, n_cols) or (1, 1)
            Result of `sums`.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        return sums[0, self.cols] if sums.shape[1] > 1 else sums[0]

    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Start of each row among the cells, and the columns of the cells.

        Returns
        -------
        starts : int64 ndarray of shape (n_rows + 1,)
        cols : int32 ndarray of shape (n_cells,)
        """
        return self.starts.cpu().numpy(), self.cols.cpu().numpy().astype(np.int32)


@dataclass(frozen=True, eq=False)
class SparseValues(SparsePositions):
    """Values and weights of cells.

    Parameters
    ----------
    rows, cols : int64 or int32 Tensor of shape (n_cells,)
        Positions, sorted by row and then by column, without duplicates.
    values : floating Tensor of shape (n_cells,)
        Values of the cells.
    shape : tuple of int
        ``(n_rows, n_cols)``.
    weights : Tensor of shape (n_cells,) or None, default=None
        Weight of each cell in all sums. None means 1.
    """

    rows: Tensor
    cols: Tensor
    values: Tensor
    shape: tuple[int, int]
    weights: Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Type of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Device of the values."""
        return self.values.device

    @property
    def work(self) -> int:
        """Work of a pass over the observed cells, which are all that a step reads."""
        return work_of(len(self.values))

    @property
    def batch_shape(self) -> torch.Size:
        """Empty, since there are no batch axes."""
        return torch.Size(())

    def zero(self) -> LowRank:
        """The zero matrix, of rank 0.

        Returns
        -------
        LowRank
        """
        return LowRank(*(self.values.new_zeros(size, 0) for size in self.shape))

    @property
    def n_observed(self) -> Tensor:
        """Number of observed cells, of shape ``()``."""
        return torch.full_like(self.values[:1].sum(), len(self.values))

    @cached_property
    def energy(self) -> Tensor:
        """``|P(M)|_F^2``."""
        return self.weighted(self.values.square()).sum()

    @cached_property
    def counts(self) -> Tensor:
        """Number of cells of each row, or the sum of their weights, ``(n_rows,)``."""
        if self.weights is None:
            return self.starts.diff().to(self.values.dtype)
        return self.row_sums(torch.ones_like(self.weights))

    @cached_property
    def largest_weight(self) -> float:
        """The largest weight of a cell, 1 without weights."""
        return 1.0 if self.weights is None else float(self.weights.max())

    @cached_property
    def _panels(self) -> dict[int, list[tuple[SparseValues, slice]]]:
        return {}

    def panels(self, width: int) -> list[tuple[SparseValues, slice]]:
        """Divide the cells into panels of columns, and remember the last division.

        Parameters
        ----------
        width : int
            Number of columns of a panel.

        Returns
        -------
        list of (SparseValues, slice)
            The cells of each panel, and its columns.
        """
        if width not in self._panels:
            self._panels.clear()
            self._panels[width] = list(self._divided(width))
        return self._panels[width]

    def _divided(self, width: int) -> Iterator[tuple[SparseValues, slice]]:
        place = self.cols // width
        # Sorting small integers is a radix sort.
        order = np.argsort(place.numpy().astype(np.uint16), kind="stable")
        panels = torch.from_numpy(order).split(place.bincount().tolist())
        for k, cells in enumerate(panels):
            panel = SparseValues(
                self.rows[cells],
                self.cols[cells] - k * width,
                self.values[cells],
                (self.shape[0], min(width, self.shape[1] - k * width)),
                None if self.weights is None else self.weights[cells],
            )
            yield panel, slice(k * width, (k + 1) * width)

    def weighted(self, cells: Tensor) -> Tensor:
        """Multiply by the weights of the cells.

        Parameters
        ----------
        cells : Tensor of shape (n_cells,)
            Value at each cell.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        return cells if self.weights is None else cells * self.weights.to(cells.dtype)

    def inner(self, a: Tensor, b: Tensor) -> Tensor:
        """Weighted inner product of values at the cells, in double precision.

        Parameters
        ----------
        a, b : Tensor of shape (n_cells,)
            Value at each cell.

        Returns
        -------
        float64 Tensor of shape ()
        """
        products = self.weighted(a * b)
        # A sum with another output type would convert all numbers first.
        blocks = (
            products.split(SUMMED) if products.device.type == "cpu" else (products,)
        )
        return torch.stack([part.sum(dtype=torch.float64) for part in blocks]).sum()

    def residual(self, X: LowRank) -> Tensor:
        """``P(X - M)`` at the cells, ``(n_cells,)``.

        Parameters
        ----------
        X : LowRank
            A completion.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        return self.at(X) - self.values

    def misfit(self, X: LowRank) -> Tensor:
        """``|P(X - M)|_F^2``.

        Parameters
        ----------
        X : LowRank
            A completion.

        Returns
        -------
        Tensor of shape ()
        """
        return self.weighted(self.residual(X).square()).sum()

    def sums(self, cells: Tensor, *, by_column: bool) -> Tensor:
        """Sums over observed cells, ``(1, n_cols)`` or ``(1, 1)``.

        Parameters
        ----------
        cells : Tensor of shape (n_cells,)
            The summands.
        by_column : bool
            Whether to sum each column separately.

        Returns
        -------
        Tensor
        """
        cells = self.weighted(cells)
        if by_column:
            return cells.new_zeros(1, self.shape[1]).index_add_(
                1, self.cols, cells[None]
            )
        return cells.sum().view(1, 1)

    def row_sums(self, cells: Tensor) -> Tensor:
        """Sums over the observed cells of each row, ``(n_rows,)``.

        Parameters
        ----------
        cells : Tensor of shape (n_cells,)
            The summands.

        Returns
        -------
        Tensor
        """
        zero = cells.new_zeros(self.shape[0])
        return zero.index_add_(0, self.rows, self.weighted(cells))

    @property
    def chunks(self) -> list[SparseValues]:
        """The matrix in chunks of consecutive rows, each with about `CHUNK` cells."""
        undivided = self.device.type != "cpu" or len(self.values) <= CHUNK
        return [self] if undivided else self._chunks  # avoids a reference to itself

    @cached_property
    def _chunks(self) -> list[SparseValues]:
        starts, kind = self.starts, self._kind
        first = np.unique(starts[:-1].numpy() // CHUNK, return_index=True)[1]
        chunks = []
        for begin, end in pairwise([*first.tolist(), self.shape[0]]):
            cells = slice(int(starts[begin]), int(starts[end]))
            chunk = SparseValues(
                self.rows[cells].sub(begin).to(kind),
                self.cols[cells].to(kind),
                self.values[cells],
                (end - begin, self.shape[1]),
                None if self.weights is None else self.weights[cells],
            )
            chunks.append(chunk)
        return chunks

    def map(
        self, function: Callable[..., Any], own: Sequence[Tensor] = (), *common: object
    ) -> Iterator[Any]:
        """Call ``function(chunk, own, *common)`` for all chunks of rows, in threads.

        Parameters
        ----------
        function : callable
            Function to call, at the same time for several chunks.
        own : sequence of Tensor of shape (n_rows, k)
            Tensors of which each call gets the rows of its chunk.
        *common : object
            Arguments shared by all calls.

        Yields
        ------
        object
            Results in the order of the rows.
        """
        chunks = self.chunks
        if len(chunks) == 1:
            yield function(self, own, *common)
            return
        sizes = [chunk.shape[0] for chunk in chunks]
        pieces = zip(*(x.split(sizes) for x in own), strict=True) if own else None
        pairs = zip(chunks, pieces or [()] * len(sizes), strict=True)
        yield from in_threads(lambda pair: function(*pair, *common), pairs)
