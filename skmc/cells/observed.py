"""The observed cells of a matrix, as tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.cells.dense_values import DenseValues


@dataclass(frozen=True, eq=False)
class Observed(DenseValues):
    """Values and mask of a partly observed matrix, or of a batch of them.

    Parameters
    ----------
    values : Tensor of shape (\\*batch, n_rows, n_cols)
        Floating-point. Values where ``mask`` is False are never read (they may be NaN)
        and are replaced with zero.
    mask : bool Tensor, same shape
        True where the cell is observed.
    weights : Tensor of the same shape or None, default=None
        Weight of each observed cell in `misfit`, `energy`, `sums`, `n_observed` and
        `weighted`. None means 1.
    free_means : bool, default=False
        Whether means of the columns are a part of low-rank models that costs no rank
        and has no penalty. This is so where the scaling subtracts a mean from each
        column: the mean of the observed cells is not that of the column.

    Raises
    ------
    TypeError
        ``values`` is not floating-point or ``mask`` is not boolean.
    ValueError
        Shapes differ, an observed value is not finite, or a member has no cell.

    See Also
    --------
    SparseObserved : The observed cells alone.
    skmc.cells.Given : These cells with their scaling and side information.

    Examples
    --------
    >>> import torch
    >>> from skmc import Observed
    >>> data = Observed(torch.tensor([[1.0, 9.0]]), torch.tensor([[True, False]]))
    >>> data.fill(torch.zeros(1, 2))
    tensor([[1., 0.]])
    >>> data.residual(torch.full((1, 2), 3.0))
    tensor([[2., 0.]])
    """

    remote = False  # the cells are in this process

    @property
    def identity(self) -> list[Any]:
        """Data that distinguish two sets of cells."""
        return [self.values, self.mask, self.weights]

    def without(self, hidden: np.ndarray) -> tuple[Observed, Observed | None]:
        """Split the cells into training cells and those where ``hidden`` is True.

        Parameters
        ----------
        hidden : bool ndarray of shape (\\*batch, n_rows, n_cols)
            True for cells to hold out.

        Returns
        -------
        train : Observed
        held_out : Observed or None
            None if there is no cell to hold out.
        """
        if not hidden.any():
            return self, None
        mask = torch.from_numpy(hidden).view(self.mask.shape).to(self.device)
        return self.hide(mask), replace(self, mask=mask)

    def first_rows(self, n: int) -> Observed:
        """The first rows, or all rows if the first ones have no observed cell.

        Parameters
        ----------
        n : int
            Largest number of rows.

        Returns
        -------
        Observed
        """
        rows = slice(n)
        if not self.mask[rows].any():
            return self
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self, values=self.values[rows], mask=self.mask[rows], weights=weights
        )

    def hide(self, hidden: Tensor) -> Observed:
        """The same matrix without the cells where ``hidden`` is True.

        Parameters
        ----------
        hidden : bool Tensor of shape (\\*batch, n_rows, n_cols)
            True for cells to hide.

        Returns
        -------
        Observed
        """
        return replace(self, mask=self.mask & ~hidden)

    def select(self, members: Tensor) -> Observed:
        """Keep some members of the single batch axis.

        Parameters
        ----------
        members : bool or int Tensor
            Mask or positions of the members to keep.

        Returns
        -------
        Observed
        """
        weights = None if self.weights is None else self.weights[members]
        return replace(
            self, values=self.values[members], mask=self.mask[members], weights=weights
        )

    def to(self, *args: Any) -> Observed:
        """Move or cast the values as `torch.Tensor.to` does, and the mask accordingly.

        Parameters
        ----------
        *args : device or dtype
            Arguments of `torch.Tensor.to`.

        Returns
        -------
        Observed
        """
        values = self.values.to(*args)
        weights = None if self.weights is None else self.weights.to(values)
        mask = self.mask.to(values.device)
        return replace(self, values=values, mask=mask, weights=weights)
