"""Laplacians of items: whether they fit in memory, and those of a fit."""

from __future__ import annotations

from typing import Any

from skmc.cells import Observed
from skmc.linalg import NeighborGraph, memory_of
from skmc.solvers import DescentResult, Result
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
    result: Result, lambda_row: float | str, lambda_col: float | str
) -> dict[str, Any]:
    """Return the Laplacians of the terms of a solver whose weight is not zero."""
    if not isinstance(result, DescentResult):  # interrupted before the first iterate
        return {}
    weights = {"rows": lambda_row, "columns": lambda_col}
    return {
        name: L.laplacian() if isinstance(L, NeighborGraph) else L.cpu().numpy()
        for name, L in result.laplacians.items()
        if weights.get(name, 1) != 0
    }
