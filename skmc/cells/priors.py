"""Statistics of the observed cells."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch


@dataclass(frozen=True)
class Priors:
    """Means of rows and columns, and their empty and constant members.

    Parameters
    ----------
    shape : tuple of int
        Shape of the matrix.
    n_observed : int
        Number of observed cells.
    data_range : tuple of float
        Smallest and largest observed value.
    mean : float
        Mean of the observed cells.
    row_means, col_means : ndarray of shape (n_rows,), (n_cols,)
        Means of the observed cells; ``mean`` for empty rows and columns. If
        ``one_unit`` is False, the means of rows are replaced by zeros.
    empty_rows, empty_cols : bool ndarray of shape (n_rows,), (n_cols,)
        Rows and columns without an observed cell.
    full_cols : bool ndarray of shape (n_cols,)
        Columns without a missing cell.
    constant : ndarray of shape (n_cols,)
        The value of columns with a single distinct value, NaN for columns that vary,
        and infinity for empty columns.
    one_unit : bool
        Whether all cells have the same unit, so that an empty column can be filled with
        the row means.
    ids : tuple of ndarray or None
        Identifiers of rows and columns; None if these are positions.
    informed_rows : bool, default=False
        Whether rows without an observed cell have predictions other than the means.
    weighted : bool, default=False
        Whether the cells have weights.
    counts : bool, default=False
        Whether the cells are counts, of which 0 says no more than a missing cell.
    """

    shape: tuple[int, int]
    n_observed: int
    data_range: tuple[float, float]
    mean: float
    row_means: np.ndarray
    col_means: np.ndarray
    empty_rows: np.ndarray
    empty_cols: np.ndarray
    full_cols: np.ndarray
    constant: np.ndarray
    one_unit: bool
    ids: tuple[np.ndarray, np.ndarray] | None
    informed_rows: bool = False
    weighted: bool = False
    counts: bool = False

    @classmethod
    def of(
        cls,
        rows: np.ndarray,  # (n_cells,)
        cols: np.ndarray,  # (n_cells,)
        values: np.ndarray,  # (n_cells,)
        shape: tuple[int, int],
        weights: np.ndarray | None = None,  # (n_cells,)
        *,
        one_unit: bool = False,
    ) -> Priors:
        """Compute the statistics of observed cells."""
        if not len(values):
            raise ValueError("X has no observed cell; at least one is needed.")
        weighted = values if weights is None else weights * values
        n_cells = len(values) if weights is None else weights.sum()
        mean = weighted.sum(dtype=float) / n_cells
        counts, means = [], []
        for positions, size in zip((rows, cols), shape, strict=True):
            count = np.bincount(positions, minlength=size)
            sums = np.bincount(positions, weighted, size)
            total = np.bincount(positions, weights, size)
            counts.append(count)
            means.append(np.where(count, sums / np.where(count, total, 1), mean))
        if not one_unit:
            means[0] = np.zeros(shape[0])
        place = torch.from_numpy(np.asarray(cols, dtype=np.int64))
        seen = torch.from_numpy(np.asarray(values, dtype=float))
        low, high = (
            seen.new_full((shape[1],), start)
            .scatter_reduce(0, place, seen, how)
            .numpy()
            for how, start in (("amin", np.inf), ("amax", -np.inf))
        )
        return cls(
            shape=(int(shape[0]), int(shape[1])),
            n_observed=len(values),
            data_range=(float(values.min()), float(values.max())),
            mean=mean,
            row_means=means[0],
            col_means=means[1],
            empty_rows=counts[0] == 0,
            empty_cols=counts[1] == 0,
            full_cols=counts[1] == shape[0],
            constant=np.where(low < high, np.nan, low),
            one_unit=one_unit,
            ids=None,
            weighted=weights is not None,
        )

    @classmethod
    def of_statistics(
        cls,
        rows: dict[str, np.ndarray],
        cols: dict[str, np.ndarray],
        *,
        one_unit: bool,
        ids: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Priors:
        """Combine the statistics of rows and columns."""
        n_rows, n_observed = len(rows["count"]), int(rows["count"].sum())
        mean = float(cols["count"] @ cols["mean"] / n_observed)
        means = [np.where(s["count"] > 0, s["mean"], mean) for s in (rows, cols)]
        if not one_unit:
            means[0] = np.zeros(n_rows)
        low, high = cols["low"], cols["high"]
        return cls(
            shape=(n_rows, len(cols["count"])),
            n_observed=n_observed,
            data_range=(float(low.min()), float(high.max())),
            mean=mean,
            row_means=means[0],
            col_means=means[1],
            empty_rows=rows["count"] == 0,
            empty_cols=cols["count"] == 0,
            full_cols=cols["count"] == n_rows,
            constant=np.where(low < high, np.nan, low),
            one_unit=one_unit,
            ids=ids,
        )

    def of_preferences(
        self,
        rows: np.ndarray,  # (n_cells,)
        cols: np.ndarray,  # (n_cells,)
    ) -> Priors:
        """Statistics of the matrix that is 1 at positive counts and 0 elsewhere.

        Its column means rank columns by the number of rows that have them. A column
        that no row has is 0; it is not empty. A column of equal counts is not constant.
        """
        m, n = self.shape
        per_row = np.bincount(rows, minlength=m)
        per_col = np.bincount(cols, minlength=n)
        return replace(
            self,
            mean=len(rows) / (m * n),
            row_means=per_row / n,
            col_means=per_col / m,
            empty_rows=(per_row == 0) & (not self.informed_rows),
            empty_cols=np.zeros_like(self.empty_cols),
            constant=np.full(n, np.nan),
            counts=True,
        )

    @property
    def any_empty(self) -> bool:
        """Whether a row or a column has no observed cell."""
        return bool(self.empty_rows.any() or self.empty_cols.any())

    @property
    def varies(self) -> np.ndarray:
        """Columns with at least two distinct values, bool of shape (n_cols,)."""
        varies: np.ndarray = np.isnan(self.constant)
        return varies

    def informative(
        self,
        cells: np.ndarray,  # (k, n_cols)
    ) -> np.ndarray:  # (k, n_cols)
        """Find the cells that say something about their row."""
        return cells > 0 if self.counts else ~np.isnan(cells)

    def fill(
        self,
        cells: np.ndarray,  # (k, n_cols)
        completed: np.ndarray,  # (k, n_cols)
        *,
        of_fit: bool = False,
    ) -> np.ndarray:  # (k, n_cols)
        """Fill empty rows with the column means, and empty columns with the row means.

        If the columns may have different units, empty columns are filled with zeros, as
        by scikit-learn's imputers.
        """
        observed = self.informative(cells)
        empty_rows = ~observed.any(1) & (not self.informed_rows)
        if not (empty_rows.any() or self.empty_cols.any()):
            return completed
        completed = np.array(completed, float)
        completed[empty_rows] = self.col_means
        count = np.maximum(observed.sum(1), 1)
        # The order of the cells in memory changes the rounding of a sum.
        zero_filled = np.ascontiguousarray(np.where(observed, cells, 0))
        means = zero_filled.sum(1, dtype=float) / count
        means[~observed.any(1)] = self.mean
        if of_fit and self.weighted:
            means = self.row_means
        completed[:, self.empty_cols] = means[:, None] if self.one_unit else 0.0
        return completed
