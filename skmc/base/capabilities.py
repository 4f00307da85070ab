"""Optional capabilities of completers: `partial_fit`, and features of new rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base.completer import BaseCompleter
from skmc.base.factored import FittedFactors, RowModels
from skmc.base.fitted import Outcome, common_attributes
from skmc.base.iterative import IterativeCompleter
from skmc.base.reading import by_identifier
from skmc.base.reporting import warn_of_empty
from skmc.blocks import StoredCells
from skmc.cells import (
    Container,
    Entries,
    Given,
    Priors,
    SparseObserved,
    StoredEntries,
    sparse_cells,
    to_cells,
)
from skmc.linalg import threads_for, work_of
from skmc.new_rows import RowStream


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

    def into(self, cells: np.ndarray) -> np.ndarray:
        """Return a dense matrix with these cells.

        Parameters
        ----------
        cells : ndarray of shape (m, n)
            Current matrix, NaN where missing.

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

    The model is that of all cells so far. The first call is `fit`, which also makes
    all choices ("auto"). The Notes of the class give the cost of a further call and
    its differences from a fit to all cells.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_samples, n_features)
        New rows, which are appended to the existing ones. The rows of `Entries` have
        numbers or identifiers: rows with unknown ones are new. To the others, cells are
        added, or replaced if they are known. If ``X`` has more columns than before, the
        last ones are new, and the other rows miss them.
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
            "partial_fit cannot continue a fit with weights; call fit with all cells."
        )
    before = dict(vars(self))
    try:
        more = _read_more(self, X)
        fitted, changed = self._fit_more(more)
        fitted.statistics = statistics = replace(fitted.statistics, ids=more.ids)
        if statistics.empty_cols.any() or statistics.empty_rows[self._shape[0] :].any():
            warn_of_empty(self, statistics)
        kept = {name: before[name] for name in before["_fitted_names"]}
        del kept["_bounds"], kept["_like"]  # there may be more columns
    except BaseException:
        self.__dict__.clear()
        self.__dict__.update(before)
        raise
    common = common_attributes(self, statistics)
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
        # A slice may contain a cell twice; the last one is used.
        place = np.ravel_multi_index((X.rows, X.cols), X.matrix_shape)
        last = np.zeros(len(X), bool)
        last[len(X) - 1 - np.unique(place[::-1], return_index=True)[1]] = True
        X = X[last]
        if X.ids is not None:
            return _read_identified(completer, X)
        _check_no_ids(completer)
        shape = max(m, X.matrix_shape[0]), max(n, X.matrix_shape[1])
        if shape[1] > n:
            _check_no_names(completer)
            validate_data(completer, sp.csr_array(shape), accept_sparse=True)
        return MoreCells(X.rows, X.cols, X.values, shape)
    _check_no_ids(completer)
    if sp.issparse(X):
        rows, cols, values = sparse_cells(X, missing_values=missing)
        size, wider = X.shape, X.shape[1] > n
        if wider:
            _check_no_names(completer)
        validate_data(completer, sp.csr_array(size), accept_sparse=True, reset=wider)
    else:
        width = np.shape(to_cells(X, missing_values=missing))
        appended = len(width) == 2 and width[1] > n
        if appended:
            _check_first_names(completer, X)
        cells = completer._read(X, reset=appended)
        rows, cols = np.nonzero(~np.isnan(cells))
        values, size = cells[rows, cols], cells.shape
    return MoreCells(rows + m, cols, values, (m + size[0], max(n, size[1])))


def _read_identified(completer: BaseCompleter, X: Entries) -> MoreCells:
    """Find the rows and columns of cells by their identifiers; new ones come last."""
    if completer._priors.ids is None:
        raise ValueError(
            "X has identifiers, but the fit had none; fit to Entries.from_frame, too."
        )
    places, ids = [], []
    for known, own in zip(completer._priors.ids, X.labels, strict=True):
        if known.dtype.kind != own.dtype.kind:
            raise TypeError(
                f"Identifiers of X are {own.dtype}, those of the fit {known.dtype}."
            )
        joined = np.concatenate([known, np.setdiff1d(own, known)])
        order = np.argsort(joined, kind="stable")
        places.append(order[np.searchsorted(joined, own, sorter=order)])
        ids.append(joined)
    shape = len(ids[0]), len(ids[1])
    validate_data(completer, sp.csr_array(shape), accept_sparse=True)
    return MoreCells(places[0], places[1], X.values, shape, (ids[0], ids[1]))


def _check_no_ids(completer: BaseCompleter) -> None:
    if completer._priors.ids is not None:
        raise ValueError(
            "The rows of the fit have identifiers, so new cells need them, too; pass "
            "Entries.from_frame."
        )


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


def with_more(
    completer: IterativeCompleter, biases: str | None, more: MoreCells
) -> FittedFactors:
    """Update the factors of a fit to cells in memory.

    Parameters
    ----------
    completer : IterativeCompleter
        Completer fitted with `FittedFactors` of one model.
    biases : {"both", "rows", "columns"} or None
        Biases of the model.
    more : MoreCells
        Cells to add.

    Returns
    -------
    FittedFactors
    """
    fitted = _in_memory(cast(FittedFactors, completer._fitted))
    model, values = fitted.models[0], cast(np.ndarray, fitted.values)
    starts, cols = fitted.seen
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    touched, local = np.unique(more.rows, return_inverse=True)
    known = touched[touched < len(starts) - 1]
    old = np.flatnonzero(np.isin(rows, known))
    shape = len(touched), more.shape[1]
    before = _cells(np.searchsorted(touched, rows[old]), cols[old], values[old], shape)
    kept = ~np.isin(
        before.rows.numpy() * shape[1] + before.cols.numpy(),
        local * shape[1] + more.cols,
    )
    after = _cells(
        np.concatenate([before.rows[kept], local]),
        np.concatenate([before.cols[kept], more.cols]),
        np.concatenate([before.values[kept], more.values.astype(values.dtype)]),
        shape,
    )
    rows = np.concatenate([np.delete(rows, old), touched[after.rows]])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    cols = np.concatenate([np.delete(cols, old), after.cols.numpy()])[order]
    values = np.concatenate([np.delete(values, old), after.values.numpy()])[order]
    whole = SparseObserved(
        torch.from_numpy(rows),
        torch.from_numpy(cols.astype(np.int64)),
        torch.from_numpy(values),
        more.shape,
    )
    one_unit = fitted.statistics.one_unit
    statistics = Priors.of(rows, cols, values, more.shape, one_unit=one_unit)
    given = Given(whole, statistics)
    scaling = given.scaling_of(completer.scaling, centre=completer.centre)
    row_biases = biases in ("both", "rows")
    with threads_for(work_of(len(after.values))):
        stream = _stream(fitted).extended(*more.shape, row_biases)
        stream = stream.replaced(
            torch.from_numpy(touched),
            before,
            after,
            scaling,
            model,
            row_biases=row_biases,
            col_biases=biases in ("both", "columns"),
        )
    model = replace(model, F=stream.cols[:, :-1], offset=stream.cols[:, -1])
    return replace(
        fitted,
        statistics=statistics,
        scaling=scaling,
        models=[model],
        left=stream.rows.numpy(),
        right=stream.cols.numpy(),
        seen=(whole.starts.numpy(), cols.astype(np.int32)),
        values=values,
        sums=(stream.gram, stream.right, stream.origin),
    )


def _stream(fitted: FittedFactors) -> RowStream:
    factors = fitted.factors()
    if fitted.sums is not None:
        return RowStream(factors.left, factors.right, *fitted.sums)
    starts, cols = fitted.seen
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    shape = len(factors.left), len(factors.right)
    cells = _cells(rows, cols, fitted.values, shape)
    return RowStream.of(factors.left, factors.right, cells)


def _in_memory(fitted: FittedFactors) -> FittedFactors:
    """The same factors with their cells in memory, or raise an error."""
    reason = None
    if isinstance(fitted.seen, StoredCells):
        starts, cols, values, weights = fitted.seen.all()
        reason = None if weights is None else "weights"
        fitted = replace(fitted, seen=(starts, cols), values=values)
    elif fitted.identity is not None:
        reason = "features, graphs or weights"
    elif fitted.alpha is not None:
        reason = "alpha"
    if reason:
        raise ValueError(
            f"partial_fit cannot continue a fit with {reason}; call fit with all cells."
        )
    return fitted


def _cells(
    rows: ArrayLike, cols: ArrayLike, values: ArrayLike | None, shape: tuple[int, int]
) -> SparseObserved:
    rows, cols = (np.asarray(x).astype(np.int64) for x in (rows, cols))
    return SparseObserved.of(rows, cols, np.asarray(values), shape)


def transform_with_features(
    self: BaseCompleter, X: Container, *, row_features: Container | None = None
) -> np.ndarray:
    """Complete rows of the fitted matrix or new rows.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_samples, n_features)
        Rows to complete.
    row_features : as in `fit`, of shape (n_samples, p), optional
        Features of these rows. Without them, the rows of the fitted matrix have the
        features and neighbors of the fit, if ``X`` has exactly its cells. The rows of
        any other ``X`` are treated as average.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        The completion in the float dtype of ``X``; a DataFrame under
        ``set_output``. Observed cells are unchanged unless
        ``keep_observed=False``. Rows without an observed cell are completed from
        their features if the fit had features or a graph of rows, and are filled
        with the column means otherwise.
    """
    if row_features is None:
        return BaseCompleter.transform(self, X)
    check_is_fitted(self)
    if isinstance(X, Entries) and X.ids is not None:
        X, known = by_identifier(X, {"row_features": row_features})
        row_features = known["row_features"]
    cells, source = self._read_rows(X, reset=False)
    values = cast(RowModels, self._fitted).with_features(cells, row_features)
    return self._answer(source, cells, values)
