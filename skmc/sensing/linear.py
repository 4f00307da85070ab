"""Least squares over all matrices."""

from __future__ import annotations

from torch import Tensor

from skmc.sensing.measurements import Measurements
from skmc.sensing.regressor import BaseSensingRegressor


class LinearSensingRegressor(BaseSensingRegressor):
    r"""Find the least-squares solution of least norm.

    For a baseline, or at least as many measurements as cells; not for fewer, where
    nothing favors low rank.

    .. math::

        \min_X \|X\|_F \quad\text{over the minimizers of }
        \sum_i (y_i - \langle A_i, X\rangle)^2

    Gradient descent on an unconstrained ``X`` converges to it from zero. With fewer
    measurements than cells the solution meets them exactly; nothing favors low rank.
    The computation is in double precision, by a singular value decomposition of all
    measurements (for `CellMeasurements` by the mean of each cell). There is no
    intercept.

    Parameters
    ----------
    shape : tuple of int or None, default=None
        Shape ``(n_rows, n_cols)``, required if measurements are given as flat rows.
        Without it the matrix has a single row, (1, n_features). Three-dimensional
        arrays and `Measurements` know their shape.
    device : str or torch.device, default="auto"
        Device of the computation; "auto" is CUDA if it is available.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_rows, n_cols)
        Recovered matrix ``X``.
    n_features_in_ : int
        Number of cells, ``n_rows * n_cols``.
    feature_names_in_ : ndarray of str
        Names of the cells, if flat rows have names.

    See Also
    --------
    NuclearSensingRegressor : Low rank by a penalty.

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
