"""The chains of a fit: sweeps that train the models of columns and draw the cells."""

from __future__ import annotations

import math

import numpy as np

from skmc.completers._chain import Column, draw
from skmc.completers._inputs import most_correlated
from skmc.loop import FitTasks, seconds_left

LEAST_SWEEPS = 4  # before models are kept


class Chains:
    """Chains of sweeps from different starts.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_cols)
        Standardized cells, NaN where missing.
    n_chains : int
        Number of chains.
    groups : list of ndarray
        Columns that are drawn together, in the order of a sweep.
    levels : list of ndarray or None
        Values to which the draws of each group are restricted.
    ridge : float
        Weight of the squared coefficients.
    rng : RandomState
        Source of bootstrap samples, trees and draws.
    """

    def __init__(
        self,
        X: np.ndarray,
        n_chains: int,
        groups: list[np.ndarray],
        levels: list[np.ndarray | None],
        ridge: float,
        rng: np.random.RandomState,
    ) -> None:
        self.X, self.missing, self.groups = X, np.isnan(X), groups
        self.levels, self.ridge, self.rng = levels, ridge, rng
        self.sweeps: list[list[Column]] = []
        self.in_bag: list[np.ndarray] = []
        self.n_iter = 0  # number of sweeps before models are kept
        used = np.sort(np.concatenate([*groups, np.empty(0, int)]))
        others = [np.setdiff1d(used, group) for group in groups]
        self.inputs = most_correlated(X, groups, others)
        self.whole = np.repeat(np.nan_to_num(X)[None], n_chains, 0)
        for group in groups:
            seen = np.flatnonzero(~self.missing[:, group[0]])
            rows = np.flatnonzero(self.missing[:, group[0]])
            donors = rng.choice(seen, (n_chains, len(rows)))
            self.whole[:, rows[:, None], group] = X[donors[..., None], group]

    def run(self, max_iter: int, tol: float, n_kept: int, tasks: FitTasks) -> None:
        """Sweep until the chains agree, and ``n_kept`` times more.

        By Gelman and Rubin: the variance over all chains of the means of columns'
        missing cells is compared with that within the chains, over the later half of
        the sweeps.
        """
        count, means = np.maximum(self.missing.sum(0), 1), []
        agreed = late = False
        while not (agreed or late) and self.n_iter < max_iter:
            self._sweep(tasks)
            self.n_iter += 1
            means.append(np.where(self.missing, self.whole, 0).sum(1) / count)
            agreed = self.n_iter >= LEAST_SWEEPS and _reduction(means) < tol
            late = seconds_left() <= 0
        while not late and len(self.sweeps) < self.n_iter + n_kept:
            self._sweep(tasks)
            late = seconds_left() <= 0

    def _sweep(self, tasks: FitTasks) -> None:
        """Train the models of columns, and draw the missing cells from each."""
        n_chains, n_rows = self.whole.shape[:2]
        bag = self.rng.randint(n_rows, size=(n_chains, n_rows))
        columns = []
        for group, inputs, levels in zip(
            self.groups, self.inputs, self.levels, strict=True
        ):
            column = Column.trained(
                self.X,
                self.whole,
                bag,
                group,
                inputs,
                self.ridge,
                levels,
                self.rng,
            )
            draw(column, self.whole, self.missing, self._uniform)
            columns.append(column)
        in_bag = np.zeros((n_chains, n_rows), bool)
        in_bag[np.arange(n_chains)[:, None], bag] = True
        self.sweeps.append(columns)
        self.in_bag.append(np.packbits(in_bag, axis=1))
        tasks.done("sweep")

    def _uniform(self, n_rows: int) -> np.ndarray:
        return self.rng.rand(len(self.whole), n_rows)


def _reduction(means: list[np.ndarray]) -> float:
    """Potential scale reduction, from means of shape (n_chains, n_cols) per sweep."""
    later = np.array(means[len(means) // 2 :])
    n = len(later)
    within = later.var(0, ddof=1).mean()
    between = later.mean(0).var(0, ddof=1).mean() if later.shape[1] > 1 else 0.0
    ratio = between / within if within > 0 else 0.0
    return math.sqrt((n - 1) / n + ratio)
