"""A few steps of conjugate gradients for several right sides."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def conjugate_gradients(
    system: Callable[[Tensor], Tensor],
    right: Tensor,  # (p, k)
    start: Tensor | None,  # (p, k)
    n_steps: int,
    accuracy: Tensor | None = None,  # ()
    precondition: Callable[[Tensor], Tensor] = lambda residual: residual,
) -> tuple[Tensor, Tensor]:
    """Approximate ``Z`` with ``system(Z) = right``.

    Every step lowers ``<Z, system(Z)> / 2 - <right, Z>`` in each column.
    """
    tiny = torch.finfo(right.dtype).tiny
    Z = torch.zeros_like(right) if start is None else start
    residual = right if start is None else right - system(start)
    direction = close = precondition(residual)
    energy = (residual * close).sum(0)
    share = None  # of the last direction in the next one
    for _ in range(n_steps):
        if accuracy is not None and (energy <= accuracy).all():
            break
        if share is not None:
            direction = torch.addcmul(close, share, direction)
        image = system(direction)
        length = energy / (direction * image).sum(0).clamp_min(tiny)
        Z = torch.addcmul(Z, length, direction)
        residual = torch.addcmul(residual, length, image, value=-1)
        close = precondition(residual)
        before, energy = energy, (residual * close).sum(0)
        share = energy / before.clamp_min(tiny)
    return Z, residual
