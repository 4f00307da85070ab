"""Scorers that rank the columns of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.cells import Container, Entries
from skmc.metrics import RANKING

BLOCK = 2**22  # ranked cells at once


@dataclass(frozen=True)
class RankingScorer:
    """Scorer of searches over `Entries`: how highly held-out cells are ranked.

    All columns of a row that the fit has not seen are ranked by their predictions
    (``estimator.recommend``). The held-out cells are the relevant ones. The score is
    the mean over the rows that have one.

    Parameters
    ----------
    metric : {"ndcg", "recall", "map", "auc"}, default="ndcg"
        See `skmc.metrics.ndcg_at_k`, `recall_at_k`, `map_at_k` and `auc`.
    k : int >= 1, default=10
        Number of columns that are shown; without effect for "auc".
    threshold : float or None, default=None
        Held-out cells below it are not relevant. None means that all are.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from skmc import Entries, FactorizationCompleter
    >>> from skmc.model_selection import RankingScorer
    >>> rng = np.random.RandomState(0)
    >>> bought = np.where(rng.rand(30, 20) < 0.3, 1.0, np.nan)
    >>> completer = FactorizationCompleter(2, alpha=10, lambda_ridge=1, random_state=0)
    >>> search = GridSearchCV(
    ...     completer,
    ...     {"rank": [1, 2]},
    ...     scoring=RankingScorer("recall", k=5),
    ...     cv=KFold(3, shuffle=True, random_state=0),
    ... )
    >>> bool(0 < search.fit(Entries(bought)).best_score_ < 1)
    True
    """

    metric: str = "ndcg"
    k: int = 10
    threshold: float | None = None

    def __call__(self, estimator: Any, X: Any, y: object = None) -> float:
        """Score a fitted completer on held-out cells.

        Parameters
        ----------
        estimator : completer
            Fitted, with the method ``recommend``.
        X : Entries
            Held-out cells of the fitted matrix.
        y : Ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        float
        """
        if self.metric not in RANKING:
            raise ValueError(
                f"metric must be among {tuple(RANKING)}, got {self.metric!r}."
            )
        if not hasattr(estimator, "recommend"):
            raise TypeError(
                f"{type(estimator).__name__} cannot rank columns; use a completer with "
                "the method recommend, such as FactorizationCompleter."
            )
        if not isinstance(X, Entries):
            raise TypeError(
                f"X must be Entries, the held-out cells, got {type(X).__name__}; pass "
                "Entries to the search."
            )
        low = -np.inf if self.threshold is None else self.threshold
        X = X[X.values >= low]
        if not len(X):
            raise ValueError(
                f"no held-out cell reaches threshold={self.threshold}; lower it."
            )
        gains, best = [], []
        users, n_cols = np.unique(X.rows), X.matrix_shape[1]
        size = max(1, BLOCK // n_cols)
        for start in range(0, len(users), size):
            part = users[start : start + size]
            items = estimator.recommend(part, n_cols)[0]
            here = np.isin(X.rows, part)
            relevant = np.zeros((len(part), n_cols))
            relevant[np.searchsorted(part, X.rows[here]), X.cols[here]] = 1.0
            none = np.ma.getmaskarray(items)
            found = np.take_along_axis(relevant, np.where(none, 0, items.data), 1)
            gains.append(np.where(none, np.nan, found))
            best.append(-np.sort(-gains[-1], axis=1))
        return RANKING[self.metric](np.vstack(gains), np.vstack(best), self.k)


class LeaveLastOut:
    """Splitter that holds out the latest cells of each row.

    Use it as ``cv`` of a search that is fitted to `Entries`, with the time of each cell
    as ``groups``: ``search.fit(cells, groups=times)``.

    Parameters
    ----------
    n_last : int >= 1, default=1
        Number of cells of each row that a split holds out. A row keeps at least one
        cell to train on.
    n_splits : int >= 1, default=1
        Number of splits. The second one holds out the cells before those of the first
        one and trains on what is earlier still, and so on.

    Examples
    --------
    >>> from skmc import Entries
    >>> from skmc.model_selection import LeaveLastOut
    >>> cells = Entries([[5, 3, 4], [1, 2, 2]])
    >>> [(train, test)] = LeaveLastOut().split(cells, groups=[3, 1, 2, 7, 9, 8])
    >>> test
    array([0, 4])
    """

    def __init__(self, n_last: int = 1, n_splits: int = 1):
        self.n_last = n_last
        self.n_splits = n_splits

    def split(self, X: Container, y: object = None, groups: object = None) -> Any:
        """Generate positions in ``Entries(X)`` to train on and to hold out.

        Parameters
        ----------
        X : container
            Matrix whose observed cells are split.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        groups : array-like of numbers or dates, shape (n_cells,)
            Time of each cell. Of equal times, the later position is the last.

        Yields
        ------
        train : int ndarray
        test : int ndarray
        """
        if not (self.n_last >= 1 and self.n_splits >= 1):
            raise ValueError(
                f"n_last and n_splits must be at least 1, got {self.n_last} and "
                f"{self.n_splits}."
            )
        cells = X if isinstance(X, Entries) else Entries(X)
        times = None if groups is None else np.asarray(groups)
        if times is None or times.shape != (len(cells),):
            raise ValueError(
                f"groups must be the time of each of the {len(cells)} cells, got "
                f"{'None' if times is None else f'shape {times.shape}'}."
            )
        missing = times != times  # NaN and NaT
        if missing.any():
            raise ValueError(f"groups has no time at position {missing.argmax()}.")
        order = np.lexsort((times, cells.rows))
        count = np.bincount(cells.rows, minlength=cells.matrix_shape[0])
        # Number of later cells of the same row.
        later = np.empty(len(cells), int)
        later[order] = count.cumsum()[cells.rows[order]] - 1 - np.arange(len(cells))
        first = later == count[cells.rows] - 1
        for k in range(self.n_splits):
            low, high = k * self.n_last, (k + 1) * self.n_last
            test = (later >= low) & (later < high) & ~first
            if not test.any():
                raise ValueError(
                    f"no row has {low + 2} cells for split {k}; lower n_splits."
                )
            yield np.flatnonzero((later >= high) | first), np.flatnonzero(test)

    def get_n_splits(
        self, X: object = None, y: object = None, groups: object = None
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X : Ignored, default=None
            Present for compatibility with scikit-learn.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        groups : Ignored, default=None
            Present for compatibility with scikit-learn.

        Returns
        -------
        int
        """
        return self.n_splits
