"""Few non-zero entries, and entries within bounds."""

from __future__ import annotations

import torch
from torch import Tensor

from skmc.terms.term import Term, per_member


class L1Norm(Term):
    r"""``weight sum |X_ij|``, the *sum* of absolute values.

    Parameters
    ----------
    weight : float >= 0, or Tensor of shape (\*batch,)
        Multiplies the sum.
    """

    def __init__(self, weight: float | Tensor):
        super().__init__()
        self.register_buffer("weight", torch.as_tensor(weight, dtype=torch.float64))
        self.weight: Tensor

    def forward(self, X: Tensor) -> Tensor:
        return self.weight.to(X) * X.abs().sum((-2, -1))

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The subgradient at zero is zero.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        tuple of Tensor
        """
        return self(X), per_member(self.weight, X) * X.sign()

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        """Soft thresholding, ``sign(V) max(|V| - step weight, 0)``.

        Parameters
        ----------
        V : Tensor of shape (\\*batch, n_rows, n_cols)
            The point.
        step : float or Tensor
            Its length.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        threshold = per_member(step * self.weight, V)
        return V - torch.clamp(V, -threshold, threshold)


class Box(Term):
    """Zero where every ``|X_ij| <= bound``, infinite elsewhere.

    Parameters
    ----------
    bound : float > 0
        Of the absolute values.
    """

    def __init__(self, bound: float):
        super().__init__()
        self.bound = bound

    def forward(self, X: Tensor) -> Tensor:
        outside = X.abs().amax((-2, -1)) > self.bound
        return (0 * X.sum((-2, -1))).masked_fill(outside, torch.inf)

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        """The nearest point of the box, whatever the step.

        Parameters
        ----------
        V : Tensor of shape (\\*batch, n_rows, n_cols)
            The point.
        step : float or Tensor
            Its length.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        return V.clamp(-self.bound, self.bound)
