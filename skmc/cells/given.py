"""All arguments of ``fit``, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from skmc.cells.entries import Entries
from skmc.cells.observed import Observed
from skmc.cells.priors import Priors
from skmc.cells.scaling import Scaling
from skmc.cells.sparse_observed import SparseObserved
from skmc.cells.table_matrix import Layout


@dataclass(frozen=True, eq=False)
class Given:
    """The observed cells of a matrix, and all side information.

    Parameters
    ----------
    data : Observed, SparseObserved, BlockObserved or ChunkedRows
        Cells with positive weight; scaled if there is a ``scaling``.
    statistics : Priors
        Statistics of these cells before they were scaled.
    read : ndarray of shape (n_rows, n_cols), Entries or None, default=None
        Cells as read, including those of weight 0; NaN where a cell is missing. None
        if they are not in memory.
    known : mapping of str to array, default={}
        Features and graphs of the rows and of the columns, by the names of the
        arguments of ``fit``.
    row_scaling : FeatureScaling or None, default=None
        Scaling of the features of the rows.
    scaling : Scaling or None, default=None
        Scaling of the data, or another object with ``undo``.
    layout : Layout or None, default=None
        What the columns are in a table, if the matrix represents one.
    seconds : float, default=0.0
        Time that reading has taken, for time limits that include it.
    row_weights : ndarray of shape (n_rows,) or None, default=None
        Weights of the rows. Then ``data`` has the rows of positive weight only, with
        the weight of its row in each cell.
    row_names : ndarray of shape (n_rows,) or None, default=None
        Labels of the rows, if the completer keeps them.

    See Also
    --------
    skmc.Observed : Its cells.
    """

    data: Any
    statistics: Priors
    read: np.ndarray | Entries | None = None
    known: Mapping[str, Any] = field(default_factory=dict)
    row_scaling: Any = None
    scaling: Any = None
    layout: Layout | None = None
    seconds: float = 0.0
    row_weights: np.ndarray | None = None
    row_names: np.ndarray | None = None

    @classmethod
    def of_matrix(
        cls,
        matrix: np.ndarray,
        weights: np.ndarray | None = None,
        row_weights: np.ndarray | None = None,
        *,
        one_unit: bool = False,
        **more: Any,
    ) -> Given:
        """Make it from a matrix in memory.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_cols)
            NaN where a cell is missing.
        weights : ndarray of shape (n_rows, n_cols) or None, default=None
            Weights of the observed cells, >= 0.
        row_weights : ndarray of shape (n_rows,) or None, default=None
            Weights of the rows, >= 0, instead of those of cells.
        one_unit : bool, default=False
            Whether all cells have the same unit.
        **more : object
            Further parameters of the class.

        Returns
        -------
        Given
        """
        if row_weights is not None:
            used = row_weights > 0
            if np.isnan(matrix[used]).all():
                raise ValueError(
                    "sample_weight is zero in all rows with an observed cell; at least "
                    "one must be positive."
                )
            of_cells = np.repeat(row_weights[used, None], matrix.shape[1], 1)
            part = cls.of_matrix(matrix[used], of_cells, one_unit=one_unit)
            of_all_rows = cls.of_matrix(matrix, one_unit=one_unit).statistics
            statistics = replace(
                part.statistics,
                shape=of_all_rows.shape,
                row_means=of_all_rows.row_means,
                empty_rows=of_all_rows.empty_rows,
            )
            return cls(part.data, statistics, matrix, row_weights=row_weights, **more)
        seen, times, used_weights = ~np.isnan(matrix), None, None
        if weights is not None:
            seen &= weights > 0
            used_weights = weights[seen]
            times = torch.from_numpy(weights.astype(matrix.dtype))
        rows, cols = np.nonzero(seen)
        shape = matrix.shape[0], matrix.shape[1]
        observed = matrix[rows, cols]
        statistics = Priors.of(
            rows, cols, observed, shape, used_weights, one_unit=one_unit
        )
        values = torch.from_numpy(np.array(matrix, order="C"))
        data = Observed(values, torch.from_numpy(seen), weights=times)
        return cls(data, statistics, matrix, **more)

    @classmethod
    def of_entries(
        cls,
        entries: Entries,
        weights: np.ndarray | None = None,
        *,
        one_unit: bool = True,
        **more: Any,
    ) -> Given:
        """Make it from the observed cells of a sparsely observed matrix in memory.

        Parameters
        ----------
        entries : Entries
            Observed cells.
        weights : ndarray of shape (n_cells,) or None, default=None
            Weight of each of them, >= 0.
        one_unit : bool, default=True
            Whether all cells have the same unit.
        **more : object
            Further parameters of the class.

        Returns
        -------
        Given
        """
        used = entries
        if weights is not None:
            used, weights = entries[weights > 0], weights[weights > 0]
        cells = used.rows, used.cols, used.values, used.matrix_shape
        statistics = Priors.of(*cells, weights, one_unit=one_unit)
        if weights is not None:
            weights = weights.astype(used.values.dtype)
        return cls(SparseObserved.of(*cells, weights), statistics, entries, **more)

    @property
    def entries(self) -> Entries:
        """Observed cells in memory of a sparsely observed matrix."""
        assert isinstance(self.read, Entries), "the cells are a matrix"
        return self.read

    @cached_property
    def matrix(self) -> np.ndarray:
        """Matrix in memory, NaN where a cell is missing."""
        if isinstance(self.read, Entries):
            return self.read.to_cells()
        assert self.read is not None, "the cells are not in memory"
        return self.read

    @cached_property
    def cells(self) -> np.ndarray:
        """`matrix` without cells of weight 0; rows of weight 0 keep theirs."""
        if not self.statistics.weighted or self.row_weights is not None:
            return self.matrix
        hidden = ~self.data.mask.cpu().numpy()
        return np.where(hidden, self.matrix.dtype.type(np.nan), self.matrix)

    @property
    def first_columns(self) -> np.ndarray:
        """For each column, the first one that represents the same cell of a table."""
        if self.layout is None:
            return np.arange(self.statistics.shape[1])
        return self.layout.first_columns

    @property
    def weights_of_rows(self) -> np.ndarray:
        """Weight of each row, shape (n_rows,); 1 without ``row_weights``."""
        if self.row_weights is None:
            return np.ones(len(self.matrix))
        return self.row_weights

    def units(self, how: str | None) -> str | None:
        """Replace "auto", a value of the parameter ``scaling`` of a completer.

        Parameters
        ----------
        how : {"auto", "columns", "global"} or None
            Value of the parameter.

        Returns
        -------
        {"columns", "global"} or None
            "global" for "auto" if all cells have the same unit, otherwise "columns".
        """
        if how != "auto":
            return how
        return "global" if self.statistics.one_unit else "columns"

    def scaling_of(self, how: str | None, *, centre: bool = True) -> Scaling:
        """Compute the scaling that the parameter ``scaling`` of a completer names.

        Parameters
        ----------
        how : {"auto", "columns", "global"} or None
            See `units`.
        centre : bool, default=True
            Whether "auto" subtracts the mean of cells of the same unit, see
            `Scaling.of`.

        Returns
        -------
        Scaling
        """
        units = self.units(how)
        centre = centre or how != "auto" or units != "global"
        return self.data.scaling_of(units, centre=centre)

    @property
    def identity(self) -> list[Any]:
        """Data that identify the fit: cells, weights, features and graphs."""
        return [self.data.identity, self.known]
