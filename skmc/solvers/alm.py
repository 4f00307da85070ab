"""The inexact augmented Lagrangian method for the nuclear norm."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg import SVD, shrink
from skmc.observed import Observed
from skmc.solvers.solver import Solver, State


@dataclass(frozen=True, kw_only=True)
class InexactALMState(State):
    spectrum: SVD  # of X
    E: Tensor  # (*batch, m, n), what fills the missing cells, negated; zero on Omega
    dual: Tensor  # (*batch, m, n)
    mu: Tensor  # (*batch,)
    drift: Tensor  # (*batch,), min(mu, sqrt mu) |E - E before| / |P(M)|, mu unit-free


class InexactALM(Solver):
    r"""``min |X|_*`` subject to ``X = M`` on the observed cells.

    With ``D = P(M) = X + E``, ``E`` zero on the observed cells, each step is ::

        X <- D_{1/mu}(D - E + Y / mu)            singular values less 1 / mu
        E <- the unobserved part of D - X + Y / mu
        Y <- Y + mu (D - X - E)

    from ``mu = .3 / |D|_2``. Where ``min(mu, sqrt mu) |dE| / |D|`` is at most
    ``drift_tol``, ``mu`` grows by ``1.2172 + 1.8588 |Omega| / (m n)``. The authors'
    test has a unit; here it takes ``mu`` times the root mean square of the data.

    References
    ----------
    Lin, Chen, Ma. The augmented Lagrange multiplier method for exact recovery of
    corrupted low-rank matrices. arXiv:1009.5055 (2010), section 4.
    """

    def __init__(self, drift_tol: float = 1e-5):
        self.drift_tol = drift_tol

    def init(self, data: Observed) -> InexactALMState:
        D = data.values
        largest = torch.linalg.matrix_norm(D, 2)
        zero = torch.zeros_like(D)
        return InexactALMState(
            X=zero,
            objective=torch.zeros_like(largest),
            spectrum=SVD.zero(D),
            E=zero,
            dual=zero,
            mu=0.3 / torch.where(largest > 0, largest, torch.ones_like(largest)),
            drift=torch.full_like(largest, torch.inf),
        )

    def step(self, data: Observed, state: InexactALMState) -> InexactALMState:
        D, mu = data.values, state.mu[..., None, None]
        target = D + state.dual / mu
        spectrum = shrink(target - state.E, 1 / state.mu, near=state.spectrum)
        X = spectrum.dense()
        E = (target - X).mul_(1 - data.indicator)
        scale = norm(D).clamp_min(torch.finfo(D.dtype).tiny)
        free = state.mu * scale / data.n_observed.sqrt()
        drift = torch.minimum(free, free.sqrt()) * norm(E - state.E) / scale
        # There mu has nothing left to do but to overflow.
        ends = state.mu * scale > 1 / torch.finfo(D.dtype).eps
        share = data.n_observed / (D.shape[-2] * D.shape[-1])
        growth = 1.2172 + 1.8588 * share
        return InexactALMState(
            X=X,
            objective=spectrum.s.sum(-1),
            spectrum=spectrum,
            E=E,
            dual=state.dual + mu * (D - X - E),
            mu=torch.where(
                (drift <= self.drift_tol) & ~ends, growth * state.mu, state.mu
            ),
            drift=drift,
        )

    def residual(self, data: Observed, previous, current: InexactALMState) -> Tensor:
        """``|D - X - E| / |D|``, infinite while the iterates drift."""
        D = data.values
        scale = norm(D).clamp_min(torch.finfo(D.dtype).tiny)
        infeasible = norm(D - current.X - current.E) / scale
        return torch.where(current.drift > self.drift_tol, torch.inf, infeasible)


def norm(X: Tensor) -> Tensor:
    """Frobenius norm, per batch member."""
    return X.square().sum((-2, -1)).sqrt()
