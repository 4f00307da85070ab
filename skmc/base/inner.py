"""Parameters of a completer inside of another estimator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

# Parameters of columns that many estimators have.
BOUNDS_AND_MARKS = "min_value", "max_value", "missing_values", "add_indicator"


def refuse_parameters(inner: Any, outer: str, remedies: Mapping[str, str]) -> None:
    """Require the defaults of parameters that have no or another meaning inside."""
    signature = inspect.signature(type(inner)).parameters
    params = inner.get_params(deep=False)
    for name, remedy in remedies.items():
        if name in params and not _same(params[name], signature[name].default):
            instead = remedy.format(name=name)
            raise ValueError(
                f"{name} of {type(inner).__name__} (got {params[name]!r}) would apply "
                f"to what {outer} makes of X, and not to X itself; {instead}."
            )


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    numbers = isinstance(value, (int, float)) and isinstance(default, (int, float))
    return numbers and (value == default or (value != value and default != default))
