"""Functions of a matrix that act on its singular values, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from skmc.linalg.shrinkage import GRAM_LIMIT
from skmc.linalg.svd import EXTRA, SVD, full_svd, partial_svd

# The cube of a smaller value is negligible beside 1: gamma is its tangent there.
TANGENT = {torch.float32: 1e-3, torch.float64: 1e-5}
# A Gram matrix does not resolve singular values below GRAM_LIMIT of the largest. Where
# this limit exceeds the next number, gamma may be nonlinear, and LAPACK is used.
WIDE = 1e-3
# Spectra of matrices this large are followed from step to step, down to this value.
LARGE, SMALL = 100, 1e-2
NEXT = 5  # additional smaller singular values, because they may grow
FEW = 0.3  # largest share of the singular values that is tracked


@dataclass(frozen=True)
class Activation:
    """An odd function ``gamma`` of singular values, with ``gamma'(0) = slope``.

    ``quotient(a, b)`` is ``(gamma(a) - gamma(b)) / (a - b)``, and ``gamma'(a)`` where
    ``a = b``, in a form that does not cancel.

    Parameters
    ----------
    value : callable
        ``gamma(s)`` of a Tensor, elementwise.
    quotient : callable
        ``(gamma(s) - gamma(t)) / (s - t)`` of two Tensors, and the slope where they are
        equal.
    slope : float, default=1.0
        ``gamma'(0)``.
    """

    value: Callable[[Tensor], Tensor]
    quotient: Callable[[Tensor, Tensor], Tensor]
    slope: float = 1.0


def _tanh_quotient(a: Tensor, b: Tensor) -> Tensor:
    # tanh a - tanh b = tanh(a - b) (1 - tanh a tanh b)
    gap = a - b
    small = gap.abs() < 1e-4
    safe = torch.where(small, 1.0, gap)
    ratio = torch.where(small, 1 - gap.square() / 3, safe.tanh() / safe)
    return ratio * (1 - a.tanh() * b.tanh())


def _clamp(s: Tensor) -> Tensor:
    return s.clamp(-1, 1)


def _clamp_quotient(a: Tensor, b: Tensor) -> Tensor:
    gap = a - b
    slope = (a.abs() < 1).to(a)
    return torch.where(
        gap == 0, slope, (_clamp(a) - _clamp(b)) / torch.where(gap == 0, 1.0, gap)
    )


ACTIVATIONS = {
    "tanh": Activation(torch.tanh, _tanh_quotient),
    "sigmoid": Activation(
        lambda s: (s / 2).tanh(), lambda a, b: _tanh_quotient(a / 2, b / 2) / 2, 0.5
    ),
    "truncated_relu": Activation(_clamp, _clamp_quotient),
}


def apply_to_singular_values(Z: Tensor, activation: Activation) -> Tensor:
    r"""``Gamma(Z) = U diag(gamma(s)) V'`` for ``Z = U diag(s) V'``; differentiable.

    The derivative is that of Daleckii and Krein: with ``M = U' dZ V`` and the quotients
    ``a[i,j] = gamma[s_i, s_j]``, ``b[i,j] = gamma[s_i, -s_j]`` ::

        U' dGamma V = a * (M + M') / 2 + b * (M - M') / 2,

    and ``gamma(s_i) / s_i`` outside of the span of the singular vectors. All of these
    stay finite at equal and at zero singular values, where the derivative of the SVD
    itself does not. ``Gamma`` is well defined there because ``gamma`` is odd.

    The result is ``gamma'(0) Z`` plus the contribution of the singular values that are
    not small. These come from the eigenvectors of the smaller Gram matrix or, if the
    largest exceeds 100, from LAPACK.

    Parameters
    ----------
    Z : Tensor of shape (\*batch, m, n)
        The matrix, float32 or float64.
    activation : Activation
        One of ``skmc.linalg.activations.ACTIVATIONS``: "tanh", "sigmoid",
        "truncated_relu".

    Returns
    -------
    Tensor of shape (\*batch, m, n)

    See Also
    --------
    skmc.SNNCompleter : Applies activations to singular values.

    Examples
    --------
    >>> import torch
    >>> from skmc.linalg import apply_to_singular_values
    >>> from skmc.linalg.activations import ACTIVATIONS
    >>> Z = torch.eye(2, requires_grad=True)  # equal singular values
    >>> apply_to_singular_values(Z, ACTIVATIONS["tanh"]).trace().backward()
    >>> Z.grad.diagonal()  # 1 - tanh(1)^2
    tensor([0.4200, 0.4200])
    """
    if Z.dtype not in TANGENT:
        raise TypeError(f"Z must be of float32 or float64, got {Z.dtype}.")
    return _Spectral.apply(Z, activation, _top(Z.detach(), TANGENT[Z.dtype]))


class SpectralActivation(nn.Module):
    r"""`apply_to_singular_values` for a matrix that changes little between calls.

    In matrices with at least 100 rows and columns, the tangent replaces ``gamma`` for
    singular values up to ``.01``, with a relative error of 3e-5. If the others are few,
    the iteration for them starts from the singular vectors of the previous call.

    Parameters
    ----------
    activation : Activation
        Function of the singular values.
    """

    def __init__(self, activation: Activation):
        super().__init__()
        self.activation = activation
        self.kind: tuple = ()  # shape, dtype and device of the starts
        self.starts: list[Tensor | None] = []  # of each member, (n, k)

    def forward(self, Z: Tensor) -> Tensor:  # (*batch, m, n) -> the same
        """Apply the activation."""
        if min(Z.shape[-2:]) < LARGE or not Z.numel():
            return apply_to_singular_values(Z, self.activation)
        members = Z.detach().reshape(-1, *Z.shape[-2:])
        kind = (Z.shape, Z.dtype, Z.device)
        if self.kind != kind:
            self.kind, self.starts = kind, [None] * len(members)
        tops = []
        for i, member in enumerate(members):
            tops.append(_followed(member, self.starts[i]))
            self.starts[i] = tops[i].V
        rank = max(top.rank for top in tops)

        def stacked(*parts: Tensor) -> Tensor:
            padded = [nn.functional.pad(x, (0, rank - x.shape[-1])) for x in parts]
            return torch.stack(padded).view(*Z.shape[:-2], *padded[0].shape)

        return _Spectral.apply(Z, self.activation, tops[0].map(stacked, *tops[1:]))


class _Spectral(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, Z: Tensor, activation: Activation, top: SVD) -> Tensor:
        ctx.activation = activation
        ctx.save_for_backward(Z, top.U, top.s, top.V)
        excess = activation.value(top.s) - activation.slope * top.s
        return activation.slope * Z + (top.U * excess[..., None, :]) @ top.V.mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None, None]:
        # The derivative is symmetric, so it maps gradients and directions alike.
        Z, U, s, V = ctx.saved_tensors
        slope, quotient = ctx.activation.slope, ctx.activation.quotient
        if not s.shape[-1]:
            return slope * G, None, None
        rows, cols = s[..., :, None], s[..., None, :]
        a = quotient(rows, cols) - slope
        b = quotient(rows, -cols) - slope
        c = quotient(rows, torch.zeros_like(rows)) - slope
        left, right = U.mT @ G, G @ V
        M = left @ V
        W = (a * (M + M.mT) + b * (M - M.mT)) / 2
        # Singular values of the other vectors are small but not zero: quotients to
        # first order in them.
        share = 1 / rows.clamp_min(torch.finfo(s.dtype).tiny)
        rest = Z - (U * cols) @ V.mT
        across = c * (left - M @ V.mT + share * (right.mT @ rest))
        down = c * (right.mT - M.mT @ U.mT + share * (left @ rest.mT))
        return slope * G + U @ (W @ V.mT + across) + down.mT @ V.mT, None, None


def _top(Z: Tensor, least: float) -> SVD:
    """Singular values above ``least``, padded with zeros for some members."""
    if Z.shape[-2] < Z.shape[-1]:
        top = _top(Z.mT, least)
        return SVD(top.V, top.s, top.U)
    D = Z.double()
    energy, V = torch.linalg.eigh(D.mT @ D)
    s, V = energy.clamp_min(0).sqrt().flip(-1), V.flip(-1)
    if (GRAM_LIMIT * s[..., :1] > WIDE).any():
        svd = full_svd(D)
        kept = (svd.s > least).to(D)
        columns = kept[..., None, :]
        return SVD(svd.U * columns, svd.s * kept, svd.V * columns).to(Z.dtype)
    large = s > (GRAM_LIMIT * s[..., :1]).clamp_min(least)
    rank = int(large.sum(-1).max())
    s = torch.where(large, s, 0.0)[..., :rank]
    V = V[..., :rank] * large[..., None, :rank]
    U = D @ V / s.clamp_min(least)[..., None, :]
    return SVD(U, s, V).to(Z.dtype)


def _followed(Z: Tensor, start: Tensor | None) -> SVD:
    """Singular values of one matrix above `SMALL`, iterated from ``start``."""
    if torch.linalg.matrix_norm(Z) <= SMALL:
        return SVD.zero(Z)
    if start is not None and start.shape[1]:
        sought = start.shape[1] + NEXT
        if sought + EXTRA <= min(Z.shape) * FEW:
            top = partial_svd(Z, sought, start=start, max_steps=1)
            rank = int((top.s > SMALL).sum())
            if rank < sought:
                return top.first(rank)
    return _top(Z, SMALL)
