"""The comparison of candidates: predictions of held-out cells by fits to the others."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from joblib import Parallel, delayed, effective_n_jobs

from skmc.base import BaseCompleter, known_of_rows
from skmc.cells import Entries, Given, Layout, Scaling, TableMatrix
from skmc.cells.copies import copies
from skmc.completers._units import standardized, undone
from skmc.completers.auto._candidates import Candidate
from skmc.completers.auto._fitted import as_seen_by, compares_columns
from skmc.completers.mean import MeanCompleter
from skmc.loop import FitTasks, seconds_left, time_limit
from skmc.model_selection import predict_cells
from skmc.new_rows import RowIndex
from skmc.stacking import MIN_WEIGHT, HeldOutCategory, PriorSizes, Stacking, rms

WORTHWHILE = 0.01  # smallest relative gain for which more parts are predicted
EXACT = 1e-5  # error relative to that of the means, below which nothing else is tried
MOST_PARTS = 4  # that candidates predict
ENOUGH = 500  # held-out cells on which candidates are judged
MOST_CELLS = 2_000  # held-out ones, from which more would hardly improve the weights

T = TypeVar("T")


class Sample(NamedTuple):
    """Standardized rows, and the side information about rows and columns."""

    cells: np.ndarray
    known: Mapping[str, Any]

    def first(self, n_rows: int) -> Sample:
        """The first rows."""
        if len(self.cells) <= n_rows:
            return self
        return Sample(self.cells[:n_rows], known_of_rows(self.known, np.arange(n_rows)))


class Prediction(NamedTuple):
    """A fit without a part of the cells, and the errors of its predictions there."""

    status: str
    seconds: float
    n_warnings: int
    fitted: Any = None
    residuals: np.ndarray | None = None


@dataclass
class Trial:
    """A candidate and its predictions."""

    candidate: Candidate
    status: str = "tried"
    seconds: float = 0.0  # total of all fits and predictions
    n_warnings: int = 0
    fitted: Any = None  # to all cells without the last part
    residuals: list[np.ndarray] = field(default_factory=list)  # of each part

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def next(self) -> Candidate:
        """The candidate with the prior that its first fit has chosen."""
        if self.fitted is None:
            return self.candidate
        return self.candidate.chosen_by(self.fitted)

    def first(self, n_parts: int) -> np.ndarray:
        """Residuals of the first parts."""
        return np.concatenate([*self.residuals[:n_parts], []])

    def take(self, found: Prediction) -> None:
        """Add the prediction of the next part; a failure becomes the status."""
        self.seconds += found.seconds
        self.n_warnings += found.n_warnings
        self.status = found.status
        if found.residuals is None:
            self.residuals = []
        else:
            self.fitted = found.fitted
            self.residuals.append(found.residuals)


class Comparison:
    """Candidates predict parts of the observed cells from the others.

    One after the other, they predict the first part, and more until there are 500
    cells, up to a candidate that is exact. Then those with small weights in all stacks
    of `Stacking` are dropped. The others predict one more part, and so on, until four
    parts or 2000 cells are predicted, or the error of the stack on cells that its
    weights have not seen is within a hundredth of that on its own cells: more parts
    would hardly improve the weights.

    In later parts, a Gaussian candidate keeps the prior that it has chosen for the
    first one.

    Nothing depends on the clock before the time limit, which ends the comparison. The
    fits up to then are kept.

    Parameters
    ----------
    cells : Entries
        Observed cells of a matrix.
    labels : int ndarray of shape (n_cells,)
        Part of each cell, -1 for cells in no part.
    scaling : Scaling
        Scaling of the columns by which the cells were standardized.
    known : mapping of str to array
        Features and graphs of the rows and columns of the matrix.
    whole : Sample
        All rows, of which those of the matrix are the first ones.
    n_jobs : int or None
        Number of fits at the same time.
    """

    def __init__(
        self,
        cells: Entries,
        labels: np.ndarray,
        scaling: Scaling,
        known: Mapping[str, Any],
        whole: Sample,
        n_jobs: int | None = None,
    ) -> None:
        self.cells, self.labels, self.whole = cells, labels, whole
        self.first = copies(cells.to_cells())  # of the rows that are copies
        self.scaling, self.known, self.n_jobs = scaling, known, n_jobs
        self.trials: list[Trial] = []
        self.members: list[Trial] = []
        # Parts that all members have predicted.
        size = int(np.count_nonzero(labels == 0))
        self.n_first = min(self._most_parts, math.ceil(ENOUGH / (size or 1)))
        self.n_parts = self.n_first
        self.interrupted = False

    @property
    def layout(self) -> Layout | None:
        """What the columns are in a table, if the matrix represents one."""
        return self.cells.layout

    @property
    def judged(self) -> list[Trial]:
        """Trials that have predicted a part."""
        return [t for t in self.trials if t.residuals]

    def run(self, candidates: Sequence[Candidate], tasks: FitTasks) -> None:
        """Fit candidates, and drop those that have no weight."""
        try:
            self._first_parts(candidates, tasks)
            self._join()
            self._further_parts(tasks)
        except KeyboardInterrupt:
            self.interrupted = True
            self._join()

    def _join(self) -> None:
        """An exact candidate, or all that have predicted a part, become members."""
        self.members = [t for t in self.judged if t.fitted is not None]
        fewest = min((len(t.residuals) for t in self.judged), default=1)
        self.n_first = min(self.n_first, fewest)
        self.n_parts = max(
            self.n_first, min((len(t.residuals) for t in self.members), default=1)
        )
        exact = [t for t in self.members if self._is_exact(t)]
        self.members = exact[:1] or self.members

    def _first_parts(self, candidates: Sequence[Candidate], tasks: FitTasks) -> None:
        """Fit the candidates, and say why some are not tried."""
        self.trials = [Trial(candidate) for candidate in candidates]
        with tasks.part("candidates", len(self.trials)) as first:
            reason = self._predict_first(first)
        for trial in self.trials:
            if trial.status == "tried" and not trial.residuals:
                trial.status = f"not tried: {reason}"

    def _predict_first(self, first: FitTasks) -> str:
        """Predict the first part; a reason to try nothing else, or nothing."""
        waiting = []
        for trial in self.trials:
            if "sample_weight" in self.known and not trial.candidate.weighted:
                trial.status = "not tried: its fit takes no weights"
            else:
                waiting.append(trial)
        if not (self.labels >= 0).any():
            while waiting and not self.judged:
                self._predict(waiting[:1], 1)
                first.done(waiting.pop(0).name)
            return "too few cells to hold any out" if self.judged else ""
        for now in self._at_once(waiting):
            if self.judged and seconds_left() <= 0:
                return "max_time had passed"
            self._predict(now, self.n_first)
            asked = [first.done(trial.name) for trial in now]
            if any(asked):
                return "a callback has stopped the comparison"
            if exact := [k for k, trial in enumerate(now) if self._is_exact(trial)]:
                for trial in now[exact[0] + 1 :]:  # as if one began after the other
                    trial.residuals = []
                return "another one is exact"
        return ""

    def _further_parts(self, tasks: FitTasks) -> None:
        """Predict more parts as long as they may improve the weights."""
        with tasks.part("further parts", self._most_parts) as further:
            while self.members and self._excess() > WORTHWHILE:
                if (
                    self.n_parts >= self._most_parts
                    or len(self.held_out()) >= MOST_CELLS
                ):
                    break
                self._predict(self.members, self.n_parts + 1)
                done = [t for t in self.members if len(t.residuals) > self.n_parts]
                if seconds_left() <= 0 or not done:
                    break
                self.members = done
                self.n_parts += 1
                if further.done("parts"):
                    break

    @property
    def _most_parts(self) -> int:
        return max(1, min(MOST_PARTS, int(self.labels.max(initial=-1)) + 1))

    def _at_once(self, items: Sequence[T]) -> list[Sequence[T]]:
        """Items that begin together: all of them if there are several jobs."""
        if effective_n_jobs(self.n_jobs) > 1:
            return [items] if items else []
        return [[item] for item in items]

    def _predict(self, trials: Sequence[Trial], n_parts: int) -> None:
        """Predict the first parts; the time limit may leave out some of them.

        Later parts keep the prior that a Gaussian candidate chose for the first one.
        """
        self._predict_parts([(t, 0) for t in trials if not t.residuals])
        self._predict_parts(
            [
                (trial, k)
                for trial in trials
                if trial.residuals
                for k in range(len(trial.residuals), n_parts)
            ]
        )

    def _predict_parts(self, missing: Sequence[tuple[Trial, int]]) -> None:
        for now in self._at_once(missing):
            if self.judged and seconds_left() <= 0:
                break
            shared = self.scaling, self.known, self.whole
            calls = [
                (predicted, trial.next, self.cells, self.labels == k, *shared)
                for trial, k in now
            ]
            predictions = side_by_side(calls, self.n_jobs)
            for (trial, _), prediction in zip(now, predictions, strict=True):
                late = trial.residuals and seconds_left() <= 0  # better is an old fit
                if trial.status == "tried" and not late:
                    trial.take(prediction)

    def stack(self) -> Stacking:
        """Weights of the members, after those with little weight are dropped."""
        stacking = self._stacking()
        while not self._keep(stacking.shares):
            stacking = self._stacking([[prior] for prior in stacking.prior_cells])
        return stacking

    def last_fits(
        self, trials: Sequence[Trial], sample: Sample, tasks: FitTasks
    ) -> dict[str, Any]:
        """Fits to all cells, or to a sample of rows, by the names of the candidates.

        After the time limit and after an interruption, those of the comparison remain.
        """
        found, whole = {trial.name: trial.fitted for trial in trials}, self.whole
        with tasks.part("last fits", len(trials)) as last:
            for now in self._at_once(trials):
                if self.interrupted or seconds_left() <= 0:
                    break
                calls = [
                    (fitted, one, rows, self.scaling, self.layout)
                    for one in (trial.candidate for trial in now)
                    for rows in [sample if one.of_sample else whole]
                ]
                try:
                    fits = side_by_side(calls, self.n_jobs)
                except KeyboardInterrupt:
                    self.interrupted = True
                    break
                for trial, fit in zip(now, fits, strict=True):
                    found[trial.name] = trial.fitted if fit is None else fit
                    last.done(trial.name)
        return found

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
        """Summarize the error of the stack in two sentences."""
        names, details = (
            [t.name for t in self.members],
            "`leaderboard_` has the details.",
        )
        alone = [f"{names[0]} alone"] if len(names) == 1 else []
        if not len(stacking.residuals):
            return f"{alone[0]}, as no cells could be held out. {details}"
        kinds = [(type(t.candidate.estimator), t) for t in self.judged]
        others = [("the column means", t) for kind, t in kinds if kind is MeanCompleter]
        best = min(self.judged, key=self.error_of)
        if all(best is not trial for _, trial in others):
            others.append((f"the best single method, {best.name}", best))
        compared = [
            _below(self._ratio(stacking, trial), other)
            for other, trial in others
            if names != [trial.name]
        ]
        said = ", ".join([*alone, *compared])
        return f"{said if alone else said[0].upper() + said[1:]}. {details}"

    def _ratio(self, stacking: Stacking, trial: Trial) -> float:
        """Ratio of the stack's error to the trial's, on cells of both."""
        residuals = trial.first(self.n_parts)
        times = self._times(self.n_parts)[: len(residuals)]
        stack = rms(stacking.residuals[: len(residuals)], times)
        return stack / (rms(residuals, times) or np.nan)

    def held_out(self) -> Entries:
        """Cells that all members have predicted."""
        return self.cells[self._order(self.n_parts)]

    def error_of(self, trial: Trial) -> float:
        """Root mean squared error on the first parts; NaN without predictions."""
        residuals = trial.first(self.n_first)
        times = self._times(self.n_first)
        return rms(residuals, times) if len(residuals) else np.nan

    def _is_exact(self, trial: Trial) -> bool:
        """Whether a trial has predicted the first parts without error."""
        if len(trial.residuals) < self.n_first:
            return False
        values = self.cells[self._order(self.n_first)].values
        return self.error_of(trial) <= EXACT * rms(values, self._times(self.n_first))

    def donors(self) -> np.ndarray:
        """Numbers of the held-out cells' pairs of row and part."""
        order = self._order(self.n_parts)
        return self.cells.rows[order] * self.n_parts + self.labels[order]

    def _order(self, n_parts: int) -> np.ndarray:
        of_parts = [self.labels == k for k in range(n_parts)]
        return np.concatenate([np.flatnonzero(part) for part in of_parts])

    def _times(self, n_parts: int) -> np.ndarray:
        """Weights of the cells of the first parts, those of their rows."""
        rows = self.cells.rows[self._order(n_parts)]
        weights = self.known.get("sample_weight")
        return np.ones(len(rows)) if weights is None else weights[rows]

    def _stacking(self, priors: PriorSizes | None = None) -> Stacking:
        cells, layout = self.held_out(), self.layout
        R = np.stack([t.first(self.n_parts) for t in self.members], 1)
        place = self.first[cells.rows], cells.cols, self.cells.matrix_shape[1]
        times = self._times(self.n_parts)
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
        self._keep(stacking.crossed_shares)
        return stacking.excess

    def _keep(self, shares: np.ndarray) -> bool:
        """Drop members with small shares; return whether all have been kept."""
        enough = shares >= min(MIN_WEIGHT, shares.max())
        kept = []
        for trial, keep in zip(self.members, enough, strict=True):
            if keep:
                kept.append(trial)
            elif not trial.candidate.takes:  # `Cold` may need the others
                trial.fitted = None  # to free its memory
        self.members = kept
        return bool(enough.all())


def side_by_side(calls: Sequence[tuple[Any, ...]], n_jobs: int | None) -> list[Any]:
    """Call functions in the time left, ``n_jobs`` at a time, with equal results."""
    limits = seconds_left(), torch.get_num_threads()
    return list(Parallel(n_jobs)(delayed(_apart)(*limits, *call) for call in calls))


def _apart(left: float, n_threads: int, function: Any, *arguments: Any) -> Any:
    """Call a function, perhaps in a process that does not know the limits."""
    if torch.get_num_threads() != n_threads:  # the order of sums depends on it
        torch.set_num_threads(n_threads)
    with time_limit(left):
        return function(*arguments)


def predicted(
    candidate: Candidate,
    cells: Entries,
    part: np.ndarray,
    scaling: Scaling,
    known: Mapping[str, Any],
    whole: Sample,
) -> Prediction:
    """Predict a part from the others."""
    start, fit, residuals, status = time.perf_counter(), None, None, "tried"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit, values = _predicted(candidate, cells, part, scaling, known, whole)
            if not hasattr(fit, "transform"):
                raise TypeError("it has no transform, which completes other rows")
            if not np.isfinite(values).all():
                raise ValueError("predictions are not finite")
            residuals = np.asarray(cells[part].values - values, float)
        except Exception as failure:  # any failure of a method is a result
            status = f"failed: {failure!r}"
    seconds = time.perf_counter() - start
    return Prediction(status, seconds, len(caught), fit, residuals)


def _predicted(
    candidate: Candidate,
    cells: Entries,
    part: np.ndarray,
    scaling: Scaling,
    known: Mapping[str, Any],
    whole: Sample,
) -> tuple[Any, np.ndarray]:
    """The fitted estimator, and its predictions of a part."""
    fit = candidate.clone(cells.layout, comparing=True)
    seen = cells
    if by_column := compares_columns(fit):
        matrix = undone(cells.to_cells(), scaling)
        seen = Entries.of_matrix(matrix, layout=cells.layout)
    train, held_out = seen[~part], seen[part]
    if candidate.of_all and len(whole.cells) > cells.matrix_shape[0]:
        first, known = RowIndex(whole.cells).firsts, whole.known  # copies would tell
        hidden = np.zeros(whole.cells.shape, bool)
        for rows in (held_out.rows, first[held_out.rows]):
            hidden[rows, held_out.cols] = True
        matrix = np.where(hidden | hidden[first], np.nan, whole.cells)
        train = Entries.of_matrix(matrix, layout=cells.layout)
    given = candidate.arguments(known, train)
    values = predict_cells(fit, train, held_out, **given)
    if by_column:
        guess = np.full(cells.matrix_shape, np.nan)
        guess[cells.rows[part], cells.cols[part]] = values
        values = standardized(guess, scaling)[cells.rows[part], cells.cols[part]]
    return fit, values


def fitted(
    candidate: Candidate, whole: Sample, scaling: Scaling, layout: Layout | None
) -> Any:
    """Fit the estimator to all cells; None if it fails or had too little time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the leaderboard counts them
        try:
            estimator = candidate.clone(layout)
            cells: Any = as_seen_by(estimator, whole.cells, scaling)
            given = candidate.arguments(whole.known, cells)
            if isinstance(estimator, BaseCompleter):
                cells = TableMatrix(cells, layout)
            fit = estimator.fit(cells, **given)
        except Exception:  # the fit of the comparison remains
            return None
    return fit if seconds_left() > 0 else None


def _below(ratio: float, other: str) -> str:
    """Say how an error compares to that of another method."""
    if not np.isfinite(ratio) or abs(1 - ratio) < 0.005:
        return f"as good as {other}"
    side = "below" if ratio < 1 else "above"
    return f"{100 * abs(1 - ratio):.0f} % {side} {other}"


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
        self, comparison: Comparison, stacking: Stacking
    ) -> tuple[Sequence[Trial], np.ndarray, np.ndarray]:
        """Members and their weights, for all rows and for the rows described here.

        Without observed cells, only candidates that use side information are weighted.
        If none of them is a member of the stack, the best of them joins it.
        """
        members, weights = comparison.members, stacking.columns.T.copy()
        if not (self.rows.any() or self.cols.any()):
            return members, weights, weights
        common = stacking.common
        informed = np.array([bool(t.candidate.takes) for t in members])
        if not informed.any():
            others = [t for t in comparison.judged if t.candidate.takes]
            if not others:  # all have failed
                return members, weights, weights
            members = [*members, min(others, key=comparison.error_of)]
            weights = np.vstack([weights, np.zeros(weights.shape[1])])
            common = np.append(common, 0.0)
            informed = np.append(informed, True)
        share = _normalized(common * informed, informed)
        weights[:, self.cols] = share[:, None]
        cold_weights = _normalized(weights * informed[:, None], share[:, None])
        return members, weights, cold_weights


def _normalized(weights: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Normalize columns to sum one; ``otherwise`` replaces columns of zeros."""
    weights = np.where(weights.sum(0) > 0, weights, otherwise)
    return weights / weights.sum(0)
