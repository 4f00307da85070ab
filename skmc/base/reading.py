"""Reading of input containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, validate_data

from skmc.base.predicting import as_array, positions
from skmc.base.reporting import warn_of_units
from skmc.base.side_information import read_known, sides_of
from skmc.blocks import BlockObserved, ChunkedRows, is_lazy, sorted_blocks
from skmc.cells import (
    Container,
    Entries,
    Given,
    Priors,
    SparseObserved,
    StoredEntries,
    identified,
    sparse_cells,
    to_cells,
)

if TYPE_CHECKING:
    from skmc.base.completer import BaseCompleter


def check_names(X: Container) -> None:
    """Check that no two columns of a data frame have the same name.

    Parameters
    ----------
    X : container
        Input; only data frames have names.

    Raises
    ------
    ValueError
        A name occurs twice.
    """
    names = list(getattr(X, "columns", ()))
    for name in names:
        if (count := names.count(name)) > 1:
            raise ValueError(
                f"X has {count} columns named {name!r}; give them different names "
                "(X.columns = [...])."
            )


def read_rows(estimator: Any, X: Container, *, reset: bool) -> tuple[np.ndarray, Any]:
    """Read a matrix by `to_cells`, before scikit-learn can drop a mask.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameter ``missing_values``.
    X : container
        The matrix.
    reset : bool
        Whether the estimator stores number and names of the columns.

    Returns
    -------
    cells : ndarray of float32 or float64 of shape (n_rows, n_cols)
        NaN where a cell is missing.
    source : None
        None, since the container of the result is an array.
    """
    if isinstance(X, Entries) and X.ids is not None and not reset:
        X = _in_order_of_fit(estimator, X)
    cells: np.ndarray = to_cells(X, missing_values=estimator.missing_values)
    finite = "allow-nan"
    if hasattr(X, "columns"):  # the array has lost the names of a DataFrame
        check_names(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        cells = check_array(cells, ensure_all_finite=finite, estimator=estimator)
    else:
        cells = validate_data(estimator, cells, reset=reset, ensure_all_finite=finite)
    return cells, None


def read(completer: BaseCompleter, X: Container, known: Mapping[str, Any]) -> Given:
    """Read all arguments of ``fit``, once.

    Parameters
    ----------
    completer : BaseCompleter
        Completer, which stores number and names of the columns. Its ``storages`` say
        how cells are kept.
    X : container
        The matrix.
    known : mapping of str to object
        Further arguments of ``fit``.

    Returns
    -------
    Given
    """
    storages, one_unit = completer.storages, _one_unit(completer, X)
    if BlockObserved in storages and isinstance(X, StoredEntries):
        return _read_stored(completer, X, known, one_unit=one_unit)
    if ChunkedRows in storages and is_lazy(X):
        return _read_chunks(completer, X, known, one_unit=one_unit)
    known, ids = dict(known), None
    if isinstance(X, Entries) and X.ids is not None:
        X, known = by_identifier(X, known)
        ids = X.ids
    weight = known.pop("cell_weight", None)
    if weight is None and isinstance(X, Entries):
        weight = _own_weights(completer, X)
    if SparseObserved not in storages:
        matrix, source = completer._read_rows(X, reset=True)
        weights = None
        if weight is not None:
            rows, cols = np.nonzero(~np.isnan(matrix))
            weights = np.zeros(matrix.shape)
            weights[rows, cols] = read_weights(weight, X, rows, cols, matrix.shape)
        if known:
            known = read_known(known, (matrix.shape[0], matrix.shape[1]))
        given = Given.of_matrix(
            matrix, weights, one_unit=one_unit, source=source, known=known
        )
    else:
        entries = _read_entries(completer, X)
        weights = None
        if weight is not None:
            rows, cols, shape = entries.rows, entries.cols, entries.matrix_shape
            weights = read_weights(weight, X, rows, cols, shape)
        given = Given.of_entries(entries, weights, one_unit=one_unit)
        if known:
            given = sides_of(given, known)
    scaled = getattr(completer, "scaling", None) == "columns"
    if completer.completer_tags.pictures and not (scaled or _says_one_unit(X)):
        warn_of_units(
            completer, given.data, "standardize them first, or use MixedCompleter"
        )
    if ids is None:
        return given
    return replace(given, statistics=replace(given.statistics, ids=ids))


def _one_unit(completer: BaseCompleter, X: Container) -> bool:
    """Whether all cells have the same unit: the container or the completer says so."""
    said = getattr(completer, "scaling", None) == "global"
    return said or completer.completer_tags.pictures or _says_one_unit(X)


def _says_one_unit(X: Container) -> bool:
    return sp.issparse(X) or bool(getattr(X, "one_unit", False))


def by_identifier(
    X: Entries, known: Mapping[str, Any]
) -> tuple[Entries, dict[str, Any]]:
    """Sort data frames of features and graphs in the order of the identifiers of X.

    Identifiers that only these have become rows and columns without a cell.

    Parameters
    ----------
    X : Entries
        Cells with identifiers.
    known : mapping of str to object
        Features and graphs. Those that are not data frames are in the right order.

    Returns
    -------
    X : Entries
        The same cells, with all identifiers.
    known : dict of str to object

    Raises
    ------
    ValueError
        A data frame lacks an identifier, or has it twice.
    """
    assert X.ids is not None
    ids, frames = [*X.ids], {}
    for name, value in known.items():
        if not hasattr(value, "reindex"):
            continue
        axis = int(name.startswith("col"))
        found, place = identified(value.index, f"The index of {name}")
        if len(found) < len(place):
            twice = found[np.bincount(place).argmax()].item()
            raise ValueError(f"{name} has several lines for {twice!r}; keep one.")
        if X.ids[axis].dtype.kind == "U":
            found = found.astype(str)
        _check_lines(name, found, X.ids[axis])
        frames[name] = axis, found[place]
        ids[axis] = np.union1d(ids[axis], found)
    result = dict(known)
    for name, (axis, labels) in frames.items():
        _check_lines(name, labels, ids[axis])
        order = np.argsort(labels)
        result[name] = known[name].iloc[order]
        if name.endswith("_graph"):
            if not known[name].columns.equals(known[name].index):
                raise ValueError(f"{name} must have its index as columns, too.")
            result[name] = result[name].iloc[:, order]
    placed = X[:]
    placed.rows = np.searchsorted(ids[0], X.ids[0])[X.rows]
    placed.cols = np.searchsorted(ids[1], X.ids[1])[X.cols]
    placed.ids, placed.matrix_shape = (ids[0], ids[1]), (len(ids[0]), len(ids[1]))
    return placed, result


def _check_lines(name: str, labels: np.ndarray, wanted: np.ndarray) -> None:
    absent = wanted[~np.isin(wanted, labels)]
    if len(absent):
        raise ValueError(
            f"{name} has no line for {absent[0].item()!r}; set its index to the "
            "identifiers, or pass an array in their order."
        )


def _in_order_of_fit(estimator: Any, X: Entries) -> Entries:
    """Find the columns of named cells. The cells of the fit have all of its rows."""
    priors = getattr(estimator, "_priors", None)
    if priors is None or X.ids is None:
        return X
    if priors.ids is None:
        raise ValueError(
            "X has identifiers, unlike the fit; make both by Entries.from_frame, or "
            "both without."
        )
    cols = positions(priors.ids[1], X.ids[1], "columns of X", "are left out")[X.cols]
    rows, n_rows = X.rows, X.matrix_shape[0]
    if len(X) == priors.n_observed and np.isin(X.ids[0], priors.ids[0]).all():
        rows = positions(priors.ids[0], X.ids[0], "rows of X")[rows]
        n_rows = priors.shape[0]
    placed = X[cols >= 0]
    placed.rows, placed.cols = rows[cols >= 0], cols[cols >= 0]
    placed.matrix_shape = n_rows, len(priors.ids[1])
    return placed


def _own_weights(completer: BaseCompleter, X: Entries) -> np.ndarray | None:
    if X.weights is not None and "cell_weight" not in completer.takes():
        raise ValueError(
            f"{type(completer).__name__} takes no weights, which X has: "
            f"{completer.completer_tags.unweighted}. Leave them out where you make X."
        )
    return X.weights


def _read_entries(completer: BaseCompleter, X: Any) -> Entries:
    """Read the observed cells of any container; sparse ones are not made dense."""
    if isinstance(X, Entries):
        shape = X.matrix_shape
        place = np.ravel_multi_index((X.rows, X.cols), shape)
        # A slice may contain a cell twice.
        first = np.zeros(len(X), bool)
        first[np.unique(place, return_index=True)[1]] = True
        cells: Entries = X[first & (X.values != completer.missing_values)]
    elif sp.issparse(X):
        triplets = sparse_cells(X, missing_values=completer.missing_values)
        cells, shape = Entries.from_triplets(*triplets, X.shape), X.shape
    else:
        return Entries.of_matrix(read_rows(completer, X, reset=True)[0])
    validate_data(completer, sp.csr_array(shape), accept_sparse=True)
    return cells


def _read_stored(
    completer: BaseCompleter,
    X: StoredEntries,
    known: Mapping[str, Any],
    *,
    one_unit: bool,
) -> Given:
    """Sort cells in files into blocks."""
    for name in known:
        remedy = "pass Entries"
        if name == "cell_weight":
            remedy = "name a column of weights where you make X"
        raise ValueError(f"{name} needs cells in memory, but X is {X!r}; {remedy}.")
    if not np.isnan(completer.missing_values):
        raise ValueError(
            f"missing_values={completer.missing_values!r} has no effect on cells that "
            "are not in memory; leave such rows out of the files."
        )
    folder = sorted_blocks(X)
    data, ids = BlockObserved(folder), folder.ids()
    validate_data(completer, sp.csr_array(data.shape), accept_sparse=True)
    labels = None if ids is None else (as_array(ids[0]), as_array(ids[1]))
    return Given(data, _statistics(folder.statistics, labels, one_unit=one_unit))


def _read_chunks(
    completer: BaseCompleter, X: Any, known: Mapping[str, Any], *, one_unit: bool
) -> Given:
    """Read column names and statistics of a Dask collection."""
    for name in known:
        raise ValueError(
            f"{name} needs cells in memory, but X is a Dask collection; pass "
            "X.compute()."
        )
    check_names(X)
    small = getattr(X, "_meta", None)
    if not hasattr(X, "columns"):
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D array instead: X must be a matrix."
            )
        small = np.empty((0, X.shape[1]))
    validate_data(completer, small, skip_check_array=True)
    data = ChunkedRows(X, completer.missing_values)
    return Given(data, _statistics(data.statistics, one_unit=one_unit))


def _statistics(
    found: Mapping[str, Any],
    ids: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    one_unit: bool,
) -> Priors:
    return Priors.of_statistics(found["row"], found["col"], one_unit=one_unit, ids=ids)


def read_weights(
    weights: Any, X: Any, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """Read the weights of cells.

    Parameters
    ----------
    weights : array, DataFrame or SciPy sparse matrix
        One number for each cell of ``X`` if it is `Entries`, otherwise a matrix of the
        shape of ``X``.
    X : container
        Argument of ``fit``.
    rows, cols : int ndarray of shape (n_cells,)
        Observed cells of ``X``.
    shape : tuple of int
        Shape of the matrix.

    Returns
    -------
    ndarray of shape (n_cells,)
        Weights of these cells.

    Raises
    ------
    ValueError
        Another shape, or an observed cell whose weight is negative or NaN.
    """
    of_cells = isinstance(X, Entries)
    needed = (len(X),) if of_cells else shape
    if np.shape(weights) != needed:
        kind = "one number for each cell of X" if of_cells else "the shape of X"
        raise ValueError(
            f"cell_weight has shape {np.shape(weights)}; it must have {kind}, {needed}."
        )
    if of_cells:
        place, first = np.unique(X.rows * shape[1] + X.cols, return_index=True)
        at = np.searchsorted(place, rows * shape[1] + cols)
        found = np.asarray(weights, float)[first[at]]
    elif sp.issparse(weights):
        found = np.asarray(sp.csr_array(weights)[rows, cols], float)
    else:
        found = np.asarray(weights, float)[rows, cols]
    wrong = ~(np.isfinite(found) & (found >= 0))
    if wrong.any():
        k = wrong.argmax()
        raise ValueError(
            f"cell_weight is {found[k]} at row {rows[k]}, column {cols[k]}; weights of "
            "observed cells must be finite and at least 0."
        )
    return found
