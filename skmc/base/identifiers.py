"""Rows and columns with identifiers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skmc.base.reporting import warn_user
from skmc.cells import Entries, Priors, identified, in_order, labels_of
from skmc.exceptions import UnknownIdentifiersWarning

AS_TEXT = "bOMm"  # kinds of identifiers that are converted to text, such as UUIDs


def by_identifier(
    X: Entries, known: Mapping[str, Any]
) -> tuple[Entries, dict[str, Any]]:
    """Sort data frames of features and graphs in the order of the identifiers of X.

    Identifiers that only these have become rows and columns without a cell.
    """
    assert X.ids is not None
    ids, frames = [*X.ids], {}
    for name, value in known.items():
        if not hasattr(value, "reindex"):
            continue
        axis = int(name.startswith("col"))
        unique, place = identified(value.index, f"The index of {name}")
        if len(unique) < len(place):
            twice = unique[np.bincount(place).argmax()].item()
            raise ValueError(f"{name} has several lines for {twice!r}; keep one.")
        if X.ids[axis].dtype.kind == "U":
            unique = unique.astype(str)
        _check_lines(name, unique, X.ids[axis])
        frames[name] = axis, unique[place]
        ids[axis] = np.union1d(ids[axis], unique)
    result = dict(known)
    for name, (axis, labels) in frames.items():
        _check_lines(name, labels, ids[axis])
        order = np.argsort(labels)
        result[name] = known[name].iloc[order]
        if name.endswith("_graph"):
            if not known[name].columns.equals(known[name].index):
                raise ValueError(f"{name} must have its index as columns, too.")
            result[name] = result[name].iloc[:, order]
    placed = X[:]
    placed.rows = np.searchsorted(ids[0], X.ids[0])[X.rows]
    placed.cols = np.searchsorted(ids[1], X.ids[1])[X.cols]
    placed.ids, placed.matrix_shape = (ids[0], ids[1]), (len(ids[0]), len(ids[1]))
    return placed, result


def _check_lines(name: str, labels: np.ndarray, wanted: np.ndarray) -> None:
    absent = wanted[~np.isin(wanted, labels)]
    if len(absent):
        raise ValueError(
            f"{name} has no line for {absent[0].item()!r}; set its index to the "
            "identifiers, or pass an array in their order."
        )


def in_order_of_matrix(known: Mapping[str, Any], X: Any) -> dict[str, Any]:
    """Sort features and graphs with labels like the rows and columns of a matrix."""
    ordered: dict[str, Any] = {}
    labels = labels_of(X) if known else (None, None)
    for name, given in known.items():
        items = labels[name.startswith("col")]
        ordered[name] = in_order(given, items, items if "graph" in name else None, name)
    return ordered


def in_order_of_fit(X: Entries, priors: Priors) -> Entries:
    """Find the columns of named cells. The cells of the fit have all of its rows."""
    assert X.ids is not None
    if priors.ids is None:
        raise ValueError(
            "X has identifiers, unlike the fit; make both by Entries.from_frame, or "
            "both without."
        )
    cols = positions(priors.ids[1], X.ids[1], "columns of X", "are left out")[X.cols]
    rows, n_rows = X.rows, X.matrix_shape[0]
    if len(X) == priors.n_observed and np.isin(X.ids[0], priors.ids[0]).all():
        rows = positions(priors.ids[0], X.ids[0], "rows of X")[rows]
        n_rows = priors.shape[0]
    placed = X[cols >= 0]
    placed.rows, placed.cols = rows[cols >= 0], cols[cols >= 0]
    placed.matrix_shape = n_rows, len(priors.ids[1])
    return placed


def positions(
    known: np.ndarray,  # (n,)
    wanted: ArrayLike,  # (k,)
    name: str,
    otherwise: str | None = "are predicted by means",
) -> np.ndarray:  # (k,)
    """Find identifiers among known ones."""
    ids = np.asarray(wanted)
    if not ids.size:
        return np.empty(ids.shape, np.int64)
    if ids.dtype.kind in "OT":  # as in data frames
        ids = np.asarray(ids.tolist())
    text = known.dtype.kind == "U"
    if text and ids.dtype.kind in AS_TEXT:  # as in the fit
        ids = ids.astype(str)
    if (ids.dtype.kind == "U") != text or ids.dtype.kind == "b":
        kinds = ("strings", "integers") if text else ("integers", "strings")
        raise TypeError(
            f"{name} must be {kinds[0]}, as the identifiers of the fit are, such as "
            f"{known[:1].tolist()}; got {ids.ravel()[:1].tolist()}."
        )
    order = None  # partial_fit appends new identifiers
    if not (known[:-1] <= known[1:]).all():
        order = np.argsort(known, kind="stable")
    place = np.searchsorted(known, ids, sorter=order).clip(max=len(known) - 1)
    if order is not None:
        place = order[place]
    missing = known[place] != ids
    if missing.any():
        first = repr(ids[missing][0].item())
        who = f"{first} was not in the fit"
        if (number := missing.sum()) > 1:
            who = f"{number} identifiers, such as {first}, were not in the fit"
        if otherwise is None:
            raise ValueError(f"{name}: {who}; leave what is unknown out.")
        if number == 1:
            verbs = {"are": "is", "have": "has"}
            otherwise = re.sub("^(are|have)", lambda verb: verbs[verb[0]], otherwise)
        said = f"{name}: {who} and {otherwise}."
        places = ids[missing].tolist()
        warn_user(UnknownIdentifiersWarning(said, places=places))
    place[missing] = -1
    return place


def as_array(ids: ArrayLike) -> np.ndarray:
    """Convert identifiers to an array that can be stored."""
    array = np.asarray(ids)
    return array if array.dtype.kind in "iu" else array.astype(str)
