"""Trees as arrays, rows that trees complete, and the inputs of their models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.base import Completion

MOST_INPUTS = 50  # of a model
PRIOR_ROWS = 10  # without correlation, so that a few common rows do not count as much
CELLS_AT_ONCE = 2**22  # of a block of correlations
LARGEST = float(np.finfo(np.float32).max)


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


@dataclass(eq=False)
class FittedTrees(Completion):
    """The completed matrix, and the trees that complete other rows.

    The map of rows also has ``predict(cells, own)``, where ``own`` are the positions of
    the rows in the fitted matrix, -1 for others.
    """

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw completed rows, (n_samples, n_rows, n_cols)."""
        return self.row_map.sample(cells, n_samples, rng)

    def without(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        # Trees that were trained on a fitted row have seen the cells that are hidden
        # here.
        own = self.index.find(cells)
        rest = np.where(hidden, cells.dtype.type(np.nan), cells)
        return self.statistics.fill(rest, self.row_map.predict(rest, own))


def on_grid(values: np.ndarray) -> np.ndarray:
    """Standardized values that a tree is trained on, rounded to multiples of 2**-36.

    Their sums have no rounding errors. So splits by different columns into the same
    parts are equally good, and the seed decides between them, not the order of the
    rows, the units of the data or the instructions of the processor.
    """
    return np.round(values.astype(float) * 2.0**36) / 2.0**36


def single(cells: np.ndarray) -> np.ndarray:
    """Cells in the precision of scikit-learn's trees."""
    return np.clip(cells, -LARGEST, LARGEST).astype(np.float32)


def most_correlated(
    X: np.ndarray,
    predicted: list[np.ndarray],
    inputs: list[np.ndarray],
    weights: np.ndarray,
) -> list[np.ndarray]:
    """Choose at most 50 inputs of each model: the most correlated columns.

    The time of all models then grows with the number of columns, not with its square.
    Correlations are those of the rows in which both columns are observed, by weight,
    and ten rows without correlation.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_cols)
        Standardized cells, NaN where missing.
    predicted : list of ndarray
        Columns that each model predicts. The largest of their correlations counts.
    inputs : list of ndarray
        Columns that each model may use, in ascending order.
    weights : ndarray of shape (n_rows,)
        Weights of the rows.

    Returns
    -------
    list of ndarray
        Columns that each model uses, in ascending order.
    """
    if max(map(len, inputs), default=0) <= MOST_INPUTS:
        return inputs
    seen = (~np.isnan(X)).astype(float)
    Z = np.nan_to_num(X).astype(float)
    squares, chosen = Z * Z, []
    at_once = max(1, CELLS_AT_ONCE // X.shape[1])
    for start in range(0, len(predicted), at_once):
        part = slice(start, start + at_once)
        cols = np.concatenate(predicted[part])
        times = weights[:, None] * seen[:, cols]
        size = ((times * squares[:, cols]).T @ seen) * (times.T @ squares)
        common = times.T @ seen
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.abs((times * Z[:, cols]).T @ Z) / np.sqrt(size)
        found = np.nan_to_num(found, posinf=0.0) * common / (common + PRIOR_ROWS)
        first = 0
        for own, others in zip(predicted[part], inputs[part], strict=True):
            score = found[first : first + len(own), others].max(0)
            first += len(own)
            best = np.argsort(-score, kind="stable")[:MOST_INPUTS]
            chosen.append(others[np.sort(best)])
    return chosen
