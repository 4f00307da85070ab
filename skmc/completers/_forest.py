"""Trees that predict a column from the others, and the rows that they complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.tree import ExtraTreeRegressor

from skmc.base import Completion
from skmc.cells import Scaling

FOLDS = 5  # each tree is trained without the rows of one fold
MAX_SAMPLES = 10_000  # rows that a tree is trained on
ROWS_AT_ONCE = 1024  # that go through the trees together
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Forest:
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
    ) -> Forest:
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
class Regressor:
    """A fitted regressor and the columns that it was trained on."""

    regressor: Any
    cols: np.ndarray

    def predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        return self.regressor.predict(X[:, self.cols])


Models = dict[int, "Forest | Regressor"]  # by the column that they predict


@dataclass(eq=False)
class TreeRows:
    """The rounds of models that complete rows one after the other.

    Parameters
    ----------
    rounds : list of dict
        Models by the column that they predict.
    scaling : Scaling
        Scaling of the fit.
    """

    rounds: list[Models]
    scaling: Scaling

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        return self.predict(cells, np.full(len(cells), -1))

    def predict(self, cells: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Complete rows, of which ``own`` are the positions in the fitted matrix."""
        X = inputs = scaled(cells, self.scaling)
        whole = np.zeros(X.shape)
        for models in self.rounds:
            whole = predict(models, inputs, own)
            inputs = filled(X, whole)
        return undone(whole, self.scaling)


@dataclass(eq=False)
class FittedTrees(Completion):
    """The completed matrix, and trees that complete other rows."""

    row_map: TreeRows

    def without(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        # Trees that were trained on a fitted row have seen what is hidden from it here.
        own = self.index.find(cells)
        rest = np.where(hidden, cells.dtype.type(np.nan), cells)
        return self.statistics.fill(rest, self.row_map.predict(rest, own))


def scaled(cells: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardized cells in the precision of scikit-learn's trees."""
    scaled = scaling.standardise(torch.from_numpy(np.array(cells, float))).numpy()
    scaled = np.where(np.isnan(cells), np.nan, scaled)
    return np.clip(scaled, -LARGEST, LARGEST).astype(np.float32)


def undone(scaled: np.ndarray, scaling: Scaling) -> np.ndarray:
    return scaling.undo(torch.from_numpy(scaled)).numpy()


def predict(models: Models, inputs: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The value of every cell; zero, the mean, in columns without a model."""
    whole = np.zeros(inputs.shape)
    for col, model in models.items():
        whole[:, col] = model.predict(inputs, own)
    return whole


def filled(X: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), whole, X).astype(np.float32)
