"""The steps of `DSVD`: their objective and their lengths."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from skmc.inverses.stiefel import Skew


def objective(
    M: Tensor,  # (*batch, m, n)
    U: Tensor,  # (*batch, m, r)
    V: Tensor,  # (*batch, n, r)
) -> Tensor:  # (*batch,)
    r"""``1/2 |offdiag(U' M V)|_F^2 - <M, U V'>``, shape ``(\*batch,)``."""
    product = U.mT @ M @ V
    return offdiag(product).square().sum((-2, -1)) / 2 - _trace(product)


def offdiag(
    A: Tensor,  # (*batch, r, r)
) -> Tensor:  # (*batch, r, r)
    """A square matrix with zeros on its diagonal."""
    return A - torch.diag_embed(A.diagonal(dim1=-2, dim2=-1))


def random_orthonormal(
    shape: tuple[int, ...], like: Tensor, generator: torch.Generator
) -> Tensor:
    """Draw uniformly from the Stiefel manifold, with dtype and device of ``like``."""
    draws = torch.randn(shape, generator=generator, dtype=torch.float64)
    Q, R = torch.linalg.qr(draws)
    Q = Q * R.diagonal(dim1=-2, dim2=-1).sign()[..., None, :]
    return Q.to(like)


def scaled(
    M: Tensor,  # (*batch, m, n)
) -> Tensor:  # (*batch, m, n)
    """Scale singular values to a root mean square of 1, which removes the unit."""
    unit = M.detach().abs().amax((-2, -1), keepdim=True)
    M = M / torch.where(unit > 0, unit, 1)
    size = torch.linalg.vector_norm(M, dim=(-2, -1), keepdim=True)
    return M * min(M.shape[-2:]) ** 0.5 / torch.where(size > 0, size, 1)


def step_of_side(
    U: Tensor,  # (*batch, m, r)
    MV: Tensor,  # (*batch, m, r)
    learned: Tensor,  # ()
    inverse: Callable[[Tensor], Tensor],
) -> Tensor:  # (*batch, m, r)
    """Take one step of ``U`` for the matrix ``M V``, or of ``V`` for ``M' U``."""
    product = U.mT @ MV
    eye = torch.eye(U.shape[-1], dtype=U.dtype, device=U.device)
    G = MV @ (offdiag(product.mT) - eye)
    P = Skew.of(U, G)
    best, longest = lengths(P, U, MV)
    step = torch.minimum(torch.maximum(best + learned, -2 * longest), 2 * longest)
    return P.step(U, step, inverse)


def lengths(
    P: Skew,
    U: Tensor,  # (*batch, m, r)
    MV: Tensor,  # (*batch, m, r)
) -> tuple[Tensor, Tensor]:
    """``min(2 / |P|, -f'(0) / f''(0))`` and ``2 / |P|``, both of shape ``(*batch,)``.

    ``|P|`` is ``(tr P^4 / 2)^(1/4)``, at least ``|P|_2`` since the eigenvalues of ``P``
    come in pairs, and ``f'(0) = -|P|_F^2 / 2``. If ``P`` is only rounding error, the
    length fades to zero: it would be a ratio of two errors, with a large derivative.
    """
    square = P.K @ P.K
    descent = -_trace(square) / 2
    fourth = (square * square.mT).sum((-2, -1)) / 2
    eps = torch.finfo(fourth.dtype).eps
    moving = fourth > eps**3
    longest = 2 / torch.where(moving, fourth, 1) ** 0.25
    PU, PMV = P @ U, P @ MV
    off = offdiag(U.mT @ MV)
    first, second = -PU.mT @ MV, -PU.mT @ PMV  # U' P M V and U' P^2 M V
    bend = offdiag(first).square().sum((-2, -1)) - _trace(second)
    bend = bend + (off * second).sum((-2, -1))
    convex = bend > 0
    best = descent / (torch.where(convex, bend, 1) + eps**1.25)
    return torch.where(convex & (best < longest), best, longest), longest


def _trace(A: Tensor) -> Tensor:
    return A.diagonal(dim1=-2, dim2=-1).sum(-1)
