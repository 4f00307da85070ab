"""Side information about rows, as a linear prior on their factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from skmc.cells.sparse_observed import SparseObserved

GRAPH_FLOOR = 0.1  # precision of a node, in units of the mean degree


@dataclass(frozen=True, eq=False)
class Side:
    r"""A linear prior: the factors of the rows have the mean ``S B``.

    ``B`` is unknown. Its penalty is ``tr(B' P B)``; ``P`` is its prior precision up to
    a factor. Features of the rows are a matrix ``S`` with ``P = I``. A graph of the
    rows has ``S = I``, and ``P`` is its Laplacian plus a multiple of the identity.

    Parameters
    ----------
    matrix : Tensor or SparseObserved of shape (m, p), or None
        Matrix ``S``; None is the identity.
    root : SparseObserved of shape (n_edges, p) or None, default=None
        Incidence matrix ``D`` of a graph, with ``P = D' D + 0.1 I``. None is ``P = I``.
    """

    matrix: Tensor | SparseObserved | None
    root: SparseObserved | None = None

    @property
    def size(self) -> int:
        """Number of rows of ``B``, ``p``."""
        factor: Any = self.root if self.matrix is None else self.matrix
        return int(factor.shape[1])

    def mean(
        self,
        B: Tensor,  # (p, k)
        rows: Tensor | None = None,  # (m,)
    ) -> Tensor:  # (m, k)
        """``S B``, or some of its rows."""
        matrix = self.matrix
        if isinstance(matrix, Tensor):
            return (matrix if rows is None else matrix[rows]) @ B
        means = B if matrix is None else _times(matrix, B)
        return means if rows is None else means[rows]

    def pull(
        self,
        W: Tensor,  # (m, k)
    ) -> Tensor:  # (p, k)
        """The product ``S' W``."""
        return W if self.matrix is None else _times(_transposed(self.matrix), W)

    def penalty(
        self,
        B: Tensor,  # (p, k)
    ) -> Tensor:  # (p, k)
        """The product ``P B``."""
        if self.root is None:
            return B
        return _times(self.root.T, _times(self.root, B)) + GRAPH_FLOOR * B

    def noise(self, normal: Any) -> Tensor:  # (p, k)
        """Draw random numbers with covariance ``P`` in each column."""
        drawn: Tensor = normal(self.size)
        if self.root is None:
            return drawn
        return GRAPH_FLOOR**0.5 * drawn + _times(
            self.root.T, normal(self.root.shape[0])
        )

    def to(self, *args: Any) -> Side:
        """Move or cast both matrices."""
        matrix, root = self.matrix, self.root
        return Side(
            None if matrix is None else matrix.to(*args),
            None if root is None else root.to(*args),
        )


def _times(matrix: Tensor | SparseObserved, Z: Tensor) -> Tensor:
    if isinstance(matrix, SparseObserved):
        return matrix.matrix(matrix.values) @ Z
    return matrix @ Z


def _transposed(matrix: Tensor | SparseObserved) -> Tensor | SparseObserved:
    return matrix.T if isinstance(matrix, SparseObserved) else matrix.mT


def prior_mean(
    sides: Sequence[Side],
    links: Sequence[Tensor],  # (p, k)
) -> Tensor | float:  # (m, k)
    """The sum of ``S B`` over the linear priors of the rows."""
    total: Tensor | float = 0.0
    for side, B in zip(sides, links, strict=True):
        total = total + side.mean(B)
    return total
