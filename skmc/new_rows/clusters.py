"""Nearest rows among the rows of nearby clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg import Parts
from skmc.new_rows.neighbors import knn_values, squared_distances

BLOCK = 2**24  # largest number of elements in memory
PASSES = 10  # iterations of k-means
PER_CENTER = 50  # rows per center that k-means uses
SAMPLE = 256  # rows whose true neighbors are computed


@dataclass(frozen=True, eq=False)
class Clusters(Parts):
    r"""Donors in clusters, so that a row is compared with only a part of them.

    Parameters
    ----------
    means : Tensor of shape (n_cols,)
        Means of the columns, which are the origin of the centers.
    centers : Tensor of shape (n_clusters, n_cols)
        Centers of the clusters.
    labels : int Tensor of shape (m,)
        Cluster of each donor.
    near : int Tensor of shape (n_clusters, n_near)
        Clusters that are searched for each cluster, including itself.
    recall : float
        Share of the nearest donors that is found.
    """

    means: Tensor  # (n_cols,)
    centers: Tensor  # (n_clusters, n_cols)
    labels: Tensor  # (m,)
    near: Tensor  # (n_clusters, n_near)
    recall: float

    @classmethod
    def of(
        cls, donors: Tensor, seen: Tensor, n_neighbors: int, recall: float
    ) -> Clusters:
        """Make ``sqrt(m)`` clusters, and determine how many of them must be searched.

        The clusters are those of k-means, with distances over observed cells only. The
        number of nearest clusters to search is the smallest one that contains the given
        share of the nearest donors, for 256 random donors.

        Parameters
        ----------
        donors : Tensor of shape (m, n_cols)
            Values in double precision, zero where unobserved.
        seen : bool Tensor of shape (m, n_cols)
            True where donors are observed.
        n_neighbors : int
            Number of nearest donors.
        recall : float in (0, 1]
            Share of them to find.

        Returns
        -------
        Clusters
        """
        means = donors.sum(0) / seen.sum(0).clamp_min(1)
        B = torch.where(seen, donors - means, 0.0)
        draw = torch.Generator().manual_seed(0)
        order = torch.randperm(len(B), generator=draw).to(B.device)
        n_clusters = math.isqrt(len(B))
        some = order[: PER_CENTER * n_clusters]
        centers = _k_means(B[some], seen[some], n_clusters)
        labels = _labels(B, seen, centers)
        near = torch.cdist(centers, centers).argsort(1)
        places = near.argsort(1)
        found = []
        k = min(n_neighbors, len(B) - 1)
        for part in order[:SAMPLE].split(max(1, BLOCK // len(B))):
            far = squared_distances(B[part], seen[part], B, seen)
            far[torch.arange(len(part), device=B.device), part] = torch.inf
            nearest = far.topk(k, largest=False).indices
            found.append(places[labels[part][:, None], labels[nearest]].flatten())
        ranks = torch.cat(found).sort().values
        last = ranks[math.ceil(recall * len(ranks)) - 1]
        share = float((ranks <= last).double().mean())
        return cls(means, centers, labels, near[:, : int(last) + 1].clone(), share)

    def values(
        self,
        queries: Tensor,
        seen: Tensor,
        donors: Tensor,
        donors_seen: Tensor,
        n_neighbors: int,
        *,
        by_distance: bool,
        needed: Tensor,
        leave_out: Tensor,
    ) -> Tensor:
        """Average over nearest donors as `knn_values`, in nearby clusters.

        If too few donors of nearby clusters have a column, all donors that have it are
        compared with the rows that need it.

        Parameters
        ----------
        queries : Tensor of shape (k, n_cols)
            Values in double precision, zero where unobserved.
        seen : bool Tensor of shape (k, n_cols)
            True where queries are observed.
        donors : Tensor of shape (m, n_cols)
            Donors of this object.
        donors_seen : bool Tensor of shape (m, n_cols)
            True where donors are observed.
        n_neighbors : int
            Number of donors averaged for each cell.
        by_distance : bool
            Whether to weight donors by inverse distance.
        needed : bool Tensor of shape (k, n_cols)
            Mask of the cells that are used.
        leave_out : int Tensor of shape (k,)
            Donor that each query must not use; -1 for none.

        Returns
        -------
        Tensor of shape (k, n_cols)
        """
        answer = torch.empty_like(queries)
        enough = donors_seen.sum(0).clamp_max(n_neighbors + 1)
        labels = _labels(
            torch.where(seen, queries - self.means, 0.0), seen, self.centers
        )
        members = labels.argsort(stable=True)
        starts = torch.bincount(labels, minlength=len(self.centers)).cumsum(0)
        near = torch.zeros(len(self.centers), dtype=torch.bool, device=labels.device)
        place = torch.full((len(donors) + 1,), -1, device=labels.device)  # no donor
        for label, rows in enumerate(members.tensor_split(starts[:-1].cpu())):
            if not len(rows):
                continue
            near[:] = False
            near[self.near[label]] = True
            chosen = near[self.labels]
            few = needed[rows].any(0) & (donors_seen[chosen].sum(0) < enough)
            own = (chosen | donors_seen[:, few].any(1)).nonzero()[:, 0]
            place[own] = torch.arange(len(own), device=own.device)
            answer[rows] = knn_values(
                queries[rows],
                seen[rows],
                donors[own],
                donors_seen[own],
                n_neighbors,
                by_distance=by_distance,
                needed=needed[rows],
                leave_out=place[leave_out[rows]],
            )
            place[own] = -1
        return answer


def _k_means(B: Tensor, seen: Tensor, n_clusters: int) -> Tensor:
    """Centers of rows; rows and means are zero where unobserved."""
    centers = B[:n_clusters].clone()
    for _ in range(PASSES):
        labels = _labels(B, seen, centers)
        sums = torch.zeros_like(centers).index_add_(0, labels, B)
        counts = torch.zeros_like(centers).index_add_(0, labels, seen.to(B.dtype))
        centers = torch.where(counts > 0, sums / counts, centers)
    return centers


def _labels(B: Tensor, seen: Tensor, centers: Tensor) -> Tensor:
    """Nearest center of each row, by the distance over its observed cells."""
    squares = centers.square().mT
    parts = []
    for rows in torch.arange(len(B), device=B.device).split(BLOCK // len(centers)):
        far = seen[rows].to(B.dtype) @ squares - 2 * B[rows] @ centers.mT
        parts.append(far.argmin(1))
    return torch.cat(parts)
