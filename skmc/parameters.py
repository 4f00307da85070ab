"""Types of parameters, which determine the values that estimators accept.

A parameter that is declared as ``rank: Count | Literal["auto"] = "auto"`` takes whole
numbers of at least 1 and "auto"; a rank of 0 raises an ``InvalidParameterError``. The
further arguments of ``Annotated`` are constraints of scikit-learn.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar

import numpy as np

from skmc.compatibility import Interval, StrOptions
from skmc.linalg import Seed as Seed

__all__ = ["Count", "NonNegative", "Positive", "Seed", "Share"]
C = TypeVar("C", bound=Any)
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
Count = Annotated[int, AT_LEAST_ONE]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
NonNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Share = Annotated[float, Interval(Real, 0, 1, closed="neither")]
Widths = Annotated[Sequence[int] | np.ndarray, "array-like"]
Params = types.SimpleNamespace  # values of all parameters by name, in a fit
Workers = Annotated[
    int | None,
    Interval(Integral, None, -1, closed="right"),
    AT_LEAST_ONE,
    None,
]
OF_TYPE = {bool: "boolean", int: Integral, float: Real, type(None): None}


def listed(given: Any) -> list[Any]:
    """Make a list of several names or estimators, or of a single one."""
    single = isinstance(given, str) or not isinstance(given, Iterable)
    return [given] if single else list(given)


def constraints_of(declared: type) -> dict[str, list[Any]]:
    """Read scikit-learn's constraints from the annotations in the body of a class."""
    fields = vars(declared).get("__dataclass_fields__", {})
    module, constraints = vars(sys.modules[declared.__module__]), {}
    for name, kind in inspect.get_annotations(declared).items():
        if name in fields and not fields[name].init:
            continue  # a fit sets it
        kind = eval(kind, module) if isinstance(kind, str) else kind
        if kind is not Any:
            constraints[name] = _alternatives(kind)
    return constraints


def constrained(estimator: C) -> C:
    """Add the constraints of an estimator's annotations to those that it inherits."""
    inherited = getattr(estimator, "_parameter_constraints", {})
    merged = inherited | constraints_of(estimator)
    names = inspect.signature(estimator).parameters
    estimator._parameter_constraints = {n: merged[n] for n in names if n in merged}
    return estimator


def _alternatives(kind: Any) -> list[Any]:
    """Return constraints such that each value of a type satisfies one of them."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return [option for part in arguments for option in _alternatives(part)]
    if origin is Annotated:
        return list(arguments[1:])
    if origin is Literal:
        return [StrOptions(set(arguments))]
    return [OF_TYPE.get(kind, origin or kind)]
