"""The mixin for completers that learn Laplacians."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from torch import Tensor

EDGES = " edges"  # ends the name of a sparse graph among the outputs


class LearnedLaplacians:
    """Mixin that stores the Laplacians of the solver's terms as ``laplacians_``.

    List it before `IterativeCompleter` among the bases.
    """

    lambda_row: float
    lambda_col: float
    laplacians_: dict[str, Any]
    _edges: dict[str, Tensor]

    def _fitted(self, prepared: Any, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted = super()._fitted(prepared, outputs)  # type: ignore[misc]
        graphs = {
            name.removesuffix(EDGES): value.cpu()
            for name, value in outputs.items()
            if name.endswith(EDGES)
        }
        laplacians = self._laplacians(outputs, graphs)
        return {**fitted, "laplacians_": laplacians, "_edges": graphs}

    def _laplacians(
        self, outputs: dict[str, Any], graphs: dict[str, Tensor]
    ) -> dict[str, Any]:
        """Return the Laplacians of terms whose weight is not zero."""
        weights = {"rows": self.lambda_row, "columns": self.lambda_col}
        learned = {
            name: value.cpu().numpy()
            for name, value in outputs.items()
            if name not in ("X", "parameters")
            and not name.endswith(EDGES)
            and weights.get(name, 1) != 0
        }
        return {
            name: sparse_laplacian(graphs[name].numpy(), value)
            if name in graphs
            else value
            for name, value in learned.items()
        }


def sparse_laplacian(edges: np.ndarray, weights: np.ndarray) -> sp.csr_array:
    """Return ``diag(A 1) - A`` for ``A = S + S'``.

    Parameters
    ----------
    edges : int ndarray of shape (k, 1 + n_neighbors)
        Number of an item, then those of its neighbors.
    weights : ndarray of shape (k, n_neighbors)
        ``S``, the weights of the neighbors.

    Returns
    -------
    csr_array of shape (k, k)
    """
    k, n_neighbors = weights.shape
    own, to = edges[:, 0].repeat(n_neighbors), edges[:, 1:].ravel()
    S = sp.csr_array((weights.ravel(), (own, to)), shape=(k, k))
    A = S + S.T
    return sp.csr_array(sp.diags_array(A.sum(1)) - A)
