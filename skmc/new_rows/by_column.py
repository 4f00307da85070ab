"""Averages over the nearest donors of each column, where donors have few columns."""

from __future__ import annotations

import torch
from torch import Tensor

BITS = 40  # of a distance; what is beyond them is rounding of products


def averages_by_column(
    near: Tensor,
    donors: Tensor,
    donors_seen: Tensor,
    needed: Tensor,
    n_neighbors: int,
    by_distance: bool,
) -> Tensor:
    """The average of each needed column over the nearest donors that have it.

    Each column is looked up among its own donors, so time grows with the number of
    observed cells of the donors.

    Parameters
    ----------
    near : Tensor of shape (k, m)
        Squared distances in double precision, infinite to donors that do not count.
        Donors whose distances differ by rounding alone are taken in their order.
    donors : Tensor of shape (m, n_cols)
        Zero where unobserved.
    donors_seen : bool Tensor of shape (m, n_cols)
        True where donors are observed.
    needed : bool Tensor of shape (k, n_cols)
        Cells to average.
    n_neighbors : int
        Donors averaged for each cell; fewer where fewer have the column.
    by_distance : bool
        As in `knn_values`.

    Returns
    -------
    Tensor of shape (k, n_cols)
        Zero where no cell is needed, or no donor counts.
    """
    mantissa, exponent = torch.frexp(near)
    near = torch.ldexp((mantissa * 2**BITS).round(), exponent - BITS)
    rank = near.argsort(dim=-1, stable=True).argsort(-1)
    answer = torch.zeros(needed.shape, dtype=donors.dtype, device=donors.device)
    for j in range(needed.shape[1]):
        own, rows = donors_seen[:, j].nonzero()[:, 0], needed[:, j].nonzero()[:, 0]
        if not len(own) or not len(rows):
            continue
        n_chosen = min(n_neighbors, len(own))
        place = rank[rows[:, None], own].topk(n_chosen, largest=False).indices
        chosen = own[place]
        weights = near[rows[:, None], chosen]
        counts = torch.isfinite(weights)
        if by_distance:
            weights = weights.rsqrt()
            exact = torch.isinf(weights)
            weights = torch.where(exact.any(1, keepdim=True), exact, weights)
        else:
            weights = torch.ones_like(weights)
        weights = torch.where(counts, weights, 0.0).to(donors.dtype)
        total = weights.sum(1)
        average = (weights * donors[chosen, j]).sum(1) / total
        answer[rows, j] = torch.where(total > 0, average, 0.0)
    return answer
