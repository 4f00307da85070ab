"""Searches for hyper-parameters whose fits are solved in batches."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import joblib
import numpy as np
from joblib.parallel import (
    LokyBackend,
    MultiprocessingBackend,
    SequentialBackend,
    ThreadingBackend,
    get_active_backend,
)
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    RandomizedSearchCV,
    check_cv,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import (
    _insert_error_scores,
    _warn_or_raise_about_fit_failures,
)
from sklearn.utils import indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from skmc.model_selection.batch import BatchedFit
from skmc.model_selection.folds import (
    Folds,
    Task,
    batches_of,
    grouped,
    on_cpu,
    resume_batch,
    run_alone,
    run_batch,
    threads_for,
)

LOCAL = (LokyBackend, MultiprocessingBackend, SequentialBackend, ThreadingBackend)
LOOKS = 2  # at a fit before it may be given up
SIZE = {
    "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})]
}


class _BatchedSearch(BaseSearchCV):
    """scikit-learn's search with an evaluation of candidates of its own.

    ``_run_search(evaluate, callback_ctx=...)`` says which candidates to evaluate.
    """

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, **params):
        """Evaluate all candidates and fit the best one to all of ``X``.

        Parameters
        ----------
        X : `Entries`, or a container of shape (n_samples, n_features)
            What is split: cells of `Entries`, rows of anything else.
        y : array-like, optional
            The truth, or whatever ``scoring`` compares with.
        **params : dict
            As for `sklearn.model_selection.GridSearchCV.fit`. Parameters for the
            estimator's ``fit`` keep fits out of batches.

        Returns
        -------
        self
        """
        # The steps of BaseSearchCV.fit, but for the loop over candidates and folds.
        scorer, refit_metric = self._get_scorers()
        X, y = indexable(X, y)
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        told = {"estimator": self, "X": X, "y": y}
        root = self._init_callback_context(
            max_subtasks=1 + (self.refit is not False)
        ).call_on_fit_task_begin(**told)
        self._checked_cv_orig = check_cv(
            self.cv, y, classifier=is_classifier(self.estimator)
        )
        split = routed.splitter.split
        self.n_splits_ = self._checked_cv_orig.get_n_splits(X, y, **split)
        estimator = clone(self.estimator)
        options = {
            "scorer": scorer,
            "fit_params": routed.estimator.fit,
            "score_params": routed.scorer.score,
            "return_train_score": self.return_train_score,
            "error_score": self.error_score,
            "verbose": self.verbose,
        }
        splits = list(self._checked_cv_orig.split(X, y, **split))
        folds = Folds(X, y, splits, estimator, options)
        evaluation = _Evaluation(self, folds)
        self._run_search(evaluation, callback_ctx=root)
        results = evaluation.cv_results

        first = evaluation.results[0]["test_scores"]
        self.multimetric_ = isinstance(first, dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(first)
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(
                self.refit, refit_metric, results
            )
            if not callable(self.refit):
                scores = results[f"mean_test_{refit_metric}"]
                self.best_score_ = scores[self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        if self.refit:
            best = clone(estimator).set_params(**clone(self.best_params_, safe=False))
            context = root.subcontext(task_name="refit-with-best-params")
            with context.propagate_callback_context(best):
                context.call_on_fit_task_begin(**told)
                start = time.time()
                target = {} if y is None else {"y": y}
                best.fit(X, **target, **routed.estimator.fit)
                self.refit_time_ = time.time() - start
            self.best_estimator_ = best
            if hasattr(best, "feature_names_in_"):
                self.feature_names_in_ = best.feature_names_in_
            context.call_on_fit_task_end(**told)
        self.scorer_ = getattr(scorer, "_scorers", scorer)
        self.cv_results_ = results
        root.call_on_fit_task_end(**told)
        return self


class _Evaluation:
    """Evaluates candidates as often as a search asks for it."""

    def __init__(self, search: _BatchedSearch, folds: Folds):
        self.search, self.folds = search, folds
        self.params: list[dict] = []
        self.results: list[dict] = []
        self.more: dict[str, list] = defaultdict(list)
        self.cv_results: dict[str, Any] = {}
        self.under_way: list[BatchedFit] = []

    def __call__(
        self,
        candidates,
        *,
        more_results: Mapping[str, list] | None = None,
        callback_ctx=None,
        names: Sequence[int] | None = None,
        resources: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Add candidates to ``cv_results``, and return it.

        With ``resources``, ``{"max_iter": 100}``, batched fits are those of the
        estimator's own ``max_iter`` as they are at iteration 100. They go on when their
        candidate comes again by the same of ``names``; other fits begin anew.
        """
        candidates, search = list(candidates), self.search
        names, n_splits = names or range(len(candidates)), len(self.folds.splits)
        if n_splits != search.n_splits_:
            raise ValueError(
                f"cv gave {n_splits} splits where get_n_splits says {search.n_splits_}."
            )
        n_fits = len(candidates) * n_splits
        if search.verbose > 0:
            print(
                f"Fitting {n_splits} folds for each of {len(candidates)} candidates, "
                f"totalling {n_fits} fits"
            )
        tasks: list[Task] = []
        contexts: dict[tuple[int, int], Any] = {}
        for (name, params), split in product(
            zip(names, candidates, strict=True), range(n_splits)
        ):
            completer = clone(self.folds.estimator)
            completer.set_params(**clone(params, safe=False))
            if callback_ctx is not None:
                contexts[name, split] = callback_ctx.subcontext(
                    task_name="candidate-split-evaluation", task_id=len(tasks)
                )
            tasks.append(Task((name, split), params, completer))
        found = self._run(tasks, contexts, dict(resources or {}))
        results = [found[task.label] for task in tasks]
        if not results:
            raise ValueError(
                "No fits were performed: there are no candidates, or cv has no splits."
            )
        _warn_or_raise_about_fit_failures(results, search.error_score)
        if callable(search.scoring):
            _insert_error_scores(results, search.error_score)
        self.params += candidates
        self.results += results
        for key, values in (more_results or {}).items():
            self.more[key] += values
        self.cv_results = search._format_results(
            self.params, n_splits, self.results, self.more
        )
        return self.cv_results

    def _run(self, tasks: list[Task], contexts: dict, resources: dict) -> dict:
        """Results by label."""
        search, told = self.search, {"X": self.folds.X, "y": self.folds.y}
        # Batches that are to go on stay where they are, in memory.
        prefer = "threads" if resources else None
        backend, _ = get_active_backend(prefer=prefer)
        keep = bool(resources) and getattr(backend, "supports_sharedmem", False)
        workers = {"n_jobs": search.n_jobs, "pre_dispatch": search.pre_dispatch}
        batched, alone = self._jobs(tasks, resources, keep, type(backend) in LOCAL)
        together = [contexts[label] for label in contexts if label not in alone]
        for context in together:
            context.call_on_fit_task_begin(estimator=search, **told)
        # What is on this machine's device stays in this process.
        outcomes = Parallel(n_jobs=1)(job for here, job in batched if here)
        if sent := [job for here, job in batched if not here]:
            with threads_for(joblib.effective_n_jobs(search.n_jobs) if keep else 1):
                outcomes += Parallel(**workers, prefer=prefer)(sent)
        if alone:  # ray takes seconds to do nothing
            outcomes += Parallel(**workers)(
                delayed(run_alone)(
                    self.folds, task, resources, search, contexts.get(label)
                )
                for label, task in alone.items()
            )
        for context in together:
            context.call_on_fit_task_end(estimator=search, **told)
        self.under_way = [batch for outcome in outcomes for batch in outcome.batches]
        return {k: v for outcome in outcomes for k, v in outcome.results.items()}

    def _jobs(
        self, tasks: list[Task], resources: dict, keep: bool, local: bool
    ) -> tuple[list, dict]:
        """Batches with whether they stay in this process, and what is fitted alone."""
        folds, search = self.folds, self.search
        left = {task.label: task for task in tasks}
        jobs = []
        for batch in self.under_way:
            labels = [member.label for member in batch.members.values()]
            going = [left.pop(label) for label in labels if label in left]
            if going:
                job = delayed(resume_batch)(folds, going, batch, resources)
                jobs.append((local and not on_cpu(going[0]), job))
        groups, rest = grouped(left.values(), folds)
        n_workers = joblib.effective_n_jobs(search.n_jobs)
        for group in groups:
            here = local and not on_cpu(group[0])
            n_iter = min(resources.values(), default=group[0].completer.max_iter)
            workers = 1 if here else n_workers
            for part in batches_of(group, folds, workers, search.batch_size, keep):
                if len(part) == 1 and not keep:
                    rest += part
                    continue
                job = delayed(run_batch)(folds, part, n_iter, resources, keep)
                jobs.append((here, job))
        return jobs, {task.label: task for task in rest}


class BatchedGridSearchCV(_BatchedSearch, GridSearchCV):
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


class BatchedRandomizedSearchCV(_BatchedSearch, RandomizedSearchCV):
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


class BatchedHalvingSearchCV(_BatchedSearch):
    r"""Successive halving over iterations: the better half of the fits goes on.

    All candidates do a few iterations on all folds. The better half, by mean score,
    goes on from there, *warm*, and so on until one is left at the estimator's own
    ``max_iter``. The rungs end at a geometric sequence of iterations from
    ``min_resources`` to ``max_iter``, rounded down to those that the completer looks
    at, usually each 25th; there are no two rungs at one iteration. Every fit follows
    the schedule of all ``max_iter`` steps, so the winner's scores are those that
    `BatchedGridSearchCV` finds for it.

    Parameters
    ----------
    estimator : estimator
        Of which each candidate is a clone.
    param_grid : dict of lists, or list of such
        As for ``GridSearchCV``; without ``resource``.
    factor : float > 1, default=2
        One in so many goes on, rounded up.
    resource : str, default="max_iter"
        The estimator's parameter that is its number of iterations. What cannot be
        batched is fitted anew at each rung, with this parameter set to its end.
    min_resources : int >= 1 or "auto", default="auto"
        Iterations of the first rung. "auto" is ``max_iter / factor**K`` with ``K`` more
        rungs to come, so that each does ``factor`` times as many, but two looks at
        least: what is given up at the first look is often the best in the end.
    scoring : str, callable or None, default=None
        As for `BatchedGridSearchCV`, but a single metric.
    n_jobs : int or None, default=None
        As for `BatchedGridSearchCV`.
    refit : bool, default=True
        As for `BatchedGridSearchCV`.
    cv : int, splitter or iterable, default=5
        As for `BatchedGridSearchCV`.
    verbose : int, default=0
        As for `BatchedGridSearchCV`.
    pre_dispatch : int or str, default="2*n_jobs"
        As for `BatchedGridSearchCV`.
    error_score : float or "raise", default=numpy.nan
        As for `BatchedGridSearchCV`.
    return_train_score : bool, default=False
        As for `BatchedGridSearchCV`.
    batch_size : int >= 1 or "auto", default="auto"
        As for `BatchedGridSearchCV`.

    Attributes
    ----------
    n_resources_ : list of int
        Iterations at the end of each rung.
    n_candidates_ : list of int
        Candidates of each rung.
    n_iterations_ : int
        How many rungs there were.
    cv_results_ : dict of ndarray
        One row for each candidate of each rung, with "iter" (the rung's number, from 0)
        and "n_resources" beside the columns of ``GridSearchCV``. ``params`` do not
        name ``resource``. ``mean_fit_time`` is that of the rung alone.
    best_index_ : int
        The best row of the last rung.
    best_estimator_, best_score_, best_params_, scorer_, n_splits_, refit_time_
        As for `BatchedGridSearchCV`.

    Notes
    -----
    Fits go on from rung to rung, in ``n_jobs`` threads of this process. Under a backend
    whose workers are other processes or machines, each rung begins anew.

    Strongly regularised fits learn more slowly. A first rung at which none has settled
    favours light weights: where ``max_iter`` is a few hundred, raise ``min_resources``
    or ask `BatchedGridSearchCV`.

    References
    ----------
    Jamieson, Talwalkar. Non-stochastic best arm identification and hyperparameter
    optimization. AISTATS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from skmc import AIRCompleter, Entries
    >>> from skmc.model_selection import BatchedHalvingSearchCV
    >>> truth = np.cos(np.add.outer(np.arange(20), np.arange(15)) / 5)
    >>> search = BatchedHalvingSearchCV(
    ...     AIRCompleter(random_state=0),
    ...     {"lambda_row": [0.01, 0.1, 1.0, 100.0]},
    ...     cv=KFold(2, shuffle=True, random_state=0),
    ... ).fit(Entries(truth))
    >>> search.n_candidates_, search.n_resources_
    ([4, 2, 1], [100, 200, 400])
    """

    _parameter_constraints: ClassVar[dict] = {
        **BaseSearchCV._parameter_constraints,
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "param_grid": [dict, list],
        "factor": [Interval(Real, 1, None, closed="neither")],
        "resource": [str],
        "min_resources": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        **SIZE,
    }

    def __init__(
        self,
        estimator,
        param_grid,
        *,
        factor=2,
        resource="max_iter",
        min_resources="auto",
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=5,
        verbose=0,
        pre_dispatch="2*n_jobs",
        error_score=np.nan,
        return_train_score=False,
        batch_size="auto",
    ):
        super().__init__(
            estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.param_grid = param_grid
        self.factor = factor
        self.resource = resource
        self.min_resources = min_resources
        self.batch_size = batch_size

    def _run_search(self, evaluate, *, callback_ctx) -> None:
        candidates = list(ParameterGrid(self.param_grid))
        params = self.estimator.get_params()
        if self.resource not in params:
            raise ValueError(
                f"resource={self.resource!r} is no parameter of "
                f"{type(self.estimator).__name__}; name the one that is its number of "
                "iterations, or use BatchedGridSearchCV."
            )
        if any(self.resource in candidate for candidate in candidates):
            raise ValueError(
                f"param_grid contains {self.resource!r}, which is the resource; set it "
                "on the estimator."
            )
        self.n_candidates_, self.n_resources_ = self._rungs(
            len(candidates), params[self.resource]
        )
        self.n_iterations_ = len(self.n_candidates_)
        context = callback_ctx.subcontext(
            task_name="search", max_subtasks=self.n_iterations_
        ).call_on_fit_task_begin(estimator=self)
        names = list(range(len(candidates)))
        for rung, n_resources in enumerate(self.n_resources_):
            names = names[: self.n_candidates_[rung]]
            n = len(names)
            inner = context.subcontext(
                task_name="halving-iteration",
                max_subtasks=n * self.n_splits_,
                sequential_subtasks=False,
            ).call_on_fit_task_begin(estimator=self)
            results = evaluate(
                [candidates[name] for name in names],
                more_results={"iter": [rung] * n, "n_resources": [n_resources] * n},
                callback_ctx=inner,
                names=names,
                resources={self.resource: n_resources},
            )
            if "mean_test_score" not in results:
                raise ValueError(
                    "scoring gives several scores; halving needs one to go by."
                )
            scores = results["mean_test_score"][-n:]
            names = [names[k] for k in np.argsort(-scores, kind="stable")]  # NaN last
            inner.call_on_fit_task_end(estimator=self)
        context.call_on_fit_task_end(estimator=self)

    def _rungs(self, n_candidates: int, max_iter: int) -> tuple[list[int], list[int]]:
        """How many candidates each rung has, and at which iteration it ends."""
        counts, check = [n_candidates], getattr(self.estimator, "check_every", 1)
        while counts[-1] > 1:
            fewer = math.ceil(counts[-1] / self.factor)
            counts.append(min(fewer, counts[-1] - 1))
        last = len(counts) - 1
        least = self.min_resources
        if least == "auto":
            least = max(LOOKS * check, int(max_iter / self.factor**last))
        growth = max(1.0, max_iter / least) ** (1 / max(1, last))
        rungs: dict[int, int] = {}
        for k, count in enumerate(counts):
            end = max(int(least * growth**k / check), 1) * check
            rungs.setdefault(min(end, max_iter) if k < last else max_iter, count)
        return list(rungs.values()), list(rungs)

    @staticmethod
    def _select_best_index(refit, refit_metric, results):
        if callable(refit):
            return BaseSearchCV._select_best_index(refit, refit_metric, results)
        last = np.flatnonzero(results["iter"] == results["iter"].max())
        return last[np.argsort(-results["mean_test_score"][last], kind="stable")[0]]
