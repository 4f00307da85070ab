"""The time limit of a fit, which all of its solves share."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("skmc_end", default=math.inf)


class OutOfTime(Exception):
    """There is no time left for another solve."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Limit the time of the solves in this block.

    When the time has passed, a running solve ends after its current step, and later
    ones after their first. Limits can be nested; the one that ends first counts.

    Parameters
    ----------
    seconds : float or None
        Time from now on. None sets no limit.

    Yields
    ------
    None
    """
    end = math.inf if seconds is None else time.perf_counter() + seconds
    token = _END.set(min(end, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


def seconds_left() -> float:
    """Return the seconds until the limit.

    Returns
    -------
    float
        Negative once the time has passed, infinite without a limit.
    """
    return _END.get() - time.perf_counter()
