"""Validation of the arguments of functions of linear algebra."""

from __future__ import annotations

import math
from numbers import Integral, Real

from torch import Tensor


def check_matrix(
    A: Tensor,  # (*batch, m, n)
    name: str,
) -> None:
    """Raise an error unless a matrix is real, finite and not empty."""
    if not isinstance(A, Tensor):
        raise TypeError(f"{name} is a {type(A).__name__}; make it a torch.Tensor.")
    if not A.is_floating_point():
        raise TypeError(
            f"{name} has dtype {A.dtype}; only real floating-point matrices are "
            f"supported: call {name}.double(), or treat real and imaginary parts of a "
            f"complex matrix as [[R, -I], [I, R]]."
        )
    if A.ndim < 2 or 0 in A.shape:
        raise ValueError(
            f"{name} has shape {tuple(A.shape)}; it must be (*batch, m, n), none of "
            f"them zero."
        )
    if not A.isfinite().all():
        place = tuple((~A.isfinite()).nonzero()[0].tolist())
        raise ValueError(
            f"{name} has {A[place].item()} at {place}; remove or replace cells that "
            f"are not finite."
        )


def check_count(value: int, name: str, least: int) -> None:
    """Raise an error unless a value is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(
            f"{name}={value!r}: it must be an integer of at least {least}."
        )


def check_number(value: float, name: str) -> None:
    """Raise an error unless a value is a finite non-negative number."""
    if not isinstance(value, Real) or not 0 <= value < math.inf:
        raise ValueError(f"{name}={value!r}: it must be a finite number, at least 0.")
