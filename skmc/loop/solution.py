"""How a solve ended, and what is seen of it at every check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Observed, SparseObserved
from skmc.solvers import Solver, State


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"
    STOPPED = "stopped"
    MAX_ITER = "max_iter"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"


@dataclass
class Progress:
    """What stop rules and callbacks see at every check.

    Parameters
    ----------
    n_iter : int
        Steps done.
    data : Observed or SparseObserved
        The observed cells.
    solver : Solver
        What one step is.
    state : State
        The iterate.
    outputs : dict
        Of the solver for this state.
    residual : Tensor of shape (\\*batch,)
        The solver's measure of optimality.
    running : bool Tensor of shape (\\*batch,)
        Who has not ended.
    record : dict
        This check's row of the history.
    pinned : bool Tensor of shape (\\*batch,) or None, default=None
        Whose answer this iterate becomes.
    """

    n_iter: int
    data: Observed | SparseObserved
    solver: Solver
    state: State
    outputs: dict[str, Any]  # of the solver for this state
    residual: Tensor  # (*batch,)
    running: Tensor  # (*batch,) bool
    record: dict[str, Tensor]  # this check's row of the history
    pinned: Tensor | None = None

    def keep(self, members: Tensor) -> None:
        """Make this iterate the answer of ``members``, whatever comes after.

        Parameters
        ----------
        members : bool Tensor of shape (\\*batch,)
            Whose answer it becomes.
        """
        self.pinned = members


# A rule that knows ``select(members)`` may be part of a compact `Run`.
StopRule = Callable[[Progress], Tensor]  # -> (*batch,) bool, who should stop
Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Solution:
    """The answer, and how it was come by. Every array has the batch axes in front.

    Parameters
    ----------
    outputs : dict
        Of the solver, among them the completion "X".
    status : list of Status
        One of each member, in row-major order of the batch axes.
    n_iter : Tensor of shape (\\*batch,)
        Steps.
    residual : Tensor of shape (\\*batch,)
        At the last check.
    history : dict
        Name -> Tensor of shape ``(n_checks, *batch)``.
    """

    outputs: dict[str, Any]
    status: list[Status]  # one per member, in row-major order of the batch axes
    n_iter: Tensor  # (*batch,)
    residual: Tensor  # (*batch,), at the last check
    history: dict[str, Tensor] = field(repr=False)  # name -> (n_checks, *batch)

    @property
    def X(self) -> Any:
        """The completion."""
        return self.outputs["X"]

    @classmethod
    def before(cls, data: Observed | SparseObserved) -> Solution:
        """Interrupted before the first step: zero everywhere.

        Parameters
        ----------
        data : Observed or SparseObserved
            The observed cells.

        Returns
        -------
        Solution
        """
        count = torch.zeros_like(data.n_observed)
        status = [Status.INTERRUPTED] * count.numel()
        return cls({"X": data.zero()}, status, count, count + torch.inf, {})
