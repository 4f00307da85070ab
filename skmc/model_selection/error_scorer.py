"""Scorers of searches over cells: errors of their predictions."""

from __future__ import annotations

from dataclasses import dataclass

from skmc.base import BaseCompleter
from skmc.cells import Entries
from skmc.metrics import mae, rmse
from skmc.model_selection.ranking_scorer import check_metric, check_scored

ERRORS = {"rmse": rmse, "mae": mae}


@dataclass(frozen=True)
class ErrorScorer:
    """Scorer of searches over `Entries`: the negative error of held-out cells.

    scikit-learn's "neg_root_mean_squared_error" and the like compare ``predict(X)``
    with ``y``. Completers have no ``predict``, and the values of `Entries` are part of
    ``X``, so `sklearn.model_selection.cross_val_score` returns NaN with a warning.

    Parameters
    ----------
    metric : {"rmse", "mae"}, default="rmse"
        Root mean squared error or mean absolute error of the held-out cells, in units
        of the data. Higher scores are better, and 0 is perfect.

    See Also
    --------
    RankingScorer : Judges recommendations.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> from skmc import Entries, FactorizationCompleter
    >>> from skmc.model_selection import ErrorScorer
    >>> rng = np.random.RandomState(0)
    >>> X = np.add.outer(rng.randn(30), rng.randn(20)) + 0.1 * rng.randn(30, 20)
    >>> scores = cross_val_score(
    ...     FactorizationCompleter(1, lambda_ridge=0.03, random_state=0),
    ...     Entries(X),
    ...     scoring=ErrorScorer("rmse"),
    ...     cv=KFold(3, shuffle=True, random_state=0),
    ... )
    >>> bool((-0.2 < scores).all() and (scores < -0.05).all())
    True
    """

    metric: str = "rmse"

    def __post_init__(self) -> None:
        check_metric(self.metric, ERRORS)

    def __call__(self, estimator: BaseCompleter, X: Entries, y: object = None) -> float:
        """Score a fitted completer on held-out cells."""
        check_scored(X)
        if not isinstance(estimator, BaseCompleter):
            raise TypeError(
                f"{type(estimator).__name__} cannot predict cells; pass a completer."
            )
        X = X[X.values != estimator.missing_values]
        guess = estimator.predict_entries(*X.labels)
        return -ERRORS[self.metric](guess[None], X.values[None])
