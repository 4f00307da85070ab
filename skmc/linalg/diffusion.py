"""Filling holes smoothly from their boundary."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad

SWEEPS = 30  # of Jacobi's iteration on each level


def diffuse(values: Tensor, mask: Tensor) -> Tensor:
    """Fill holes with a nearly harmonic function, coarse to fine.

    On each level of a pyramid of known means, what the level does not know comes from
    the level above and is smoothed: each hole cell becomes the mean of its four
    neighbors, repeatedly. The cost is linear in the number of cells.

    Parameters
    ----------
    values : Tensor of shape (n_rows, n_cols)
        Floating-point; finite everywhere.
    mask : bool Tensor, same shape
        True where the value is known; at least once.

    Returns
    -------
    Tensor of shape (n_rows, n_cols)
        ``values`` where they are known.

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


def _fill(sums: Tensor, weight: Tensor) -> Tensor:
    n_rows, n_cols = sums.shape
    known, values = weight > 0, sums / weight.clamp_min(torch.finfo(sums.dtype).tiny)
    if sums.numel() == 1:
        return values
    even = (0, n_cols % 2, 0, n_rows % 2)
    coarse = [avg_pool2d(pad(each, even)[None], 2)[0] for each in (sums, weight)]
    above = interpolate(
        _fill(*coarse)[None, None],
        scale_factor=2,
        mode="bilinear",
        align_corners=False,
    )
    filled = torch.where(known, values, above[0, 0, :n_rows, :n_cols])
    kernel = sums.new_tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])[None, None] / 4
    for _ in range(SWEEPS):
        around = conv2d(pad(filled[None, None], [1] * 4, mode="replicate"), kernel)
        filled = torch.where(known, values, around[0, 0])
    return filled
