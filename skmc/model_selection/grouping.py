"""Grouping the fits of a search into batches."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from skmc.base import Batchable, CannotBatch
from skmc.cells import Container, Entries
from skmc.linalg import memory_of, resolve_device
from skmc.model_selection.batch_fits import warn_alone
from skmc.model_selection.folds import Folds, Task

# On a CPU, larger matrices are fitted alone, because a batch gains nothing. Measured
# milliseconds per step and member of AIR on one core, alone and in a batch of 25, in
# single precision: 1.06 and 0.96 at 160 x 160, 2.2 and 2.1 at 240 x 240.
MAX_BATCHED_CELLS = 200 * 200
# Batches of smaller matrices run in a single thread, because threads wait for Python's
# lock. Measured for 10 members in 2 threads, relative to one thread: 1.3 times as long
# at 30 x 40, equal at 60 x 60, 0.8 times as long at 80 x 80.
MIN_THREADED_CELLS = 60 * 60
# On a CPU, the arrays of a batch should stay in the caches; this is a bound for an
# estimate from above. Measured microseconds per step and member of AIR in batches of 4,
# 8, 25 and 62, double precision: 41, 34, 25, 24 at 30 x 40 (0.6 MiB a member), 89, 85,
# 81, 103 at 60 x 60 (1.9 MiB), 324, 345, 377, 431 at 100 x 100 (5.2 MiB). Batches of a
# halving search lose members, so they start larger.
MAX_CACHED = 32 * 2**20
MAX_MEMORY_SHARE = 0.25  # share of the device's memory that batches may use


def on_cpu(task: Task) -> bool:
    """Return whether a task is fitted on the CPU.

    Parameters
    ----------
    task : Task
        Candidate and fold.

    Returns
    -------
    bool
    """
    return resolve_device(task.completer.device).type == "cpu"


def grouped(tasks: Iterable[Task], folds: Folds) -> tuple[list[list[Task]], list[Task]]:
    """Group tasks that can share a batch.

    Parameters
    ----------
    tasks : iterable of Task
        Candidates and folds.
    folds : Folds
        Data and folds of the search.

    Returns
    -------
    batched : list of list of Task
        Groups of tasks that can share a batch.
    alone : list of Task
        Tasks that must be fitted alone.
    """
    groups: dict[Any, list[Task]] = {}
    alone: list[Task] = []
    reasons: dict[str, int] = {}
    kinds = [_kind(folds.part(split)[0]) for split in range(len(folds.splits))]
    for task in tasks:
        try:
            key = _batch_key(task.completer), kinds[task.label[1]]
            if folds.options["fit_params"]:
                raise CannotBatch("parameters for fit need single fits")
        except CannotBatch as error:
            reasons[str(error)] = reasons.get(str(error), 0) + 1
            alone.append(task)
        else:
            groups.setdefault(key, []).append(task)
    for reason, n_fits in reasons.items():
        warn_alone(n_fits, reason)
    return list(groups.values()), alone


def _kind(X: Any) -> tuple[tuple[int, ...], str]:
    """Return shape and dtype of a matrix."""
    if isinstance(X, Entries):
        return X.matrix_shape, str(X.values.dtype)
    return np.shape(X), str(getattr(X, "dtype", None))


def _batch_key(estimator: object) -> Hashable:
    if not isinstance(estimator, Batchable):
        raise CannotBatch(f"{type(estimator).__name__} has no batched solve")
    return estimator.batch_key()


def batches_of(
    group: list[Task], folds: Folds, n_workers: int, size: str | int, resumed: bool
) -> list[list[Task]]:
    """Divide a group into batches, such that all workers are busy and memory suffices.

    Parameters
    ----------
    group : list of Task
        Tasks that can share a batch.
    folds : Folds
        Data and folds of the search.
    n_workers : int
        Number of workers.
    size : int or "auto"
        Maximum number of tasks in a batch.
    resumed : bool
        Whether the batches are to be resumed. The workers are threads then.

    Returns
    -------
    list of list of Task
    """
    X = folds.part(group[0].label[1])[0]
    device = resolve_device(group[0].completer.device)
    n_cells = math.prod(_kind(X)[0])
    if resumed and n_cells < MIN_THREADED_CELLS:
        n_workers = 1
    automatic = size == "auto"
    if automatic:
        size = math.ceil(len(group) / n_workers)
        memory = MAX_MEMORY_SHARE * memory_of(device) / n_workers
        if device.type == "cpu" and not resumed:
            memory = min(memory, MAX_CACHED)
        size = min(size, int(memory / _memory_of_member(group[0], X)))
        if device.type == "cpu" and n_cells > MAX_BATCHED_CELLS:
            size = 1
    count = math.ceil(len(group) / max(1, int(size)))
    if automatic:  # equally many for each worker
        count = min(len(group), n_workers * math.ceil(count / n_workers))
    # The folds of a candidate take similar times and are distributed over the batches.
    return [group[k::count] for k in range(count)]


def batch_pays(estimators: Sequence[Any], shape: tuple[int, ...]) -> bool:
    """Return whether fits can share one batch, and take less time there than alone.

    Parameters
    ----------
    estimators : sequence of estimators
        Completers, at least one, of any class.
    shape : tuple of int
        Shape of the matrices.

    Returns
    -------
    bool
    """
    try:
        keys = {_batch_key(estimator) for estimator in estimators}
    except CannotBatch:
        return False
    on_device = resolve_device(estimators[0].device).type != "cpu"
    return len(keys) == 1 and (on_device or math.prod(shape) <= MAX_BATCHED_CELLS)


def _memory_of_member(task: Task, X: Container) -> int:
    try:
        return int(clone(task.completer).batch_memory(X))
    except (ValueError, TypeError, MemoryError):  # the fit will report the error
        return 1
