"""The grid search whose fits are solved in batches."""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import product
from typing import Any, Self

import joblib
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.parallel import Parallel, delayed

from skmc.base import CannotBatch, warn_user
from skmc.cells import Container, Entries
from skmc.compatibility import page_of_class, safe_split
from skmc.linalg import resolve_device
from skmc.model_selection.batch import fit_prepared, group_key, largest_batch

Fits = dict[Any, Any]  # fitted completers by `_key`


class BatchedGridSearchCV(GridSearchCV):  # type: ignore[misc]
    """`sklearn.model_selection.GridSearchCV` whose fits are solved in batches.

    Fits share a batch, a leading axis of all tensors, if their matrices have the same
    shape and their completers differ only in parameters named by
    ``completer_tags.batched`` (weights, ``random_state``). Other fits, such as those of
    pipelines, of completers without a batched solve, or of those that choose a rank or
    a weight by themselves ("auto"), run one by one, with a warning that says why. The
    results are those of ``GridSearchCV`` up to rounding.

    A batch takes at most a quarter of the device's memory. On a CPU it takes an
    estimated 32 MiB at most, to stay in the caches, and matrices of more than 40 000
    cells are fitted alone, because a batch would not be faster.

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
        Number of workers, among which the batches are divided.
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
        Score of fits that fail. "raise" raises the error.
    return_train_score : bool, default=False
        Whether to compute scores on the cells or rows trained on as well.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        Table of the candidates, as in ``GridSearchCV``.
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

    See Also
    --------
    fit_batch : Fits several completers in one batch.
    CellSplit : Folds that hold out cells in the pattern in which they are missing.

    Notes
    -----
    Fits that have converged, stopped early or diverged are removed from their batch, so
    that the cost is that of the running fits. The times in ``cv_results_`` do not
    include what is solved in a batch. ``best_estimator_`` is fitted to all observed
    cells: it treats a row with other missing cells as a new row.

    For a randomized search, draw the candidates first: ``param_grid=[{name: [value] for
    name, value in drawn.items()} for drawn in ParameterSampler(distributions, 20)]``.

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

    _doc_link_module = "skmc"
    _doc_link_template = property(page_of_class)

    def fit(self, X: Container, y: object = None, **params: Any) -> Self:
        """Evaluate all candidates, and fit the best one to all of ``X``.

        Parameters
        ----------
        X : `Entries`, or a container of shape (n_samples, n_features)
            Data to split. Splits consist of cells for `Entries`, otherwise of rows.
        y : array-like, optional
            Target that is passed to ``scoring``.
        **params : dict
            Parameters as in ``GridSearchCV.fit``. With any of them, fits are not
            batched.

        Returns
        -------
        self
        """
        if isinstance(X, Entries) and isinstance(self.scoring, (str, list, tuple)):
            raise ValueError(
                f"scoring={self.scoring!r} compares predict(X) with y, but X is "
                "Entries, whose values are part of X; pass scoring=ErrorScorer('rmse') "
                "or RankingScorer() of skmc.model_selection, or None."
            )
        if params:
            warn_user(f"Fits with {' and '.join(params)} run outside of a batch.")
            return super().fit(X, y, **params)
        self._validate_params()
        X, y = indexable(X, y)
        search = copy.copy(self)
        # Splits may be random, so they are drawn once.
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        search.cv = list(cv.split(X, y))
        fits = self._fits(X, y, search.cv)
        if fits:
            search.estimator = _PartlyFitted(self.estimator, fits)
            # Scores take less time than sending the fits to workers.
            complete = len(fits) == len(search.cv) * len(ParameterGrid(self.param_grid))
            search.n_jobs = 1 if complete else self.n_jobs
        super(BatchedGridSearchCV, search).fit(X, y)
        made = {**vars(search), **self.get_params(deep=False)}
        if fits and self.refit:
            made["best_estimator_"] = search.best_estimator_.completer
        if fits and self.scoring is None:
            made["scorer_"] = check_scoring(self.estimator)
        self.__dict__.update(made)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.transformer_tags = inner.transformer_tags
        return tags

    def _fits(self, X: Container, y: object, splits: list[Any]) -> Fits:
        """Fit the candidates that can share a batch."""
        candidates, alone = ParameterGrid(self.param_grid), Counter[str]()
        train_parts = [
            safe_split(self.estimator, X, y, train)[0] for train, _ in splits
        ]
        groups: dict[Any, list[tuple[Any, Any, Any]]] = defaultdict(list)
        for params, part in product(candidates, train_parts):
            completer = clone(self.estimator).set_params(**clone(params, safe=False))
            try:
                key = _key(params, part)
                groups[group_key(completer, part)].append((key, completer, part))
            except CannotBatch as error:
                alone[str(error)] += 1
        for reason, n_fits in alone.items():
            _warn_alone(n_fits, reason)
        fits: Fits = {}
        for group in groups.values():
            _, completer, part = group[0]
            on_cpu = resolve_device(completer.device).type == "cpu"
            n_workers = joblib.effective_n_jobs(self.n_jobs) if on_cpu else 1
            size = largest_batch(completer, part, n_workers)
            if size == 1:
                continue
            # Equally many batches for each worker.
            count = n_workers * math.ceil(len(group) / (n_workers * size))
            count = min(len(group), count)
            # The folds of a candidate take similar times and come into all batches.
            jobs = [delayed(_fitted)(group[k::count]) for k in range(count)]
            n_jobs = self.n_jobs if on_cpu else 1
            for fitted in Parallel(n_jobs=n_jobs, pre_dispatch=self.pre_dispatch)(jobs):
                fits |= fitted
        return fits


class _PartlyFitted:
    """A completer some of whose fits are already there.

    For grids of weights and seeds on matrices of up to 40 000 cells, or on a GPU; not
    for parameters that change shapes, such as a rank.

    Parameters
    ----------
    completer : completer
        Completer to fit.
    fits : dict
        Fitted completers by `_key`.
    """

    def __init__(self, completer: Any, fits: Fits):
        self.completer, self.fits = completer, fits
        self.candidate: dict[str, Any] = {}

    def fit(self, X: Container, y: object = None) -> Self:
        """Take the fit, or make it."""
        fitted = self.fits.get(_key(self.candidate, X))
        if fitted is None:
            self.completer.fit(X, y)
        else:  # callbacks that the search has set stay
            vars(self.completer).update(vars(fitted))
        return self

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of a candidate."""
        self.candidate = params
        self.completer.set_params(**params)
        return self

    def __getattr__(self, name: str) -> Any:
        if name in ("completer", "fits"):  # while it is unpickled
            raise AttributeError(name)
        return getattr(self.completer, name)

    def __sklearn_clone__(self) -> _PartlyFitted:
        return _PartlyFitted(clone(self.completer), self.fits)


def _key(candidate: Mapping[str, Any], X: Container) -> Any:
    # joblib's hash of a masked array does not contain its mask.
    return joblib.hash((dict(candidate), pickle.dumps(X)))


def _fitted(group: list[tuple[Any, Any, Any]]) -> Fits:
    """Fit completers in one batch; leave out those that cannot be fitted in it."""
    members, keys = [], []
    for key, completer, X in group:
        try:
            members.append(_prepared(completer, X))
            keys.append(key)
        except (ValueError, TypeError, MemoryError):
            pass  # the fit alone reports the error
    try:
        fit_prepared(members)
    except (ValueError, TypeError, RuntimeError, MemoryError) as error:
        reason = str(error).rstrip(".")
        if not isinstance(error, CannotBatch):
            reason = f"{type(error).__name__}: {reason}"
        done = sum(hasattr(completer, "n_iter_") for completer, _ in members)
        _warn_alone(len(members) - done, reason)
    fitted = (completer for completer, _ in members)
    pairs = zip(keys, fitted, strict=True)
    return {key: completer for key, completer in pairs if hasattr(completer, "n_iter_")}


def _prepared(completer: Any, X: Any) -> tuple[Any, Any]:
    """Read the cells of a fold; `warn_user` knows this function by its name."""
    return completer, completer.batch_prepare(X)


def _warn_alone(n_fits: int, reason: str) -> None:
    fits = "1 fit runs" if n_fits == 1 else f"{n_fits} fits run"
    warn_user(f"{fits} outside of a batch: {reason}.")
