"""Matrix sensing by a spectral neural network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from torch import nn

from skmc.linalg import ACTIVATIONS, Randomness, Seed
from skmc.models import SpectralNetwork, checked_widths
from skmc.parameters import Count, Widths, constrained
from skmc.sensing.measured import Measured
from skmc.sensing.regressor import FlowSensingRegressor


@constrained
@dataclass(eq=False, repr=False)
class SpectralSensingRegressor(FlowSensingRegressor):
    r"""Find a low-rank matrix by activations of singular values (SNN).

    For noisy measurements, without a weight to choose; not for exact recovery, for
    which `NuclearSensingRegressor` with ``lambda_nuclear=0`` is better.

    .. math::

        \min \tfrac12 \sum_i (y_i - \langle A_i, X\rangle)^2
        \quad\text{over } X = \sum_k \alpha_k \Gamma(U_k V_k^\top)

    This is half a *sum* over measurements, where ``Gamma(U diag(s) V') = U
    diag(gamma(s)) V'`` and all ``alpha_k``, ``U_k`` and ``V_k`` are learned. There is
    no penalty: gradient flow from near zero makes large singular values grow first. If
    all ``A_i`` share their singular vectors, its limit is the matrix of least nuclear
    norm that meets the measurements. There is no intercept. The computation is in the
    floating-point type of the data.

    The problem is solved in units in which ``y`` and the entries of ``A`` have root
    mean square 1, so that ``|X|_F`` is about 1 if the ``A_i`` cover all directions
    evenly; the paper's matrices have norm one.

    Parameters
    ----------
    layers : sequence of int >= 1, default=(2,)
        Number of matrices in each layer. (K,) is the formula above. With (K, L, ...)
        each of the ``L`` matrices of the second layer is such a sum, to which the next
        layer applies ``Gamma`` again. ``X`` is the sum over the last layer.
    activation : {"tanh", "sigmoid", "truncated_relu"}, default="tanh"
        Function ``gamma``: ``tanh(s)``, ``2 / (1 + exp(-s)) - 1``, ``min(s, 1)``. The
        sigmoid is shifted to vanish at zero: with ``gamma(0) > 0`` the matrix ``Gamma``
        would jump where a singular value vanishes.
    shape : tuple of int or None, default=None
        Shape ``(n_rows, n_cols)``, required if measurements are given as flat rows.
        Without it the matrix has a single row, (1, n_features). Three-dimensional
        arrays and `Measurements` know their shape.
    device : str or torch.device, default="auto"
        Device of the computation; "auto" is CUDA if it is available.
    max_iter : int >= 1, default=3000
        Maximum number of steps of gradient flow, whose length is adaptive, see
        `skmc.solvers.gradient_flow.GradientFlow`.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds. When it has passed, the fit ends after the
        running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-6
        Stop when ``|dF/dW| |W| / (|X| |sum_i y_i A_i|)`` is at most ``tol``, for all
        parameters ``W``.
    init : {"near_zero", "spectral"}, default="near_zero"
        "near_zero": ``U_k`` and ``V_k`` are 1e-4 on the diagonal, plus noise of 1e-6.
        "spectral": ``X`` starts near 1e-8 times ``sum_i y_i A_i``, with ``U_k`` and
        ``V_k`` along its singular vectors. In both, ``alpha`` is uniform between 0 and
        1.
    width : int >= 1 or None, default=None
        Number of columns of each ``U_k`` and ``V_k``; None is ``min(n_rows, n_cols)``,
        which is also the maximum for "spectral".
    random_state : int, RandomState instance or None, default=None
        Seed of the initial parameters.

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
    skmc.SNNCompleter : The same model for observed cells.
    FactorizedSensingRegressor : A product of factors.

    References
    ----------
    Chu, Ghosh, Lam, Mukherjee. Implicit regularization via spectral neural networks
    and non-linear matrix sensing. 2024.

    Examples
    --------
    Thirty measurements of the 36 cells of a matrix of rank one.

    >>> import numpy as np
    >>> from skmc.sensing import SpectralSensingRegressor
    >>> X = np.outer(np.arange(1.0, 7), np.ones(6))
    >>> A = np.random.RandomState(0).randn(30, 6, 6)
    >>> model = SpectralSensingRegressor(random_state=0).fit(A, np.tensordot(A, X))
    >>> model.matrix_[:, 0].round(1)
    array([1., 2., 3., 4., 5., 6.])
    """

    layers: Widths = (2,)
    activation: Literal["sigmoid", "tanh", "truncated_relu"] = "tanh"
    _: KW_ONLY
    init: Literal["near_zero", "spectral"] = "near_zero"
    width: Count | None = None
    random_state: Seed = None

    def _model(self, data: Measured, rng: Randomness) -> nn.Module:
        layers = checked_widths(self.layers, "layers")
        start = getattr(SpectralNetwork, self.init)
        return start(
            data.values,
            layers,
            ACTIVATIONS[self.activation],
            rng,
            width=self.width,
        )
