"""How well a matrix agrees with linear measurements of it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Protocol

from torch import Tensor

from skmc.linalg import Randomness
from skmc.terms.term import Term


class LinearMap(Protocol):
    """Measurements ``A``, such as those in `skmc.sensing`."""

    def forward(self, X: Tensor) -> Tensor:
        """``<A_i, X>``: (\\*batch, n_rows, n_cols) -> (\\*batch, n).

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor
        """

    def adjoint(self, r: Tensor) -> Tensor:
        """``sum_i r_i A_i``: (\\*batch, n) -> (\\*batch, n_rows, n_cols).

        Parameters
        ----------
        r : Tensor of shape (\\*batch, n)
            Weights.

        Returns
        -------
        Tensor
        """


class MeasurementError(Term):
    r"""Half the *sum* of squared errors over measurements.

    .. math::

        F(X) = \tfrac12 \sum_i (y_i - \langle A_i, X\rangle)^2, \qquad
        \nabla F(X) = A^*(A X - y)

    Parameters
    ----------
    operator : object with ``forward`` and ``adjoint``, see `skmc.sensing`
        The measurements ``A_i``.
    y : Tensor of shape (\*batch, n)
        Their results.
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

    @classmethod
    def examples(cls, shape: tuple[int, int], rng: Randomness) -> Sequence[Term]:
        A = Randomness.of([0], (), rng.dtype).normal(5, shape[0] * shape[1], std=1.0)
        operator = SimpleNamespace(
            forward=lambda X: X.flatten(-2) @ A.mT,
            adjoint=lambda r: (r @ A).unflatten(-1, shape),
        )
        return [cls(operator, rng.normal(1, 5, std=1.0)[..., 0, :])]
