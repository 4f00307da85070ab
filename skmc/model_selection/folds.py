"""The folds of a search, and the scores of candidates on them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skmc.base import warn_user
from skmc.cells import Container
from skmc.compatibility import (
    check_method_params,
    fit_and_score,
    num_samples,
    safe_split,
    score_fit,
)
from skmc.loop import Solution, Status
from skmc.model_selection.batch import BatchedFit, Member

TRAIN, TEST = 0, 1  # positions in a split


@dataclass(frozen=True)
class Task:
    """One candidate on one fold.

    Parameters
    ----------
    label : tuple of int
        Numbers of the candidate and of the fold.
    parameters : dict
        Parameters of the candidate.
    completer : object
        Unfitted completer with these parameters.
    """

    label: tuple[int, int]
    parameters: dict[str, Any]
    completer: Any


@dataclass
class FitResults:
    """Results of some tasks.

    Parameters
    ----------
    results : dict of tuple to dict
        Scores and times by the label of the task.
    batches : list of BatchedFit
        Batches that can be resumed.
    """

    results: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    batches: list[BatchedFit] = field(default_factory=list)


@dataclass(frozen=True)
class Folds:
    """Data, folds and scoring options, which all fits of a search share.

    Parameters
    ----------
    X : container or Entries
        Data of the search.
    y : container or None
        Target of the search.
    splits : list of (train, test)
        Positions to train on and to test on, one pair per fold.
    estimator : estimator
        Estimator before the parameters of a candidate are set.
    options : dict
        ``scorer``, ``fit_params``, ``score_params``, ``return_train_score``,
        ``error_score`` and ``verbose`` as in scikit-learn's ``_fit_and_score``.
    """

    X: Any
    y: Any
    splits: list[tuple[np.ndarray, np.ndarray]]
    estimator: Any
    options: dict[str, Any]

    def part(self, split: int, which: int = TRAIN) -> tuple[Any, Any]:
        """Return the part of the data to train on, or to test on.

        Parameters
        ----------
        split : int
            Number of the fold.
        which : {TRAIN, TEST}, default=TRAIN
            The part.

        Returns
        -------
        X : container
        y : container or None
        """
        parts = self.splits[split]
        X, y = safe_split(self.estimator, self.X, self.y, parts[which], parts[TRAIN])
        return X, y

    def alone(
        self,
        task: Task,
        resources: Mapping[str, int],
        caller: object = None,
        context: object = None,
    ) -> dict[str, Any]:
        """Fit and score one task as scikit-learn does.

        Parameters
        ----------
        task : Task
            Candidate and fold.
        resources : dict
            Parameters that the search sets, such as ``max_iter``.
        caller : estimator or None, default=None
            The search, which is passed on to callbacks.
        context : sklearn.callback.CallbackContext or None, default=None
            Callback context of the search.

        Returns
        -------
        dict
            Scores and times, as ``_fit_and_score`` returns them.
        """
        train, test = self.splits[task.label[1]]
        result: dict[str, Any] = fit_and_score(
            clone(self.estimator),
            self.X,
            self.y,
            train=train,
            test=test,
            parameters={**task.parameters, **resources},
            return_n_test_samples=True,
            return_times=True,
            return_estimator=True,
            caller=caller,
            callback_ctx=context,
            **self.options,
        )
        fitted = result.pop("estimator")
        if getattr(fitted, "status_", None) == Status.DIVERGED:
            result |= self.failed(f"{fitted!r} diverged by iteration {fitted.n_iter_}.")
        return result

    def scored(
        self, member: Member, solution: Solution, seconds: float
    ) -> dict[str, Any]:
        """Score one fit of a batch.

        Parameters
        ----------
        member : Member
            Fit to score.
        solution : Solution
            Solution of the fit.
        seconds : float
            Share of the fit in the run time of the batch.

        Returns
        -------
        dict
            Scores and times, as scikit-learn's ``_fit_and_score`` returns them.
        """
        split = member.label[1]
        X, y = self.part(split, TEST)
        start = time.time()
        error = self._accept(member, solution)
        result: dict[str, Any] = {
            "fit_error": error,
            "n_test_samples": num_samples(X),
        }
        result["fit_time"] = seconds + time.time() - start
        start = time.time()
        if error is not None:
            result |= self.failed(error)
        else:
            result["test_scores"] = self._score(member, X, y, TEST)
        result["score_time"] = time.time() - start
        if error is None and self.options["return_train_score"]:
            result["train_scores"] = self._score(member, *self.part(split), TRAIN)
        if self.options["verbose"] > 1:
            print(f"[CV] END {member.completer!r}, score={result['test_scores']}")
        return result

    def _accept(self, member: Member, solution: Solution) -> str | None:
        """Set the fitted attributes; return an error message if the fit diverged."""
        completer = member.completer
        advice = completer.batch_accept(member.prepared, solution)
        if solution.status[0] is Status.DIVERGED:
            return f"{completer!r} {advice}"
        unfinished = solution.status[0] is Status.MAX_ITER and (
            int(solution.n_iter) < completer.max_iter
        )
        if advice and not unfinished:
            warn_user(f"{type(completer).__name__} {advice}", ConvergenceWarning)
        return None

    def _score(self, member: Member, X: Container, y: object, part: int) -> Any:
        indices = self.splits[member.label[1]][part]
        params = check_method_params(self.X, self.options["score_params"], indices)
        scorer, error_score = self.options["scorer"], self.options["error_score"]
        return score_fit(member.completer, X, y, scorer, params, error_score)

    def failed(self, error: str) -> dict[str, Any]:
        """Return the results of a fit that failed.

        Parameters
        ----------
        error : str
            Traceback or message.

        Returns
        -------
        dict
            The error, and ``error_score`` in place of the scores.

        Raises
        ------
        FloatingPointError
            ``error_score`` is "raise".
        """
        score = self.options["error_score"]
        if score == "raise":
            raise FloatingPointError(error)
        names = getattr(self.options["scorer"], "_scorers", None)
        scores = score if names is None else dict.fromkeys(names, score)
        failed = {"fit_error": error, "test_scores": scores}
        if self.options["return_train_score"]:
            failed["train_scores"] = scores
        return failed
