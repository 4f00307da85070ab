"""Smooth interpolation of holes from their boundary."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad

SWEEPS = 30  # Jacobi sweeps on each level


def diffuse(
    values: Tensor,  # (n_rows, n_cols)
    mask: Tensor,
) -> Tensor:  # (n_rows, n_cols)
    """Fill holes with a nearly harmonic function, coarse to fine.

    A pyramid holds the means of the known cells at coarser and coarser levels. On each
    level, the cells without a mean are interpolated from the level above and smoothed:
    each becomes the mean of its four neighbors, repeatedly. The cost is linear in the
    number of cells.
    """
    weight = mask.to(values.dtype)
    return _fill(values * weight, weight)


def halve(
    values: Tensor,  # (n_channels, n_rows, n_cols)
    mask: Tensor,
) -> tuple[Tensor, Tensor]:
    """Means of the known cells of each 2 x 2 block, and a mask of blocks with one."""
    weight = mask.to(values.dtype)
    sums, weight = _halves(values * weight), _halves(weight)
    return sums / weight.clamp_min(torch.finfo(sums.dtype).tiny), weight > 0


def double(
    values: Tensor,  # (n_channels, n_rows, n_cols)
    shape: tuple[int, int],
) -> Tensor:  # (n_channels, *shape)
    """Interpolate a picture bilinearly to twice its size."""
    larger = interpolate(
        values[None], scale_factor=2, mode="bilinear", align_corners=False
    )
    return larger[0, :, : shape[0], : shape[1]]


def _halves(cells: Tensor) -> Tensor:
    """Means of 2 x 2 blocks; zeros are appended to an odd side."""
    even = (0, cells.shape[-1] % 2, 0, cells.shape[-2] % 2)
    return avg_pool2d(pad(cells, even), 2)


def _fill(sums: Tensor, weight: Tensor) -> Tensor:
    seen, values = weight > 0, sums / weight.clamp_min(torch.finfo(sums.dtype).tiny)
    if sums.numel() == 1:
        return values
    above = _fill(*(_halves(each[None])[0] for each in (sums, weight)))
    smooth = double(above[None], (sums.shape[0], sums.shape[1]))[0]
    filled = torch.where(seen, values, smooth)
    kernel = sums.new_tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])[None, None] / 4
    for _ in range(SWEEPS):
        around = conv2d(pad(filled[None, None], [1] * 4, mode="replicate"), kernel)
        filled = torch.where(seen, values, around[0, 0])
    return filled
