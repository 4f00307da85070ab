"""What an estimator tells of a solve: callbacks, fitted attributes, advice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from skmc.loop import Progress, Solution, Status


class CallbackHooks:
    """Tells scikit-learn's callbacks of every check, and hears when they say stop.

    Parameters
    ----------
    estimator : with ``max_iter``, ``check_every`` and `sklearn.callback`'s mixin
        What is being fitted.
    X, y : what callbacks are told was fitted
        What callbacks are told was fitted.
    fitted : callable
        From a solver's outputs to the attributes that prediction needs.
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
        """Tell that the fit begins."""
        self.root.call_on_fit_task_begin(**self._arguments())

    def __call__(self, progress: Progress) -> Tensor:
        wish = torch.zeros_like(progress.running)
        if self.active:
            task = self.root.subcontext(task_name="iterations")
            task.call_on_fit_task_begin(**self._arguments())
            wish |= bool(task.call_on_fit_task_end(**self._arguments(progress.outputs)))
        return wish

    def end(self, outputs: dict[str, Tensor]) -> None:
        """Tell that the fit has ended.

        Parameters
        ----------
        outputs : dict
            Of the solver.
        """
        self.root.call_on_fit_task_end(**self._arguments(outputs))


def record(estimator, solution: Solution) -> None:
    """Set ``n_iter_``, ``status_`` and ``history_`` from one member's solution.

    Parameters
    ----------
    estimator : estimator
        What was fitted.
    solution : Solution
        How the solve ended.
    """
    estimator.n_iter_ = max(1, int(solution.n_iter))
    estimator.status_ = solution.status[0].value
    estimator.history_ = {
        name: values.cpu().numpy() for name, values in solution.history.items()
    }


def diverged(estimator, solution: Solution, otherwise: str) -> str | None:
    """What to say of a fit that diverged; ``otherwise`` is the remedy without steps.

    Parameters
    ----------
    estimator : estimator
        What was fitted.
    solution : Solution
        How the solve ended.
    otherwise : str
        What to do for an estimator that has no length of steps.

    Returns
    -------
    str or None
    """
    if solution.status[0] is not Status.DIVERGED:
        return None
    steps = [name for name in ("lr", "delta") if hasattr(estimator, name)]
    remedy = otherwise
    if steps:
        remedy = f"lower {steps[0]} (now {getattr(estimator, steps[0])!r})"
    return (
        f"diverged by iteration {estimator.n_iter_}; the finite iterate of lowest "
        f"objective is kept. To do: {remedy}."
    )


def unfinished(estimator, solution: Solution) -> str | None:
    """What to say of a fit that ran out of iterations.

    Parameters
    ----------
    estimator : estimator
        What was fitted.
    solution : Solution
        How the solve ended.

    Returns
    -------
    str or None
    """
    if solution.status[0] is not Status.MAX_ITER:
        return None
    return (
        f"stopped after {estimator.n_iter_} iterations with residual "
        f"{float(solution.residual):.1e} > tol={estimator.tol:g}; raise max_iter or "
        "tol."
    )
