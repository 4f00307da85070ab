"""Parameters of a completer inside of another estimator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

# Parameters of columns that many estimators have.
BOUNDS_AND_MARKS = "min_value", "max_value", "missing_values", "add_indicator"


def refuse_parameters(inner: Any, outer: str, remedies: Mapping[str, str]) -> None:
    """Require the defaults of parameters that have no or another meaning inside.

    Parameters
    ----------
    inner : estimator
        Completer or imputer inside of another estimator.
    outer : str
        Name of the other estimator or function, for the error.
    remedies : mapping of str to str
        What to do instead of setting a parameter, by its name, which ``{name}`` in the
        text stands for.

    Raises
    ------
    ValueError
        One of these parameters is not the default.
    """
    signature = inspect.signature(type(inner)).parameters
    own = inner.get_params(deep=False)
    for name, remedy in remedies.items():
        if name in own and not _same(own[name], signature[name].default):
            instead = remedy.format(name=name)
            raise ValueError(
                f"{name} of {type(inner).__name__} (got {own[name]!r}) would apply to "
                f"what {outer} makes of X, and not to X itself; {instead}."
            )


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    numbers = isinstance(value, (int, float)) and isinstance(default, (int, float))
    return numbers and (value == default or (value != value and default != default))
