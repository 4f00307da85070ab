"""A network of rows with a wide bent layer and a linear way around it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SkipNetwork(nn.Module):
    r"""``f(x) = tanh(c W + b) D + c S + a`` with the code ``c = x E`` of a row ``x``.

    Parameters
    ----------
    encoder : Tensor of shape (n_cols, rank)
        ``E``.
    directions : Tensor of shape (rank, n_units)
        ``W``.
    shifts : Tensor of shape (1, n_units)
        ``b``.
    decoder : Tensor of shape (n_units, n_cols)
        ``D``.
    skip : Tensor of shape (rank, n_cols)
        ``S``.
    """

    def __init__(
        self,
        encoder: Tensor,
        directions: Tensor,
        shifts: Tensor,
        decoder: Tensor,
        skip: Tensor,
    ):
        super().__init__()
        self.encoder = nn.Parameter(encoder)
        self.directions = nn.Parameter(directions)
        self.shifts = nn.Parameter(shifts)
        self.decoder = nn.Parameter(decoder)
        self.skip = nn.Parameter(skip)
        self.offset = nn.Parameter(torch.zeros_like(skip[:1]))

    def forward(self, rows: Tensor) -> Tensor:  # (k, n_cols) -> (k, n_cols)
        code = rows @ self.encoder
        bent = torch.tanh(torch.addmm(self.shifts, code, self.directions))
        return torch.addmm(self.offset, bent, self.decoder) + code @ self.skip
