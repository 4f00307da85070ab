"""Fused operations. Only this module uses private names of PyTorch.

Where a version or a build of PyTorch lacks one, public calls replace it. Their results
are equal up to rounding, and they take longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

DECAY = 0.9  # decay of Adam's first moments
EPS = 1e-8


def linear(
    X: Tensor,  # (m, k)
    weight: Tensor,  # (n, k)
    bias: Tensor | None = None,  # (n,)
    activation: Literal["none", "relu"] = "none",
) -> Tensor:  # (m, n)
    """``X W'`` or ``max(X W' + b, 0)``, in single precision on a CPU by oneDNN.

    Torch multiplies with MKL, which uses the widest registers only on Intel's
    processors. oneDNN uses them on all processors and is as fast on Intel's. Torch
    offers it for layers of networks. Builds without it, other data types and other
    devices use Torch's own product.
    """
    if (
        X.dtype is torch.float32
        and X.device.type == "cpu"
        and X.numel() * len(weight) > 0
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    ):
        by_onednn = torch.ops.mkldnn._linear_pointwise
        return by_onednn(X, weight, bias, activation, [], "")
    Y = X @ weight.mT if bias is None else torch.addmm(bias, X, weight.mT)
    return Y.relu_() if activation == "relu" else Y


def relu_derivative(dY: Tensor, Y: Tensor) -> Tensor:
    """Gradient at the input of ``Y = max(A, 0)``: ``dY`` where ``Y > 0``, else 0."""
    if hasattr(torch.ops.aten, "threshold_backward"):
        return torch.ops.aten.threshold_backward(dY, Y, 0)
    return dY.masked_fill(Y <= 0, 0)


def softmax_derivative(
    dS: Tensor,  # (..., n)
    S: Tensor,  # (..., n)
) -> Tensor:  # (..., n)
    """Gradient at the input of ``S = softmax(A)``: ``S (dS - <S, dS>)``."""
    if hasattr(torch, "_softmax_backward_data"):
        return torch._softmax_backward_data(dS, S, -1, S.dtype)
    product = S * dS
    return product.addcmul_(S, product.sum(-1, keepdim=True), value=-1)


def adam_update(
    parameters: Sequence[Tensor],
    grads: Sequence[Tensor],
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    count: Tensor,  # ()
    lr: float | Tensor,  # ()
    beta2: float,
) -> None:
    """One step of Adam on all ``parameters``, see `skmc.solvers.Adam`.

    `torch.optim.Adam` takes the same step through Python code that, for a small matrix,
    takes as long as the step itself.
    """
    fused = getattr(torch, "_fused_adam_", None)  # on the CPU and on CUDA
    if fused is not None:
        fused(
            parameters,
            grads,
            first,
            second,
            [],
            [count] * len(parameters),
            lr=lr,
            beta1=DECAY,
            beta2=beta2,
            weight_decay=0.0,
            eps=EPS,
            amsgrad=False,
            maximize=False,
        )
        return
    for p, g, m, v in zip(parameters, grads, first, second, strict=True):
        m.lerp_(g, 1 - DECAY)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        t = count.to(p)
        scale = (v / (1 - beta2**t)).sqrt_().add_(EPS)
        p.sub_(lr * m / (1 - DECAY**t) / scale)
