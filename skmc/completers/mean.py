"""Column means, the baseline."""

from __future__ import annotations

from typing import Any

import numpy as np

from skmc.base import (
    BaseCompleter,
    CompleterTags,
    FitTasks,
    LearnsMore,
    MoreCells,
    Outcome,
    Priors,
    ReadsChunks,
    ReadsStored,
    TakesWeights,
    rows_in_memory,
)
from skmc.blocks import BlockObserved, ChunkedRows
from skmc.cells import StoredEntries
from skmc.completers.costs import Cost, Variant


class MeanCompleter(ReadsStored, LearnsMore, ReadsChunks, TakesWeights, BaseCompleter):
    """Fill each missing cell with the mean of its column's observed cells.

    With ``cell_weight`` in `fit`, these are weighted means.

    Parameters
    ----------
    {reading}

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell, computed at each access.
    {input}

    Notes
    -----
    Memory grows with ``n_samples n_features``.

    The sums and numbers of the cells of each column are sufficient, so `partial_fit` is
    exact: the result is that of a fit to all cells.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import MeanCompleter
    >>> MeanCompleter().fit_transform([[1.0, 2.0], [3.0, np.nan]])
    array([[1., 2.],
           [3., 2.]])
    """

    completer_tags = CompleterTags(recovers=1.2, equivariant=True)
    advice = "the baseline"
    cost = Cost(0.001, cells=4e-8)
    stacked = (Variant("means"),)

    def __init__(
        self,
        *,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        keep_observed: bool = True,
    ) -> None:
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _read_to_fit(self, X: Any, **given: Any) -> tuple[Any, Priors]:
        if isinstance(X, StoredEntries) and X.weighted:
            raise ValueError(
                "MeanCompleter takes weights of cells in memory only; pass entries "
                "without weight."
            )
        return super()._read_to_fit(X, **given)

    def _fit_cells(self, cells: Any, priors: Priors, y: Any = None) -> Outcome:
        if isinstance(cells, (BlockObserved, ChunkedRows)):
            return Outcome()  # everything is in the priors
        with FitTasks(self, cells, y):
            return Outcome({"_cells": np.array(getattr(cells, "given", cells))})

    def _fit_more(self, more: MoreCells) -> tuple[Priors, dict[str, Any]]:
        cells = more.into(rows_in_memory(self))
        rows, cols = np.nonzero(~np.isnan(cells))
        priors = Priors.of(rows, cols, cells[rows, cols], cells.shape)
        return priors, {"_cells": cells}

    @property
    def reconstruction_(self) -> np.ndarray:
        """The model's value of every cell, computed at each access."""
        cells, empty = rows_in_memory(self), self._priors.empty_cols
        completed = self._complete_rows(cells)
        completed[:, empty] = self._priors.row_means[:, None]
        return completed.astype(cells.dtype)

    def _values_at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        means, empty = self._priors.col_means[cols], self._priors.empty_cols[cols]
        return np.where(empty, self._priors.row_means[rows], means)

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        return np.tile(self._priors.col_means, (len(cells), 1))
