"""The accelerated proximal gradient method."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.solvers.momentum import Momentum
from skmc.solvers.norms import relative_norm
from skmc.solvers.solver import DecomposingSolver, State
from skmc.terms import Term


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

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : ProximalState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        return relative_norm(current.subgradient, current.grad)
