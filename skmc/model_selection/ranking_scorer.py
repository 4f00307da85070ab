"""Scorers that rank the columns of each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from skmc.base import BaseCompleter
from skmc.cells import Entries
from skmc.metrics import RANKING, Ranking

BLOCK = 2**22  # largest number of cells ranked at once


def check_metric(metric: str, names: Iterable[str]) -> None:
    """Check the metric of a scorer."""
    if metric not in names:
        raise ValueError(f"metric must be among {tuple(names)}, got {metric!r}.")


def check_scored(X: object) -> None:
    """Check the cells that a scorer gets."""
    if not isinstance(X, Entries):
        raise TypeError(
            f"X must be Entries, the held-out cells, got {type(X).__name__}; pass "
            "Entries to the search."
        )


@dataclass(frozen=True)
class RankingScorer:
    """Scorer of searches over `Entries`: how highly held-out cells are ranked.

    All columns of a row that the fit has not seen are ranked by their predictions
    (``estimator.recommend``). The held-out cells are the relevant ones. The score is
    the mean over the rows that have one.

    Parameters
    ----------
    metric : {"ndcg", "recall", "map", "auc"}, default="ndcg"
        Metric, see `skmc.metrics.ndcg_at_k`, `recall_at_k`, `map_at_k` and `auc`.
    k : int >= 1, default=10
        Number of columns that are shown; without effect for "auc".
    threshold : float or None, default=None
        Smallest value of a relevant held-out cell. None means that all are relevant.

    See Also
    --------
    ErrorScorer : Judges predicted values.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from skmc import Entries, FactorizationCompleter
    >>> from skmc.model_selection import RankingScorer
    >>> rng = np.random.RandomState(0)
    >>> bought = np.where(rng.rand(30, 20) < 0.3, 1.0, np.nan)
    >>> completer = FactorizationCompleter(2, alpha=9, lambda_ridge=0.1, random_state=0)
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

    def __post_init__(self) -> None:
        check_metric(self.metric, RANKING)

    def __call__(self, estimator: BaseCompleter, X: Entries, y: object = None) -> float:
        """Score a fitted completer on held-out cells."""
        check_scored(X)
        if not hasattr(estimator, "recommend"):
            raise TypeError(
                f"{type(estimator).__name__} cannot rank columns; use a completer with "
                "the method recommend, such as FactorizationCompleter."
            )
        low = -np.inf if self.threshold is None else self.threshold
        X = X[X.values >= low]
        if not len(X):
            raise ValueError(
                f"no held-out cell reaches threshold={self.threshold}; lower it."
            )
        ranking = None
        users, n_cols = np.unique(X.rows), X.matrix_shape[1]
        size = max(1, BLOCK // n_cols)
        for start in range(0, len(users), size):
            part = users[start : start + size]
            named = part if X.ids is None else X.ids[0][part]
            items, values = estimator.recommend(named, n_cols)
            if X.ids is not None:
                places = np.searchsorted(X.ids[1], items.data)
                items = np.ma.masked_array(places, np.ma.getmaskarray(items))
            here = np.isin(X.rows, part)
            relevant = np.zeros((len(part), n_cols))
            relevant[np.searchsorted(part, X.rows[here]), X.cols[here]] = 1.0
            none = np.ma.getmaskarray(items)
            hits = np.take_along_axis(relevant, np.where(none, 0, items.data), 1)
            rows = Ranking.of(np.where(none, np.nan, hits), values.data)
            ranking = rows if ranking is None else ranking.joined(rows)
        return RANKING[self.metric](ranking, self.k)
