"""The table of checks, which the modules of this room fill."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from skmc.base import IterativeCompleter
from skmc.checks.problems import Case


@dataclass(frozen=True)
class Check:
    """A check of any completer.

    Parameters
    ----------
    name : str
        Its name.
    promise : str
        What has to hold.
    remedy : str
        What to change if it does not.
    run : callable
        Raises an error if a completer breaks the promise.
    applies : callable
        Whether a completer makes the promise.
    """

    name: str
    promise: str
    remedy: str
    run: Callable[[Case], None]
    applies: Callable[[Case], bool]


CHECKS: list[Check] = []


def of_every(case: Case) -> bool:
    """Applies to every completer.

    Parameters
    ----------
    case : Case
        The completer.

    Returns
    -------
    bool
    """
    return True


def of_iterative(case: Case) -> bool:
    """Applies to completers that run a solver.

    Parameters
    ----------
    case : Case
        The completer.

    Returns
    -------
    bool
    """
    return isinstance(case.estimator, IterativeCompleter)


def having(name: str) -> Callable[[Case], bool]:
    """Applies to completers with a certain parameter.

    Parameters
    ----------
    name : str
        The parameter.

    Returns
    -------
    callable
    """
    return lambda case: name in case.params


def check(
    remedy: str, applies: Callable[[Case], bool] = of_every
) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
    """Add a function to the table; its docstring is the promise.

    Parameters
    ----------
    remedy : str
        What to change if the promise is broken.
    applies : callable, default=of_every
        Whether a completer makes the promise.

    Returns
    -------
    decorator
    """

    def added(function: Callable[[Case], None]) -> Callable[[Case], None]:
        promise = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
        name = function.__name__
        CHECKS.append(Check(name, promise, remedy, function, applies))
        return function

    return added
