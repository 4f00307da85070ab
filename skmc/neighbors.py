"""Nearest rows of a partly observed matrix."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 2**24  # numbers held at once


def squared_distances(A: Tensor, seen_a: Tensor, B: Tensor, seen_b: Tensor) -> Tensor:
    r"""Squared Euclidean distances over co-observed columns, shape (\*batch, a, b).

    ``d_ij = n_cols / n_ij * sum_k (a_ik - b_jk)^2`` over the ``n_ij`` columns that both
    rows have; infinite where they share none. This is
    `sklearn.metrics.pairwise.nan_euclidean_distances`, squared. ``A`` and ``B`` are
    zero where unobserved.
    """
    P, Q = seen_a.to(A.dtype), seen_b.to(B.dtype)
    common = P @ Q.mT
    total = (A * A) @ Q.mT + P @ (B * B).mT
    distances = torch.sub(total, A @ B.mT, alpha=2)
    # Equal rows are at distance zero, not at what rounding leaves of it.
    distances.masked_fill_(distances <= 1e-13 * total, 0.0)
    distances.mul_(A.shape[-1] / common).masked_fill_(common == 0, 0.0)
    # Rounding makes equal distances equal, so that ties do not hang on how rows were
    # grouped into products.
    unit = distances.amax(-1, keepdim=True) * 2.0**-46
    distances.div_(unit).round_().mul_(unit).nan_to_num_(0.0)
    return distances.masked_fill_(common == 0, torch.inf)


def knn_values(
    queries: Tensor,
    seen: Tensor,
    donors: Tensor,
    donors_seen: Tensor,
    n_neighbors: int,
    *,
    by_distance: bool = False,
    leave_out: Tensor | None = None,
) -> Tensor:
    """The average of each column over the nearest donors that have it.

    Parameters
    ----------
    queries, donors : Tensor of shape (k, n_cols) and (m, n_cols)
        Zero where unobserved.
    seen, donors_seen : bool Tensor, same shapes
    n_neighbors : int
        Donors averaged, per cell; fewer where fewer have the column.
    by_distance : bool
        Weigh donors by inverse distance; equal rows then count alone.
    leave_out : int Tensor of shape (k,), optional
        A donor that each query must not use, itself for instance; -1 for none.

    Returns
    -------
    Tensor of shape (k, n_cols)
        The column's mean where no donor shares a column with the query; zero for a
        column that no donor has. Memory is bounded by a block size.
    """
    n_donors = len(donors)
    count = donors_seen.sum(0)
    means = donors.sum(0) / count.clamp_min(1)
    centred = torch.where(donors_seen, donors - means, 0.0)
    answer = torch.empty_like(queries)
    for block in torch.arange(len(queries)).split(max(1, BLOCK // n_donors)):
        Q, P = queries[block], seen[block]
        distances = squared_distances(
            torch.where(P, Q - means, 0.0), P, centred, donors_seen
        )
        if leave_out is not None:
            own = leave_out[block]
            distances[own >= 0, own[own >= 0]] = torch.inf
        answer[block] = means + _average(
            distances, centred, donors_seen, n_neighbors, by_distance
        )
    return answer


def _average(distances, values, seen, n_neighbors, by_distance) -> Tensor:
    """Try the nearest few donors; rows for which they do not do get more."""
    n_donors, n_cols = values.shape
    answer = values.new_zeros(len(distances), n_cols)
    todo = torch.arange(len(distances), device=values.device)
    reach = 3 * n_neighbors
    while len(todo):
        reach = min(reach, n_donors)
        failed = []
        for rows in todo.split(max(1, BLOCK // (reach * n_cols))):
            near, index = distances[rows].topk(reach, largest=False)
            usable = seen[index] & torch.isfinite(near)[..., None]
            rank = usable.cumsum(1, dtype=torch.int32)
            weights = (usable & (rank <= n_neighbors)).to(values.dtype)
            if by_distance:
                inverse = near.rsqrt()[..., None]
                exact = weights * torch.isinf(inverse)
                finite = weights * torch.where(torch.isinf(inverse), 0.0, inverse)
                weights = torch.where(exact.any(1, keepdim=True), exact, finite)
            total = weights.sum(1)
            average = (weights * values[index]).sum(1) / total
            answer[rows] = torch.where(total > 0, average, 0.0)
            short = (rank[:, -1] < n_neighbors).any(1)
            failed.append(rows[short] if reach < n_donors else rows[:0])
        todo = torch.cat(failed)
        reach *= 4
    return answer


def knn_graph(values: Tensor, seen: Tensor, n_neighbors: int) -> Tensor:
    r"""Symmetric 0/1 adjacency of each row and its nearest others.

    ``values`` and ``seen`` have shape (\*batch, m, n), the answer (\*batch, m, m).
    """
    distances = squared_distances(values, seen, values, seen)
    n_rows = values.shape[-2]
    own = torch.eye(n_rows, dtype=torch.bool, device=values.device)
    distances.masked_fill_(own, torch.inf)
    k = min(n_neighbors, n_rows - 1)
    near, index = distances.topk(k, largest=False)
    A = torch.zeros_like(distances)
    A.scatter_(-1, index, torch.isfinite(near).to(A.dtype))
    return torch.maximum(A, A.mT)
