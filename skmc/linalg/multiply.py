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


def matmul(A: Tensor, B: Tensor) -> Tensor:
    """``A B`` by the fastest library, where no gradient is needed; see `linear`.

    Parameters
    ----------
    A : Tensor of shape (\\*batch, m, k)
        Left factor.
    B : Tensor of shape (\\*batch, k, n)
        Right factor.

    Returns
    -------
    Tensor of shape (\\*batch, m, n)

    Examples
    --------
    >>> import torch
    >>> from skmc.linalg import matmul
    >>> matmul(torch.ones(1, 2), torch.tensor([[1.0, 3.0], [2.0, 4.0]]))
    tensor([[3., 7.]])
    """
    large = A.ndim == B.ndim == 2 and A.numel() * B.shape[1] >= LARGE
    graph = torch.is_grad_enabled() and (A.requires_grad or B.requires_grad)
    return linear(A, B.mT) if large and not graph else A @ B


def affine(b: Tensor, A: Tensor, B: Tensor) -> Tensor:
    """``b + A B`` as one call.

    Parameters
    ----------
    b : Tensor of shape (\\*batch, 1, n)
        Row that is added to every row of the product.
    A : Tensor of shape (\\*batch, m, k)
        Left factor, with at most one batch axis.
    B : Tensor of shape (\\*batch, k, n)
        Right factor.

    Returns
    -------
    Tensor of shape (\\*batch, m, n)

    Examples
    --------
    >>> import torch
    >>> from skmc.linalg import affine
    >>> affine(torch.ones(1, 1), torch.ones(1, 2), torch.tensor([[1.0], [2.0]]))
    tensor([[4.]])
    """
    return torch.addmm(b, A, B) if A.ndim == 2 else torch.baddbmm(b, A, B)


def relu_layer(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``max(X W' + b, 0)`` as one differentiable call, see `linear`.

    Parameters
    ----------
    X : Tensor of shape (m, k)
        Input of the layer.
    weight : Tensor of shape (n, k)
        Weights ``W`` of the layer.
    bias : Tensor of shape (n,)
        Biases ``b`` of the layer.

    Returns
    -------
    Tensor of shape (m, n)

    Examples
    --------
    >>> import torch
    >>> from skmc.linalg import relu_layer
    >>> weight, bias = torch.tensor([[1.0, 2.0], [-3.0, 0.0]]), torch.ones(2)
    >>> relu_layer(torch.ones(1, 2), weight, bias)
    tensor([[4., 0.]])
    """
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
