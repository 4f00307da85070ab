"""Norms of singular values."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from skmc.linalg import Randomness, full_svd, shrink_dense
from skmc.terms.term import Term, inner, per_member, random_weight


class SquaredNorm(Term):
    r"""Half the weighted *sum* of squares.

    .. math::

        F(X) = \frac{\lambda}{2} \|X\|_F^2

    Parameters
    ----------
    weight : float or Tensor of shape (\*batch,)
        ``lambda``, non-negative.
    """

    weight: Tensor

    def __init__(self, weight: float | Tensor):
        super().__init__()
        self.add_weight("weight", weight)

    def forward(self, X: Tensor) -> Tensor:
        return 0.5 * self.weight.to(X) * inner(X, X)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self(X), per_member(self.weight, X) * X

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        return V / (1 + per_member(step * self.weight, V))

    @classmethod
    def examples(cls, shape: tuple[int, int], rng: Randomness) -> Sequence[Term]:
        return [cls(random_weight(rng))]


class NuclearNorm(Term):
    r"""The nuclear norm: the weighted *sum* of singular values.

    .. math::

        F(X) = \lambda \|X\|_*

    Parameters
    ----------
    weight : float or Tensor of shape (\*batch,)
        ``lambda``, non-negative.

    Notes
    -----
    `value_and_grad` returns the subgradient ``lambda U V'`` of the singular vectors
    with ``s > 0``. `prox` subtracts ``step lambda`` from every singular value, but no
    more than the value itself.
    """

    weight: Tensor

    def __init__(self, weight: float | Tensor):
        super().__init__()
        self.add_weight("weight", weight)

    def forward(self, X: Tensor) -> Tensor:
        return self.weight.to(X) * torch.linalg.svdvals(X).sum(-1)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        svd = full_svd(X)
        tiny = torch.finfo(X.dtype).eps * max(X.shape[-2:]) * svd.s[..., :1]
        kept = (svd.s > tiny).to(X)[..., None, :]
        grad = per_member(self.weight, X) * ((svd.U * kept) @ svd.V.mT)
        return self.weight.to(X) * svd.s.sum(-1), grad

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        return self.prox_and_value(V, step)[0]

    def prox_and_value(self, V: Tensor, step: float | Tensor) -> tuple[Tensor, Tensor]:
        X, norm = shrink_dense(V, step * self.weight.to(V))
        return X, self.weight.to(V) * norm

    @classmethod
    def examples(cls, shape: tuple[int, int], rng: Randomness) -> Sequence[Term]:
        return [cls(random_weight(rng))]
