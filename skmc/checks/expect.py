"""Comparisons whose error messages explain the fault."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def expect(condition: object, fault: str) -> None:
    """Fail unless a condition holds."""
    if not condition:
        raise AssertionError(fault)


def close(
    actual: Any,
    desired: Any,
    fault: str,
    rtol: float = 1e-7,
    atol: float = 0.0,
) -> None:
    """Fail unless numbers are equal up to rounding."""
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, err_msg=fault)


def equal(actual: ArrayLike, desired: ArrayLike, fault: str) -> None:
    """Fail unless arrays are equal."""
    np.testing.assert_array_equal(actual, desired, err_msg=fault)


@contextmanager
def raises(
    kind: type[BaseException] | tuple[type[BaseException], ...], pattern: str, what: str
) -> Iterator[None]:
    """Fail unless a block raises an error with a certain message."""
    try:
        yield
    except kind as error:
        said = f"{type(error).__name__}: {error}"
        expect(
            re.search(pattern, str(error)),
            f"{what} raises {said!r}, which should contain {pattern!r}.",
        )
    else:
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(each.__name__ for each in kinds)
        raise AssertionError(
            f"{what} raises nothing, but should raise {names} with {pattern!r}."
        )


@contextmanager
def warns(pattern: str, what: str) -> Iterator[list[str]]:
    """Fail unless a block issues a warning with a certain message."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    for warning in caught:
        if re.search(pattern, str(warning.message)):
            messages.append(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    expect(messages, f"{what} issues no warning that contains {pattern!r}.")
