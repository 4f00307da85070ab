"""Nearest rows among those of nearby clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg import Parts
from skmc.new_rows.neighbors import knn_values, squared_distances

BLOCK = 2**24  # largest number of elements in memory
PASSES = 10  # of k-means
PER_CENTER = 50  # rows from which a center is computed
SAMPLE = 256  # rows whose neighbors are compared with those of all pairs


@dataclass(frozen=True, eq=False)
class Clusters(Parts):
    r"""Donors in clusters, so that a row is compared with a part of them.

    Parameters
    ----------
    means : Tensor of shape (n_cols,)
        Means of the columns, from which centers are measured.
    centers : Tensor of shape (n_clusters, n_cols)
        Centers of the clusters.
    labels : int Tensor of shape (m,)
        Cluster of each donor.
    near : int Tensor of shape (n_clusters, n_near)
        For each cluster, the clusters that are searched, itself included.
    recall : float
        The share of the nearest donors that is found.
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
        """Find ``sqrt(m)`` clusters, and how many of them must be searched.

        The clusters are those of k-means, with distances over observed cells only. As
        many of the nearest ones are searched as hold the given share of the nearest
        donors of 256 donors, which are drawn at random.

        Parameters
        ----------
        donors : Tensor of shape (m, n_cols)
            Double precision, zero where unobserved.
        seen : bool Tensor of shape (m, n_cols)
            True where donors are observed.
        n_neighbors : int
            Number of nearest donors of which a share is to be found.
        recall : float in (0, 1]
            This share.

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
        """As `knn_values`, from the donors of nearby clusters.

        All donors that have a column are compared with rows that need it, if too few
        donors of nearby clusters have it.

        Parameters
        ----------
        queries : Tensor of shape (k, n_cols)
            Double precision, zero where unobserved.
        seen : bool Tensor of shape (k, n_cols)
            True where queries are observed.
        donors : Tensor of shape (m, n_cols)
            The donors of this object.
        donors_seen : bool Tensor of shape (m, n_cols)
            True where donors are observed.
        n_neighbors : int
            Donors averaged for each cell.
        by_distance : bool
            Weigh donors by inverse distance.
        needed : bool Tensor of shape (k, n_cols)
            Cells that are used.
        leave_out : int Tensor of shape (k,)
            A donor that each query must not use; -1 for none.

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
        place = torch.full((len(donors) + 1,), -1, device=labels.device)  # of no donor
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
    """Centers of rows that are zero where unobserved, as are the means."""
    centers = B[:n_clusters].clone()
    for _ in range(PASSES):
        labels = _labels(B, seen, centers)
        sums = torch.zeros_like(centers).index_add_(0, labels, B)
        counts = torch.zeros_like(centers).index_add_(0, labels, seen.to(B.dtype))
        centers = torch.where(counts > 0, sums / counts, centers)
    return centers


def _labels(B: Tensor, seen: Tensor, centers: Tensor) -> Tensor:
    """The nearest center of each row, by the distance over its observed cells."""
    squares = centers.square().mT
    parts = []
    for rows in torch.arange(len(B), device=B.device).split(BLOCK // len(centers)):
        far = seen[rows].to(B.dtype) @ squares - 2 * B[rows] @ centers.mT
        parts.append(far.argmin(1))
    return torch.cat(parts)
