"""Soft-Impute: proximal gradient for the nuclear norm on sparse data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from skmc.cells import SparseObserved
from skmc.linalg import SVD, LowRank, RowModel, SparsePlusLowRank, shrink, spectral_norm
from skmc.solvers.momentum import Momentum
from skmc.solvers.solver import Solver, State


@dataclass(frozen=True, kw_only=True)
class SoftImputeState(State):
    """An iterate of `SoftImpute`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : LowRank
        The completion.
    spectrum : SVD
        The SVD of ``X``.
    seen : Tensor of shape (n_cells,)
        Values of ``X`` at the observed cells.
    before : SVD
        SVD of the previous iterate.
    seen_before : Tensor of shape (n_cells,)
        Previous iterate at the observed cells.
    momentum : Momentum
        Momentum of the next step.
    moved : Tensor of shape ()
        ``|X - Y| / |X|``, where ``Y`` is the start of the last step.
    """

    X: LowRank
    spectrum: SVD  # of X
    seen: Tensor  # (n_cells,), X at the observed cells
    before: SVD
    seen_before: Tensor
    momentum: Momentum
    moved: Tensor  # (), |X - Y| / |X|, where Y is the start of the step


@dataclass(eq=False)
class SoftImpute(Solver):
    r"""Accelerated Soft-Impute on sparse data.

    .. math::

        \min_X \tfrac12 \|P(X - M)\|_F^2 + \lambda \|X\|_*
        \quad\text{subject to } \operatorname{rank} X \le \text{max\_rank}

    a *sum* over observed cells. Each step fills the missing cells from ``Y`` and
    shrinks the singular values, ::

        X <- D_lambda(P(M) + P_perp(Y))

    or with weights ``W``, whose largest is ``L``, ::

        X <- D_(lambda / L)(Y + W P(M - Y) / L)

    where ``Y`` is ``X`` with `Momentum`, which restarts whenever the objective would
    rise. The filled matrix is sparse plus low-rank and is not formed; the search for
    its largest singular values starts from those of the last step.

    Parameters
    ----------
    weight : float > 0
        Weight ``lambda`` of the nuclear norm.
    max_rank : int, optional
        Largest rank of the completion; None sets no bound.
    start : SVD, optional
        Initial iterate, such as the solution for a larger weight; zero by default.

    References
    ----------
    Mazumder, Hastie, Tibshirani. Spectral regularization algorithms for learning large
    incomplete matrices. Journal of Machine Learning Research 11 (2010). Momentum: Yao,
    Kwok. Accelerated inexact Soft-Impute for fast large-scale matrix completion.
    IJCAI (2015).
    """

    svd_tol = 1e-4
    svd_steps = 2
    eager = "how many singular values remain is a shape"

    weight: float
    max_rank: int | None = None
    start: SVD | None = None

    def init(self, data: SparseObserved) -> SoftImputeState:
        m, n = data.shape
        empty = data.values.new_zeros
        return self._state(data, self.start or SVD(empty(m, 0), empty(0), empty(n, 0)))

    def step(self, data: SparseObserved, state: SoftImputeState) -> SoftImputeState:
        new = self._advance(data, state, state.momentum)
        if state.momentum.t > 1 and new.objective > state.objective:
            new = self._advance(data, state, initial_momentum())
        return new

    def _advance(
        self, data: SparseObserved, state: SoftImputeState, momentum: Momentum
    ) -> SoftImputeState:
        Y, seen = state.X, state.seen
        if (beta := momentum.beta) > 0:
            Y = Y * (1 + beta) + state.before.low_rank() * -beta
            seen = seen + beta * (seen - state.seen_before)
        largest = data.largest_weight
        filled = data.plus(data.weighted(data.values - seen) / largest, Y)
        spectrum = self._shrink(filled, state.spectrum, self.weight / largest)
        new = self._state(data, spectrum)
        size = new.X.squared_norm().clamp_min(torch.finfo(seen.dtype).tiny)
        moved = (new.X + Y * -1.0).squared_norm().clamp_min(0) / size
        return replace(
            new,
            before=state.spectrum,
            seen_before=state.seen,
            momentum=momentum.next,
            moved=moved.sqrt(),
        )

    def _state(self, data: SparseObserved, spectrum: SVD) -> SoftImputeState:
        X = spectrum.low_rank()
        seen = data.at(X)
        misfit = data.weighted((seen - data.values).square()).sum()
        return SoftImputeState(
            X=X,
            objective=misfit / 2 + self.weight * spectrum.s.sum(),
            spectrum=spectrum,
            seen=seen,
            before=spectrum,
            seen_before=seen,
            momentum=initial_momentum(),
            moved=torch.full_like(misfit, torch.inf),
        )

    def _shrink(
        self, filled: SparsePlusLowRank, warm_start: SVD, threshold: float
    ) -> SVD:
        return shrink(
            filled,
            threshold,
            warm_start=warm_start,
            max_rank=self.max_rank,
            tol=self.svd_tol,
            max_steps=self.svd_steps,
        )

    def residual(
        self, data: SparseObserved, previous: SoftImputeState, current: SoftImputeState
    ) -> Tensor:
        """Duality gap relative to the objective, which bounds the suboptimality.

        The dual variable is the misfit ``W P(M - X)``, scaled down to spectral norm
        ``weight``; that norm has a relative accuracy of 1e-4. If ``max_rank`` is
        reached, the problem is not convex, and the measure is the relative change in
        the last step, ``|X - Y| / |X|``.

        Parameters
        ----------
        data : SparseObserved
            The observed cells.
        previous : State
            The state before the last step.
        current : State
            The state after it.

        Returns
        -------
        Tensor of shape ()
        """
        if self.max_rank is not None and current.spectrum.rank >= self.max_rank:
            return current.moved
        R = data.values - current.seen
        WR = data.weighted(R)
        start = current.spectrum.V[:, :1]
        misfit = data.plus(WR, data.zero())
        largest = spectral_norm(misfit, start)
        share = (self.weight / largest.clamp_min(self.weight)).clamp(max=1)
        dual = share * (WR * data.values).sum() - share**2 * (WR * R).sum() / 2
        scale = current.objective.clamp_min(torch.finfo(R.dtype).tiny)
        return (current.objective - dual) / scale

    def outputs(self, state: SoftImputeState) -> dict[str, Any]:
        V = state.spectrum.V * state.spectrum.s.sqrt()
        eye = torch.eye(V.shape[1], dtype=V.dtype, device=V.device)
        rows = RowModel(
            V, V.new_zeros(len(V)), self.weight * eye, V.new_zeros(V.shape[1])
        )
        return {"X": state.X, "spectrum": state.spectrum, "rows": [rows]}


def initial_momentum() -> Momentum:
    """Initial momentum, of shape () and always on the CPU.

    Returns
    -------
    Momentum
    """
    return Momentum(torch.ones((), dtype=torch.float64))


def largest_weight(data: SparseObserved) -> float:
    """``|W P(M)|_2``, the smallest weight for which the solution is zero.

    Parameters
    ----------
    data : SparseObserved
        The observed cells.

    Returns
    -------
    float
    """
    whole = data.plus(data.weighted(data.values), data.zero())
    return float(spectral_norm(whole)) * (1 + 1e-6)
