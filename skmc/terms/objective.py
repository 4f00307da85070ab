"""Objectives: the misfit of cells or measurements, and sums of terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from skmc.cells import Observed
from skmc.linalg import NeighborGraph
from skmc.terms.term import Term, inner, per_member


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
        Observed cells of ``M`` with their weights.

    See Also
    --------
    SquaredNorm : Without data.
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


class LinearMap(Protocol):
    """Linear measurements ``A``, such as those in `skmc.sensing`."""

    def forward(
        self,
        X: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:
        """``<A_i, X>``: (\\*batch, n_rows, n_cols) -> (\\*batch, n)."""

    def adjoint(
        self,
        r: Tensor,  # (*batch, n)
    ) -> Tensor:
        """``sum_i r_i A_i``: (\\*batch, n) -> (\\*batch, n_rows, n_cols)."""


class MeasurementError(Term):
    r"""Half the *sum* of squared errors over measurements.

    .. math::

        F(X) = \tfrac12 \sum_i (y_i - \langle A_i, X\rangle)^2, \qquad
        \nabla F(X) = A^*(A X - y)

    Parameters
    ----------
    operator : object with ``forward`` and ``adjoint``, see `skmc.sensing`
        Measurements ``A_i``.
    y : Tensor of shape (\*batch, n)
        Results of the measurements.
    """

    def __init__(self, operator: LinearMap, y: Tensor):
        super().__init__()
        self.operator = operator
        self.y = y
        self.batched("y", 1)

    def forward(self, X: Tensor) -> Tensor:
        return 0.5 * (self.operator.forward(X) - self.y).square().sum(-1)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        residual = self.operator.forward(X) - self.y
        return 0.5 * residual.square().sum(-1), self.operator.adjoint(residual)


class Sum(Term):
    r"""The sum :math:`\sum_k F_k(X)` of other terms.

    Parameters
    ----------
    terms : iterable of Term
        Terms to add, at least one.

    See Also
    --------
    Term : What it adds.
    """

    def __init__(self, terms: Iterable[Term]):
        super().__init__()
        self.terms = nn.ModuleList(terms)

    def __iter__(self) -> Iterator[Term]:
        return cast(Iterator[Term], iter(self.terms))

    @property
    def lags(self) -> bool:
        """Whether one of the terms lags."""
        return any(term.lags for term in self)

    def forward(self, X: Tensor) -> Tensor:
        return reduce(torch.add, (term(X) for term in self))

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        pairs = (term.value_and_grad(X) for term in self)
        value, grad = next(pairs)
        for more, its_grad in pairs:
            value, grad = value + more, grad.add_(its_grad)
        return value, grad

    def grad(self, X: Tensor) -> Tensor:
        return reduce(Tensor.add_, (term.grad(X) for term in self))

    def value(self, X: Tensor) -> Tensor:
        return reduce(torch.add, (term.value(X) for term in self))

    def select(self, members: Tensor) -> None:
        for term in self:
            term.select(members)

    def laplacians(self) -> dict[str, Tensor | NeighborGraph]:
        laplacians: dict[str, Tensor | NeighborGraph] = {}
        for term in self:
            laplacians |= term.laplacians()
        return laplacians
