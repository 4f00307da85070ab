"""Widths of hidden layers, as users give them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral


def checked_widths(hidden: Sequence[int], *, fewest: int = 1) -> list[int]:
    """``hidden`` as a list, or an error that says what is wrong with it."""
    whole = all(isinstance(w, Integral) and not isinstance(w, bool) for w in hidden)
    if not whole or any(w < 1 for w in hidden) or len(hidden) < fewest:
        raise ValueError(
            f"hidden={hidden!r} must hold the widths of {fewest} or more hidden "
            "layers, integers of at least 1, as (100,) does."
        )
    return [int(w) for w in hidden]
