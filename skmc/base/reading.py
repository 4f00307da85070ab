"""Reading of input containers: what is given to ``fit``, and rows to complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, validate_data

from skmc.base.doubts import warn_of_doubtful_numbers
from skmc.base.identifiers import (
    as_array,
    by_identifier,
    in_order_of_fit,
    in_order_of_matrix,
)
from skmc.base.reporting import check_picture
from skmc.base.side_information import read_known, sides_of
from skmc.blocks import BlockObserved, ChunkedRows, is_lazy, sorted_blocks
from skmc.cells import (
    Container,
    Entries,
    Given,
    Priors,
    SparseObserved,
    StoredEntries,
    as_frame,
    frame_of_layer,
    in_order_of,
    is_anndata,
    layout_of,
    sparse_cells,
    to_cells,
    without_duplicates,
)

WEIGHTS = "cell_weight", "sample_weight"  # arguments of fit


def given_of(completer: Any, X: Container, known: Mapping[str, Any]) -> Given:
    """Read all arguments of ``fit``, in the storage that the completer accepts."""
    own_scaling = getattr(completer, "scaling", None)
    pictures = completer.completer_tags.pictures
    says = sp.issparse(X) or bool(getattr(X, "one_unit", False))
    one_unit = own_scaling == "global" or pictures or says
    if BlockObserved in completer.accepts and isinstance(X, StoredEntries):
        return _given_in_files(completer, X, known, one_unit)
    if ChunkedRows in completer.accepts and is_lazy(X):
        return _given_in_chunks(completer, X, known, one_unit)
    known, ids = dict(known), None
    if isinstance(X, Entries) and X.ids is not None:
        X, known = by_identifier(X, known)
        ids = X.ids
    else:
        sides = {n: side for n, side in known.items() if n not in WEIGHTS}
        known |= in_order_of_matrix(sides, X)
    if isinstance(X, Entries) and known.get("cell_weight") is None:
        known["cell_weight"] = _weights_in(X, completer)
    read = _given_as_cells if SparseObserved in completer.accepts else _given_as_matrix
    given = read(completer, X, known, one_unit)
    implicit = getattr(completer, "alpha", None) is not None  # zeros are counts
    is_table = not (one_unit or implicit or isinstance(X, Entries) or is_anndata(X))
    if is_table and given.layout is None:
        names = getattr(completer, "feature_names_in_", None)
        warn_of_doubtful_numbers(given.matrix, names)
    if pictures and not (own_scaling == "columns" or says):
        check_picture(completer, given.data)
    if ids is None:
        return given
    return replace(given, statistics=replace(given.statistics, ids=ids))


def _given_as_matrix(
    completer: Any, X: Any, known: dict[str, Any], one_unit: bool
) -> Given:
    weight, row_weights = (known.pop(name, None) for name in WEIGHTS)
    matrix = read_matrix(completer, X, completer.missing_values, reset=True)
    weights = None
    if weight is not None:
        rows, cols = np.nonzero(~np.isnan(matrix))
        weights = np.zeros(matrix.shape)
        weights[rows, cols] = read_weights(weight, X, rows, cols, matrix.shape)
    if row_weights is not None:
        row_weights = read_row_weights(row_weights, X, len(matrix))
    return Given.of_matrix(
        matrix,
        weights,
        row_weights,
        one_unit=one_unit,
        layout=layout_of(X),
        known=read_known(known, (matrix.shape[0], matrix.shape[1])),
    )


def _given_as_cells(
    completer: Any, X: Any, known: dict[str, Any], one_unit: bool
) -> Given:
    weight = known.pop("cell_weight", None)
    entries = _entries_of(completer, X)
    weights = None
    if weight is not None:
        rows, cols, shape = entries.rows, entries.cols, entries.matrix_shape
        weights = read_weights(weight, X, rows, cols, shape)
    given = Given.of_entries(entries, weights, one_unit=one_unit, layout=layout_of(X))
    return sides_of(given, known) if known else given


def _entries_of(completer: Any, X: Any) -> Entries:
    """Read the observed cells of any container; sparse ones are not made dense."""
    missing = completer.missing_values
    if isinstance(X, Entries):
        shape = X.matrix_shape
        cells = without_duplicates(X)
        cells = cells[cells.values != missing]
    elif sp.issparse(X):
        triplets = sparse_cells(X, missing_values=missing)
        cells, shape = Entries.from_triplets(*triplets, X.shape), X.shape
    elif is_anndata(X) and missing == 0 and sp.issparse(X.X):
        # Cells that are not stored are zeros, and zeros are missing.
        validate_data(completer, frame_of_layer(X[:0]), skip_check_array=True)
        triplets = sparse_cells(X.X, missing_values=0)
        return Entries.from_triplets(*triplets, X.shape)
    else:
        return Entries.of_matrix(read_matrix(completer, X, missing, reset=True))
    validate_data(completer, sp.csr_array(shape), accept_sparse=True)
    return cells


def _given_in_files(
    completer: Any, X: StoredEntries, known: Mapping[str, Any], one_unit: bool
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
    sums = folder.statistics
    labels = None if ids is None else (as_array(ids[0]), as_array(ids[1]))
    statistics = Priors.of_statistics(
        sums["row"], sums["col"], one_unit=one_unit, ids=labels
    )
    return Given(data, statistics)


def _given_in_chunks(
    completer: Any, X: Any, known: Mapping[str, Any], one_unit: bool
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
    sums = data.statistics
    return Given(
        data, Priors.of_statistics(sums["row"], sums["col"], one_unit=one_unit)
    )


def _weights_in(X: Entries, completer: Any) -> np.ndarray | None:
    if X.weights is not None and "cell_weight" not in completer.takes():
        raise ValueError(
            f"{type(completer).__name__} takes no weights, which X has: "
            f"{completer.completer_tags.unweighted}. Leave them out where you make X."
        )
    return X.weights


def read_rows(completer: Any, X: Container) -> np.ndarray:  # (k, n_cols)
    """Read rows to complete as floats, NaN where a cell is missing."""
    if isinstance(X, Entries) and X.ids is not None:
        X = in_order_of_fit(X, completer._priors)
    return read_matrix(completer, X, completer.missing_values, reset=False)


def read_matrix(
    estimator: Any, X: Container, missing_values: float, *, reset: bool
) -> np.ndarray:
    """Read a matrix by `to_cells`, before scikit-learn can drop a mask."""
    X = as_frame(X)
    cells: np.ndarray = to_cells(X, missing_values=missing_values)
    finite = "allow-nan"
    if hasattr(X, "columns"):  # the array has lost the names of a DataFrame
        check_names(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        cells = check_array(cells, ensure_all_finite=finite, estimator=estimator)
    else:
        cells = validate_data(estimator, cells, reset=reset, ensure_all_finite=finite)
    return cells


def check_names(X: Container) -> None:
    """Check that no two columns of a data frame have the same name."""
    names = list(getattr(X, "columns", ()))
    if len(set(names)) == len(names):
        return
    for name in names:
        if (count := names.count(name)) > 1:
            raise ValueError(
                f"X has {count} columns named {name!r}; give them different names "
                "(X.columns = [...])."
            )


def read_weights(
    weights: Any,
    X: Any,
    rows: np.ndarray,  # (n_cells,)
    cols: np.ndarray,  # (n_cells,)
    shape: tuple[int, ...],
) -> np.ndarray:  # (n_cells,)
    """Read the weights of cells."""
    of_cells = isinstance(X, Entries)
    if not of_cells:
        weights = in_order_of(weights, X, "cell_weight")
    needed = (len(X),) if of_cells else shape
    if np.shape(weights) != needed:
        kind = "one number for each cell of X" if of_cells else "the shape of X"
        raise ValueError(
            f"cell_weight has shape {np.shape(weights)}; it must have {kind}, {needed}."
        )
    if of_cells:
        # Of a cell that occurs twice, the last one is used.
        flat = (X.rows * shape[1] + X.cols)[::-1]
        place, last = np.unique(flat, return_index=True)
        at = np.searchsorted(place, rows * shape[1] + cols)
        chosen = np.asarray(weights, float)[::-1][last[at]]
    elif sp.issparse(weights):
        chosen = np.asarray(sp.csr_array(weights)[rows, cols], float)
    else:
        chosen = np.asarray(weights, float)[rows, cols]
    wrong = ~(np.isfinite(chosen) & (chosen >= 0))
    if wrong.any():
        k = wrong.argmax()
        raise ValueError(
            f"cell_weight is {chosen[k]} at row {rows[k]}, column {cols[k]}; weights "
            "of observed cells must be finite and at least 0."
        )
    return chosen


def read_row_weights(
    weights: Any,  # (n_rows,)
    X: Any,
    n_rows: int,
) -> np.ndarray:  # (n_rows,)
    """Read the weights of rows."""
    try:
        read = np.asarray(in_order_of(weights, X, "sample_weight"), float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be numbers: {error}.") from error
    if read.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {read.shape}; it must have one number for each "
            f"row of X, ({n_rows},)."
        )
    wrong = ~(np.isfinite(read) & (read >= 0))
    if wrong.any():
        row = wrong.argmax()
        raise ValueError(
            f"sample_weight is {read[row]} at row {row}; weights must be finite and "
            "at least 0."
        )
    if not read.any():
        raise ValueError("sample_weight is zero in all rows; give positive weights.")
    return read
