"""The base class of searches whose fits are solved in batches."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
)

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import Tags, get_tags, indexable

from skmc.cells import Container, Entries
from skmc.compatibility import (
    BaseSearchCV,
    Interval,
    StrOptions,
    check_method_params,
    fit_context,
    page_of_class,
)
from skmc.model_selection.evaluation import Evaluation
from skmc.model_selection.folds import Folds

Search = TypeVar("Search", bound="BatchedSearch")
Fit = TypeVar("Fit", bound=Callable[..., Any])
validated: Callable[[Fit], Fit] = fit_context(prefer_skip_nested_validation=False)

# Types of the parameters of searches.
Auto = Literal["auto"]
Metric: TypeAlias = str | Callable[..., Any]
Scoring: TypeAlias = Metric | Sequence[str] | Mapping[str, Metric] | None
Values: TypeAlias = Sequence[Any] | np.ndarray
ParamGrid: TypeAlias = Mapping[str, Values] | Sequence[Mapping[str, Values]]


@dataclass(eq=False, repr=False)
class BatchedSearch(BaseSearchCV):
    """Base class that evaluates the candidates of a search in batches.

    Subclasses define ``_run_search(evaluate, callback_ctx=...)``, which calls
    ``evaluate`` with lists of candidates. `search` makes their constructors.

    Parameters
    ----------
    estimator : estimator
        Estimator that is cloned for each candidate.
    scoring : str, callable, list, tuple, dict or None
        Metrics, as in `sklearn.model_selection.GridSearchCV`. None is the estimator's
        ``score``.
    n_jobs : int or None
        Number of workers. Each worker solves its own batches. Fits on a CUDA device run
        in this process, in one batch.
    refit : bool, str or callable
        Whether to fit the best candidate to all of ``X``. A metric's name or a callable
        chooses the best one, as in `sklearn.model_selection.GridSearchCV`.
    cv : int, splitter, iterable or None
        Folds. Folds of `Entries` are sets of cells, and ``cv`` should shuffle them:
        ``KFold(5, shuffle=True)``. None is five folds, not shuffled.
    verbose : int
        Messages about fits that are printed, as in
        `sklearn.model_selection.GridSearchCV`.
    pre_dispatch : int or str
        Number of jobs that are dispatched in advance, as in
        `sklearn.model_selection.GridSearchCV`.
    error_score : float or "raise"
        Score of fits that fail or diverge. "raise" raises the error.
    return_train_score : bool
        Whether to compute scores on the cells or rows trained on as well.
    batch_size : int >= 1 or "auto"
        Maximum number of fits in one batch. "auto" divides the fits evenly among the
        workers and uses at most a quarter of the device's memory. On a CPU, batches of
        a grid search take an estimated ``32 MiB`` at most, to stay in the caches, and
        matrices of more than 40 000 cells are fitted alone, because a batch would not
        be faster.
        If a device nevertheless runs out of memory, the two halves of the batch are
        solved one after the other.

    Attributes
    ----------
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
    multimetric_ : bool
        Whether ``scoring`` has several metrics.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})]
    }
    _doc_link_module = "skmc"
    _doc_link_template = property(page_of_class)

    estimator: Any
    _: KW_ONLY
    scoring: Scoring = None
    n_jobs: int | None = None
    refit: bool | str | Callable[..., int] = True
    cv: object = None
    verbose: int = 0
    pre_dispatch: int | str = "2*n_jobs"
    error_score: float | Literal["raise"] = np.nan
    return_train_score: bool = False
    batch_size: int | Auto = "auto"

    @validated
    def fit(self, X: Container, y: object = None, **params: Any) -> Self:
        """Evaluate all candidates, and fit the best one to all of ``X``.

        Parameters
        ----------
        X : `Entries`, or a container of shape (n_samples, n_features)
            Data to split. Splits consist of cells for `Entries`, otherwise of rows.
        y : array-like, optional
            Target that is passed to ``scoring``.
        **params : dict
            Parameters as in ``GridSearchCV.fit``. If some are passed on to the
            estimator's ``fit``, fits are not batched.

        Returns
        -------
        self
        """
        # The steps of BaseSearchCV.fit except the loop over candidates and folds.
        if isinstance(X, Entries) and isinstance(self.scoring, (str, list, tuple)):
            raise ValueError(
                f"scoring={self.scoring!r} compares predict(X) with y, but X is "
                "Entries, whose values are part of X; pass scoring=ErrorScorer('rmse') "
                "or RankingScorer() of skmc.model_selection, or None."
            )
        scorer, refit_metric = self._get_scorers()
        X, y = indexable(X, y)
        params = check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        arguments = {"estimator": self, "X": X, "y": y}
        root = self._init_callback_context(
            max_subtasks=1 + (self.refit is not False)
        ).call_on_fit_task_begin(**arguments)
        self._checked_cv_orig = check_cv(
            self.cv, y, classifier=is_classifier(self.estimator)
        )
        estimator = clone(self.estimator)
        options = {
            "scorer": scorer,
            "fit_params": routed.estimator.fit,
            "score_params": routed.scorer.score,
            "return_train_score": self.return_train_score,
            "error_score": self.error_score,
            "verbose": self.verbose,
        }
        splits = list(self._checked_cv_orig.split(X, y, **routed.splitter.split))
        self.n_splits_ = len(splits)
        folds = Folds(X, y, splits, estimator, options)
        evaluation = Evaluation(self, folds)
        more: dict[str, Any] = {}
        if "callback_ctx" in inspect.signature(self._run_search).parameters:
            more["callback_ctx"] = root  # from scikit-learn 1.9 on
        self._run_search(evaluation, **more)
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
                context.call_on_fit_task_begin(**arguments)
                start = time.time()
                target = {} if y is None else {"y": y}
                best.fit(X, **target, **routed.estimator.fit)
                self.refit_time_ = time.time() - start
            self.best_estimator_ = best
            if hasattr(best, "feature_names_in_"):
                self.feature_names_in_ = best.feature_names_in_
            context.call_on_fit_task_end(**arguments)
        self.scorer_ = getattr(scorer, "_scorers", scorer)
        self.cv_results_ = results
        root.call_on_fit_task_end(**arguments)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.transformer_tags = inner.transformer_tags
        return tags


@dataclass_transform(eq_default=False)
def search(class_: type[Search]) -> type[Search]:
    """Make a constructor from annotations, and merge the constraints of parameters.

    Parameters
    ----------
    class_ : type
        Subclass of `BatchedSearch`. Its own annotations are its own parameters, which
        come first.

    Returns
    -------
    type
        The same class.
    """
    made: Any = dataclass(eq=False, repr=False)(class_)
    constraints: dict[str, list[Any]] = {}
    for base in reversed(made.__mro__):
        constraints |= vars(base).get("_parameter_constraints", {})
    made._parameter_constraints = constraints
    own, signature = inspect.get_annotations(made), inspect.signature(made.__init__)

    def place(parameter: inspect.Parameter) -> tuple[int, bool]:
        by_name = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        return parameter.kind, by_name and parameter.name not in own

    parameters = sorted(signature.parameters.values(), key=place)
    made.__init__.__signature__ = signature.replace(parameters=parameters)
    return made
