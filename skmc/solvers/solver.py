"""The interface of solvers: one step, and a measure of optimality."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor

from skmc.cells import Data
from skmc.linalg import Randomness, RowModel, Workload
from skmc.solvers.narrowing import Narrowing, modules_in


@dataclass(frozen=True, kw_only=True)
class State:
    """An iterate. Solvers add their own variables in a subclass.

    Nearly all have ``X``, the detached completion: (\\*batch, n_rows, n_cols), or a
    `LowRank` for `SparseObserved`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.

    See Also
    --------
    Solver : Makes and updates it.
    """

    objective: Tensor  # (*batch,), the objective at X


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """What a solver has found. Solvers add in a subclass what their completers keep.

    Parameters
    ----------
    X : Tensor of shape (\\*batch, n_rows, n_cols), or LowRank
        The completion.

    See Also
    --------
    Solver : Makes it from a `State`.
    """

    X: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class RowModelResult(Result):
    """Models that predict a row from its cells; their predictions are averaged."""

    models: Sequence[RowModel]


D = TypeVar("D", bound=Data)
S = TypeVar("S", bound=State)


class Solver(ABC, Generic[D, S]):
    """Hyper-parameters of a method; a `State` holds the iterate.

    ``data`` is an `Observed`, or a `SparseObserved` if the solver says so.

    See Also
    --------
    skmc.solve : Runs it.
    State : Holds the iterate.
    """

    # Main kind of operation in a step, from which the loop chooses the number of
    # threads.
    workload: ClassVar[Workload] = Workload.PRODUCTS

    @abstractmethod
    def init(self, data: D) -> S:
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
    def step(self, data: D, state: S) -> S:
        """The next state. The call may overwrite ``state``.

        Parameters
        ----------
        data : Observed or SparseObserved
            The observed cells.
        state : State
            Current state.
        """

    @abstractmethod
    def residual(self, data: D, previous: S, current: S) -> Tensor:
        """Relative distance of ``current`` from optimality, shape ``(*batch,)``.

        ``previous`` is the previous state; only its tensors may be read.

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

    def misfit(self, data: D, state: S, X: Any) -> Tensor:
        """Squared distance of an iterate from the observed cells.

        Parameters
        ----------
        data : Observed or SparseObserved
            The observed cells.
        state : State
            Current state.
        X : Tensor or LowRank
            Completion of the `result`.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        return data.misfit(X)

    def record(self, state: S) -> dict[str, Tensor]:
        """Further numbers of an iterate for the history; by default, none.

        Parameters
        ----------
        state : State
            Current state.

        Returns
        -------
        dict of str to Tensor of shape (\\*batch,)
        """
        return {}

    def resume(self, data: D, state: S) -> S:
        """Rebuild values that cannot be stored: tensors with a graph became None.

        Parameters
        ----------
        data : Observed or SparseObserved
            The observed cells.
        state : State
            Stored state.

        Returns
        -------
        State
        """
        return state

    def select(self, state: S, members: Tensor) -> S:
        """Keep some members of the single batch axis, and return their state.

        This works if every tensor with axes in the state has the batch axis first, also
        inside of dataclasses and containers. Models and terms may be in the state or in
        the solver. The solver's own weights, of shape ``(n_members,)``, and matrices,
        ``(n_members, n_rows, n_cols)``, are narrowed as well. A solver with other
        tensors for each member overrides this method.

        ``self`` and the modules are narrowed in place. The call may overwrite
        ``state``.

        Parameters
        ----------
        state : State
            Current state.
        members : bool or int Tensor
            Mask or positions of the members to keep.

        Returns
        -------
        State
        """
        if state.objective.ndim != 1:
            raise NotImplementedError(
                f"This {type(self).__name__} solves for a single matrix; members can "
                "only be removed from a batch."
            )
        narrowing = Narrowing(members)
        for module in modules_in([*vars(state).values(), *vars(self).values()]):
            narrowing.module(module)
        n_members = len(state.objective)
        for name, value in vars(self).items():
            batched = isinstance(value, Tensor) and value.ndim in (1, 3)
            if (batched and len(value) == n_members) or isinstance(value, Randomness):
                setattr(self, name, narrowing(value))
        return narrowing(state)

    def result(self, state: S) -> Result:
        """What the solution keeps of an iterate; tensors have the batch axes first.

        Parameters
        ----------
        state : State
            Current state.

        Returns
        -------
        Result
        """
        iterate: Any = state
        return Result(X=iterate.X)


class DecomposingSolver(Solver[D, S]):
    """A solver whose steps mostly decompose dense matrices."""

    workload = Workload.DECOMPOSITIONS
