"""Averages over the nearest of the donors, among all or those of nearby clusters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.linalg import Parts, linear, squared_distances

BLOCK = 2**25  # largest number of elements in memory
CHUNK = 2**12  # donors at once, so that their distances fit in the cache
SINGLE = 1e15  # squares of such numbers can be summed in single precision
PER_COLUMN = 2000  # comparisons in the time of a column's overhead
TIED = 1e-9  # largest difference of equal distances, relative to the largest cell
ROUNDED = 1e-13  # error of squares of distances, relative to the largest square
GROUP = 2**5  # donors per entry of the sorted list
CLUSTER_BLOCK = 2**24  # largest number of elements of distances to centers
PASSES = 10  # iterations of k-means
PER_CENTER = 50  # rows per center that k-means uses
SAMPLE = 256  # rows whose true neighbors are computed


def knn_values(
    queries: Tensor,  # (k, n_cols)
    seen: Tensor,  # (k, n_cols)
    donors: Tensor,  # (m, n_cols)
    donors_seen: Tensor,  # (m, n_cols)
    n_neighbors: int,
    *,
    by_distance: bool,
    needed: Tensor,  # (k, n_cols)
    leave_out: Tensor,  # (k,)
) -> Tensor:  # (k, n_cols)
    """Average each column over the nearest donors that have it."""
    means = donors.sum(0) / donors_seen.sum(0).clamp_min(1)
    B = torch.where(donors_seen, donors - means, 0.0)
    A = torch.where(seen, queries - means, 0.0)
    search = _DonorSearch(B, donors_seen, n_neighbors, by_distance)
    answer = torch.empty_like(A)
    todo = torch.arange(len(A), device=A.device)
    reach, dtype = min(3 * n_neighbors, len(B)), torch.float32
    if max(A.abs().amax(), B.abs().amax()) > SINGLE:
        dtype = torch.float64
    n_observed = int(donors_seen.sum())
    while len(todo):
        saved = reach * A.shape[1] - n_observed  # number of comparisons for each row
        if len(todo) * saved > A.shape[1] * PER_COLUMN:
            for rows in todo.split(max(1, BLOCK // len(B))):
                near = squared_distances(A[rows], seen[rows], B, donors_seen)
                out = leave_out[rows, None] == torch.arange(len(B), device=B.device)
                near.masked_fill_(out, torch.inf)
                answer[rows] = search.by_column(near, needed[rows])
            break
        failed = []
        rows_at_once = max(1, BLOCK // max(len(B), reach * A.shape[1]))
        sides = search.sides(reach, min(rows_at_once, len(todo)), dtype)
        for rows in todo.split(rows_at_once):
            answer[rows], short = search(
                A[rows], seen[rows], needed[rows], leave_out[rows], sides
            )
            failed.append(rows[short])
        todo = torch.cat(failed)
        reach, dtype = min(4 * reach, len(B)), torch.float64
    return answer + means


def donors_of_cell(
    query: Tensor,  # (n_cols,)
    seen: Tensor,  # (n_cols,)
    donors: Tensor,  # (m, n_cols)
    donors_seen: Tensor,  # (m, n_cols)
    column: int,
    n_neighbors: int,
    *,
    by_distance: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Find the donors whose average is a cell that `knn_values` computes."""
    positions = donors_seen[:, column].nonzero()[:, 0]
    means = donors.sum(0) / donors_seen.sum(0).clamp_min(1)
    shared = seen & donors_seen[positions]
    B = torch.where(donors_seen[positions], donors[positions] - means, 0.0)
    A = torch.where(seen, query - means, 0.0)
    largest = torch.where(donors_seen, donors - means, 0.0).square().max()
    squares = (A - B).square().mul(shared).sum(-1) / shared.sum(-1)
    squares, order = squares.sort(stable=True)  # NaN is last
    count = min(n_neighbors, int(torch.isfinite(squares).sum()))
    if not count:
        return positions[:0], squares[:0], squares[:0]
    low, high = _tied_with(squares[count - 1], largest)
    n_near, n_found = int((squares < low).sum()), int((squares <= high).sum())
    squares, positions = squares[:n_found], positions[order[:n_found]]
    weights = torch.ones_like(squares)
    weights[n_near:] = (count - n_near) / (n_found - n_near)
    if by_distance:
        inverse = squares.rsqrt()
        exact = torch.isinf(inverse)
        weights = weights * (exact.to(squares) if exact.any() else inverse)
    used = weights > 0
    positions, squares, weights = positions[used], squares[used], weights[used]
    return positions, squares, weights / weights.sum()


def _tied_with(squares: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
    """Ends of the squared distances that equal others up to rounding."""
    off, error = TIED * largest.sqrt(), ROUNDED * largest
    root = squares.sqrt()
    return (root - off).clamp_min(0).square() - error, (root + off).square() + error


@dataclass(frozen=True)
class _Sides:
    """The donors' factors of the two products that give approximate distances."""

    squares: Tensor  # (n_chunks, chunk, 3 n_cols)
    counts: Tensor  # (n_chunks, chunk, n_cols)
    reach: int  # number of nearest donors to find
    room: Tensor  # buffer for the distances of a block of rows

    def nearest(self, A: Tensor, seen: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        """Approximate distances and numbers of the nearest donors, by distance.

        The nearest ``reach`` donors are in the ``reach`` groups with the smallest
        minimal distances. So groups are sorted first, and then the donors of these
        groups.
        """
        (n_chunks, size, _), room = self.counts.shape, self.room
        n_groups = size // GROUP  # of one chunk; donor j is in group j % n_groups
        P, a = seen.to(room.dtype), A.to(room.dtype)
        left = torch.cat([P, a * a, -2 * a], 1)
        rough = room[: len(A) * n_chunks * size].view(n_chunks, len(A), size)
        least = room.new_empty(len(A), n_chunks, n_groups)
        for k in range(n_chunks):
            total = linear(left, self.squares[k])
            common = linear(P, self.counts[k])
            # Rows without a shared column have infinite distance.
            torch.div(total, common, out=rough[k]).nan_to_num_(*3 * [torch.inf])
            least[:, k] = rough[k].view(len(A), GROUP, n_groups).amin(1)
        # One more group, since the group of the row itself may be among them.
        n_near = min(self.reach + 1, n_chunks * n_groups)
        _, near = least.flatten(1).topk(n_near, largest=False)
        chunk, group = (near // n_groups)[:, None], (near % n_groups)[:, None]
        rows = torch.arange(len(A), device=A.device)
        rough[own.clamp_min(0) // size, rows, own.clamp_min(0) % size] += torch.where(
            own >= 0, torch.inf, 0.0
        )
        place = group + n_groups * torch.arange(GROUP, device=A.device)[:, None]
        candidates = rough[chunk, rows[:, None, None], place].flatten(1)
        edge, nearest = candidates.topk(self.reach, largest=False)
        return edge, (chunk * size + place).flatten(1).gather(1, nearest)


class _DonorSearch:
    """Averages over the nearest of a fixed set of donors."""

    def __init__(self, B: Tensor, seen: Tensor, n_neighbors: int, by_distance: bool):
        self.B, self.seen, self.largest = B, seen, B.square().max()
        self.n_neighbors, self.by_distance = n_neighbors, by_distance
        self.n_donors = seen.sum(0)  # of each column

    def sides(self, reach: int, n_rows: int, dtype: torch.dtype) -> _Sides:
        """The donors' factors of the two products, in equal chunks."""
        m, n_chunks = len(self.B), -(-len(self.B) // CHUNK)
        size = -(-m // (n_chunks * GROUP)) * GROUP
        padding = (0, 0, 0, n_chunks * size - m)
        B, Q = (pad(t.to(dtype), padding) for t in (self.B, self.seen))
        squares = torch.cat([B * B, Q, B], 1).view(n_chunks, size, -1)
        counts = Q.view(n_chunks, size, -1)
        # Allocation in each block would cost more time than the products.
        room = B.new_empty(n_rows * len(B))
        return _Sides(squares, counts, reach, room)

    def __call__(
        self, A: Tensor, seen: Tensor, needed: Tensor, own: Tensor, sides: _Sides
    ) -> tuple[Tensor, Tensor]:
        """Averages ``(k, n_cols)``, and a mask of rows that need a longer reach."""
        edge, index = sides.nearest(A, seen, own)
        index, order = index.clamp_max(len(self.B) - 1).sort(-1)
        far = torch.isinf(edge).gather(-1, order)  # also the padding of the last chunk

        shared = seen[:, None] & self.seen[index]
        squared = (A[:, None] - self.B[index]).square_().mul_(shared)
        near = squared.sum(-1) / shared.sum(-1)
        near[far | (index == own[:, None])] = torch.nan
        near, order = near.sort(dim=-1, stable=True)
        index = index.gather(-1, order)

        usable = self.seen[index] & torch.isfinite(near)[..., None]
        rank = usable.cumsum(1, dtype=torch.int32)
        chosen = usable & (rank <= self.n_neighbors)
        weights = chosen.to(A.dtype)
        _, beyond = _tied_with(near, self.largest)
        tied = (near[:, 1:] <= beyond[:, :-1]).any(1).nonzero()[:, 0]
        if len(tied):
            weights[tied] = self._shared(near[tied], usable[tied], chosen[tied])
        if self.by_distance:
            # A common factor of all distances to a row does not change the average.
            inverse = near.rsqrt()[..., None].nan_to_num(0.0, posinf=torch.inf)
            exact = weights * torch.isinf(inverse)
            finite = weights * torch.where(torch.isinf(inverse), 0.0, inverse)
            weights = torch.where(exact.any(1, keepdim=True), exact, finite)
        total = weights.sum(1)
        average = (weights * self.B[index]).sum(1) / total
        average = torch.where(total > 0, average, 0.0)
        if sides.reach == len(self.B):
            return average, torch.zeros(len(A), dtype=torch.bool, device=A.device)
        with_own = self.seen[own.clamp_min(0)] & (own >= 0)[:, None]
        enough = (self.n_donors - 1 * with_own).clamp_max(self.n_neighbors)
        few = ((rank[:, -1] < enough) & needed).any(-1)
        # Rounding errors of the approximate distances, which are means over shared
        # columns.
        slack = (
            150
            * torch.finfo(sides.room.dtype).eps
            * (A.square().amax(-1) + self.largest)
        )
        used = (chosen & needed[:, None]).any(-1)
        farthest = torch.where(used, beyond, 0.0).amax(-1)
        # Beyond an infinite edge, no donor shares a column.
        missed = farthest >= edge[:, -1] - slack
        exhausted = torch.isinf(edge[:, -1])
        return average, (few | missed) & ~exhausted

    def _shared(self, near: Tensor, usable: Tensor, chosen: Tensor) -> Tensor:
        """Weights of donors, of which those at the last distance share the places left.

        The result is the expectation over a random choice among them.
        """
        last = torch.where(chosen, near[..., None], 0.0).amax(1, keepdim=True)
        low, high = _tied_with(last, self.largest)
        inner = usable & (near[..., None] < low)
        tied = usable & (near[..., None] <= high) & ~inner
        n_left = chosen.sum(1, keepdim=True) - inner.sum(1, keepdim=True)
        share = n_left.to(near.dtype) / tied.sum(1, keepdim=True).clamp_min(1)
        return inner + tied * share

    def by_column(self, near: Tensor, needed: Tensor) -> Tensor:
        """Averages of the needed cells, zero elsewhere, from all distances ``(k, m)``.

        Each column is looked up among its own donors, so time grows with the number of
        observed cells of the donors. Distances to excluded donors are infinite.
        """
        answer = torch.zeros(needed.shape, dtype=self.B.dtype, device=self.B.device)
        for j in range(needed.shape[1]):
            with_value, rows = (
                self.seen[:, j].nonzero()[:, 0],
                needed[:, j].nonzero()[:, 0],
            )
            if not len(with_value) or not len(rows):
                continue
            n_chosen = min(self.n_neighbors, len(with_value))
            distances = near[rows[:, None], with_value]
            squares, place = distances.topk(n_chosen, largest=False)
            weights = self._weights(squares, torch.ones_like(squares))
            total, values = weights.sum(1), self.B[with_value, j].to(weights)
            average = (weights * values[place]).sum(1) / total
            last = torch.where(torch.isfinite(squares), squares, 0.0).amax(1)[:, None]
            low, high = _tied_with(last, self.largest)
            counts = (distances <= high).sum(1)
            tied = (counts > torch.isfinite(squares).sum(1)).nonzero()[:, 0]
            if len(tied):
                squares, low, high = distances[tied], low[tied], high[tied]
                inner = squares < low
                equal = (squares <= high) & ~inner
                n_left = n_chosen - inner.sum(1, keepdim=True)
                share = n_left.to(squares) / equal.sum(1, keepdim=True).clamp_min(1)
                weights = self._weights(squares, inner + equal * share)
                average[tied] = weights @ values / weights.sum(1)
            answer[rows, j] = torch.where(total > 0, average, 0.0).to(self.B.dtype)
        return answer

    def _weights(self, squares: Tensor, shares: Tensor) -> Tensor:
        """Weights of donors by their distances and shares of a place."""
        finite = torch.isfinite(squares)
        if not self.by_distance:
            return torch.where(finite, shares, 0.0)
        inverse = squares.rsqrt()
        exact = torch.isinf(inverse)
        inverse = torch.where(exact.any(1, keepdim=True), exact.to(squares), inverse)
        return torch.where(finite, inverse * shares, 0.0)


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
        cls,
        donors: Tensor,  # (m, n_cols)
        seen: Tensor,  # (m, n_cols)
        n_neighbors: int,
        recall: float,
    ) -> Clusters:
        """Make ``sqrt(m)`` clusters, and determine how many of them must be searched.

        The clusters are those of k-means, with distances over observed cells only. The
        number of nearest clusters to search is the smallest one that contains the given
        share of the nearest donors, for 256 random donors.
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
        pairs = []
        k = min(n_neighbors, len(B) - 1)
        for part in order[:SAMPLE].split(max(1, CLUSTER_BLOCK // len(B))):
            far = squared_distances(B[part], seen[part], B, seen)
            far[torch.arange(len(part), device=B.device), part] = torch.inf
            nearest = far.topk(k, largest=False).indices
            pairs.append(places[labels[part][:, None], labels[nearest]].flatten())
        ranks = torch.cat(pairs).sort().values
        last = ranks[math.ceil(recall * len(ranks)) - 1]
        share = float((ranks <= last).double().mean())
        return cls(means, centers, labels, near[:, : int(last) + 1].clone(), share)

    def values(
        self,
        queries: Tensor,  # (k, n_cols)
        seen: Tensor,  # (k, n_cols)
        donors: Tensor,  # (m, n_cols)
        donors_seen: Tensor,  # (m, n_cols)
        n_neighbors: int,
        *,
        by_distance: bool,
        needed: Tensor,  # (k, n_cols)
        leave_out: Tensor,  # (k,)
    ) -> Tensor:  # (k, n_cols)
        """Average over nearest donors as `knn_values`, in nearby clusters.

        If too few donors of nearby clusters have a column, all donors that have it are
        compared with the rows that need it.
        """
        answer = torch.empty_like(queries)
        labels = self._labels_of(queries, seen)
        members = labels.argsort(stable=True)
        starts = torch.bincount(labels, minlength=len(self.centers)).cumsum(0)
        place = torch.full((len(donors) + 1,), -1, device=labels.device)  # no donor
        for label, group in enumerate(members.tensor_split(starts[:-1].cpu())):
            if not len(group):
                continue
            parts = self._searched(label, donors_seen, n_neighbors, needed[group])
            for some, candidates in parts:
                rows = group[some]
                place[candidates] = torch.arange(
                    len(candidates), device=candidates.device
                )
                answer[rows] = knn_values(
                    queries[rows],
                    seen[rows],
                    donors[candidates],
                    donors_seen[candidates],
                    n_neighbors,
                    by_distance=by_distance,
                    needed=needed[rows],
                    leave_out=place[leave_out[rows]],
                )
                place[candidates] = -1
        return answer

    def donors_for(
        self,
        query: Tensor,  # (n_cols,)
        seen: Tensor,  # (n_cols,)
        donors_seen: Tensor,  # (m, n_cols)
        n_neighbors: int,
        needed: Tensor,  # (n_cols,)
    ) -> Tensor:  # (k,)
        """Donors that `values` compares with a row."""
        label = int(self._labels_of(query[None], seen[None])[0])
        parts = self._searched(label, donors_seen, n_neighbors, needed[None])
        return next(parts)[1]

    def _labels_of(self, queries: Tensor, seen: Tensor) -> Tensor:
        return _labels(torch.where(seen, queries - self.means, 0.0), seen, self.centers)

    def _searched(
        self, label: int, donors_seen: Tensor, n_neighbors: int, needed: Tensor
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows of a cluster, and the donors with which they are compared.

        These are the donors of nearby clusters, and for rows that need a column which
        few of them have, all others that have it. A row does not depend on the needs of
        the other rows.
        """
        enough = donors_seen.sum(0).clamp_max(n_neighbors + 1)
        near = torch.zeros(
            len(self.centers), dtype=torch.bool, device=self.labels.device
        )
        near[self.near[label]] = True
        chosen = near[self.labels]
        few = needed & (donors_seen[chosen].sum(0) < enough)
        kinds, kind = few.unique(dim=0, return_inverse=True)
        for k, columns in enumerate(kinds):
            candidates = chosen | donors_seen[:, columns].any(1)
            yield (kind == k).nonzero()[:, 0], candidates.nonzero()[:, 0]


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
    for rows in torch.arange(len(B), device=B.device).split(
        CLUSTER_BLOCK // len(centers)
    ):
        far = seen[rows].to(B.dtype) @ squares - 2 * B[rows] @ centers.mT
        parts.append(far.argmin(1))
    return torch.cat(parts)
