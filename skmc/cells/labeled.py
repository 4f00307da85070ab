"""Matrices with labels of other libraries: pandas, polars, AnnData, xarray, Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np


def is_anndata(X: object) -> bool:
    """Whether an object is an `anndata.AnnData`."""
    return all(hasattr(X, name) for name in ("obs_names", "var_names", "to_df"))


def is_data_array(X: object) -> bool:
    """Whether an object is an `xarray.DataArray`."""
    return all(hasattr(X, name) for name in ("dims", "coords", "to_pandas", "ndim"))


def is_arrow(X: object) -> bool:
    """Whether an object is a `pyarrow.Table` or `pyarrow.RecordBatch`."""
    return hasattr(X, "replace_schema_metadata") and hasattr(X, "to_pandas")


def as_frame(X: Any, *, exact: bool = False) -> Any:
    """Read a matrix with labels of another library as a data frame.

    Cells that a sparse ``X`` of AnnData does not store are zeros, as AnnData defines
    them. The first dimension of a DataArray has the rows.
    """
    if is_anndata(X):
        return frame_of_layer(X)
    if is_data_array(X):
        if X.ndim > 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D array instead: X has the dimensions "
                f"{X.dims}. Combine those of the columns, such as by "
                f"X.stack(column={list(X.dims[1:])!r}), and undo it after the "
                "completion by .unstack('column')."
            )
        if X.ndim < 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D array instead: X has the dimensions "
                f"{X.dims}. X.expand_dims('column', axis=1) makes it a column."
            )
        return X.to_pandas()
    if is_arrow(X):
        return _frame_of_arrow(X, exact)
    if hasattr(X, "data_vars"):
        raise TypeError(
            f"X is a Dataset; pass one of its variables {list(X.data_vars)}, which are "
            "matrices."
        )
    if hasattr(X, "collect") and hasattr(X, "lazy"):
        raise TypeError("X is a LazyFrame; pass X.collect().")
    return X


def frame_of_layer(X: Any, layer: str | None = None) -> Any:
    """Read a matrix of AnnData as a data frame, with zeros for cells not stored."""
    if layer is None and X.X is None:
        raise ValueError(
            "X of the AnnData is None; skmc.omics.complete(adata, completer, "
            f"layer=...) completes one of its layers, which are {list(X.layers)}."
        )
    if layer is not None and layer not in X.layers:
        raise ValueError(
            f"layer={layer!r} is not in the AnnData, whose layers are {list(X.layers)}."
        )
    if not X.var_names.is_unique:
        twice = X.var_names[X.var_names.duplicated()][0]
        raise ValueError(
            f"The AnnData has several variables named {twice!r}; call "
            "adata.var_names_make_unique() first."
        )
    if X.isbacked:
        X = X.to_memory()
    return X.to_df(layer=layer)


def _frame_of_arrow(X: Any, exact: bool) -> Any:
    try:
        kind_of = import_module("pandas").ArrowDtype
    except ImportError as error:
        raise ImportError(
            "Arrow tables are read by pandas (pip install pandas); or pass "
            "polars.from_arrow(X)."
        ) from error

    def mapper(kind: Any) -> Any:  # categories of pandas are read as such
        return None if str(kind).startswith("dictionary") else kind_of(kind)

    return X.to_pandas(types_mapper=mapper if exact else None)


def labels_of(X: Any) -> tuple[list[Any] | None, list[Any] | None]:
    """List the labels of the rows and of the columns of a container."""
    if is_anndata(X):
        return list(X.obs_names), list(X.var_names)
    if is_data_array(X):
        indexes = [X.indexes.get(dimension) for dimension in (*X.dims, None)[:2]]
        rows, columns = (None if index is None else list(index) for index in indexes)
        return rows, columns
    # Lists have a method index, and that of Dask is not in memory.
    indexed = hasattr(X, "iloc") and not hasattr(X, "__dask_graph__")
    rows = _labels(X.index) if indexed else None
    columns = getattr(X, "columns", getattr(X, "column_names", None))
    return rows, None if columns is None else _labels(columns)


def _labels(index: Any) -> list[Any]:
    """Labels, None where missing: NaN is not equal to itself."""
    none = "NAType", "NaTType"
    return [
        None if type(x).__name__ in none or (isinstance(x, float) and x != x) else x
        for x in index
    ]


def in_order(
    given: Any,
    rows: Sequence[Any] | None,
    columns: Sequence[Any] | None,
    name: str,
    of: str = "X",
) -> Any:
    """Sort labeled data like the rows and columns to which they belong."""
    axes = zip((rows, columns), labels_of(given), ("rows", "columns"), strict=True)
    for axis, (ours, theirs, what) in enumerate(axes):
        if ours is None or theirs is None or len(ours) != len(theirs):
            continue  # of another shape
        if list(ours) == theirs:
            continue
        place = {label: k for k, label in enumerate(theirs)}
        if len(place) == len(theirs) and place.keys() == set(ours):
            given = as_frame(given)
            order = [place[label] for label in ours]
            if hasattr(given, "iloc"):
                given = given.iloc[:, order] if axis else given.iloc[order]
            else:
                given = given.select(list(ours))
            continue
        numbers = list(range(len(theirs)))
        if numbers not in (list(ours), theirs):
            k = next(k for k, label in enumerate(theirs) if label != ours[k])
            raise ValueError(
                f"The {what} of {name} have other labels than those of {of}, such as "
                f"{theirs[k]!r} for {ours[k]!r}; reindex {name} like {of}, or pass an "
                "array to take it by position."
            )
    return given


def in_order_of(given: Any, X: Any, name: str, of: str = "X") -> Any:
    """Sort labeled data like the rows and columns of a container, see `in_order`."""
    return in_order(given, *labels_of(X), name, of)


def like_input(X: Any, completed: Any) -> Any:
    """Return a completion of a DataArray or Arrow table in its container."""
    if is_data_array(X) and not is_data_array(completed):
        if np.shape(completed) != X.shape:
            raise ValueError(
                f"The completion has shape {np.shape(completed)}, but the DataArray "
                f"{X.shape}; set keep_empty_features=True and add_indicator=False, or "
                "pass X.to_pandas()."
            )
        return X.copy(data=np.asarray(completed))
    if is_arrow(X) and hasattr(completed, "iloc"):
        table = type(X).from_pandas(completed, preserve_index=False)
        return table.replace_schema_metadata(X.schema.metadata)
    return completed
