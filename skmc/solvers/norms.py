"""Norms of batch members, and their ratios."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from skmc.cells import Observed


def norm(A: Tensor) -> Tensor:
    """Frobenius norm of each member.

    Parameters
    ----------
    A : Tensor of shape (\\*batch, n_rows, n_cols)
        Matrices.

    Returns
    -------
    Tensor of shape (\\*batch,)
    """
    return A.square().sum((-2, -1)).sqrt()


def ratio(a: Tensor | float, b: Tensor) -> Tensor:
    """``a / b``, finite where ``b`` is zero.

    Parameters
    ----------
    a : Tensor or float
        Numerators.
    b : Tensor
        Non-negative denominators.

    Returns
    -------
    Tensor
    """
    return a / b.clamp_min(torch.finfo(b.dtype).tiny)


def relative_norm(A: Tensor, B: Tensor) -> Tensor:
    """``|A|_F / |B|_F``, and 0 where both are zero.

    Parameters
    ----------
    A : Tensor of shape (\\*batch, n_rows, n_cols)
        Matrices.
    B : Tensor of shape (\\*batch, n_rows, n_cols)
        Matrices.

    Returns
    -------
    Tensor of shape (\\*batch,)
    """
    return ratio(norm(A), norm(B))


def parameter_norm(tensors: Sequence[Tensor], data: Observed) -> Tensor:
    """Frobenius norm over several tensors, per batch member.

    Parameters
    ----------
    tensors : sequence of Tensor
        Tensors with the batch axes of ``data``.
    data : Observed
        The observed cells.

    Returns
    -------
    Tensor of shape (\\*batch,)
    """
    n_batch = len(data.batch_shape)
    squares = [t.detach().square().flatten(n_batch).sum(-1) for t in tensors]
    return torch.stack(squares).sum(0).sqrt()


def relative_slope(
    grads: Sequence[Tensor],
    parameters: Sequence[Tensor],
    X: Sequence[Tensor],
    data: Observed,
) -> Tensor:
    """``|dF/dtheta| |theta| / (|X| |P(M)|)``, a residual of gradient descent.

    Parameters
    ----------
    grads : sequence of Tensor
        Derivatives of the objective.
    parameters : sequence of Tensor
        Variables of these derivatives.
    X : sequence of Tensor
        The completion, whole or in parts.
    data : Observed
        The observed cells.

    Returns
    -------
    Tensor of shape (\\*batch,)
    """
    slope, theta = parameter_norm(grads, data), parameter_norm(parameters, data)
    size = parameter_norm(X, data) * parameter_norm([data.values], data)
    return ratio(slope * theta, size)
