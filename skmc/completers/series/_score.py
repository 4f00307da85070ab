"""The error of completed series, by the truth or by hidden cells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skmc.cells import Container
from skmc.completers._units import standardized
from skmc.completers.series._stack import HELD_OUT
from skmc.metrics import nmae
from skmc.patterns import moved_gaps

if TYPE_CHECKING:
    from skmc.completers.series.completer import SeriesCompleter


def score(self: SeriesCompleter, X: Container, y: Any = None) -> float:
    """Negative normalized mean absolute error; higher is better, 0 is perfect.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_times, n_columns)
        Series with the columns of the fit.
    y : container of the same shape or None, default=None
        True values. The score compares the cells that are missing in ``X`` and known in
        ``y``. Without ``y``, a tenth of the observed cells is hidden, in gaps like
        those of the missing ones (the same each time), completed and compared. For
        times of the fit this score is optimistic. A one-dimensional ``y`` is the target
        of a pipeline and is ignored.

    Returns
    -------
    float
        ``-mean |X - M| / (max M - min M)``, of the standardized series if the fit
        standardizes them.

    Raises
    ------
    ValueError
        No cell can be compared.
    """
    table = self._read(X)
    if y is None or np.ndim(y) == 1:
        truth, order = table.cells, table.positions(self._fitted.grid).argsort()
        missing, hidden = np.isnan(truth[order]), np.empty(truth.shape, bool)
        rng = np.random.RandomState(0)
        n_hidden = round(HELD_OUT * (~missing).sum())
        hidden[order] = moved_gaps(missing, ~missing, n_hidden, rng)
        table = replace(table, cells=np.where(hidden, np.nan, truth))
    else:
        truth = self._read(y).cells
        hidden = np.isnan(table.cells) & ~np.isnan(truth)
    if not hidden.any():
        raise ValueError("There is no cell to compare.")
    values = self._fitted.predict(table)[0]
    scaling = self._fitted.scaling
    M = standardized(truth, scaling)
    return -nmae(standardized(values, scaling), M, hidden)
