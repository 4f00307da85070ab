"""Nearest rows of a partly observed matrix."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 2**24  # numbers held at once


def squared_distances(A: Tensor, seen_a: Tensor, B: Tensor, seen_b: Tensor) -> Tensor:
    r"""Squared Euclidean distances over the columns that both rows have.

    ``d_ij = n_cols / n_ij * sum_k (a_ik - b_jk)^2`` over the ``n_ij`` shared columns,
    and infinity where there are none. This is
    `sklearn.metrics.pairwise.nan_euclidean_distances`, squared. ``A`` and ``B`` are
    zero where unobserved.

    Parameters
    ----------
    A : Tensor of shape (\*batch, a, n)
        Rows.
    seen_a : bool Tensor of shape (\*batch, a, n)
        True where ``A`` is observed.
    B : Tensor of shape (\*batch, b, n)
        Other rows.
    seen_b : bool Tensor of shape (\*batch, b, n)
        True where ``B`` is observed.

    Returns
    -------
    Tensor of shape (\*batch, a, b)
    """
    P, Q = seen_a.to(A.dtype), seen_b.to(B.dtype)
    common = P @ Q.mT
    total = (A * A) @ Q.mT + P @ (B * B).mT
    distances = torch.sub(total, A @ B.mT, alpha=2)
    # Equal rows are at distance zero, not at a distance of rounding.
    distances.masked_fill_(distances <= 1e-13 * total, 0.0)
    distances.mul_(A.shape[-1] / common)
    return distances.masked_fill_(common == 0, torch.inf)


def knn_values(
    queries: Tensor,
    seen: Tensor,
    donors: Tensor,
    donors_seen: Tensor,
    n_neighbors: int,
    *,
    by_distance: bool = False,
    needed: Tensor | None = None,
    leave_out: Tensor | None = None,
) -> Tensor:
    """The average of each column over the nearest donors that have it.

    Parameters
    ----------
    queries : Tensor of shape (k, n_cols)
        Double precision, zero where unobserved.
    seen : bool Tensor of shape (k, n_cols)
        True where queries are observed.
    donors : Tensor of shape (m, n_cols)
        Double precision, zero where unobserved.
    donors_seen : bool Tensor of shape (m, n_cols)
        True where donors are observed.
    n_neighbors : int
        Donors averaged for each cell; fewer where fewer have the column. Donors at
        equal distances are taken in their order.
    by_distance : bool
        Weigh donors by inverse distance; where a donor equals the query, only such
        donors count.
    needed : bool Tensor of shape (k, n_cols), optional
        Cells that are used; others may be averages of fewer donors.
    leave_out : int Tensor of shape (k,), optional
        A donor that each query must not use, itself for instance; -1 for none.

    Returns
    -------
    Tensor of shape (k, n_cols)
        The column's mean where no donor shares a column with the query, and zero for
        a column that no donor has.

    Notes
    -----
    Two products in single precision give more candidates than are needed, whose
    distances are then computed exactly. A row whose candidates may have missed a nearer
    donor, or include too few that have a column, is searched again with four times as
    many candidates, in double precision. Memory is bounded by a block size.
    """
    means = donors.sum(0) / donors_seen.sum(0).clamp_min(1)
    B = torch.where(donors_seen, donors - means, 0.0)
    A = torch.where(seen, queries - means, 0.0)
    needed = torch.ones_like(seen) if needed is None else needed
    if leave_out is None:
        leave_out = torch.full((len(A),), -1, device=A.device)
    search = _Search(B, donors_seen, n_neighbors, by_distance)
    answer = torch.empty_like(A)
    todo = torch.arange(len(A), device=A.device)
    reach, dtype = min(3 * n_neighbors, len(B)), torch.float32
    while len(todo):
        sides = search.sides(dtype)
        failed = []
        rows_at_once = max(1, BLOCK // max(len(B), reach * A.shape[1]))
        for rows in todo.split(rows_at_once):
            answer[rows], short = search(
                A[rows], seen[rows], needed[rows], leave_out[rows], reach, sides
            )
            failed.append(rows[short])
        todo = torch.cat(failed)
        reach, dtype = min(4 * reach, len(B)), torch.float64
    return answer + means


class _Search:
    """Averages over the nearest of fixed donors."""

    def __init__(self, B: Tensor, seen: Tensor, n_neighbors: int, by_distance: bool):
        self.B, self.seen = B, seen
        self.n_neighbors, self.by_distance = n_neighbors, by_distance

    def sides(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The donors' factors of the two products."""
        B, Q = self.B.to(dtype), self.seen.to(dtype)
        return torch.cat([B * B, Q, B], 1).T.contiguous(), Q.T.contiguous()

    def __call__(
        self, A: Tensor, seen: Tensor, needed: Tensor, own: Tensor, reach: int, sides
    ) -> tuple[Tensor, Tensor]:
        """Averages ``(k, n_cols)``, and which rows need a longer reach."""
        squares, counts = sides
        P, a = seen.to(squares.dtype), A.to(squares.dtype)
        rough = torch.cat([P, a * a, -2 * a], 1) @ squares
        rough.div_(P @ counts)  # NaN, which sorts last, where no column is shared
        rough[own >= 0, own[own >= 0]] = torch.nan
        edge, index = rough.topk(reach, largest=False)
        index, _ = index.sort(-1)

        shared = seen[:, None] & self.seen[index]
        squared = (A[:, None] - self.B[index]).square_().mul_(shared)
        near = squared.sum(-1) / shared.sum(-1)
        near[index == own[:, None]] = torch.nan
        near, order = near.sort(dim=-1, stable=True)
        index = index.gather(-1, order)

        usable = self.seen[index] & torch.isfinite(near)[..., None]
        rank = usable.cumsum(1, dtype=torch.int32)
        chosen = usable & (rank <= self.n_neighbors)
        weights = chosen.to(A.dtype)
        if self.by_distance:
            # A common factor of all distances to a row does not change the average.
            inverse = near.rsqrt()[..., None].nan_to_num(0.0, posinf=torch.inf)
            exact = weights * torch.isinf(inverse)
            finite = weights * torch.where(torch.isinf(inverse), 0.0, inverse)
            weights = torch.where(exact.any(1, keepdim=True), exact, finite)
        total = weights.sum(1)
        average = (weights * self.B[index]).sum(1) / total
        average = torch.where(total > 0, average, 0.0)
        if reach == len(self.B):
            return average, torch.zeros(len(A), dtype=torch.bool, device=A.device)
        few = ((rank[:, -1] < self.n_neighbors) & needed).any(-1)
        # Rounding of the rough distances, which are means over shared columns.
        slack = (
            150
            * torch.finfo(squares.dtype).eps
            * (A.square().amax(-1) + self.B.square().max())
        )
        used = (chosen & needed[:, None]).any(-1)
        farthest = torch.where(used, near, 0.0).amax(-1)
        # Past an edge that is NaN there is no donor left that shares a column.
        missed = farthest >= edge[:, -1] - slack
        exhausted = torch.isnan(edge[:, -1])
        return average, (few | missed) & ~exhausted


def knn_graph(values: Tensor, seen: Tensor, n_neighbors: int) -> Tensor:
    r"""Symmetric 0/1 adjacency between each row and its nearest neighbors.

    Parameters
    ----------
    values : Tensor of shape (\*batch, k, n)
        Rows.
    seen : bool Tensor of shape (\*batch, k, n)
        True where they are observed.
    n_neighbors : int
        Neighbors of each row.

    Returns
    -------
    Tensor of shape (\*batch, k, k)
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
