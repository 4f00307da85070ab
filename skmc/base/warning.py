"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np

# Frames of these packages stand between a fit and the user's line.
BETWEEN = {"skmc", "sklearn", "joblib", "contextlib"}
NAMED = 5  # rows or columns that a warning names


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside of skmc, scikit-learn and joblib.

    Parameters
    ----------
    message : str
        What to say.
    category : type, default=UserWarning
        Of the warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] not in BETWEEN:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level - 1)


def listed(what: str, places: np.ndarray, names: Sequence[str] | None = None) -> str:
    """Name some rows or columns: "Rows 2, 5 and 7", "Column 'age'".

    Parameters
    ----------
    what : str
        "row" or "column".
    places : int ndarray
        Their zero-based positions, at least one.
    names : sequence of str or None, default=None
        Their names, where they have any.

    Returns
    -------
    str
    """
    said = [str(k) if names is None else repr(names[k]) for k in places[:NAMED]]
    if (more := len(places) - len(said)) > 0:
        said.append(f"{more} other{'s' * (more > 1)}")
    text = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
    return f"{what.capitalize()}{'s' * (len(places) > 1)} {text}"
