"""The mixin for completers that fit cells that are not in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base.identifiers import as_array, positions
from skmc.base.lazy import is_lazy, lazy_entries
from skmc.base.priors import Priors
from skmc.blocks import BlockObserved, sorted_blocks, tables_of
from skmc.cells import Scaling, StoredEntries


class ReadsStored:
    """Mixin that reads `StoredEntries` and predicts cells by identifiers.

    List it before the base class. ``_fit_cells`` is then called with a `BlockObserved`.
    """

    missing_values: float

    def _read_to_fit(self, X: Any, **given: Any) -> tuple[Any, Priors]:
        if not isinstance(X, StoredEntries):
            return super()._read_to_fit(X, **given)  # type: ignore[misc]
        for name in given:
            remedy = "pass Entries"
            if name == "cell_weight":
                remedy = "name a column of weights where you make X"
            raise ValueError(f"{name} needs cells in memory, but X is {X!r}; {remedy}.")
        if not np.isnan(self.missing_values):
            raise ValueError(
                f"missing_values={self.missing_values!r} has no effect on cells that "
                "are not in memory; leave such rows out of the files."
            )
        folder = sorted_blocks(X)
        cells, ids = BlockObserved(folder), folder.ids()
        validate_data(self, sp.csr_array(cells.shape), accept_sparse=True)
        labels = None if ids is None else (as_array(ids[0]), as_array(ids[1]))
        rows, cols = folder.statistics["row"], folder.statistics["col"]
        one_unit = bool(cols["count"].all()) or not bool(
            Scaling.unlike_moments(cells.moments)
        )
        priors = Priors.of_statistics(rows, cols, one_unit=one_unit, ids=labels)
        return cells, priors

    def score(self, X: Any, y: Any = None) -> float:
        """Negative normalized mean absolute error; higher is better, 0 is perfect.

        Parameters
        ----------
        X : container as in `fit`
            Rows to complete, or cells to compare with the model: `Entries`, or cells
            that are not in memory, which are read once.
        y : container of X's shape, optional
            True values, if ``X`` has rows.

        Returns
        -------
        float
            ``-mean |X - M| / (max M - min M)``.
        """
        if not isinstance(X, StoredEntries):
            found: float = super().score(X, y)  # type: ignore[misc]
            return found
        check_is_fitted(self)
        low, high = self.data_range_  # type: ignore[attr-defined]
        total, count = 0.0, 0
        for table in tables_of(X.source, X.columns[:3]):
            if not len(table):
                continue
            rows, cols, values = (table[name].to_numpy() for name in table.column_names)
            total += float(np.abs(self.predict_entries(rows, cols) - values).sum())
            count += len(values)
            low, high = min(low, values.min()), max(high, values.max())
        if not count:
            raise ValueError(f"{X!r} has no cells.")
        return -total / count / ((high - low) or 1.0)

    def predict_entries(self, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        """Predict single cells of the fitted matrix.

        Parameters
        ----------
        rows, cols : array-like of shape (n_cells,)
            Zero-based positions. After a fit to `Entries.from_parquet` or
            `Entries.from_dask`, identifiers as in the files. One of them may be a
            single one: ``predict_entries(3, range(120))`` predicts 120 cells of row 3.
            Two Dask Series or Arrays give another one, which predicts its partitions
            when it is computed.

        Returns
        -------
        ndarray of shape (n_cells,)
            The model's values, at observed cells too. A row that the fit has not seen
            is predicted by the means of the columns, such a column by the means of the
            rows, with a warning.
        """
        check_is_fitted(self)
        if is_lazy(rows):
            return lazy_entries(self, rows, cols)  # type: ignore[no-any-return]
        ids = self._priors.ids  # type: ignore[attr-defined]
        if ids is None:
            found: np.ndarray = super().predict_entries(rows, cols)  # type: ignore[misc]
            return found
        if np.ndim(rows) == 0:
            rows = np.full(np.shape(cols), rows)
        if np.ndim(cols) == 0:
            cols = np.full(np.shape(rows), cols)
        if np.shape(rows) != np.shape(cols) or np.ndim(rows) != 1:
            raise ValueError(
                "rows and cols must be one-dimensional and of equal length, got "
                f"shapes {np.shape(rows)} and {np.shape(cols)}."
            )
        i, j = positions(ids[0], rows, "rows"), positions(ids[1], cols, "cols")
        return self._known_or_mean(i, j)

    def _known_or_mean(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Predict cells at positions, of which -1 is unknown."""
        priors: Priors = self._priors  # type: ignore[attr-defined]
        values = np.where(i < 0, priors.col_means[j], priors.row_means[i])
        values[(i < 0) & (j < 0)] = priors.mean
        known = (i >= 0) & (j >= 0)
        values[known] = self._values_at(i[known], j[known])  # type: ignore[attr-defined]
        return values
