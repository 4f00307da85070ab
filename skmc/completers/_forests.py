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

from skmc.completers._inputs import most_correlated
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
    """An ensemble, and the rows on which each of its trees was trained.

    It predicts one column, or all columns that represent a category, whose trees have a
    value of each of them in a leaf.
    """

    predicted: np.ndarray  # (q,), columns
    values: np.ndarray | None  # (n_nodes, q), of leaves; None is the thresholds
    in_bag: np.ndarray  # (n_trees, n_rows / 8), one bit for each fitted row

    @classmethod
    def grown(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        predicted: np.ndarray,
        cols: np.ndarray,
        n_estimators: int,
        rng: np.random.RandomState,
    ) -> Forest:
        """Train each tree on the rows in which ``y`` is observed, without one fold."""
        rows = rng.permutation(np.flatnonzero(~np.isnan(y[:, 0])))
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
        in_bag, values = np.packbits(in_bag, axis=1), None
        if len(predicted) > 1:
            values = np.concatenate([tree.value[:, :, 0] for tree in trees])
        arrays = cls.arrays_of(trees, cols)
        return cls(**arrays, predicted=predicted, values=values, in_bag=in_bag)

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
        return self._leaf_values(self.leaves(X, roots))

    def _predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        node = self.leaves(X)
        seen = (self.in_bag[:, own // 8] >> (7 - own % 8)) & 1
        votes = (seen == 0) | (own < 0)
        votes |= ~votes.any(0)
        total = (self._leaf_values(node) * votes[..., None]).sum(0)
        return total / votes.sum(0)[:, None]

    def _leaf_values(self, node: np.ndarray) -> np.ndarray:
        if self.values is None:
            return self.thresholds[node][..., None]
        return self.values[node]


@dataclass(frozen=True)
class Fitted:
    """A fitted regressor and the columns that it was trained on."""

    regressor: Any
    predicted: np.ndarray  # (1,)
    cols: np.ndarray

    def predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        return self.regressor.predict(X[:, self.cols])[:, None]


def on_grid(values: np.ndarray) -> np.ndarray:
    """Standardized values that a tree is trained on, rounded to multiples of 2**-36.

    Their sums have no rounding errors. So splits by different columns into the same
    parts are equally good, and the seed decides between them, not the order of the
    rows, the units of the data or the instructions of the processor.
    """
    return np.round(values.astype(float) * 2.0**36) / 2.0**36


Models = list["Forest | Fitted"]


@dataclass(frozen=True)
class Plan:
    """The columns that each model predicts, and those that it may use.

    Parameters
    ----------
    predicted : list of ndarray
        Columns of each model.
    inputs : list of ndarray
        Other columns, without those that represent the same cell of a table: these are
        missing where the predicted ones are.
    """

    predicted: list[np.ndarray]
    inputs: list[np.ndarray]

    @classmethod
    def of(
        cls, X: np.ndarray, varies: np.ndarray, first: np.ndarray, together: bool
    ) -> Plan:
        """Plan the models of varying columns; columns without inputs get none.

        ``X`` has standardized cells, by whose correlations inputs are chosen.
        ``first`` is, for each column, the first one of the same cell. With
        ``together``, a model predicts all columns of a cell.
        """
        used = np.flatnonzero(varies)
        label = first if together else np.arange(len(first))
        predicted = [used[label[used] == k] for k in np.unique(label[used])]
        inputs = [used[first[used] != first[cols[0]]] for cols in predicted]
        pairs = [pair for pair in zip(predicted, inputs, strict=True) if len(pair[1])]
        predicted = [pair[0] for pair in pairs]
        return cls(
            predicted, most_correlated(X, predicted, [pair[1] for pair in pairs])
        )

    @property
    def n_cols(self) -> int:
        """Number of columns that are predicted."""
        return sum(map(len, self.predicted))


def train(
    completer: TreesCompleter,
    X: np.ndarray,
    inputs: np.ndarray,
    plan: Plan,
    rng: np.random.RandomState,
    tasks: FitTasks,
) -> tuple[Models, bool]:
    """Train all models of a plan; return whether a user interrupted.

    Those that would begin after the time limit are left out, except for the first.
    """
    end = time.perf_counter() + seconds_left()  # workers cannot read the limit
    seeds = rng.randint(2**31, size=len(X.T))
    # Each tree is a pass over the inputs. The work of other regressors is unknown.
    passes = completer.n_estimators if isinstance(completer.estimator, str) else inf
    alone = effective_n_jobs(completer.n_jobs) == 1  # each worker has one thread
    work = passes * work_of(inputs.size) if alone else 0

    def trained(number: int) -> Forest | Fitted | None:
        if time.perf_counter() >= end and number:
            return None
        cols, others = plan.predicted[number], plan.inputs[number]
        y, seed = X[:, cols], seeds[cols[0]]
        with threads_for(work):
            if completer.estimator == "extra_trees":
                rng, n_trees = np.random.RandomState(seed), completer.n_estimators
                return Forest.grown(inputs, y, cols, others, n_trees, rng)
            seen = ~np.isnan(y[:, 0])
            others = others[_varies(inputs[np.ix_(seen, others)])]
            regressor = _regressor(completer, int(seed))
            if not len(others):
                regressor = DummyRegressor()
            regressor.fit(inputs[np.ix_(seen, others)], y[seen, 0])
            return Fitted(regressor, cols, others)

    models: Models = []
    try:
        workers = Parallel(completer.n_jobs, prefer="threads", return_as="generator")
        found = workers(delayed(trained)(k) for k in range(len(plan.predicted)))
        for cols, model in zip(plan.predicted, found, strict=True):
            if model is not None:
                models.append(model)
            for _ in cols:
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
    for model in models:
        whole[:, model.predicted] = model.predict(inputs, own)
    return whole
