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

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    """

    objective: Tensor  # (*batch,), the objective at X


class Solver(ABC):
    """Hyper-parameters of a method; iterates live in the `State`.

    ``data`` is an `Observed`, or a `SparseObserved` for solvers that say so.
    """

    @abstractmethod
    def init(self, data) -> State:
        """The state before the first step.

        Parameters
        ----------
        data : Observed or SparseObserved
            The observed cells.

        Returns
        -------
        State
        """

    @abstractmethod
    def step(self, data, state):
        """The next state. ``state`` itself need not survive the call.

        Parameters
        ----------
        data : Observed or SparseObserved
            The observed cells.
        state : State
            Where the solver is.
        """

    @abstractmethod
    def residual(self, data, previous, current) -> Tensor:
        """How far ``current`` is from optimal, relative, shape ``(*batch,)``.

        ``previous`` is the state one step before; only its tensors may be read.

        Parameters
        ----------
        data : Observed or SparseObserved
            The observed cells.
        previous : State
            The state before the last step.
        current : State
            The state after it.

        Returns
        -------
        Tensor
        """

    def resume(self, data, state):
        """A state that was stored, made whole: tensors with a graph became None.

        Parameters
        ----------
        data : Observed or SparseObserved
            The observed cells.
        state : State
            As it was stored.

        Returns
        -------
        State
        """
        return state

    def select(self, state, members: Tensor) -> Any:
        """Keep some members of the (one) batch axis, and return their state.

        ``self`` is narrowed in place. ``state`` need not survive the call.

        Parameters
        ----------
        state : State
            Where the solver is.
        members : bool or int Tensor
            Those to keep, along the batch axis.

        Returns
        -------
        object
        """
        raise NotImplementedError(
            f"{type(self).__name__} cannot let members leave its batch."
        )

    def outputs(self, state) -> dict[str, Any]:
        """What a solution keeps of a state; tensors have the batch axes in front.

        Parameters
        ----------
        state : State
            Where the solver is.

        Returns
        -------
        dict
        """
        return {"X": state.X}
