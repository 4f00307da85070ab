"""A low-rank matrix seen through one learned pointwise function."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skmc.randomness import Randomness


class LinkedFactorization(nn.Module):
    r"""``X = f(C)`` cell by cell, ``C = U V'``, with one link for all cells,

    ``f(c) = slope c + offset + sum_j heights[j] tanh(steeps[j] c + shifts[j])``.

    Parameters
    ----------
    U : Tensor of shape (\*batch, n_rows, rank)
    V : Tensor of shape (\*batch, n_cols, rank)
    heights, steeps, shifts : Tensor of shape (\*batch, 1, n_units)
    """

    def __init__(
        self, U: Tensor, V: Tensor, heights: Tensor, steeps: Tensor, shifts: Tensor
    ):
        super().__init__()
        self.U, self.V = nn.Parameter(U), nn.Parameter(V)
        self.slope = nn.Parameter(torch.ones_like(heights[..., :1]))
        self.offset = nn.Parameter(torch.zeros_like(heights[..., :1]))
        self.heights = nn.Parameter(heights)
        self.steeps = nn.Parameter(steeps)
        self.shifts = nn.Parameter(shifts)

    @classmethod
    def near(
        cls, U: Tensor, V: Tensor, n_units: int, draw: Randomness
    ) -> LinkedFactorization:
        """A link that is nearly the identity: heights N(0, .1^2), the rest N(0, 1)."""
        units = [draw.normal(1, n_units, std).to(U) for std in (0.1, 1.0, 1.0)]
        return cls(U, V, *units)

    def latent(self) -> Tensor:
        """``C``, shape ``(*batch, n_rows, n_cols)``."""
        return self.U @ self.V.mT

    def link(self, C: Tensor) -> Tensor:
        return _Link.apply(
            C, self.slope, self.offset, self.heights, self.steeps, self.shifts
        )

    def link_and_slope(self, C: Tensor) -> tuple[Tensor, Tensor]:
        """``f(C)`` and ``f'(C)``, without a graph."""
        X = self.slope * C + self.offset
        slope = self.slope.expand_as(C).clone()
        for height, steep, shift in _units(self.heights, self.steeps, self.shifts):
            t = torch.tanh(C * steep + shift)
            X += height * t
            slope += (height * steep) * (1 - t * t)
        return X, slope

    def forward(self) -> Tensor:  # (*batch, n_rows, n_cols)
        return self.link(self.latent())


class _Link(torch.autograd.Function):
    """Unit by unit, so that no more than a few matrices are held at once."""

    @staticmethod
    def forward(ctx, C, slope, offset, heights, steeps, shifts):
        ctx.save_for_backward(C, slope, heights, steeps, shifts)
        X = torch.addcmul(offset, slope, C)
        for height, steep, shift in _units(heights, steeps, shifts):
            X.addcmul_(height, torch.addcmul(shift, steep, C).tanh_())
        return X

    @staticmethod
    def backward(ctx, *grads):
        (G,) = grads
        C, slope, heights, steeps, shifts = ctx.saved_tensors
        dC = slope * G
        dheights, dsteeps, dshifts = [], [], []
        for height, steep, shift in _units(heights, steeps, shifts):
            t = torch.addcmul(shift, steep, C).tanh_()
            dheights.append(_sum(t * G))
            bend = t.mul_(t).neg_().add_(1).mul_(G).mul_(height)
            dshifts.append(_sum(bend))
            dsteeps.append(_sum(bend * C))
            dC.addcmul_(steep, bend)
        units = [torch.cat(parts, -1) for parts in (dheights, dsteeps, dshifts)]
        return dC, _sum(G * C), _sum(G), *units


def _units(*rows: Tensor) -> list[tuple[Tensor, ...]]:
    """One unit after the other, each number of shape ``(*batch, 1, 1)``."""
    return list(zip(*(row.split(1, -1) for row in rows), strict=True))


def _sum(cells: Tensor) -> Tensor:
    return cells.sum((-2, -1), keepdim=True)
