"""Products of matrices, in single precision by the fastest library."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from skmc.linalg.fused import linear, relu_derivative

# Number of multiplications from which oneDNN pays off, despite its longer start.
# Measured for square matrices on an AMD EPYC with AVX-512, relative to MKL: 2.1 times
# as long at 60, 0.9 at 100, 0.55 at 160, 0.47 at 240.
LARGE = 128**3


def matmul(
    A: Tensor,  # (*batch, m, k)
    B: Tensor,  # (*batch, k, n)
) -> Tensor:  # (*batch, m, n)
    """``A B`` by the fastest library, where no gradient is needed; see `linear`."""
    large = A.ndim == B.ndim == 2 and A.numel() * B.shape[1] >= LARGE
    graph = torch.is_grad_enabled() and (A.requires_grad or B.requires_grad)
    return linear(A, B.mT) if large and not graph else A @ B


def affine(
    b: Tensor,  # (*batch, 1, n)
    A: Tensor,  # (*batch, m, k)
    B: Tensor,  # (*batch, k, n)
) -> Tensor:  # (*batch, m, n)
    """``b + A B`` as one call."""
    return torch.addmm(b, A, B) if A.ndim == 2 else torch.baddbmm(b, A, B)


def relu_layer(
    X: Tensor,  # (m, k)
    weight: Tensor,  # (n, k)
    bias: Tensor,  # (n,)
) -> Tensor:  # (m, n)
    """``max(X W' + b, 0)`` as one differentiable call, see `linear`."""
    return _ReluLayer.apply(X, weight, bias)


class _ReluLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        Y = linear(X, weight, bias, "relu")
        ctx.save_for_backward(X, weight, Y)
        return Y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        X, weight, Y = ctx.saved_tensors
        grad = relu_derivative(grad, Y)
        of_X = matmul(grad, weight) if ctx.needs_input_grad[0] else None
        return of_X, matmul(grad.mT, X), grad.sum(0)
