"""Groups of similar patches of a picture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import conv2d, fold, max_pool2d, pad, unfold

# Numbers of an intermediate result: 32 MiB in single precision.
BLOCK = 2**23
MOST_DOUBT = 0.95  # of a cell, so that some patches are nearer to any reference
FEW = 500  # matrices, which are not worth a thread


@dataclass(frozen=True)
class PatchGroups:
    """Reference patches on a grid, and the patches of a window that resemble each.

    Pictures have any number of channels, ``(*channels, *shape)``. Patches are compared
    on all channels, and hold the cells of all channels.

    Sides, radius and group size shrink to what the picture holds. Work is done in
    blocks, so memory is a few times that of all patches.

    Parameters
    ----------
    shape : tuple of int
        Height and width of the picture.
    side : int
        Of a patch, in cells.
    size : int
        Patches in a group.
    radius : int
        Patches are compared with those at most so many cells away, in each direction.
    stride : int
        Distance of neighboring reference patches; the last row and column of patches
        are always references, so that every cell is covered.
    block : int
        Numbers of an intermediate result, at most.
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
        """Places of a patch along rows and along columns."""
        (n_rows, n_cols), (height, width) = self.shape, self.sides
        return n_rows - height + 1, n_cols - width + 1

    @property
    def n_members(self) -> int:
        """Patches in a group: ``size``, or what the window of a corner holds."""
        fewest = 1
        for places in self.n_positions:
            fewest *= min(self.radius + 1, places)
        return min(self.size, fewest)

    def _grid(self, axis: int) -> list[int]:
        last = self.n_positions[axis] - 1
        return [*range(0, last, self.stride), last]

    def references(self, wanted: Tensor) -> Tensor:
        """Reference patches that have a wanted cell, or all if no cell is wanted.

        Parameters
        ----------
        wanted : bool Tensor of shape (\\*channels, \\*shape)
            The cells.

        Returns
        -------
        int64 Tensor of shape (n_references,)
            Positions of upper left corners, numbered along rows.
        """
        n_rows, n_cols = self.n_positions
        cells = wanted.reshape(-1, *self.shape).any(0).float()
        hit = max_pool2d(cells[None], self.sides, 1)[0] > 0
        if not hit.any():
            hit = torch.ones_like(hit)
        places = torch.arange(n_rows * n_cols, device=wanted.device)
        places = places.view(n_rows, n_cols)[self._grid(0)][:, self._grid(1)]
        return places[hit[self._grid(0)][:, self._grid(1)]]

    def match(
        self, picture: Tensor, references: Tensor, doubt: Tensor | None = None
    ) -> Tensor:
        r"""The most similar patches to each reference, itself among them.

        The distance of a patch q from a reference p is

        .. math:: \sum_i (1 - v_{p_i})^2 \left((p_i - q_i)^2 + v_{q_i}\right)

        where v is the doubt, at most 0.95 in the first factor: cells of a reference
        count by how well they are known, and a patch that is known is preferred. By the
        binomial formula, distances are convolutions of the windows with their reference
        patches.

        Parameters
        ----------
        picture : Tensor of shape (\\*channels, \\*shape)
            Finite everywhere; its mean should be near zero.
        references : int64 Tensor of shape (n_references,)
            As of `references`.
        doubt : Tensor of the shape of ``picture``, optional
            Expected square of the error of each cell; the variance of the picture is
            one. The default is zero.

        Returns
        -------
        int64 Tensor of shape (n_references, n_members)
            Positions of upper left corners, numbered along rows.
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
        found = []
        for block in references.split(self.block // (tall * wide * len(picture)) + 1):
            y, x = block // self.n_positions[1], block % self.n_positions[1]
            distance = outside[y, x]
            for windows, own in zip(around, patches, strict=True):
                own, windows = (
                    own[:, y, x].flatten(0, 1),
                    windows[:, y, x].flatten(0, 1),
                )
                with torch.backends.cudnn.flags(
                    enabled=False
                ):  # which would round more
                    each = conv2d(windows[None], own[:, None], groups=len(own))[0]
                distance = distance + each.view(len(picture), *distance.shape).sum(0)
            distance[:, radius, radius] = -torch.inf  # itself
            distance = distance.flatten(1)
            shift = distance.topk(self.n_members, largest=False, sorted=False)[1]
            down, right = shift // n_shifts - radius, shift % n_shifts - radius
            found.append(block[:, None] + down * self.n_positions[1] + right)
        return torch.cat(found)

    def shrink(self, picture: Tensor, groups: Tensor, threshold: float) -> Tensor:
        r"""Mean over groups of their patches, each group made of lower rank.

        Cells that no group covers stay as they are.

        A group of K patches, its mean patch taken off, has singular values s. They
        become ``(s + sqrt(s^2 - 4 K t^2)) / 2``, or zero where the root is not real:
        the closed form of the nuclear norm with weights that are inverse to the
        result's singular values, ``t`` being the ``threshold``. Singular vectors are
        those of the Gram matrix.

        Parameters
        ----------
        picture : Tensor of shape (\\*channels, \\*shape)
            Finite everywhere.
        groups : int64 Tensor of shape (n_references, n_members)
            As of `match`.
        threshold : float
            In units of the picture.

        Returns
        -------
        Tensor of shape (\\*channels, \\*shape)
        """
        channels, n_members = picture.reshape(1, -1, *self.shape), groups.shape[1]
        patches = unfold(channels, self.sides)[0].T.contiguous()
        n_cells = patches.shape[1]
        total = torch.zeros_like(patches)
        count = torch.zeros_like(patches[:, 0])
        for block in groups.split(max(1, self.block // (4 * n_cells * n_members))):
            places = block.flatten()
            group = patches.index_select(0, places).view(-1, n_members, n_cells)
            lower = lower_rank(group, threshold)
            total.index_add_(0, places, lower.view(-1, n_cells))
            count.index_add_(0, places, torch.ones_like(places, dtype=count.dtype))
        spread = count.expand(n_cells // len(channels[0]), -1)
        cells = [fold(each[None], self.shape, self.sides) for each in (total.T, spread)]
        mean = cells[0] / cells[1].clamp_min(1)
        return torch.where(cells[1] > 0, mean, channels).view_as(picture)


def _eigh(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Of many small matrices, which on CPUs LAPACK takes one by one: in threads."""
    n_threads = torch.get_num_threads()
    if gram.is_cuda or n_threads == 1 or gram.ndim != 3 or len(gram) < FEW:
        return tuple(torch.linalg.eigh(gram))
    with ThreadPoolExecutor(n_threads) as pool:
        parts = zip(*pool.map(torch.linalg.eigh, gram.chunk(n_threads)), strict=True)
    values, vectors = map(torch.cat, parts)
    return values, vectors


def lower_rank(groups: Tensor, threshold: float) -> Tensor:
    """Weighted shrinkage of the singular values of groups around their mean.

    Parameters
    ----------
    groups : Tensor of shape (\\*batch, n_members, n_cells)
        Each row is a patch.
    threshold : float
        As in `PatchGroups.shrink`; zero changes nothing.

    Returns
    -------
    Tensor of shape (\\*batch, n_members, n_cells)
    """
    mean = groups.mean(-2, keepdim=True)
    centered = groups - mean
    n_members, n_cells = groups.shape[-2:]
    wide = n_cells > n_members  # the smaller Gram matrix has all singular values
    gram = (centered @ centered.mT if wide else centered.mT @ centered) / n_members
    variance, directions = _eigh(gram)
    tiny = torch.finfo(groups.dtype).tiny
    root = 1 - 4 * threshold**2 / variance.clamp_min(tiny)
    factor = torch.where(root > 0, (1 + root.clamp_min(0).sqrt()) / 2, 0)
    shrunk = (directions * factor[..., None, :]) @ directions.mT
    parts = (shrunk, centered) if wide else (centered, shrunk)
    return torch.baddbmm(mean, *parts)
