"""What `AutoCompleter` tries, about how long each takes, and how they are judged."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from skmc.comparison import predict_cells
from skmc.completers.air import AIRCompleter
from skmc.completers.bayesian import BayesianFactorizationCompleter
from skmc.completers.factorization import FactorizationCompleter
from skmc.completers.ialm import IALMCompleter
from skmc.completers.knn import KNNCompleter
from skmc.completers.mean import MeanCompleter
from skmc.completers.ncarl import NCARLCompleter
from skmc.completers.soft_impute import SoftImputeCompleter
from skmc.completers.svd import SVDCompleter
from skmc.completers.truncated import TNNRCompleter
from skmc.entries import Entries

NARROW = 60  # columns of a table, which can be chained one by one
SPARSE = 0.15  # observed, as ratings are

SURE = 1e4  # weight of the sum of a stack's weights being one
FREE = 1 / 24  # of max_time, that nobody asks a reason for
MOST = 3.0  # times the cost of the best candidate
LEAST = 0.05  # weight in a stack
NEAR = 1.1  # times the lowest error
ALIKE = 1.01  # likewise
SCOUT, LOW_RANK = "SVD", ("IALM", "TNNR", "Soft-Impute")
FEW = {
    "chained, trees": "chained, few trees"
}  # which tell whether the many are worth it
LOSSES: dict[str, Callable] = {"mae": np.abs, "rmse": np.square}


class Candidate(NamedTuple):
    """``seconds`` is about what a fit takes on one core, None where nobody knows."""

    name: str
    estimator: Any
    seconds: float | None = None


def family(cells: np.ndarray, seed: int, device) -> list[Candidate]:
    """The candidates for a matrix, in the order in which to try them: that of cost.

    Costs were fitted by eye to times on the evaluation data.
    """
    (m, n), share = cells.shape, float((~np.isnan(cells)).mean())
    size, cubic = m * n, m * n * min(m, n)
    on, drawn = {"device": device}, {"device": device, "random_state": seed}
    chained = {"keep_empty_features": True, "random_state": seed}
    found = [
        Candidate("means", MeanCompleter(), 1e-8 * size),
        Candidate("KNN", KNNCompleter(**on), 0.01 + 1e-9 * m * size),
        Candidate("SVD", SVDCompleter(**drawn), 0.03 + 4e-8 * cubic),
        Candidate("IALM", IALMCompleter(**on), 0.03 + 1e-7 * cubic),
        Candidate("NCARL", NCARLCompleter(**drawn), 0.1 + 1.3e-7 * cubic),
        Candidate("TNNR", TNNRCompleter(**drawn), 0.1 + 2.5e-7 * cubic),
        Candidate(
            "Soft-Impute",
            SoftImputeCompleter(**drawn),
            0.1 + 5e-5 * size + 2e-7 * cubic,
        ),
        Candidate(
            "AIR",
            AIRCompleter(**drawn),
            0.1 + 2.2e-6 * (m * m + n * n) + 1.1e-7 * cubic,
        ),
    ]
    if n <= NARROW:
        found.append(
            Candidate(
                "chained, linear",
                IterativeImputer(**chained),
                10 * n * (2e-3 + 6e-10 * size * n),
            )
        )
        for name, n_trees, n_rounds in (
            ("chained, few trees", 10, 2),
            ("chained, trees", 50, 5),
        ):
            trees = ExtraTreesRegressor(n_trees, min_samples_leaf=2, random_state=seed)
            found.append(
                Candidate(
                    name,
                    IterativeImputer(trees, max_iter=n_rounds, **chained),
                    n_rounds * n * n_trees * (6e-4 + 9e-8 * size),
                )
            )
    if share < SPARSE:
        found += [
            Candidate(
                "Factorization", FactorizationCompleter(**drawn), 0.5 + 5e-5 * size
            ),
            Candidate(
                "Bayesian", BayesianFactorizationCompleter(**drawn), 1.0 + 1e-4 * size
            ),
        ]
    return sorted(found, key=lambda c: c.seconds or 0.0)


@dataclass
class Trial:
    """What became of a candidate."""

    name: str
    estimator: Any
    cost: float | None
    status: str = "tried"
    seconds: float = 0.0
    n_warnings: int = 0
    fitted: Any = None
    values: np.ndarray = field(default_factory=lambda: np.empty(0))  # held-out cells
    losses: np.ndarray = field(default_factory=lambda: np.empty(0))

    def run(self, train: Entries, test: Entries, loss: Callable) -> None:
        """Fit to ``train``, judge by ``test``; a failure becomes the status."""
        start = time.perf_counter()
        self.fitted = clone(self.estimator)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.values = predict_cells(self.fitted, train, test)
                if not np.isfinite(self.values).all():
                    raise ValueError("it predicts what is not finite")
                self.losses = loss(self.values - test.values)
            except Exception as failure:  # a method that fails is a result, too
                self.status = f"failed: {failure!r}"
        self.n_warnings = len(caught)
        self.seconds = time.perf_counter() - start


class Search:
    """Tries candidates on the same held-out cells and chooses among them.

    Parameters
    ----------
    train, test : Entries
        Of one matrix.
    metric : {"mae", "rmse"}
    max_time : float or None
        Seconds from now on.
    """

    def __init__(self, train: Entries, test: Entries, metric: str, max_time):
        self.train, self.test, self.metric = train, test, metric
        self.max_time = np.inf if max_time is None else max_time
        self.begin = time.perf_counter()
        self.trials: list[Trial] = []
        self.interrupted = False

    @property
    def free(self) -> float:
        """Seconds of cost that nobody asks a reason for."""
        return FREE * self.max_time

    @property
    def left(self) -> float:
        return self.max_time - (time.perf_counter() - self.begin)

    def run(self, candidates: list[Candidate]) -> None:
        waiting = list(candidates)
        try:
            while waiting:
                candidate = waiting.pop(self._next(waiting))
                trial = Trial(candidate.name, candidate.estimator, candidate.seconds)
                self.trials.append(trial)
                if reason := self._against(trial):
                    trial.status = f"not tried: {reason}"
                else:
                    trial.run(self.train, self.test, LOSSES[self.metric])
        except KeyboardInterrupt:
            self.trials.pop()
            self.interrupted = True

    @property
    def judged(self) -> list[Trial]:
        """The trials that went well, the best ones first."""
        return sorted((t for t in self.trials if len(t.losses)), key=self.error)

    def error(self, trial: Trial) -> float:
        """Over the held-out cells; NaN for a trial that did not go well."""
        if not len(trial.losses):
            return np.nan
        mean = float(trial.losses.mean())
        return mean**0.5 if self.metric == "rmse" else mean

    def _next(self, waiting: list[Candidate]) -> int:
        """The first, but what is of low rank comes last if its scout is no good."""
        errors = {trial.name: self.error(trial) for trial in self.judged}
        if errors.get(SCOUT, 0) > 1.05 * min(errors.values(), default=0):
            for k, candidate in enumerate(waiting):
                if candidate.name not in LOW_RANK:
                    return k
        return 0

    def _against(self, trial: Trial) -> str | None:
        """Why this one is not to be tried."""
        judged = self.judged
        if not judged:
            return None
        best, cost, left = judged[0], trial.cost, self.left
        speed = self._speed()
        seconds = 0.0 if cost is None else cost * speed
        if seconds > left:
            return f"would take about {seconds:.2g} s, {max(left, 0):.2g} s are left"
        if cost is None or best.cost is None:
            return None
        spent = sum(t.cost or 0.0 for t in self.trials if t.fitted is not None)
        if few := FEW.get(trial.name):
            scout = next((t for t in judged if t.name == few), None)
            if scout is None or self.error(scout) > NEAR * self.error(best):
                return f"{few} are no good" if scout else f"{few} were not tried"
            if spent <= cost:
                return None
        if (
            spent + cost + max(cost, best.cost) <= self.free
            or spent + cost + best.cost <= MOST * best.cost  # even if it is no better
            or 2 * spent <= cost <= max(self.free, MOST * spent)  # if it is
        ):
            return None
        return (
            f"would take about {seconds:.2g} s, much for what {best.name} does in "
            f"{best.seconds:.2g} s"
        )

    def _speed(self) -> float:
        """Seconds per second of cost on this machine; one until more is known."""
        done = [(t.seconds, t.cost) for t in self.trials if t.fitted is not None]
        seconds, cost = (
            1.0 + sum(part)
            for part in zip(*[(s, c or s) for s, c in done], strict=True)
        )
        return seconds / cost

    def std_error(self, differences: np.ndarray) -> float:
        """Of their mean; the cells of one row count as one."""
        sums = np.bincount(self.test.rows, differences - differences.mean())
        return float(np.sqrt(np.square(sums).sum()) / len(differences))

    def choose(self, max_members: int) -> dict[str, float]:
        """Names and weights of the best, or of a stack of the best ones."""
        judged = self.judged
        best = judged[0]
        equals = [t for t in self.trials if len(t.losses) and self.as_good(t, best)]
        chosen = min(equals, key=lambda t: t.cost or 0.0)  # the first where not known
        members = [best]
        spent = sum(t.cost or 0.0 for t in self.trials if t.fitted is not None)
        most = max(self.free, MOST * (best.cost or 0.0))
        for trial in judged[1:]:
            total = spent + sum(t.cost or 0.0 for t in [*members, trial])
            seconds = sum(t.seconds for t in [*members, trial])
            if len(members) < max_members and total <= most and seconds < self.left:
                members.append(trial)
        if len(members) > 1:
            P = np.stack([t.values for t in members], 1)
            gain = chosen.losses - self._crossed(P)
            if gain.mean() > self.std_error(gain):
                weights = stack_weights(P, self.test.values)
                kept = np.where(weights < LEAST, 0, weights)
                kept /= kept.sum()
                return {
                    t.name: float(w) for t, w in zip(members, kept, strict=True) if w
                }
        return {chosen.name: 1.0}

    def as_good(self, trial: Trial, best: Trial) -> bool:
        """Within two standard errors of the best, and a hundredth of its error.

        The latter is not asked of means, which have to be beaten beyond doubt.
        """
        behind = trial.losses - best.losses
        near = self.error(trial) <= ALIKE * self.error(best)
        near |= isinstance(trial.estimator, MeanCompleter)
        return bool(near and behind.mean() <= 2 * self.std_error(behind))

    def _crossed(self, P: np.ndarray) -> np.ndarray:
        """Losses of a stack on fifths of the cells, weights from the others."""
        y = self.test.values
        fold = np.arange(len(y)) * 5 // len(y)
        guess = np.empty(len(y))
        for k in range(5):
            out = fold == k
            guess[out] = P[out] @ stack_weights(P[~out], y[~out])
        return LOSSES[self.metric](guess - y)


def stack_weights(P: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Weights >= 0 of sum one that minimise ``|P w - y|^2``."""
    if not len(y):
        return np.full(P.shape[1], 1 / P.shape[1])
    unit = np.abs(P).max() or 1.0
    A = np.vstack([P / unit, np.full(P.shape[1], SURE * len(y) ** 0.5)])
    weights, _ = nnls(A, np.append(y / unit, SURE * len(y) ** 0.5))
    return weights / weights.sum()
