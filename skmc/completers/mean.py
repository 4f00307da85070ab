"""Column means, the baseline."""

from __future__ import annotations

from typing import Any

import numpy as np

from skmc.base import (
    BaseCompleter,
    CompleterTags,
    FitTasks,
    Outcome,
    Priors,
    ReadsStored,
)
from skmc.blocks import BlockObserved


class MeanCompleter(ReadsStored, BaseCompleter):
    """Fill each missing cell with the mean of its column's observed cells.

    Parameters
    ----------
    {reading}

    Attributes
    ----------
    {reconstruction_}
    {input}

    Notes
    -----
    Memory grows with ``n_samples n_features``.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import MeanCompleter
    >>> MeanCompleter().fit_transform([[1.0, 2.0], [3.0, np.nan]])
    array([[1., 2.],
           [3., 2.]])
    """

    completer_tags = CompleterTags(recovers=1.2, equivariant=True)

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

    def _fit_cells(
        self, cells: np.ndarray | BlockObserved, priors: Priors, y: Any = None
    ) -> Outcome:
        if isinstance(cells, BlockObserved):
            return Outcome()  # everything is in the priors
        with FitTasks(self, cells, y):
            means = np.tile(priors.col_means, (len(cells), 1))
        completed = priors.fill(cells, means)
        return Outcome({"reconstruction_": completed.astype(cells.dtype)})

    def _values_at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        if hasattr(self, "reconstruction_"):
            return super()._values_at(rows, cols)
        means, empty = self._priors.col_means[cols], self._priors.empty_cols[cols]
        return np.where(empty, self._priors.row_means[rows], means)

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        return np.tile(self._priors.col_means, (len(cells), 1))
