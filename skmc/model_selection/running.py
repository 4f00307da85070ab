"""Fitting the candidates of a search, in batches or one by one."""

from __future__ import annotations

import time
from collections.abc import Sequence

from skmc.base import CannotBatch, warn_user
from skmc.loop import Status
from skmc.model_selection.batch import BatchedFit, Member, begin
from skmc.model_selection.folds import Folds, Outcome, Task


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
