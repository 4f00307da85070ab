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
        = \tfrac12 \sum_{ij} w_{ij} (X_{ij} - M_{ij})^2

    where :math:`w_{ij}` is 1 at observed cells and 0 at others. Weights of ``data``
    replace the 1.

    Parameters
    ----------
    data : Observed
        The observed cells of ``M``, and how often each counts.
    """

    def __init__(self, data: Observed):
        super().__init__()
        self.data = data

    def forward(self, X: Tensor) -> Tensor:
        return 0.5 * self.data.misfit(X)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        residual = self.data.residual(X)
        grad = self.data.weighted(residual)
        return 0.5 * inner(residual, grad), grad

    def grad(self, X: Tensor) -> Tensor:
        return self.data.weighted(self.data.residual(X))

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        step = per_member(step, V)
        times = step * self.data.times
        return (V + times * self.data.values) / (1 + times)

    def select(self, members: Tensor) -> None:
        self.data = self.data.select(members)

    @classmethod
    def examples(cls, shape: tuple[int, int], rng: Randomness) -> Sequence[Term]:
        values, mask = random_observed(shape, rng)
        weights = rng.normal(*shape, std=1.0).square()
        return [
            cls(Observed(values, mask)),
            cls(Observed(values, mask, weights=weights)),
        ]
