"""The caller's choices for the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from skmc.cells import Container
from skmc.tables.frames import position_of
from skmc.tables.kinds import Rules

Columns = Sequence[str | int]


def rules_for(
    X: Container,
    *,
    categorical: Columns | None = None,
    ordinal: Mapping[Any, Sequence[Any]] | None = None,
    passthrough: Columns | None = None,
    min_frequency: float = 0.01,
    like_observed: bool = True,
    min_value: Any = None,
    max_value: Any = None,
) -> Rules:
    """Find the columns that the caller names.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    categorical, ordinal, passthrough, min_frequency : object
        As for `skmc.MixedCompleter`.
    like_observed, min_value, max_value : object
        As for `skmc.MixedCompleter`.

    Returns
    -------
    Rules

    Raises
    ------
    ValueError
        A column does not exist, or is named by two of the parameters.
    """
    chosen = {
        name: {position_of(X, c, name) for c in (() if some is None else some)}
        for name, some in (
            ("categorical", categorical),
            ("ordinal", ordinal),
            ("passthrough", passthrough),
        )
    }
    for first, second in combinations(chosen, 2):
        if both := chosen[first] & chosen[second]:
            raise ValueError(
                f"column {min(both)} is in {first} and in {second}; list it in one of "
                "them."
            )
    levels = {
        position_of(X, c, "ordinal"): tuple(own) for c, own in (ordinal or {}).items()
    }
    return Rules(
        chosen["categorical"],
        levels,
        chosen["passthrough"],
        min_frequency,
        like_observed,
        _bounds(X, min_value, "min_value"),
        _bounds(X, max_value, "max_value"),
    )


def _bounds(X: Any, given: Any, parameter: str) -> dict[int, float]:
    """Bounds by position."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        whole = np.broadcast_to(np.asarray(given, float), X.shape[1])
        given = dict(enumerate(whole.tolist()))
    bounds = {position_of(X, c, parameter): float(v) for c, v in given.items()}
    return {k: bound for k, bound in bounds.items() if not np.isnan(bound)}
