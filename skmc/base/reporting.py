"""Callbacks, fitted attributes and warnings of a solve."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from skmc.loop import Progress, Solution, Status


class CallbackHooks:
    """Stop rule that calls scikit-learn's callbacks at every check.

    It stops the fit if a callback asks for that.

    Parameters
    ----------
    estimator : estimator
        Estimator being fitted, with ``max_iter``, ``check_every`` and
        `sklearn.callback.CallbackSupportMixin`.
    X, y : container and target
        Arguments of ``fit``, which are passed on to the callbacks.
    fitted : callable
        Maps a solver's outputs to the attributes that prediction needs.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        fitted: Callable[[dict[str, Any]], dict[str, Any]],
    ):
        self.estimator, self.X, self.y, self.fitted = estimator, X, y, fitted
        self.root = estimator._init_callback_context(
            max_subtasks=math.ceil(estimator.max_iter / estimator.check_every)
        )
        self.active = bool(getattr(estimator, "_skl_callbacks", ()))

    def _arguments(self, outputs: dict[str, Any] | None = None) -> dict[str, Any]:
        arguments = {"estimator": self.estimator, "X": self.X, "y": self.y}
        if outputs is not None:
            arguments["reconstruction_attributes"] = lambda: self.fitted(outputs)
        return arguments

    def begin(self) -> None:
        """Announce the fit."""
        self.root.call_on_fit_task_begin(**self._arguments())

    def __call__(self, progress: Progress) -> Tensor:
        stop = torch.zeros_like(progress.running)
        if self.active:
            task = self.root.subcontext(task_name="iterations")
            task.call_on_fit_task_begin(**self._arguments())
            stop |= bool(task.call_on_fit_task_end(**self._arguments(progress.outputs)))
        return stop

    def end(self, outputs: dict[str, Any]) -> None:
        """Announce the end of the fit.

        Parameters
        ----------
        outputs : dict
            Outputs of the solver.
        """
        self.root.call_on_fit_task_end(**self._arguments(outputs))


def record(solution: Solution) -> dict[str, Any]:
    """Return ``n_iter_``, ``status_`` and ``history_`` of the solution of one fit.

    Parameters
    ----------
    solution : Solution
        Solution without a batch axis.

    Returns
    -------
    dict
    """
    return {
        "n_iter_": max(1, int(solution.n_iter)),
        "status_": solution.status[0].value,
        "history_": {
            name: values.cpu().numpy() for name, values in solution.history.items()
        },
    }


def diverged(solution: Solution, remedy: str) -> str | None:
    """Make the warning about a fit that diverged.

    Parameters
    ----------
    solution : Solution
        Solution without a batch axis.
    remedy : str
        Instruction what to change.

    Returns
    -------
    str or None
        None if the fit did not diverge.
    """
    if solution.status[0] is not Status.DIVERGED:
        return None
    return (
        f"diverged by iteration {max(1, int(solution.n_iter))}; the finite iterate "
        f"with the lowest objective is kept. To do: {remedy}."
    )


def unfinished(solution: Solution, tol: float) -> str | None:
    """Make the warning about a fit that reached ``max_iter``.

    Parameters
    ----------
    solution : Solution
        Solution without a batch axis.
    tol : float
        Largest residual of a converged solution.

    Returns
    -------
    str or None
        None if the fit ended before ``max_iter``.
    """
    if solution.status[0] is not Status.MAX_ITER:
        return None
    return (
        f"stopped after {max(1, int(solution.n_iter))} iterations with residual "
        f"{float(solution.residual):.1e} > tol={tol:g}; raise max_iter or tol."
    )
