"""Column means, the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.base import (
    NOT_IN_MEMORY,
    CompleterTags,
    Fitted,
    MoreCells,
    Outcome,
    PartialFit,
    TakesBounds,
    TakesWeights,
)
from skmc.blocks import BlockObserved, ChunkedRows
from skmc.cells import Container, Given, Observed, StoredEntries
from skmc.loop import FitTasks


@dataclass(eq=False)
class Means(Fitted):
    """Means of the columns, from which any row is completed.

    Parameters
    ----------
    statistics : Priors
        Statistics as in `skmc.base.Fitted`.
    cells : ndarray of shape (n_rows, n_cols) or None
        Fitted matrix, if it was in memory.
    """

    cells: np.ndarray | None

    def predict(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        return np.tile(self.statistics.col_means, (len(cells), 1))

    def whole(self) -> np.ndarray:
        if self.cells is None:
            raise AttributeError(NOT_IN_MEMORY)
        completed = self.predict(self.cells, True)
        empty = self.statistics.empty_cols
        completed[:, empty] = self.statistics.row_means[:, None]
        return completed.astype(self.cells.dtype)

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        means, empty = self.statistics.col_means, self.statistics.empty_cols[cols]
        return np.where(empty, self.statistics.row_means[rows], means[cols])


class MeanCompleter(TakesWeights, PartialFit, TakesBounds):
    """Fill each missing cell with the mean of its column's observed cells.

    For a baseline; not for an analysis, because it ignores how columns depend on each
    other.

    With ``cell_weight`` in `fit`, these are weighted means.

    Parameters
    ----------
    min_value : float, array-like, dict or None, default=None
        Smallest value of completed cells and of draws: one for all columns, one for
        each, or by name or position. None, NaN and columns that a dict does not list
        have no bound. Try 0 for amounts and counts. Completions are clipped, and draws
        are from the distribution between the bounds.
    max_value : as min_value, default=None
        Largest value, at least ``min_value``.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell, computed at each access.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    See Also
    --------
    skmc.AutoCompleter : Compares methods and combines the best ones.
    sklearn.impute.SimpleImputer : Also fills with medians, modes and constants.

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
    accepts = (Observed, BlockObserved, ChunkedRows)

    def _given(self, X: Container, known: Mapping[str, Any]) -> Given:
        if isinstance(X, StoredEntries) and X.weighted:
            raise ValueError(
                "MeanCompleter takes weights of cells in memory only; pass entries "
                "without weight."
            )
        return super()._given(X, known)

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        if given.read is None:
            return Outcome(Means(given.statistics, None))
        with FitTasks(self, given.read, y):
            return Outcome(Means(given.statistics, np.array(given.matrix)))

    def _fit_more(self, more: MoreCells) -> tuple[Means, dict[str, Any]]:
        fitted: Any = self._fitted
        if fitted.cells is None:
            fitted.whole()  # raises an error
        given = Given.of_matrix(
            more.into(fitted.cells), one_unit=fitted.statistics.one_unit
        )
        return Means(given.statistics, given.matrix), {}
