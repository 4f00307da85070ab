"""Penalties on differences between neighboring cells."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from skmc.linalg import Randomness
from skmc.terms.term import Term, per_member, random_weight


class TotalVariation(Term):
    r"""Anisotropic total variation, a *sum* over pairs of neighboring cells.

    .. math::

        F(X) = \lambda_r \sum_{ij} |X_{i+1,j} - X_{ij}|
             + \lambda_c \sum_{ij} |X_{i,j+1} - X_{ij}|

    Parameters
    ----------
    row_weight, col_weight : float or Tensor of shape (\*batch,), default=1.0
        ``lambda_r`` and ``lambda_c``, non-negative.

    Notes
    -----
    `value_and_grad` returns the subgradient that is zero at equal neighbors.
    """

    row_weight: Tensor
    col_weight: Tensor

    def __init__(
        self, row_weight: float | Tensor = 1.0, col_weight: float | Tensor = 1.0
    ):
        super().__init__()
        self.add_weight("row_weight", row_weight)
        self.add_weight("col_weight", col_weight)

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

    @classmethod
    def examples(cls, shape: tuple[int, int], rng: Randomness) -> Sequence[Term]:
        return [cls(random_weight(rng), random_weight(rng))]
