"""Validation of layer widths."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np


def checked_widths(
    widths: Sequence[int] | np.ndarray, name: str = "hidden", *, fewest: int = 1
) -> list[int]:
    """Return ``widths`` as a list, or raise an error that names the fault."""
    are_integers = all(
        isinstance(w, Integral) and not isinstance(w, bool) for w in widths
    )
    if not are_integers or any(w < 1 for w in widths) or len(widths) < fewest:
        raise ValueError(
            f"{name}={widths!r} must hold the widths of {fewest} or more layers, "
            "integers of at least 1, as (100,) does."
        )
    return [int(w) for w in widths]
