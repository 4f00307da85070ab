"""Learning of more rows, cells and columns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from skmc.base.completer import BaseCompleter, unchanged_by_failure
from skmc.base.fitted import Fitted, Outcome
from skmc.base.reading import read_matrix
from skmc.base.reporting import warn_user
from skmc.cells import (
    Container,
    Entries,
    Given,
    StoredEntries,
    sparse_cells,
    to_cells,
    without_duplicates,
)
from skmc.linalg import threads_for

GROWTH = 2  # of the cells, after which a fit to all of them is due


@dataclass(frozen=True)
class MoreCells:
    """Cells to add to a fit.

    Parameters
    ----------
    rows, cols : int ndarray of shape (n_cells,)
        Positions in the whole matrix, without duplicates.
    values : ndarray of shape (n_cells,)
        Values of the cells, which replace known ones.
    shape : tuple of int
        Shape of the whole matrix after the update.
    ids : tuple of ndarray or None, default=None
        Identifiers of rows and columns after the update.
    """

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    ids: tuple[np.ndarray, np.ndarray] | None = None

    def into(
        self,
        cells: np.ndarray,  # (m, n)
    ) -> np.ndarray:
        """Return a dense matrix with these cells."""
        m, n = cells.shape
        larger = np.full(self.shape, np.nan, cells.dtype)
        larger[:m, :n] = cells
        larger[self.rows, self.cols] = self.values
        return larger


class PartialFit(BaseCompleter):
    """Mixin of completers that learn more cells without a fit to all of them.

    See Also
    --------
    Samples : For models that are distributions.
    """

    @abstractmethod
    def _fit_more(self, more: MoreCells) -> tuple[Fitted, dict[str, Any]]:
        """Return the fit to all cells, and the fitted attributes that change."""

    def _all_cells(self, more: MoreCells) -> Given | None:
        """Return the cells so far, and those to add, for a new fit.

        None, the default, if updates are equal to a new fit.
        """

    def partial_fit(self, X: Container, y: object = None) -> Self:
        """Learn more rows, more cells of known rows, or more columns.

        The model is that of all cells so far. The first call is `fit`, which also makes
        all choices ("auto"). So is each call by which the number of cells, or that of a
        column with its own unit, is twice that of the last fit. The Notes of the class
        give the cost of another call and its differences from a fit to all cells.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            New rows, which are appended to the existing ones. The rows of `Entries`
            have numbers or identifiers: rows with unknown ones are new. To the others,
            cells are added, or replaced if they are known. If ``X`` has more columns
            than before, the last ones are new, and the other rows miss them.
        y : Ignored
            Ignored; present for pipelines.

        Returns
        -------
        self
            The fitted completer.
        """
        if not hasattr(self, "_fitted"):
            return self.fit(X, y)
        if self._priors.weighted:
            raise ValueError(
                "partial_fit cannot continue a fit with weights; call fit with all "
                "cells."
            )
        kept = {name: vars(self)[name] for name in self._fitted_names}
        del kept["_bounds"], kept["_like"]  # there may be more columns
        with unchanged_by_failure(self):
            more = self._read_more(X)
            outcome = self._fit_further(more)
            fitted, changed = outcome.fitted, outcome.attributes
            fitted.statistics = statistics = replace(fitted.statistics, ids=more.ids)
            if (
                statistics.empty_cols.any()
                or statistics.empty_rows[self._shape[0] :].any()
            ):
                self._warn_of_empty(statistics)
        common = self._common_attributes(statistics)
        self._set_fitted(statistics, Outcome(fitted, {**kept, **common, **changed}))
        if outcome.advice:
            warn_user(f"{type(self).__name__} {outcome.advice}", ConvergenceWarning)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return self

    def _fit_further(self, more: MoreCells) -> Outcome:
        """Fit to all cells if they are twice those of the last fit, or update it."""
        given = self._all_cells(more)
        if given is None:
            return Outcome(*self._fit_more(more))
        sizes = vars(self).get("_sizes")
        if sizes is None:
            none = np.empty(0, int)
            before = self._all_cells(MoreCells(none, none, np.empty(0), self._shape))
            assert before is not None
            sizes = _sizes(before)
        now = _sizes(given)
        sizes = np.pad(sizes, (0, len(now) - len(sizes)))
        if (now >= np.maximum(GROWTH * sizes, 1)).any():
            del self._fitted  # no warm start
            statistics = replace(given.statistics, ids=more.ids)
            given = replace(given, statistics=statistics)
            with threads_for(given.data.work):
                outcome = self._fit_cells(given)
            self._fitted = outcome.fitted
            outcome.attributes["_sizes"] = now
            return outcome
        fitted, changed = self._fit_more(more)
        return Outcome(fitted, {**changed, "_sizes": sizes})

    def _read_more(self, X: Any) -> MoreCells:
        m, n = self._shape
        missing = self.missing_values
        if isinstance(X, StoredEntries):
            raise TypeError(
                f"partial_fit needs cells in memory, but X is {X!r}; pass Entries, or "
                "fit to all files again."
            )
        if isinstance(X, Entries):
            X = without_duplicates(X[X.values != missing])
            if X.ids is not None:
                return self._read_identified(X)
            self._check_no_ids()
            shape = max(m, X.matrix_shape[0]), max(n, X.matrix_shape[1])
            if shape[1] > n:
                self._check_no_names()
                validate_data(self, sp.csr_array(shape), accept_sparse=True)
            return MoreCells(X.rows, X.cols, X.values, shape)
        self._check_no_ids()
        if sp.issparse(X):
            rows, cols, values = sparse_cells(X, missing_values=missing)
            size, wider = X.shape, X.shape[1] > n
            if wider:
                self._check_no_names()
            validate_data(self, sp.csr_array(size), accept_sparse=True, reset=wider)
        else:
            width = np.shape(to_cells(X, missing_values=missing))
            appended = len(width) == 2 and width[1] > n
            if appended:
                self._check_first_names(X)
            cells = read_matrix(self, X, missing, reset=appended)
            rows, cols = np.nonzero(~np.isnan(cells))
            values, size = cells[rows, cols], cells.shape
        return MoreCells(rows + m, cols, values, (m + size[0], max(n, size[1])))

    def _read_identified(self, X: Entries) -> MoreCells:
        """Find rows and columns by their identifiers; new ones come last."""
        if self._priors.ids is None:
            raise ValueError(
                "X has identifiers, but the fit had none; fit to Entries.from_frame, "
                "too."
            )
        places, ids = [], []
        for of_fit, of_X in zip(self._priors.ids, X.labels, strict=True):
            if of_fit.dtype.kind != of_X.dtype.kind:
                raise TypeError(
                    f"Identifiers of X are {of_X.dtype}, those of the fit "
                    f"{of_fit.dtype}."
                )
            joined = np.concatenate([of_fit, np.setdiff1d(of_X, of_fit)])
            order = np.argsort(joined, kind="stable")
            places.append(order[np.searchsorted(joined, of_X, sorter=order)])
            ids.append(joined)
        shape = len(ids[0]), len(ids[1])
        validate_data(self, sp.csr_array(shape), accept_sparse=True)
        return MoreCells(places[0], places[1], X.values, shape, (ids[0], ids[1]))

    def _check_no_ids(self) -> None:
        if self._priors.ids is not None:
            raise ValueError(
                "The rows of the fit have identifiers, so new cells need them, too; "
                "pass Entries.from_frame."
            )

    def _check_no_names(self) -> None:
        if hasattr(self, "feature_names_in_"):
            raise ValueError(
                "The columns of the fit have names, so new columns need names too; "
                "pass a data frame."
            )

    def _check_first_names(self, X: Container) -> None:
        names = getattr(self, "feature_names_in_", None)
        first = list(getattr(X, "columns", ()))[: self._shape[1]]
        if names is None and not first:
            return
        if names is None or list(names) != first:
            raise ValueError(
                "X has more columns than the fit, so the first ones must be those of "
                f"the fit, {None if names is None else list(names)}, but they are "
                f"{first or None}."
            )


def _sizes(given: Given) -> np.ndarray:
    """Number of all cells, and those of columns with units of their own."""
    n_cells = given.statistics.n_observed
    if given.statistics.one_unit:
        return np.array([n_cells])
    if isinstance(given.read, Entries):
        cols = given.read.cols
    else:
        cols = np.nonzero(~np.isnan(given.matrix))[1]
    return np.append(n_cells, np.bincount(cols, minlength=given.statistics.shape[1]))
