"""Errors of `MixedCompleter` on cells with known truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skmc.cells import Container
from skmc.tables import errors

if TYPE_CHECKING:
    from skmc.completers.mixed import MixedCompleter

KINDS = ("numeric", "ordinal", "categorical", "date")


def score(self: MixedCompleter, X: Container, y: object = None) -> float:
    """Return the negative mean error of cells; higher is better.

    Parameters
    ----------
    X : container as in `fit`
        Table, as for `error_by_type`.
    y : container of X's shape, optional
        Truth, as for `error_by_type`.

    Returns
    -------
    float
        Negative mean over all compared cells of any kind.
    """
    return -float(np.nanmean(_errors(self, X, y)))


def error_by_type(
    self: MixedCompleter, X: Container, y: object = None
) -> dict[str, float]:
    """Return the mean errors of numeric, ordinal, categorical and date cells.

    The error of a number or date is absolute, relative to the range of its column
    in `fit`. The error of a level is the distance in levels, relative to the
    largest possible distance. The error of a category is 1 if it is wrong.

    Parameters
    ----------
    X : container as in `fit`
        Table to complete.
    y : container of X's shape, optional
        Truth. Cells that are missing in ``X`` and known in ``y`` are compared.
        Without ``y``, a fifth of each row's observed cells is hidden (the same
        cells each time), completed and compared; this is optimistic for rows of
        the fit. A one-dimensional ``y`` is the target of a pipeline and ignored.

    Returns
    -------
    dict
        Mean error for each of "numeric", "ordinal", "categorical" and "date" that
        occurs in the table. NaN if no cell of that kind can be compared.
    """
    errors = _errors(self, X, y)
    kinds = np.array(self.kinds_, object)
    found = {}
    for kind in KINDS:
        chosen = errors[:, kinds == kind]
        if chosen.size:
            some = not np.isnan(chosen).all()
            found[kind] = float(np.nanmean(chosen)) if some else np.nan
    return found


def _errors(completer: MixedCompleter, X: Container, y: object) -> np.ndarray:
    """Errors of the compared cells; NaN elsewhere."""
    return errors(completer._source(X), y, completer.completer_.transform)
