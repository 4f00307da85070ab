"""Groups of similar patches of a picture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import fold, pad, unfold

# Numbers of an intermediate result: 32 MiB in single precision.
BLOCK = 2**23
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

    def match(self, picture: Tensor) -> Tensor:
        """The most similar patches to each reference, itself among them.

        Parameters
        ----------
        picture : Tensor of shape (\\*channels, \\*shape)
            Finite everywhere.

        Returns
        -------
        int64 Tensor of shape (n_references, n_members)
            Positions of upper left corners, numbered along rows.
        """
        picture = picture.reshape(-1, *self.shape)
        rows, cols = self._grid(0), self._grid(1)
        n_shifts = (2 * self.radius + 1) ** 2
        n_lines = max(1, self.block // (n_shifts * len(cols)))
        return torch.cat(
            [
                self._match(picture, rows[start : start + n_lines], cols)
                for start in range(0, len(rows), n_lines)
            ]
        )

    def _match(self, picture: Tensor, rows: list[int], cols: list[int]) -> Tensor:
        radius, (height, width) = self.radius, self.sides
        n_shifts, n_cols, device = 2 * radius + 1, self.shape[1], picture.device
        top, bottom = rows[0], rows[-1] + height
        y = torch.tensor(rows, device=device)
        x = torch.tensor(cols, device=device)
        padded = pad(picture, [radius] * 4)
        distance = picture.new_empty(len(cols), len(rows), n_shifts, n_shifts)
        for down in range(n_shifts):
            # (lines, n_shifts, n_cols): all shifts to the side at once
            squares = picture.new_zeros(bottom - top, n_shifts, n_cols)
            for own, others in zip(picture, padded, strict=True):
                shifted = others[top + down : bottom + down].unfold(1, n_cols, 1)
                squares += (shifted - own[top:bottom, None]).square_()
            columns = _sums(squares, y - top, height).permute(2, 0, 1).contiguous()
            distance[:, :, down] = _sums(columns, x, width)
        shift = torch.arange(-radius, radius + 1, device=device)
        outside = [
            (at[:, None] + shift < 0) | (at[:, None] + shift >= places)
            for at, places in zip((y, x), self.n_positions, strict=True)
        ]
        distance.masked_fill_(outside[0][None, :, :, None], torch.inf)
        distance.masked_fill_(outside[1][:, None, None, :], torch.inf)
        distance[:, :, radius, radius] = -1  # itself, also where all patches are equal
        found = distance.flatten(2).topk(self.n_members, largest=False, sorted=False)[1]
        corner_row = y[None, :, None] + found // n_shifts - radius
        corner_col = x[:, None, None] + found % n_shifts - radius
        return (corner_row * self.n_positions[1] + corner_col).flatten(0, 1)

    def shrink(self, picture: Tensor, groups: Tensor, threshold: float) -> Tensor:
        r"""Mean over groups of their patches, each group made of lower rank.

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
        return (cells[0] / cells[1]).view_as(picture)


def _eigh(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Of many small matrices, which on CPUs LAPACK takes one by one: in threads."""
    n_threads = torch.get_num_threads()
    if gram.is_cuda or n_threads == 1 or gram.ndim != 3 or len(gram) < FEW:
        return tuple(torch.linalg.eigh(gram))
    with ThreadPoolExecutor(n_threads) as pool:
        parts = zip(*pool.map(torch.linalg.eigh, gram.chunk(n_threads)), strict=True)
    values, vectors = map(torch.cat, parts)
    return values, vectors


def _sums(lines: Tensor, starts: Tensor, length: int) -> Tensor:
    """Sums over ``length`` lines from each start on."""
    total = lines.index_select(0, starts)
    for shift in range(1, length):
        total += lines.index_select(0, starts + shift)
    return total


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
