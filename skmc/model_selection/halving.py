"""Successive halving whose fits are solved in batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import ParameterGrid

from skmc.compatibility import BaseSearchCV, Interval, StrOptions
from skmc.model_selection.evaluation import Evaluation
from skmc.model_selection.search import Auto, BatchedSearch, ParamGrid, search

MIN_CHECKS = 2  # checks of a fit before it may be dropped


@search
class BatchedHalvingSearchCV(BatchedSearch):
    r"""Successive halving over iterations: the better half of the candidates continues.

    All candidates run a few iterations on all folds. The better half by mean score
    continues from there, *warm*, and so on until one candidate reaches the estimator's
    own ``max_iter``. These rounds are called rungs. They end at a geometric sequence of
    iterations from ``min_resources`` to ``max_iter``, rounded down to the iterations at
    which the completer checks its progress, usually every 25th; rungs that would end at
    the same iteration are merged. Every fit follows the schedule of all ``max_iter``
    steps, so the scores of the last candidate are those of `BatchedGridSearchCV`.

    Parameters
    ----------
    estimator : estimator
        Estimator that is cloned for each candidate.
    param_grid : dict of lists, or list of such dicts
        Values of each parameter, as in `sklearn.model_selection.GridSearchCV`. It must
        not contain ``resource``.
    factor : float > 1, default=2
        The best ``1 / factor`` of the candidates continue; the number is rounded up.
    resource : str, default="max_iter"
        Name of the estimator's parameter that is its number of iterations. Fits outside
        of a batch start from scratch at each rung, with this parameter set to the
        iteration at which the rung ends.
    min_resources : int >= 1 or "auto", default="auto"
        Iterations of the first rung. "auto" is ``max_iter / factor**K`` if ``K`` rungs
        follow, so that each rung has ``factor`` times as many iterations as the one
        before, but at least the iterations of two checks: candidates that are bad at
        the first check are often the best in the end.
    scoring : str, callable or None, default=None
        A single metric. None is the estimator's ``score``.
    n_jobs : int or None, default=None
        Number of workers. Each worker solves its own batches. Fits on a CUDA device run
        in this process, in one batch.
    refit : bool, default=True
        Whether to fit the best candidate to all of ``X``.
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
    n_resources_ : list of int
        Iteration at which each rung ends.
    n_candidates_ : list of int
        Number of candidates of each rung.
    n_iterations_ : int
        Number of rungs.
    cv_results_ : dict of ndarray
        Table with a row for each candidate of each rung: the columns of
        ``GridSearchCV``, "iter" (the number of the rung, from 0) and "n_resources".
        ``params`` do not contain ``resource``. Times are those of the rung alone. The
        best candidate is the best one of the last rung.
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
    Fits are resumed from rung to rung in ``n_jobs`` threads of this process. With a
    backend whose workers are other processes or machines, each rung starts from
    scratch.

    Strongly regularized fits converge more slowly. If no fit has nearly converged at
    the first rung, it favors small weights: for a ``max_iter`` of a few hundred, raise
    ``min_resources`` or use `BatchedGridSearchCV`.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "param_grid": [dict, list],
        "factor": [Interval(Real, 1, None, closed="neither")],
        "resource": [str],
        "min_resources": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
    }

    param_grid: ParamGrid
    _: KW_ONLY
    factor: float = 2
    resource: str = "max_iter"
    min_resources: int | Auto = "auto"

    def _run_search(self, evaluate: Evaluation, *, callback_ctx: Any) -> None:
        candidates = list(ParameterGrid(self.param_grid))
        params = self.estimator.get_params()
        if self.resource not in params:
            raise ValueError(
                f"resource={self.resource!r} is not a parameter of "
                f"{type(self.estimator).__name__}; name the parameter that is its "
                "number of iterations, or use BatchedGridSearchCV."
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
                    "scoring returns several scores; halving needs a single one."
                )
            scores = results["mean_test_score"][-n:]
            names = [names[k] for k in np.argsort(-scores, kind="stable")]  # NaN last
            inner.call_on_fit_task_end(estimator=self)
        context.call_on_fit_task_end(estimator=self)

    def _rungs(self, n_candidates: int, max_iter: int) -> tuple[list[int], list[int]]:
        """Return the number of candidates and the last iteration of each rung."""
        counts = [n_candidates]
        check: int = getattr(self.estimator, "check_every", 1)
        while counts[-1] > 1:
            fewer = math.ceil(counts[-1] / self.factor)
            counts.append(min(fewer, counts[-1] - 1))
        last = len(counts) - 1
        least = max(MIN_CHECKS * check, int(max_iter / self.factor**last))
        if not isinstance(self.min_resources, str):
            least = self.min_resources
        growth = max(1.0, max_iter / least) ** (1 / max(1, last))
        rungs: dict[int, int] = {}
        for k, count in enumerate(counts):
            end = max(int(least * growth**k / check), 1) * check
            rungs.setdefault(min(end, max_iter) if k < last else max_iter, count)
        return list(rungs.values()), list(rungs)

    @staticmethod
    def _select_best_index(
        refit: bool | Callable[..., int], refit_metric: str, results: dict[str, Any]
    ) -> Any:
        if callable(refit):
            return BaseSearchCV._select_best_index(refit, refit_metric, results)
        last = np.flatnonzero(results["iter"] == results["iter"].max())
        return last[np.argsort(-results["mean_test_score"][last], kind="stable")[0]]
