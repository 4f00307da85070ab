"""Learning more rows, cells and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from skmc.base.completer import BaseCompleter, Outcome
from skmc.cells import Container, Entries, StoredEntries, sparse_cells, to_cells


@dataclass(frozen=True)
class MoreCells:
    """Cells that a completer is to learn.

    Parameters
    ----------
    rows, cols : int ndarray of shape (n_cells,)
        Positions in the whole matrix, each at most once.
    values : ndarray of shape (n_cells,)
        Their values, which replace those that are known.
    shape : tuple of int
        Shape of the whole matrix from now on.
    """

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    def into(self, cells: np.ndarray) -> np.ndarray:
        """Return a dense matrix with these cells.

        Parameters
        ----------
        cells : ndarray of shape (m, n)
            The cells so far; NaN where missing.

        Returns
        -------
        ndarray of the new shape
        """
        m, n = cells.shape
        whole = np.full(self.shape, np.nan, cells.dtype)
        whole[:m, :n] = cells
        whole[self.rows, self.cols] = self.values
        return whole


def partial_fit(self: BaseCompleter, X: Container, y: object = None) -> BaseCompleter:
    """Learn more rows, more cells of known rows, or more columns.

    Nothing is forgotten: the model is one of all cells so far. The first call is
    `fit`, which also makes all choices ("auto"). The Notes of the class say what a
    further call costs and where it differs from a fit to all cells.

    Parameters
    ----------
    self : completer
        Defines ``_fit_more``, which returns the `Outcome` for all cells and their
        statistics.
    X : container as in `fit`, of shape (n_samples, n_features)
        New rows, which are appended to those so far. The rows of `Entries` have
        numbers: they are new if they are larger than those so far, and otherwise
        rows whose cells are added, or replaced where they are known. If ``X`` has
        more columns than so far, the last ones are new, and other rows miss them.
    y : Ignored
        Present for pipelines.

    Returns
    -------
    self
        The fitted completer.
    """
    if not hasattr(self, "_fitted"):
        return self.fit(X, y)
    if self._priors.weighted:
        raise ValueError(
            "partial_fit cannot continue a fit with weights; call fit with all cells."
        )
    before = dict(vars(self))
    try:
        fitted, changed = self._fit_more(_read_more(self, X))
        statistics = fitted.statistics
        if statistics.empty_cols.any() or statistics.empty_rows[self._shape[0] :].any():
            self._warn_of_empty(statistics)
        kept = {name: before[name] for name in before["_fitted_names"]}
    except BaseException:
        self.__dict__.clear()
        self.__dict__.update(before)
        raise
    common = self._common(statistics)
    self._set_fitted(statistics, Outcome(fitted, {**kept, **common, **changed}))
    return self


def _read_more(completer: BaseCompleter, X: Any) -> MoreCells:
    m, n = completer._shape
    missing = completer.missing_values
    if isinstance(X, StoredEntries):
        raise TypeError(
            f"partial_fit needs cells in memory, but X is {X!r}; pass Entries, or "
            "fit to all files again."
        )
    if isinstance(X, Entries):
        X = X[X.values != missing]
        # A slice may contain a cell twice; the last one counts.
        place = np.ravel_multi_index((X.rows, X.cols), X.matrix_shape)
        last = len(X) - 1 - np.unique(place[::-1], return_index=True)[1]
        X = X[last]
        shape = max(m, X.matrix_shape[0]), max(n, X.matrix_shape[1])
        if shape[1] > n:
            _check_no_names(completer)
            validate_data(completer, sp.csr_array(shape), accept_sparse=True)
        return MoreCells(X.rows, X.cols, X.values, shape)
    if sp.issparse(X):
        rows, cols, values = sparse_cells(X, missing_values=missing)
        size = X.shape
        if size[1] > n:
            _check_no_names(completer)
        validate_data(
            completer, sp.csr_array(size), accept_sparse=True, reset=size[1] > n
        )
    else:
        width = np.shape(to_cells(X, missing_values=missing))
        appended = len(width) == 2 and width[1] > n
        if appended:
            _check_first_names(completer, X)
        cells = completer._read(X, reset=appended)
        rows, cols = np.nonzero(~np.isnan(cells))
        values, size = cells[rows, cols], cells.shape
    return MoreCells(rows + m, cols, values, (m + size[0], max(n, size[1])))


def _check_no_names(completer: BaseCompleter) -> None:
    if hasattr(completer, "feature_names_in_"):
        raise ValueError(
            "The columns of the fit have names, so new columns need names too; "
            "pass a data frame."
        )


def _check_first_names(completer: BaseCompleter, X: Container) -> None:
    names = getattr(completer, "feature_names_in_", None)
    first = list(getattr(X, "columns", ()))[: completer._shape[1]]
    if names is None and not first:
        return
    if names is None or list(names) != first:
        raise ValueError(
            "X has more columns than the fit, so the first ones must be those of "
            f"the fit, {None if names is None else list(names)}, but they are "
            f"{first or None}."
        )
