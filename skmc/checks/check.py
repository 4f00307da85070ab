"""Execution of all checks on one completer."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from unittest import SkipTest

from sklearn.exceptions import ConvergenceWarning

from skmc.base import BaseCompleter
from skmc.checks import _answers, _failures, _inputs, _iterations
from skmc.checks.problems import Case
from skmc.checks.registry import CHECKS
from skmc.exceptions import CompletionWarning

MODULES = _inputs, _answers, _failures, _iterations  # their checks are in the table
# Some of scikit-learn's matrices have such rows; no completer declares its array API.
EXPECTED = "no observed cell|array_api|Array API"
SKLEARN_REMEDY = (
    "keep scikit-learn's rules of estimators: the constructor stores its arguments "
    "unchanged, and only _fit_cells learns"
)


@dataclass(frozen=True)
class CompleterCheck:
    """One check of one completer; a call runs it.

    Parameters
    ----------
    name : str
        Name of the check.
    promise : str
        Property that is checked.
    remedy : str
        Remedy if it does not hold.
    completer : str
        Name of the class that is checked.
    function : callable
        Function that raises an error if the property does not hold.
    """

    name: str
    promise: str
    remedy: str
    completer: str
    function: Callable[[], object]

    def __call__(self) -> None:
        try:
            with warnings.catch_warnings():
                for category in (ConvergenceWarning, CompletionWarning):
                    warnings.simplefilter("ignore", category)
                self.function()
        except SkipTest:
            raise
        except Exception as error:
            kind = type(error)
            said = str(error).strip()
            cause = said if kind is AssertionError else f"{kind.__name__}: {said}"
            raise AssertionError(
                f"{self.completer} fails the check {self.name!r}: {self.promise}\n"
                f"Cause: {cause}\nTo do: {self.remedy}."
            ) from error


def completer_checks(estimator: BaseCompleter) -> list[CompleterCheck]:
    """List the checks of a completer: those of skmc, then those of scikit-learn.

    Parameters
    ----------
    estimator : BaseCompleter
        Completer, which is cloned before each fit, with few iterations and a fixed
        ``random_state``.

    Returns
    -------
    list of CompleterCheck
        Checks, for example for `pytest.mark.parametrize`. Those of scikit-learn that do
        not apply raise `unittest.SkipTest`.

    See Also
    --------
    check_completer : Runs them all.

    Examples
    --------
    >>> from skmc import MeanCompleter
    >>> from skmc.checks import completer_checks
    >>> [check.name for check in completer_checks(MeanCompleter())][:2]
    ['recovers_a_rank_two_matrix', 'transform_is_row_wise']
    """
    from sklearn.utils.estimator_checks import estimator_checks_generator

    case = Case(estimator)
    ours = [
        CompleterCheck(
            check.name, check.promise, check.remedy, case.name, partial(check.run, case)
        )
        for check in CHECKS
        if check.applies(case)
    ]
    short = case.make(max_iter=5)
    theirs = [
        CompleterCheck(
            f"scikit-learn's {_name(check)}",
            (inspect.getdoc(_function(check)) or "See its source.").splitlines()[0],
            SKLEARN_REMEDY,
            case.name,
            partial(_run_of_sklearn, check, instance),
        )
        for instance, check in estimator_checks_generator(short, mark=None)
    ]
    return ours + theirs


def check_completer(estimator: BaseCompleter) -> None:
    """Check the properties that every completer has.

    This runs the checks that each completer of the package passes: input formats,
    masks, completion of new rows, scores, messages about wrong input, random numbers,
    interruptions, and scikit-learn's checks of estimators. It takes from seconds to a
    minute.

    Parameters
    ----------
    estimator : BaseCompleter
        Completer, which is cloned before each fit, with few iterations and a fixed
        ``random_state``.

    Raises
    ------
    AssertionError
        A check fails. The message names it, the cause and the remedy.

    See Also
    --------
    completer_checks : The same checks, one by one.

    Examples
    --------
    >>> from skmc import MeanCompleter
    >>> from skmc.checks import check_completer
    >>> check_completer(MeanCompleter())
    """
    for check in completer_checks(estimator):
        try:
            check()
        except SkipTest:
            continue


def _function(check: partial[object]) -> Callable[..., object]:
    function: Callable[..., object] = inspect.unwrap(check.func)
    return function


def _name(check: partial[object]) -> str:
    settings = ", ".join(f"{k}={v}" for k, v in (check.keywords or {}).items())
    return _function(check).__name__ + (f"({settings})" if settings else "")


def _run_of_sklearn(check: partial[object], estimator: BaseCompleter) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*({EXPECTED})")
        check(estimator)
