"""How well a completion fits the observed cells."""

from __future__ import annotations

from torch import Tensor

from skmc.cells import Observed
from skmc.terms.term import Term, inner


class SquaredError(Term):
    r"""``1/2 |P(X - M)|_F^2``, half the *sum* over the observed cells.

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

    def prox(self, V: Tensor, step: float) -> Tensor:
        return (V + step * self.data.values) / (1 + step * self.data.indicator)

    def select(self, members: Tensor) -> None:
        self.data = self.data.select(members)
