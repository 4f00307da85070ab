"""Singular value shrinkage."""

from __future__ import annotations

import torch
from torch import Tensor

from skmc.linalg.low_rank import SparsePlusLowRank
from skmc.linalg.svd import CROSSOVER, EXTRA, STEPS, SVD, full_svd, partial_svd

# Eigenvalues of A'A resolve singular values down to this share of the largest.
GRAM_LIMIT = 1e-5
# The same limit in single precision, for a matrix rather than its singular vectors.
SINGLE_LIMIT = 5e-3


def shrink(
    A: Tensor | SparsePlusLowRank,  # (*batch, m, n)
    tau: float | Tensor,  # (*batch,)
    *,
    warm_start: SVD | None = None,
    max_rank: int | None = None,
    tol: float = 1e-6,
    max_steps: int | None = None,
) -> SVD:
    """``D_tau(A)``: subtracts ``tau`` from singular values and drops smaller ones.

    This is the proximal operator of the nuclear norm,
    ``argmin_X tau |X|_* + 1/2 |X - A|_F^2``. It needs only the singular values above
    ``tau`` and takes the cheapest of three ways:

    - the largest values by `partial_svd`, where ``warm_start`` predicts that they are
      few; if all of them exceed ``tau``, more are computed, or all if they are many;
    - all values, from the eigenvalues of the smaller of ``A A'`` and ``A' A`` in double
      precision, unless ``tau`` is so small that squaring would lose it;
    - all values, by LAPACK.
    """
    most = min(A.shape[-2:])
    cap = most if max_rank is None else min(max_rank, most)
    sparse = isinstance(A, SparsePlusLowRank) and A.mostly_empty
    if sparse or (warm_start is not None and warm_start.rank and len(A.shape) == 2):
        rank = min(
            (warm_start.rank if warm_start else 0) + (EXTRA if max_steps else 1), cap
        )
        while sparse or rank + EXTRA <= CROSSOVER * most:
            start = None if warm_start is None else warm_start.V
            steps = max_steps or STEPS
            warm_start = partial_svd(
                A, rank, above=tau, start=start, tol=tol, max_steps=steps
            )
            if max_steps or warm_start.s[-1] <= tau or rank == cap:
                return subtracted(warm_start, tau, cap)
            rank = min(2 * rank + EXTRA, cap)
    if isinstance(A, SparsePlusLowRank):
        A = A.dense()
    return subtracted(_gram(A, tau), tau, cap)


def shrink_dense(
    A: Tensor,  # (*batch, m, n)
    tau: float | Tensor,  # (*batch,)
) -> tuple[Tensor, Tensor]:
    """``D_tau(A)`` as a matrix and its nuclear norm, without singular vectors.

    ``D_tau(A) = A f(A' A)`` with ``f(x) = max(1 - tau / sqrt(x), 0)`` of the smaller of
    the two Gram matrices. Where ``|A|_F <= tau``, the result is zero. The precision
    is double, or that of ``A`` where ``tau >= .005 |A|_F``: an error of 1e-7 in the
    squares then causes an error of at most 1e-5 in the result, relative to ``|A|_2``.
    """
    if A.shape[-2] < A.shape[-1]:
        X, norm = shrink_dense(A.mT, tau)
        return X.mT, norm
    if isinstance(tau, Tensor):
        tau = tau.to(A)
    size = torch.linalg.matrix_norm(A)
    if (size <= tau).all():
        return torch.zeros_like(A), torch.zeros_like(size)
    D = A if (SINGLE_LIMIT * size <= tau).all() else A.double()
    energy, V = torch.linalg.eigh(D.mT @ D)
    s = energy.clamp_min(0).sqrt()
    if (GRAM_LIMIT * s[..., -1] > tau).any():
        shrunk = subtracted(full_svd(A), tau, min(A.shape[-2:]))
        return shrunk.dense(), shrunk.s.sum(-1)
    less = (s - _beside(tau, s)).clamp_min(0)
    share = less / s.clamp_min(torch.finfo(s.dtype).tiny)
    filtered = (V * share[..., None, :]) @ V.mT
    return A @ filtered.to(A.dtype), less.sum(-1).to(A.dtype)


def _beside(tau: float | Tensor, s: Tensor) -> float | Tensor:
    """A threshold of each member beside its singular values."""
    return tau[..., None].to(s) if isinstance(tau, Tensor) else tau


def subtracted(
    found: SVD,
    tau: float | Tensor,  # (*batch,)
    cap: int,
) -> SVD:
    """Subtract ``tau`` from singular values, and drop the smaller ones."""
    s = (found.s - _beside(tau, found.s)).clamp_min(0)
    rank = int((s > 0).sum(-1).max())
    return SVD(found.U, s, found.V).first(min(rank, cap))


def _gram(A: Tensor, tau: float | Tensor) -> SVD:
    """All singular values, accurate where they exceed ``tau``."""
    if A.shape[-2] < A.shape[-1]:
        transposed = _gram(A.mT, tau)
        return SVD(transposed.V, transposed.s, transposed.U)
    D = A.double()
    energy, V = torch.linalg.eigh(D.mT @ D)
    s = energy.flip(-1).clamp_min(0).sqrt()
    if (GRAM_LIMIT * s[..., 0] > tau).any():
        return full_svd(A)
    V = V.flip(-1)
    floor = GRAM_LIMIT * s[..., :1] + torch.finfo(s.dtype).tiny
    U = (D @ V) / s.clamp_min(floor)[..., None, :]
    return SVD(U, s, V).to(A.dtype)
