"""Effects of rows and columns: the additive part of a matrix, by least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from skmc.cells import SparseObserved
from skmc.linalg import LowRank, conjugate_gradients

STEPS = 200  # most steps of conjugate gradients

Sides = Literal["both", "rows", "columns"]


@dataclass(frozen=True, eq=False)
class Effects:
    """The matrix ``a 1' + 1 b'``.

    Parameters
    ----------
    a : Tensor of shape (n_rows,)
        Effects of the rows.
    b : Tensor of shape (n_cols,)
        Effects of the columns.
    """

    a: Tensor  # (n_rows,)
    b: Tensor  # (n_cols,)

    @classmethod
    def zero(cls, data: SparseObserved) -> Effects:
        """Effects that are all zero.

        Parameters
        ----------
        data : SparseObserved
            The observed cells.

        Returns
        -------
        Effects
        """
        return cls(*(data.values.new_zeros(size) for size in data.shape))

    def at(self, data: SparseObserved) -> Tensor:
        """Values at the observed cells, ``(n_cells,)``.

        Parameters
        ----------
        data : SparseObserved
            The observed cells.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        return self.a[data.rows] + self.b[data.cols]

    def low_rank(self) -> LowRank:
        """The matrix as a product.

        Returns
        -------
        LowRank
        """
        left = torch.stack([self.a, torch.ones_like(self.a)], 1)
        return LowRank(left, torch.stack([torch.ones_like(self.b), self.b], 1))

    def fitted(self, data: SparseObserved, values: Tensor, sides: Sides) -> Effects:
        r"""The least-squares effects of some values at the observed cells.

        .. math::

            \min_{a, b} \sum_{(i, j)} W_{ij} (v_{ij} - a_i - b_j)^2

        Effects of one side are weighted means. For both sides, ``a`` is eliminated, and
        conjugate gradients, which start from these effects, solve for ``b``.

        Parameters
        ----------
        data : SparseObserved
            The observed cells, with their weights.
        values : Tensor of shape (n_cells,)
            A value for each cell.
        sides : {"both", "rows", "columns"}
            The side whose effects are fitted; those of the other side are zero.

        Returns
        -------
        Effects
            Rows and columns without a cell have the effect zero.
        """
        n_row, n_col = (
            torch.where(side.counts > 0, side.counts, 1) for side in (data, data.T)
        )
        if sides == "rows":
            return Effects(data.row_sums(values) / n_row, torch.zeros_like(self.b))
        if sides == "columns":
            sums = data.sums(values, by_column=True)[0]
            return Effects(torch.zeros_like(self.a), sums / n_col)
        values = values - self.at(data)
        W = data.plus(data.weighted(torch.ones_like(values)), data.zero())
        n_row, root = n_row[:, None], n_col.sqrt()[:, None]
        rows = data.row_sums(values)[:, None]
        cols = data.sums(values, by_column=True).mT - W.mT @ (rows / n_row)

        def system(Z: Tensor) -> Tensor:
            return Z - W.mT @ (W @ (Z / root) / n_row) / root

        accuracy = torch.finfo(values.dtype).eps ** 1.5 * data.energy
        b = conjugate_gradients(system, cols / root, None, STEPS, accuracy)[0] / root
        a = (rows - W @ b) / n_row
        return Effects(self.a + a[:, 0], self.b + b[:, 0])
