"""Least squares over all matrices."""

from __future__ import annotations

from torch import Tensor

from skmc.sensing.measurements import Measurements
from skmc.sensing.regressor import BaseSensingRegressor


class LinearSensingRegressor(BaseSensingRegressor):
    r"""Least squares of least norm.

    .. math::

        \min_X \|X\|_F \quad\text{over the minimizers of }
        \sum_i (y_i - \langle A_i, X\rangle)^2

    Gradient descent on a free ``X`` ends there if it starts at zero. With fewer
    measurements than cells the answer meets them exactly; nothing favors low rank.
    Computes in double precision, by a singular value decomposition of all measurements
    (for `CellMeasurements` by the mean of each cell). There is no intercept.

    Parameters
    ----------
    shape : tuple of int or None, default=None
        ``(n_rows, n_cols)``, needed where measurements are given as flat rows: without
        it the matrix has a single row, (1, n_features). Three-dimensional arrays and
        `Measurements` know their shape.
    device : str or torch.device, default="auto"
        Where to compute; "auto" is CUDA where it is available.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_rows, n_cols)
        ``X``.
    n_features_in_ : int
        ``n_rows * n_cols``.
    feature_names_in_ : ndarray of str
        Set only where flat rows have names.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc.sensing import LinearSensingRegressor
    >>> A = np.eye(4)[:3].reshape(3, 2, 2)
    >>> LinearSensingRegressor().fit(A, [1.0, 2.0, 3.0]).matrix_
    array([[1., 2.],
           [3., 0.]])
    """

    def _recover(self, operator: Measurements, y: Tensor) -> tuple[Tensor, None]:
        return operator.least_norm(y), None
