"""Reading of features and graphs of rows and of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import laplacian

from skmc.cells import Container, Given, Side, SparseObserved, to_cells


@dataclass(frozen=True)
class FeatureScaling:
    """The scaling of features to rows with a mean square of 1.

    Dense features are standardized column by column. Sparse features are not centered,
    so they remain sparse. Both are then divided by the root mean square of the rows.

    Parameters
    ----------
    shift, scale : ndarray of shape (p,)
        Numbers to subtract from the features, and then to divide them by.
    """

    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(
        cls,
        features: np.ndarray | sp.csr_array,  # (m, p)
    ) -> FeatureScaling:
        """Compute the scaling from the features of all rows."""
        m, p = features.shape
        if not isinstance(features, np.ndarray):
            square = np.square(features.data).sum() / max(m, 1)
            return cls(np.zeros(p), np.full(p, float(square) ** 0.5 or 1.0))
        deviation = features.std(0)
        varies = deviation > 1e-9 * np.abs(features).max(0, initial=0.0)
        n_varying = max(1, int(varies.sum()))
        # A constant feature carries no information.
        scale = np.where(varies, deviation, np.inf) * n_varying**0.5
        return cls(features.mean(0), scale)

    def side(
        self,
        features: np.ndarray | sp.csr_array,  # (m, p)
    ) -> Side:
        """Make the linear prior of features."""
        if not isinstance(features, np.ndarray):
            coo = features.tocoo()
            values = torch.from_numpy(coo.data / self.scale[coo.col])
            return Side(SparseObserved.of(coo.row, coo.col, values, coo.shape))
        return Side(torch.from_numpy((features - self.shift) / self.scale))


def read_features(
    features: Container,  # (n, p)
    n: int,
    name: str,
    n_features: int | None = None,
) -> np.ndarray | sp.csr_array:
    """Read the features of rows or of columns."""
    if sp.issparse(features):
        read = sp.csr_array(features).astype(float)
        read.sum_duplicates()
        cells = to_cells(read.data, name=name)
        missing = np.unique(read.tocoo().row[np.isnan(cells)])
    else:
        read = np.asarray(to_cells(features, name=name), float)
        if read.ndim != 2:
            raise ValueError(
                f"{name} must have a line for each item, got {read.ndim} axes; reshape "
                "a single feature to one column."
            )
        missing = np.flatnonzero(np.isnan(read).any(1))
    if read.shape[0] != n:
        items = "columns" if name.startswith("col") else "rows"
        raise ValueError(
            f"{name} has {read.shape[0]} lines, but there are {n} {items} in X; give "
            "one line for each."
        )
    if n_features is not None and read.shape[1] != n_features:
        raise ValueError(
            f"{name} has {read.shape[1]} columns, but {n_features} in fit; give the "
            "same features."
        )
    if len(missing):
        shown = ", ".join(map(str, missing[:5])) + (" ..." if len(missing) > 5 else "")
        raise ValueError(
            f"{name} has missing values in line {shown}; complete them first, for "
            "example by MeanCompleter().fit_transform."
        )
    return read


def checked_graph(
    graph: Any,  # (n, n)
    n: int,
    name: str,
) -> sp.csr_array:  # (n, n)
    """Check a graph of rows or of columns."""
    if not sp.issparse(graph):
        graph = np.asarray(to_cells(graph, name=name), float)
    if graph.shape != (n, n):
        items = "columns" if name.startswith("col") else "rows"
        raise ValueError(
            f"{name} has shape {graph.shape}, but there are {n} {items} in X; it must "
            f"have shape {(n, n)}."
        )
    coo = sp.coo_array(sp.csr_array(graph).astype(float))
    wrong = ~(np.isfinite(coo.data) & (coo.data >= 0))
    if wrong.any():
        k = wrong.argmax()
        raise ValueError(
            f"{name} holds {coo.data[k]} at ({coo.row[k]}, {coo.col[k]}); weights must "
            "be finite and at least 0."
        )
    largest = coo.data.max(initial=0.0)
    off = abs(coo - coo.T).tocoo()
    if off.data.max(initial=0.0) > 1e-9 * largest:
        k = off.data.argmax()
        raise ValueError(
            f"{name} is not symmetric: the weights at ({off.row[k]}, {off.col[k]}) and "
            f"({off.col[k]}, {off.row[k]}) differ; pass (graph + graph.T) / 2."
        )
    upper = sp.triu(coo, 1)
    checked = sp.csr_array(upper + upper.T)
    checked.eliminate_zeros()
    return checked


def laplacian_of(
    graph: sp.csr_array,  # (n, n)
) -> sp.csr_array:  # (n, n)
    """The Laplacian of a checked graph, divided by the mean degree of its nodes."""
    degree = graph.sum() / graph.shape[0]
    return sp.csr_array(laplacian(graph / (degree or 1.0)))


def read_graph(
    graph: Any,  # (n, n)
    n: int,
    name: str,
) -> Side:
    """Read a graph of rows or of columns as a linear prior."""
    checked = checked_graph(graph, n, name)
    upper = sp.triu(checked, 1).tocoo()
    # Unit: mean degree of the nodes that have neighbors.
    degree = checked.sum(0)
    unit = degree[degree > 0].mean() if upper.nnz else 1.0
    weight = np.sqrt(upper.data / unit)
    edge = np.tile(np.arange(upper.nnz), 2)
    ends = np.concatenate([upper.row, upper.col])
    values = torch.from_numpy(np.concatenate([weight, -weight]))
    return Side(None, SparseObserved.of(edge, ends, values, (upper.nnz, n)))


def sides_of(given: Given, known: Mapping[str, Any]) -> Given:
    """Read features and graphs as linear priors of the factors of rows and columns."""
    data, statistics = given.data, given.statistics
    sides: list[tuple[Side, ...]] = []
    scalings: list[FeatureScaling | None] = []
    for axis, n in zip(("row", "col"), statistics.shape, strict=True):
        found, scaling = [], None
        if (name := f"{axis}_features") in known:
            features = read_features(known[name], n, name)
            scaling = FeatureScaling.of(features)
            found.append(scaling.side(features))
        if (name := f"{axis}_graph") in known:
            found.append(read_graph(known[name], n, name))
        sides.append(tuple(side.to(data.dtype) for side in found))
        scalings.append(scaling)
    # Rows and columns that have features or neighbors are not empty.
    empty = {
        f"empty_{axis}": np.zeros_like(getattr(statistics, f"empty_{axis}"))
        for axis, found in zip(("rows", "cols"), sides, strict=True)
        if found
    }
    return replace(
        given,
        data=replace(data, sides=(sides[0], sides[1])),
        statistics=replace(statistics, informed_rows=bool(sides[0]), **empty),
        row_scaling=scalings[0],
    )


def read_known(given: Mapping[str, Any], shape: tuple[int, int]) -> dict[str, Any]:
    """Read features and graphs as arrays for completers that take them."""
    known: dict[str, Any] = {}
    for name, value in given.items():
        n = shape[name.startswith("col")]
        if name.endswith("features"):
            known[name] = read_features(value, n, name)
        else:
            known[name] = checked_graph(value, n, name)
    return known


def known_of_rows(
    known: Mapping[str, Any],
    rows: np.ndarray,  # (k,)
) -> dict[str, Any]:
    """Side information about some rows and about all columns."""
    part = dict(known)
    if "sample_weight" in part:
        part["sample_weight"] = part["sample_weight"][rows]
    if "row_features" in part:
        part["row_features"] = part["row_features"][rows]
    if "row_graph" in part:
        part["row_graph"] = part["row_graph"][rows][:, rows]
    return part
