"""Grid and randomized searches whose fits are solved in batches."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
)

from skmc.model_selection.search import SIZE, BatchedSearch


class BatchedGridSearchCV(BatchedSearch, GridSearchCV):
    """`sklearn.model_selection.GridSearchCV` whose fits are solved in batches.

    Candidates and folds whose matrices share a shape, and whose completers differ only
    in what ``completer_tags.batched`` names (weights, ``random_state``), are members of
    one batch: a leading axis of all tensors. The results are those of ``GridSearchCV``
    up to rounding, but for a completer that diverges, which scores ``error_score``.
    What cannot be batched, a pipeline say, or some method that has no batched solve, is
    fitted as ``GridSearchCV`` does it.

    Parameters
    ----------
    estimator : estimator
        Of which each candidate is a clone.
    param_grid : dict of lists, or list of such
        As for ``GridSearchCV``.
    scoring : str, callable, list, tuple, dict or None, default=None
        As for ``GridSearchCV``.
    n_jobs : int or None, default=None
        Worker processes. Each solves batches of its own; on a CUDA device there is one
        batch, in this process.
    refit : bool, str or callable, default=True
        As for ``GridSearchCV``.
    cv : int, splitter, iterable or None, default=None
        As for ``GridSearchCV``. With `Entries` folds are sets of cells, and ``cv``
        should shuffle: ``KFold(5, shuffle=True)``.
    verbose : int, default=0
        As for ``GridSearchCV``.
    pre_dispatch : int or str, default="2*n_jobs"
        As for ``GridSearchCV``.
    error_score : float or "raise", default=numpy.nan
        As for ``GridSearchCV``.
    return_train_score : bool, default=False
        As for ``GridSearchCV``.
    batch_size : int >= 1 or "auto", default="auto"
        The most fits in one batch. "auto" shares them out evenly among the workers, as
        long as they take a quarter of the device's memory at most; on a CPU, matrices
        of more than 40 000 cells are fitted alone, for a batch would save nothing.
        Where memory runs out on a device all the same, the two halves of the batch are
        solved after each other.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        As ``GridSearchCV`` has it; ``mean_fit_time`` is the share in the batch's time.
    best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, \
refit_time_, multimetric_, n_features_in_, feature_names_in_
        As ``GridSearchCV`` has them.

    Notes
    -----
    Members that converge, are stopped early or diverge leave their batch, so the cost
    is that of those still running. A member that cannot be fitted, for want of observed
    cells in a fold say, scores ``error_score`` with a warning and leaves the others
    alone. A row or column without an observed cell in a fold is answered by means, with
    a warning, as in any fit. ``best_estimator_`` is fitted to all observed cells; given
    to it later, a row in which other cells are missing counts as new.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from skmc import AIRCompleter, Entries
    >>> from skmc.model_selection import BatchedGridSearchCV
    >>> truth = np.cos(np.add.outer(np.arange(20), np.arange(15)) / 5)
    >>> truth[::3, ::2] = np.nan
    >>> search = BatchedGridSearchCV(
    ...     AIRCompleter(max_iter=200, random_state=0),
    ...     {"lambda_row": [0.1, 100.0]},
    ...     cv=KFold(3, shuffle=True, random_state=0),
    ... )
    >>> search.fit(Entries(truth)).best_params_
    {'lambda_row': 0.1}
    """

    _parameter_constraints: ClassVar[dict] = {
        **GridSearchCV._parameter_constraints,
        **SIZE,
    }

    def __init__(
        self,
        estimator,
        param_grid,
        *,
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=None,
        verbose=0,
        pre_dispatch="2*n_jobs",
        error_score=np.nan,
        return_train_score=False,
        batch_size="auto",
    ):
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.batch_size = batch_size


class BatchedRandomizedSearchCV(BatchedSearch, RandomizedSearchCV):
    """`sklearn.model_selection.RandomizedSearchCV` whose fits are solved in batches.

    Parameters
    ----------
    estimator : estimator
        Of which each candidate is a clone.
    param_distributions : dict of lists or distributions, or list of such
        As for ``RandomizedSearchCV``.
    n_iter : int, default=10
        How many candidates are drawn.
    scoring : str, callable, list, tuple, dict or None, default=None
        As for `BatchedGridSearchCV`.
    n_jobs : int or None, default=None
        As for `BatchedGridSearchCV`.
    refit : bool, str or callable, default=True
        As for `BatchedGridSearchCV`.
    cv : int, splitter, iterable or None, default=None
        As for `BatchedGridSearchCV`.
    verbose : int, default=0
        As for `BatchedGridSearchCV`.
    pre_dispatch : int or str, default="2*n_jobs"
        As for `BatchedGridSearchCV`.
    random_state : int, RandomState instance or None, default=None
        Draws the candidates.
    error_score : float or "raise", default=numpy.nan
        As for `BatchedGridSearchCV`.
    return_train_score : bool, default=False
        As for `BatchedGridSearchCV`.
    batch_size : int >= 1 or "auto", default="auto"
        As for `BatchedGridSearchCV`.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, ...
        As for `BatchedGridSearchCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from sklearn.model_selection import KFold
    >>> from skmc import DMFCompleter, Entries
    >>> from skmc.model_selection import BatchedRandomizedSearchCV
    >>> X = np.outer(np.arange(1.0, 13), np.arange(1.0, 9))
    >>> search = BatchedRandomizedSearchCV(
    ...     DMFCompleter("tv", lr=0.02, max_iter=200, random_state=0),
    ...     {"lambda_row": loguniform(1e-3, 1)},
    ...     n_iter=4,
    ...     cv=KFold(2, shuffle=True, random_state=0),
    ...     random_state=0,
    ... ).fit(Entries(X))
    >>> len(search.cv_results_["params"])
    4
    """

    _parameter_constraints: ClassVar[dict] = {
        **RandomizedSearchCV._parameter_constraints,
        **SIZE,
    }

    def __init__(
        self,
        estimator,
        param_distributions,
        *,
        n_iter=10,
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=None,
        verbose=0,
        pre_dispatch="2*n_jobs",
        random_state=None,
        error_score=np.nan,
        return_train_score=False,
        batch_size="auto",
    ):
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.batch_size = batch_size
