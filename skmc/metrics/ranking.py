"""Measures of the ranking of the cells of each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skmc.cells import Container
from skmc.metrics.errors import read


@dataclass(frozen=True, eq=False)
class Ranking:
    """The gains of the ranked cells of each row.

    Parameters
    ----------
    gains : ndarray of shape (n_rows, n_cols)
        Gains of the ranked cells of each row, best prediction first; then NaN.
    ties : int ndarray of shape (n_rows, n_cols)
        Number of the group of equal predictions to which a cell belongs.
    best : ndarray of shape (n_rows, n_cols)
        Gains in the best order.
    """

    gains: np.ndarray
    ties: np.ndarray
    best: np.ndarray

    @classmethod
    def of(
        cls,
        gains: np.ndarray,  # (n_rows, n_cols)
        values: np.ndarray,  # (n_rows, n_cols)
    ) -> Ranking:
        """Find the cells with equal predictions."""
        starts = np.ones(gains.shape, bool)
        starts[:, 1:] = (values[:, 1:] != values[:, :-1]) | np.isnan(gains[:, 1:])
        ties = starts.ravel().cumsum().reshape(gains.shape) - 1
        return cls(gains, ties, -np.sort(-gains, axis=1))

    def joined(self, other: Ranking) -> Ranking:
        """Append the rows of another ranking."""
        ties = other.ties + self.ties.max(initial=-1) + 1
        return Ranking(
            np.vstack([self.gains, other.gains]),
            np.vstack([self.ties, ties]),
            np.vstack([self.best, other.best]),
        )

    def expected(
        self,
        x: np.ndarray,  # (n_rows, n_cols)
    ) -> np.ndarray:  # (n_rows, n_cols)
        """Means of a number over the cells of equal predictions."""
        means: np.ndarray = self.total(x) / self.total(np.ones(x.shape))
        return means

    @property
    def first_ranks(self) -> np.ndarray:
        """For each rank, from 1, the first one with the same prediction."""
        rank = np.arange(1, self.ties.shape[1] + 1)
        starts = np.diff(self.ties, axis=1, prepend=-1) > 0
        starts[:, 0] = True
        return np.maximum.accumulate(np.where(starts, rank, 0), axis=1)

    def before(
        self,
        x: np.ndarray,  # (n_rows, n_cols)
    ) -> np.ndarray:  # (n_rows, n_cols)
        """Sums of a number over the cells of larger predictions."""
        sums = np.cumsum(x, axis=1) - x
        sums_before: np.ndarray = np.take_along_axis(sums, self.first_ranks - 1, 1)
        return sums_before

    def total(
        self,
        x: np.ndarray,  # (n_rows, n_cols)
    ) -> np.ndarray:  # (n_rows, n_cols)
        """Sums of a number over the cells of equal predictions."""
        sums = np.bincount(self.ties.ravel(), x.ravel())
        return sums[self.ties]


def ranked_gains(
    X: Container,  # (n_rows, n_cols)
    M: Container,  # (n_rows, n_cols)
    cells: ArrayLike | None = None,  # (n_rows, n_cols)
) -> Ranking:
    """Sort the gains of each row by its predictions."""
    X, M, cells = read(X, M, cells)
    M = np.where(np.isnan(M), 0.0, M)
    if np.isnan(X[cells]).any():
        raise ValueError("X is missing at a ranked cell; complete it first.")
    if (M < 0).any():
        raise ValueError("M has a negative gain; gains must be at least 0.")
    order = np.argsort(np.where(cells, -X, np.inf), axis=1, kind="stable")
    M = np.where(cells, M, np.nan)
    gains, values = (np.take_along_axis(x, order, 1) for x in (M, X))
    return Ranking.of(gains, values)


def _over_rows(values: np.ndarray, best: np.ndarray) -> float:
    some = best[:, :1].sum(1) > 0
    if not some.any():
        raise ValueError("no row has a ranked cell with a gain; nothing to compare.")
    return float(values[some].mean())


def _checked(k: int) -> int:
    if not k >= 1:
        raise ValueError(f"k must be at least 1, got {k!r}.")
    return int(k)


def _ndcg(ranking: Ranking, k: int) -> float:
    k = min(_checked(k), ranking.gains.shape[1])
    discount = 1 / np.log2(np.arange(k) + 2)
    gains = ranking.expected(np.nan_to_num(ranking.gains))
    gain, ideal = (
        gains[:, :k] @ discount,
        np.nan_to_num(ranking.best)[:, :k] @ discount,
    )
    return _over_rows(gain / np.where(ideal > 0, ideal, 1), ranking.best)


def _recall(ranking: Ranking, k: int) -> float:
    hits = ranking.expected(ranking.gains > 0)[:, : _checked(k)].sum(1)
    return _over_rows(hits / np.maximum((ranking.best > 0).sum(1), 1), ranking.best)


def _map(ranking: Ranking, k: int) -> float:
    hits = ranking.gains > 0
    n, n_hits = ranking.total(np.ones(hits.shape)), ranking.total(hits)
    rank = np.arange(1, hits.shape[1] + 1)
    # Expected hits at this rank and at the earlier ones, if it is one.
    others = (rank - ranking.first_ranks) * (n_hits - 1) / np.maximum(n - 1, 1)
    precision = (1 + ranking.before(hits) + others) / rank
    precisions = (precision * n_hits / n)[:, : _checked(k)].sum(1)
    most = np.minimum((ranking.best > 0).sum(1), k)
    return _over_rows(precisions / np.maximum(most, 1), ranking.best)


def _auc(ranking: Ranking, k: int | None = None) -> float:
    hit, miss = ranking.gains > 0, ranking.gains == 0
    n_pairs = hit.sum(1) * miss.sum(1)
    behind = miss.sum(1, keepdims=True) - ranking.before(miss) - ranking.total(miss) / 2
    share = np.where(n_pairs > 0, (hit * behind).sum(1) / np.maximum(n_pairs, 1), 1.0)
    return _over_rows(share, ranking.best)


RANKING: dict[str, Callable[..., float]] = {
    "ndcg": _ndcg,
    "recall": _recall,
    "map": _map,
    "auc": _auc,
}


def ndcg_at_k(
    X: Container, M: Container, k: int = 10, cells: ArrayLike | None = None
) -> float:
    r"""Normalized discounted cumulative gain of the first ``k`` cells of each row.

    .. math::

        \frac{\sum_{r \le k} g_r / \log_2(r + 1)}{\sum_{r \le k} g^*_r / \log_2(r + 1)}

    with the gains ``g`` in the order of the predictions and ``g*`` in the best order.
    The mean is over the rows that have a gain. Cells with equal predictions are in
    random order: all metrics of rankings are expectations over it.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The completion.
    M : container of shape (n_rows, n_cols)
        Gains >= 0; a missing cell has no gain.
    k : int >= 1, default=10
        Number of cells that are shown.
    cells : bool array of shape (n_rows, n_cols) or None, default=None
        Cells to rank, for example those that the fit has not seen. None means all.

    Returns
    -------
    float
        Value in [0, 1]; 1 is best.

    See Also
    --------
    map_at_k : For gains of 0 and 1.
    recall_at_k : Without regard to order.

    Examples
    --------
    >>> from skmc.metrics import ndcg_at_k
    >>> ndcg_at_k([[0.1, 0.9, 0.5]], [[0, 3, 1]])
    1.0
    """
    return _ndcg(ranked_gains(X, M, cells), k)


def recall_at_k(
    X: Container, M: Container, k: int = 10, cells: ArrayLike | None = None
) -> float:
    """Share of each row's cells with a gain that are among its first ``k``.

    The mean is over the rows that have such a cell.

    Parameters
    ----------
    X, M, k, cells : container, container, int >= 1 and bool array or None
        Arguments of `ndcg_at_k`.

    Returns
    -------
    float
        Value in [0, 1]; 1 is best.

    See Also
    --------
    ndcg_at_k : Regards the order.
    """
    return _recall(ranked_gains(X, M, cells), k)


def map_at_k(
    X: Container, M: Container, k: int = 10, cells: ArrayLike | None = None
) -> float:
    """Mean average precision of the first ``k`` cells of each row.

    The average precision of a row is the sum of the precisions at its hits among the
    first ``k``, divided by the largest possible number of hits. The mean is over the
    rows that have a cell with a gain.

    Parameters
    ----------
    X, M, k, cells : container, container, int >= 1 and bool array or None
        Arguments of `ndcg_at_k`.

    Returns
    -------
    float
        Value in [0, 1]; 1 is best.

    See Also
    --------
    ndcg_at_k : Also for graded gains.
    recall_at_k : Without regard to order.
    """
    return _map(ranked_gains(X, M, cells), k)


def auc(X: Container, M: Container, cells: ArrayLike | None = None) -> float:
    """Share of the pairs of a row in which the cell with a gain is ranked first.

    A pair is a cell with a gain and one without; equal predictions count half. The
    mean is over the rows that have a cell with a gain.

    Parameters
    ----------
    X, M, cells : container, container and bool array or None
        Arguments of `ndcg_at_k`.

    Returns
    -------
    float
        Value in [0, 1]; 1 is best.

    See Also
    --------
    ndcg_at_k : Weighs the first places more.
    """
    return _auc(ranked_gains(X, M, cells))
