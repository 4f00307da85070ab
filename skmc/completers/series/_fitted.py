"""What a fit to series has learned."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from skmc.cells import Observed, Scaling
from skmc.completers._units import standardized, undone
from skmc.completers.gaussian import GaussianCompleter
from skmc.completers.series._grid import TimeGrid
from skmc.completers.series._members import SeasonalMean
from skmc.completers.series._periods import find_periods
from skmc.completers.series._stack import SeriesStack, members_for
from skmc.completers.series._table import Series, TimeTable
from skmc.completers.series._windows import Span
from skmc.linalg import seed_of, threads_for
from skmc.loop import FitTasks
from skmc.stacking import Spread

if TYPE_CHECKING:
    from skmc.completers.series.completer import SeriesCompleter


@dataclass(frozen=True, eq=False)
class FittedSeries:
    """A stack, and where the series of the fit were.

    Parameters
    ----------
    series : list of (unit, int)
        Series of the fit: unit, and column of the table.
    grid : TimeGrid
        Positions of times.
    span : Span
        Positions of the fit.
    scaling : Scaling
        Standardization of the series.
    periods : list of int
        Periods.
    stack : SeriesStack
        Members and weights.
    """

    series: list[Series]
    grid: TimeGrid
    span: Span
    scaling: Scaling
    periods: list[int]
    stack: SeriesStack

    @classmethod
    @threads_for(0)  # the members choose their own
    def fit(
        cls, params: SeriesCompleter, table: TimeTable, tasks: FitTasks
    ) -> FittedSeries:
        """Fit the members that the parameters ask for to the series of a table."""
        rng = np.random.RandomState(seed_of(params.random_state) % 2**32)
        grid = table.grid()
        at = table.positions(grid)
        span = Span(int(at.min()), int(np.ptp(at)) + 1, len(table.series))
        cells = _placed(table.cells, at, span)
        scaling = _scaling_of(cells, params.scaling)
        scaled = standardized(cells, scaling)
        periods = _periods_of(scaled, params.period, grid)
        completer: Any = params.completer
        if completer is None:
            completer = GaussianCompleter(tol=1e-3, random_state=0)
        members = members_for(
            completer, periods, span, params.causal, rng.randint(2**31)
        )
        mean = SeasonalMean(periods[0] if periods else 1)
        present = _placed(table.present, at, span) == 1
        with warnings.catch_warnings():
            if params.completer is None:  # weights suit any state of its models
                warnings.simplefilter("ignore", ConvergenceWarning)
            stack = SeriesStack.fit(
                scaled, span.start, present, members, mean, params.causal, tasks, rng
            )
        return cls(table.series, grid, span, scaling, periods, stack)

    @property
    def error(self) -> float:
        """Error on the held-out cells."""
        return self.stack.error

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """Weights of the members for each class of gaps."""
        columns = self.stack.own.weights.T
        pairs = zip(self.stack.members, columns, strict=True)
        return {member.name: own for member, own in pairs}

    @threads_for(0)
    def predict(self, table: TimeTable) -> tuple[np.ndarray, np.ndarray, Spread]:
        """Values and deviations of the missing cells of a table, and their errors."""
        at, span = table.positions(self.grid), self.span
        if table.ticks is None:
            at = at + (span.start if len(at) == span.n_times else span.stop)
        later = at.min() < span.start or at.max() >= span.stop
        if later:
            span = Span(int(at.min()), int(np.ptp(at)) + 1, span.n_series)
        scaled = standardized(_placed(table.cells, at, span), self.scaling)
        weights = self.stack.later if later else self.stack.own
        values, std = self.stack.predict(scaled, span.start, weights)
        values = undone(values, self.scaling)
        std = std * self.scaling.scale.numpy()
        at = at - span.start
        return values[at], std[at], weights.spread


def _placed(cells: np.ndarray, at: np.ndarray, span: Span) -> np.ndarray:
    found = np.full((span.n_times, span.n_series), np.nan)
    found[at - span.start] = cells
    return found


def _periods_of(cells: np.ndarray, asked: Any, grid: TimeGrid) -> list[int]:
    if isinstance(asked, str):
        return find_periods(cells, grid.calendar)
    found = [] if asked is None else np.atleast_1d(asked).tolist()
    for period in found:
        if not (isinstance(period, int) and 2 <= period <= len(cells) // 2):
            raise ValueError(
                f"period={asked!r} must have whole numbers of times between 2 and half "
                f"of the series, {len(cells) // 2}; got {period!r}."
            )
    return sorted(set(found))


def _scaling_of(cells: np.ndarray, how: str | None) -> Scaling:
    data = Observed(torch.from_numpy(cells), torch.from_numpy(~np.isnan(cells)))
    found = Scaling.of(data, "columns" if how == "auto" else how)
    # A constant series may have other values later.
    return Scaling(found.shift, torch.where(found.scale > 0, found.scale, 1.0))
