"""Predictions of held-out cells by candidates that are fitted to the others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from skmc.base import FitTasks
from skmc.cells import Entries
from skmc.completers.auto._candidates import Candidate
from skmc.completers.auto._stacking import PRIOR_CELLS, Stacking, rms
from skmc.completers.costs import Size
from skmc.model_selection import predict_cells

WORTHWHILE = 0.01  # smallest relative gain for which further parts are fitted
MIN_WEIGHT = 0.02  # smallest weight of a member of the stack
CELLS_TO_DROP = 10  # for each candidate, before any is dropped


@dataclass
class Trial:
    """A candidate and its predictions."""

    candidate: Candidate
    cost: float  # estimated seconds of a fit
    growth: float  # ratio of full to sample fit time
    status: str = "tried"
    seconds: float = 0.0  # total of all fits
    n_warnings: int = 0
    fitted: Any = None  # fitted to all cells except the last part
    residuals: list[np.ndarray] = field(default_factory=list)  # of each part

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def seconds_per_fit(self) -> float:
        return self.seconds / max(1, len(self.residuals))

    def run(self, train: Entries, test: Entries, known: Mapping[str, Any]) -> None:
        """Fit to the other cells and predict a part; a failure becomes the status."""
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fitted = clone(self.candidate.estimator)
                given = self.candidate.arguments(known)
                found = predict_cells(fitted, train, test, **given)
                if not np.isfinite(found).all():
                    raise ValueError("predictions are not finite")
            except Exception as failure:  # any failure of a method is a result
                self.status, self.residuals = f"failed: {failure!r}", []
            else:
                self.fitted = fitted
                self.residuals.append(np.asarray(test.values - found, float))
        self.seconds += time.perf_counter() - start
        self.n_warnings += len(caught)

    def first(self, n_parts: int) -> np.ndarray:
        """Residuals of the first parts."""
        return np.concatenate([*self.residuals[:n_parts], []])


class CrossFit:
    """Successive fits of candidates to parts, with fewer candidates in each round.

    In the first round, each candidate that fits the time left predicts one part, in
    order of cost. Then candidates without weight in all stacks of `Stacking` are
    dropped, if there are at least ten cells for each candidate. The others
    predict as many parts again, or as many as the time left allows, and so on. This
    ends when the error of the stack on cells that its weights have not seen is within a
    hundredth of that on its own cells: more parts would hardly improve the weights.

    Parameters
    ----------
    cells : Entries
        Observed cells of a matrix.
    labels : int ndarray of shape (n_cells,)
        Part of each cell, -1 for cells in no part.
    full_size : Size
        Size of the matrix to be completed finally, which may have more rows.
    max_time : float or None
        Time limit in seconds from now.
    known : mapping of str to array
        Features and graphs of the rows and columns of the matrix.
    """

    def __init__(
        self,
        cells: Entries,
        labels: np.ndarray,
        full_size: Size,
        max_time: float | None,
        known: Mapping[str, Any],
    ) -> None:
        self.known = known
        self.cells, self.labels, self.full_size = cells, labels, full_size
        self.size = Size(*cells.matrix_shape, len(cells))
        self.end = time.perf_counter() + (np.inf if max_time is None else max_time)
        self.trials: list[Trial] = []
        self.members: list[Trial] = []
        self.n_parts = 0  # parts that all members have predicted
        self.interrupted = False

    @property
    def seconds_left(self) -> float:
        return self.end - time.perf_counter()

    @property
    def judged(self) -> list[Trial]:
        """Trials that have predicted a part."""
        return [t for t in self.trials if t.residuals]

    def run(
        self, candidates: Sequence[Candidate], named: bool, tasks: FitTasks
    ) -> None:
        """Fit candidates; those that the user names are tried at any cost."""
        waiting = [
            Trial(c, c.cost(self.size), c.cost(self.full_size) / c.cost(self.size))
            for c in candidates
        ]
        waiting.sort(key=lambda t: t.cost)
        most = int(self.labels.max()) + 1
        try:
            with tasks.part("candidates", len(waiting)) as first:
                for trial in waiting:
                    if reason := self._against(trial, named):
                        trial.status = f"not tried: {reason}"
                    else:
                        self._predict([trial], range(1))
                    self.trials.append(trial)
                    if first.done(trial.name):
                        break
            self.members, self.n_parts = self.judged, 1
            with tasks.part("further parts", max(1, most - 1)) as further:
                while self.members and self._excess() > WORTHWHILE:
                    n_parts = min(
                        2 * self.n_parts, self.n_parts + self._affordable(), most
                    )
                    if n_parts == self.n_parts:
                        break
                    self._predict(self.members, range(self.n_parts, n_parts))
                    self.members = [t for t in self.members if t.residuals]
                    self.n_parts = n_parts
                    if further.done("parts"):
                        break
        except KeyboardInterrupt:
            self.interrupted = True
            self.members = [t for t in self.members or self.judged if t.residuals]
            self.n_parts = max(1, self.n_parts)

    def _predict(self, trials: Sequence[Trial], parts: Sequence[int]) -> None:
        for trial in trials:
            for k in parts:
                if trial.status == "tried":
                    test = self.labels == k
                    trial.run(self.cells[~test], self.cells[test], self.known)

    def stack(self) -> Stacking:
        """Weights of the members, after those with little weight are dropped."""
        stacking = self._stacking()
        while True:
            share = stacking.columns.mean(0)
            enough = share >= min(MIN_WEIGHT, share.max())
            if enough.all():
                return stacking
            self._keep(enough)
            stacking = self._stacking([stacking.prior_cells])

    def held_out(self) -> Entries:
        """Cells that all members have predicted."""
        parts = [self.labels == k for k in range(self.n_parts)]
        return self.cells[np.concatenate([np.flatnonzero(part) for part in parts])]

    def _stacking(self, priors: Sequence[float] = PRIOR_CELLS) -> Stacking:
        cells = self.held_out()
        R = np.stack([t.first(self.n_parts) for t in self.members], 1)
        return Stacking.of(R, cells.rows, cells.cols, self.size.n_cols, priors)

    def _excess(self) -> float:
        """Drop members without weight; return the relative excess of the error."""
        stacking = self._stacking()
        if len(stacking.residuals) >= CELLS_TO_DROP * len(self.members):
            self._keep(stacking.ever)
        own = rms(stacking.own_residuals)
        return rms(stacking.residuals) / own - 1 if own > 0 else 0.0

    def _keep(self, kept: np.ndarray) -> None:
        for trial, keep in zip(self.members, kept, strict=True):
            if not keep:
                trial.fitted = None  # to free its memory
        self.members = [t for t in self.members if t.fitted is not None]

    def _affordable(self) -> int:
        """Number of parts for which there is time, if the members are fitted again."""
        once = sum(t.seconds_per_fit for t in self.members)
        final = sum(t.seconds_per_fit * t.growth for t in self.members)
        parts = (self.seconds_left - final) / (once or 1.0)
        return int(np.clip(parts, 0, self.labels.max() + 1))

    def _against(self, trial: Trial, named: bool) -> str | None:
        """Reason not to try a candidate, or an empty text."""
        judged = self.judged
        if judged and not (self.labels >= 0).any():
            return "too few cells to hold any out"
        if named or not judged:
            return None
        best = min(judged, key=lambda t: rms(t.first(1)))
        seconds = trial.cost * self._speed()
        needed = seconds + max(seconds, best.seconds_per_fit)
        left = max(0.0, self.seconds_left)
        if needed <= left:
            return None
        return (
            f"a fit and the last fits take about {needed:.2g} s, {left:.2g} s are left"
        )

    def _speed(self) -> float:
        """Measured seconds per estimated second: a median, including two times one.

        A wrong estimate for one candidate does not affect the others.
        """
        ratios = [(0.1 + t.seconds_per_fit) / (0.1 + t.cost) for t in self.judged]
        return float(np.median([1.0, 1.0, *ratios]))
