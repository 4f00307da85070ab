"""Grid and randomized searches whose fits are solved in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any

from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from skmc.linalg import Seed
from skmc.model_selection.search import BatchedSearch, ParamGrid, search


@search
class BatchedGridSearchCV(BatchedSearch, GridSearchCV):
    """`sklearn.model_selection.GridSearchCV` whose fits are solved in batches.

    Fits share a batch, a leading axis of all tensors, if their matrices have the same
    shape and their completers differ only in parameters named by
    ``completer_tags.batched`` (weights, ``random_state``). Other fits, such as those of
    pipelines, of completers without a batched solve, or of those that choose a rank or
    a weight by themselves ("auto"), run one by one. The results are those of
    ``GridSearchCV`` up to rounding, except that fits that diverge score
    ``error_score``.

    Parameters
    ----------
    estimator : estimator
        Estimator that is cloned for each candidate.
    param_grid : dict of lists, or list of such dicts
        Values of each parameter, as in `sklearn.model_selection.GridSearchCV`.
    scoring : str, callable, list, tuple, dict or None, default=None
        Metrics, as in `sklearn.model_selection.GridSearchCV`. None is the estimator's
        ``score``.
    n_jobs : int or None, default=None
        Number of workers. Each worker solves its own batches. Fits on a CUDA device run
        in this process, in one batch.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate to all of ``X``. A metric's name or a callable
        chooses the best one, as in `sklearn.model_selection.GridSearchCV`.
    cv : int, splitter, iterable or None, default=None
        Folds. Folds of `Entries` are sets of cells, and ``cv`` should shuffle them:
        ``KFold(5, shuffle=True)``. None is five folds, not shuffled.
    verbose : int, default=0
        Messages about fits that are printed, as in
        `sklearn.model_selection.GridSearchCV`.
    pre_dispatch : int or str, default="2*n_jobs"
        Number of jobs that are dispatched in advance, as in
        `sklearn.model_selection.GridSearchCV`.
    error_score : float or "raise", default=numpy.nan
        Score of fits that fail or diverge. "raise" raises the error.
    return_train_score : bool, default=False
        Whether to compute scores on the cells or rows trained on as well.
    batch_size : int >= 1 or "auto", default="auto"
        Maximum number of fits in one batch. "auto" divides the fits evenly among the
        workers and uses at most a quarter of the device's memory. On a CPU, batches of
        a grid search take an estimated ``32 MiB`` at most, to stay in the caches, and
        matrices of more than 40 000 cells are fitted alone, because a batch would not
        be faster.
        If a device nevertheless runs out of memory, the two halves of the batch are
        solved one after the other.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        Table of the candidates, as in ``GridSearchCV``. The time of a fit is its share
        of the time of its batch.
    best_estimator_ : estimator
        The best candidate, fitted to all of ``X``; only with ``refit``.
    best_score_ : float
        Mean test score of the best candidate.
    best_params_ : dict
        Parameters of the best candidate.
    best_index_ : int
        Row of the best candidate in ``cv_results_``.
    scorer_ : callable or dict
        Scorer, or scorers by name.
    n_splits_ : int
        Number of folds.
    refit_time_ : float
        Seconds of fitting the best candidate to all of ``X``.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    Notes
    -----
    Fits that have converged, stopped early or diverged are removed from their batch, so
    that the cost is that of the running fits. A fit that fails, for example because a
    fold has no observed cell, scores ``error_score`` with a warning and does not affect
    the others. A row or column without an observed cell in a fold is filled with means,
    with a warning, as in any fit. ``best_estimator_`` is fitted to all observed cells:
    it treats a row with other missing cells as a new row.

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

    param_grid: ParamGrid


@search
class BatchedRandomizedSearchCV(BatchedSearch, RandomizedSearchCV):
    """`sklearn.model_selection.RandomizedSearchCV` whose fits are solved in batches.

    `BatchedGridSearchCV` describes which fits share a batch.

    Parameters
    ----------
    estimator : estimator
        Estimator that is cloned for each candidate.
    param_distributions : dict of lists or distributions, or list of such dicts
        Distribution or values of each parameter, as in ``RandomizedSearchCV``.
    n_iter : int, default=10
        Number of candidates.
    random_state : int, RandomState instance or None, default=None
        Source of the random numbers that draw the candidates.
    scoring : str, callable, list, tuple, dict or None, default=None
        Metrics, as in `sklearn.model_selection.GridSearchCV`. None is the estimator's
        ``score``.
    n_jobs : int or None, default=None
        Number of workers. Each worker solves its own batches. Fits on a CUDA device run
        in this process, in one batch.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate to all of ``X``. A metric's name or a callable
        chooses the best one, as in `sklearn.model_selection.GridSearchCV`.
    cv : int, splitter, iterable or None, default=None
        Folds. Folds of `Entries` are sets of cells, and ``cv`` should shuffle them:
        ``KFold(5, shuffle=True)``. None is five folds, not shuffled.
    verbose : int, default=0
        Messages about fits that are printed, as in
        `sklearn.model_selection.GridSearchCV`.
    pre_dispatch : int or str, default="2*n_jobs"
        Number of jobs that are dispatched in advance, as in
        `sklearn.model_selection.GridSearchCV`.
    error_score : float or "raise", default=numpy.nan
        Score of fits that fail or diverge. "raise" raises the error.
    return_train_score : bool, default=False
        Whether to compute scores on the cells or rows trained on as well.
    batch_size : int >= 1 or "auto", default="auto"
        Maximum number of fits in one batch. "auto" divides the fits evenly among the
        workers and uses at most a quarter of the device's memory. On a CPU, batches of
        a grid search take an estimated ``32 MiB`` at most, to stay in the caches, and
        matrices of more than 40 000 cells are fitted alone, because a batch would not
        be faster.
        If a device nevertheless runs out of memory, the two halves of the batch are
        solved one after the other.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        Table of the candidates, as in ``RandomizedSearchCV``. The time of a fit is its
        share of the time of its batch.
    best_estimator_ : estimator
        The best candidate, fitted to all of ``X``; only with ``refit``.
    best_score_ : float
        Mean test score of the best candidate.
    best_params_ : dict
        Parameters of the best candidate.
    best_index_ : int
        Row of the best candidate in ``cv_results_``.
    scorer_ : callable or dict
        Scorer, or scorers by name.
    n_splits_ : int
        Number of folds.
    refit_time_ : float
        Seconds of fitting the best candidate to all of ``X``.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

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

    param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    _: KW_ONLY
    n_iter: int = 10
    random_state: Seed = None
