"""Alternation between filling missing cells and projecting to a rank."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.solvers.relative import norm, ratio
from skmc.solvers.solver import DecomposingSolver, State
from skmc.terms import SquaredError

EXACT = 1e-3  # relative misfit below which it no longer lowers the residual


@dataclass(frozen=True, kw_only=True)
class HardRankState(State):
    """An iterate of `HardRank`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    V : Tensor of shape (\\*batch, n_cols, rank)
        Orthonormal basis of the row space, without the free means.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    V: Tensor  # (*batch, n_cols, rank), orthonormal basis of the row space


class HardRank(DecomposingSolver[Observed, HardRankState]):
    r"""Least squares over the matrices of bounded rank.

    .. math::

        \min_X \tfrac12 \|P(X - M)\|_F^2
        \quad\text{subject to } \operatorname{rank} X \le r

    Each step fills the missing cells from ``X``, which gives ``F``, updates the row
    space by one step of orthogonal iteration ``V = orth(F' F V)`` and projects,
    ``X = F V V'``. The objective never rises. The start is the truncated SVD of the
    filled matrix. With weights, ``F`` is the minimizer of a majorizer of the misfit,
    see `skmc.Observed.towards`. If the data have free means, the rank is that of ``X``
    without its column means: those of ``F`` are subtracted before the projection, and
    added again.

    Parameters
    ----------
    rank : int
        Largest rank ``r`` of the completion.
    start : Tensor of shape (\*batch, n_rows, n_cols) or None, default=None
        Initial values of the hidden cells; None is zero.

    References
    ----------
    Troyanskaya et al. Missing value estimation methods for DNA microarrays.
    Bioinformatics 17 (2001): SVDimpute, there with a full SVD per step.
    """

    def __init__(self, rank: int, start: Tensor | None = None):
        self.rank = rank
        self.start = start

    def init(self, data: Observed) -> HardRankState:
        filled = data.towards(data.zero() if self.start is None else self.start)
        means, rest = data.centre(filled)
        _, _, Vh = torch.linalg.svd(rest, full_matrices=False)
        return self._project(data, means, rest, Vh[..., : self.rank, :].mT)

    def step(self, data: Observed, state: HardRankState) -> HardRankState:
        means, rest = data.centre(data.towards(state.X))
        V, _ = torch.linalg.qr(rest.mT @ (rest @ state.V))
        return self._project(data, means, rest, V)

    def _project(
        self, data: Observed, means: Tensor, rest: Tensor, V: Tensor
    ) -> HardRankState:
        X = means + (rest @ V) @ V.mT
        return HardRankState(X=X, objective=SquaredError(data)(X), V=V)

    def residual(
        self, data: Observed, previous: HardRankState, current: HardRankState
    ) -> Tensor:
        """Norm of the gradient along the rank-r matrices, relative to the misfit.

        A misfit below ``.001 |P(M)|`` counts as this.
        """
        misfit = data.weighted(data.residual(current.X))
        means, R = data.centre(misfit)
        V = current.V
        U, _ = torch.linalg.qr(data.centre(current.X)[1] @ V)
        left = U @ (U.mT @ R)
        grad = means + left + ((R - left) @ V) @ V.mT
        least = EXACT * norm(data.weighted(data.values))
        return ratio(norm(grad), torch.maximum(norm(misfit), least))
