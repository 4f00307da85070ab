"""scikit-learn's search, with fits that are solved in batches."""

from __future__ import annotations

import time
from numbers import Integral

from sklearn.base import _fit_context, clone, is_classifier
from sklearn.model_selection import (
    check_cv,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_method_params

from skmc.model_selection.evaluation import Evaluation
from skmc.model_selection.folds import Folds

SIZE = {
    "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})]
}


class BatchedSearch(BaseSearchCV):
    """The search of scikit-learn, with its own evaluation of candidates.

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
        evaluation = Evaluation(self, folds)
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
