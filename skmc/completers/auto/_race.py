"""The race of candidates: predictions of held-out cells by fits to the others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from skmc.base import BaseCompleter, known_of_rows
from skmc.cells import Entries, Given, Layout, Scaling, TableMatrix
from skmc.completers._units import standardized, undone
from skmc.completers.auto._candidates import Candidate
from skmc.completers.auto._fitted import as_seen_by, compares_columns, own_values
from skmc.completers.costs import Size
from skmc.completers.mean import MeanCompleter
from skmc.loop import FitTasks, seconds_left, time_limit
from skmc.model_selection import predict_cells
from skmc.stacking import (
    MIN_WEIGHT,
    HeldOutCategory,
    Priors,
    Stacking,
    rms,
    simplex_minimum,
)

SCOUT = 0.25  # seconds of a candidate that is always tried
BUDGET, SHARE_OF_MAX_TIME = 7.0, 0.1  # seconds of all comparisons, the larger one
SMALL = 500  # observed cells, below which the budget is less, as their square
SHARE_OF_FIRST_PART = 0.7  # of the budget
EVIDENCE = 0.2  # weight of candidates, for which those that come after them are tried
MOST_PARTS = 4  # that candidates predict
WORTHWHILE = 0.01  # smallest relative gain for which further parts are fitted
CELLS_PER_CANDIDATE = 10  # held-out cells from which weights decide anything
CHECK_SHARE_OF_MAX_TIME = 0.1  # for all fits that check estimates
CHECK_STEPS = (8, 16, 32)  # such a fit gets every eighth row, or fewer
LARGEST_OVERESTIMATE = 3  # estimated over measured times of most classes
COMPARING = 0.5  # time of a fit for the comparison, relative to a last fit
SLOWER = 1.5  # than a few rows, which are in the cache
FIT_SHARE = 2 / 3  # of the time of a fit and its predictions


class Sample(NamedTuple):
    """Standardized rows, and the side information about rows and columns."""

    cells: np.ndarray
    known: Mapping[str, Any]


@dataclass
class Trial:
    """A candidate and its predictions."""

    candidate: Candidate
    cost: float  # estimated seconds of a fit for the comparison
    price: float  # the same, multiplied by the share of it that missing cells leave
    whole: float  # estimated seconds of the fit with all trees and draws
    growth: float  # ratio of full to sample fit time
    status: str = "tried"
    seconds: float = 0.0  # total of all fits and predictions
    predicting: float = 0.0  # seconds of the last predictions alone
    completing: float | None = None  # estimated seconds for all rows as new ones
    n_warnings: int = 0
    fitted: Any = None  # to all cells without the last part
    residuals: list[np.ndarray] = field(default_factory=list)  # of each part

    @property
    def name(self) -> str:
        return self.candidate.name

    @classmethod
    def of(cls, candidate: Candidate, size: Size, full_size: Size) -> Trial:
        """Estimate the times of a candidate that has not been tried."""
        whole, price = candidate.cost(size), candidate.order(size)
        share = COMPARING if candidate.comparing else 1.0
        growth = candidate.cost(full_size) / whole
        return cls(candidate, share * whole, share * price, whole, growth)

    @property
    def anytime(self) -> bool:
        """Whether a fit that ends early is nearly as good."""
        return getattr(self.candidate.estimator, "_anytime", False)

    @property
    def seconds_per_part(self) -> float:
        return self.seconds / max(1, len(self.residuals))

    @property
    def seconds_of_predictions(self) -> float:
        """Estimated time of the predictions of the whole matrix."""
        if self.completing is not None:
            return self.completing
        return self.predicting * self.growth

    @property
    def seconds_at_the_end(self) -> float:
        """Estimated time of a last fit to the same rows, and of all predictions."""
        return self.seconds_of_same_rows + (self.completing or 0.0)

    @property
    def seconds_of_same_rows(self) -> float:
        """Estimated time of a last fit to the rows of the comparison."""
        return self.seconds_per_part * self.whole / self.cost

    @property
    def seconds_of_last_fit(self) -> float:
        """Estimated time of the fit to the whole matrix."""
        return self.seconds_of_same_rows * self.growth

    def seconds_needed(self, speed: float, last: float) -> float:
        """Estimated time of a fit, and of its last fit or that of another one."""
        return self.cost * speed + max(self.whole * speed, last)

    def run(
        self,
        cells: Entries,
        labels: np.ndarray,
        scaling: Scaling,
        known: Mapping[str, Any],
    ) -> None:
        """Predict the next part from the others; a failure becomes the status."""
        start = time.perf_counter()
        part = labels == len(self.residuals)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fitted, found = self._predict(cells, part, scaling, known)
                if not np.isfinite(found).all():
                    raise ValueError("predictions are not finite")
            except Exception as failure:  # any failure of a method is a result
                self.status, self.residuals = f"failed: {failure!r}", []
            else:
                self.fitted = fitted
                self.residuals.append(np.asarray(cells[part].values - found, float))
        self.seconds += time.perf_counter() - start
        self.n_warnings += len(caught)

    def _predict(
        self,
        cells: Entries,
        part: np.ndarray,
        scaling: Scaling,
        known: Mapping[str, Any],
    ) -> tuple[Any, np.ndarray]:
        """The fitted estimator, and its predictions of a part."""
        if compares_columns(self.candidate.estimator):
            matrix = undone(cells.to_cells(), scaling)
            seen = Entries.of_matrix(matrix, layout=cells.layout)
            fitted, found = self._predict_seen(seen, part, known)
            guess = np.full(matrix.shape, np.nan)
            guess[cells.rows[part], cells.cols[part]] = found
            found = standardized(guess, scaling)[cells.rows[part], cells.cols[part]]
            return fitted, found
        return self._predict_seen(cells, part, known)

    def _predict_seen(
        self, cells: Entries, part: np.ndarray, known: Mapping[str, Any]
    ) -> tuple[Any, np.ndarray]:
        fitted = self.candidate.clone(cells.layout, comparing=True)
        given = self.candidate.arguments(known, cells[~part])
        if not hasattr(fitted, "predict_entries"):
            return fitted, predict_cells(fitted, cells[~part], cells[part], **given)
        fitted.fit(cells[~part], **given)
        start = time.perf_counter()
        found = fitted.predict_entries(*cells[part].labels)
        self.predicting = time.perf_counter() - start
        return fitted, found

    def time_rows(self, rows: np.ndarray, scaling: Scaling, n_rows: int) -> None:
        """Estimate the time to complete ``n_rows`` new rows from those of a few.

        A failure becomes the status, as in `run`.
        """
        seen, times = as_seen_by(self.fitted, rows, scaling), []
        few = max(1, len(rows) // 10)
        # The first call computes what all calls need.
        for part in (seen[:1], seen[:few], seen):
            start = time.perf_counter()
            try:
                own_values(self.fitted, part)
            except Exception as failure:
                self.status, self.residuals = f"failed: {failure!r}", []
                return
            times.append(time.perf_counter() - start)
        slope = max(times[2] - times[1], times[2] / 5) / max(1, len(rows) - few)
        self.completing = times[2] + SLOWER * slope * n_rows

    def first(self, n_parts: int) -> np.ndarray:
        """Residuals of the first parts."""
        return np.concatenate([*self.residuals[:n_parts], []])


class Race:
    """The order in which candidates are tried, and when the comparison ends.

    Candidates predict the first part in order of price, which is `Candidate.order`, the
    estimated seconds of a fit. *Scouts*, whose fit takes at most a quarter of a second,
    are always tried, others as long as all prices add up to at most .7 of the budget.
    Some candidates, of low rank or for pictures, name cheaper ones that find the same
    structure. Most of them come last, and are not tried unless these have a weight of
    .2 or more; those for pictures are then tried at any price. The budget is seven
    seconds or a tenth of ``max_time``, whichever is more, and less in proportion to the
    square of the observed cells if there are fewer than 500. So the race depends on
    estimates, and on the clock only if ``max_time`` is short. Then candidates with
    small weights in all stacks of `Stacking` are dropped. The others predict one more
    part, and so on, until the budget is spent, four parts are predicted, or the error
    of the stack on cells that its weights have not seen is within a hundredth of that
    on its own cells: more parts would hardly improve the weights. For categories, the
    error is the root of the mean negative log score. Weights decide nothing before
    there are ten held-out cells for each candidate.

    Within ``max_time``, a candidate needs time for its fit and a last one, or the last
    fit of the best so far. If the estimate says that there is none, a fit to an eighth
    of the rows or fewer may correct it. A first fit that takes longer than estimated
    ends when only the time for the last fit of the best one is left. If a fit that ends
    early is nearly as good, as that of `BayesianFactorizationCompleter`, it ends after
    a third of the time left, so that its predictions and a second fit follow.

    Parameters
    ----------
    cells : Entries
        Observed cells of a matrix.
    labels : int ndarray of shape (n_cells,)
        Part of each cell, -1 for cells in no part.
    scaling : Scaling
        Scaling of the columns by which the cells were standardized.
    full_size : Size
        Size of the matrix to be completed finally, which may have more rows.
    max_time : float
        Time limit in seconds from now.
    known : mapping of str to array
        Features and graphs of the rows and columns of the matrix.
    beyond : ndarray of shape (n, n_cols) or None, default=None
        Some rows of the whole matrix that are not among those of ``cells``.
    """

    def __init__(
        self,
        cells: Entries,
        labels: np.ndarray,
        scaling: Scaling,
        full_size: Size,
        max_time: float,
        known: Mapping[str, Any],
        beyond: np.ndarray | None = None,
    ) -> None:
        self.known, self.scaling, self.beyond = known, scaling, beyond
        self.cells, self.labels, self.full_size = cells, labels, full_size
        self.size = Size(*cells.matrix_shape, len(cells))
        self.end = time.perf_counter() + max_time
        self.seconds_for_checks = CHECK_SHARE_OF_MAX_TIME * max_time
        budget = max(BUDGET, SHARE_OF_MAX_TIME * max_time)
        self.budget = budget * min(1.0, len(cells) / SMALL) ** 2
        self.spent = 0.0  # sum of the prices of fits
        self.trials: list[Trial] = []
        self.members: list[Trial] = []
        self.n_parts = 0  # parts that all members have predicted
        self.interrupted = False

    @property
    def layout(self) -> Layout | None:
        """What the columns are in a table, if the matrix represents one."""
        return self.cells.layout

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
        waiting = [Trial.of(c, self.size, self.full_size) for c in candidates]
        waiting.sort(key=lambda t: (t.candidate.is_last, t.price))
        most = min(MOST_PARTS, int(self.labels.max()) + 1)
        try:
            seconds = "" if named else f", at most {self.seconds_left:.0f} seconds"
            with tasks.part(f"candidates{seconds}", len(waiting)) as first:
                for trial in waiting:
                    if reason := self._against(trial, named):
                        trial.status = f"not tried: {reason}"
                        stop = first.done(trial.name)
                    else:
                        task = first.part(trial.name + self._best_so_far(), 1)
                        task.begin()
                        with time_limit(np.inf if named else self._limit(trial)):
                            self._predict([trial], 1)
                        stop = task.finish()
                    self.trials.append(trial)
                    if stop:
                        break
            self.members, self.n_parts = self.judged, 1
            with tasks.part("further parts", max(1, most - 1)) as further:
                while self.members and self._excess() > WORTHWHILE:
                    if self.n_parts >= most or not self._affordable():
                        break
                    self._predict(self.members, self.n_parts + 1)
                    self.members = [t for t in self.members if t.residuals]
                    self.n_parts += 1
                    if further.done("parts"):
                        break
        except KeyboardInterrupt:
            self.interrupted = True
            self.members = [t for t in self.members or self.judged if t.residuals]
            self.n_parts = max(1, self.n_parts)

    def _predict(self, trials: Sequence[Trial], n_parts: int) -> None:
        """Predict the first parts."""
        for trial in trials:
            while trial.status == "tried" and len(trial.residuals) < n_parts:
                trial.run(self.cells, self.labels, self.scaling, self.known)
                self.spent += trial.price
                first = trial.status == "tried" and trial.completing is None
                if first and self.beyond is not None:
                    n_rows = self.full_size.n_rows
                    trial.time_rows(self.beyond, self.scaling, n_rows)

    def stack(self) -> Stacking:
        """Weights of the members, after those with little weight are dropped."""
        stacking = self._stacking()
        while not self._keep(stacking.shares):
            stacking = self._stacking([[prior] for prior in stacking.prior_cells])
        return stacking

    def drop_slow(self) -> None:
        """Drop members that cannot complete all rows in the time left.

        Those with the least weight per second go first. If the last one is too slow,
        the best candidate that is fast enough takes its place.
        """
        if self.beyond is None or self.interrupted:
            return
        left = self.seconds_left
        seconds = [t.seconds_of_predictions for t in self.members]
        if sum(seconds) <= left:
            return
        while len(self.members) > 1 and sum(seconds) > left:
            worth = self._stacking().shares / np.maximum(seconds, 1e-9)
            gone = int(worth.argmin())
            self.members[gone].fitted = None  # to free its memory
            del self.members[gone], seconds[gone]
        able = [t for t in self.judged if t.seconds_at_the_end <= left]
        if sum(seconds) > left and able:
            self.members, self.n_parts = [self._best(able)], 1

    def last_fit(self, trial: Trial, end: float, whole: Sample, sample: Sample) -> Any:
        """Fit the estimator to all cells, or to as many as there is time for."""
        parts = [
            (whole, trial.seconds_of_last_fit),
            (sample, trial.seconds_of_same_rows),
        ]
        for part, seconds in parts:
            left = np.inf if trial.fitted is None else end - time.perf_counter()
            late = seconds > left + trial.seconds_of_predictions
            if late or (self.interrupted and trial.fitted is not None):
                continue
            with warnings.catch_warnings(), time_limit(left):
                warnings.simplefilter("ignore")  # the leaderboard counts them
                try:
                    given = trial.candidate.arguments(part.known, part.cells)
                    estimator = trial.candidate.clone(self.layout)
                    X: Any = as_seen_by(estimator, part.cells, self.scaling)
                    if isinstance(estimator, BaseCompleter):
                        X = TableMatrix(X, self.layout)
                    fitted = estimator.fit(X, **given)
                    if seconds_left() > 0 or trial.anytime or trial.fitted is None:
                        return fitted
                except KeyboardInterrupt:
                    if trial.fitted is None:
                        raise
                    self.interrupted = True
                except Exception:
                    if trial.fitted is None:
                        raise
        return trial.fitted

    def leaderboard(self, stacking: Stacking) -> list[dict[str, Any]]:
        """One row for each candidate; those that have predicted a part come first."""
        names = [t.name for t in self.members]
        shares = dict(zip(names, stacking.columns.mean(0), strict=True))
        rows = [
            {
                "candidate": trial.name,
                "status": "in the stack" if trial.name in shares else trial.status,
                "error": self.error_of(trial),
                "cells": sum(map(len, trial.residuals)),
                "weight": float(shares.get(trial.name, 0.0)),
                "seconds": trial.seconds,
                "warnings": trial.n_warnings,
            }
            for trial in self.trials
        ]
        return sorted(rows, key=lambda row: np.nan_to_num(row["error"], nan=np.inf))

    def verdict(self, stacking: Stacking) -> str:
        """Summarize the stack, its error, and the skipped candidates."""
        judged, shares = self.judged, stacking.columns.mean(0)
        order = np.argsort(-shares, kind="stable")
        names = [self.members[k].name for k in order]
        if not len(stacking.residuals):
            return f"Too few cells to hold any out: the error of {names[0]} is unknown."
        said = f"{names[0]} alone"
        if len(names) > 1:
            parts = [f"{shares[k]:.0%} {n}" for k, n in zip(order, names, strict=True)]
            said = f"A stack of {_listed(parts)}"
        said += f", of {len(judged)} candidate{'s' * (len(judged) > 1)}"

        def ratio(trial: Trial) -> float:
            """Ratio of the stack's error to the trial's, on cells of both."""
            own = trial.first(self.n_parts)
            times = self._times(self.n_parts)[: len(own)]
            stack = rms(stacking.residuals[: len(own)], times)
            return stack / (rms(own, times) or np.nan)

        means = [t for t in judged if isinstance(t.candidate.estimator, MeanCompleter)]
        best = max(judged, key=lambda t: np.nan_to_num(ratio(t)))
        compared = [
            f"{ratio(t):.1%} of that of {'column means' if t in means else t.name}"
            for t in ([best] if best in means else [best, *means])
            if names != [t.name]
        ]
        if compared:
            said += f": the error on held-out cells is {_listed(compared)}"
        for status in ("not tried", "failed"):
            those = [t for t in self.trials if t.status.startswith(status)]
            if those:
                why = (f"{t.name} ({t.status.partition(': ')[2]})" for t in those)
                said += f". {status.capitalize()}: {', '.join(why)}"
        return said + "."

    def held_out(self) -> Entries:
        """Cells that all members have predicted."""
        return self.cells[self._order(self.n_parts)]

    def error_of(self, trial: Trial) -> float:
        """Root mean squared error on the first part; NaN without predictions."""
        residuals = trial.first(1)
        return rms(residuals, self._times(1)) if len(residuals) else np.nan

    def donors(self) -> np.ndarray:
        """Numbers of the held-out cells' pairs of row and part."""
        order = self._order(self.n_parts)
        return self.cells.rows[order] * self.n_parts + self.labels[order]

    def _order(self, n_parts: int) -> np.ndarray:
        parts = [self.labels == k for k in range(n_parts)]
        return np.concatenate([np.flatnonzero(part) for part in parts])

    def _times(self, n_parts: int) -> np.ndarray:
        """Weights of the cells of the first parts, those of their rows."""
        rows = self.cells.rows[self._order(n_parts)]
        weights = self.known.get("sample_weight")
        return np.ones(len(rows)) if weights is None else weights[rows]

    def _stacking(self, priors: Priors | None = None) -> Stacking:
        cells, layout = self.held_out(), self.layout
        R = np.stack([t.first(self.n_parts) for t in self.members], 1)
        place, times = (
            (cells.rows, cells.cols, self.size.n_cols),
            self._times(self.n_parts),
        )
        if layout is None:
            return Stacking.of(R, *place, priors, times=times)
        return Stacking.of(
            R,
            *place,
            priors,
            numbers=layout.measured_columns,
            categories=HeldOutCategory.all_of(layout, cells, R),
            times=times,
        )

    def _excess(self) -> float:
        """Drop members without weight; return the relative excess of the error."""
        stacking = self._stacking()
        if len(stacking.residuals) >= CELLS_PER_CANDIDATE * len(self.members):
            self._keep(stacking.crossed_shares)
        return stacking.excess

    def _keep(self, shares: np.ndarray) -> bool:
        """Drop members with small shares; return whether all have been kept."""
        enough = shares >= min(MIN_WEIGHT, shares.max())
        for trial, keep in zip(self.members, enough, strict=True):
            if not keep:
                trial.fitted = None  # to free its memory
        self.members = [t for t in self.members if t.fitted is not None]
        return bool(enough.all())

    def _affordable(self) -> bool:
        """Whether there is time for another part, and a share of the budget."""
        once = sum(t.seconds_per_part for t in self.members)
        final = sum(t.seconds_of_last_fit for t in self.members)
        price = sum(t.price for t in self.members)
        return self.spent + price <= self.budget and once + final <= self.seconds_left

    def _against(self, trial: Trial, named: bool) -> str | None:
        """Reason not to try a candidate, or None."""
        judged = self.judged
        if judged and not (self.labels >= 0).any():
            return "too few cells to hold any out"
        if "sample_weight" in self.known and not trial.candidate.weighted:
            return "its fit takes no weights"
        if named or not judged:
            return None
        return self._against_its_price(trial) or self._against_its_time(trial)

    def _against_its_price(self, trial: Trial) -> str | None:
        if trial.candidate.takes:
            return None  # what no other candidate knows
        judged = self.judged
        similar = [t.name in trial.candidate.after for t in judged]
        if any(similar):
            R = np.stack([t.first(1) for t in judged], 1)
            enough = len(R) >= CELLS_PER_CANDIDATE * len(judged)
            R *= np.sqrt(self._times(1))[:, None]
            found = enough and simplex_minimum(R.T @ R)[similar].sum() >= EVIDENCE
            if found and compares_columns(trial.candidate.estimator):
                return None  # of a picture nothing else can tell as much
            if trial.candidate.only_after and not found:
                names = ", ".join(trial.candidate.after)
                return f"similar ones have little weight: {names}"
        share = SHARE_OF_FIRST_PART * self.budget
        if trial.cost <= SCOUT or self.spent + trial.price <= share:
            return None
        left = max(0.0, share - self.spent)
        return f"a fit takes about {trial.cost:.2g} s, of {left:.2g} s for comparisons"

    def _against_its_time(self, trial: Trial) -> str | None:
        last = self._last
        speed, left = self._speed(), self.seconds_left
        if trial.anytime and trial.cost * speed < LARGEST_OVERESTIMATE * left:
            return None
        needed = trial.seconds_needed(speed, last)
        if left < needed < LARGEST_OVERESTIMATE * left:
            speed = self._checked_speed(trial.candidate, left - last)
            needed = trial.seconds_needed(speed, last)
        left = max(0.0, self.seconds_left)
        if needed <= left:
            return None
        return (
            f"a fit and the last fits take about {needed:.2g} s, {left:.2g} s are left"
        )

    def _limit(self, trial: Trial) -> float:
        """Seconds for the first fit of a candidate."""
        left = self.seconds_left
        if trial.anytime:  # with its predictions, and again
            return FIT_SHARE * min(left / 2, left - self._last)
        return left - self._last

    @property
    def _last(self) -> float:
        """Estimated seconds of the last fit of the best candidate so far."""
        judged = self.judged
        if not judged:
            return 0.0
        if self.beyond is None:
            return self._best(judged).seconds_of_same_rows
        left = self.seconds_left
        able = [t for t in judged if t.seconds_at_the_end <= left]
        if not able:
            return min(t.seconds_at_the_end for t in judged)
        return self._best(able).seconds_at_the_end

    def _best_so_far(self) -> str:
        """What a progress bar says besides the candidate that is being tried."""
        judged = self.judged
        if not judged or not len(judged[0].first(1)):
            return ""
        best = self._best(judged)
        error = self.error_of(best)
        return f" (best so far: {best.name}, held-out error {error:.3g})"

    def _best(self, trials: Sequence[Trial]) -> Trial:
        return min(trials, key=self.error_of)

    def _checked_speed(self, candidate: Candidate, seconds: float) -> float:
        """The speed after a fit to a fraction of the rows, if there is time for one.

        It is the geometric mean of the general and the measured speed, because few rows
        may need fewer or more iterations. A sample of the rows is not checked: the last
        fits, to all rows, need the time.
        """
        speed, matrix = self._speed(), self.cells.to_cells()
        for step in CHECK_STEPS if self.size == self.full_size else ():
            cells = Entries.of_matrix(matrix[::step], layout=self.layout)
            size = Size(*cells.matrix_shape, len(cells))
            check = Trial.of(candidate, size, size)
            if check.cost * speed <= min(seconds, self.seconds_for_checks):
                known = known_of_rows(self.known, np.arange(0, len(matrix), step))
                labels = self.labels[self.cells.rows % step == 0]
                check.run(cells, labels, self.scaling, known)
                self.seconds_for_checks -= check.seconds
                ratio = check.seconds / check.cost
                return (speed * ratio) ** 0.5 if check.fitted else speed
        return speed

    def _speed(self) -> float:
        """Measured seconds per estimated second: a median, including two times one.

        A wrong estimate for one candidate does not affect the others.
        """
        ratios = [(0.1 + t.seconds_per_part) / (0.1 + t.cost) for t in self.judged]
        return float(np.median([1.0, 1.0, *ratios]))


@dataclass(frozen=True)
class Cold:
    """Rows and columns without observed cells that features or graphs describe.

    Parameters
    ----------
    rows : bool ndarray of shape (n_rows,)
        Mask of these rows.
    cols : bool ndarray of shape (n_cols,)
        Mask of these columns.
    """

    rows: np.ndarray
    cols: np.ndarray

    @classmethod
    def of(cls, given: Given) -> Cold:
        """Find them from the observed cells and the side information."""
        seen = ~np.isnan(given.matrix)

        def described(axis: str) -> bool:
            return any(name.startswith(axis) for name in given.known)

        of_cols = ~seen[given.weights_of_rows > 0].any(0) & described("col")
        return cls(~seen.any(1) & described("row"), of_cols)

    def weights(
        self, race: Race, stacking: Stacking
    ) -> tuple[Sequence[Trial], np.ndarray, np.ndarray]:
        """Members and their weights, for all rows and for the rows described here.

        Without observed cells, only candidates that use side information are weighted.
        If none of them is a member of the stack, the best of them joins it.
        """
        members, weights = race.members, stacking.columns.T.copy()
        if not (self.rows.any() or self.cols.any()):
            return members, weights, weights
        common = stacking.common
        informed = np.array([bool(t.candidate.takes) for t in members])
        if not informed.any():
            others = [t for t in race.judged if t.candidate.takes]
            if not others:  # all have failed
                return members, weights, weights
            members = [*members, min(others, key=race.error_of)]
            weights = np.vstack([weights, np.zeros(weights.shape[1])])
            common = np.append(common, 0.0)
            informed = np.append(informed, True)
        share = _normalized(common * informed, informed)
        weights[:, self.cols] = share[:, None]
        own = _normalized(weights * informed[:, None], share[:, None])
        return members, weights, own


def _listed(items: list[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def _normalized(weights: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Normalize columns to sum one; ``otherwise`` replaces columns of zeros."""
    weights = np.where(weights.sum(0) > 0, weights, otherwise)
    return weights / weights.sum(0)
