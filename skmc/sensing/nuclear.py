"""Matrix sensing by the nuclear norm."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from skmc.compatibility import Interval
from skmc.linalg import Randomness
from skmc.parameters import Count, constrained
from skmc.sensing.measured import Measured
from skmc.sensing.regressor import IterativeSensingRegressor
from skmc.solvers import DouglasRachford, ProximalGradient, Solver
from skmc.terms import MeasurementError, NuclearNorm

LENGTH = 0.3  # of the splitting's step, relative to the least-norm solution


@constrained
@dataclass(eq=False, repr=False)
class NuclearSensingRegressor(IterativeSensingRegressor):
    r"""Low rank by a penalty on the nuclear norm, a convex problem.

    .. math::

        \min_X \tfrac12 \sum_i (y_i - \langle A_i, X\rangle)^2 + \lambda \|X\|_*

    This is half a *sum* over measurements and a sum of singular values, minimized by
    accelerated proximal gradient (`skmc.solvers.ProximalGradient`). In the limit
    ``lambda -> 0`` this is ``min |X|_*`` over the minimizers of the sum of squares;
    with fewer measurements than cells these meet all measurements exactly.
    `skmc.solvers.DouglasRachford` finds the limit. There is no intercept. The
    computation is in double precision.

    Parameters
    ----------
    lambda_nuclear : float in [0, 1], default=0.01
        Weight ``lambda`` relative to ``|sum_i y_i A_i|_2``; at 1 the solution is zero.
        Values to try: .001, .003, .01, .03, .1 (relative to that norm). 0 is
        the limit, which suits only measurements without noise: with about as many
        measurements as cells it fits the noise.
    shape : tuple of int or None, default=None
        Shape ``(n_rows, n_cols)``, required if measurements are given as flat rows.
        Without it the matrix has a single row, (1, n_features). Three-dimensional
        arrays and `Measurements` know their shape.
    device : str or torch.device, default="auto"
        Device of the computation; "auto" is CUDA if it is available.
    max_iter : int >= 1, default=10000
        Maximum number of iterations. Each one computes the measurements of one matrix,
        their adjoint, and the singular values of one matrix.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds. When it has passed, the fit ends after the
        running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-6
        Stop when the norm of a subgradient of the objective is at most this share of
        the gradient of the sum of squares. In the limit, stop when the relative
        distance between the matrix that meets the measurements and the low-rank one is
        at most ``tol``.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_rows, n_cols)
        Recovered matrix ``X``.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every fifth iteration. The objective is
        that of the scaled problem, where ``y`` and the entries of ``A`` have root
        mean square 1; in the limit it is the nuclear norm there.
    n_iter_ : int
    status_ : str
        "converged", "stopped", "max_iter", "max_time", "diverged" or "interrupted".
    n_features_in_ : int
        Number of cells, ``n_rows * n_cols``.
    feature_names_in_ : ndarray of str
        Names of the cells, if flat rows have names.

    References
    ----------
    Recht, Fazel, Parrilo. Guaranteed minimum-rank solutions of linear matrix equations
    via nuclear norm minimization. SIAM Review 52 (2010). -- Toh, Yun. An accelerated
    proximal gradient algorithm for nuclear norm regularized linear least squares
    problems. Pacific Journal of Optimization 6 (2010).

    Examples
    --------
    Thirty measurements of the 36 cells of a matrix of rank one.

    >>> import numpy as np
    >>> from skmc.sensing import NuclearSensingRegressor
    >>> X = np.outer(np.arange(1.0, 7), np.ones(6))
    >>> A = np.random.RandomState(0).randn(30, 6, 6)
    >>> y = np.tensordot(A, X)
    >>> model = NuclearSensingRegressor(lambda_nuclear=0).fit(A, y)
    >>> np.allclose(model.matrix_, X, atol=1e-4)
    True
    """

    check_every: ClassVar[int] = 5

    lambda_nuclear: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.01
    _: KW_ONLY
    max_iter: Count = 10000

    def _make_solver(self, data: Measured, rng: Randomness) -> Solver:
        operator, y = data.operator, data.y
        if self.lambda_nuclear == 0:
            least = torch.linalg.matrix_norm(operator.least_norm(y), 2)

            def project(W: Tensor) -> Tensor:
                return W + operator.least_norm(y - operator.forward(W))

            norm = NuclearNorm(1.0).to(data.values)
            return DouglasRachford(norm, project, LENGTH * float(least) or 1.0)
        weight = self.lambda_nuclear * torch.linalg.matrix_norm(data.values, 2)
        curvature = operator.norm.square() or 1.0
        fit = MeasurementError(operator, y)
        return ProximalGradient(fit, NuclearNorm(weight), curvature)
