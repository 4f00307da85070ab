"""The rows of Dask collections as data of a fit."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.blocks.block_observed import moments_of
from skmc.blocks.chunks import Chunks
from skmc.cells import Observed, Scaling
from skmc.linalg import LowRank, work_of

ROWS_TRIED = 1000  # number of rows for choices on held-out cells


class ChunkedRows(Chunks):
    """The cells of a Dask Array or DataFrame whose chunks are rows.

    Only sums over the chunks are kept: each pass computes the chunks again, by
    Dask's current scheduler or client.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows of the matrix.
    missing_values : float
        Number that marks missing cells, in addition to NaN.
    scaling : Scaling, optional
        Scaling of the values when a chunk is read.
    """

    dtype, device = torch.float64, torch.device("cpu")
    remote = False  # this process receives the sums
    batch_shape = torch.Size(())

    def scaling_of(self, how: str | None, *, centre: bool = True) -> Scaling:
        """Scaling by the rules of `Scaling.of`."""
        return Scaling.of_moments(self.moments, how, centre=centre)

    def first_rows(self, n: int = ROWS_TRIED) -> Observed:
        """The first rows, scaled."""
        values = torch.from_numpy(self.head(n)).double()
        if self.scaling is not None:
            values = self.scaling.standardise(values)
        return Observed(values, ~torch.isnan(values))

    def scaled(self, scaling: Scaling) -> ChunkedRows:
        """Return the same cells with scaled values."""
        rows = ChunkedRows(self.X, self.missing_values, scaling)
        rows.__dict__["statistics"] = self.statistics
        return rows

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        sums = self.statistics
        return len(sums["row"]["count"]), len(sums["col"]["count"])

    @property
    def work(self) -> int:
        """Work of a pass over the largest chunk, see `skmc.linalg.work_of`."""
        n_cols = self.shape[1]
        return work_of(int(self.statistics["sizes"].max()) * n_cols, n_cols)

    @property
    def identity(self) -> list[Any]:
        """Data that distinguish two sets of cells."""
        cols = self.statistics["col"]
        return [self.shape, *(cols[name] for name in ("count", "mean", "squares"))]

    @property
    def n_observed(self) -> Tensor:
        """Number of observed cells, of shape ``()``."""
        count = self.statistics["col"]["count"].sum()
        return torch.tensor(float(count), dtype=torch.float64)

    @cached_property
    def energy(self) -> Tensor:
        """``|P(M)|_F^2``."""
        energy: Tensor = self.total(_energy)[0]
        return energy

    def misfit(self, X: LowRank) -> Tensor:  # ()
        """``|P(X - M)|_F^2`` of the zero matrix, the only one that is formed."""
        return self.energy

    def zero(self) -> LowRank:
        """The zero matrix, of rank 0."""
        return LowRank(*(torch.zeros(size, 0, dtype=self.dtype) for size in self.shape))

    def to(self, *args: Any) -> ChunkedRows:
        """Return the object itself: chunks are computed where Dask has them."""
        return self

    def moments(self, by_column: bool) -> tuple[Tensor, Tensor, Tensor]:  # (1, n_cols)
        """Mean, standard deviation and number of the unscaled cells."""
        return moments_of(self.statistics["col"], np.dtype(float), by_column)


def _energy(values: Tensor, seen: Tensor) -> tuple[Tensor]:
    return (values.square().sum(),)
