"""The observed cells of a large, sparsely observed matrix, as tensors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.cells.copies import held_out_with_copies
from skmc.cells.scaling import Scaling
from skmc.cells.sparse_values import SparseValues
from skmc.linalg import LowRank, SparsePlusLowRank

SINGLE = 1e6  # largest number that is stored in single precision


@dataclass(frozen=True, eq=False)
class SparseObserved(SparseValues):
    """The observed cells of a matrix with few observed cells.

    This is the counterpart of `skmc.Observed`. Completions are products of factors
    (`LowRank`) and are never formed. Memory holds only the observed cells and the
    factors. There are no batch axes.

    Parameters
    ----------
    rows, cols : int64 or int32 Tensor of shape (n_cells,)
        Positions, sorted by row and then by column, without duplicates; see `of`.
    values : floating Tensor of shape (n_cells,)
        Values of the cells.
    shape : tuple of int
        ``(n_rows, n_cols)``.
    weights : Tensor of shape (n_cells,) or None, default=None
        Weight of each cell in all sums. None means 1.
    sides : pair of tuples of Side
        Linear priors of the rows' and of the columns' factors.

    See Also
    --------
    Observed : Values and mask of a dense matrix.
    Entries : Observed cells as users give them.
    """

    sides: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())

    @classmethod
    def of(
        cls,
        rows: Tensor | np.ndarray,
        cols: Tensor | np.ndarray,
        values: Tensor | np.ndarray,
        shape: tuple[int, int],
        weights: Tensor | np.ndarray | None = None,
    ) -> SparseObserved:
        """Make it from tensors or arrays in any order.

        Parameters
        ----------
        rows : int Tensor or array of shape (n_cells,)
            Row of each cell.
        cols : int Tensor or array of shape (n_cells,)
            Column of each cell; each position occurs at most once.
        values : Tensor or array of shape (n_cells,)
            Value of each cell.
        shape : tuple of int
            Shape of the matrix, ``(n_rows, n_cols)``.
        weights : Tensor or array of shape (n_cells,), optional
            Weight of each cell.

        Returns
        -------
        SparseObserved
        """
        rows, cols = torch.as_tensor(rows).long(), torch.as_tensor(cols).long()
        values = torch.as_tensor(values)
        weights = None if weights is None else torch.as_tensor(weights)
        place = rows * shape[1] + cols
        if (place.diff() < 0).any():  # sorting takes as long as several half-steps
            order = place.argsort()
            rows, cols, values = rows[order], cols[order], values[order]
            weights = None if weights is None else weights[order]
        else:
            rows, cols, values = rows.clone(), cols.clone(), values.clone()
            weights = None if weights is None else weights.clone()
        return cls(rows, cols, values, shape, weights=weights)

    def __getstate__(self) -> dict[str, Any]:
        """The state without values that can be recomputed."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __sizeof__(self) -> int:  # Dask runs tasks near large data
        tensors = (self.rows, self.cols, self.values, self.weights)
        return sum(x.nbytes for x in tensors if x is not None)

    remote = False  # the cells are in this process

    @property
    def identity(self) -> list[Any]:
        """Data that distinguish two sets of cells."""
        return [self.shape, *vars(replace(self)).values()]

    @cached_property
    def T(self) -> SparseObserved:
        """The transpose, computed at the first access."""
        order = self.by_column
        return SparseObserved(
            self.cols[order],
            self.rows[order],
            self.values[order],
            self.shape[::-1],
            None if self.weights is None else self.weights[order],
            self.sides[::-1],
        )

    def plus(self, values: Tensor, X: LowRank) -> SparsePlusLowRank:
        """Add ``values`` to ``X`` at the observed cells.

        Parameters
        ----------
        values : Tensor of shape (n_cells,)
            Values in the order of the cells.
        X : LowRank
            A completion.

        Returns
        -------
        SparsePlusLowRank
        """
        transposed = self.T.matrix(values[self.by_column])
        return SparsePlusLowRank(self.matrix(values), transposed, X)

    def fill(self, X: LowRank) -> SparsePlusLowRank:
        """The observed values, with ``X`` elsewhere.

        Parameters
        ----------
        X : LowRank
            A completion.

        Returns
        -------
        SparsePlusLowRank
        """
        return self.plus(-self.residual(X), X)

    def scaling_of(self, how: str | None, *, centre: bool = True) -> Scaling:
        """The scaling of `Scaling.of`.

        Parameters
        ----------
        how : {"columns", "global"} or None
            See `Scaling.of`.
        centre : bool, default=True
            See `Scaling.of`.

        Returns
        -------
        Scaling
        """
        return Scaling.of(self, how, centre=centre)

    def scaled(self, scaling: Scaling) -> SparseObserved:
        """The same cells with scaled values.

        Parameters
        ----------
        scaling : Scaling
            Scaling of the values.

        Returns
        -------
        SparseObserved
        """
        of_cells = Scaling(self.spread(scaling.shift), self.spread(scaling.scale))
        return replace(self, values=of_cells.standardise(self.values))

    def split(
        self,
        share: float,
        seed: int,
        first_columns: np.ndarray | None = None,
    ) -> tuple[SparseObserved, SparseObserved | None]:
        """Split the cells into training cells and a held-out share.

        Cells that a copy of the row shows are held out with it.

        Parameters
        ----------
        share : float in (0, 1)
            Share of the cells to hold out.
        seed : int
            Seed of the uniform choice of the cells.
        first_columns : int ndarray of shape (n_cols,) or None, default=None
            For each column, the one together with which it is held out.

        Returns
        -------
        train : SparseObserved
        held_out : SparseObserved or None
            None if there are too few cells to hold any out.
        """
        n_cells = len(self.values)
        order = np.random.RandomState(seed % 2**32).permutation(n_cells)
        drawn = np.isin(np.arange(n_cells), order[: int(share * n_cells)])
        rows, cols, values = (
            x.cpu().numpy() for x in (self.rows, self.cols, self.values)
        )
        drawn = held_out_with_copies(drawn, rows, cols, values, self.shape)
        hidden = torch.from_numpy(drawn)
        if first_columns is not None:
            first = torch.from_numpy(first_columns).to(self.cols.device)[self.cols]
            # Cells are sorted, and a cell is observed in all of its columns.
            place = self.rows * self.shape[1]
            hidden = hidden[torch.searchsorted(place + self.cols, place + first).cpu()]
        if not hidden.any():
            return self, None
        hidden = hidden.to(self.device)
        return self.only(~hidden), self.only(hidden)

    def in_single(self) -> SparseObserved:
        """The same cells in single precision, unless the values are too large.

        Returns
        -------
        SparseObserved
        """
        large = float(self.values.abs().max()) > SINGLE
        return self if large else self.to(torch.float32)

    def only(self, chosen: Tensor) -> SparseObserved:
        """The same matrix with only the cells where ``chosen`` is True.

        Parameters
        ----------
        chosen : bool Tensor of shape (n_cells,)
            True for cells to keep.

        Returns
        -------
        SparseObserved
        """
        return replace(
            self,
            rows=self.rows[chosen],
            cols=self.cols[chosen],
            values=self.values[chosen],
            weights=None if self.weights is None else self.weights[chosen],
        )

    def of_rows(self, rows: Tensor) -> SparseObserved:
        """Some rows as a matrix of their own.

        Parameters
        ----------
        rows : int Tensor of shape (k,)
            Rows in ascending order. Those beyond the last one have no cells.

        Returns
        -------
        SparseObserved
            Cells of a matrix of shape ``(k, n_cols)``.
        """
        part = self.only(torch.isin(self.rows, rows))
        place, shape = torch.searchsorted(rows, part.rows), (len(rows), self.shape[1])
        return replace(part, rows=place, shape=shape)

    def replaced(self, cells: SparseObserved) -> SparseObserved:
        """The cells of both matrices; where both have one, that of ``cells``.

        Parameters
        ----------
        cells : SparseObserved
            More cells without weights, of a matrix that is as large or larger.

        Returns
        -------
        SparseObserved
            Cells of a matrix of the shape of ``cells``.
        """
        n_cols = cells.shape[1]
        places = self.rows * n_cols + self.cols, cells.rows * n_cols + cells.cols
        kept = self.only(~torch.isin(*places))
        rows, cols, values = (
            torch.cat([getattr(kept, name), getattr(cells, name)])
            for name in ("rows", "cols", "values")
        )
        return SparseObserved.of(rows, cols, values, cells.shape)

    def to(self, *args: Any) -> SparseObserved:
        """Move or cast the values as `torch.Tensor.to` does; the positions follow.

        Parameters
        ----------
        *args : device or dtype
            Arguments of `torch.Tensor.to`.

        Returns
        -------
        SparseObserved
        """
        values = self.values.to(*args)
        rows, cols = (tuple(side.to(*args) for side in sides) for sides in self.sides)
        return SparseObserved(
            self.rows.to(values.device),
            self.cols.to(values.device),
            values,
            self.shape,
            None if self.weights is None else self.weights.to(*args),
            (rows, cols),
        )
