"""Ensembles of trees that take missing values as they are."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed

from skmc.base import (
    BaseCompleter,
    CompleterTags,
    FitTasks,
    Outcome,
    Priors,
    memory_of,
)
from skmc.cells import Observed, Scaling
from skmc.completers.costs import Cost, Variant
from skmc.linalg import seed_of, threads_for
from skmc.loop import seconds_left, time_limit
from skmc.new_rows import RowIndex

FOLDS = 5  # each tree is trained without the rows of one fold
MAX_SAMPLES = 10_000  # rows that a tree is trained on
BYTES_PER_NODE = 21
ROWS_AT_ONCE = 1024  # that go through the trees together
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class _Forest:
    """Trees as plain arrays, and which rows each tree was trained on.

    The nodes of all trees are in one list. A leaf is its own child, and its threshold
    is its value.
    """

    roots: np.ndarray  # (n_trees,)
    cols: np.ndarray  # (n_nodes,), the column that a node compares
    thresholds: np.ndarray  # (n_nodes,)
    children: np.ndarray  # (2, n_nodes), right and left
    nan_goes_left: np.ndarray  # (n_nodes,)
    in_bag: np.ndarray  # (n_trees, n_rows / 8), one bit for each fitted row

    @classmethod
    def grown(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        cols: np.ndarray,
        n_estimators: int,
        rng: np.random.RandomState,
    ) -> _Forest:
        """Trained on the rows in which ``y`` is observed, each tree without a fold."""
        rows = rng.permutation(np.flatnonzero(~np.isnan(y)))
        n_folds = min(FOLDS, n_estimators, len(rows))
        trees, in_bag = [], np.zeros((n_estimators, len(y)), bool)
        for number, bag in enumerate(in_bag):
            out = np.arange(len(rows)) % n_folds == number % n_folds
            kept = rows if n_folds == 1 else rows[~out]
            if len(kept) > MAX_SAMPLES:
                kept = rng.choice(kept, MAX_SAMPLES, replace=False)
            tree = ExtraTreeRegressor(random_state=rng.randint(2**31))
            trees.append(tree.fit(X[np.ix_(kept, cols)], y[kept]).tree_)
            bag[kept] = True
        counts = [tree.node_count for tree in trees]
        roots = np.cumsum([0, *counts[:-1]])
        left = np.concatenate([tree.children_left for tree in trees])
        right = np.concatenate([tree.children_right for tree in trees])
        values = np.concatenate([tree.value.ravel() for tree in trees])
        features = np.concatenate([tree.feature for tree in trees])
        thresholds = np.concatenate([tree.threshold for tree in trees])
        nan_goes_left = np.concatenate([tree.missing_go_to_left for tree in trees])
        leaf = left < 0
        children = np.repeat(roots, counts) + np.stack([right, left])
        return cls(
            roots=roots.astype(np.int32),
            cols=cols[np.where(leaf, 0, features)].astype(np.int32),
            thresholds=np.where(leaf, values, thresholds),
            children=np.where(leaf, np.arange(len(leaf)), children).astype(np.int32),
            nan_goes_left=nan_goes_left.astype(bool),
            in_bag=np.packbits(in_bag, axis=1),
        )

    def predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        """The mean over the trees, for fitted rows over those that have not seen them.

        ``own`` holds the positions of the rows in the fitted matrix, -1 for new rows.
        Where all trees have seen a row, the mean is over all of them.
        """
        starts = range(0, len(X), ROWS_AT_ONCE)
        parts = [slice(start, start + ROWS_AT_ONCE) for start in starts]
        return np.concatenate([self._predict(X[part], own[part]) for part in parts])

    def _predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        rows = np.arange(len(X))
        node = np.repeat(self.roots[:, None], len(X), 1)  # (n_trees, n_rows)
        while True:
            cells = X[rows, self.cols[node]]
            left = (cells <= self.thresholds[node]) | (
                np.isnan(cells) & self.nan_goes_left[node]
            )
            child = self.children[left.view(np.uint8), node]
            if (child == node).all():
                break
            node = child
        seen = (self.in_bag[:, own // 8] >> (7 - own % 8)) & 1
        votes = (seen == 0) | (own < 0)
        votes |= ~votes.any(0)
        return np.average(self.thresholds[node], 0, votes)


@dataclass(frozen=True)
class _Fitted:
    """A fitted regressor and the columns that it was trained on."""

    regressor: Any
    cols: np.ndarray

    def predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        return self.regressor.predict(X[:, self.cols])


Models = dict[int, "_Forest | _Fitted"]  # by the column that they predict


class TreesCompleter(BaseCompleter):
    r"""Each column predicted from the others by trees that know missing values.

    For each column, an ensemble of regression trees is trained on the rows in which
    that column is observed. Its inputs are the other columns as they are: where an
    input is missing, each split has learned which side the row goes to. There is no
    chain, so a new row is completed by one prediction per missing cell. Columns that do
    not vary are neither predicted nor used as inputs.

    Parameters
    ----------
    estimator : {"extra_trees", "boosting"} or regressor, default="extra_trees"
        "extra_trees" grows each tree as `sklearn.tree.ExtraTreeRegressor` does, on four
        fifths of the rows, at most 10 000. "boosting" is
        `sklearn.ensemble.HistGradientBoostingRegressor`. A regressor of your own must
        accept NaN. It is cloned for each column, and given a ``random_state`` where
        its own is None. All are trained on standardized columns.
    n_estimators : int >= 1, default=50
        Trees per column; ignored for a regressor of your own.
    max_iter : int >= 1, default=1
        Rounds. 1 is the form without a chain. In each further round, the ensembles are
        trained anew on the other columns as the previous round completed them, and
        `transform` applies the same rounds. As in missForest, a round that changes the
        missing cells more than the previous one is discarded and is the last.
    {max_time}
        Columns that have no trees by then are completed by their means; an unfinished
        further round is discarded.
    n_jobs : int or None, default=None
        Columns trained at the same time, in threads; -1 is all cores. The result does
        not depend on it.
    random_state : int, RandomState instance or None, default=None
        Draws the rows and the splits of the trees.
    {reading}

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell. With "extra_trees", the value of an observed
        cell is out-of-bag: the mean over the trees that were not trained on its row.
        Other estimators give their prediction, although they have seen the cell.
    n_iter_ : int
        Rounds that were kept.
    {input}

    Notes
    -----
    A fit of ``n`` rows and ``d`` columns takes time in proportion to
    ``d**2 n log(n) n_estimators`` per round. "extra_trees" stores about
    ``34 d n n_estimators`` bytes per round, where ``n`` is at most 12 500: 34 MB for
    1000 rows and 20 columns. `fit` raises a `MemoryError` at once if this exceeds the
    memory of the machine. "boosting" stores at most 31 leaves per tree for any number
    of rows; from about ten thousand rows on it is much faster.

    For fitted rows, `score` without the truth uses the out-of-bag trees only. Fits with
    "extra_trees" can be saved by `skmc.persistence.save`. Other estimators are objects
    of scikit-learn, for which `save` raises a `TypeError`.

    All columns are numbers here; there are no classifiers. For categories, use
    `skmc.MixedCompleter`, which encodes them.

    References
    ----------
    Geurts, Ernst, Wehenkel. Extremely randomized trees. Machine Learning 63 (2006).

    Stekhoven, Bühlmann. MissForest: non-parametric missing value imputation for
    mixed-type data. Bioinformatics 28 (2012), for the rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import TreesCompleter
    >>> t = np.linspace(0, 1, 200)
    >>> X = np.stack([t, t > 0.5, np.abs(t - 0.5)], 1)
    >>> X[180, 1:] = np.nan
    >>> TreesCompleter(random_state=0).fit_transform(X)[180].round(1)
    array([0.9, 1. , 0.4])
    """

    completer_tags = CompleterTags(
        recovers=0.9, unweighted="its trees are fitted to rows, not to cells"
    )
    advice = "tables whose columns depend on each other nonlinearly, new rows"
    cost = Cost(0.3, columns=0.002, trees=7e-6)
    stacked = (
        Variant("trees"),
        Variant(
            "trees, 3 rounds", {"max_iter": 3}, Cost(0.0, columns=0.06, trees=1.2e-5)
        ),
        Variant(
            "boosting", {"estimator": "boosting"}, Cost(0.0, columns=0.01, trees=6e-6)
        ),
    )
    _parameter_constraints: ClassVar[dict] = {
        "estimator": [
            StrOptions({"extra_trees", "boosting"}),
            HasMethods(["fit", "predict"]),
        ],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = "extra_trees",
        *,
        n_estimators: int = 50,
        max_iter: int = 1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        keep_observed: bool = True,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _fit_cells(self, cells: np.ndarray, priors: Priors, y: Any = None) -> Outcome:
        self._refuse_too_large(priors)
        n_tasks = priors.shape[1] * self.max_iter
        with time_limit(self.max_time), FitTasks(self, cells, y, n_tasks) as tasks:
            return self._fit_rounds(cells, priors, tasks)

    def _fit_rounds(
        self, cells: np.ndarray, priors: Priors, tasks: FitTasks
    ) -> Outcome:
        values = torch.from_numpy(np.array(cells, float))
        data = Observed(values, ~torch.isnan(values))
        scaling = Scaling.of(data, "columns")
        X = _scaled(cells, scaling)
        varies = scaling.scale.numpy().ravel() > 0
        varies &= priors.varies
        rng = np.random.RandomState(seed_of(self.random_state) % 2**32)
        own = np.arange(len(cells))
        rounds: list[Models] = []
        whole, inputs, last = np.zeros(X.shape), X, np.inf
        interrupted, advice = False, None
        while len(rounds) < self.max_iter and not (interrupted or advice):
            models, interrupted = self._train(X, inputs, varies, rng, tasks)
            advice = self._out_of_time(len(rounds), len(models), varies)
            late = advice is not None and len(models) < varies.sum()
            if rounds and (interrupted or late):
                break
            values_now = _predict(models, inputs, own)
            filled = _filled(X, values_now)
            if rounds:
                change = float(np.square(filled - inputs).sum(dtype=float))
                if change >= last:
                    break
                last = change
            rounds.append(models)
            whole, inputs = values_now, filled
        return Outcome(
            {
                "reconstruction_": priors.fill(cells, _undone(whole, scaling)).astype(
                    cells.dtype
                ),
                "n_iter_": len(rounds),
                "_rounds": rounds,
                "_scaling": scaling,
                "_rows": RowIndex(cells),
            },
            advice=advice,
            interrupted=interrupted,
        )

    def _out_of_time(
        self, n_rounds: int, n_models: int, varies: np.ndarray
    ) -> str | None:
        """A warning if ``max_time`` has passed in a round, and anything is left."""
        if seconds_left() > 0:
            return None
        n_cols, limit = int(varies.sum()), f"max_time={self.max_time:g} s"
        if n_models < n_cols and n_rounds == 0:
            return (
                f"trained trees for {n_models} of {n_cols} columns until {limit} had "
                "passed, and completes the others by their means; raise max_time."
            )
        n_rounds += n_models == n_cols
        if n_rounds < self.max_iter:
            return (
                f"stopped after {n_rounds} of {self.max_iter} rounds, at {limit}; "
                "raise max_time."
            )
        return None

    def _refuse_too_large(self, priors: Priors) -> None:
        n_rows, n_cols = priors.shape
        leaves = min((1 - 1 / FOLDS) * n_rows, MAX_SAMPLES)
        size = 2 * leaves * self.n_estimators * n_cols * BYTES_PER_NODE
        if self.estimator == "extra_trees" and size > memory_of(torch.device("cpu")):
            raise MemoryError(
                f"{self.n_estimators} trees for each of {n_cols} columns take up to "
                f"{size / 2**30:.0f} GiB. Use estimator='boosting', fewer "
                "n_estimators, or FactorizationCompleter."
            )

    def _train(
        self,
        X: np.ndarray,
        inputs: np.ndarray,
        varies: np.ndarray,
        rng: np.random.RandomState,
        tasks: FitTasks,
    ) -> tuple[Models, bool]:
        """One model for each column that varies, and whether a user interrupted.

        Columns that would begin after the time limit have none, except for the first.
        """
        end = time.perf_counter() + seconds_left()  # workers do not know the limit
        seeds = rng.randint(2**31, size=len(varies))
        # Workers have one thread each; without any, scikit-learn starts its own.
        work = inf if effective_n_jobs(self.n_jobs) == 1 else 0

        def trained(col: int) -> _Forest | _Fitted | None:
            if time.perf_counter() >= end and col != cols[0]:
                return None
            with threads_for(work):
                return grown(col)

        def grown(col: int) -> _Forest | _Fitted:
            others = np.flatnonzero(varies & (np.arange(X.shape[1]) != col))
            if self.estimator == "extra_trees":
                rng = np.random.RandomState(seeds[col])
                return _Forest.grown(inputs, X[:, col], others, self.n_estimators, rng)
            seen = ~np.isnan(X[:, col])
            regressor = self._regressor(int(seeds[col]))
            regressor.fit(inputs[np.ix_(seen, others)], X[seen, col])
            return _Fitted(regressor, others)

        cols = np.flatnonzero(varies).tolist()
        if len(cols) < 2:
            return {}, False
        models: Models = {}
        try:
            workers = Parallel(self.n_jobs, prefer="threads", return_as="generator")
            found = workers(delayed(trained)(col) for col in cols)
            for col, model in zip(cols, found, strict=True):
                if model is not None:
                    models[col] = model
                tasks.done("column")
        except KeyboardInterrupt:
            return models, True
        return models, False

    def _regressor(self, seed: int) -> Any:
        if self.estimator == "boosting":
            return HistGradientBoostingRegressor(
                max_iter=self.n_estimators, random_state=seed
            )
        regressor = clone(self.estimator)
        free = [
            name
            for name, value in regressor.get_params().items()
            if name.endswith("random_state") and value is None
        ]
        return regressor.set_params(**dict.fromkeys(free, seed))

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        position = self._rows.find(cells)
        completed = self.reconstruction_[position].astype(float)
        new = position < 0
        if new.any():
            completed[new] = self._predicted(cells[new], position[new])
        return completed

    def _complete_hidden(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        # Trees that were trained on a fitted row have seen what is hidden from it here.
        own = self._rows.find(cells)
        return self._predicted(np.where(hidden, cells.dtype.type(np.nan), cells), own)

    def _predicted(self, cells: np.ndarray, own: np.ndarray) -> np.ndarray:
        X = inputs = _scaled(cells, self._scaling)
        whole = np.zeros(X.shape)
        for models in self._rounds:
            whole = _predict(models, inputs, own)
            inputs = _filled(X, whole)
        return _undone(whole, self._scaling)


def _scaled(cells: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardized cells in the precision of scikit-learn's trees."""
    scaled = scaling.standardise(torch.from_numpy(np.array(cells, float))).numpy()
    scaled = np.where(np.isnan(cells), np.nan, scaled)
    return np.clip(scaled, -LARGEST, LARGEST).astype(np.float32)


def _undone(scaled: np.ndarray, scaling: Scaling) -> np.ndarray:
    return scaling.undo(torch.from_numpy(scaled)).numpy()


def _predict(models: Models, inputs: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The value of every cell; zero, the mean, in columns without a model."""
    whole = np.zeros(inputs.shape)
    for col, model in models.items():
        whole[:, col] = model.predict(inputs, own)
    return whole


def _filled(X: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), whole, X).astype(np.float32)
