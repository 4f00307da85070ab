"""Smooth interpolation of holes from their boundary."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad

SWEEPS = 30  # Jacobi sweeps on each level


def diffuse(values: Tensor, mask: Tensor) -> Tensor:
    """Fill holes with a nearly harmonic function, coarse to fine.

    A pyramid holds the means of the known cells at coarser and coarser levels. On each
    level, the cells without a mean are interpolated from the level above and smoothed:
    each becomes the mean of its four neighbors, repeatedly. The cost is linear in the
    number of cells.

    Parameters
    ----------
    values : Tensor of shape (n_rows, n_cols)
        Floating-point; finite everywhere.
    mask : bool Tensor, same shape
        True where the value is known; at least one True.

    Returns
    -------
    Tensor of shape (n_rows, n_cols)
        ``values`` where they are known, the interpolation elsewhere.

    Examples
    --------
    >>> import torch
    >>> from skmc.linalg import diffuse
    >>> known = torch.tensor([[True, False, True]])
    >>> diffuse(torch.tensor([[1.0, 0.0, 3.0]]), known)
    tensor([[1., 2., 3.]])
    """
    weight = mask.to(values.dtype)
    return _fill(values * weight, weight)


def halve(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Means of the known cells of each 2 x 2 block, and a mask of blocks with one.

    Parameters
    ----------
    values : Tensor of shape (n_channels, n_rows, n_cols)
        Floating-point; finite everywhere.
    mask : bool Tensor, same shape
        True where the value is known.

    Returns
    -------
    values : Tensor of shape (n_channels, ceil(n_rows / 2), ceil(n_cols / 2))
    mask : bool Tensor, same shape
    """
    weight = mask.to(values.dtype)
    sums, weight = _halves(values * weight), _halves(weight)
    return sums / weight.clamp_min(torch.finfo(sums.dtype).tiny), weight > 0


def double(values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Interpolate a picture bilinearly to twice its size.

    Parameters
    ----------
    values : Tensor of shape (n_channels, n_rows, n_cols)
        Floating-point.
    shape : tuple of int
        Shape of the result: twice that of ``values``, or one less.

    Returns
    -------
    Tensor of shape (n_channels, \\*shape)
    """
    larger = interpolate(
        values[None], scale_factor=2, mode="bilinear", align_corners=False
    )
    return larger[0, :, : shape[0], : shape[1]]


def _halves(cells: Tensor) -> Tensor:
    """Means of 2 x 2 blocks; zeros are appended to an odd side."""
    even = (0, cells.shape[-1] % 2, 0, cells.shape[-2] % 2)
    return avg_pool2d(pad(cells, even), 2)


def _fill(sums: Tensor, weight: Tensor) -> Tensor:
    known, values = weight > 0, sums / weight.clamp_min(torch.finfo(sums.dtype).tiny)
    if sums.numel() == 1:
        return values
    above = _fill(*(_halves(each[None])[0] for each in (sums, weight)))
    smooth = double(above[None], (sums.shape[0], sums.shape[1]))[0]
    filled = torch.where(known, values, smooth)
    kernel = sums.new_tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])[None, None] / 4
    for _ in range(SWEEPS):
        around = conv2d(pad(filled[None, None], [1] * 4, mode="replicate"), kernel)
        filled = torch.where(known, values, around[0, 0])
    return filled
