"""What a solver is: one step, and how far from optimal an iterate is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from skmc.observed import Observed


@dataclass(frozen=True, kw_only=True)
class State:
    """An iterate. Solvers add their own variables in a subclass."""

    X: Tensor  # (*batch, n_rows, n_cols), detached
    objective: Tensor  # (*batch,), the objective at X


class Solver(ABC):
    """Hyper-parameters of a method; iterates live in the `State`."""

    @abstractmethod
    def init(self, data: Observed) -> State:
        """The state before the first step."""

    @abstractmethod
    def step(self, data: Observed, state):
        """The next state. ``state`` itself need not survive the call."""

    @abstractmethod
    def residual(self, data: Observed, previous, current) -> Tensor:
        """How far ``current`` is from optimal, relative, shape ``(*batch,)``.

        ``previous`` is the state one step before; only its tensors may be read.
        """

    def outputs(self, state) -> dict[str, Tensor]:
        """What a solution keeps of a state, each with the batch axes in front."""
        return {"X": state.X}
