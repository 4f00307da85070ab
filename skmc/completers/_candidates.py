"""What `AutoCompleter` tries, about how long each takes, and how they are judged."""

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

NARROW = 60  # columns of a table, which can be chained one by one
LINES = 4  # rows, or columns, that can be told from those in random order
ALIKE_BESIDE = 0.55
SPARSE = 0.35  # observed, as ratings are

SURE = 1e4  # weight of the sum of a stack's weights being one
FREE = 1 / 20  # of max_time, that nobody asks a reason for
MOST = 3.0  # times the cost of the best candidate
LEAST = 0.05  # weight in a stack
POOL = 6  # of which a stack is made
SMALL_GAIN = 0.01  # of the mean loss
ALIKE = 1.01  # times the lowest error
LOW_RANK = ("SVD", "IALM", "TNNR", "Soft-Impute")  # of which the first is the cheapest
# A dear one is worth its time where the error of a cheap one is so near to the lowest.
TREES, FEW_TREES = "chained, trees", "chained, few trees"
SCOUTS = {TREES: (FEW_TREES, 1.15), "patch CNN": ("KNN", 2.0)}
Part = tuple[Entries, Entries]
LOSSES: dict[str, Callable] = {"mae": np.abs, "rmse": np.square}


class Candidate(NamedTuple):
    """``seconds`` is about what a fit takes on one core, None where nobody knows."""

    name: str
    estimator: Any
    seconds: float | None = None


def family(cells: np.ndarray, seed: int, device) -> list[Candidate]:
    """The candidates for a matrix, about in order of cost.

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
            0.8 + 8e-5 * size + 1.5e-7 * cubic,
        ),
        Candidate(
            "AIR",
            AIRCompleter(**drawn),
            0.1 + 2.2e-6 * (m * m + n * n) + 1.1e-7 * cubic,
        ),
    ]
    if n <= NARROW:
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
            Candidate("DMF, TV", DMFCompleter("tv", **drawn), 0.2 + 6e-5 * size),
            Candidate("patch CNN", PatchCNNCompleter(**drawn), 0.2 + 3.5e-4 * size),
        ]
    if share < SPARSE:
        found += [
            Candidate(
                "Factorization", FactorizationCompleter(**drawn), 0.5 + 5e-5 * size
            ),
            Candidate(
                "Bayesian", BayesianFactorizationCompleter(**drawn), 0.2 + 3e-5 * size
            ),
        ]
    # On most tables trees are best; whether here the few will tell.
    return sorted(
        found, key=lambda c: (c.seconds or 0.0) / (10 if c.name == FEW_TREES else 1)
    )


def smooth(cells: np.ndarray) -> bool:
    """Whether cells that lie beside each other are alike, as in a picture.

    They are if their differences, over those of rows (columns) in random order, are
    below 0.55 in the geometric mean of the two directions.
    """
    rng, product = np.random.RandomState(0), 1.0
    for X in (cells, cells.T):
        steps = []
        for rows in (X, X[rng.permutation(len(X))]):
            differences = np.abs(np.diff(rows, axis=0))
            known = differences[~np.isnan(differences)]
            steps.append(known.mean() if len(known) else 0.0)
        if len(X) >= LINES and steps[1] > 0:
            product *= steps[0] / steps[1]
    return bool(product < ALIKE_BESIDE**2)


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
    ended: bool = False
    values: np.ndarray = field(default_factory=lambda: np.empty(0))  # held-out cells
    losses: np.ndarray = field(default_factory=lambda: np.empty(0))

    def run(self, parts: Sequence[Part], loss: Callable) -> None:
        """Fit and judge on each of ``parts``; a failure becomes the status."""
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
                    raise ValueError("it predicts what is not finite")
                truth = np.concatenate([test.values for _, test in parts])
                self.losses = loss(self.values - truth)
            except Exception as failure:  # a method that fails is a result, too
                self.status = f"failed: {failure!r}"
        self.n_warnings, self.ended = len(caught), True
        self.seconds = time.perf_counter() - start


class Search:
    """Tries candidates on the same held-out cells and chooses among them.

    Parameters
    ----------
    parts : sequence of (Entries, Entries)
        Cells of one matrix to fit to, and to judge by.
    metric : {"mae", "rmse"}
    max_time : float or None
        Seconds from now on.
    """

    def __init__(self, parts: Sequence[Part], metric: str, max_time):
        self.parts, self.metric = parts, metric
        self.truth = np.concatenate([test.values for _, test in parts] or [[]])
        self.rows = np.concatenate([test.rows for _, test in parts] or [[]])
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
        """The trials that went well, the best ones first."""
        return sorted((t for t in self.trials if len(t.losses)), key=self.error)

    def error(self, trial: Trial) -> float:
        """Over the held-out cells; NaN for a trial that did not go well."""
        if not len(trial.losses):
            return np.nan
        mean = float(trial.losses.mean())
        return mean**0.5 if self.metric == "rmse" else mean

    def _next(self, waiting: list[Candidate]) -> int:
        """The first, but what is of low rank comes last if that does not go well."""
        if self._low_rank() > 1.05:
            for k, candidate in enumerate(waiting):
                if candidate.name not in LOW_RANK:
                    return k
        return 0

    def _low_rank(self) -> float:
        """The best error of low rank over the best of all."""
        errors = {trial.name: self.error(trial) for trial in self.judged}
        kin = [error for name, error in errors.items() if name in LOW_RANK]
        return min(kin) / (min(errors.values()) or 1.0) if kin else 1.0

    def _against(self, trial: Trial) -> str | None:
        """Why this one is not to be tried."""
        judged = self.judged
        if not judged:
            return None
        best, cost, left = judged[0], trial.cost, self.left
        speed = self._speed()
        seconds = 0.0 if cost is None else cost * speed
        if left <= 0:
            return "no time is left"
        if seconds > left:
            return f"would take about {seconds:.2g} s, {max(left, 0):.2g} s are left"
        if cost is None or best.cost is None:
            return None
        spent = sum(t.cost or 0.0 for t in self.trials if t.fitted is not None)
        if trial.name in SCOUTS:
            name, near = SCOUTS[trial.name]
            error = next((self.error(t) for t in judged if t.name == name), np.inf)
            if error > near * self.error(best):
                return f"{name} is not near the best"
            if spent <= 1.5 * cost:
                return None
        if spent + cost + max(cost, best.cost) <= self.free:
            return None
        if trial.name in LOW_RANK and self._low_rank() > 1.2:
            return "what is of low rank is not near the best"
        if (
            spent + cost + best.cost <= MOST * best.cost  # even if it is no better
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
        sums = np.bincount(self.rows, differences - differences.mean())
        return float(np.sqrt(np.square(sums).sum()) / len(differences))

    def choose(self, max_members: int) -> dict[str, float]:
        """Names and weights of the best, or of a stack of the best ones."""
        judged = self.judged
        best = judged[0]
        equals = [t for t in judged if self.as_good(t, best)]
        if TREES in {t.name for t in equals}:  # of which many are the safer choice
            equals = [t for t in equals if t.name != FEW_TREES]
        chosen = min(equals, key=lambda t: t.cost or 0.0)  # the first where not known
        pool = self._affordable(best)
        if len(pool) > 1 < max_members:
            P = np.stack([t.values for t in pool], 1)
            gain = chosen.losses - self._crossed(P, max_members)
            needed = min(self.std_error(gain), SMALL_GAIN * chosen.losses.mean())
            if isinstance(chosen.estimator, MeanCompleter):
                needed = 2 * self.std_error(gain)
            if gain.mean() > needed:
                weights = stack_weights(P, self.truth, max_members)
                named = zip(pool, weights, strict=True)
                return {t.name: float(w) for t, w in named if w}
        return {chosen.name: 1.0}

    def _affordable(self, best: Trial) -> list[Trial]:
        """The best and some of the next which there is time to fit again."""
        spent = sum(t.cost or 0.0 for t in self.trials if t.fitted is not None)
        total, seconds = spent + (best.cost or 0.0), best.seconds
        most = max(self.free, MOST * (best.cost or 0.0))
        pool = [best]
        others = self.judged[1:POOL]
        for trial in sorted(others, key=lambda t: (t.cost or 0.0, t.seconds)):
            total, seconds = total + (trial.cost or 0.0), seconds + trial.seconds
            if total <= most and seconds <= self.left:
                pool.append(trial)
        return pool

    def as_good(self, trial: Trial, best: Trial) -> bool:
        """Within two standard errors of the best, and a hundredth of its error.

        The latter is not asked of means, which have to be beaten beyond doubt.
        """
        behind = trial.losses - best.losses
        near = self.error(trial) <= ALIKE * self.error(best)
        near |= isinstance(trial.estimator, MeanCompleter)
        return bool(near and behind.mean() <= 2 * self.std_error(behind))

    def _crossed(self, P: np.ndarray, n_members: int) -> np.ndarray:
        """Losses of a stack on fifths of the cells, weights from the others."""
        y = self.truth
        fold = np.arange(len(y)) * 5 // len(y)
        guess = np.empty(len(y))
        for k in range(5):
            out = fold == k
            guess[out] = P[out] @ stack_weights(P[~out], y[~out], n_members)
        return LOSSES[self.metric](guess - y)


def stack_weights(P: np.ndarray, y: np.ndarray, n_members: int) -> np.ndarray:
    """Weights >= 0 of sum one that make ``|P w - y|^2`` small, few above zero.

    They are the minimum over all columns of ``P``, then over the ``n_members`` columns
    that have the largest weights there.
    """
    if not len(y):
        return np.eye(P.shape[1])[0]
    weights = _convex(P, y)
    kept = np.argsort(-weights, kind="stable")[:n_members]
    kept = kept[weights[kept] >= LEAST]
    found = np.zeros(P.shape[1])
    found[kept] = _convex(P[:, kept], y)
    return found


def _convex(P: np.ndarray, y: np.ndarray) -> np.ndarray:
    unit = np.abs(P).max() or 1.0
    one = SURE * len(y) ** 0.5
    weights, _ = nnls(
        np.vstack([P / unit, np.full(P.shape[1], one)]), np.append(y / unit, one)
    )
    return weights / weights.sum()
