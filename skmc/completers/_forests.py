"""Trees as arrays, and models of each column given the others."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils import gen_batches
from sklearn.utils.parallel import Parallel, delayed

from skmc.linalg import threads_for, work_of
from skmc.loop import FitTasks, seconds_left

if TYPE_CHECKING:
    from skmc.completers.trees import TreesCompleter

FOLDS = 5  # of rows; each tree is trained without one of them
MAX_SAMPLES = 10_000  # rows that a tree is trained on
ROWS_AT_ONCE = 1024  # number of rows that traverse the trees together


class Regressor(Protocol):
    """A regressor of scikit-learn."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> object: ...
    def predict(self, X: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Trees:
    """Trees as plain arrays, with the nodes of all trees in one list.

    A leaf is its own child, and its threshold is its value.
    """

    roots: np.ndarray  # (n_trees,)
    cols: np.ndarray  # (n_nodes,), the column that a node compares
    thresholds: np.ndarray  # (n_nodes,)
    children: np.ndarray  # (2, n_nodes), right and left
    nan_goes_left: np.ndarray  # (n_nodes,)

    @staticmethod
    def arrays_of(trees: list[Any], cols: np.ndarray) -> dict[str, np.ndarray]:
        """Join trees of scikit-learn that were trained on some columns."""
        counts = [tree.node_count for tree in trees]
        roots = np.cumsum([0, *counts[:-1]])
        left = np.concatenate([tree.children_left for tree in trees])
        right = np.concatenate([tree.children_right for tree in trees])
        values = np.concatenate([tree.value[:, 0, 0] for tree in trees])
        features = np.concatenate([tree.feature for tree in trees])
        thresholds = np.concatenate([tree.threshold for tree in trees])
        nan_goes_left = np.concatenate([tree.missing_go_to_left for tree in trees])
        leaf = left < 0
        children = np.repeat(roots, counts) + np.stack([right, left])
        return {
            "roots": roots.astype(np.int32),
            "cols": cols[np.where(leaf, 0, features)].astype(np.int32),
            "thresholds": np.where(leaf, values, thresholds),
            "children": np.where(leaf, np.arange(len(leaf)), children).astype(np.int32),
            "nan_goes_left": nan_goes_left.astype(bool),
        }

    def leaves(self, X: np.ndarray, roots: np.ndarray | None = None) -> np.ndarray:
        """Find the leaf of each row in each tree, ``(n_trees, n_rows)``.

        ``X`` has the shape (n_rows, n_cols), or (n_trees, n_rows, n_cols) with inputs
        of its own for each tree. ``roots`` of shape (n_trees, n_rows) select a tree for
        each row.
        """
        node = self.roots[:, None] if roots is None else roots
        node = np.broadcast_to(node, (len(node), X.shape[-2]))
        own = (np.arange(len(node))[:, None],) if X.ndim == 3 else ()
        at = (*own, np.arange(X.shape[-2]))
        while True:
            cells = X[(*at, self.cols[node])]
            left = (cells <= self.thresholds[node]) | (
                np.isnan(cells) & self.nan_goes_left[node]
            )
            child = self.children[left.view(np.uint8), node]
            if (child == node).all():
                return node
            node = child


@dataclass(frozen=True)
class Forest(Trees):
    """An ensemble, and the rows on which each of its trees was trained."""

    in_bag: np.ndarray  # (n_trees, n_rows / 8), one bit for each fitted row

    @classmethod
    def grown(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        cols: np.ndarray,
        n_estimators: int,
        rng: np.random.RandomState,
    ) -> Forest:
        """Train each tree on the rows in which ``y`` is observed, without one fold."""
        rows = rng.permutation(np.flatnonzero(~np.isnan(y)))
        n_folds = min(FOLDS, n_estimators, len(rows))
        trees, in_bag = [], np.zeros((n_estimators, len(y)), bool)
        y = on_grid(y)
        for number, bag in enumerate(in_bag):
            out = np.arange(len(rows)) % n_folds == number % n_folds
            kept = rows if n_folds == 1 else rows[~out]
            if len(kept) > MAX_SAMPLES:
                kept = rng.choice(kept, MAX_SAMPLES, replace=False)
            tree = ExtraTreeRegressor(random_state=rng.randint(2**31))
            trees.append(tree.fit(X[np.ix_(kept, cols)], y[kept]).tree_)
            bag[kept] = True
        in_bag = np.packbits(in_bag, axis=1)
        return cls(**cls.arrays_of(trees, cols), in_bag=in_bag)

    def predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Average the trees; for fitted rows, the trees that were not trained on them.

        ``own`` holds the positions of the rows in the fitted matrix, -1 for new rows.
        If all trees were trained on a row, all of them are averaged.
        """
        parts = gen_batches(len(X), ROWS_AT_ONCE)
        return np.concatenate([self._predict(X[part], own[part]) for part in parts])

    def draw(self, X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """The value of a random tree for each row; ``X`` is (n_draws, n_rows, n_cols).

        A leaf holds the rows that no split separates, mostly a single one.
        """
        roots = self.roots[rng.randint(len(self.roots), size=X.shape[:2])]
        return self.thresholds[self.leaves(X, roots)]

    def _predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        node = self.leaves(X)
        seen = (self.in_bag[:, own // 8] >> (7 - own % 8)) & 1
        votes = (seen == 0) | (own < 0)
        votes |= ~votes.any(0)
        return np.average(self.thresholds[node], 0, votes)


@dataclass(frozen=True)
class Fitted:
    """A fitted regressor and the columns that it was trained on."""

    regressor: Any
    cols: np.ndarray

    def predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        return self.regressor.predict(X[:, self.cols])


def on_grid(values: np.ndarray) -> np.ndarray:
    """Standardized values that a tree is trained on, rounded to multiples of 2**-36.

    Their sums have no rounding errors. So splits by different columns into the same
    parts are equally good, and the seed decides between them, not the order of the
    rows, the units of the data or the instructions of the processor.
    """
    return np.round(values.astype(float) * 2.0**36) / 2.0**36


Models = dict[int, "Forest | Fitted"]  # by predicted column


def train(
    completer: TreesCompleter,
    X: np.ndarray,
    inputs: np.ndarray,
    varies: np.ndarray,
    rng: np.random.RandomState,
    tasks: FitTasks,
) -> tuple[Models, bool]:
    """Train one model for each varying column; return whether a user interrupted.

    Columns that would begin after the time limit get none, except for the first.
    """
    end = time.perf_counter() + seconds_left()  # workers cannot read the limit
    seeds = rng.randint(2**31, size=len(varies))
    # Each tree is a pass over the inputs. The work of other regressors is unknown.
    passes = completer.n_estimators if isinstance(completer.estimator, str) else inf
    alone = effective_n_jobs(completer.n_jobs) == 1  # each worker has one thread
    work = passes * work_of(inputs.size) if alone else 0

    def trained(col: int) -> Forest | Fitted | None:
        if time.perf_counter() >= end and col != cols[0]:
            return None
        y, n_trees = X[:, col], completer.n_estimators
        others = np.flatnonzero(varies & (np.arange(X.shape[1]) != col))
        with threads_for(work):
            if completer.estimator == "extra_trees":
                rng = np.random.RandomState(seeds[col])
                return Forest.grown(inputs, y, others, n_trees, rng)
            seen = ~np.isnan(y)
            others = others[_varies(inputs[np.ix_(seen, others)])]
            regressor = _regressor(completer, int(seeds[col]))
            if not len(others):
                regressor = DummyRegressor()
            regressor.fit(inputs[np.ix_(seen, others)], y[seen])
            return Fitted(regressor, others)

    cols = np.flatnonzero(varies).tolist()
    if len(cols) < 2:
        return {}, False
    models: Models = {}
    try:
        workers = Parallel(completer.n_jobs, prefer="threads", return_as="generator")
        found = workers(delayed(trained)(col) for col in cols)
        for col, model in zip(cols, found, strict=True):
            if model is not None:
                models[col] = model
            tasks.done("column")
    except KeyboardInterrupt:
        return models, True
    return models, False


def _varies(X: np.ndarray) -> np.ndarray:
    """Find columns with two different values, of which NaN is one.

    Some regressors raise errors for the others.
    """
    nan = np.isnan(X)
    differ = np.fmax.reduce(X, 0) > np.fmin.reduce(X, 0)
    return differ | (nan.any(0) & ~nan.all(0))


def _regressor(completer: TreesCompleter, seed: int) -> Any:
    if completer.estimator == "boosting":
        return HistGradientBoostingRegressor(
            max_iter=completer.n_estimators, random_state=seed
        )
    regressor = clone(completer.estimator)
    free = [
        name
        for name, value in regressor.get_params().items()
        if name.endswith("random_state") and value is None
    ]
    return regressor.set_params(**dict.fromkeys(free, seed))


def predict(models: Models, inputs: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Predict every cell; columns without a model get zero, the mean."""
    whole = np.zeros(inputs.shape)
    for col, model in models.items():
        whole[:, col] = model.predict(inputs, own)
    return whole
