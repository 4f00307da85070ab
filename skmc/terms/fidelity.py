"""How well a completion fits the observed cells."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import Randomness
from skmc.terms.term import Term, inner, per_member, random_observed


class SquaredError(Term):
    r"""Half the *sum* of squared errors over the observed cells.

    .. math::

        F(X) = \tfrac12 \|P(X - M)\|_F^2

    Parameters
    ----------
    data : Observed
        The observed cells of ``M``.
    """

    def __init__(self, data: Observed):
        super().__init__()
        self.data = data

    def forward(self, X: Tensor) -> Tensor:
        residual = self.data.residual(X)
        return 0.5 * inner(residual, residual)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        residual = self.data.residual(X)
        return 0.5 * inner(residual, residual), residual

    def grad(self, X: Tensor) -> Tensor:
        return self.data.residual(X)

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        step = per_member(step, V)
        return (V + step * self.data.values) / (1 + step * self.data.indicator)

    def select(self, members: Tensor) -> None:
        self.data = self.data.select(members)

    @classmethod
    def examples(cls, shape: tuple[int, int], rng: Randomness) -> Sequence[Term]:
        return [cls(Observed(*random_observed(shape, rng)))]
