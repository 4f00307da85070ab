"""Norms of a matrix, of its singular values and of differences, and bounds."""

from __future__ import annotations

import torch
from torch import Tensor

from skmc.linalg import full_svd, shrink_dense
from skmc.terms.term import Term, inner, per_member


class Weighted(Term):
    """A function of the matrix times a weight.

    Parameters
    ----------
    weight : float or Tensor of shape (\\*batch,)
        Weight, non-negative.
    """

    weight: Tensor

    def __init__(self, weight: float | Tensor):
        super().__init__()
        self.add_weight("weight", weight)


class L1Norm(Weighted):
    r"""The weighted *sum* of absolute values.

    .. math::

        F(X) = \lambda \sum_{ij} |X_{ij}|

    Parameters
    ----------
    weight : float or Tensor of shape (\*batch,)
        Weight ``lambda``, non-negative.

    See Also
    --------
    SquaredNorm : Squares instead of absolute values.
    NuclearNorm : Absolute values of singular values.

    Notes
    -----
    `value_and_grad` returns the subgradient that is zero at zero. `prox` is soft
    thresholding, ``sign(V) max(|V| - step lambda, 0)``.
    """

    def forward(self, X: Tensor) -> Tensor:
        return self.weight.to(X) * X.abs().sum((-2, -1))

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self(X), per_member(self.weight, X) * X.sign()

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        threshold = per_member(step * self.weight, V)
        return V - torch.clamp(V, -threshold, threshold)


class SquaredNorm(Weighted):
    r"""Half the weighted *sum* of squares.

    .. math::

        F(X) = \frac{\lambda}{2} \|X\|_F^2

    Parameters
    ----------
    weight : float or Tensor of shape (\*batch,)
        Weight ``lambda``, non-negative.

    See Also
    --------
    L1Norm : Absolute values instead of squares.
    """

    def forward(self, X: Tensor) -> Tensor:
        return 0.5 * self.weight.to(X) * inner(X, X)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self(X), per_member(self.weight, X) * X

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        return V / (1 + per_member(step * self.weight, V))


class NuclearNorm(Weighted):
    r"""The nuclear norm: the weighted *sum* of singular values.

    .. math::

        F(X) = \lambda \|X\|_*

    Parameters
    ----------
    weight : float or Tensor of shape (\*batch,)
        Weight ``lambda``, non-negative.

    See Also
    --------
    L1Norm : Of the cells instead of singular values.
    skmc.SoftImputeCompleter : Completion with this penalty.

    Notes
    -----
    `value_and_grad` returns the subgradient ``lambda U V'`` of the singular vectors
    with ``s > 0``. `prox` subtracts ``step lambda`` from every singular value and sets
    negative results to zero.
    """

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


class Box(Term):
    """Zero where every ``|X_ij| <= bound``, infinite elsewhere.

    Parameters
    ----------
    bound : float > 0
        Largest absolute value allowed.

    See Also
    --------
    L1Norm : Has a proximal operator, too.

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


class TotalVariation(Term):
    r"""Anisotropic total variation, a *sum* over pairs of neighboring cells.

    .. math::

        F(X) = \lambda_r \sum_{ij} |X_{i+1,j} - X_{ij}|
             + \lambda_c \sum_{ij} |X_{i,j+1} - X_{ij}|

    Parameters
    ----------
    row_weight, col_weight : float or Tensor of shape (\*batch,), default=1.0
        Weights ``lambda_r`` and ``lambda_c``, non-negative.

    See Also
    --------
    DirichletEnergy : Squares of differences along a graph.

    Notes
    -----
    `value_and_grad` returns the subgradient that is zero at equal neighbors.
    """

    row_weight: Tensor
    col_weight: Tensor

    def __init__(
        self, row_weight: float | Tensor = 1.0, col_weight: float | Tensor = 1.0
    ):
        super().__init__()
        self.add_weight("row_weight", row_weight)
        self.add_weight("col_weight", col_weight)

    def forward(self, X: Tensor) -> Tensor:
        down = self.row_weight.to(X) * X.diff(dim=-2).abs().sum((-2, -1))
        return down + self.col_weight.to(X) * X.diff(dim=-1).abs().sum((-2, -1))

    @torch.no_grad()
    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        value = X.new_zeros(X.shape[:-2])
        grad = torch.zeros_like(X)
        for dim, weight in ((-2, self.row_weight), (-1, self.col_weight)):
            step = X.diff(dim=dim)
            value = value + weight.to(X) * step.abs().sum((-2, -1))
            sign = step.sign_().mul_(per_member(weight, X))
            length = sign.shape[dim]
            grad.narrow(dim, 1, length).add_(sign)
            grad.narrow(dim, 0, length).sub_(sign)
        return value, grad
