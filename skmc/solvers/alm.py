"""Nuclear-norm minimization by the inexact augmented Lagrangian method."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import SVD, shrink
from skmc.solvers.norms import norm
from skmc.solvers.solver import DecomposingSolver, State


@dataclass(frozen=True, kw_only=True)
class InexactALMState(State):
    """An iterate of `InexactALM`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    spectrum : SVD
        The SVD of ``X`` without the free means.
    dual : Tensor of shape (\\*batch, n_rows, n_cols)
        Lagrange multipliers.
    mu : Tensor of shape (\\*batch,)
        Penalty weight of the constraint.
    drift : Tensor of shape (\\*batch,)
        ``min(mu, sqrt mu) |E - E before| / |P(M)|``, with a unit-free ``mu``.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    spectrum: SVD  # of X without the free means
    dual: Tensor  # (*batch, m, n)
    mu: Tensor  # (*batch,)
    drift: Tensor  # (*batch,), min(mu, sqrt mu) |E - E before| / |P(M)|, mu unit-free


class InexactALM(DecomposingSolver[Observed, InexactALMState]):
    r"""The inexact augmented Lagrangian method for nuclear-norm minimization.

    .. math::

        \min_X \|X\|_* \quad\text{subject to } X = M \text{ on the observed cells}

    With ``D = P(M) = X + E``, and ``E`` zero on the observed cells, each step is ::

        X <- D_{1/mu}(D - E + Y / mu)            subtracts 1 / mu from singular values
        E <- the unobserved part of D - X + Y / mu
        Y <- Y + mu (D - X - E)

    from ``mu = .3 / |D|_2``. While ``min(mu, sqrt mu) |dE| / |D|`` is at most
    ``drift_tol``, ``mu`` is multiplied by ``1.2172 + 1.8588 |Omega| / (m n)``. The
    authors' test depends on the unit of the data; here ``mu`` is multiplied by their
    root mean square. Free means of the columns are not penalized: they are subtracted
    before the singular values are shrunk, and added again.

    Parameters
    ----------
    drift_tol : float, default=1e-05
        Drift below which ``mu`` grows and the iterates can converge.

    References
    ----------
    Lin, Chen, Ma. The augmented Lagrange multiplier method for exact recovery of
    corrupted low-rank matrices. arXiv:1009.5055 (2010), section 4.
    """

    def __init__(self, drift_tol: float = 1e-5):
        self.drift_tol = drift_tol

    def init(self, data: Observed) -> InexactALMState:
        D = data.values
        largest = torch.linalg.matrix_norm(data.centre(D)[1], 2)
        zero = torch.zeros_like(D)
        return InexactALMState(
            X=zero,
            objective=torch.zeros_like(largest),
            spectrum=SVD.zero(D),
            dual=zero,
            mu=0.3 / torch.where(largest > 0, largest, torch.ones_like(largest)),
            drift=torch.full_like(largest, torch.inf),
        )

    def step(self, data: Observed, state: InexactALMState) -> InexactALMState:
        D, mu = data.values, state.mu[..., None, None]
        # On the unobserved cells, Y is zero and E is -X after every step.
        means, rest = data.centre(torch.where(data.mask, D + state.dual / mu, state.X))
        spectrum = shrink(rest, 1 / state.mu, warm_start=state.spectrum)
        del rest
        X = means + spectrum.dense()
        scale = data.energy.sqrt().clamp_min(torch.finfo(D.dtype).tiny)
        free = state.mu * scale / data.n_observed.sqrt()
        moved = norm(torch.where(data.mask, 0.0, X - state.X))
        drift = torch.minimum(free, free.sqrt()) * moved / scale
        share = data.n_observed / (D.shape[-2] * D.shape[-1])
        growth = 1.2172 + 1.8588 * share
        # A larger mu would only overflow.
        ends = state.mu * scale > 1 / torch.finfo(D.dtype).eps
        grows = (drift <= self.drift_tol) & ~ends
        return InexactALMState(
            X=X,
            objective=spectrum.s.sum(-1),
            spectrum=spectrum,
            dual=data.residual(X).mul_(-mu).add_(state.dual),
            mu=torch.where(grows, growth * state.mu, state.mu),
            drift=drift,
        )

    def residual(
        self, data: Observed, previous: InexactALMState, current: InexactALMState
    ) -> Tensor:
        """``|D - X - E| / |D|``, or infinity while the drift is above its tolerance.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : InexactALMState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        scale = data.energy.clamp_min(torch.finfo(data.values.dtype).tiny)
        infeasible = (data.misfit(current.X) / scale).sqrt()
        return torch.where(current.drift > self.drift_tol, torch.inf, infeasible)
