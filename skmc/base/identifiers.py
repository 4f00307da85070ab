"""Identifiers of rows and columns, and their positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skmc.base.warning import warn_user


def positions(known: np.ndarray, wanted: ArrayLike, name: str) -> np.ndarray:
    """Find identifiers among known ones.

    Parameters
    ----------
    known : ndarray of shape (n,)
        Identifiers in ascending order.
    wanted : array-like of shape (k,)
        Identifiers to find.
    name : str
        What warnings call ``wanted``.

    Returns
    -------
    int ndarray of shape (k,)
        Positions; -1 for those that are not known, with a warning.

    Raises
    ------
    TypeError
        Numbers where identifiers are strings, or the reverse.
    """
    found = np.asarray(wanted)
    if found.dtype.kind in "OT" and found.size:  # as data frames have them
        found = np.asarray(found.tolist())
    text = known.dtype.kind == "U"
    if found.size and (found.dtype.kind == "U") != text:
        kinds = ("strings", "integers") if text else ("integers", "strings")
        raise TypeError(
            f"{name} must be {kinds[0]}, as the identifiers of the fit are, not "
            f"{found.dtype}."
        )
    place = np.searchsorted(known, found).clip(max=len(known) - 1)
    missing = known[place] != found
    if missing.any():
        warn_user(
            f"{name} has {missing.sum()} identifiers that the fit has not seen, such "
            f"as {found[missing][0].item()!r}; they are predicted by means."
        )
    place[missing] = -1
    return place


def as_array(ids: ArrayLike) -> np.ndarray:
    """Convert identifiers to an array that can be stored.

    Parameters
    ----------
    ids : ndarray
        Integers or strings.

    Returns
    -------
    ndarray of int64 or of fixed-width strings
    """
    array = np.asarray(ids)
    return array if array.dtype.kind in "iu" else array.astype(str)
