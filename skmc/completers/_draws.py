"""Completions that are means over draws from a posterior distribution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.base import RowModels, joined_cols, joined_rows
from skmc.cells import SparseObserved
from skmc.linalg import linear
from skmc.solvers import solved


@dataclass(eq=False)
class FittedDraws(RowModels):
    """Draws of the columns' factors; the rows' factors follow from the cells.

    Parameters
    ----------
    values : Tensor of shape (n_cells,) or None, default=None
        Scaled cells of the fit, if they are in memory.
    weights : Tensor of shape (n_cells,) or None, default=None
        Weight of each of them.
    """

    values: Tensor | None = None
    weights: Tensor | None = None

    @property
    def left(self) -> np.ndarray:
        """Expectations of the rows' factors in each draw."""
        return joined_rows(self.row_factors()).numpy()

    @property
    def right(self) -> np.ndarray:
        """The columns' factors in each draw."""
        return joined_cols(self.models).numpy()

    def row_factors(self) -> list[Tensor]:
        return list(self._factors_of(torch.arange(self.statistics.shape[0])))

    def _cells_of(self, rows: Tensor) -> SparseObserved:
        """The scaled cells of some rows of the fit."""
        rows = rows % self.statistics.shape[0]
        shape = len(rows), self.statistics.shape[1]
        if self.values is None:
            where, found = self.seen.of_rows(rows.numpy())
            cells = where, found["col"], found["value"], shape, found.get("weight")
            return SparseObserved.of(*cells).scaled(self.scaling)
        starts, cols = (torch.from_numpy(part).long() for part in self.seen)
        count = starts[rows + 1] - starts[rows]
        first = starts[rows] - (count.cumsum(0) - count)
        at = torch.arange(int(count.sum())) + first.repeat_interleave(count)
        weights = None if self.weights is None else self.weights[at]
        which = torch.arange(len(rows)).repeat_interleave(count)
        return SparseObserved(which, cols[at], self.values[at], shape, weights)

    def _factors_of(self, rows: Tensor) -> Iterator[Tensor]:
        """Factors of some rows in each draw, from the cells and sides of the fit."""
        given, rows = self._cells_of(rows), rows % self.statistics.shape[0]
        cells = given.starts, given.cols, given.values
        for model in self.models:
            # A fit without features or graphs has no sides.
            pairs = zip(self.row_sides, model.sides, strict=False)
            known = sum(side.mean(B, rows) for side, B in pairs)
            yield model.solve(*cells, known=known, weights=given.weights)

    def scaled_rows(self, rows: Tensor) -> Tensor:
        n_draws = len(self.models)
        whole = self.models[0].F.new_zeros(len(rows), self.statistics.shape[1])
        for model, W in zip(self.models, self._factors_of(rows), strict=True):
            whole += linear(W / n_draws, model.F, model.offset / n_draws)
        return whole

    def scaled_at(self, rows: Tensor, cols: Tensor) -> Tensor:
        asked, place = rows.unique(return_inverse=True)
        found = self.models[0].F.new_zeros(len(rows))
        for model, W in zip(self.models, self._factors_of(asked), strict=True):
            found += torch.linalg.vecdot(W[place], model.F[cols]) + model.offset[cols]
        return found / len(self.models)

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw rows given their cells, each time from one draw of the model."""
        given, drawn = self._given(cells), []
        order = [rng.permutation(len(self.models)) for _ in range(n_samples)]
        for k in np.concatenate(order)[:n_samples]:
            whole = _drawn(self.models[k], given, rng)
            drawn.append(self.scaling.undo(whole).numpy())
        return np.stack(drawn)

    def _given(self, cells: np.ndarray) -> SparseObserved:
        """The scaled cells of rows; those of the fit have their features and graphs."""
        if self._is_fit(cells):
            return self.used(cells, self.row_sides)
        return self.used(cells, ())

    def std(self, cells: np.ndarray) -> np.ndarray:
        """Standard deviation of each cell of rows, given the cells of the row."""
        given = self._given(cells)

        def of_draw(model: Any) -> tuple[Tensor, Tensor]:
            whole = solved(given, model) @ model.F.mT + model.offset
            own = model.variance(given.starts, given.cols)
            noise, at = torch.ones_like(own[:1]), (given.rows, given.cols)
            if model.relative is not None:
                in_row = _noise_of_rows(model, given, whole[at], own[at])
                noise = in_row[:, None] / model.relative
            return whole, model.noise * (noise + own)

        std = _deviation(of_draw(model) for model in self.models)
        found = (std * self.scaling.scale).numpy()
        found[:, self.statistics.empty_cols] = np.nan
        return found

    def std_at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Standard deviation of cells of the fit, given the cells of the row."""
        asked, place = torch.from_numpy(rows).unique(return_inverse=True)
        j, given = torch.from_numpy(cols), self._cells_of(asked)

        def of_draw(model: Any, W: Tensor) -> tuple[Tensor, Tensor]:
            def predicted(i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
                values = torch.linalg.vecdot(W[i], model.F[j]) + model.offset[j]
                parts = given.starts, given.cols, (i, j), given.weights
                return values, model.variance_at(*parts)

            values, own = predicted(place, j)
            noise = torch.ones_like(own)
            if model.relative is not None:
                of_given = predicted(given.rows, given.cols)
                in_row = _noise_of_rows(model, given, *of_given)
                noise = in_row[place] / model.relative[j]
            return values, model.noise * (noise + own)

        pairs = zip(self.models, self._factors_of(asked), strict=True)
        std = _deviation(of_draw(model, W) for model, W in pairs)
        scale = self.scaling.scale
        found = (std * (scale[0, j] if scale.shape[1] > 1 else scale[0])).numpy()
        found[self.statistics.empty_cols[cols]] = np.nan
        return found


def _drawn(model: Any, given: SparseObserved, rng: np.random.RandomState) -> Tensor:
    """Draw all cells of rows: factors given the row's cells, then the noise."""

    def noise(n: int) -> Tensor:
        normal = torch.from_numpy(rng.standard_normal((given.shape[0], n)))
        return normal.to(model.F) * model.noise.sqrt()

    W = solved(given, model, noise(model.F.shape[1]))
    whole = W @ model.F.mT + model.offset
    added = noise(whole.shape[1])
    if model.relative is not None:
        predicted = whole[given.rows, given.cols]
        in_row = _noise_of_rows(model, given, predicted, torch.zeros_like(predicted))
        shape = (model.freedom + given.counts).double() / 2
        gamma = torch.from_numpy(rng.standard_gamma(shape.numpy())) / shape
        added = added * (in_row / gamma.to(in_row))[:, None].sqrt()
        added = added / model.relative.sqrt()
    return whole + added


def _noise_of_rows(
    model: Any, given: SparseObserved, predicted: Tensor, own: Tensor
) -> Tensor:
    """Relative variance of the noise of rows, from the residuals of their cells."""
    squares = (given.values - predicted).square() / model.noise + own
    sums = given.row_sums(squares * model.relative[given.cols])
    return (model.freedom + sums) / (model.freedom + given.counts)


def _deviation(draws: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    """Standard deviation of a mixture, from mean and variance of each component."""
    variance = mean = square = torch.zeros(())
    done = 1
    for done, (expected, own) in enumerate(draws, start=1):
        variance = variance + own
        # Welford's update: the expectations differ little.
        off = expected - mean
        mean = mean + off / done
        square = square + off * off * (done - 1) / done
    return ((variance + square) / done).sqrt()
