"""A low-rank fill of missing cells, with which neighbors can be found."""

from __future__ import annotations

import torch
from torch import Tensor

SWEEPS = 10


def fill_low_rank(values: Tensor, mask: Tensor, rank: int) -> Tensor:
    r"""Fill missing cells by ``rank`` principal components in ten sweeps.

    A sweep replaces the missing cells by the projection of the matrix on its first
    right singular vectors, each component multiplied by ``1 - noise / s^2`` (Josse and
    Husson 2016, regularized iterative PCA): ``s`` is its singular value, and ``noise``
    the mean of the other squared singular values. Missing cells start at zero. The cost
    of a sweep is that of a Gram matrix of the shorter side.

    Parameters
    ----------
    values : Tensor of shape (\*batch, m, n)
        The observed values, centered; zero where ``mask`` is False.
    mask : bool Tensor of shape (\*batch, m, n)
        True where a cell is observed.
    rank : int
        Number of components, less than ``min(m, n)``.

    Returns
    -------
    Tensor of shape (\*batch, m, n)
        Observed values, with the fill elsewhere.

    References
    ----------
    Josse, Husson. missMDA: a package for handling missing values in multivariate data
    analysis. J. Statistical Software 70 (2016).
    """
    if values.shape[-2] < values.shape[-1]:
        return fill_low_rank(values.mT, mask.mT, rank).mT
    X = values
    for _ in range(SWEEPS):
        squares, V = torch.linalg.eigh(X.mT @ X)
        noise = squares[..., :-rank].mean(-1, keepdim=True)
        top, V = squares[..., -rank:], V[..., -rank:]
        kept = (1 - noise / top.clamp_min(torch.finfo(X.dtype).tiny)).clamp_min(0.0)
        X = torch.where(mask, values, X @ (V * kept[..., None, :]) @ V.mT)
    return X
