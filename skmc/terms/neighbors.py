"""The Dirichlet energy of a sparse graph whose weights are learned."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from skmc.linalg import NeighborGraph, compressed_rows, nearest
from skmc.terms.dirichlet import LearnedEnergy
from skmc.terms.term import inner
from skmc.terms.transforms import Rows, Transform

BLOCK = 2**16  # largest number of elements gathered at once, to fit in the cache


class NeighborDirichletEnergy(LearnedEnergy):
    r"""Weighted squared differences between neighbors, for learned weights.

    This is `AdaptiveDirichletEnergy` on a graph in which each item has edges to
    ``n_neighbors`` others and to itself:

    .. math::

        F(X) = \frac{\lambda}{2} \sum_i \sum_{j \in N(i)} S_{ij} \|t_i - t_j\|^2

    with ``S`` the softmin of the parameters of an item's edges. That is
    :math:`\lambda \operatorname{tr}(T(X)^\top L\, T(X))` for the Laplacian of
    :math:`(S + S^\top) / 2`. ``adjacency="global"`` takes the softmax over all edges
    and twice the sum. With ``n_neighbors = k - 1`` both terms are equal. Time and
    memory are linear in ``k``.

    Parameters
    ----------
    W : Tensor of shape (\*batch, k, 1 + n_neighbors)
        Initial value of the free parameter, one number for each edge.
    edges : int64 Tensor of shape (\*batch, k, 1 + n_neighbors)
        Rows of the number of an item and those of its neighbors, as `nearest` returns
        them. The order of the rows is arbitrary.
    transform : Rows, Columns or Blocks
        Transform of the matrix into the items ``t_i``.
    weight : float or Tensor of shape (\*batch,), default=1.0
        Weight ``lambda``, non-negative.
    adjacency : {"row", "global"}, default="row"
        Parametrization of the adjacency.
    every : int, default=1
        Number of calls of `value_and_grad` per update of ``W``; the first one learns.
    directions : Tensor of shape (\*batch, n_directions, p), optional
        Directions for `nearest`, required if the graph is recomputed.
    refresh : sequence of int, default=()
        Numbers of calls of `value_and_grad`, in rising order. The next call that learns
        recomputes the neighbors from ``X`` and restarts from equal weights.
    """

    edges: Tensor
    directions: Tensor

    def __init__(
        self,
        W: Tensor,
        edges: Tensor,
        transform: Transform = Rows(),
        weight: float | Tensor = 1.0,
        adjacency: str = "row",
        every: int = 1,
        directions: Tensor | None = None,
        refresh: Sequence[int] = (),
    ):
        super().__init__(W, transform, weight, adjacency, every)
        self.register_buffer("edges", edges)
        self.register_buffer("directions", directions)
        self.batched("edges", 2)
        self.batched("directions", 2)
        self.refresh = tuple(refresh)
        # The Laplacian of all members: starts and columns of its rows, the edge of each
        # cell, the row of each item; then its values from the last call that learned.
        self._pattern: tuple[Tensor, ...] = ()
        self._cells: Tensor | None = None

    def _numbers(self) -> Tensor:
        """The edges, with the items of all members numbered consecutively."""
        *batch, k, _ = self.edges.shape
        first = torch.arange(0, k * torch.Size(batch).numel(), k)
        return self.edges + first.to(self.edges.device).view(*batch, 1, 1)

    def _half_distances(self, items: Tensor) -> Tensor:
        """``|t_i - t_j|^2 / 2`` of the edges, ``(*batch, k, n_neighbors)``."""
        flat = items.reshape(-1, items.shape[-1])
        edges = self._numbers().flatten(0, -2)
        squares = []
        for part in edges.split(max(1, BLOCK // (edges.shape[-1] * flat.shape[-1]))):
            ends = flat.index_select(0, part.flatten()).view(*part.shape, -1)
            apart = ends[:, 1:] - ends[:, :1]
            squares.append(torch.linalg.vecdot(apart, apart))
        return 0.5 * torch.cat(squares).view(*items.shape[:-1], -1)

    def forward(self, X: Tensor) -> Tensor:
        half = self._half_distances(self.transform(X))
        scale = self.weight.to(X) * (1 if self.by_row else 2)
        return scale * inner(self.similarity()[..., 1:], half)

    @torch.no_grad()
    def grad(self, X: Tensor) -> Tensor:
        items = self.transform(X)
        if self.n_calls % self.every == 0:
            if self.refresh and self.n_calls >= self.refresh[0]:
                self._find(items)
            self._learn(items)
        self.n_calls += 1
        if not self.refresh:
            self.n_calls %= self.every
        return self.transform.adjoint(self._between(items), *X.shape[-2:])

    @torch.no_grad()
    def value(self, X: Tensor) -> Tensor:
        items = self.transform(X)
        return 0.5 * inner(items, self._between(items))

    def _find(self, items: Tensor) -> None:
        """Recompute the neighbors."""
        n_neighbors = self.edges.shape[-1] - 1
        self.edges = nearest(items, n_neighbors, self.directions)
        self.W.zero_()
        self.refresh = self.refresh[1:]
        self._pattern = ()

    def _learn(self, items: Tensor) -> None:
        """Add to the gradient of W, and set the weights of the products."""
        scale = self.scale(items)
        S = self.similarity()
        self.learned, self._cells = S[..., 1:] * scale, None
        dS = nn.functional.pad(self._half_distances(items), (1, 0))
        if self.by_row:
            dW = S * ((S * dS).sum(-1, keepdim=True) - dS)
        else:
            dW = S * (dS - inner(S, dS)[..., None, None])
        self.add_grad(dW.mul_(scale))

    def _between(self, items: Tensor) -> Tensor:
        """``2 weight L T(X)`` for the Laplacian of the last call that learned."""
        flat = items.reshape(-1, items.shape[-1])
        if not self._pattern:
            self._pattern, self._cells = self._find_pattern(), None
        starts, cols, source, place = self._pattern
        shape = len(flat), len(flat)
        if self._cells is None:
            self._cells = self.learned.flatten().neg().index_select(0, source)
            self._cells[starts[:-1]] = 0
            A = compressed_rows(starts, cols, self._cells, shape)
            self._cells[starts[:-1]] = -(A @ flat.new_ones(len(flat), 1))[:, 0]
        product = compressed_rows(starts, cols, self._cells, shape) @ flat
        return product.index_select(0, place).view(items.shape)

    def _find_pattern(self) -> tuple[Tensor, ...]:
        """The Laplacian's rows in the order of `edges`, each with its diagonal first.

        Rows of near items are adjacent, so that their products share cached items.
        """
        edges = self._numbers().flatten(0, -2)
        item, to = edges[:, 0], edges[:, 1:].flatten()
        k, n_neighbors = len(item), edges.shape[-1] - 1
        each = torch.arange(k + 1, device=edges.device)
        edge = torch.arange(len(to), device=edges.device)
        place = item.argsort()
        rows = [each[:-1], each[:-1].repeat_interleave(n_neighbors), place[to]]
        cols = [item, to, item.repeat_interleave(n_neighbors)]
        row, order = torch.cat(rows).sort(stable=True)
        starts = torch.searchsorted(row, each, out_int32=True)
        source = torch.cat([torch.zeros_like(item), edge, edge])[order]
        return starts, torch.cat(cols)[order].int(), source, place

    def select(self, members: Tensor) -> None:
        super().select(members)
        self._pattern, self._cells = (), None

    @torch.no_grad()
    def laplacians(self) -> dict[str, Tensor | NeighborGraph]:
        scale = 0.5 if self.by_row else 1.0
        S = self.similarity()[..., 1:]
        return {self.transform.name: NeighborGraph(self.edges, scale * S)}
