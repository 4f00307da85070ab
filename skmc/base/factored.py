"""The base class of completers that return factors and keep ratings sparse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from skmc.base.device import resolve_device
from skmc.base.iterative import HELD_OUT_SHARE, IterativeCompleter, Prepared
from skmc.base.priors import Priors
from skmc.blocks import BlockObserved, Choice
from skmc.cells import Entries, Scaling, Side, SparseObserved, sparse_cells
from skmc.linalg import LowRank, RowModel


class FactorAttributes:
    """What a fit of a `FactoredCompleter` sets."""

    row_factors_: Any  # an array, or a property that returns one
    col_factors_: Any
    _models: list[RowModel]


class FactoredCompleter(FactorAttributes, IterativeCompleter):
    """Base class that stores observed cells and factors, and no dense matrix.

    Solvers of subclasses take a `SparseObserved`. Besides ``X``, they return the output
    ``rows``: a list of `RowModel`, which complete any row from its own cells and whose
    predictions are averaged.

    Parameters
    ----------
    {reading}
    """

    check_every: ClassVar[int] = 1

    def _read_to_fit(self, X: Any) -> tuple[Entries, Priors]:
        cells = self._read_entries(X)
        return cells, Priors.of(
            cells.rows, cells.cols, cells.values, cells.matrix_shape
        )

    def _read_entries(self, X: Any) -> Entries:
        """Read the observed cells of any container; sparse ones are not made dense."""
        if isinstance(X, Entries):
            shape = X.matrix_shape
            place = np.ravel_multi_index((X.rows, X.cols), shape)
            # A slice may contain a cell twice.
            first = np.sort(np.unique(place, return_index=True)[1])
            cells: Entries = X[first[X.values[first] != self.missing_values]]
        elif sp.issparse(X):
            rows, cols, values = sparse_cells(X, missing_values=self.missing_values)
            cells, shape = Entries.from_triplets(rows, cols, values, X.shape), X.shape
        else:
            return Entries(self._read(X, reset=True))
        validate_data(self, sp.csr_array(shape), accept_sparse=True)
        return cells

    def _prepare(self, cells: Entries | BlockObserved, priors: Priors) -> Prepared:
        if isinstance(cells, BlockObserved):
            scaling = cells.scaling_of(self.scaling, centre=self.centre)
            return Prepared(cells, priors, cells.scaled(scaling), scaling)
        data = self._observed(cells).to(resolve_device(self.device))
        scaling = Scaling.of(data, self.scaling, centre=self.centre)
        return Prepared(cells, priors, scaling.apply(data), scaling)

    def _observed(self, cells: Entries) -> SparseObserved:
        weights = getattr(cells, "weights", None)
        if weights is not None:
            weights = weights.astype(cells.values.dtype)
        return SparseObserved.of(
            cells.rows, cells.cols, cells.values, cells.matrix_shape, weights
        )

    def _split(
        self, data: SparseObserved | BlockObserved, seed: int
    ) -> tuple[Any, Any]:
        if isinstance(data, BlockObserved):
            return data.chosen(Choice(seed, False)), data.chosen(Choice(seed, True))
        n_cells = len(data.values)
        order = np.random.RandomState(seed % 2**32).permutation(n_cells)
        hidden = torch.zeros(n_cells, dtype=torch.bool)
        hidden[torch.from_numpy(order[: int(HELD_OUT_SHARE * n_cells)])] = True
        if not hidden.any():
            return data, None
        hidden = hidden.to(data.values.device)
        return data.only(~hidden), data.only(hidden)

    def _fitted(self, prepared: Prepared, outputs: dict[str, Any]) -> dict[str, Any]:
        data = prepared.data.to("cpu")
        models = outputs.get("rows", [RowModel.empty(data.shape[1], data.values)])
        models = [model.to("cpu") for model in models]
        return {
            **self._kept_factors(data, models),
            "_scaling": prepared.scaling.to("cpu"),
            "_models": models,
        }

    def _kept_factors(
        self, data: SparseObserved, models: list[RowModel]
    ) -> dict[str, Any]:
        """Fitted attributes from which `_whole_rows` and `_at` compute values."""
        rows = joined_rows([data.solved(model) for model in models])
        cols = joined_cols(models)
        return {"row_factors_": rows.numpy(), "col_factors_": cols.numpy()}

    @property
    def reconstruction_(self) -> np.ndarray:
        """The model's value of every cell, computed at each access."""
        check_is_fitted(self)
        rows = torch.arange(self._shape[0])
        whole: np.ndarray = self._scaling.undo(self._whole_rows(rows)).numpy()
        whole[self._priors.empty_rows] = self._priors.col_means
        whole[:, self._priors.empty_cols] = self._priors.row_means[:, None]
        return whole

    def _factors(self) -> LowRank:
        return LowRank(
            torch.from_numpy(self.row_factors_), torch.from_numpy(self.col_factors_)
        )

    def _whole_rows(self, rows: Tensor) -> Tensor:
        """Scaled values of whole rows, ``(k, n_cols)``."""
        factors = self._factors()
        return factors.left[rows] @ factors.right.mT

    def _at(self, rows: Tensor, cols: Tensor) -> Tensor:
        """Scaled values of cells, ``(n_cells,)``."""
        return self._factors().at(rows, cols)

    def _values_at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        i, j = torch.from_numpy(rows), torch.from_numpy(cols)
        shift, scale = (
            s[0, j] if s.shape[1] > 1 else s[0]
            for s in (self._scaling.shift, self._scaling.scale)
        )
        values: np.ndarray = (self._at(i, j) * scale + shift).numpy()
        priors = self._priors
        values = np.where(priors.empty_rows[rows], priors.col_means[cols], values)
        return np.where(priors.empty_cols[cols], priors.row_means[rows], values)

    def _complete_rows(
        self, cells: np.ndarray, known: tuple[Side, ...] | None = None
    ) -> np.ndarray:
        given = self._given(cells, known)
        whole = torch.zeros(cells.shape, dtype=given.values.dtype)
        for model in self._models:
            W = given.solved(model)
            whole += (W @ model.F.mT + model.offset) / len(self._models)
        completed: np.ndarray = self._scaling.undo(whole).numpy()
        return completed

    def _known(self, cells: np.ndarray) -> tuple[Side, ...]:
        """What is known about rows besides their cells."""
        return ()

    def _given(
        self, cells: np.ndarray, known: tuple[Side, ...] | None = None
    ) -> SparseObserved:
        """What is known about rows: the cells that predict the others, scaled."""
        dtype = self._models[0].F.dtype
        # The fit has learned nothing about other values of a constant column.
        priors = self._priors
        used = (cells == priors.constant) | (priors.varies & ~np.isnan(cells))
        rows, cols = np.nonzero(used)
        given = SparseObserved.of(
            rows, cols, torch.from_numpy(cells[rows, cols]).to(dtype), cells.shape
        )
        known = self._known(cells) if known is None else known
        return replace(self._scaling.apply(given), sides=(known, ()))


def joined_rows(factors: Sequence[Tensor]) -> Tensor:
    """Factors of the rows in all models, and a column of ones.

    Parameters
    ----------
    factors : sequence of Tensor of shape (m, rank)
        Those of each model.

    Returns
    -------
    Tensor of shape (m, n_models rank + 1)
    """
    return torch.cat([*factors, factors[0].new_ones(len(factors[0]), 1)], 1)


def joined_cols(models: Sequence[RowModel]) -> Tensor:
    """What `joined_rows` is multiplied with to get the mean of all models.

    Parameters
    ----------
    models : sequence of RowModel
        The models.

    Returns
    -------
    Tensor of shape (n, n_models rank + 1)
    """
    offset = torch.stack([model.offset for model in models]).mean(0)
    return torch.cat([*(m.F / len(models) for m in models), offset[:, None]], 1)
