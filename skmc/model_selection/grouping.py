"""Which fits of a search share a batch, and how large it may be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from skmc.base import Batchable, CannotBatch, memory_of, resolve_device
from skmc.cells import Entries
from skmc.model_selection.folds import Folds, Task
from skmc.model_selection.running import warn_alone

# A step of AIR on one core takes, per member alone and in a batch of 25, .20 and .02 ms
# at 30 x 40, .36 and .23 ms at 100 x 100, 1.06 and .96 ms at 160 x 160, 2.2 and 2.1 ms
# at 240 x 240: on a CPU, matrices with more cells than this gain nothing.
LARGE = 200 * 200
# Threads wait for each other's Python: in 2 threads, 10 members of 30 x 40 take 1.3
# times as long as in one, of 60 x 60 as long, of 80 x 80 .8 of it.
SMALL = 60 * 60
SHARE = 0.25  # of a device's memory


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
