"""Energies of items: all pairs or neighbors, a learned or a fixed Laplacian."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from skmc.base import EDGES
from skmc.cells import Observed
from skmc.linalg import Randomness, directions_of, fill_low_rank, memory_of, nearest
from skmc.terms import (
    AdaptiveDirichletEnergy,
    DirichletEnergy,
    NeighborDirichletEnergy,
    SparseDirichletEnergy,
    Term,
    Transform,
)

MANY = 2000  # largest number of items of which "auto" compares all pairs
N_NEIGHBORS = 10  # of neighbors="auto"
RANK = 10  # largest rank of the fill in which the first neighbors are found
# A Laplacian, its parameters, their gradient, Adam's two moments, and temporaries.
LAPLACIAN_COPIES = 8


def n_neighbors_of(neighbors: int | Literal["auto"] | None, n_items: int) -> int | None:
    """Number of neighbors of each item; None if all pairs are compared."""
    if neighbors == "auto":
        neighbors = N_NEIGHBORS if n_items > MANY else None
    return None if neighbors is None or neighbors >= n_items - 1 else int(neighbors)


def first_fill(data: Observed) -> Tensor:
    """Matrix in which the first neighbors are found."""
    rank = min(RANK, min(data.shape) // 2)
    return fill_low_rank(data.values, data.mask, rank) if rank else data.values


def refuse_large_laplacian(data: Observed, transform: Transform, remedy: str) -> None:
    """Raise an error if a Laplacian of all pairs of items does not fit in memory."""
    k = transform.n_items(*data.shape)
    needed = LAPLACIAN_COPIES * k**2 * data.values.itemsize
    if needed > memory_of(data.values.device):
        raise MemoryError(
            f"The Laplacian of {k} {transform.name} takes {needed / 2**30:.0f} GiB; "
            f"{remedy}."
        )


def learned_energy(
    params: SimpleNamespace,
    data: Observed,
    transform: Transform,
    weight: float | Tensor,
    rng: Randomness,
    fill: Callable[[], Tensor],
) -> Term:
    """The energy of items with a learned Laplacian.

    A warm start resumes the graph of the last fit. Without one, the first neighbors
    are the nearest in ``fill()``.
    """
    k = transform.n_items(*data.shape)
    shared = transform, weight, params.adjacency, params.laplacian_every
    n_neighbors = n_neighbors_of(params.neighbors, k)
    if n_neighbors is None:
        refuse_large_laplacian(
            data,
            transform,
            "set neighbors='auto', or its weight (lambda_row, lambda_col or blocks) "
            "to 0",
        )
        return AdaptiveDirichletEnergy(rng.uniform(k, k, k**-0.5), *shared)
    n_edges = n_neighbors + 1
    W = rng.uniform(k, n_edges, n_edges**-0.5)
    warm = getattr(params.last, "warm", {})
    if (name := transform.name + EDGES) in warm:
        resumed = warm[name].to(data.values.device)
        return NeighborDirichletEnergy(W, resumed, *shared)
    items = transform(fill())
    n_directions = directions_of(k, n_neighbors)
    directions = rng.normal(n_directions, items.shape[-1], 1.0).to(items.device)
    edges = nearest(items, n_neighbors, directions)
    refresh = params.max_iter // 4, params.max_iter // 2
    return NeighborDirichletEnergy(W, edges, *shared, directions, refresh)


def fixed_energy(
    L: Any,
    data: Observed,
    transform: Transform,
    weight: float | Tensor,
) -> Term:
    """The energy of items with a given Laplacian."""
    k, sparse = transform.n_items(*data.shape), sp.issparse(L)
    L = sp.csr_array(L, dtype=float) if sparse else np.asarray(L, dtype=float)
    valid = L.shape == (k, k)
    if valid and sparse:
        # It must be symmetric and diagonally dominant, like all graph Laplacians.
        most = abs(L).max()
        outside = abs(L).sum(1) - 2 * L.diagonal()
        valid = abs(L - L.T).max() <= 1e-6 and outside.max() <= 1e-5 * most
    elif valid:
        valid = np.allclose(L, L.T, atol=1e-6)
        valid = valid and np.linalg.eigvalsh(L)[0] >= -1e-5 * np.abs(L).max()
    if not valid:
        kind = "diagonally dominant" if sparse else "positive semi-definite"
        raise ValueError(
            f"fixed_laplacians[{transform.name!r}] must be symmetric {kind} of shape "
            f"{(k, k)}, got shape {L.shape}."
        )
    values = data.values
    if not sparse:
        return DirichletEnergy(torch.as_tensor(L).to(values), transform, weight)
    starts, cols = (
        torch.as_tensor(part, dtype=torch.int64).to(values.device)
        for part in (L.indptr, L.indices)
    )
    cells = torch.as_tensor(L.data).to(values)
    return SparseDirichletEnergy(starts, cols, cells, transform, weight)


def laplacians(
    outputs: Mapping[str, Any], lambda_row: float, lambda_col: float
) -> dict[str, Any]:
    """Return the Laplacians of the terms of a solver whose weight is not zero."""
    weights = {"rows": lambda_row, "columns": lambda_col}
    return {
        name: value.cpu().numpy()
        if name + EDGES not in outputs
        else sparse_laplacian(outputs[name + EDGES].cpu().numpy(), value.cpu().numpy())
        for name, value in outputs.items()
        if name not in ("X", "parameters")
        and not name.endswith(EDGES)
        and weights.get(name, 1) != 0
    }


def sparse_laplacian(edges: np.ndarray, weights: np.ndarray) -> sp.csr_array:
    """Return ``diag(A 1) - A`` for ``A = S + S'``.

    Parameters
    ----------
    edges : int ndarray of shape (k, 1 + n_neighbors)
        Number of an item, followed by those of its neighbors.
    weights : ndarray of shape (k, n_neighbors)
        Weights ``S`` of the neighbors.

    Returns
    -------
    csr_array of shape (k, k)
    """
    k, n_neighbors = weights.shape
    own, to = edges[:, 0].repeat(n_neighbors), edges[:, 1:].ravel()
    S = sp.csr_array((weights.ravel(), (own, to)), shape=(k, k))
    A = S + S.T
    degrees = np.asarray(A.sum(1)).ravel()
    return sp.csr_array(sp.diags(degrees)) - A
