"""Penalties on differences of neighbouring cells."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from skmc.terms.term import Term, per_member


class TotalVariation(Term):
    r"""Anisotropic total variation, a *sum* over neighbouring cells.

    ``row_weight * sum |X[i+1, j] - X[i, j]| + col_weight * sum |X[i, j+1] - X[i, j]|``

    Parameters
    ----------
    row_weight, col_weight : Tensor of shape (\*batch,) or ()
        Non-negative; multiply the differences between rows and between columns.

    Notes
    -----
    `value_and_grad` returns the subgradient that is zero at equal neighbours.
    """

    row_weight: Tensor
    col_weight: Tensor
    member_axes: ClassVar[dict[str, int]] = {"row_weight": 0, "col_weight": 0}

    def __init__(self, row_weight=1.0, col_weight=1.0):
        super().__init__()
        for name, weight in (("row_weight", row_weight), ("col_weight", col_weight)):
            self.register_buffer(name, torch.as_tensor(weight, dtype=torch.float64))

    def forward(self, X: Tensor) -> Tensor:
        down = self.row_weight.to(X) * X.diff(dim=-2).abs().sum((-2, -1))
        return down + self.col_weight.to(X) * X.diff(dim=-1).abs().sum((-2, -1))

    @torch.no_grad()
    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        value = X.new_zeros(X.shape[:-2])
        grad = torch.zeros_like(X)
        for dim, weight in ((-2, self.row_weight), (-1, self.col_weight)):
            step = X.diff(dim=dim)
            value = value + weight.to(X) * step.abs().sum((-2, -1))
            sign = step.sign_().mul_(per_member(weight, X))
            length = sign.shape[dim]
            grad.narrow(dim, 1, length).add_(sign)
            grad.narrow(dim, 0, length).sub_(sign)
        return value, grad
