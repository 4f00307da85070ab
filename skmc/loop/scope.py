"""The scope of a fit: where a checkpoint plugs in from above."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from skmc.loop.solution import Solution
from skmc.solvers import Solver


@dataclass
class Work:
    """A solve between two steps, and all that it takes to go on.

    Parameters
    ----------
    run : dict
        What the `Run` knows.
    memory : list of dict
        Of the stop rules that have any.
    """

    run: dict[str, Any]
    memory: list[dict[str, Any]]  # of the stop rules that have any


class CheckpointStore(Protocol):
    """Stores solves, so that they can be resumed after a crash."""

    def fit(self, estimator: Any, cells: Any) -> AbstractContextManager[None]:
        """Solves in this context belong to the fit of ``estimator`` to ``cells``.

        Parameters
        ----------
        estimator : object
            What is being fitted.
        cells : object
            What it is fitted to.

        Returns
        -------
        context manager
        """

    def begin(self, solver: Solver, data: Any) -> Work | Solution | None:
        """What is known of the solve that begins now.

        Parameters
        ----------
        solver : Solver
            What one step is.
        data : object
            The observed cells.

        Returns
        -------
        Work or Solution or None
        """

    def offer(self, work: Callable[[], Work]) -> None:
        """Called before every step.

        Parameters
        ----------
        work : callable
            Makes what is to be kept.
        """

    def finish(self, solution: Solution) -> None:
        """Called with the answer.

        Parameters
        ----------
        solution : Solution
            The answer.
        """


STORE: ContextVar[CheckpointStore | None] = ContextVar("skmc_store", default=None)


def fit_scope(estimator: Any, cells: Any) -> AbstractContextManager[None]:
    """Tell the store, if there is one, whose solves follow.

    Parameters
    ----------
    estimator : object
        What is being fitted.
    cells : object
        What it is fitted to.

    Returns
    -------
    context manager
    """
    store = STORE.get()
    return nullcontext() if store is None else store.fit(estimator, cells)
