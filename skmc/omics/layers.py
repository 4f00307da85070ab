"""Completion of a layer of AnnData."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.neighbors import kneighbors_graph

import skmc
from skmc.cells import frame_of_layer, is_anndata

SPOT_NEIGHBORS = 6  # of a spot on a hexagonal grid


def complete(
    adata: Any,
    completer: Any,
    *,
    layer: str | None = None,
    key_added: str = "completed",
    row_graph: str | None = None,
) -> Any:
    """Complete a matrix of AnnData, and write the completion to a layer.

    Rows are observations (cells, spots, samples), and columns are variables (genes,
    proteins). NaN is missing. A zero is an observed zero, whether it is stored or not,
    unless the completer has ``missing_values=0``.

    Parameters
    ----------
    adata : anndata.AnnData
        Annotated matrix, to which the layer is added. A view becomes a copy, as by any
        assignment to it.
    completer : completer
        Completer, which is cloned; or an imputer or pipeline of scikit-learn.
    layer : str or None, default=None
        Name of the layer to complete. None is ``adata.X``.
    key_added : str, default="completed"
        Name of the layer to write, which is dense. A layer of this name is replaced.
    row_graph : str or None, default=None
        Graph of the observations for completers that take ``row_graph``, such as
        `FactorizationCompleter`: a name in ``adata.obsp``, such as "connectivities"; or
        a name in ``adata.obsm``, such as "spatial", of coordinates, in which each
        observation is connected to its six nearest ones. The coordinates must be those
        of a single slide. None uses no graph.

    Returns
    -------
    completer
        The fitted clone. The record ``adata.uns["skmc"][key_added]`` has the name of
        its class, its parameters, the names of the layer and of the graph, and the
        version of skmc.

    Raises
    ------
    TypeError
        ``adata`` is not AnnData.
    ValueError
        There is no such layer or graph, or a name of a graph is in ``obsp`` and in
        ``obsm``; the completer takes no ``row_graph``; no cell is missing, and the
        completer returns observed cells unchanged; or the completion has another number
        of columns, because of ``add_indicator`` or ``keep_empty_features``.

    See Also
    --------
    skmc.model_selection.CountSplit : Compares completers on counts.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from skmc import SVDCompleter, omics
    >>> proteins = np.outer(np.arange(1.0, 21), np.arange(1.0, 11))
    >>> proteins[::4, 3] = np.nan
    >>> adata = AnnData(proteins)
    >>> completer = omics.complete(adata, SVDCompleter(rank=1))
    >>> bool(abs(adata.layers["completed"][4, 3] - 20) < 0.1)
    True
    >>> adata.uns["skmc"]["completed"]["params"]["rank"]
    1
    """
    if not is_anndata(adata):
        raise TypeError(
            f"adata must be AnnData, got {type(adata).__name__}; fit_transform of the "
            "completer takes other matrices."
        )
    frame, graphs = frame_of_layer(adata, layer), {}
    if row_graph is not None:
        takes: tuple[str, ...] = getattr(completer, "takes", tuple)()
        if "row_graph" not in takes:
            raise ValueError(
                f"{type(completer).__name__} takes no row_graph; use "
                "FactorizationCompleter or another completer of graphs, or leave it "
                "out."
            )
        graphs["row_graph"] = _graph(adata, row_graph)
    if getattr(completer, "keep_observed", False):
        marks = np.atleast_1d(getattr(completer, "missing_values", np.nan)).tolist()
        if not (frame.isna() | frame.isin(marks)).to_numpy().any():
            name = "X" if layer is None else repr(layer)
            raise ValueError(
                f"{name} has no missing cell. If zeros are missing, use a completer "
                "with missing_values=0; for the values of the model in all cells, one "
                "with keep_observed=False."
            )
    fitted = clone(completer)
    completed = np.asarray(fitted.fit_transform(frame, **graphs))
    if completed.shape != adata.shape:
        raise ValueError(
            f"The completion has shape {completed.shape}, but adata {adata.shape}; set "
            "keep_empty_features=True and add_indicator=False."
        )
    record = {
        "completer": type(fitted).__name__,
        "params": _storable(fitted.get_params(deep=False)),
        "layer": "X" if layer is None else layer,
        "version": skmc.__version__,
    }
    if row_graph is not None:
        record["row_graph"] = row_graph
    adata.layers[key_added] = completed
    adata.uns["skmc"] = {**adata.uns.get("skmc", {}), key_added: record}
    return fitted


def _graph(adata: Any, name: str) -> Any:
    """A graph of the observations by its name, or that of nearest neighbors."""
    graphs, coordinates = list(adata.obsp), list(adata.obsm)
    if (name in graphs) == (name in coordinates):
        where = "both obsp and obsm" if name in graphs else "neither obsp nor obsm"
        raise ValueError(
            f"row_graph={name!r} is in {where} of adata; obsp has {graphs}, and obsm "
            f"has {coordinates}."
        )
    if name in graphs:
        return adata.obsp[name]
    points = np.asarray(adata.obsm[name], float)
    if not np.isfinite(points).all():
        row = (~np.isfinite(points).all(1)).argmax()
        raise ValueError(
            f"obsm[{name!r}] has a coordinate that is missing or infinite in row "
            f"{row}; leave this observation out."
        )
    n_neighbors = min(SPOT_NEIGHBORS, len(points) - 1)
    if not n_neighbors:
        return sp.csr_array((1, 1))
    directed = kneighbors_graph(points, n_neighbors)
    return directed.maximum(directed.T)


def _storable(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters that are not None, as files of AnnData can hold them."""
    return {
        name: value if isinstance(value, bool | int | float | str) else repr(value)
        for name, value in params.items()
        if value is not None
    }
