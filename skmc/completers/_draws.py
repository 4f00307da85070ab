"""Answers that are means over draws from a posterior distribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.base import RowModels, joined_cols, joined_rows
from skmc.solvers import solved


@dataclass(eq=False)
class FittedDraws(RowModels):
    """Draws of the columns' factors; the rows' factors follow from the cells.

    Parameters
    ----------
    values : Tensor of shape (n_cells,)
        The scaled cells of the fit.
    weights : Tensor of shape (n_cells,) or None
        How often each of them counts.
    """

    values: Tensor = field(kw_only=True)
    weights: Tensor | None = field(kw_only=True)

    @property
    def left(self) -> np.ndarray:
        """Expectations of the rows' factors in all draws."""
        rows = torch.arange(self.statistics.shape[0])
        found: np.ndarray = joined_rows(list(self._factors_of(rows))).numpy()
        return found

    @property
    def right(self) -> np.ndarray:
        """The columns' factors in all draws."""
        found: np.ndarray = joined_cols(self.models).numpy()
        return found

    def _factors_of(self, rows: Tensor) -> Iterator[Tensor]:
        """Factors of some rows in each draw, from the cells and sides of the fit."""
        starts, cols = (torch.from_numpy(part).long() for part in self.seen)
        rows = rows % self.statistics.shape[0]
        count = starts[rows + 1] - starts[rows]
        own = torch.cat([count.new_zeros(1), count.cumsum(0)])
        at = torch.arange(int(own[-1])) + (starts[rows] - own[:-1]).repeat_interleave(
            count
        )
        cells = own, cols[at], self.values[at]
        weights = None if self.weights is None else self.weights[at]
        for model in self.models:
            # A fit without features or graphs has no sides.
            pairs = zip(self.row_sides, model.sides, strict=False)
            known = sum(side.mean(B, rows) for side, B in pairs)
            yield model.solve(*cells, known=known, weights=weights)

    def scaled_rows(self, rows: Tensor) -> Tensor:
        n_draws = len(self.models)
        whole = self.models[0].F.new_zeros(len(rows), self.statistics.shape[1])
        for model, W in zip(self.models, self._factors_of(rows), strict=True):
            whole += (W @ model.F.mT + model.offset) / n_draws
        return whole

    def scaled_at(self, rows: Tensor, cols: Tensor) -> Tensor:
        asked, place = rows.unique(return_inverse=True)
        found = self.models[0].F.new_zeros(len(rows))
        for model, W in zip(self.models, self._factors_of(asked), strict=True):
            found += torch.linalg.vecdot(W[place], model.F[cols]) + model.offset[cols]
        return found / len(self.models)

    def std(self, cells: np.ndarray) -> np.ndarray:
        """Standard deviation of each cell of rows, given the cells of its row."""
        given, n_draws = self.used(cells, ()), len(self.models)
        if self._is_fit(cells):
            given = self.used(cells, self.row_sides)
        variance = torch.zeros(cells.shape, dtype=given.dtype)
        mean, square = torch.zeros_like(variance), torch.zeros_like(variance)
        at = given.rows, given.cols
        models: list[Any] = self.models  # each has noise
        for done, model in enumerate(models, start=1):
            whole = solved(given, model) @ model.F.mT + model.offset
            own = model.variance(given.starts, given.cols)
            noise = torch.ones_like(variance[:1])
            if model.relative is not None and model.freedom is not None:
                squares = (given.values - whole[at]).square() / model.noise + own[at]
                sums = given.row_sums(squares * model.relative[given.cols])
                in_row = (model.freedom + sums) / (model.freedom + given.counts)
                noise = in_row[:, None] / model.relative
            variance += model.noise * (noise + own) / n_draws
            # Welford's update: the expectations differ little.
            off = whole - mean
            mean += off / done
            square += off * off * (done - 1) / done
        variance += square / n_draws
        std: np.ndarray = (variance.sqrt() * self.scaling.scale).numpy()
        std[:, self.statistics.empty_cols] = np.nan
        return std
