"""Completions by fits that keep factors instead of a dense matrix."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.base.fitted import Fitted
from skmc.base.side_information import FeatureScaling, read_features
from skmc.blocks import StoredCells
from skmc.cells import (
    Container,
    Entries,
    Given,
    Scaling,
    Side,
    SparseObserved,
    fingerprint,
    preferences,
)
from skmc.linalg import LowRank, RowModel, in_threads, linear, matmul
from skmc.solvers import Result, RowModelResult, solved

BLOCK = 2**20  # elements of a block of rows that are predicted together


@dataclass(eq=False)
class RowModels(Fitted):
    """Row models, whose predictions complete any row from its cells.

    Parameters
    ----------
    statistics : Priors
        Statistics as in `Fitted`.
    scaling : Scaling
        Scaling of the fit, on the CPU.
    models : list of RowModel
        Models whose predictions are averaged.
    seen : tuple of ndarray, or StoredCells
        Starts of the rows among the observed cells, and the columns of these; or the
        cells in blocks that are not in memory.
    row_sides : tuple of Side, default=()
        Linear priors of the rows of the fit.
    row_scaling : FeatureScaling or None, default=None
        Scaling of the features of rows.
    identity : str or None, default=None
        Fingerprint of the cells of the fit, if its rows differ from new rows with the
        same cells, as they do with features, graphs or weights.
    alpha : float or None, default=None
        Confidence in counts, if cells are counts, see `skmc.cells.preferences`.
    """

    scaling: Scaling
    models: list[RowModel]
    seen: Any
    row_sides: tuple[Side, ...] = ()
    row_scaling: FeatureScaling | None = None
    identity: str | None = None
    alpha: float | None = None

    @abstractmethod
    def scaled_rows(
        self,
        rows: Tensor,  # (k,)
    ) -> Tensor:  # (k, n_cols)
        """Scaled values of rows of the fit."""

    @abstractmethod
    def scaled_at(
        self,
        rows: Tensor,  # (n_cells,)
        cols: Tensor,  # (n_cells,)
    ) -> Tensor:  # (n_cells,)
        """Scaled values of cells of the fit."""

    @abstractmethod
    def row_factors(self) -> list[Tensor]:  # (n_rows, rank)
        """Factors of the rows of the fit in each model, biases last."""

    def whole(self) -> np.ndarray:
        priors = self.statistics
        values = self._all_rows()
        values[priors.empty_rows] = priors.col_means
        values[:, priors.empty_cols] = priors.row_means[:, None]
        return values

    def _all_rows(self) -> np.ndarray:
        n_rows, n_cols = self.statistics.shape
        values: np.ndarray = self.models[0].F.new_empty(n_rows, n_cols).numpy()

        def fill(start: int) -> None:
            part = torch.arange(start, min(start + size, n_rows))
            values[part] = self.scaling.undo(self.scaled_rows(part))

        size = max(1, BLOCK // n_cols)
        list(in_threads(fill, range(0, n_rows, size)))
        return values

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        i, j = torch.from_numpy(rows), torch.from_numpy(cols)
        shift, scale = (
            s[0, j] if s.shape[1] > 1 else s[0]
            for s in (self.scaling.shift, self.scaling.scale)
        )
        values: np.ndarray = (self.scaled_at(i, j) * scale + shift).numpy()
        priors = self.statistics
        values = np.where(priors.empty_rows[rows], priors.col_means[cols], values)
        return np.where(priors.empty_cols[cols], priors.row_means[rows], values)

    def predict(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        if self.is_fit(cells):
            return self._all_rows()
        return self.predict_from(self.used(cells, ()))

    def without(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        sides = self.row_sides if self.is_fit(cells) else ()
        rest = np.where(hidden, cells.dtype.type(np.nan), cells)
        return self.statistics.fill(rest, self.predict_from(self.used(rest, sides)))

    def with_features(
        self,
        cells: np.ndarray,  # (k, n_cols)
        features: Container,  # (k, p)
    ) -> np.ndarray:  # (k, n_cols)
        """Complete rows with known features."""
        scaling = self.row_scaling
        if scaling is None:
            raise ValueError(
                "row_features is given, but fit had none; pass them to fit too."
            )
        n_features = len(scaling.shift)
        read = read_features(features, len(cells), "row_features", n_features)
        side = scaling.side(read).to(self.models[0].F)
        used = self.used(cells, (side,))
        return self.statistics.fill(cells, self.predict_from(used))

    def used(
        self,
        cells: np.ndarray,  # (k, n_cols)
        sides: tuple[Side, ...],
    ) -> SparseObserved:
        """Scaled cells of rows, from which the others are predicted."""
        priors = self.statistics
        # The fit cannot predict other values of a constant column.
        scaled = self.scaling.scale[0].numpy() > 0
        used = (cells == priors.constant) & scaled | priors.varies & ~np.isnan(cells)
        rows, cols = np.nonzero(used)
        values = torch.from_numpy(cells[rows, cols]).to(self.models[0].F.dtype)
        given = SparseObserved.of(rows, cols, values, cells.shape)
        given = replace(given.scaled(self.scaling), sides=(sides, ()))
        return given if self.alpha is None else preferences(given, self.alpha)

    def predict_from(self, used: SparseObserved) -> np.ndarray:  # (k, n_cols)
        """Predict whole rows from the result of `used`."""
        scaled, n_models = torch.zeros(used.shape, dtype=used.dtype), len(self.models)
        for model in self.models:
            W = solved(used, model) / n_models
            scaled += linear(W, model.F, model.offset / n_models)
        completed: np.ndarray = self.scaling.undo(scaled).numpy()
        return completed

    def terms(
        self, given: SparseObserved, row: int | None, j: int
    ) -> tuple[float, np.ndarray, float]:
        """What the cells of one row add to its prediction of a column."""
        base, prior = torch.zeros(()), torch.zeros(())
        added = torch.zeros_like(given.values)
        sides = () if row is None else self.row_sides
        for model in self.models:
            pairs = zip(sides, model.sides, strict=False)
            means = [side.mean(B, torch.tensor([row]))[0] for side, B in pairs]
            parts = given.cols, given.values, j, given.weights
            found = model.contributions(
                *parts, sum(means[1:], means[0]) if means else 0.0
            )
            base, added, prior = (
                a + b / len(self.models)
                for a, b in zip((base, added, prior), found, strict=True)
            )
        shift, scale = (
            float(part[0, j if part.shape[1] > 1 else 0])
            for part in (self.scaling.shift, self.scaling.scale)
        )
        cells = scale * added.double().numpy()
        return shift + scale * float(base), cells, scale * float(prior)

    @abstractmethod
    def cells_of(
        self,
        rows: Tensor,  # (k,)
    ) -> SparseObserved:
        """The scaled cells of some rows of the fit."""

    def is_fit(
        self,
        cells: np.ndarray,  # (k, n_cols)
    ) -> bool:
        """Whether ``cells`` is the fitted matrix, if this makes a difference."""
        if self.identity is None or cells.shape != self.statistics.shape:
            return False
        return fingerprint(Entries.of_matrix(cells)) == self.identity


@dataclass(eq=False)
class FittedFactors(RowModels):
    """Factors of rows and columns, and a model that completes any row from its cells.

    Parameters
    ----------
    statistics, scaling, models, seen, row_sides, row_scaling, identity, alpha : object
        Parameters as in `RowModels`.
    values : ndarray of shape (n_cells,) or None, default=None
        Unscaled cells of `seen`, if they are in memory and have no weights. Counts are
        multiplied by their weights.
    sums : tuple of Tensor or None, default=None
        Sums of a `RowStream` over these cells.
    left, right : ndarray of shape (n_rows, k), (n_cols, k)
        Factors whose product is the scaled completion.
    """

    left: np.ndarray = field(kw_only=True)
    right: np.ndarray = field(kw_only=True)
    values: np.ndarray | None = None
    sums: tuple[Tensor, Tensor, Tensor] | None = None

    def cells_of(self, rows: Tensor) -> SparseObserved:
        if isinstance(self.seen, StoredCells):
            where, stored = self.seen.of_rows(rows.numpy())
            cells, values = stored["col"], stored["value"]
        elif self.values is None:
            raise ValueError(
                "The weights of the fit are not kept, so its rows cannot be explained; "
                "fit without cell_weight, or pass the cells of a row as a dict."
            )
        else:
            starts, every = self.seen
            spans = [slice(*starts[row : row + 2]) for row in rows.tolist()]
            where = np.repeat(
                np.arange(len(rows)), [len(every[span]) for span in spans]
            )
            cells = np.concatenate([every[span] for span in spans])
            values = np.concatenate([self.values[span] for span in spans])
        matrix = np.full((len(rows), self.statistics.shape[1]), np.nan, values.dtype)
        matrix[where, cells] = values
        return self.used(matrix, ())

    def factors(self) -> LowRank:
        """The factors as tensors."""
        return LowRank(torch.from_numpy(self.left), torch.from_numpy(self.right))

    def row_factors(self) -> list[Tensor]:
        return [torch.from_numpy(self.left[:, :-1])]

    def scaled_rows(self, rows: Tensor) -> Tensor:
        factors = self.factors()
        return matmul(factors.left[rows], factors.right.mT)

    def scaled_at(self, rows: Tensor, cols: Tensor) -> Tensor:
        return self.factors().at(rows, cols)

    @classmethod
    def of(cls, given: Given, result: Result) -> FittedFactors:
        """Make the fitted factors from the row models of a solver."""
        parts = common_parts(given, result)
        data, models = given.data.to("cpu"), parts["models"]
        used = without_constants(data, parts["scaling"])
        rows = joined_rows([solved(used, model) for model in models])
        values = None
        if given.read is not None and not given.statistics.weighted:
            cells = given.entries
            place = cells.rows * data.shape[1] + cells.cols
            values = cells.values[np.argsort(place, kind="stable")]
        return cls(
            **parts,
            left=rows.numpy(),
            right=joined_cols(models).numpy(),
            values=values,
        )


def without_constants(data: Any, scaling: Scaling) -> Any:
    """Leave out sparse cells of columns without a scale.

    They say nothing of their rows, and would only shrink the biases of these.
    """
    if not isinstance(data, SparseObserved) or scaling.scale.shape[-1] == 1:
        return data
    varies = (scaling.scale[0] > 0).to(data.device)[data.cols]
    return data.only(varies) if varies.any() and not varies.all() else data


def common_parts(given: Given, result: Result) -> dict[str, Any]:
    """Make the parts of `RowModels` from the result of a solver."""
    data = given.data.to("cpu")
    models: Sequence[RowModel]
    if isinstance(result, RowModelResult):
        models = result.models
    else:  # interrupted before the first iterate
        models = [RowModel.empty(data.shape[1], torch.zeros(0, dtype=data.dtype))]
    identity = None
    if given.statistics.weighted or any(data.sides):
        identity = fingerprint(given.entries)
    return {
        "statistics": given.statistics,
        "scaling": given.scaling.to("cpu"),
        "models": [model.to("cpu") for model in models],
        "seen": data.positions(),
        "row_sides": tuple(data.sides[0]),
        "row_scaling": given.row_scaling,
        "identity": identity,
    }


def joined_rows(
    factors: Sequence[Tensor],  # (m, rank)
) -> Tensor:  # (m, n_models rank + 1)
    """Factors of the rows in all models, and a column of ones."""
    return torch.cat([*factors, factors[0].new_ones(len(factors[0]), 1)], 1)


def joined_cols(models: Sequence[RowModel]) -> Tensor:  # (n, n_models rank + 1)
    """Factors of the columns, for the product with `joined_rows`: the mean model."""
    offset = torch.stack([model.offset for model in models]).mean(0)
    return torch.cat([*(m.F / len(models) for m in models), offset[:, None]], 1)
