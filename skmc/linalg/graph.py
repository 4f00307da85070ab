"""Distances of rows, and graphs of nearest neighbors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

LEAF = 128  # smallest number of items of a leaf
TREES = 4
EXACT = 2048  # largest number of items of which all pairs are compared
BLOCK = 2**22  # largest number of elements in memory


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """A graph in which each item has weighted edges to a few others."""

    edges: Tensor  # (*batch, k, 1 + n_neighbors), each item and its neighbors
    weights: Tensor  # (*batch, k, n_neighbors)

    def laplacian(self) -> sp.csr_array:  # (k, k)
        """Make ``diag(A 1) - A`` for ``A = S + S'``, with the weights in S."""
        edges, weights = self.edges.cpu().numpy(), self.weights.cpu().numpy()
        k, n_neighbors = weights.shape
        item, to = edges[:, 0].repeat(n_neighbors), edges[:, 1:].ravel()
        S = sp.csr_array((weights.ravel(), (item, to)), shape=(k, k))
        A = S + S.T
        degrees = np.asarray(A.sum(1)).ravel()
        return sp.csr_array(sp.diags(degrees)) - A


def directions_of(n_items: int, n_neighbors: int) -> int:
    """Number of directions that `nearest` needs."""
    leaf = max(LEAF, 2 * (n_neighbors + 1))
    halvings = (n_items // leaf).bit_length() - 1
    return 0 if n_items <= max(EXACT, leaf) else TREES * halvings


def nearest(
    items: Tensor,  # (*batch, k, p)
    n_neighbors: int,
    directions: Tensor,  # (*batch, n_directions, p)
) -> Tensor:  # (*batch, k, 1 + n_neighbors)
    r"""Each item and its nearest neighbors by Euclidean distance.

    Up to 2048 items, all pairs are compared. More items are split in halves along one
    direction, each half again along the next, until about 128 to 256 are left. Then the
    pairs within each leaf are compared (random projection trees). Four trees are
    combined; a neighbor may still be missed. Time grows with ``k log k``, memory with
    ``k``.
    """
    if items.ndim > 2:
        members = zip(items, directions, strict=True)
        return torch.stack([nearest(x, n_neighbors, d) for x, d in members])
    items = items - items.mean(0)
    k, everyone = len(items), torch.arange(len(items), device=items.device)
    if not len(directions):
        near = [
            _near(items, own, everyone, n_neighbors)[1]
            for own in everyone.split(max(1, BLOCK // k))
        ]
        return torch.cat([everyone[:, None], torch.cat(near)], -1)
    trees = [_leaves(items, some) for some in directions.chunk(TREES)]
    of_trees = [_in_leaves(items, leaves, n_neighbors) for leaves in trees]
    index, order = torch.cat([i for _, i in of_trees], -1).sort(-1)
    distances = torch.cat([d for d, _ in of_trees], -1).gather(-1, order)
    # Several trees may find the same neighbor.
    again = index[:, 1:] == index[:, :-1]
    distances[:, 1:].masked_fill_(again, torch.inf)
    _, best = distances.topk(n_neighbors, largest=False)
    every = torch.cat([everyone[:, None], index.gather(-1, best)], -1)
    return every[trees[0].flatten().argsort()[:k].argsort()]


def _leaves(items: Tensor, directions: Tensor) -> Tensor:
    """Numbers of the items, a row for each leaf of a tree.

    All leaves have the same size: where needed, copies of the first items are added,
    with the numbers from ``len(items)`` on.
    """
    k, n_leaves = len(items), 2 ** len(directions)
    order = torch.arange(-(-k // n_leaves) * n_leaves, device=items.device)
    heights = items @ directions.mT
    heights = torch.cat([heights, heights[: len(order) - k]])
    for level, height in enumerate(heights.unbind(-1)):
        node = order.view(2**level, -1)
        order = node.gather(-1, height[node].argsort(-1))
    return order.reshape(n_leaves, -1)


def _in_leaves(
    items: Tensor, leaves: Tensor, n_neighbors: int
) -> tuple[Tensor, Tensor]:
    """Squared distances and numbers of the neighbors of each item within its leaf."""
    k, n_all = len(items), leaves.numel()
    items = torch.cat([items, items[: n_all - k]])
    distances = items.new_empty(n_all, n_neighbors)
    index = leaves.new_empty(n_all, n_neighbors)
    for part in leaves.split(max(1, BLOCK // leaves.shape[-1] ** 2)):
        distances[part], index[part] = _near(items, part, part, n_neighbors, k)
    return distances[:k], index[:k] % k


def _near(
    items: Tensor, own: Tensor, other: Tensor, n_neighbors: int, k: int | None = None
) -> tuple[Tensor, Tensor]:
    """Squared distances and numbers of the nearest of ``other`` to each of ``own``.

    Items numbered from ``k`` on are copies. They are used only for want of other items.
    """
    A, B = items[own], items[other]
    distances = B.square().sum(-1)[..., None, :] - 2 * (A @ B.mT)
    distances += A.square().sum(-1)[..., None]
    excluded = own[..., :, None] == other[..., None, :]
    if k is not None:
        excluded |= (other >= k)[..., None, :]
    distances.masked_fill_(excluded, torch.inf)
    near, which = distances.topk(n_neighbors, largest=False)
    numbers = other.expand(*own.shape[:-1], -1).gather(-1, which.flatten(-2))
    return near, numbers.view_as(which)


def squared_distances(
    A: Tensor,  # (*batch, a, n)
    seen_a: Tensor,  # (*batch, a, n)
    B: Tensor,  # (*batch, b, n)
    seen_b: Tensor,  # (*batch, b, n)
) -> Tensor:  # (*batch, a, b)
    r"""Squared Euclidean distances over the columns that both rows have.

    ``d_ij = n_cols / n_ij * sum_k (a_ik - b_jk)^2`` over the ``n_ij`` shared columns,
    and infinity where there are none. This is
    `sklearn.metrics.pairwise.nan_euclidean_distances`, squared. ``A`` and ``B`` are
    zero where unobserved.
    """
    P, Q = seen_a.to(A.dtype), seen_b.to(B.dtype)
    common = P @ Q.mT
    total = (A * A) @ Q.mT + P @ (B * B).mT
    distances = torch.sub(total, A @ B.mT, alpha=2)
    # The distance of equal rows is exactly zero, without rounding errors.
    distances.masked_fill_(distances <= 1e-13 * total, 0.0)
    distances.mul_(A.shape[-1] / common)
    return distances.masked_fill_(common == 0, torch.inf)
