"""The result of a solve, and its state at every check."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor, nn

from skmc.cells import Observed, SparseObserved
from skmc.linalg import NeighborGraph
from skmc.solvers import Result, State


class Status(StrEnum):
    """Reason why a solve ended.

    See Also
    --------
    solve : Returns the status of each batch member.
    """

    CONVERGED = "converged"
    STOPPED = "stopped"
    MAX_ITER = "max_iter"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"
    MAX_TIME = "max_time"


@dataclass
class Progress:
    """State of a solve at a check, as stop rules and callbacks see it.

    Parameters
    ----------
    n_iter : int
        Number of steps done.
    state : State
        State after the last step.
    result : Result
        Result of the solver in this state.
    running : bool Tensor of shape (\\*batch,)
        Members that have not finished.
    record : dict
        Row of the history that this check adds.
    pinned : bool Tensor of shape (\\*batch,) or None, default=None
        Members whose answer is this iterate; see `keep`.
    """

    n_iter: int
    state: State
    result: Result
    running: Tensor  # (*batch,) bool
    record: dict[str, Tensor]
    pinned: Tensor | None = None

    def keep(
        self,
        members: Tensor,  # (*batch,)
    ) -> None:
        """Make this iterate the answer of some members, unless a later one is kept."""
        self.pinned = members


# A stop rule returns the members to stop, a bool Tensor of shape (*batch,). Rules of a
# compact `Run` also need a method ``select(members)``.
StopRule = Callable[[Progress], Tensor]
Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Solution:
    """The answer and how it was obtained; tensors have the batch axes first.

    Parameters
    ----------
    result : Result
        Result of the solver, with the completion.
    status : list of Status
        Status of each member, in row-major order of the batch axes.
    n_iter : Tensor of shape (\\*batch,)
        Number of steps.
    residual : Tensor of shape (\\*batch,)
        Residual at the last check.
    history : dict
        Recorded values by name, Tensors of shape ``(n_checks, *batch)``.

    See Also
    --------
    skmc.solve : Returns it.
    """

    result: Any  # a `Result`, of the solver's own class
    status: list[Status]
    n_iter: Tensor  # (*batch,)
    residual: Tensor  # (*batch,)
    history: dict[str, Tensor] = field(repr=False)

    @property
    def X(self) -> Any:
        """The completion."""
        return self.result.X

    @classmethod
    def before(cls, data: Observed | SparseObserved) -> Solution:
        """Make the zero solution of a solve interrupted before its first step.

        Parameters
        ----------
        data : Observed or SparseObserved
            Observed cells.

        Returns
        -------
        Solution
        """
        count = torch.zeros_like(data.n_observed)
        status = [Status.INTERRUPTED] * count.numel()
        return cls(Result(X=data.zero()), status, count, count + torch.inf, {})


@torch.no_grad()
def tensorwise(function: Callable[..., Any], *results: Any) -> Any:
    """Apply a function to the tensors of results, those of their models included."""
    first = results[0]
    if isinstance(first, Tensor):
        return function(*results)
    if isinstance(first, dict):
        return {k: tensorwise(function, *(r[k] for r in results)) for k in first}
    if isinstance(first, Result | NeighborGraph):
        changed = tensorwise(function, *map(vars, results))
        return replace(first, **changed)
    if not isinstance(first, nn.Module):
        return first
    model = copy.deepcopy(first)
    parameters = zip(*(result.parameters() for result in results), strict=True)
    for parameter_of_copy, given in zip(model.parameters(), parameters, strict=True):
        parameter_of_copy.data = function(*(parameter.detach() for parameter in given))
    return model
