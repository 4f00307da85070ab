"""The candidates of `AutoCompleter`, their costs, and the search among them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone

from skmc.cells import Entries
from skmc.completers.air import AIRCompleter
from skmc.completers.bayesian import BayesianFactorizationCompleter
from skmc.completers.dmf import DMFCompleter
from skmc.completers.factorization import FactorizationCompleter
from skmc.completers.ialm import IALMCompleter
from skmc.completers.knn import KNNCompleter
from skmc.completers.mean import MeanCompleter
from skmc.completers.ncarl import NCARLCompleter
from skmc.completers.patch_cnn import PatchCNNCompleter
from skmc.completers.soft_impute import SoftImputeCompleter
from skmc.completers.svd import SVDCompleter
from skmc.completers.truncated import TNNRCompleter
from skmc.model_selection import predict_cells

MAX_COLUMNS_TO_CHAIN = 60  # IterativeImputer fits a regression for each column
MIN_LINES = 4  # rows, or columns, needed to measure smoothness
SMOOTH_RATIO = 0.55  # of differences between neighbors and between random pairs
SPARSE_SHARE = 0.35  # of cells observed, as in ratings

SUM_TO_ONE_WEIGHT = 1e4  # penalty that makes the weights of a stack sum to one
FREE_SHARE_OF_MAX_TIME = 1 / 20  # can be spent without regard to cost
MAX_COST_RATIO = 3.0  # of all trials to the best candidate
MIN_STACK_WEIGHT = 0.05
STACK_POOL_SIZE = 6  # candidates from which a stack is made
MIN_GAIN_SHARE = 0.01  # of the mean loss, to prefer a stack
TIE_RATIO = 1.01  # of an error to the lowest
LOW_RANK = ("SVD", "IALM", "TNNR", "Soft-Impute")  # the first is the cheapest
# An expensive candidate is tried if the error of a cheap related method, divided by the
# lowest error, is at most this.
TREES, FEW_TREES = "chained, trees", "chained, few trees"
SCOUTS = {TREES: (FEW_TREES, 1.15), "patch CNN": ("KNN", 2.0)}
Part = tuple[Entries, Entries]
LOSSES: dict[str, Callable] = {"mae": np.abs, "rmse": np.square}


class Candidate(NamedTuple):
    """``seconds`` is the approximate time of a fit on one core, None if unknown."""

    name: str
    estimator: Any
    seconds: float | None = None


def family(cells: np.ndarray, seed: int, device: Any) -> list[Candidate]:
    """The candidates for a matrix, approximately in order of cost.

    The formulas of the costs were fitted by eye to run times on the evaluation data.
    """
    (m, n), share = cells.shape, float((~np.isnan(cells)).mean())
    size, cubic = m * n, m * n * min(m, n)
    on, seeded = {"device": device}, {"device": device, "random_state": seed}
    chained = {"keep_empty_features": True, "random_state": seed}
    found = [
        Candidate("means", MeanCompleter(), 1e-8 * size),
        Candidate("KNN", KNNCompleter(**on), 0.01 + 1e-9 * m * size),
        Candidate("SVD", SVDCompleter(**seeded), 0.03 + 4e-8 * cubic),
        Candidate("IALM", IALMCompleter(**on), 0.03 + 1e-7 * cubic),
        Candidate("NCARL", NCARLCompleter(**seeded), 0.1 + 1.3e-7 * cubic),
        Candidate("TNNR", TNNRCompleter(**seeded), 0.1 + 2.5e-7 * cubic),
        Candidate(
            "Soft-Impute",
            SoftImputeCompleter(**seeded),
            0.8 + 8e-5 * size + 1.5e-7 * cubic,
        ),
        Candidate(
            "AIR",
            AIRCompleter(**seeded),
            0.1 + 2.2e-6 * (m * m + n * n) + 1.1e-7 * cubic,
        ),
    ]
    if n <= MAX_COLUMNS_TO_CHAIN:
        from sklearn.ensemble import ExtraTreesRegressor
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401
        from sklearn.impute import IterativeImputer

        found.append(
            Candidate(
                "chained, linear",
                IterativeImputer(**chained),
                10 * n * (2e-3 + 6e-10 * size * n),
            )
        )
        for name, n_trees, n_rounds in (
            (FEW_TREES, 10, 2),
            (TREES, 50, 5),
        ):
            trees = ExtraTreesRegressor(n_trees, min_samples_leaf=2, random_state=seed)
            found.append(
                Candidate(
                    name,
                    IterativeImputer(trees, max_iter=n_rounds, **chained),
                    n_rounds * n * n_trees * (6e-4 + 9e-8 * size),
                )
            )
    if smooth(cells):
        found += [
            Candidate("DMF, TV", DMFCompleter("tv", **seeded), 0.2 + 6e-5 * size),
            Candidate("patch CNN", PatchCNNCompleter(**seeded), 0.2 + 3.5e-4 * size),
        ]
    if share < SPARSE_SHARE:
        found += [
            Candidate(
                "Factorization", FactorizationCompleter(**seeded), 0.5 + 5e-5 * size
            ),
            Candidate(
                "Bayesian", BayesianFactorizationCompleter(**seeded), 0.2 + 3e-5 * size
            ),
        ]
    # Trees are best on most tables, so the few trees are tried early.
    return sorted(
        found, key=lambda c: (c.seconds or 0.0) / (10 if c.name == FEW_TREES else 1)
    )


def smooth(cells: np.ndarray) -> bool:
    """Whether neighboring rows and columns are similar, as in a picture.

    This holds if the mean difference between neighbors, divided by that between rows
    (columns) in random order, is below 0.55 in the geometric mean of both directions.
    """
    rng, product = np.random.RandomState(0), 1.0
    for X in (cells, cells.T):
        steps = []
        for rows in (X, X[rng.permutation(len(X))]):
            differences = np.abs(np.diff(rows, axis=0))
            known = differences[~np.isnan(differences)]
            steps.append(known.mean() if len(known) else 0.0)
        if len(X) >= MIN_LINES and steps[1] > 0:
            product *= steps[0] / steps[1]
    return bool(product < SMOOTH_RATIO**2)


@dataclass
class Trial:
    """The outcome of a candidate."""

    name: str
    estimator: Any
    cost: float | None
    status: str = "tried"
    seconds: float = 0.0
    n_warnings: int = 0
    fitted: Any = None
    ended: bool = False
    values: np.ndarray = field(default_factory=lambda: np.empty(0))  # held-out cells
    losses: np.ndarray = field(default_factory=lambda: np.empty(0))

    def run(self, parts: Sequence[Part], loss: Callable) -> None:
        """Fit and judge on each part; a failure becomes the status."""
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                values = []
                for train, test in parts:
                    self.fitted = clone(self.estimator)
                    values.append(predict_cells(self.fitted, train, test))
                self.values = np.concatenate(values)
                if not np.isfinite(self.values).all():
                    raise ValueError("predictions are not finite")
                truth = np.concatenate([test.values for _, test in parts])
                self.losses = loss(self.values - truth)
            except Exception as failure:  # any failure of a method is a result
                self.status = f"failed: {failure!r}"
        self.n_warnings, self.ended = len(caught), True
        self.seconds = time.perf_counter() - start


class Search:
    """Tries candidates on the same held-out cells and chooses among them.

    Parameters
    ----------
    parts : sequence of (Entries, Entries)
        Cells of one matrix to train on, and held-out cells.
    metric : {"mae", "rmse"}
        The error to minimize.
    max_time : float or None
        Seconds, counted from now.
    """

    def __init__(self, parts: Sequence[Part], metric: str, max_time: Any) -> None:
        self.parts, self.metric = parts, metric
        self.truth = np.concatenate([test.values for _, test in parts] or [[]])
        self.rows = np.concatenate([test.rows for _, test in parts] or [[]])
        self.max_time = np.inf if max_time is None else max_time
        self.begin = time.perf_counter()
        self.trials: list[Trial] = []
        self.interrupted = False

    @property
    def free_seconds(self) -> float:
        """Seconds of cost that can be spent without a reason."""
        return FREE_SHARE_OF_MAX_TIME * self.max_time

    @property
    def seconds_left(self) -> float:
        return self.max_time - (time.perf_counter() - self.begin)

    def run(self, candidates: list[Candidate]) -> None:
        waiting = list(candidates)
        try:
            while waiting:
                candidate = waiting.pop(self._next(waiting))
                cost = candidate.seconds
                if cost is not None:
                    cost *= len(self.parts)
                trial = Trial(candidate.name, candidate.estimator, cost)
                self.trials.append(trial)
                if reason := self._against(trial):
                    trial.status = f"not tried: {reason}"
                    trial.ended = True
                else:
                    trial.run(self.parts, LOSSES[self.metric])
        except KeyboardInterrupt:
            self.trials = [t for t in self.trials if t.ended]
            self.interrupted = True

    @property
    def judged(self) -> list[Trial]:
        """The trials that succeeded, the best first."""
        return sorted((t for t in self.trials if len(t.losses)), key=self.error)

    def error(self, trial: Trial) -> float:
        """The error on the held-out cells; NaN if the trial did not succeed."""
        if not len(trial.losses):
            return np.nan
        mean = float(trial.losses.mean())
        return mean**0.5 if self.metric == "rmse" else mean

    def _next(self, waiting: list[Candidate]) -> int:
        """The first; low-rank methods come last if their errors are high so far."""
        if self._low_rank() > 1.05:
            for k, candidate in enumerate(waiting):
                if candidate.name not in LOW_RANK:
                    return k
        return 0

    def _low_rank(self) -> float:
        """The lowest error of low-rank methods, divided by the lowest error."""
        errors = {trial.name: self.error(trial) for trial in self.judged}
        low = [error for name, error in errors.items() if name in LOW_RANK]
        return min(low) / (min(errors.values()) or 1.0) if low else 1.0

    def _against(self, trial: Trial) -> str | None:
        """The reason to skip this trial, if there is one."""
        judged = self.judged
        if not judged:
            return None
        best, cost, left = judged[0], trial.cost, self.seconds_left
        speed = self._speed()
        seconds = 0.0 if cost is None else cost * speed
        if left <= 0:
            return "no time is left"
        if seconds > left:
            return f"would take about {seconds:.2g} s, but only {left:.2g} s are left"
        if cost is None or best.cost is None:
            return None
        spent = sum(t.cost or 0.0 for t in self.trials if t.fitted is not None)
        if trial.name in SCOUTS:
            name, largest_ratio = SCOUTS[trial.name]
            error = next((self.error(t) for t in judged if t.name == name), np.inf)
            if error > largest_ratio * self.error(best):
                return f"the error of {name} is far above the lowest"
            if spent <= 1.5 * cost:
                return None
        if spent + cost + max(cost, best.cost) <= self.free_seconds:
            return None
        if trial.name in LOW_RANK and self._low_rank() > 1.2:
            return "the errors of low-rank methods are far above the lowest"
        if (
            # The first bound holds if this one is no better, the second if it is.
            spent + cost + best.cost <= MAX_COST_RATIO * best.cost
            or 2 * spent <= cost <= max(self.free_seconds, MAX_COST_RATIO * spent)
        ):
            return None
        return (
            f"would take about {seconds:.2g} s, too long compared with {best.name}, "
            f"which takes {best.seconds:.2g} s"
        )

    def _speed(self) -> float:
        """Measured seconds per second of estimated cost; one before any trial."""
        done = [(t.seconds, t.cost) for t in self.trials if t.fitted is not None]
        seconds, cost = (
            1.0 + sum(part)
            for part in zip(*[(s, c or s) for s, c in done], strict=True)
        )
        return seconds / cost

    def std_error(self, differences: np.ndarray) -> float:
        """Standard error of the mean difference; the cells of a row count as one."""
        sums = np.bincount(self.rows, differences - differences.mean())
        return float(np.sqrt(np.square(sums).sum()) / len(differences))

    def choose(self, max_members: int) -> dict[str, float]:
        """Names and weights of the best candidate, or of a stack."""
        judged = self.judged
        best = judged[0]
        tied = [t for t in judged if self.is_tied(t, best)]
        if TREES in {t.name for t in tied}:  # more trees are the safer choice
            tied = [t for t in tied if t.name != FEW_TREES]
        chosen = min(tied, key=lambda t: t.cost or 0.0)  # the first of unknown cost
        pool = self._affordable(best)
        if len(pool) > 1 < max_members:
            P = np.stack([t.values for t in pool], 1)
            gain = chosen.losses - self._crossed(P, max_members)
            needed = min(self.std_error(gain), MIN_GAIN_SHARE * chosen.losses.mean())
            if isinstance(chosen.estimator, MeanCompleter):
                needed = 2 * self.std_error(gain)
            if gain.mean() > needed:
                weights = stack_weights(P, self.truth, max_members)
                named = zip(pool, weights, strict=True)
                return {t.name: float(w) for t, w in named if w}
        return {chosen.name: 1.0}

    def _affordable(self, best: Trial) -> list[Trial]:
        """The best, and those of the next that there is time to fit again."""
        spent = sum(t.cost or 0.0 for t in self.trials if t.fitted is not None)
        total, seconds = spent + (best.cost or 0.0), best.seconds
        most = max(self.free_seconds, MAX_COST_RATIO * (best.cost or 0.0))
        pool = [best]
        others = self.judged[1:STACK_POOL_SIZE]
        for trial in sorted(others, key=lambda t: (t.cost or 0.0, t.seconds)):
            total, seconds = total + (trial.cost or 0.0), seconds + trial.seconds
            if total <= most and seconds <= self.seconds_left:
                pool.append(trial)
        return pool

    def is_tied(self, trial: Trial, best: Trial) -> bool:
        """Within two standard errors of the best, and a hundredth of its error.

        Column means only need the former: others have to be better beyond doubt.
        """
        behind = trial.losses - best.losses
        close = self.error(trial) <= TIE_RATIO * self.error(best)
        close |= isinstance(trial.estimator, MeanCompleter)
        return bool(close and behind.mean() <= 2 * self.std_error(behind))

    def _crossed(self, P: np.ndarray, n_members: int) -> np.ndarray:
        """Losses of a stack on fifths of the cells, with weights from the others."""
        y = self.truth
        fold = np.arange(len(y)) * 5 // len(y)
        guess = np.empty(len(y))
        for k in range(5):
            out = fold == k
            guess[out] = P[out] @ stack_weights(P[~out], y[~out], n_members)
        return LOSSES[self.metric](guess - y)


def stack_weights(P: np.ndarray, y: np.ndarray, n_members: int) -> np.ndarray:
    """Nonnegative weights of sum one, few above zero, that make ``|P w - y|^2`` small.

    They minimize it over all columns of ``P``, then over the ``n_members`` columns with
    the largest weights.
    """
    if not len(y):
        return np.eye(P.shape[1])[0]
    weights = _convex(P, y)
    kept = np.argsort(-weights, kind="stable")[:n_members]
    kept = kept[weights[kept] >= MIN_STACK_WEIGHT]
    found = np.zeros(P.shape[1])
    found[kept] = _convex(P[:, kept], y)
    return found


def _convex(P: np.ndarray, y: np.ndarray) -> np.ndarray:
    unit = np.abs(P).max() or 1.0
    one = SUM_TO_ONE_WEIGHT * len(y) ** 0.5
    weights, _ = nnls(
        np.vstack([P / unit, np.full(P.shape[1], one)]), np.append(y / unit, one)
    )
    return weights / weights.sum()
