"""How a search fits its candidates: in batches where they share shapes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection._validation import _fit_and_score, _score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _num_samples

from skmc.base import Batchable, CannotBatch, memory_of, resolve_device, warn_user
from skmc.cells import Entries
from skmc.loop import Solution, Status
from skmc.model_selection.batch import BatchedFit, Member, begin

# A step of AIR on one core takes, per member alone and in a batch of 25, .20 and .02 ms
# at 30 x 40, .36 and .23 ms at 100 x 100, 1.06 and .96 ms at 160 x 160, 2.2 and 2.1 ms
# at 240 x 240: on a CPU, matrices with more cells than this gain nothing.
LARGE = 200 * 200
# Threads wait for each other's Python: in 2 threads, 10 members of 30 x 40 take 1.3
# times as long as in one, of 60 x 60 as long, of 80 x 80 .8 of it.
SMALL = 60 * 60
SHARE = 0.25  # of a device's memory


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


def run_alone(folds: Folds, task: Task, resources: dict, caller, context) -> Outcome:
    """Fit a task as scikit-learn does.

    Parameters
    ----------
    folds : Folds
        What all fits share.
    task : Task
        A candidate on a fold.
    resources : dict
        Parameters that the search sets, such as ``max_iter``.
    caller : estimator
        The search, for callbacks.
    context : sklearn.callback.CallbackContext
        Of the search.

    Returns
    -------
    Outcome
    """
    result = folds.alone(task, resources, caller=caller, callback_ctx=context)
    return Outcome({task.label: result})


def run_batch(
    folds: Folds, tasks: Sequence[Task], n_iter: int, resources: dict, keep: bool
) -> Outcome:
    """Fit tasks in one batch; what cannot be is fitted alone, with all its errors.

    ``keep`` batches, which may go on then.

    Parameters
    ----------
    folds : Folds
        What all fits share.
    tasks : sequence of Task
        Candidates on folds.
    n_iter : int
        Iterations in all.
    resources : dict
        Parameters that the search sets, such as ``max_iter``.
    keep : bool
        Whether the batches may go on afterwards.

    Returns
    -------
    Outcome
    """
    start, members, broken = time.time(), [], []
    trains = {split: folds.train(split)[0] for split in {t.label[1] for t in tasks}}
    for task in tasks:
        try:
            members.append(Member(task.completer, trains[task.label[1]], task.label))
        except (ValueError, TypeError, MemoryError):
            # Its data or its parameters are at fault, as fitting it alone will report.
            broken.append(task)
    batches = begin(members, n_iter) if members else iter(())
    together = [task for task in tasks if task not in broken]
    outcome = _collected(folds, together, batches, start, resources, keep)
    for task in broken:
        outcome.results[task.label] = folds.alone(task, resources)
    return outcome


def resume_batch(
    folds: Folds, tasks: Sequence[Task], batch: BatchedFit, resources: dict
) -> Outcome:
    """Go on with those tasks of a batch.

    Parameters
    ----------
    folds : Folds
        What all fits share.
    tasks : sequence of Task
        Candidates on folds.
    batch : BatchedFit
        Which has done some iterations.
    resources : dict
        Parameters that the search sets, such as ``max_iter``.

    Returns
    -------
    Outcome
    """
    start = time.time()
    batch.keep({task.label for task in tasks})
    batches = batch.advance(*resources.values())
    return _collected(folds, tasks, batches, start, resources, keep=True)


def _collected(folds, tasks, batches, start, resources, keep) -> Outcome:
    outcome = Outcome()
    try:
        for batch in batches:
            seconds = (time.time() - start) / len(batch.members)
            for member, solution in batch.solutions():
                if solution.status[0] is Status.INTERRUPTED:
                    raise KeyboardInterrupt
                outcome.results[member.label] = folds.scored(member, solution, seconds)
            if keep:
                outcome.batches.append(batch)
            start = time.time()
    except (ValueError, TypeError, RuntimeError, MemoryError) as error:
        why = str(error) if isinstance(error, CannotBatch) else _named(error)
        warn_alone(len(tasks) - len(outcome.results), why)
    for task in tasks:
        if task.label not in outcome.results:
            outcome.results[task.label] = folds.alone(task, resources)
    return outcome


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).rstrip('.')}"


def warn_alone(n_fits: int, reason: str) -> None:
    """Say that fits are run one by one, and why.

    Parameters
    ----------
    n_fits : int
        How many.
    reason : str
        What forbids a batch.
    """
    fits = "1 fit runs" if n_fits == 1 else f"{n_fits} fits run"
    warn_user(f"{fits} outside of a batch: {reason}.")


def on_cpu(task: Task) -> bool:
    """Whether a task is fitted on the CPU.

    Parameters
    ----------
    task : Task
        A candidate on a fold.

    Returns
    -------
    bool
    """
    return resolve_device(task.completer.device).type == "cpu"


@contextmanager
def threads_for(n_workers: int) -> Iterator[None]:
    """Torch's threads are shared out among so many threads begun in this block.

    Parameters
    ----------
    n_workers : int
        That work at a time.

    Yields
    ------
    None
    """
    n_threads = torch.get_num_threads()
    if n_workers > 1:
        torch.set_num_threads(max(1, n_threads // n_workers))
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def grouped(tasks: Iterable[Task], folds: Folds) -> tuple[list[list[Task]], list[Task]]:
    """Tasks that can share a batch, group by group, and those that cannot.

    Parameters
    ----------
    tasks : iterable of Task
        Candidates on folds.
    folds : Folds
        What all fits share.

    Returns
    -------
    batched : list of list of Task
    alone : list of Task
    """
    groups: dict[Any, list[Task]] = {}
    alone: list[Task] = []
    reasons: dict[str, int] = {}
    kinds = [_kind(folds.train(split)[0]) for split in range(len(folds.splits))]
    keys: dict[int, Any] = {}
    for task in tasks:
        candidate, split = task.label
        try:
            if candidate not in keys:
                keys[candidate] = _batch_key(task.completer, folds)
        except CannotBatch as error:
            reasons[str(error)] = reasons.get(str(error), 0) + 1
            alone.append(task)
        else:
            groups.setdefault((keys[candidate], kinds[split]), []).append(task)
    for reason, n_fits in reasons.items():
        warn_alone(n_fits, reason)
    return list(groups.values()), alone


def _kind(X) -> tuple:
    if isinstance(X, Entries):
        return X.matrix_shape, str(X.values.dtype)
    return np.shape(X), str(getattr(X, "dtype", None))


def _batch_key(estimator, folds: Folds) -> Any:
    name = type(estimator).__name__
    if not isinstance(estimator, Batchable):
        raise CannotBatch(f"{name} has no batched solve")
    if folds.options["fit_params"]:
        raise CannotBatch("parameters for fit are given to single fits")
    return estimator.batch_key()


def batches_of(
    group: list[Task], folds: Folds, n_workers: int, size: str | int, threads: bool
) -> list[list[Task]]:
    """A group cut so that each worker has some, and that its memory suffices.

    Parameters
    ----------
    group : list of Task
        Tasks that can share a batch.
    folds : Folds
        What all fits share.
    n_workers : int
        That work at a time.
    size : int or "auto"
        Tasks of a batch at most.
    threads : bool
        Whether workers are threads, which share the memory.

    Returns
    -------
    list of list of Task
    """
    X = folds.train(group[0].label[1])[0]
    device = resolve_device(group[0].completer.device)
    n_cells = math.prod(_kind(X)[0])
    if threads and n_cells < SMALL:
        n_workers = 1
    if size == "auto":
        size = math.ceil(len(group) / n_workers)
        room = SHARE * memory_of(device) / n_workers
        size = min(size, int(room / _memory_of_member(group[0], X)))
        if device.type == "cpu" and n_cells > LARGE:
            size = 1
    count = math.ceil(len(group) / max(1, int(size)))
    # Dealt out, so that the folds of a candidate, which end alike, are spread evenly.
    return [group[k::count] for k in range(count)]


def _memory_of_member(task: Task, X: Any) -> int:
    try:
        return clone(task.completer).batch_memory(X)
    except (ValueError, TypeError, MemoryError):  # as fitting it will report
        return 1
