"""How well a matrix agrees with linear measurements of it."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

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
    r"""``1/2 sum_i (y_i - <A_i, X>)^2``, half the *sum*; the slope is ``A*(A X - y)``.

    Parameters
    ----------
    operator : object with ``forward`` and ``adjoint``, see `skmc.sensing`
        The ``A_i``.
    y : Tensor of shape (\*batch, n)
        The results.
    """

    def __init__(self, operator: LinearMap, y: Tensor):
        super().__init__()
        self.operator = operator
        self.y = y

    def forward(self, X: Tensor) -> Tensor:
        return 0.5 * (self.operator.forward(X) - self.y).square().sum(-1)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        residual = self.operator.forward(X) - self.y
        return 0.5 * residual.square().sum(-1), self.operator.adjoint(residual)
