"""A weighted sum of members that complete series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skmc.completers.auto._cross_fit import MIN_WEIGHT
from skmc.completers.auto._spread import Spread
from skmc.completers.auto._stacking import Stacking, rms
from skmc.completers.series._members import Interpolation, SeasonalMean, Windowed
from skmc.completers.series._windows import Span, Windows, widest
from skmc.loop import FitTasks
from skmc.patterns import gap_lengths, moved_gaps

HELD_OUT = 0.1  # share of the observed cells
MIN_HIDDEN, MAX_ROUNDS = 2000, 4  # fewer hidden cells are drawn several times
N_COLUMNS = 300  # largest number of columns of windows with offsets


@dataclass(frozen=True)
class GapWeights:
    """Weights of members by the length of gaps, and their errors.

    Parameters
    ----------
    weights : ndarray of shape (n_classes, n_members)
        Weights for each class of lengths: 1, 2 to 3, 4 to 7, ...
    scale : ndarray of shape (n_classes,)
        Error of the best member for each class, or for the nearest one with cells.
    spread : Spread
        Errors of the series, in units of ``scale``.
    error : float
        Root mean squared error on the held-out cells.
    """

    weights: np.ndarray
    scale: np.ndarray
    spread: Spread
    error: float

    @classmethod
    def of(
        cls,
        residuals: np.ndarray,
        usable: np.ndarray,
        classes: np.ndarray,
        periods: np.ndarray,
        series: np.ndarray,
        shape: tuple[int, int],
    ) -> GapWeights:
        """Fit the weights of usable members to residuals, (n_cells, n_members).

        Periods and series of the cells form the groups of `Stacking` and `Spread`.
        ``shape`` has the numbers of classes and of series.
        """
        tried, scale = residuals[:, usable], np.ones(shape[0])
        seen = np.unique(classes)
        for k in range(shape[0]) if len(seen) else ():
            near = classes == seen[np.abs(seen - k).argmin()]
            scale[k] = np.sqrt(np.square(tried[near]).mean(0).min()) or 1.0
        units = scale[classes]
        stack = Stacking.of(tried / units[:, None], periods, classes, shape[0])
        weights = np.zeros((shape[0], len(usable)))
        weights[:, usable] = stack.columns
        spread = Spread.of(stack.residuals, stack.variances, periods, series, shape[1])
        return cls(weights, scale, spread, rms(stack.residuals * units))

    def without(self, dropped: np.ndarray) -> GapWeights:
        """Remove members, and increase the weights of the others."""
        weights = np.delete(self.weights, dropped, 1)
        return replace(self, weights=weights / weights.sum(1, keepdims=True))


@dataclass(frozen=True)
class SeriesStack:
    """Fitted members and their weights.

    Parameters
    ----------
    members : list
        Members, in `skmc.completers.series._members`.
    own, later : GapWeights
        Weights for the times of the fit, and for other times.
    mean : SeasonalMean
        Predictions where a member has none.
    causal : bool
        Whether the class of a gap is that of the time since its start.
    """

    members: list[Any]
    own: GapWeights
    later: GapWeights
    mean: SeasonalMean
    causal: bool

    @classmethod
    def fit(
        cls,
        cells: np.ndarray,
        start: int,
        present: np.ndarray,
        members: Sequence[Any],
        mean: SeasonalMean,
        causal: bool,
        tasks: FitTasks,
        rng: np.random.RandomState,
    ) -> SeriesStack:
        """Weight the members by held-out cells, and fit those with a weight to all.

        ``present`` are the times that have a row in the data.
        """
        missing = np.isnan(cells)
        step = mean.period if len(cells) >= 3 * mean.period else 1
        lost = missing & present[:, None]
        n_hidden = round(HELD_OUT * (~missing).sum())
        shape = len(cells).bit_length(), cells.shape[1]
        parts = []
        n_rounds = np.clip(np.ceil(MIN_HIDDEN / max(1, n_hidden)), 1, MAX_ROUNDS)
        for _ in range(int(n_rounds)):
            hidden = moved_gaps(lost, ~missing, n_hidden, rng, step=step)
            rest = np.where(hidden, np.nan, cells)
            mean.fit(rest, start)
            residuals = np.empty((hidden.sum(), len(members)))
            for k, member in enumerate(members):
                found = member.fit(rest, start).predict(rest, start)
                found = np.where(np.isnan(found), mean.predict(rest, start), found)
                residuals[:, k] = (cells - found)[hidden]
                tasks.done(member.name)
            time, series = np.nonzero(hidden)
            classes = _classes(np.isnan(rest), causal, shape[0])[hidden]
            parts.append((residuals, classes, time // step, series))
        residuals, classes, periods, series = map(
            np.concatenate, zip(*parts, strict=True)
        )
        groups = classes, periods, series, shape
        transfers = np.array([member.transfers for member in members])
        own = GapWeights.of(residuals, np.ones(len(members), bool), *groups)
        later = GapWeights.of(residuals, transfers, *groups)
        largest = np.maximum(own.weights, later.weights).max(0)
        dropped = np.flatnonzero(largest < min(MIN_WEIGHT, largest.max()))
        kept = [member for k, member in enumerate(members) if k not in dropped]
        for k, member in enumerate(members):
            # Members for other times alone keep the fit to fewer cells.
            if own.weights[:, k].max() >= MIN_WEIGHT:
                member.fit(cells, start)
                tasks.done(member.name)
        mean.fit(cells, start)
        return cls(kept, own.without(dropped), later.without(dropped), mean, causal)

    def predict(
        self, cells: np.ndarray, start: int, found: GapWeights
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and standard deviations of the missing cells, by some weights."""
        classes = _classes(np.isnan(cells), self.causal, len(found.scale))
        otherwise = self.mean.predict(cells, start)
        values, squares = np.zeros(cells.shape), np.zeros(cells.shape)
        for member, weights in zip(self.members, found.weights.T, strict=True):
            if not weights.any():
                continue
            own = member.predict(cells, start)
            own = np.where(np.isnan(own), otherwise, own) - otherwise
            values += weights[classes] * own
            squares += weights[classes] * np.square(own)
        scale = found.scale[classes]
        variances = np.maximum(squares - np.square(values), 0) / np.square(scale)
        return otherwise + values, scale * found.spread.deviations(variances)


def _classes(missing: np.ndarray, causal: bool, n_classes: int) -> np.ndarray:
    """Logarithms of the lengths of gaps, rounded down; 0 at observed cells."""
    lengths = np.maximum(gap_lengths(missing, so_far=causal), 1)
    return np.log2(lengths).astype(int).clip(max=n_classes - 1)


def members_for(
    completer: Any, periods: Sequence[int], span: Span, causal: bool, seed: int
) -> list[Any]:
    """Make the members for the periods of some series.

    Without ``causal``, there are windows of all kinds, with and without offsets.
    """
    found: list[Any] = [Interpolation(causal), *(SeasonalMean(p) for p in periods)]
    plain, around = Windows("times"), [(-1, 1), (-2, 2)]
    offsets: list[tuple[int, ...]]
    if causal:
        offsets = [(-1,), *((-p,) for p in periods), (-2,)]
    else:
        whole = [(-p, p) for p in periods]
        offsets = [*whole[:1], around[0], *whole[1:], around[1]]
    arranged = [plain, widest(plain, offsets, span, N_COLUMNS)]
    for p in () if causal else periods:
        for plain, unit in ((Windows("periods", p), p), (Windows("slots", p), 1)):
            if plain.n_rows(span) >= plain.n_own(span):
                offsets = [(a * unit, b * unit) for a, b in around]
                arranged += [plain, widest(plain, offsets, span, N_COLUMNS)]
    for windows in dict.fromkeys(arranged):
        # A single column says nothing about its missing cells.
        if windows.offsets or windows.n_own(span) > 1:
            found.append(Windowed(windows, completer, seed))
    return found
