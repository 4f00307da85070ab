"""Fitting the candidates of a search, in batches or one by one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from skmc.base import CannotBatch, warn_user
from skmc.loop import Status
from skmc.model_selection.batch import BatchedFit, Member, started
from skmc.model_selection.folds import FitResults, Folds, Task


def run_batch(
    folds: Folds,
    tasks: Sequence[Task],
    n_iter: int,
    resources: Mapping[str, int],
    keep: bool,
) -> FitResults:
    """Fit and score tasks in one batch.

    Tasks that fail in the batch are fitted alone, which reports their errors.

    Parameters
    ----------
    folds : Folds
        Data and folds of the search.
    tasks : sequence of Task
        Candidates and folds.
    n_iter : int
        Number of iterations.
    resources : dict
        Parameters that the search sets, such as ``max_iter``.
    keep : bool
        Whether to return the batches, so that they can be resumed.

    Returns
    -------
    FitResults
    """
    start = time.time()
    members = []
    trains = {split: folds.part(split)[0] for split in {t.label[1] for t in tasks}}
    for task in tasks:
        # If the data or the parameters are invalid, the fit alone reports the error.
        with suppress(ValueError, TypeError, MemoryError):
            members.append(Member(task.completer, trains[task.label[1]], task.label))
    batches = started(members, n_iter) if members else iter(())
    return _collected(folds, tasks, batches, start, resources, keep)


def resume_batch(
    folds: Folds, tasks: Sequence[Task], batch: BatchedFit, resources: Mapping[str, int]
) -> FitResults:
    """Resume some tasks of a batch and stop the others.

    Parameters
    ----------
    folds : Folds
        Data and folds of the search.
    tasks : sequence of Task
        Tasks to resume.
    batch : BatchedFit
        Batch that contains them.
    resources : dict
        Parameters that the search sets, such as ``max_iter``.

    Returns
    -------
    FitResults
    """
    start = time.time()
    batch.keep_only({task.label for task in tasks})
    batches = batch.advance(*resources.values())
    return _collected(folds, tasks, batches, start, resources, keep=True)


def _collected(
    folds: Folds,
    tasks: Sequence[Task],
    batches: Iterable[BatchedFit],
    start: float,
    resources: Mapping[str, int],
    keep: bool,
) -> FitResults:
    outcome = FitResults()
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
        reason = str(error).rstrip(".")
        if not isinstance(error, CannotBatch):
            reason = f"{type(error).__name__}: {reason}"
        warn_alone(len(tasks) - len(outcome.results), reason)
    for task in tasks:
        if task.label not in outcome.results:
            outcome.results[task.label] = folds.alone(task, resources)
    return outcome


def warn_alone(n_fits: int, reason: str) -> None:
    """Warn that fits are run one by one.

    Parameters
    ----------
    n_fits : int
        Number of fits.
    reason : str
        Reason why they cannot share a batch.
    """
    fits = "1 fit runs" if n_fits == 1 else f"{n_fits} fits run"
    warn_user(f"{fits} outside of a batch: {reason}.")
