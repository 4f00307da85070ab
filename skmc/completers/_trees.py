"""Trees as arrays, rows that trees complete, and the inputs of their models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.base import MissingCells

MOST_INPUTS = 50  # of a model
PRIOR_ROWS = 10  # without correlation, so that a few common rows do not count as much
CELLS_AT_ONCE = 2**22  # of a block of correlations
ROWS_AT_ONCE = 1024  # number of rows that traverse the trees together
LEVELS = 4  # of the trees, until rows at a leaf are left out
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Trees:
    """Splits of all trees, in each tree from left to right.

    The splits of a subtree follow each other, and so do its leaves, of which there is
    one more. So the number of splits in the left branch leads to both branches.
    """

    splits: np.ndarray  # (n_splits,), with the fields col, n_left and nan_left
    thresholds: np.ndarray  # (n_splits,)
    n_splits: np.ndarray  # (n_trees,)

    @staticmethod
    def arrays_of(trees: list[Any], cols: np.ndarray) -> dict[str, np.ndarray]:
        """Join trees of scikit-learn that were trained on some columns."""
        splits_of_trees = []
        for tree in trees:
            is_split = tree.children_left >= 0
            at, upto = np.flatnonzero(is_split), np.cumsum(is_split)
            n_left = upto[tree.children_right[at] - 1] - upto[at]
            nan_left = tree.missing_go_to_left[at].astype(bool)
            splits_of_trees.append(
                (cols[tree.feature[at]], tree.threshold[at], n_left, nan_left)
            )
        split_cols, thresholds, n_left, nan_left = map(
            np.concatenate, zip(*splits_of_trees, strict=True)
        )
        fields = {
            "col": small(split_cols),
            "n_left": small(n_left),
            "nan_left": nan_left,
        }
        splits = np.empty(
            len(split_cols), [(name, x.dtype) for name, x in fields.items()]
        )
        for name, values in fields.items():
            splits[name] = values
        return {
            "splits": splits,
            "thresholds": rounded_down(thresholds),
            "n_splits": small(np.array([len(part[0]) for part in splits_of_trees])),
        }

    @property
    def first_leaves(self) -> np.ndarray:
        """The first leaf of each tree."""
        n_leaves = self.n_splits.astype(int) + 1
        return np.cumsum(n_leaves) - n_leaves

    def leaves(self, X: np.ndarray, trees: np.ndarray | None = None) -> np.ndarray:
        """Find the leaf of each row in each tree, ``(n_trees, n_rows)``.

        ``X`` has the shape (n_rows, n_cols), or (n_trees, n_rows, n_cols) with inputs
        of its own for each tree. ``trees`` of shape (n_trees, n_rows) select a tree for
        each row.
        """
        if trees is None:
            trees = np.arange(len(self.n_splits))[:, None]
        n_rows, n_cols = X.shape[-2:]
        roots, children = self._nodes()
        node = np.broadcast_to(roots[trees], (len(trees), n_rows)).ravel().copy()
        n_splits = len(self.splits)
        at = np.flatnonzero(node < n_splits)  # pairs of tree and row, not at a leaf
        first_cell = n_cols * (at if X.ndim == 3 else at % n_rows)
        flat, here, holes = X.reshape(-1), node[at], bool(np.isnan(X).any())
        # The last split is that of the leaves. They are their own children.
        col, nan_left = (np.append(self.splits[f], 0) for f in ("col", "nan_left"))
        thresholds = np.append(self.thresholds, np.float32(0))
        while len(at):
            for _ in range(LEVELS):
                split = np.minimum(here, n_splits)
                cells = flat[first_cell + col[split]]
                left = cells <= thresholds[split]
                if holes:
                    left |= np.isnan(cells) & (nan_left[split] > 0)
                here = children[2 * here + left]
            node[at] = here
            live = np.flatnonzero(here < n_splits)
            at, here, first_cell = at[live], here[live], first_cell[live]
        return (node - n_splits).reshape(len(trees), n_rows)

    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Roots of the trees, and the right and the left child of each node.

        Nodes are the splits and then the leaves, which are their own children.
        """
        n_splits, sizes = len(self.splits), self.n_splits.astype(int)
        starts, at = np.cumsum(sizes) - sizes, np.arange(n_splits)
        n_left = self.splits["n_left"].astype(int)
        right = at + 1 + n_left  # if it is a split
        # Number of left branches on the way from the root, and leaves before a split.
        ends = np.bincount(right, minlength=n_splits + 1)
        turns = np.cumsum(np.append(0, np.ones(n_splits, int)) - ends)[:n_splits]
        leaf = n_splits + at + np.repeat(np.arange(len(sizes)), sizes) - turns
        # Behind the last branch of a subtree, there are fewer left branches.
        goes_on = right < np.repeat(starts + sizes, sizes)
        goes_on[goes_on] = turns[right[goes_on]] == turns[goes_on]
        children = np.repeat(np.arange(2 * n_splits + len(sizes)), 2)
        children[: 2 * n_splits : 2] = np.where(goes_on, right, leaf + n_left + 1)
        children[1 : 2 * n_splits : 2] = np.where(n_left > 0, at + 1, leaf)
        roots = np.where(sizes > 0, starts, n_splits + self.first_leaves)
        return roots, children


def small(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers >= 0 in the smallest type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def rounded_down(thresholds: np.ndarray) -> np.ndarray:
    """Thresholds in single precision, which separate cells of this precision alike."""
    rounded = thresholds.astype(np.float32)
    above = rounded > thresholds
    rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
    return rounded


def leaves_of(tree: Any) -> np.ndarray:
    """The nodes of a tree of scikit-learn that are leaves."""
    return np.flatnonzero(tree.children_left < 0)


@dataclass(eq=False)
class FittedTrees(MissingCells):
    """The completed matrix, and the trees that complete other rows.

    The map of rows also has ``predict(cells, own, everywhere)``, where ``own`` are the
    positions of the rows in the fitted matrix, -1 for others.
    """

    def everywhere(self) -> np.ndarray:
        cells = self.index.cells
        return self.row_map.predict(cells, np.arange(len(cells)), everywhere=True)

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw completed rows, (n_samples, n_rows, n_cols)."""
        return self.row_map.sample(cells, n_samples, rng)

    def without(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        # Trees that were trained on a fitted row have seen the cells that are hidden
        # here.
        positions = self.index.find(cells)
        rest = np.where(hidden, cells.dtype.type(np.nan), cells)
        values = self.row_map.predict(rest, positions, everywhere=False)
        return self.statistics.fill(rest, values)


def on_grid(values: np.ndarray, bits: int = 36) -> np.ndarray:
    """Standardized values that a tree is trained on, rounded to multiples of 2**-bits.

    Their sums have no rounding errors. So splits by different columns into the same
    parts are equally good, and the seed decides between them, not the order of the
    rows, the units of the data or the instructions of the processor.
    """
    return np.round(values.astype(float) * 2.0**bits) / 2.0**bits


def shares_on_grid(shares: np.ndarray) -> np.ndarray:
    """Positive weights of rows with eight bits below their mean.

    Sums of values of 22 bits that have these weights have no rounding errors, either.
    """
    unit = 2.0 ** (np.floor(np.log2(shares.mean())) - 8)
    return unit * np.maximum(1, np.round(shares / unit))


def single(cells: np.ndarray) -> np.ndarray:
    """Cells in the precision of scikit-learn's trees."""
    return np.clip(cells, -LARGEST, LARGEST).astype(np.float32)


def most_correlated(
    X: np.ndarray,  # (n_rows, n_cols)
    predicted: list[np.ndarray],
    inputs: list[np.ndarray],
    weights: np.ndarray,  # (n_rows,)
) -> list[np.ndarray]:
    """Choose at most 50 inputs of each model: the most correlated columns.

    The time of all models then grows with the number of columns, not with its square.
    Correlations are those of the rows in which both columns are observed, by weight,
    and ten rows without correlation.
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
            correlations = np.abs((times * Z[:, cols]).T @ Z) / np.sqrt(size)
        correlations = (
            np.nan_to_num(correlations, posinf=0.0) * common / (common + PRIOR_ROWS)
        )
        first = 0
        for own, others in zip(predicted[part], inputs[part], strict=True):
            score = correlations[first : first + len(own), others].max(0)
            first += len(own)
            best = np.argsort(-score, kind="stable")[:MOST_INPUTS]
            chosen.append(others[np.sort(best)])
    return chosen
