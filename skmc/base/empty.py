"""Warnings about rows and columns without an observed cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from skmc.base.reporting import listed, warn_user
from skmc.cells import Priors

if TYPE_CHECKING:
    from skmc.base.completer import BaseCompleter


class KeepsEmpty(Protocol):
    """An estimator with the parameter ``keep_empty_features``."""

    keep_empty_features: bool


def warn_of_empty(completer: BaseCompleter, statistics: Priors) -> None:
    """Warn about empty rows and columns, and say how they are filled.

    Parameters
    ----------
    completer : BaseCompleter
        Estimator whose parameters and tags say whether they are filled.
    statistics : Priors
        Statistics of the cells of the fit.
    """
    if completer.completer_tags.pictures and completer.keep_empty_features:
        return
    names = getattr(completer, "feature_names_in_", None)
    empty = np.flatnonzero(statistics.empty_cols)
    warn_of_empty_columns(completer, empty, names, one_unit=statistics.one_unit)
    if not completer.completer_tags.pictures:
        warn_of_empty_rows(np.flatnonzero(statistics.empty_rows))


def warn_of_empty_columns(
    completer: KeepsEmpty,
    empty: np.ndarray,
    names: Sequence[str] | None,
    *,
    one_unit: bool,
) -> None:
    """Warn about columns without an observed cell, if there are any.

    Parameters
    ----------
    completer : completer
        Estimator that says whether they are kept.
    empty : int ndarray
        Positions of the columns.
    names : sequence of str or None
        Names of all columns.
    one_unit : bool
        Whether row means fill the columns.
    """
    action = "dropped"
    if completer.keep_empty_features:
        action = "filled with the row means"
        if not one_unit:
            action = (
                "left empty, because the columns have different units; if a later step "
                "of a pipeline accepts no NaN, set keep_empty_features=False of "
                f"{type(completer).__name__}, which drops such columns"
            )
    _warn_of("column", empty, action, names)


def warn_of_empty_rows(empty: np.ndarray) -> None:
    """Warn about rows without an observed cell, if there are any.

    Parameters
    ----------
    empty : int ndarray
        Positions of the rows.
    """
    _warn_of("row", empty, "filled with the column means")


def _warn_of(
    axis: str, empty: np.ndarray, action: str, names: Sequence[str] | None = None
) -> None:
    if len(empty):
        have, are = ("has", "is") if len(empty) == 1 else ("have", "are")
        place = listed(axis, empty, names)
        warn_user(f"{place} of X {have} no observed cell and {are} {action}.")
