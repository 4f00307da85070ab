"""Groups of similar patches of a picture, and how much a filled cell is doubted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from scipy.ndimage import distance_transform_cdt
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, pad

# Elements of an intermediate result: 4 MiB in single precision stay in the cache.
BLOCK = 2**20
MOST_DOUBT = 0.95  # largest doubt of a cell, so that all weights are positive
FEW = 500  # matrices, which are too few for several threads


@dataclass(frozen=True)
class PatchGroups:
    """Reference patches on a grid, and similar patches in the window around each.

    Pictures have any number of channels, ``(*channels, *shape)``. Patches contain all
    channels and are compared on all of them.

    Sides, radius and group size shrink to the size of the picture. Work is done in
    blocks, so memory is a few times that of all patches.

    Parameters
    ----------
    shape : tuple of int
        Height and width of the picture.
    side : int
        Side of a patch, in cells.
    size : int
        Number of patches in a group.
    radius : int
        Largest distance of compared patches in each direction, in cells.
    stride : int
        Distance of neighboring reference patches; the first and last rows and columns
        of patches are always references, so that every cell is covered.
    block : int
        Largest number of elements of an intermediate result.
    """

    shape: tuple[int, int]
    side: int
    size: int
    radius: int
    stride: int
    block: int = BLOCK

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of a patch."""
        n_rows, n_cols = self.shape
        return min(self.side, n_rows), min(self.side, n_cols)

    @property
    def n_positions(self) -> tuple[int, int]:
        """Numbers of positions of a patch along rows and along columns."""
        (n_rows, n_cols), (height, width) = self.shape, self.sides
        return n_rows - height + 1, n_cols - width + 1

    @property
    def n_members(self) -> int:
        """Patches in a group: ``size``, or fewer if a corner's window has fewer."""
        sides = (min(self.radius + 1, places) for places in self.n_positions)
        return min(self.size, math.prod(sides))

    def _grid(self, axis: int, offset: int = 0) -> list[int]:
        last = self.n_positions[axis] - 1
        return sorted({0, *range(offset, last, self.stride), last})

    def references(
        self,
        wanted: Tensor,  # (*channels, *shape)
        offset: int = 0,
    ) -> Tensor:  # (n_references,)
        """The nearest reference patch of each wanted cell, or all without wanted cells.

        Distance is measured from the center of the patch.
        """
        cells = wanted.reshape(-1, *self.shape).any(0)
        grids = [torch.tensor(self._grid(axis, offset)) for axis in (0, 1)]
        down, right = (grid.to(wanted.device) for grid in grids)
        hit = torch.zeros(len(down), len(right), dtype=torch.bool, device=down.device)
        hit[tuple(map(_nearest, (down, right), self.sides, cells.nonzero().T))] = True
        corners = down[:, None] * self.shape[1] + right
        return corners[hit if hit.any() else ~hit]

    def match(
        self,
        picture: Tensor,  # (*channels, *shape)
        references: Tensor,  # (n_references,)
        doubt: Tensor | None = None,
    ) -> Tensor:  # (n_references, n_members)
        r"""The most similar patches of each reference, including itself.

        The distance of a patch q from a reference p is

        .. math:: \sum_i (1 - v_{p_i})^2 \left((p_i - q_i)^2 + v_{q_i}\right)

        where v is the doubt, at most 0.95 in the first factor. So cells of a reference
        are weighted by their certainty, and patches with certain cells are preferred.
        After expansion of the square, distances are convolutions of the windows with
        their reference patches.
        """
        picture, radius = picture.reshape(-1, *self.shape), self.radius
        doubt = torch.zeros_like(picture) if doubt is None else doubt.view_as(picture)
        trust = (1 - doubt.clamp_max(MOST_DOUBT)).square()
        n_shifts, (height, width) = 2 * radius + 1, self.sides
        tall, wide = n_shifts + height - 1, n_shifts + width - 1
        outside = pad(
            picture.new_zeros(self.n_positions), [radius] * 4, value=torch.inf
        )
        outside = outside.unfold(0, n_shifts, 1).unfold(1, n_shifts, 1)
        around = [
            pad(each, [radius] * 4).unfold(1, tall, 1).unfold(2, wide, 1)
            for each in (picture.square() + doubt, picture)
        ]
        patches = [
            each.unfold(1, height, 1).unfold(2, width, 1)
            for each in (trust, -2 * trust * picture)
        ]
        members = []
        for block in references.split(self.block // (tall * wide * len(picture)) + 1):
            y, x = block // self.shape[1], block % self.shape[1]
            distance = outside[y, x]
            for windows, own in zip(around, patches, strict=True):
                own = own[:, y, x].flatten(0, 1)
                windows = windows[:, y, x].flatten(0, 1)
                # cuDNN has larger rounding errors.
                with torch.backends.cudnn.flags(enabled=False):
                    each = conv2d(windows[None], own[:, None], groups=len(own))[0]
                distance = distance + each.view(len(picture), *distance.shape).sum(0)
            distance[:, radius, radius] = -torch.inf  # itself
            distance = distance.flatten(1)
            shift = distance.topk(self.n_members, largest=False, sorted=False)[1]
            down, right = shift // n_shifts - radius, shift % n_shifts - radius
            members.append(block[:, None] + down * self.shape[1] + right)
        return torch.cat(members)

    def directions(
        self,
        picture: Tensor,  # (*channels, *shape)
        groups: Tensor,  # (n_references, n_members)
        threshold: float = 0.0,
    ) -> Tensor:  # (n_references, n, n)
        """The singular vectors of groups, centered at their mean patches."""
        patches = self._patches(picture)
        n = min(patches[0].numel(), groups.shape[1])
        directions = picture.new_empty(len(groups), n, n)
        for block, own in zip(*self._split(patches, groups, directions), strict=True):
            own.copy_(principal(patches[block].flatten(2), threshold))
        return directions

    def shrink(
        self,
        picture: Tensor,  # (*channels, *shape)
        groups: Tensor,  # (n_references, n_members)
        directions: Tensor,  # (n_references, n, n)
        threshold: float,
    ) -> Tensor:  # (*channels, *shape)
        r"""Lower the rank of each group, and average the patches that cover a cell.

        Cells that no group covers keep their values.
        """
        channels = picture.reshape(-1, *self.shape)
        patches, n_channels = self._patches(picture), len(channels)
        cells = torch.arange(channels.numel(), device=picture.device)
        cells = self._patches(cells.view(*self.shape, -1).permute(2, 0, 1))[0].flatten()
        total = picture.new_zeros(channels.numel())
        for block, own in zip(*self._split(patches, groups, directions), strict=True):
            if own.device.type == "cpu":  # elsewhere, this would wait for the device
                own = own[:, :, -max(1, int(own.any(0).any(0).sum())) :]
            lower = lower_rank(patches[block].flatten(2), own, threshold)
            places = n_channels * block[..., None] + cells
            total.index_add_(0, places.flatten(), lower.flatten())
        count = self._count(groups)
        mean = total.view(*self.shape, -1).permute(2, 0, 1) / count.clamp_min(1)
        return torch.where(count > 0, mean, channels).view_as(picture)

    def _patches(self, picture: Tensor) -> Tensor:
        """A view of the patches at all corners: (n_pixels, height, width * n_channels).

        It includes patches that would reach beyond the picture, but not the last ones.
        """
        pixels = picture.reshape(-1, *self.shape).permute(1, 2, 0).contiguous()
        _, n_cols, n_channels = pixels.shape
        (n_down, n_right), (height, width) = self.n_positions, self.sides
        return pixels.as_strided(
            ((n_down - 1) * n_cols + n_right, height, width * n_channels),
            (n_channels, n_cols * n_channels, 1),
        )

    def _count(self, groups: Tensor) -> Tensor:
        """Number of patches of the groups that cover each pixel."""
        places, (height, width) = groups.flatten(), self.sides
        corners = torch.zeros(math.prod(self.shape), device=groups.device)
        corners.index_add_(0, places, torch.ones_like(places, dtype=corners.dtype))
        before = pad(corners.view(self.shape), [width - 1, 0, height - 1, 0])
        return avg_pool2d(before[None], self.sides, 1, divisor_override=1)[0]

    def _split(self, patches: Tensor, *parts: Tensor) -> Iterator[tuple[Tensor, ...]]:
        numbers = 4 * patches[0].numel() * parts[0].shape[1]
        return (part.split(max(1, self.block // numbers)) for part in parts)


def _nearest(corners: Tensor, side: int, cells: Tensor) -> Tensor:
    """Number of the patch whose center is nearest to each cell, on one axis."""
    middles = (corners[1:] + corners[:-1] + side - 1) / 2
    return torch.searchsorted(middles, cells.to(middles.dtype).contiguous())


def _eigh(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Decompose many small matrices in threads, as LAPACK is sequential."""
    n_threads = torch.get_num_threads()
    if n_threads == 1 or len(gram) < FEW:
        return torch.linalg.eigh(gram)
    with ThreadPoolExecutor(n_threads) as pool:
        parts = zip(*pool.map(torch.linalg.eigh, gram.chunk(n_threads)), strict=True)
        values, vectors = map(torch.cat, parts)
        return values, vectors


def principal(
    groups: Tensor,  # (*batch, n_members, n_cells)
    threshold: float = 0.0,
) -> Tensor:  # (*batch, n, n)
    """Singular vectors of centered groups, on their shorter side."""
    centered = groups - groups.mean(-2, keepdim=True)
    wide = groups.shape[-1] > groups.shape[-2]
    gram = centered @ centered.mT if wide else centered.mT @ centered
    n = gram.shape[-1]
    limit = 4 * groups.shape[-2] * threshold**2
    if gram.device.type != "cpu":  # a selection would wait for the device
        values, vectors = torch.linalg.eigh(gram)
        return vectors * (values > limit)[..., None, :]
    # The Frobenius norm bounds the largest eigenvalue.
    varied = gram.norm(dim=(-2, -1)).numpy() > limit
    chosen = torch.from_numpy(np.flatnonzero(varied))
    projected = torch.zeros_like(gram.reshape(-1, n, n))
    values, vectors = _eigh(gram.reshape(-1, n, n)[chosen])
    projected[chosen] = vectors.mul_((values > limit)[:, None])
    return projected.view(*groups.shape[:-2], n, n)


def lower_rank(
    groups: Tensor,  # (*batch, n_members, n_cells)
    directions: Tensor,  # (*batch, n, n_directions)
    threshold: float,
) -> Tensor:  # (*batch, n_members, n_cells)
    r"""Weighted shrinkage of the singular values of centered groups.

    A group of K patches minus its mean patch has singular values s. They become
    ``(s + sqrt(s^2 - 4 K t^2)) / 2``, or zero where the root is not real. This is the
    closed form of the nuclear norm with weights inverse to the singular values of the
    result, where ``t`` is the ``threshold``.
    """
    mean = groups.mean(-2, keepdim=True)
    n_members, n_cells = groups.shape[-2:]
    wide = n_cells > n_members
    centered = groups - mean
    coordinates = directions.mT @ centered if wide else centered @ directions
    variance = coordinates.square().sum(-1 if wide else -2, keepdim=True) / n_members
    tiny = torch.finfo(groups.dtype).tiny
    root = 1 - 4 * threshold**2 / variance.clamp_min(tiny)
    coordinates.mul_(torch.where(root > 0, (1 + root.clamp_min(0).sqrt()) / 2, 0))
    pair = (directions, coordinates) if wide else (coordinates, directions.mT)
    return torch.baddbmm(mean, *pair)


def expected_error(
    values: Tensor,  # (n_rows, n_cols)
    mask: Tensor,
) -> Tensor:  # (n_rows, n_cols)
    r"""Half the mean squared difference of known cells at each cell's distance.

    .. math:: \gamma(d) = \tfrac{1}{2} \operatorname{mean} (x_i - x_j)^2

    over pairs of known cells that are ``d`` apart in a row or a column. A hidden cell
    has the value of the variogram :math:`\gamma` at the distance of the nearest known
    cell, the larger of the distances along rows and columns; a known cell has zero.
    The variogram is evaluated at powers of two, interpolated, and made to increase.
    """
    hidden = ~mask.cpu().numpy()
    distance = distance_transform_cdt(hidden, "chessboard")
    lags = [2**k for k in range((int(distance.max()) - 1).bit_length() + 1)]
    errors = np.maximum.accumulate([_variogram(values, mask, lag) for lag in lags])
    at_distance = torch.from_numpy(np.interp(distance, [0, *lags], [0, *errors]))
    return at_distance.to(values.device, values.dtype)


def _variogram(values: Tensor, mask: Tensor, lag: int) -> float:
    """Values of the variogram; zero if no two known cells are ``lag`` apart."""
    total, count = values.new_zeros(()), values.new_zeros(())
    for x, known in ((values, mask), (values.T, mask.T)):
        both = known[lag:] & known[:-lag]
        total += torch.where(both, x[lag:] - x[:-lag], 0).square().sum()
        count += both.sum()
    return float(total / (2 * count.clamp_min(1)))
