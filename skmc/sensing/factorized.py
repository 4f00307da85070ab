"""Matrix sensing by a product of factors."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch import nn

from skmc.linalg import Randomness
from skmc.models import FactorProduct
from skmc.parameters import Count, Positive, constrained
from skmc.sensing.measured import Measured
from skmc.sensing.regressor import FlowSensingRegressor

START = 1e-4  # initial value on the factors' diagonals
REST = 1e-2  # the same for three or more factors, to the power depth - 2


@constrained
@dataclass(eq=False, repr=False)
class FactorizedSensingRegressor(FlowSensingRegressor):
    r"""Find a low-rank matrix by descent on a product of factors from a small start.

    For noisy measurements, without a weight to choose; not for exact recovery, for
    which `NuclearSensingRegressor` with ``lambda_nuclear=0`` is better.

    .. math::

        \min_{W} \tfrac12 \sum_i (y_i - \langle A_i, X\rangle)^2
        \quad\text{over } X = W_{L-1} \cdots W_0

    This is half a *sum* over measurements. There is no penalty: from small multiples of
    the identity, singular values grow one after the other under gradient flow, and few
    do before the measurements are met. There is no intercept. The computation is in the
    floating-point type of the data.

    The problem is solved in units in which ``y`` and the entries of ``A`` have root
    mean square 1, so that ``|X|_F`` is about 1 if the ``A_i`` cover all directions
    evenly. ``init_scale`` is in these units.

    Parameters
    ----------
    depth : int >= 1, default=3
        Number of factors ``L``. One is an unconstrained ``X``; more factors favor low
        rank.
    width : int >= 1 or None, default=None
        Inner dimension of the factors; None is ``min(n_rows, n_cols)``.
    shape : tuple of int or None, default=None
        Shape ``(n_rows, n_cols)``, required if measurements are given as flat rows.
        Without it the matrix has a single row, (1, n_features). Three-dimensional
        arrays and `Measurements` know their shape.
    device : str or torch.device, default="auto"
        Device of the computation; "auto" is CUDA if it is available.
    max_iter : int >= 1, default=3000
        Maximum number of steps of gradient flow. `skmc.solvers.GradientFlow` adapts
        their length.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds. When it has passed, the fit ends after the
        running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-6
        Stop when ``|dF/dW| |W| / (|X| |sum_i y_i A_i|)`` is at most ``tol``.
    init_scale : float > 0 or None, default=None
        Initial value on the factors' diagonals. The smaller it is, the lower the
        rank and the longer the way from zero. None is 1e-4, as in the paper, for up to
        two factors and ``1e-2 ** (1 / (depth - 2))`` for more: the flow stays at low
        ranks for a time proportional to ``init_scale ** (2 - depth)``.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_rows, n_cols)
        Recovered matrix ``X``.
    history_ : dict of ndarray
        "n_iter", "objective" (in the units of the solution) and "residual" at every
        25th iteration.
    n_iter_ : int
    status_ : str
        "converged", "stopped", "max_iter", "max_time", "diverged" or "interrupted".
    n_features_in_ : int
        Number of cells, ``n_rows * n_cols``.
    feature_names_in_ : ndarray of str
        Names of the cells, if flat rows have names.

    See Also
    --------
    SpectralSensingRegressor : Activations of singular values.
    NuclearSensingRegressor : A convex problem.

    References
    ----------
    Arora, Cohen, Hu, Luo. Implicit regularization in deep matrix factorization. NeurIPS
    2019. -- Chu, Ghosh, Lam, Mukherjee. Implicit regularization via spectral neural
    networks and non-linear matrix sensing. 2024.

    Examples
    --------
    Twenty-four measurements of the 36 cells of a matrix of rank one.

    >>> import numpy as np
    >>> from skmc.sensing import FactorizedSensingRegressor
    >>> X = np.outer(np.arange(1.0, 7), np.ones(6))
    >>> A = np.random.RandomState(0).randn(24, 6, 6)
    >>> model = FactorizedSensingRegressor().fit(A, np.tensordot(A, X))
    >>> model.matrix_[:, 0].round(1)
    array([1., 2., 3., 4., 5., 6.])
    """

    depth: Count = 3
    width: Count | None = None
    _: KW_ONLY
    init_scale: Positive | None = None

    def _model(self, data: Measured, rng: Randomness) -> nn.Module:
        width = self.width or min(data.shape)
        scale = self.init_scale
        if scale is None:
            scale = START if self.depth < 3 else REST ** (1 / (self.depth - 2))
        model = FactorProduct.identity(data.shape, self.depth, width, scale)
        return model.to(data.values.dtype)
