"""Measures of the ranking of the cells of each row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from skmc.cells import Container
from skmc.metrics.errors import read


def ranked_gains(
    X: Container, M: Container, cells: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sort the gains of each row by its predictions.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The completion.
    M : container of shape (n_rows, n_cols)
        Gains >= 0; a missing cell has no gain.
    cells : bool array of shape (n_rows, n_cols) or None, default=None
        Cells to rank. None means all.

    Returns
    -------
    gains : ndarray of shape (n_rows, n_cols)
        Gains of the ranked cells of each row, best prediction first; then NaN.
        Cells with equal predictions are ranked in the order of their columns.
    totals : ndarray of shape (n_rows, n_cols)
        Gains in the best order.
    """
    X, M, cells = read(X, M, cells)
    M = np.where(np.isnan(M), 0.0, M)
    if np.isnan(X[cells]).any():
        raise ValueError("X is missing at a ranked cell; complete it first.")
    if (M < 0).any():
        raise ValueError("M has a negative gain; gains must be at least 0.")
    order = np.argsort(np.where(cells, -X, np.inf), axis=1, kind="stable")
    M = np.where(cells, M, np.nan)
    return np.take_along_axis(M, order, 1), -np.sort(-M, axis=1)


def _over_rows(values: np.ndarray, best: np.ndarray) -> float:
    some = best[:, :1].sum(1) > 0
    if not some.any():
        raise ValueError("no row has a ranked cell with a gain; nothing to compare.")
    return float(values[some].mean())


def _checked(k: int) -> int:
    if not k >= 1:
        raise ValueError(f"k must be at least 1, got {k!r}.")
    return int(k)


def _ndcg(gains: np.ndarray, best: np.ndarray, k: int) -> float:
    k = min(_checked(k), gains.shape[1])
    discount = 1 / np.log2(np.arange(k) + 2)
    found, ideal = (np.nan_to_num(g[:, :k]) @ discount for g in (gains, best))
    return _over_rows(found / np.where(ideal > 0, ideal, 1), best)


def _recall(gains: np.ndarray, best: np.ndarray, k: int) -> float:
    hits = (gains[:, : _checked(k)] > 0).sum(1)
    return _over_rows(hits / np.maximum((best > 0).sum(1), 1), best)


def _map(gains: np.ndarray, best: np.ndarray, k: int) -> float:
    hits = gains[:, : _checked(k)] > 0
    precision = hits.cumsum(1) / np.arange(1, hits.shape[1] + 1)
    most = np.minimum((best > 0).sum(1), k)
    return _over_rows((precision * hits).sum(1) / np.maximum(most, 1), best)


def _auc(gains: np.ndarray, best: np.ndarray, k: int | None = None) -> float:
    hit, miss = gains > 0, gains == 0
    n_pairs = hit.sum(1) * miss.sum(1)
    won = (hit * (miss.sum(1, keepdims=True) - miss.cumsum(1))).sum(1)
    share = np.where(n_pairs > 0, won / np.maximum(n_pairs, 1), 1.0)
    return _over_rows(share, best)


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
    The mean is over the rows that have a gain.

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
    return _ndcg(*ranked_gains(X, M, cells), k)


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
    return _recall(*ranked_gains(X, M, cells), k)


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
    return _map(*ranked_gains(X, M, cells), k)


def auc(X: Container, M: Container, cells: ArrayLike | None = None) -> float:
    """Share of the pairs of a row in which the cell with a gain is ranked first.

    A pair is a cell with a gain and one without. The mean is over the rows that have a
    cell with a gain.

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
    return _auc(*ranked_gains(X, M, cells))
