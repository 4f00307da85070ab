"""Norms of the singular values."""

from __future__ import annotations

import torch
from torch import Tensor

from skmc.linalg import full_svd, shrink_dense
from skmc.terms.term import Term, inner, per_member


class SquaredNorm(Term):
    r"""``weight/2 |X|_F^2``, half the *sum* of squares.

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
        return 0.5 * self.weight.to(X) * inner(X, X)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self(X), per_member(self.weight, X) * X

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        return V / (1 + per_member(step * self.weight, V))


class NuclearNorm(Term):
    r"""``weight |X|_*``, the *sum* of singular values.

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
        return self.weight.to(X) * torch.linalg.svdvals(X).sum(-1)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``U V'`` of the singular vectors with ``s > 0``, times the weight.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        tuple of Tensor
        """
        svd = full_svd(X)
        tiny = torch.finfo(X.dtype).eps * max(X.shape[-2:]) * svd.s[..., :1]
        kept = (svd.s > tiny).to(X)[..., None, :]
        grad = per_member(self.weight, X) * ((svd.U * kept) @ svd.V.mT)
        return self.weight.to(X) * svd.s.sum(-1), grad

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        """Every singular value less ``step weight``.

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
        return self.prox_and_value(V, step)[0]

    def prox_and_value(self, V: Tensor, step: float | Tensor) -> tuple[Tensor, Tensor]:
        """``prox`` and the term's value there, of one `skmc.linalg.shrink_dense`.

        Parameters
        ----------
        V : Tensor of shape (\\*batch, n_rows, n_cols)
            The point.
        step : float or Tensor
            Its length.

        Returns
        -------
        tuple of Tensor
        """
        X, norm = shrink_dense(V, step * self.weight.to(V))
        return X, self.weight.to(V) * norm
