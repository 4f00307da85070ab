"""Chained equations: models of each column, and draws of rows by sweeps over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import gen_batches

from skmc.cells import Scaling
from skmc.completers._forests import Trees, on_grid
from skmc.completers._tree_rows import single
from skmc.completers._units import standardized, undone

MAX_SAMPLES = 5000  # rows that the model of a column is trained on
COLS_PER_SPLIT = 10  # drawn at random, among which the best one splits a node
MIN_LEAF = 5  # smallest number of donors in a leaf, or half of fewer than ten
CELLS_AT_ONCE = 2**17  # whose draws are in memory together
REPEATS = 5  # of the sweeps, for deviations and intervals
RARE = 1e-9  # weight of draws that were trained on a cell, if there are others

Uniforms = Callable[[int], np.ndarray]  # (n_draws, n_rows) or (n_draws, 1), in [0, 1)


@dataclass(frozen=True)
class Column(Trees):
    """Draws of the model of one column, or of all columns that code a category.

    The model is linear, with a tree on its residuals. The donors of a leaf are the
    residuals of the rows in it. A category has no linear part.
    """

    predicted: np.ndarray  # (q,), columns
    inputs: np.ndarray  # (m,), columns
    coefs: np.ndarray  # (n_draws, m + 1), the last one is the intercept
    first: np.ndarray  # (n_nodes,), position of the first donor of a leaf
    count: np.ndarray  # (n_nodes,), number of donors
    donors: np.ndarray  # (n_donors, q)
    means: np.ndarray  # (n_nodes, q), of the donors of a leaf
    levels: np.ndarray | None  # distinct observed values, of which each draw is one

    @classmethod
    def trained(
        cls,
        X: np.ndarray,
        whole: np.ndarray,
        bags: np.ndarray,
        predicted: np.ndarray,
        inputs: np.ndarray,
        ridge: float,
        levels: np.ndarray | None,
        rng: np.random.RandomState,
    ) -> Column:
        """Train one draw for each completed matrix, on the rows in its bag.

        ``X`` has NaN at missing cells; ``whole`` has the shape (n_draws, n_rows,
        n_cols), and ``bags`` has the shape (n_draws, n_rows).
        """
        seen = ~np.isnan(X[:, predicted[0]])
        parts = []
        for cells, bag in zip(whole, bags, strict=True):
            rows = bag[seen[bag]]
            if not len(rows):
                rows = np.flatnonzero(seen)
            if len(rows) > MAX_SAMPLES:
                rows = rng.choice(rows, MAX_SAMPLES, replace=False)
            rows, counts = np.unique(rows, return_counts=True)
            A, y = cells[np.ix_(rows, inputs)], X[np.ix_(rows, predicted)]
            parts.append(_trained(A, y, counts, ridge, rng))
        coefs, trees, leaves, residuals = zip(*parts, strict=True)
        # The columns of the nodes are positions in `own`.
        own = np.arange(len(inputs) + len(predicted))
        arrays = cls.arrays_of([tree.tree_ for tree in trees], own)
        node = np.concatenate(
            [root + leaf for root, leaf in zip(arrays["roots"], leaves, strict=True)]
        )
        donors = np.concatenate(residuals)
        order = np.lexsort((donors[:, 0], node))
        count = np.bincount(node, minlength=len(arrays["cols"]))
        sums = [np.bincount(node, part, len(count)) for part in donors.T]
        return cls(
            **arrays,
            predicted=predicted,
            inputs=inputs,
            coefs=np.stack(coefs),
            first=np.cumsum(count) - count,
            count=count,
            donors=donors[order],
            means=np.stack(sums, 1) / np.maximum(count, 1)[:, None],
            levels=levels,
        )

    def predict(self, whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predictions of the linear part, (n_draws, n_rows, 1), and leaves of rows.

        ``whole`` has the shape (n_draws, n_rows, n_cols), with inputs for each draw.
        """
        # A product of matrices would round a row differently beside other rows, and
        # that can change its leaf.
        products = whole[..., self.inputs] * self.coefs[:, None, :-1]
        linear = products.sum(-1) + self.coefs[:, -1:]
        return linear[..., None], self.leaves(single(whole[..., self.own]))

    @property
    def own(self) -> np.ndarray:
        """The inputs and the predicted columns.

        A tree without inputs is a leaf, which refers to a predicted column.
        """
        return np.append(self.inputs, self.predicted)

    def draw(
        self, linear: np.ndarray, leaves: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        """Add the residual of a random donor of the leaf."""
        donor = self.first[leaves] + (uniform * self.count[leaves]).astype(int)
        values = linear + self.donors[donor]
        return values if self.levels is None else nearest(self.levels, values)


def _trained(
    A: np.ndarray,
    y: np.ndarray,
    counts: np.ndarray,
    ridge: float,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, DecisionTreeRegressor, np.ndarray, np.ndarray]:
    """Train on distinct rows, each of which counts as many times as it was drawn."""
    coefs = np.zeros(A.shape[1] + 1)
    if y.shape[1] == 1:
        inputs = torch.from_numpy(np.column_stack([A, np.ones(len(A))]))
        weighted = inputs.mT * torch.from_numpy(counts)
        gram = weighted @ inputs
        gram.diagonal()[:-1] += ridge
        known = weighted @ torch.from_numpy(y[:, 0])
        coefs = torch.linalg.solve(gram, known).numpy()
    residual = y - (A @ coefs[:-1] + coefs[-1])[:, None]
    # Counts are integers; the half excludes rounding errors.
    share = min((MIN_LEAF - 0.5) / counts.sum(), 0.5)
    split = single(A) if A.shape[1] else np.zeros((len(A), 1), np.float32)
    tree = DecisionTreeRegressor(
        min_weight_fraction_leaf=share,
        max_features=min(COLS_PER_SPLIT, split.shape[1]),
        random_state=rng.randint(2**31),
    )
    tree.fit(split, on_grid(residual), counts, check_input=False)
    leaves = tree.apply(split, check_input=False)
    return coefs, tree, leaves.repeat(counts), residual.repeat(counts, 0)


def nearest(levels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The nearest of sorted levels to each value."""
    if len(levels) == 1:
        return np.full_like(values, levels[0])
    above = np.searchsorted(levels, values).clip(1, len(levels) - 1)
    below = levels[above - 1]
    return np.where(values - below < levels[above] - values, below, levels[above])


def draw(
    column: Column, whole: np.ndarray, missing: np.ndarray, uniforms: Uniforms
) -> None:
    """Draw the missing cells of a column, given all other cells, in place."""
    rows = np.flatnonzero(missing[:, column.predicted[0]])
    uniform = uniforms(len(rows))
    if len(rows):
        drawn = column.draw(*column.predict(whole[:, rows]), uniform)
        whole[:, rows[:, None], column.predicted] = drawn


@dataclass(eq=False)
class ChainRows:
    """A map of rows to their completion, which repeats the sweeps of the fit.

    Parameters
    ----------
    sweeps : list of list of Column
        Models of the columns in each sweep, with a draw for each chain.
    n_kept : int
        Number of sweeps at the end whose draws are used.
    n_draws : int
        Number of these draws.
    scaling : Scaling
        Scaling of the fit.
    values : dict of int to ndarray or None
        Distinct observed values of columns, if draws are such values.
    in_bag : ndarray of shape (n_sweeps, n_chains, n_rows / 8)
        Rows of the fit on which each draw was trained, one bit for each row.
    seen : ndarray of shape (n_rows, n_cols / 8)
        Observed cells of the fit, one bit for each cell.
    seed : int
        Seed of the uniform numbers that all rows share.
    """

    sweeps: list[list[Column]]
    n_kept: int
    n_draws: int
    scaling: Scaling
    values: dict[int, np.ndarray | None]
    in_bag: np.ndarray
    seen: np.ndarray
    seed: int

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        return self.predict(cells, np.full(len(cells), -1))

    def predict(self, cells: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Expected cells of rows; ``own`` are their positions in the fitted matrix.

        An observed cell of the fit is predicted by the draws that were not trained on
        its row.
        """
        found = np.empty(cells.shape)
        for part in _parts(cells):
            found[part] = self._expected(cells[part], own[part])
        return undone(found, self.scaling)

    def spread(
        self, cells: np.ndarray, answer: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Statistics of the draws of each cell, (n_statistics, n_rows, n_cols)."""
        parts = []
        for part in _parts(cells):
            rng = np.random.RandomState(self.seed)
            draws = [self._draws(cells[part], rng, shared=True) for _ in range(REPEATS)]
            parts.append(answer(np.concatenate(draws)))
        return np.concatenate(parts, 1)

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw completed rows, (n_samples, n_rows, n_cols)."""
        found = np.empty((n_samples, *cells.shape), cells.dtype)
        for first in range(0, n_samples, self.n_draws):
            into = found[first : first + self.n_draws]
            chosen = rng.permutation(self.n_draws)[: len(into)]
            for part in _parts(cells):
                into[:, part] = self._draws(cells[part], rng)[chosen]
        return found

    def _draws(
        self, cells: np.ndarray, rng: np.random.RandomState, shared: bool = False
    ) -> np.ndarray:
        """Repeat the sweeps, (n_draws, n_rows, n_cols)."""
        X = standardized(cells.astype(float), self.scaling)
        missing, whole, kept = np.isnan(X), self._started(X), []
        for number, columns in enumerate(self.sweeps, self.n_kept - len(self.sweeps)):
            for column in columns:
                draw(column, whole, missing, self._uniforms(rng, shared))
            if number >= 0:
                kept.append(undone(whole, self.scaling))
        drawn = np.concatenate(kept)[: self.n_draws]
        for col, values in self.values.items():
            if values is not None:
                drawn[..., col] = nearest(values, drawn[..., col])
        return np.where(np.isnan(cells), drawn, cells)

    def _expected(self, cells: np.ndarray, own: np.ndarray) -> np.ndarray:
        X = standardized(cells.astype(float), self.scaling)
        missing, whole = np.isnan(X), self._started(X)
        rng = np.random.RandomState(self.seed)
        uniforms = self._uniforms(rng, shared=True)
        total, count = np.zeros(X.shape), np.zeros(X.shape)
        for number, columns in enumerate(self.sweeps, self.n_kept - len(self.sweeps)):
            for column in columns:
                if number < 0:
                    draw(column, whole, missing, uniforms)
                    continue
                linear, leaves = column.predict(whole)
                into, rows = column.predicted, missing[:, column.predicted[0]]
                votes = self._votes(into[0], number, own)[..., None]
                total[:, into] += ((linear + column.means[leaves]) * votes).sum(0)
                count[:, into] += votes.sum(0)
                uniform = uniforms(rows.sum())
                drawn = column.draw(linear[:, rows], leaves[:, rows], uniform)
                whole[:, np.flatnonzero(rows)[:, None], into] = drawn
        return total / np.maximum(count, RARE)

    def _votes(self, col: int, number: int, own: np.ndarray) -> np.ndarray:
        """Weights of the draws that predict the column, (n_chains, n_rows)."""
        bits = self.in_bag[number - self.n_kept][:, own // 8]
        in_bag = (bits >> (7 - own % 8)) & 1
        seen = (self.seen[own, col // 8] >> (7 - col % 8)) & 1
        return np.where((in_bag == 0) | (own < 0) | (seen == 0), 1.0, RARE)

    def _started(self, X: np.ndarray) -> np.ndarray:
        return np.repeat(np.nan_to_num(X)[None], self.in_bag.shape[1], 0)

    def _uniforms(self, rng: np.random.RandomState, shared: bool) -> Uniforms:
        """Make uniform numbers for each row, or stratified ones that all rows share."""
        n = self.in_bag.shape[1]
        if not shared:
            return lambda n_rows: rng.random_sample((n, n_rows))
        return lambda _: (rng.permutation(n)[:, None] + rng.rand()) / n


def _parts(cells: np.ndarray) -> Iterator[slice]:
    return gen_batches(len(cells), max(1, CELLS_AT_ONCE // cells.shape[1]))
