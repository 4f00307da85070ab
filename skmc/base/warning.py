"""Warnings that point to the user's line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np

# Packages whose frames are skipped to find the user's line.
SKIPPED_PACKAGES = {"skmc", "sklearn", "joblib", "contextlib", "pandas", "polars"}
MAX_NAMES = 5  # rows or columns that a warning names


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside of skmc and of what calls it for a user.

    Parameters
    ----------
    message : str
        Text of the warning.
    category : type, default=UserWarning
        Category of the warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] not in SKIPPED_PACKAGES:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def listed(axis: str, positions: np.ndarray, names: Sequence[str] | None = None) -> str:
    """List some rows or columns: "Rows 2, 5 and 7", "Column 'age'".

    Parameters
    ----------
    axis : {"row", "column"}
        Word for what is listed.
    positions : int ndarray
        Zero-based positions, at least one.
    names : sequence of str or None, default=None
        Names of all rows or columns; None lists the positions.

    Returns
    -------
    str
    """
    items = [str(k) if names is None else repr(names[k]) for k in positions[:MAX_NAMES]]
    if (more := len(positions) - len(items)) > 0:
        items.append(f"{more} other{'s' * (more > 1)}")
    text = items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
    return f"{axis.capitalize()}{'s' * (len(positions) > 1)} {text}"
