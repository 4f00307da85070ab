"""The table of checks, to which the modules of this room add."""

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
        Name of the check.
    promise : str
        Property that is checked.
    remedy : str
        Remedy if it does not hold.
    run : callable
        Function that raises an error if a completer lacks the property.
    applies : callable
        Function that returns whether the check applies to a completer.
    """

    name: str
    promise: str
    remedy: str
    run: Callable[[Case], None]
    applies: Callable[[Case], bool]


CHECKS: list[Check] = []


def of_every(case: Case) -> bool:
    """Apply a check to every completer."""
    return True


def of_iterative(case: Case) -> bool:
    """Apply a check to completers that run a solver."""
    return isinstance(case.estimator, IterativeCompleter)


def having(name: str) -> Callable[[Case], bool]:
    """Apply a check to completers with a certain parameter."""
    return lambda case: name in case.params


def check(
    remedy: str, applies: Callable[[Case], bool] = of_every
) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
    """Add a function to the table; its docstring is the promise."""

    def added(function: Callable[[Case], None]) -> Callable[[Case], None]:
        promise = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
        name = function.__name__
        CHECKS.append(Check(name, promise, remedy, function, applies))
        return function

    return added
