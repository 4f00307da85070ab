"""Solvers whose unknowns are parameters of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from skmc.solvers.solver import Solver


class ParametricSolver(Solver):
    """Starts where the model says or, to go on, where another solve ended.

    Attributes
    ----------
    start : sequence of Tensor, optional
        Parameters to start from.
    remember : bool
        Whether "parameters" are among the outputs, for the next `start`.
    """

    start: Sequence[Tensor] | None = None
    remember: bool = False

    def begin(self, parameters: Iterable[Tensor]) -> None:
        """Bring ``parameters`` to `start`, if there is one.

        Parameters
        ----------
        parameters : iterable of Tensor
            Of the model.
        """
        if self.start is None:
            return
        parameters = list(parameters)
        had, have = ([tuple(p.shape) for p in ps] for ps in (self.start, parameters))
        if had != have:
            raise ValueError(
                f"The fit that warm_start=True goes on from had parameters of shapes "
                f"{had}, now they are {have}; set warm_start=False."
            )
        for parameter, start in zip(parameters, self.start, strict=True):
            parameter.detach().copy_(start)

    def learned(self, parameters: Iterable[Tensor]) -> dict[str, Any]:
        """What a solver has to put out besides, if it is to remember.

        Parameters
        ----------
        parameters : iterable of Tensor
            Of the model.

        Returns
        -------
        dict
        """
        if not self.remember:
            return {}
        return {"parameters": [p.detach().clone() for p in parameters]}
