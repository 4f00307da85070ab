"""Matrices with labels of other libraries: AnnData, xarray, Arrow."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np


def is_anndata(X: object) -> bool:
    """Whether an object is an `anndata.AnnData`.

    Parameters
    ----------
    X : object
        Any container.

    Returns
    -------
    bool
    """
    return all(hasattr(X, name) for name in ("obs_names", "var_names", "to_df"))


def is_data_array(X: object) -> bool:
    """Whether an object is an `xarray.DataArray`.

    Parameters
    ----------
    X : object
        Any container.

    Returns
    -------
    bool
    """
    return all(hasattr(X, name) for name in ("dims", "coords", "to_pandas", "ndim"))


def is_arrow(X: object) -> bool:
    """Whether an object is a `pyarrow.Table` or `pyarrow.RecordBatch`.

    Parameters
    ----------
    X : object
        Any container.

    Returns
    -------
    bool
    """
    return hasattr(X, "replace_schema_metadata") and hasattr(X, "to_pandas")


def as_frame(X: Any, *, exact: bool = False) -> Any:
    """Read a matrix with labels of another library as a data frame.

    Cells that a sparse ``X`` of AnnData does not store are zeros, as AnnData defines
    them. The first dimension of a DataArray has the rows.

    Parameters
    ----------
    X : AnnData, DataArray, Arrow table or other object
        Input of an estimator.
    exact : bool, default=False
        Whether integers of Arrow with missing cells remain integers, and so on for
        the other types. The cells of such a data frame are slow to read.

    Returns
    -------
    pandas.DataFrame, or ``X`` itself if it is of none of these libraries

    Raises
    ------
    ValueError
        A DataArray does not have two dimensions; AnnData has no ``X``, or two genes of
        one name.
    TypeError
        A Dataset of xarray, or a LazyFrame of polars.
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
    """Read a matrix of AnnData as a data frame, with zeros for cells not stored.

    Parameters
    ----------
    X : AnnData
        Matrices of observations and variables.
    layer : str or None, default=None
        Name of a layer; None is ``X.X``.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    ValueError
        There is no such layer, or two variables have the same name.
    """
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


def like_input(X: Any, completed: Any) -> Any:
    """Return a completion of a DataArray or Arrow table in its container.

    Parameters
    ----------
    X : container
        Input of an estimator.
    completed : ndarray or DataFrame
        Its completion.

    Returns
    -------
    object
        A DataArray with the dimensions, coordinates, name and attributes of ``X``; an
        Arrow table if ``X`` is one and the completion has columns of their own types;
        else ``completed`` itself.

    Raises
    ------
    ValueError
        The completion of a DataArray has another number of columns.
    """
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
