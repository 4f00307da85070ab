"""A baseline for shrinkage: LAPACK's decomposition of the whole matrix."""

from __future__ import annotations

from torch import Tensor

from skmc.linalg import SVD, full_svd


def shrink_by_lapack(A: Tensor, tau: float) -> SVD:
    """Singular values less ``tau``, those above zero, with their vectors."""
    found = full_svd(A)
    s = (found.s - tau).clamp_min(0)
    return SVD(found.U, s, found.V).first(int((s > 0).sum()))
