"""Cosine schedules of learning rates and smoothing widths."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CosineSchedule:
    r"""A number that falls from ``start`` to ``end`` along half a period of a cosine.

    .. math::

        s(k) = s_{end} + (s_{start} - s_{end}) \frac{1 + \cos(\pi k / h)}{2}

    at step ``k`` up to the horizon ``h``, and ``end`` after it. If both ends are equal
    the number is constant.

    Parameters
    ----------
    start : float
        Value at step 0.
    end : float
        Value from step ``horizon`` on.
    horizon : int
        Number of steps until ``end`` is reached.

    See Also
    --------
    Descent : Uses it for the learning rate.
    """

    start: float
    end: float
    horizon: int

    def __call__(self, step: int) -> float:
        share = (1 + math.cos(math.pi * min(step / self.horizon, 1))) / 2
        return self.end + (self.start - self.end) * share

    def lowered(self, factor: float) -> CosineSchedule:
        """The schedule with a lower start, which is never below the end.

        Parameters
        ----------
        factor : float
            Factor of ``start``, between 0 and 1.

        Returns
        -------
        CosineSchedule
        """
        return replace(self, start=max(self.end, factor * self.start))
