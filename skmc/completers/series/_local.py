"""Weights of a fitted stack and of interpolation, from the cells of a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from skmc.cells import Observed, Scaling
from skmc.completers.series._members import Interpolation
from skmc.completers.series._stack import HELD_OUT, certainty
from skmc.patterns import moved_gaps
from skmc.stacking import Stacking

MIN_HIDDEN, MAX_ROUNDS = 200, 4  # fewer hidden cells are drawn several times
N_BLOCKS = 20  # of times, whose errors are taken for independent
PRIOR = 10  # number of cells that the deviations of the fit count as
TINY = np.finfo(float).tiny

# Values and deviations of the stack for some cells, in some units.
Stack = Callable[[np.ndarray, Scaling], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class LocalWeights:
    """How far the series of a call are like those of the fit.

    Gaps of observed cells are held out, and completed by the stack in the units of the
    fit, by the stack in those of the call, and by interpolation. The weights of each
    series minimize the squared error, and are shrunk to the stack in the units of the
    fit, by the more, the less certain it is that the others are better.

    Parameters
    ----------
    stack : callable
        Values and deviations of the stack for some cells, in some units.
    scaling : Scaling
        Units of the fit.
    how : {"columns"} or None
        Cells that share a unit.
    causal : bool
        Whether the last cell is repeated instead of an interpolation.
    weights : ndarray of shape (n_series, 3)
        Weights of the three completions, of sum one.
    deviations : ndarray of shape (n_series,)
        Standard deviations of interpolation.
    growth : ndarray of shape (n_series,)
        Ratio of the errors to the deviations, at least 1.
    """

    stack: Stack
    scaling: Scaling
    how: str | None
    causal: bool
    weights: np.ndarray
    deviations: np.ndarray
    growth: np.ndarray

    @classmethod
    def of(
        cls,
        cells: np.ndarray,
        stack: Stack,
        scaling: Scaling,
        how: str | None,
        causal: bool,
    ) -> LocalWeights:
        """Compare the completions of held-out cells, (n_times, n_series)."""
        seen, n_series = ~np.isnan(cells), cells.shape[1]
        weights, none = np.repeat([[1.0, 0.0, 0.0]], n_series, 0), np.zeros(n_series)
        found = cls(stack, scaling, how, causal, weights, none, none + 1)
        if seen.all():
            return found
        n_hidden = int(np.ceil(HELD_OUT * seen.sum()))
        n_rounds = np.clip(np.ceil(MIN_HIDDEN / max(1, n_hidden)), 1, MAX_ROUNDS)
        rng, parts = np.random.RandomState(0), []
        for _ in range(int(n_rounds)):
            hidden = moved_gaps(~seen, seen, n_hidden, rng)
            rest = np.where(hidden, np.nan, cells)
            hidden &= ~np.isnan(rest).all(0)
            values, std = found._completions(rest, rest)
            time, series = np.nonzero(hidden)
            residuals = (cells[..., None] - values)[hidden]
            parts.append(
                (residuals, std[hidden], time * N_BLOCKS // len(cells), series)
            )
        residuals, std, blocks, series = map(np.concatenate, zip(*parts, strict=True))
        return found._fitted(residuals, std, blocks, series)

    def _fitted(
        self,
        residuals: np.ndarray,
        std: np.ndarray,
        blocks: np.ndarray,
        series: np.ndarray,
    ) -> LocalWeights:
        n_series = len(self.weights)
        count = np.bincount(series, minlength=n_series)

        def mean(squares: np.ndarray, prior: float = 0.0) -> np.ndarray:
            total = np.bincount(series, squares, n_series) + prior
            return total / np.maximum(count + prior, 1)

        size = np.sqrt([mean(np.square(r)) for r in residuals.T])
        unit = np.where(size.min(0) > 0, size.min(0), 1.0)[series]
        relative = residuals / unit[:, None]
        stacking = Stacking.of(relative, blocks, series, n_series)
        weights, error = self.weights.copy(), residuals[:, 0].copy()
        for s in np.flatnonzero(count):
            own = series == s
            block = np.unique(blocks[own], return_inverse=True)[1]
            if block.any():
                part = certainty(stacking.residuals[own], relative[own, 0], block)
                weights[s] += part * (stacking.columns[s] - weights[s])
                crossed = stacking.residuals[own] * unit[own]
                error[own] += part * (crossed - error[own])
        deviations = np.append(std, size[2][series, None], 1)
        expected = np.square((weights[series] * deviations).sum(1)).clip(min=TINY)
        squares = mean(np.square(error) / expected, PRIOR)
        growth = np.sqrt(np.maximum(squares, 1))
        return replace(self, weights=weights, deviations=size[2], growth=growth)

    def predict(
        self, cells: np.ndarray, known: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and deviations of the missing cells, in the units of known ones."""
        values, std = self._completions(cells, known)
        own = np.broadcast_to(self.deviations[:, None], (*cells.shape, 1))
        deviations = (self.weights * np.append(std, own, 2)).sum(2)
        return (self.weights * values).sum(2), self.growth * deviations

    def _completions(
        self, cells: np.ndarray, known: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values of the three completions, and deviations of the first two."""
        first = self.stack(cells, self.scaling)
        second = self.stack(cells, self._units(known))
        between = Interpolation(self.causal).predict(cells, 0)
        between = np.where(np.isnan(between), first[0], between)
        values = np.stack([first[0], second[0], between], 2)
        return values, np.stack([first[1], second[1]], 2)

    def _units(self, cells: np.ndarray) -> Scaling:
        """Units of the cells, where they vary, and otherwise those of the fit."""
        if self.how is None:
            return self.scaling
        own = scaling_of(cells, self.how)
        varies = torch.from_numpy((~np.isnan(cells)).sum(0) > 1) & (own.scale > 0)
        pairs = (own.shift, self.scaling.shift), (own.scale, self.scaling.scale)
        return Scaling(*(torch.where(varies, *pair) for pair in pairs))


def scaling_of(cells: np.ndarray, how: str | None) -> Scaling:
    """Mean and standard deviation of the observed cells of each series."""
    values = torch.from_numpy(cells)
    return Scaling.of(Observed(values, ~values.isnan()), how)
