"""The scope of a fit: its time limit, and the checkpoint store that is attached."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from skmc.loop.solution import Solution
from skmc.solvers import Solver, State


@dataclass
class Work:
    """All that is needed to resume a solve between two steps.

    Parameters
    ----------
    iteration : int
        Number of steps done.
    state : State
        State of the solver.
    history : list
        Records of the checks so far.
    answers : dict
        Attributes of the `Answers` by name.
    memory : list of dict
        The ``memory`` of each stop rule that has one.
    """

    iteration: int
    state: State
    history: list[tuple[Tensor, dict[str, Tensor]]]
    answers: dict[str, Any]
    memory: list[dict[str, Any]]


class CheckpointStore(Protocol):
    """Storage of solves, so that they can be resumed after a crash."""

    def fit(self, estimator: object, cells: object) -> AbstractContextManager[None]:
        """Return the context for the solves of one fit."""

    def begin(self, solver: Solver, data: object) -> Work | Solution | None:
        """Load what is stored about the solve that begins now."""

    def offer(self, work: Callable[[], Work]) -> None:
        """Store the current work if it is time to; called before every step."""

    def finish(self, solution: Solution) -> None:
        """Store the solution; called at the end of the solve."""


STORE: ContextVar[CheckpointStore | None] = ContextVar("skmc_store", default=None)


def fit_scope(estimator: object, cells: object) -> AbstractContextManager[None]:
    """Return the context for the solves of one fit."""
    store = STORE.get()
    return nullcontext() if store is None else store.fit(estimator, cells)


_END: ContextVar[float] = ContextVar("skmc_end", default=math.inf)


class OutOfTime(Exception):
    """There is no time left for another solve."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Limit the time of the solves in this block.

    When the time has passed, a running solve ends after its current step, and later
    ones after their first. Limits can be nested; the one that ends first counts.
    """
    end = math.inf if seconds is None else time.perf_counter() + seconds
    token = _END.set(min(end, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


def seconds_left() -> float:
    """Return the seconds until the limit."""
    return _END.get() - time.perf_counter()
