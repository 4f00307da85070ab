"""Matrix sensing by a product of factors."""

from __future__ import annotations

from numbers import Integral, Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval
from torch import nn

from skmc.linalg import Randomness
from skmc.models import FactorProduct
from skmc.sensing.measured import Measured
from skmc.sensing.regressor import FlowSensingRegressor

START = 1e-4  # on the factors' diagonals
REST = 1e-2  # the same, to the power of their number less two


class FactorizedSensingRegressor(FlowSensingRegressor):
    r"""Low rank by descent on a product of factors from a small start.

    ::

        min  1/2 sum_i (y_i - <A_i, X>)^2   over   X = W[L-1] ... W[0],

    half a *sum* over measurements. No penalty: from small multiples of the identity,
    singular values grow one after the other under gradient flow, and few do before the
    measurements are met. No intercept. In the floating-point type of the data.

    The problem is solved in units in which ``y`` and the entries of ``A`` have root
    mean square 1, so that ``|X|_F`` is about 1 if the ``A_i`` point everywhere alike;
    ``init_scale`` is in these. That is ours.

    Parameters
    ----------
    depth : int >= 1, default=3
        Number of factors ``L``. One is a free ``X``; more favour low rank more.
    width : int >= 1 or None, default=None
        Inner size of the factors; None is ``min(n_rows, n_cols)``.
    shape : tuple of int or None, default=None
        ``(n_rows, n_cols)``, needed where measurements come as flat rows: without it
        they are those of a single row, (1, n_features). Three-dimensional arrays and
        `Measurements` have it.
    init_scale : float > 0 or None, default=None
        On the factors' diagonals at the start. The smaller it is, the lower the rank
        and the longer the way from zero. None is 1e-4, the paper's, for up to two
        factors and ``1e-2 ** (1 / (depth - 2))`` (ours) for more: flow rests at low
        ranks for a time that goes like ``init_scale ** (2 - depth)``.
    max_iter : int >= 1, default=3000
        Steps of gradient flow, see `skmc.solvers.gradient_flow.GradientFlow`: their
        length is found on the way.
    tol : float >= 0, default=1e-6
        Stop once ``|dF/dW| |W| / (|X| |sum_i y_i A_i|)`` falls to it.
    device : str or torch.device, default="auto"
        Where to compute; "auto" is CUDA if there is one.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_rows, n_cols)
        ``X``.
    history_ : dict of ndarray
        "n_iter", "objective" (in the units of the solution) and "residual" at every
        25th iteration.
    n_iter_ : int
    status_ : {"converged", "stopped", "max_iter", "diverged", "interrupted"}
    n_features_in_ : int
        ``n_rows * n_cols``.
    feature_names_in_ : ndarray of str, where flat rows have names

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

    _parameter_constraints: ClassVar[dict] = {
        **FlowSensingRegressor._parameter_constraints,
        "depth": [Interval(Integral, 1, None, closed="left")],
        "width": [Interval(Integral, 1, None, closed="left"), None],
        "init_scale": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        depth=3,
        width=None,
        *,
        shape=None,
        init_scale=None,
        max_iter=3000,
        tol=1e-6,
        device="auto",
    ):
        self.depth = depth
        self.width = width
        self.shape = shape
        self.init_scale = init_scale
        self.max_iter = max_iter
        self.tol = tol
        self.device = device

    def _model(self, data: Measured, rng: Randomness) -> nn.Module:
        width = self.width or min(data.shape)
        scale = self.init_scale
        if scale is None:
            scale = START if self.depth < 3 else REST ** (1 / (self.depth - 2))
        model = FactorProduct.identity(data.shape, self.depth, width, scale)
        return model.to(data.values.dtype)
