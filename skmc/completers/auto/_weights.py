"""Weights of predictions: by squared errors of numbers, by log scores of categories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from skmc.completers._mixtures import JITTER, mixture

PRIOR_CELLS = (np.inf, 1000.0, 300.0, 100.0, 30.0, 10.0)
GROUPS = 5  # of rows; weights are fitted to all but one and evaluated on it


class Chosen(NamedTuple):
    """Weights of the columns of one kind.

    Parameters
    ----------
    common : ndarray of shape (n_candidates,)
        Weights that all columns share.
    columns : ndarray of shape (n_cols, n_candidates)
        Weights of each column.
    prior_cells : float
        Number of cells that all columns count as in the weights of one.
    crossed : ndarray of shape (GROUPS, n_cols, n_candidates)
        Weights that are fitted without a group of rows.
    excess : float
        Root of the ratio of their loss on the groups to that of the weights, minus one.
    least : float
        Weight of a candidate that explains no cell.
    """

    common: np.ndarray
    columns: np.ndarray
    prior_cells: float
    crossed: np.ndarray
    excess: float
    least: float

    def without_last(self) -> Chosen:
        """The same weights without the last candidate, of sum one."""
        own = [w[..., :-1] for w in (self.common, self.columns, self.crossed)]
        common, columns, crossed = (w / w.sum(-1, keepdims=True) for w in own)
        least = self.least / self.common[:-1].sum()
        return Chosen(common, columns, self.prior_cells, crossed, self.excess, least)


class Loss(ABC):
    """Loss of weighted predictions on held-out cells, which are in groups of rows."""

    least = 0.0  # weight of a candidate that explains no cell

    @abstractmethod
    def fit(self, used: np.ndarray, prior_cells: float) -> tuple[np.ndarray, ...]:
        """Common weights and weights of each column, from some of the groups.

        Parameters
        ----------
        used : int ndarray
            Groups.
        prior_cells : float
            Number of cells that all columns count as in the weights of one.
        """

    @abstractmethod
    def loss(self, columns: np.ndarray, group: int) -> float:
        """Loss of the weights of each column on a group."""

    def chosen(self, prior_cells: Sequence[float]) -> Chosen:
        """Fit the weights; ``prior_cells`` are tried until the loss rises.

        The loss is that on groups that the weights have not seen.
        """
        groups = list(range(GROUPS))
        best: list[np.ndarray] = []
        lowest = np.inf
        for prior in prior_cells:
            found = [self.fit(np.delete(groups, k), prior)[1] for k in groups]
            loss = sum(self.loss(columns, k) for k, columns in enumerate(found))
            if best and loss >= lowest:
                break
            best, lowest, chosen = found, loss, prior
        common, columns = self.fit(np.array(groups), chosen)
        own = sum(self.loss(columns, k) for k in groups)
        excess = (lowest / own) ** 0.5 - 1 if own > 0 else 0.0
        return Chosen(common, columns, chosen, np.stack(best), excess, self.least)


class Squares(Loss):
    """Sum of the squared errors of weighted predictions.

    Parameters
    ----------
    R : ndarray of shape (n_cells, n_candidates)
        Residuals of the candidates.
    group : int ndarray of shape (n_cells,)
        Group of each cell.
    cols : int ndarray of shape (n_cells,)
        Column of each cell.
    n_cols : int
        Number of columns.
    """

    def __init__(
        self, R: np.ndarray, group: np.ndarray, cols: np.ndarray, n_cols: int
    ) -> None:
        place = cols * GROUPS + group
        order = np.argsort(place, kind="stable")
        counts = np.bincount(place, minlength=n_cols * GROUPS)
        parts = np.split(R[order], np.cumsum(counts)[:-1])
        grams = np.stack([part.T @ part for part in parts])
        self.grams = grams.reshape(n_cols, GROUPS, *grams.shape[1:])
        self.counts = counts.reshape(n_cols, GROUPS)

    def fit(self, used: np.ndarray, prior_cells: float) -> tuple[np.ndarray, ...]:
        own, n_own = self.grams[:, used].sum(1), self.counts[:, used].sum(1)
        mean = own.sum(0) / max(1, n_own.sum())
        common = simplex_minimum(mean)
        columns = np.tile(common, (len(own), 1))
        if np.isfinite(prior_cells):
            for j in np.flatnonzero(n_own):
                columns[j] = simplex_minimum(own[j] + prior_cells * mean)
        return common, columns

    def loss(self, columns: np.ndarray, group: int) -> float:
        grams = self.grams[:, group]
        return float(np.einsum("jp,jpq,jq->", columns, grams, columns))


class LogScores(Loss):
    r"""Negative logarithms of the mixed probabilities of the true categories.

    The weights of a column of categories maximize

    .. math::

        \sum_i \log(p_i^\top w) + a \sum_k w_{0k} \log w_k,

    where :math:`w_0` are the common weights, which count as ``a`` cells. These maximize
    the sum over all columns, with a cell in addition for each candidate, which it alone
    explains.

    Parameters
    ----------
    P : list of ndarray of shape (n_cells, n_candidates)
        For each column, the probabilities that the candidates give to the true
        categories.
    group : list of int ndarray of shape (n_cells,)
        Group of each of these cells.
    """

    def __init__(self, P: list[np.ndarray], group: list[np.ndarray]) -> None:
        self.P, self.group = P, group
        self.least = 1 / (sum(map(len, P)) + P[0].shape[1])

    def fit(self, used: np.ndarray, prior_cells: float) -> tuple[np.ndarray, ...]:
        own = [
            P[np.isin(group, used)] for P, group in zip(self.P, self.group, strict=True)
        ]
        common = mixture(np.concatenate(own), np.ones(own[0].shape[1]))
        columns = np.tile(common, (len(own), 1))
        if np.isfinite(prior_cells) and len(own) > 1:
            for j, P in enumerate(own):
                columns[j] = mixture(P, prior_cells * common)
        return common, columns

    def loss(self, columns: np.ndarray, group: int) -> float:
        return -sum(
            float(np.log(P[own == group] @ w).sum())
            for P, own, w in zip(self.P, self.group, columns, strict=True)
        )


def simplex_minimum(G: np.ndarray) -> np.ndarray:
    r"""Minimize :math:`w^\top G w` over non-negative ``w`` of sum one.

    For ``w = s v`` with ``v`` of sum one, the minimum over ``s`` of :math:`w^\top G w +
    (1^\top w - 1)^2` is :math:`g / (1 + g)` with :math:`g = v^\top G v`. It increases
    with ``g``, so the non-negative minimizer, divided by its sum, is the solution.
    """
    n = len(G)
    unit = np.trace(G) / n
    if n == 1 or not unit > 0:
        return np.full(n, 1 / n)
    L = np.linalg.cholesky(G / unit + JITTER * np.eye(n))
    found, _ = nnls(np.vstack([L.T, np.ones(n)]), np.append(np.zeros(n), 1.0))
    return found / found.sum()
