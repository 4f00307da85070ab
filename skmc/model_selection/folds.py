"""Candidates on folds: what the fits of a search share, and how they are scored."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection._validation import _fit_and_score, _score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _num_samples

from skmc.base import warn_user
from skmc.loop import Solution, Status
from skmc.model_selection.batch import BatchedFit, Member


@dataclass(frozen=True)
class Task:
    """One candidate on one fold.

    Parameters
    ----------
    label : tuple of int
        Numbers of the candidate and of the fold.
    parameters : dict
        Of the candidate.
    completer : object
        With these parameters.
    """

    label: tuple[int, int]  # numbers of the candidate and of the fold
    parameters: dict[str, Any]
    completer: Any  # with these parameters


@dataclass
class Outcome:
    """Results by label, and the batches that may go on.

    Parameters
    ----------
    results : dict of tuple to dict
        By label.
    batches : list of BatchedFit
        That may go on.
    """

    results: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    batches: list[BatchedFit] = field(default_factory=list)


@dataclass(frozen=True)
class Folds:
    """Data, folds and scores of a search: what all of its fits share.

    Parameters
    ----------
    X : container or Entries
        As given to the search.
    y : container or None
        As given to the search.
    splits : list of (train, test)
        Positions to train on and to test on.
    estimator : estimator
        Without the parameters of a candidate.
    options : dict
        ``scorer``, ``fit_params``, ``score_params``, ``return_train_score``,
        ``error_score``, ``verbose``, as scikit-learn passes them on.
    """

    X: Any
    y: Any
    splits: list[tuple[np.ndarray, np.ndarray]]
    estimator: Any
    options: dict[str, Any]

    def train(self, split: int) -> tuple[Any, Any]:
        """The part of the data to train on.

        Parameters
        ----------
        split : int
            Number of the fold.

        Returns
        -------
        X : container
        y : container or None
        """
        return _safe_split(self.estimator, self.X, self.y, self.splits[split][0])

    def test(self, split: int) -> tuple[Any, Any]:
        """The part of the data to test on.

        Parameters
        ----------
        split : int
            Number of the fold.

        Returns
        -------
        X : container
        y : container or None
        """
        train, test = self.splits[split]
        return _safe_split(self.estimator, self.X, self.y, test, train)

    def alone(self, task: Task, resources: dict, **callbacks) -> dict[str, Any]:
        """Fit and score as scikit-learn does.

        Parameters
        ----------
        task : Task
            A candidate on a fold.
        resources : dict
            Parameters that the search sets, such as ``max_iter``.
        **callbacks : dict
            For scikit-learn's own fit.

        Returns
        -------
        dict
        """
        train, test = self.splits[task.label[1]]
        result = _fit_and_score(
            clone(self.estimator),
            self.X,
            self.y,
            train=train,
            test=test,
            parameters=task.parameters | resources,
            return_n_test_samples=True,
            return_times=True,
            return_estimator=True,
            **callbacks,
            **self.options,
        )
        fitted = result.pop("estimator")
        if getattr(fitted, "status_", None) == Status.DIVERGED:
            result |= self.failed(f"{fitted!r} diverged by iteration {fitted.n_iter_}.")
        return result

    def scored(
        self, member: Member, solution: Solution, seconds: float
    ) -> dict[str, Any]:
        """The scores of a member of a batch, and what else scikit-learn reports.

        Parameters
        ----------
        member : Member
            Whose fit has ended.
        solution : Solution
            How it ended.
        seconds : float
            That it took.

        Returns
        -------
        dict
        """
        split = member.label[1]
        X, y = self.test(split)
        start = time.time()
        error = self._take(member, solution)
        result = {"fit_error": error, "n_test_samples": _num_samples(X)}
        result["fit_time"] = seconds + time.time() - start
        start = time.time()
        if error is not None:
            result |= self.failed(error)
        else:
            result["test_scores"] = self._score(member, X, y, 1)
        result["score_time"] = time.time() - start
        if error is None and self.options["return_train_score"]:
            result["train_scores"] = self._score(member, *self.train(split), 0)
        if self.options["verbose"] > 1:
            print(f"[CV] END {member.completer!r}, score={result['test_scores']}")
        return result

    def _take(self, member: Member, solution: Solution) -> str | None:
        """Set the fitted attributes, and tell what failed."""
        completer = member.completer
        # Where cells are scored, no new row will come.
        advice = completer.batch_accept(member.prepared, solution, defer=True)
        if solution.status[0] is Status.DIVERGED:
            return f"{completer!r} {advice}"
        under_way = solution.status[0] is Status.MAX_ITER and (
            int(solution.n_iter) < completer.max_iter
        )
        if advice and not under_way:
            warn_user(f"{type(completer).__name__} {advice}", ConvergenceWarning)
        return None

    def _score(self, member: Member, X, y, which: int):
        indices = self.splits[member.label[1]][which]
        params = _check_method_params(self.X, self.options["score_params"], indices)
        scorer, error_score = self.options["scorer"], self.options["error_score"]
        return _score(member.completer, X, y, scorer, params, error_score)

    def failed(self, error: str) -> dict[str, Any]:
        """What stands in for the scores of a fit that failed.

        Parameters
        ----------
        error : str
            The traceback.

        Returns
        -------
        dict
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
