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
    {estimator}
    param_grid : dict of lists, or list of such dicts
        Values of each parameter, as in `sklearn.model_selection.GridSearchCV`.
    {scoring}
    {n_jobs}
    {refit}
    {cv}
    {verbose}
    {pre_dispatch}
    {error_score}
    {return_train_score}
    {batch_size}

    Attributes
    ----------
    cv_results_ : dict of ndarray
        Table of the candidates, as in ``GridSearchCV``. The time of a fit is its share
        of the time of its batch.
    {search}

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
    {estimator}
    param_distributions : dict of lists or distributions, or list of such dicts
        Distribution or values of each parameter, as in ``RandomizedSearchCV``.
    n_iter : int, default=10
        Number of candidates.
    random_state : int, RandomState instance or None, default=None
        Source of the random numbers that draw the candidates.
    {scoring}
    {n_jobs}
    {refit}
    {cv}
    {verbose}
    {pre_dispatch}
    {error_score}
    {return_train_score}
    {batch_size}

    Attributes
    ----------
    cv_results_ : dict of ndarray
        Table of the candidates, as in ``RandomizedSearchCV``. The time of a fit is its
        share of the time of its batch.
    {search}

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
