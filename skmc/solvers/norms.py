"""Norms of the members of a batch."""

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
    size = norm(B)
    return norm(A) / size.clamp_min(torch.finfo(size.dtype).tiny)


def parameter_norm(tensors: Sequence[Tensor], data: Observed) -> Tensor:
    """Frobenius norm over several tensors, per batch member.

    Parameters
    ----------
    tensors : sequence of Tensor
        With the batch axes of ``data``.
    data : Observed
        The observed cells.

    Returns
    -------
    Tensor of shape (\\*batch,)
    """
    n_batch = len(data.batch_shape)
    squares = [t.detach().square().flatten(n_batch).sum(-1) for t in tensors]
    return torch.stack(squares).sum(0).sqrt()
