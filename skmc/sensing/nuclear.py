"""Matrix sensing by the nuclear norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.compatibility import Interval
from skmc.linalg import Randomness
from skmc.parameters import Count, constrained
from skmc.sensing.measured import Measured
from skmc.sensing.regressor import IterativeSensingRegressor
from skmc.solvers import (
    DecomposingSolver,
    Momentum,
    Solver,
    State,
    norm,
    ratio,
    relative_norm,
)
from skmc.terms import MeasurementError, NuclearNorm, Term

LENGTH = 0.3  # of the splitting's step, relative to the least-norm solution


@constrained
@dataclass(eq=False, repr=False)
class NuclearSensingRegressor(IterativeSensingRegressor):
    r"""Find a low-rank matrix by a penalty on the nuclear norm, a convex problem.

    For fewer measurements than cells: with weight 0 if they have no noise, otherwise
    with a weight that a search has chosen. Not for thousands of rows and columns.

    .. math::

        \min_X \tfrac12 \sum_i (y_i - \langle A_i, X\rangle)^2 + \lambda \|X\|_*

    This is half a *sum* over measurements and a sum of singular values, minimized by
    accelerated proximal gradient (`skmc.sensing.nuclear.ProximalGradient`). In the
    limit ``lambda -> 0`` this is ``min |X|_*`` over the minimizers of the sum of
    squares; with fewer measurements than cells these meet all measurements exactly.
    `skmc.sensing.nuclear.DouglasRachford` finds the limit. There is no intercept. The
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

    See Also
    --------
    FactorizedSensingRegressor : Low rank without a weight to choose.
    SpectralSensingRegressor : Low rank without a weight to choose.

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


@dataclass(frozen=True, kw_only=True)
class ProximalState(State):
    """An iterate of `ProximalGradient`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at ``X``.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        The completion.
    grad : Tensor of shape (\\*batch, n_rows, n_cols)
        ``dF/dX`` at ``X``.
    extrapolated : Tensor of shape (\\*batch, n_rows, n_cols)
        Point ``Y`` at which the next step starts.
    extrapolated_grad : Tensor of shape (\\*batch, n_rows, n_cols)
        ``dF/dX`` at ``Y``.
    momentum : Momentum
        Momentum of the next step.
    subgradient : Tensor of shape (\\*batch, n_rows, n_cols)
        A subgradient of ``F + R`` at ``X``.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    grad: Tensor  # dF/dX at X
    extrapolated: Tensor  # Y
    extrapolated_grad: Tensor  # dF/dX at Y
    momentum: Momentum
    subgradient: Tensor  # of F + R at X


class ProximalGradient(DecomposingSolver[Observed, ProximalState]):
    r"""FISTA with restarts, started at zero, for a quadratic ``F`` and a convex ``R``.

    .. math::

        \min_X F(X) + R(X)

    Each step is ::

        X <- prox(Y - grad F(Y) / L)        of R / L
        Y <- X + beta (X - X before)        see `Momentum`

    and the momentum restarts where ``<Y - X, X - X before> > 0``. As ``F`` is
    quadratic, its gradient at ``Y`` follows from the gradients at the ``X``.

    Parameters
    ----------
    smooth : Term
        Smooth function ``F``.
    regularizer : Term
        Regularizer ``R``, which has a `Term.prox`.
    curvature : float or Tensor of shape (\*batch,)
        Constant ``L``, at least the largest eigenvalue of the Hessian of ``F``.
    """

    def __init__(self, smooth: Term, regularizer: Term, curvature: float | Tensor):
        self.smooth = smooth
        self.regularizer = regularizer
        self.curvature = curvature

    def init(self, data: Observed) -> ProximalState:
        X = data.zero()
        value, grad = self.smooth.value_and_grad(X)
        return ProximalState(
            X=X,
            objective=value + self.regularizer(X),
            grad=grad,
            extrapolated=X,
            extrapolated_grad=grad,
            momentum=Momentum(torch.ones_like(value)),
            subgradient=grad,
        )

    def step(self, data: Observed, state: ProximalState) -> ProximalState:
        Y, L = state.extrapolated, torch.as_tensor(self.curvature).to(state.X)
        length = 1 / L
        X, penalty = self.regularizer.prox_and_value(
            Y - length[..., None, None] * state.extrapolated_grad, length
        )
        value, grad = self.smooth.value_and_grad(X)
        momentum = state.momentum.restart_uphill(Y, X, state.X)
        return ProximalState(
            X=X,
            objective=value + penalty,
            grad=grad,
            extrapolated=momentum.extrapolate(X, state.X),
            extrapolated_grad=momentum.extrapolate(grad, state.grad),
            momentum=momentum.next,
            subgradient=grad - state.extrapolated_grad + L[..., None, None] * (Y - X),
        )

    def residual(
        self, data: Observed, previous: ProximalState, current: ProximalState
    ) -> Tensor:
        """``|S| / |grad F(X)|``, ``S`` a subgradient of the objective at ``X``.

        At the optimum the subgradients of ``F`` and ``R`` cancel.
        """
        return relative_norm(current.subgradient, current.grad)


@dataclass(frozen=True, kw_only=True)
class SplittingState(State):
    """An iterate of `DouglasRachford`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        Result of the proximal operator of the regularizer.
    feasible : Tensor of shape (\\*batch, n_rows, n_cols)
        Projection of ``W`` to the affine set.
    W : Tensor of shape (\\*batch, n_rows, n_cols)
        Point from which both were computed.
    """

    X: Tensor  # (*batch, n_rows, n_cols), result of the regularizer's prox
    feasible: Tensor  # (*batch, m, n), in C
    W: Tensor  # (*batch, m, n), both were computed from it


@dataclass(eq=False)
class DouglasRachford(DecomposingSolver[Observed, SplittingState]):
    r"""Douglas-Rachford splitting for a regularizer over an affine set.

    .. math::

        \min_X R(X) \quad\text{subject to } X \in C

    by the steps ::

        Y <- P(W)                   the point of C nearest to W
        X <- prox(2 Y - W)          of length R
        W <- W + X - Y

    Parameters
    ----------
    regularizer : Term
        Regularizer ``R``, which has a `Term.prox`.
    project : callable
        Projection ``P``, which maps matrices to the nearest points of ``C``.
    length : float > 0
        Step length. It affects only the speed. The size of the solution's singular
        values is a good choice.

    References
    ----------
    Combettes, Pesquet. A Douglas-Rachford splitting approach to nonsmooth convex
    variational signal recovery. IEEE Journal of Selected Topics in Signal Processing 1
    (2007).
    """

    regularizer: Term
    project: Callable[[Tensor], Tensor]
    length: float

    def init(self, data: Observed) -> SplittingState:
        zero = data.zero()
        return SplittingState(
            X=zero,
            objective=self.regularizer(zero),
            feasible=self.project(zero),
            W=zero,
        )

    def step(self, data: Observed, state: SplittingState) -> SplittingState:
        W, Y = state.W, state.feasible
        X, value = self.regularizer.prox_and_value(2 * Y - W, self.length)
        W = W + X - Y
        return SplittingState(X=X, objective=value, feasible=self.project(W), W=W)

    def residual(
        self, data: Observed, previous: SplittingState, current: SplittingState
    ) -> Tensor:
        """The larger of ``|X - Y| / |X|`` and ``|X - Y| / |length G|``.

        ``G`` is a subgradient of the regularizer at ``X``. After a relative change by
        the second amount, it has no component along ``C``.
        """
        Y, W = previous.feasible, previous.W
        size = torch.minimum(norm(current.X), norm(2 * Y - W - current.X))
        return ratio(norm(current.X - Y), size)
