"""Matrix sensing by a product of factors."""

from __future__ import annotations

from numbers import Integral, Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval
from torch import nn

from skmc.models.factors import FactorProduct
from skmc.randomness import Randomness
from skmc.sensing.regressor import DescentSensingRegressor


class FactorizedSensingRegressor(DescentSensingRegressor):
    r"""Low rank by descent on a product of factors from a small start.

    ::

        min  1/2 sum_i (y_i - <A_i, X>)^2   over   X = W[L-1] ... W[0],

    half a *sum* over measurements. No penalty: with three factors or more and a small
    start, singular values grow one after the other, and few do before the measurements
    are met. No intercept. In the floating-point type of the data.

    The problem is solved in units in which ``y`` and the entries of ``A`` have root
    mean square 1, so that ``|X|_F`` is about 1 if the ``A_i`` point everywhere alike;
    ``lr`` and ``init_scale`` are in these. That is ours, and so are the random start
    and Adam; the paper starts gradient descent at multiples of the identity.

    Parameters
    ----------
    depth : int >= 1, default=3
        Number of factors ``L``. One is a free ``X``; two favour low rank less than
        three or four. More than four need a larger ``init_scale``.
    width : int >= 1 or None, default=None
        Inner size of the factors; None is ``min(n_rows, n_cols)``.
    shape : tuple of int or None, default=None
        ``(n_rows, n_cols)``, needed where measurements come as flat rows: without it
        they are those of a single row, (1, n_features). Three-dimensional arrays and
        `Measurements` have it.
    lr : float > 0, default=0.003
        Learning rate of Adam, decayed to zero by a cosine over ``max_iter`` steps.
    init_scale : float > 0, default=0.001
        Standard deviation of the factors' entries at the start (mean zero). The smaller
        it is, the lower the rank and the longer the way from zero.
    max_iter : int >= 1, default=3000
    tol : float >= 0, default=1e-6
        Stop once ``|dF/dW| |W| / (|X| |sum_i y_i A_i|)`` falls to it.
    device : str or torch.device, default="auto"
        Where to compute; "auto" is CUDA if there is one.
    random_state : int, RandomState instance or None, default=None
        Draws the start.

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
    >>> model = FactorizedSensingRegressor(random_state=0).fit(A, np.tensordot(A, X))
    >>> model.matrix_[:, 0].round(1)
    array([1., 2., 3., 4., 5., 6.])
    """

    _parameter_constraints: ClassVar[dict] = {
        **DescentSensingRegressor._parameter_constraints,
        "depth": [Interval(Integral, 1, None, closed="left")],
        "width": [Interval(Integral, 1, None, closed="left"), None],
        "init_scale": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        depth=3,
        width=None,
        *,
        shape=None,
        lr=0.003,
        init_scale=0.001,
        max_iter=3000,
        tol=1e-6,
        device="auto",
        random_state=None,
    ):
        self.depth = depth
        self.width = width
        self.shape = shape
        self.lr = lr
        self.init_scale = init_scale
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.random_state = random_state

    def _model(self, shape: tuple[int, int], draw: Randomness) -> nn.Module:
        width = self.width or min(shape)
        return FactorProduct.random(shape, self.depth, width, self.init_scale, draw)
