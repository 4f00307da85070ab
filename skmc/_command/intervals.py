"""Intervals of completed cells."""

from __future__ import annotations

from typing import Any

import numpy as np


def bounds_of(
    fitted: Any, given: Any, completed: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals around completed cells, calibrated on cells that were held out.

    Completers that know their errors on held-out cells say so; others are fitted 20
    times more, see `skmc.uncertainty.MultipleCompletion`.
    """
    if hasattr(fitted, "predict_interval"):
        low, high = fitted.predict_interval(given, level)
    else:
        from skmc.uncertainty import MultipleCompletion

        seed = fitted.get_params().get("random_state")
        many = MultipleCompletion(fitted, random_state=seed).fit(given)
        low, high = many.interval(level)
    # The mean of several fits is another value than that of one.
    return np.minimum(low, completed), np.maximum(high, completed)
