"""Callbacks, fitted attributes and warnings of a fit."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from skmc.loop import Progress, Solution, Status

# Packages whose frames are skipped to find the user's line.
SKIPPED_PACKAGES = {"skmc", "sklearn", "joblib", "contextlib", "pandas", "polars"}
MAX_NAMES = 5  # rows or columns that a warning names


class FitTasks:
    """The tasks of a fit, as scikit-learn's callbacks see them.

    This is a context manager: the fit begins and ends with the block.

    Parameters
    ----------
    estimator : estimator
        Estimator being fitted, with `sklearn.callback.CallbackSupportMixin`.
    X, y : container and target
        Arguments of ``fit``, which are passed on to the callbacks.
    n_tasks : int or None, default=0
        Largest number of tasks; None if unknown.
    context : sklearn.callback.CallbackContext or None, default=None
        Parent context. None makes the context of the fit.
    name : str, default="fit"
        Name of the whole task.
    """

    def __init__(
        self,
        estimator: Any,
        X: object,
        y: object,
        n_tasks: int | None = 0,
        context: Any = None,
        name: str = "fit",
    ):
        self.estimator = estimator
        self.given = {"estimator": estimator, "X": X, "y": y}
        if context is None:
            context = estimator._init_callback_context(name, max_subtasks=n_tasks)
        self.context = context
        self.active = bool(getattr(estimator, "_skl_callbacks", ()))

    def begin(self) -> None:
        """Announce these tasks."""
        self.context.call_on_fit_task_begin(**self.given)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None:
            self.finish()

    def finish(self, fitted: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Announce the end of these tasks.

        Parameters
        ----------
        fitted : callable or None, default=None
            Function that returns the attributes that prediction needs.

        Returns
        -------
        bool
            Whether a callback asks to stop.
        """
        arguments: dict[str, Any] = {**self.given}
        if fitted is not None:
            arguments["reconstruction_attributes"] = fitted
        return bool(self.context.call_on_fit_task_end(**arguments))

    def part(self, name: str, n_tasks: int | None = 0) -> FitTasks:
        """Return one of the tasks, which may have tasks of its own.

        Parameters
        ----------
        name : str
            Name of the task.
        n_tasks : int or None, default=0
            As for the class.

        Returns
        -------
        FitTasks
        """
        context = self.context.subcontext(task_name=name, max_subtasks=n_tasks)
        return FitTasks(**self.given, context=context)

    def done(
        self, name: str, fitted: Callable[[], dict[str, Any]] | None = None
    ) -> bool:
        """Announce that a task without parts is done.

        Parameters
        ----------
        name : str
            Name of the task.
        fitted : callable or None, default=None
            See `finish`.

        Returns
        -------
        bool
            Whether a callback asks to stop.
        """
        if not self.active:
            return False
        task = self.part(name)
        task.begin()
        return task.finish(fitted)

    @contextmanager
    def handed_to(self, estimator: Any) -> Iterator[None]:
        """Make the fit of another estimator one of these tasks.

        Without callbacks, nothing happens: the other estimator may have its own.

        Parameters
        ----------
        estimator : estimator
            Estimator that is fitted in this block.

        Yields
        ------
        None
        """
        if not self.active:
            yield
            return
        with (
            self.part("completer") as part,
            part.context.propagate_callback_context(estimator),
        ):
            yield


class CallbackHooks(FitTasks):
    """Stop rule that calls scikit-learn's callbacks at every check.

    It stops the fit if a callback requests it.

    Parameters
    ----------
    estimator : estimator
        Estimator being fitted, with ``max_iter``, ``check_every`` and
        `sklearn.callback.CallbackSupportMixin`.
    X, y : container and target
        Arguments of ``fit``, which are passed on to the callbacks.
    fitted : callable
        Function from a solver's outputs to the attributes that prediction needs.
    """

    def __init__(
        self,
        estimator: Any,
        X: object,
        y: object,
        fitted: Callable[[dict[str, Any]], dict[str, Any]],
    ):
        self.fitted = fitted
        n_checks = math.ceil(estimator.max_iter / estimator.check_every)
        super().__init__(estimator, X, y, n_checks)

    def __call__(self, progress: Progress) -> Tensor:
        stop = self.done("iterations", lambda: self.fitted(progress.outputs))
        return torch.full_like(progress.running, stop)

    def end(self, outputs: dict[str, Any]) -> None:
        """Announce the end of the fit.

        Parameters
        ----------
        outputs : dict
            Outputs of the solver.
        """
        self.finish(lambda: self.fitted(outputs))


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
        Advice on what to change.

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


def out_of_time(
    solution: Solution, max_time: float | None, hurried: bool
) -> str | None:
    """Make the warning about a fit that ``max_time`` has ended.

    Parameters
    ----------
    solution : Solution
        Solution without a batch axis.
    max_time : float or None
        Time limit in seconds.
    hurried : bool
        Whether the choice of hyper-parameters used all of its time.

    Returns
    -------
    str or None
        None if the time was sufficient.
    """
    if solution.status[0] is Status.MAX_TIME:
        n_iter = max(1, int(solution.n_iter))
        count = f"{n_iter} iteration{'s' * (n_iter > 1)}"
        return f"stopped after {count}, at {limit_of(max_time)}; raise max_time."
    if hurried:
        return (
            "cut its choice of hyper-parameters short at half of "
            f"{limit_of(max_time)}; raise max_time, or set them."
        )
    return None


def limit_of(max_time: float | None) -> str:
    """Name the time limit of a fit, which may be that of an outer one.

    Parameters
    ----------
    max_time : float or None
        Time limit in seconds.

    Returns
    -------
    str
    """
    return "the time limit" if max_time is None else f"max_time={max_time:g} s"


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside of skmc and of libraries that call it.

    Parameters
    ----------
    message : str
        Text of the warning.
    category : type, default=UserWarning
        Category of the warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] not in SKIPPED_PACKAGES:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def listed(axis: str, positions: np.ndarray, names: Sequence[str] | None = None) -> str:
    """List some rows or columns: "Rows 2, 5 and 7", "Column 'age'".

    Parameters
    ----------
    axis : {"row", "column"}
        Word for what is listed.
    positions : int ndarray
        Zero-based positions, at least one.
    names : sequence of str or None, default=None
        Names of all rows or columns; None lists the positions.

    Returns
    -------
    str
    """
    items = [str(k) if names is None else repr(names[k]) for k in positions[:MAX_NAMES]]
    if (more := len(positions) - len(items)) > 0:
        items.append(f"{more} other{'s' * (more > 1)}")
    text = items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
    return f"{axis.capitalize()}{'s' * (len(positions) > 1)} {text}"
