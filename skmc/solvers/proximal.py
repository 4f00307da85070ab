"""Accelerated proximal gradient."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.solvers.solver import Solver, State
from skmc.terms import NuclearNorm, Term, inner


@dataclass(frozen=True, kw_only=True)
class ProximalState(State):
    """An iterate of `ProximalGradient`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    grad : Tensor of shape (\\*batch, n_rows, n_cols)
        ``dF/dX`` at ``X``.
    ahead : Tensor of shape (\\*batch, n_rows, n_cols)
        ``X`` and what momentum adds.
    ahead_grad : Tensor of shape (\\*batch, n_rows, n_cols)
        ``dF/dX`` there.
    t : Tensor of shape (\\*batch,)
        Momentum.
    slope : Tensor of shape (\\*batch, n_rows, n_cols)
        A subgradient of the objective at ``X``.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    grad: Tensor  # dF/dX at X
    ahead: Tensor  # X and what momentum adds
    ahead_grad: Tensor  # dF/dX there
    t: Tensor  # (*batch,), momentum
    slope: Tensor  # a subgradient of F + R at X


class ProximalGradient(Solver):
    r"""``min F(X) + R(X)`` with a quadratic ``F``, by FISTA with restarts, from zero.

    ::

        X <- prox(Y - grad F(Y) / L)        of R / L
        Y <- X + (t - 1) / t' (X - X before),   t' = (1 + sqrt(1 + 4 t^2)) / 2

    and ``t = 1`` again where momentum points uphill, ``<Y - X, X - X before> > 0``. As
    ``F`` is quadratic, its slope at ``Y`` follows from the slopes at the ``X``.

    Parameters
    ----------
    smooth : Term
        ``F``.
    regularizer : NuclearNorm
        ``R``, any term with ``prox_and_value``.
    curvature : float or Tensor of shape (\*batch,)
        ``L``, at least the largest eigenvalue of ``F``'s Hessian.

    References
    ----------
    Beck, Teboulle. A fast iterative shrinkage-thresholding algorithm for linear inverse
    problems. SIAM Journal on Imaging Sciences 2 (2009). -- O'Donoghue, Candes. Adaptive
    restart for accelerated gradient schemes. Foundations of Computational Mathematics
    15 (2015).
    """

    def __init__(
        self, smooth: Term, regularizer: NuclearNorm, curvature: float | Tensor
    ):
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
            ahead=X,
            ahead_grad=grad,
            t=torch.ones_like(value),
            slope=grad,
        )

    def step(self, data: Observed, state: ProximalState) -> ProximalState:
        Y, L = state.ahead, torch.as_tensor(self.curvature).to(state.X)
        length = 1 / L
        X, penalty = self.regularizer.prox_and_value(
            Y - length[..., None, None] * state.ahead_grad, length
        )
        value, grad = self.smooth.value_and_grad(X)
        moved, back = X - state.X, Y - X
        t = torch.where(inner(back, moved) > 0, 1.0, state.t)
        following = (1 + (1 + 4 * t.square()).sqrt()) / 2
        beta = ((t - 1) / following)[..., None, None]
        return ProximalState(
            X=X,
            objective=value + penalty,
            grad=grad,
            ahead=X + beta * moved,
            ahead_grad=grad + beta * (grad - state.grad),
            t=following,
            slope=grad - state.ahead_grad + L[..., None, None] * back,
        )

    def residual(self, data: Observed, previous, current: ProximalState) -> Tensor:
        """``|S| / |grad F(X)|``, ``S`` a subgradient of the objective at ``X``.

        At the optimum the slopes of ``F`` and ``R`` cancel.

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
        scale = torch.linalg.matrix_norm(current.grad)
        tiny = torch.finfo(scale.dtype).tiny
        return torch.linalg.matrix_norm(current.slope) / scale.clamp_min(tiny)
