"""What a solver is: one step, and how far from optimal an iterate is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class State:
    """An iterate. Solvers add their own variables in a subclass.

    Nearly all have ``X``, the completion, detached: (\\*batch, n_rows, n_cols), or a
    `LowRank` for `SparseObserved`.
    """

    objective: Tensor  # (*batch,), the objective at X


class Solver(ABC):
    """Hyper-parameters of a method; iterates live in the `State`.

    ``data`` is an `Observed`, or a `SparseObserved` for solvers that say so.
    """

    @abstractmethod
    def init(self, data) -> State:
        """The state before the first step."""

    @abstractmethod
    def step(self, data, state):
        """The next state. ``state`` itself need not survive the call."""

    @abstractmethod
    def residual(self, data, previous, current) -> Tensor:
        """How far ``current`` is from optimal, relative, shape ``(*batch,)``.

        ``previous`` is the state one step before; only its tensors may be read.
        """

    def resume(self, data, state):
        """A state that was stored, made whole: tensors with a graph became None."""
        return state

    def select(self, state, members: Tensor) -> Any:
        """Keep some members of the (one) batch axis, and return their state.

        ``self`` is narrowed in place. ``state`` need not survive the call.
        """
        raise NotImplementedError(
            f"{type(self).__name__} cannot let members leave its batch."
        )

    def outputs(self, state) -> dict[str, Any]:
        """What a solution keeps of a state; tensors have the batch axes in front."""
        return {"X": state.X}
