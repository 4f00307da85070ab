"""Singular values: all of them, the largest ones, and their shrinkage."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg.low_rank import LowRank, SparsePlusLowRank
from skmc.linalg.parts import Parts

STEPS = 200
KEPT = 4  # blocks kept before a restart
EXTRA = 10  # columns beyond the wanted rank, so that its last ones converge
# Above this share of all singular values, a full SVD is faster (measured).
CROSSOVER = 0.05


@dataclass(frozen=True, eq=False)
class SVD(Parts):
    """``U diag(s) V'`` with orthonormal columns and ``s`` descending.

    Parameters
    ----------
    U : Tensor of shape (\\*batch, m, rank)
        Left singular vectors.
    s : Tensor of shape (\\*batch, rank)
        Singular values.
    V : Tensor of shape (\\*batch, n, rank)
        Right singular vectors.
    """

    U: Tensor  # (*batch, m, rank)
    s: Tensor  # (*batch, rank)
    V: Tensor  # (*batch, n, rank)

    @classmethod
    def zero(
        cls,
        A: Tensor,  # (*batch, m, n)
    ) -> SVD:
        """The decomposition of rank 0 for the shape of ``A``."""
        return cls(A[..., :0], A[..., 0, :0], A.mT[..., :0])

    @property
    def rank(self) -> int:
        """Number of singular values."""
        return self.s.shape[-1]

    def first(self, rank: int) -> SVD:
        """The largest singular values and their vectors."""
        return SVD(self.U[..., :rank], self.s[..., :rank], self.V[..., :rank])

    def low_rank(self) -> LowRank:
        """The matrix as a product."""
        return LowRank(self.U * self.s[..., None, :], self.V)

    def dense(self) -> Tensor:  # (*batch, m, n)
        """Form the matrix."""
        return self.low_rank().dense()


def full_svd(
    A: Tensor,  # (*batch, m, n)
) -> SVD:
    """All singular values, by LAPACK (cuSOLVER on CUDA)."""
    U, s, Vh = torch.linalg.svd(A, full_matrices=False)
    return SVD(U, s, Vh.mT)


def svd_of(X: LowRank) -> SVD:
    """Singular values of a product, without those that are only rounding errors."""
    (Q, R), (P, S) = torch.linalg.qr(X.left), torch.linalg.qr(X.right)
    core = full_svd(R @ S.mT)
    eps = torch.finfo(core.s.dtype).eps * max(X.shape)
    rank = int((core.s > eps * core.s[:1]).sum())
    return SVD(Q @ core.U, core.s, P @ core.V).first(rank)


def partial_svd(
    A: Tensor | SparsePlusLowRank,  # (m, n)
    rank: int,
    *,
    above: float | Tensor = 0.0,
    start: Tensor | None = None,  # (n, k)
    tol: float = 1e-6,
    max_steps: int = STEPS,
) -> SVD:
    """The ``rank`` largest singular values, by a block Krylov iteration.

    An orthonormal ``Q`` starts as the span of ``A V`` and grows by the residuals
    ``A v - s u`` of the singular triplets of ``Q Q' A``. At four times the width of the
    block, it is restarted with the best triplets. The iteration stops when every
    triplet with ``s + |A v - s u| > above`` has ``|A v - s u| <= tol s_1``, or after
    ``max_steps``.
    """
    m, n = A.shape
    width = min(rank + EXTRA, m, n)
    Q, _ = torch.linalg.qr(A @ _block(A, width, start))
    B = A.mT @ Q
    tol = max(tol, 50 * torch.finfo(A.dtype).eps)
    for step in range(max_steps):
        V, s, Wh = torch.linalg.svd(B, full_matrices=False)
        U, s, V = Q @ Wh.mT[:, :width], s[:width], V[:, :width]
        if step == max_steps - 1:
            break
        R = A @ V - U * s
        error = R[:, :rank].norm(dim=0)
        if ((error <= tol * s[0]) | (s[:rank] + error <= above)).all():
            break
        if Q.shape[1] + width > min(KEPT * width, m, n):
            Q, B = U, V * s
            if 2 * width > min(m, n):  # no room to grow
                Q, _ = torch.linalg.qr(U * s + R)
                B = A.mT @ Q
                continue
        # Where a residual is zero, any direction outside of Q serves.
        R = torch.linalg.qr(torch.cat([Q, R], 1))[0][:, Q.shape[1] :]
        Q, B = torch.cat([Q, R], 1), torch.cat([B, A.mT @ R], 1)
    return SVD(U, s, V).first(rank)


def spectral_norm(
    A: SparsePlusLowRank,
    start: Tensor | None = None,  # (n, 1)
) -> Tensor:  # ()
    """The largest singular value, to a relative accuracy of 1e-4.

    LAPACK computes it where a full SVD is faster, and `partial_svd` elsewhere.
    """
    if A.mostly_empty or CROSSOVER * min(A.shape) >= 1 + EXTRA:
        return partial_svd(A, 1, start=start, tol=1e-4).s[0]
    return torch.linalg.svdvals(A.dense())[0]


def _block(A: Tensor | SparsePlusLowRank, width: int, start: Tensor | None) -> Tensor:
    """``start`` followed by random columns, ``(n, width)``."""
    n = A.shape[1]
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(n, width, generator=generator, dtype=A.dtype).to(A.device)
    if start is None:
        return noise
    start = start[:, :width]
    return torch.cat([start, noise[:, start.shape[1] :] / n**0.5], 1)
