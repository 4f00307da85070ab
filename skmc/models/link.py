"""A low-rank matrix transformed by a learned pointwise function."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from skmc.linalg import Randomness

BLOCK = 2**13  # cells
KEPT = 2**24  # largest number of tanh values that a graph keeps


class LinkedFactorization(nn.Module):
    r"""A low-rank matrix transformed cell by cell by a learned function, the link.

    .. math::

        X_{ij} = f(C_{ij}), \quad C = U V^\top, \qquad
        f(c) = \text{slope}\, c + \text{offset}
               + \sum_j \text{heights}_j \tanh(\text{steeps}_j c + \text{shifts}_j)

    Parameters
    ----------
    U : Tensor of shape (\*batch, n_rows, rank)
        Factors of the rows.
    V : Tensor of shape (\*batch, n_cols, rank)
        Factors of the columns.
    heights, steeps, shifts : Tensor of shape (\*batch, 1, n_units)
        Parameters of the units.
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
    def nearly_linear(
        cls,
        U: Tensor,  # (*batch, n_rows, rank)
        V: Tensor,  # (*batch, n_cols, rank)
        n_units: int,
        rng: Randomness,
    ) -> LinkedFactorization:
        """Draw a link near the identity: heights N(0, .1^2), the rest N(0, 1)."""
        units = [rng.normal(1, n_units, std).to(U) for std in (0.1, 1.0, 1.0)]
        return cls(U, V, *units)

    def latent(self) -> Tensor:  # (*batch, n_rows, n_cols)
        """``C``, shape ``(*batch, n_rows, n_cols)``."""
        return self.U @ self.V.mT

    def link(
        self,
        C: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        """Apply the link to every cell."""
        return _Link.apply(
            C, self.slope, self.offset, self.heights, self.steeps, self.shifts
        )

    @torch.no_grad()
    def link_and_slope(
        self,
        C: Tensor,  # (*batch, n_rows, n_cols)
    ) -> tuple[Tensor, Tensor]:
        """``f(C)`` and ``f'(C)``, without a graph."""
        blocks = []
        for c in _blocks(C):
            T = _bent(c, self.steeps, self.shifts)
            x = self.slope * c + self.offset + self.heights @ T
            blocks.append(
                (x, self.slope + (self.heights * self.steeps) @ (1 - T.square()))
            )
        X, slope = (
            torch.cat(part, -1).view_as(C) for part in zip(*blocks, strict=True)
        )
        return X, slope

    @property
    def n_held(self) -> int:
        """Number of elements that `decode` holds in memory for each row."""
        return self.V.numel()

    def decode(
        self,
        u: Tensor,  # (k, rank)
    ) -> tuple[Tensor, Tensor]:
        """Rows ``f(V u)`` of ``u (k, rank)`` and derivatives (k, n_cols, rank)."""
        X, slope = self.link_and_slope(u @ self.V.mT)
        return X, slope[..., None] * self.V

    def forward(self) -> Tensor:  # (*batch, n_rows, n_cols)
        return self.link(self.latent())


class _Link(torch.autograd.Function):
    """The link, computed in blocks of cells whose unit outputs fit in the cache."""

    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> Tensor:
        C, slope, offset, heights, steeps, shifts = given
        ctx.save_for_backward(C, slope, heights, steeps, shifts)
        X = torch.addcmul(offset, slope, C)
        ctx.bent = []
        for c, x in zip(_blocks(C), _blocks(X), strict=True):
            T = _bent(c, steeps, shifts)
            x += heights @ T
            if C.numel() * heights.shape[-1] <= KEPT:
                ctx.bent.append(T)
        return X

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        C, slope, heights, steeps, shifts = ctx.saved_tensors
        G = grads[0].contiguous()
        dC = slope * G
        dheights, dsteeps, dshifts = (torch.zeros_like(heights) for _ in range(3))
        blocks = (_blocks(cells) for cells in (C, G, dC))
        for k, (c, g, d) in enumerate(zip(*blocks, strict=True)):
            T = ctx.bent[k] if ctx.bent else _bent(c, steeps, shifts)
            dheights += g @ T.mT
            bend = T.square().neg_().add_(1).mul_(g)
            dsteeps += c @ bend.mT
            dshifts += bend.sum(-1)[..., None, :]
            d += (heights * steeps) @ bend
        sums = [(G * C).sum((-2, -1), keepdim=True), G.sum((-2, -1), keepdim=True)]
        return dC, *sums, dheights, heights * dsteeps, heights * dshifts


def _blocks(cells: Tensor) -> tuple[Tensor, ...]:
    """Views ``(*batch, 1, n_cells)`` of at most `BLOCK` cells."""
    flat = cells.view(*cells.shape[:-2], 1, -1)
    return flat.split(max(1, BLOCK // max(1, cells.shape[:-2].numel())), -1)


def _bent(c: Tensor, steeps: Tensor, shifts: Tensor) -> Tensor:
    """Output of every unit for some cells, ``(*batch, n_units, n_cells)``."""
    if c.is_cuda:
        return torch.addcmul(shifts.mT, steeps.mT, c).tanh_()
    # tanh a = 2 / (1 + exp(-2a)) - 1. On a CPU, Torch's sigmoid takes a sixth of the
    # time of its tanh, and the results agree up to the rounding of 1.
    doubled = torch.addcmul(2 * shifts.mT, 2 * steeps.mT, c)
    return doubled.sigmoid_().mul_(2).sub_(1)
