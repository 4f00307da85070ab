"""Singular value thresholding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import SVD, shrink
from skmc.solvers.solver import Solver, State


@dataclass(frozen=True, kw_only=True)
class SVTState(State):
    """An iterate of `SingularValueThresholding`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    spectrum : SVD
        The SVD of ``X``.
    Y : Tensor of shape (\\*batch, n_rows, n_cols)
        The dual variable, zero off the observed cells.
    ahead : Tensor of shape (\\*batch, n_rows, n_cols)
        ``Y`` and what momentum adds; ``Y`` itself without.
    t : Tensor of shape (\\*batch,)
        Momentum.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    spectrum: SVD  # of X
    Y: Tensor  # (*batch, m, n), the dual variable, zero off the observed cells
    ahead: Tensor  # (*batch, m, n), Y and what momentum adds; Y itself without
    t: Tensor  # (*batch,), momentum


class SingularValueThresholding(Solver):
    r"""``min tau |X|_* + 1/2 |X|_F^2`` subject to ``X = M`` on the observed cells.

    Uzawa's iteration, a gradient ascent of the dual, ::

        X <- D_tau(Y)                    singular values less tau
        Y <- Y + delta P(M - X)

    started at ``Y = k0 delta P(M)``, ``k0 = ceil(tau / (delta |P(M)|_2))``, up to which
    ``X`` would stay zero. Without a ``delta`` the step is 1 and Nesterov's momentum is
    added, restarted where it points downhill: that is ours, and converges whatever
    share of the cells is observed, in a fraction of the iterations.

    Parameters
    ----------
    tau : float
        In the units of the data.
    delta : float, optional
        Below 2 for certain convergence; the authors' is ``1.2 m n / |Omega|``.

    References
    ----------
    Cai, Candes, Shen. A singular value thresholding algorithm for matrix completion.
    SIAM Journal on Optimization 20 (2010).
    """

    def __init__(self, tau: float, delta: float | None = None):
        self.tau = tau
        self.delta = delta

    def init(self, data: Observed) -> SVTState:
        D, delta = data.values, self.delta or 1.0
        largest = torch.linalg.matrix_norm(D, 2)
        tiny = torch.finfo(D.dtype).tiny
        kicks = (self.tau / (delta * largest).clamp_min(tiny)).ceil()
        kicks = torch.where(largest > 0, kicks, torch.zeros_like(kicks))
        Y = kicks[..., None, None] * delta * D
        return SVTState(
            X=torch.zeros_like(D),
            objective=torch.full_like(largest, torch.inf),
            spectrum=SVD.zero(D),
            Y=Y,
            ahead=Y,
            t=torch.ones_like(largest),
        )

    def step(self, data: Observed, state: SVTState) -> SVTState:
        spectrum = shrink(state.ahead, self.tau, near=state.spectrum)
        X, s = spectrum.dense(), spectrum.s
        slope = data.residual(X)
        Y = state.ahead - (self.delta or 1.0) * slope
        ahead, t = Y, state.t
        if self.delta is None:
            moved = Y - state.Y
            downhill = (slope * moved).sum((-2, -1)) > 0
            before = torch.where(downhill, torch.ones_like(t), t)
            t = (1 + (1 + 4 * before**2).sqrt()) / 2
            ahead = Y + ((before - 1) / t)[..., None, None] * moved
        return SVTState(
            X=X,
            objective=(self.tau * s + s.square() / 2).sum(-1),
            spectrum=spectrum,
            Y=Y,
            ahead=ahead,
            t=t,
        )

    def residual(self, data: Observed, previous, current: SVTState) -> Tensor:
        """``|P(X - M)|`` over that of the mean, ``|P(mean - M)|``.

        The rest of the conditions hold in every step.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : SVTState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        mean = data.values.sum((-2, -1)) / data.n_observed
        scale = data.energy - data.n_observed * mean.square()
        # All cells alike: nothing to compare with but themselves.
        rounding = 1e-12 * data.energy + torch.finfo(scale.dtype).tiny
        scale = torch.where(scale > rounding, scale, data.energy + rounding)
        return (data.misfit(current.X) / scale).sqrt()
