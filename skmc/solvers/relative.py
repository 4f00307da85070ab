"""Norms of batch members, and their ratios."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from skmc.cells import Observed


def norm(
    A: Tensor,  # (*batch, n_rows, n_cols)
) -> Tensor:  # (*batch,)
    """Frobenius norm of each member."""
    return A.square().sum((-2, -1)).sqrt()


def ratio(a: Tensor | float, b: Tensor) -> Tensor:
    """``a / b``, finite where ``b`` is zero."""
    return a / b.clamp_min(torch.finfo(b.dtype).tiny)


def relative_norm(
    A: Tensor,  # (*batch, n_rows, n_cols)
    B: Tensor,  # (*batch, n_rows, n_cols)
) -> Tensor:  # (*batch,)
    """``|A|_F / |B|_F``, and 0 where both are zero."""
    return ratio(norm(A), norm(B))


def parameter_norm(tensors: Sequence[Tensor], data: Observed) -> Tensor:  # (*batch,)
    """Frobenius norm over several tensors, per batch member."""
    n_batch = len(data.batch_shape)
    squares = [t.detach().square().flatten(n_batch).sum(-1) for t in tensors]
    return torch.stack(squares).sum(0).sqrt()


def relative_slope(
    grads: Sequence[Tensor],
    parameters: Sequence[Tensor],
    X: Sequence[Tensor],
    data: Observed,
) -> Tensor:
    """``|dF/dtheta| |theta| / (|X| |P(M)|)``, a residual of gradient descent."""
    slope, theta = parameter_norm(grads, data), parameter_norm(parameters, data)
    size = parameter_norm(X, data) * parameter_norm([data.values], data)
    return ratio(slope * theta, size)
