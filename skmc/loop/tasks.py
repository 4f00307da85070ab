"""The tasks of a fit, as scikit-learn's callbacks see them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor

from skmc.loop.solution import Progress
from skmc.solvers import Result


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
        """Announce the end of these tasks."""
        arguments: dict[str, Any] = {**self.given}
        if fitted is not None:
            arguments["reconstruction_attributes"] = fitted
        return bool(self.context.call_on_fit_task_end(**arguments))

    def part(self, name: str, n_tasks: int | None = 0) -> FitTasks:
        """Return one of the tasks, which may have tasks of its own."""
        context = self.context.subcontext(task_name=name, max_subtasks=n_tasks)
        return FitTasks(**self.given, context=context)

    def done(
        self, name: str, fitted: Callable[[], dict[str, Any]] | None = None
    ) -> bool:
        """Announce that a task without parts is done."""
        if not self.active:
            return False
        task = self.part(name)
        task.begin()
        return task.finish(fitted)

    @contextmanager
    def handed_to(self, estimator: Any) -> Iterator[None]:
        """Make the fit of another estimator one of these tasks.

        Without callbacks, nothing happens: the other estimator may have its own.
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
        Function from a solver's result to the attributes that prediction needs.
    """

    def __init__(
        self,
        estimator: Any,
        X: object,
        y: object,
        fitted: Callable[[Any], dict[str, Any]],
    ):
        self.fitted = fitted
        n_checks = math.ceil(estimator.max_iter / estimator.check_every)
        super().__init__(estimator, X, y, n_checks)

    def __call__(self, progress: Progress) -> Tensor:
        stop = self.done("iterations", lambda: self.fitted(progress.result))
        return torch.full_like(progress.running, stop)

    def end(self, result: Result) -> None:
        """Announce the end of the fit."""
        self.finish(lambda: self.fitted(result))
