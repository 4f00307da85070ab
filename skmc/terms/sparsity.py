"""Few non-zero entries, and entries within bounds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from skmc.linalg import Randomness
from skmc.terms.term import Term, per_member, random_weight


class L1Norm(Term):
    r"""The weighted *sum* of absolute values.

    .. math::

        F(X) = \lambda \sum_{ij} |X_{ij}|

    Parameters
    ----------
    weight : float or Tensor of shape (\*batch,)
        ``lambda``, non-negative.

    Notes
    -----
    `value_and_grad` returns the subgradient that is zero at zero. `prox` is soft
    thresholding, ``sign(V) max(|V| - step lambda, 0)``.
    """

    weight: Tensor

    def __init__(self, weight: float | Tensor):
        super().__init__()
        self.add_weight("weight", weight)

    def forward(self, X: Tensor) -> Tensor:
        return self.weight.to(X) * X.abs().sum((-2, -1))

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self(X), per_member(self.weight, X) * X.sign()

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        threshold = per_member(step * self.weight, V)
        return V - torch.clamp(V, -threshold, threshold)

    @classmethod
    def examples(cls, shape: tuple[int, int], rng: Randomness) -> Sequence[Term]:
        return [cls(random_weight(rng))]


class Box(Term):
    """Zero where every ``|X_ij| <= bound``, infinite elsewhere.

    Parameters
    ----------
    bound : float > 0
        Largest absolute value allowed.

    Notes
    -----
    `prox` is the nearest point of the box, whatever the step.
    """

    def __init__(self, bound: float):
        super().__init__()
        self.bound = bound

    def forward(self, X: Tensor) -> Tensor:
        outside = X.abs().amax((-2, -1)) > self.bound
        return (0 * X.sum((-2, -1))).masked_fill(outside, torch.inf)

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        return V.clamp(-self.bound, self.bound)

    @classmethod
    def examples(cls, shape: tuple[int, int], rng: Randomness) -> Sequence[Term]:
        return [cls(4.0)]
