"""Contributions of the other columns to a conditional expectation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from skmc.base import Contribution
from skmc.cells import Scaling
from skmc.completers.gaussian.distributions import FactorGaussian, Gaussian


def coefficients(
    model: Gaussian | FactorGaussian,
    seen: Tensor,  # (n_cols,)
    j: int,
) -> Tensor:  # (n_observed,)
    r"""Coefficients of the regression of a column on the observed ones.

    They are :math:`S_{oo}^{-1} S_{oj}`. With factors, :math:`S_{oo}^{-1} F_o =
    \Psi_o^{-1} F_o V`, where ``V`` is the posterior covariance of the factors, see
    `FactorGaussian`.
    """
    if isinstance(model, FactorGaussian):
        own = model.loadings[seen]
        (scores,) = model.scores(torch.zeros_like(model.mean)[None], seen[None])
        V = scores.covariance[0]
        return (own @ (V @ model.loadings[j])) / model.noise[seen]
    S = model.covariance
    root = torch.linalg.cholesky(S[seen][:, seen])
    return torch.cholesky_solve(S[seen, j][:, None], root)[:, 0]


def terms(
    model: Gaussian | FactorGaussian,
    scaling: Scaling,
    row: np.ndarray,  # (n_cols,)
    j: int,
) -> tuple[float, list[Contribution]]:
    """The mean of a column, and what the cells of a row add to it."""
    seen = ~np.isnan(row)
    shift, scale = (
        np.broadcast_to(part[0].numpy(), row.shape)
        for part in (scaling.shift, scaling.scale)
    )
    means = shift + scale * model.mean.numpy()
    slopes = coefficients(model, torch.from_numpy(seen), j).numpy()
    slopes = scale[j] * slopes / scale[seen]
    amounts = slopes * (row - means)[seen]
    parts = np.flatnonzero(seen), amounts, row[seen], slopes
    each = zip(*(part.tolist() for part in parts), strict=True)
    return float(means[j]), [Contribution(k, k, *numbers) for k, *numbers in each]
