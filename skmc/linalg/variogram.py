"""Expected error of a filled cell as a function of its distance to known cells."""

from __future__ import annotations

import numpy as np
import torch
from scipy.ndimage import distance_transform_cdt
from torch import Tensor


def expected_error(values: Tensor, mask: Tensor) -> Tensor:
    r"""Half the mean squared difference of known cells at each cell's distance.

    .. math:: \gamma(d) = \tfrac{1}{2} \operatorname{mean} (x_i - x_j)^2

    over pairs of known cells that are ``d`` apart in a row or a column. A hidden cell
    has the value of the variogram :math:`\gamma` at the distance of the nearest known
    cell, the larger of the distances along rows and columns; a known cell has zero.
    The variogram is evaluated at powers of two, interpolated, and made to increase.

    Parameters
    ----------
    values : Tensor of shape (n_rows, n_cols)
        Floating-point; finite everywhere.
    mask : bool Tensor, same shape
        True where the value is known; at least one True.

    Returns
    -------
    Tensor of shape (n_rows, n_cols)
        Expected squared errors, at least zero.

    Examples
    --------
    >>> import torch
    >>> from skmc.linalg import expected_error
    >>> known = torch.tensor([[True, True, False, False, True]])
    >>> expected_error(torch.tensor([[0.0, 2.0, 0.0, 0.0, 4.0]]), known)
    tensor([[0., 0., 2., 2., 0.]])
    """
    hidden = ~mask.cpu().numpy()
    distance = distance_transform_cdt(hidden, "chessboard")
    lags = [2**k for k in range((int(distance.max()) - 1).bit_length() + 1)]
    errors = np.maximum.accumulate([_variogram(values, mask, lag) for lag in lags])
    found = torch.from_numpy(np.interp(distance, [0, *lags], [0, *errors]))
    return found.to(values.device, values.dtype)


def _variogram(values: Tensor, mask: Tensor, lag: int) -> float:
    """Values of the variogram; zero if no two known cells are ``lag`` apart."""
    total, count = values.new_zeros(()), values.new_zeros(())
    for x, known in ((values, mask), (values.T, mask.T)):
        both = known[lag:] & known[:-lag]
        total += torch.where(both, x[lag:] - x[:-lag], 0).square().sum()
        count += both.sum()
    return float(total / (2 * count.clamp_min(1)))
