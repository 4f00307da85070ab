"""What an estimator says of a solve: callbacks, fitted attributes, advice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from skmc.loop import Progress, Solution, Status


class CallbackHooks:
    """Tells scikit-learn's callbacks of every check, and stops the fit if they ask.

    Parameters
    ----------
    estimator : with ``max_iter``, ``check_every`` and `sklearn.callback`'s mixin
        What is being fitted.
    X, y : container and target
        Passed on to the callbacks.
    fitted : callable
        Maps a solver's outputs to the attributes that prediction needs.
    """

    def __init__(self, estimator, X, y, fitted: Callable[[dict[str, Tensor]], dict]):
        self.estimator, self.X, self.y, self.fitted = estimator, X, y, fitted
        self.root = estimator._init_callback_context(
            max_subtasks=math.ceil(estimator.max_iter / estimator.check_every)
        )
        self.active = bool(getattr(estimator, "_skl_callbacks", ()))

    def _arguments(self, outputs: dict[str, Tensor] | None = None) -> dict[str, Any]:
        arguments = {"estimator": self.estimator, "X": self.X, "y": self.y}
        if outputs is not None:
            arguments["reconstruction_attributes"] = lambda: self.fitted(outputs)
        return arguments

    def begin(self) -> None:
        """Announce the fit."""
        self.root.call_on_fit_task_begin(**self._arguments())

    def __call__(self, progress: Progress) -> Tensor:
        wish = torch.zeros_like(progress.running)
        if self.active:
            task = self.root.subcontext(task_name="iterations")
            task.call_on_fit_task_begin(**self._arguments())
            wish |= bool(task.call_on_fit_task_end(**self._arguments(progress.outputs)))
        return wish

    def end(self, outputs: dict[str, Tensor]) -> None:
        """Announce the end of the fit.

        Parameters
        ----------
        outputs : dict
            Of the solver.
        """
        self.root.call_on_fit_task_end(**self._arguments(outputs))


def record(solution: Solution) -> dict[str, Any]:
    """``n_iter_``, ``status_`` and ``history_`` of a solution with one member.

    Parameters
    ----------
    solution : Solution
        How the solve ended.

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
    """Advice for a fit that diverged.

    Parameters
    ----------
    solution : Solution
        How the solve ended.
    remedy : str
        What to change.

    Returns
    -------
    str or None
        None if it did not diverge.
    """
    if solution.status[0] is not Status.DIVERGED:
        return None
    return (
        f"diverged by iteration {max(1, int(solution.n_iter))}; the finite iterate of "
        f"lowest objective is kept. To do: {remedy}."
    )


def unfinished(solution: Solution, tol: float) -> str | None:
    """Advice for a fit that ran out of iterations.

    Parameters
    ----------
    solution : Solution
        How the solve ended.
    tol : float
        The residual at which it would have converged.

    Returns
    -------
    str or None
        None if it did not run out of iterations.
    """
    if solution.status[0] is not Status.MAX_ITER:
        return None
    return (
        f"stopped after {max(1, int(solution.n_iter))} iterations with residual "
        f"{float(solution.residual):.1e} > tol={tol:g}; raise max_iter or tol."
    )
