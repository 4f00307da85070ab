"""Predictions for Dask collections, which are computed partition by partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from skmc.cells import Container


def is_lazy(X: Container) -> bool:
    """Whether ``X`` is a Dask Array, DataFrame or Series."""
    if hasattr(X, "coords"):  # of xarray, which is read as a whole
        return False
    return hasattr(X, "__dask_graph__") and hasattr(
        X, "dtypes" if _framed(X) else "chunks"
    )


def _framed(X: Container) -> bool:
    return hasattr(X, "map_partitions")


def lazy_transform(completer: Any, X: Any) -> Any:
    """Complete rows of a Dask Array or DataFrame when they are computed."""
    import dask

    names = completer.get_feature_names_out()
    shared = dask.delayed(completer, pure=False)
    if _framed(X):
        dtype = np.result_type(np.float32, *X._meta.dtypes)
        meta = type(X._meta)({name: np.empty(0, dtype) for name in names})
        return X.map_partitions(_frame, shared, list(names), dtype, meta=meta)
    small = X.dtype.kind == "f" and X.dtype.itemsize <= 4
    kind = np.dtype(np.float32 if small else float)
    X = X.rechunk({1: -1})
    return X.map_blocks(
        _array,
        shared,
        dtype=kind,
        chunks=(X.chunks[0], (len(names),)),
        meta=np.empty((0, 0), kind),
    )


def _frame(part: Any, completer: Any, names: list[str], dtype: Any) -> Any:
    values = np.asarray(
        completer.transform(part) if len(part) else np.empty((0, len(names)))
    )
    return type(part)(values.astype(dtype), columns=names, index=part.index)


def _array(part: np.ndarray, completer: Any) -> np.ndarray:
    return np.asarray(completer.transform(part))


def lazy_entries(completer: Any, rows: Any, cols: Any) -> Any:
    """Predict the cells of two Dask Series or Arrays when they are computed."""
    import dask
    import dask.array

    shared = dask.delayed(completer, pure=False)
    if _framed(rows):
        return rows.map_partitions(_series, cols, shared, meta=(None, float))
    return dask.array.map_blocks(
        _cells, rows, cols, shared, dtype=float, meta=np.empty(0)
    )


def _series(rows: Any, cols: Any, completer: Any) -> Any:
    values = completer.predict_entries(rows.to_numpy(), cols.to_numpy())
    return type(rows)(values.astype(float), index=rows.index)


def _cells(rows: np.ndarray, cols: np.ndarray, completer: Any) -> np.ndarray:
    values: np.ndarray = completer.predict_entries(rows, cols).astype(float)
    return values
