"""Singular value shrinkage by matrix products alone, for devices that favor them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SETTLE = 8  # steps of quadratic convergence at the end
CLOSE = 1e-7  # singular values this close to tau may or may not become zero


def shrink_by_products(A: Tensor, tau: float) -> Tensor:
    r"""``D_tau(A)``, as in `skmc.linalg.shrink`, without a decomposition.

    With ``Pi = (I + sign(A'A - tau^2 I)) / 2``, the projector on the right singular
    vectors whose values exceed ``tau``, ::

        D_tau(A) = (A - tau polar(A Pi)) Pi

    Sign and polar factor come from the iteration of Newton and Schulz,
    ``X <- X (3 I - X' X) / 2``. The nonzero singular values of ``A Pi`` exceed ``tau``,
    so its polar factor takes ``log(s_1 / tau)`` steps: too few for rounding to grow.

    Parameters
    ----------
    A : Tensor of shape (\\*batch, m, n)
        The matrix.
    tau : float > 0
        Threshold that is subtracted from the singular values.

    Returns
    -------
    Tensor of shape (\*batch, m, n)

    References
    ----------
    Higham. Functions of matrices (2008), sections 5.3 and 8.3.

    Examples
    --------
    >>> import torch
    >>> from benchmarks.shared.products import shrink_by_products
    >>> shrink_by_products(torch.diag(torch.tensor([5.0, 1.0])), 2.0).round(decimals=4)
    tensor([[3., 0.],
            [0., 0.]])
    """
    if A.shape[-2] < A.shape[-1]:
        return shrink_by_products(A.mT, tau).mT
    unit = A.abs().amax().clamp_min(torch.finfo(A.dtype).tiny)
    largest = torch.linalg.matrix_norm(A / unit).max()  # a bound: the Frobenius norm
    ratio = float(largest * unit) / tau
    if ratio <= 1:
        return torch.zeros_like(A)
    A = A / (unit * largest)
    eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    above = _iterate(A.mT @ A - eye / ratio**2, ratio**2 / CLOSE)
    Pi = (eye + above) / 2
    return (A * (unit * largest) - tau * _iterate(A @ Pi, ratio)) @ Pi


def _iterate(X: Tensor, condition: float) -> Tensor:
    """Drive the singular values from ``1 / condition`` on to one."""
    for _ in range(math.ceil(math.log(condition, 1.5)) + SETTLE):
        X = 1.5 * X - 0.5 * X @ (X.mT @ X)
    return X
