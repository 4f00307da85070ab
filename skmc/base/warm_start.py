"""Starting from the solution of the last fit."""

from __future__ import annotations

from typing import Any, ClassVar

from skmc.cells import Observed
from skmc.solvers import ParametricSolver, Solver


class WarmStart:
    """Fits that resume from the last one. Goes in front of `IterativeCompleter`."""

    warm_start: bool

    _parameter_constraints: ClassVar[dict] = {"warm_start": ["boolean"]}

    def _resumes(self, data: Any) -> bool:
        """Whether this fit starts from the solution of the last one."""
        if not (self.warm_start and hasattr(self, "_scaling")):
            return False
        if (had := self._shape) != data.shape:  # type: ignore[attr-defined]
            raise ValueError(
                f"X has shape {data.shape}, but the fit from which warm_start=True "
                f"resumes had {had}; set warm_start=False."
            )
        return True

    def _resumed(self, solver: ParametricSolver, data: Observed) -> Solver:
        """Let ``solver`` start from the parameters of the last fit, if it should."""
        solver.remember = self.warm_start and not data.batch_shape
        if self._resumes(data):
            solver.start = getattr(self, "_parameters", None)
        return solver

    def _fitted(self, prepared: Any, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted = super()._fitted(prepared, outputs)  # type: ignore[misc]
        if "parameters" in outputs:
            fitted["_parameters"] = [p.cpu() for p in outputs["parameters"]]
        return fitted

    def batch_prepare(self, X: Any) -> Any:
        """Read and scale a matrix for a fit in a batch, which starts from scratch.

        Parameters
        ----------
        X : container as in `fit`
            The matrix.

        Returns
        -------
        Prepared

        Raises
        ------
        ValueError
            ``warm_start=True``, and there is a fit to start from.
        """
        if self.warm_start and hasattr(self, "_scaling"):
            raise ValueError(
                "Fits in a batch start from scratch; set warm_start=False, or clone "
                "the completers."
            )
        return super().batch_prepare(X)  # type: ignore[misc]
