"""Contributions of the other columns to a conditional expectation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from skmc.base import Contribution
from skmc.cells import Scaling
from skmc.completers.gaussian.distributions import FactorGaussian, Gaussian


def coefficients(model: Gaussian | FactorGaussian, seen: Tensor, j: int) -> Tensor:
    r"""Coefficients of the regression of a column on the observed ones.

    They are :math:`S_{oo}^{-1} S_{oj}`. With factors, :math:`S_{oo}^{-1} F_o =
    \Psi_o^{-1} F_o V`, where ``V`` is the posterior covariance of the factors, see
    `FactorGaussian`.

    Parameters
    ----------
    model : Gaussian or FactorGaussian
        Distribution of a row.
    seen : bool Tensor of shape (n_cols,)
        True where observed.
    j : int
        The column, which is not observed.

    Returns
    -------
    Tensor of shape (n_observed,)
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
    model: Gaussian | FactorGaussian, scaling: Scaling, row: np.ndarray, j: int
) -> tuple[float, list[Contribution]]:
    """The mean of a column, and what the cells of a row add to it.

    Parameters
    ----------
    model : Gaussian or FactorGaussian
        Distribution of the scaled rows.
    scaling : Scaling
        Means and deviations of the columns.
    row : ndarray of shape (n_cols,)
        Cells of the row that are used, NaN for the others.
    j : int
        The column, which the row does not have.

    Returns
    -------
    mean : float
    contributions : list of Contribution
    """
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
