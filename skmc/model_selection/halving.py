"""Successive halving whose fits are solved in batches."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import (
    ParameterGrid,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils._param_validation import Interval, StrOptions

from skmc.model_selection.search import SIZE, BatchedSearch

LOOKS = 2  # at a fit before it may be given up


class BatchedHalvingSearchCV(BatchedSearch):
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
