"""The mixin for fits that start from the solution of the last fit."""

from __future__ import annotations

from typing import Any, ClassVar

from skmc.cells import Observed
from skmc.solvers import ParametricSolver, Solver


class WarmStart:
    """Mixin for completers that can start from the solution of the last fit.

    List it before `IterativeCompleter` among the bases.
    """

    warm_start: bool

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"warm_start": ["boolean"]}

    def _resumes(self, data: Any) -> bool:
        """Return whether this fit starts from the solution of the last fit."""
        if not (self.warm_start and hasattr(self, "_scaling")):
            return False
        if (shape := self._shape) != data.shape:  # type: ignore[attr-defined]
            raise ValueError(
                f"X has shape {data.shape}, but the fit from which warm_start=True "
                f"resumes had {shape}; set warm_start=False."
            )
        return True

    def _resumed(self, solver: ParametricSolver, data: Observed) -> Solver:
        """Set the start of ``solver`` to the parameters of the last fit, if any."""
        solver.remember = self.warm_start and not data.batch_shape
        if self._resumes(data):
            solver.start = getattr(self, "_parameters", None)
        return solver

    def _fitted(self, prepared: Any, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted = {**super()._fitted(prepared, outputs)}  # type: ignore[misc]
        if "parameters" in outputs:
            fitted["_parameters"] = [p.cpu() for p in outputs["parameters"]]
        return fitted

    def batch_prepare(self, X: Any) -> Any:
        """Read and scale a matrix for a fit in a batch, which starts from scratch.

        Parameters
        ----------
        X : container as in `fit`
            Matrix to fit.

        Returns
        -------
        Prepared

        Raises
        ------
        ValueError
            The completer is fitted and has ``warm_start=True``.
        """
        if self.warm_start and hasattr(self, "_scaling"):
            raise ValueError(
                "Fits in a batch start from scratch; set warm_start=False, or clone "
                "the completers."
            )
        return super().batch_prepare(X)  # type: ignore[misc]
