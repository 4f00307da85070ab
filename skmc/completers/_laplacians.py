"""Laplacians of items: whether they fit in memory, and those of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from skmc.base import EDGES
from skmc.cells import Observed
from skmc.linalg import memory_of
from skmc.terms import Transform

# A Laplacian, its parameters, their gradient, Adam's two moments, and temporaries.
LAPLACIAN_COPIES = 8


def refuse_large_laplacian(data: Observed, transform: Transform, remedy: str) -> None:
    """Raise an error if a Laplacian of all pairs of items does not fit in memory."""
    k = transform.n_items(*data.shape)
    needed = LAPLACIAN_COPIES * k**2 * data.values.itemsize
    if needed > memory_of(data.values.device):
        raise MemoryError(
            f"The Laplacian of {k} {transform.name} takes {needed / 2**30:.0f} GiB; "
            f"{remedy}."
        )


def laplacians(
    outputs: Mapping[str, Any], lambda_row: float | str, lambda_col: float | str
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


def sparse_laplacian(
    edges: np.ndarray,  # (k, 1 + n_neighbors)
    weights: np.ndarray,  # (k, n_neighbors)
) -> sp.csr_array:  # (k, k)
    """Return ``diag(A 1) - A`` for ``A = S + S'``."""
    k, n_neighbors = weights.shape
    own, to = edges[:, 0].repeat(n_neighbors), edges[:, 1:].ravel()
    S = sp.csr_array((weights.ravel(), (own, to)), shape=(k, k))
    A = S + S.T
    degrees = np.asarray(A.sum(1)).ravel()
    return sp.csr_array(sp.diags(degrees)) - A
