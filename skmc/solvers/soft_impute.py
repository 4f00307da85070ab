"""Soft-Impute: proximal gradient for the nuclear norm on sparse data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from skmc.cells import SparseObserved
from skmc.linalg import SVD, LowRank, RowModel, SparsePlusLowRank, shrink, spectral_norm
from skmc.solvers.effects import Effects, Sides
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
        The completion, ``L`` and the effects.
    spectrum : SVD
        The SVD of ``L``.
    effects : Effects
        The effects of rows and columns.
    seen : Tensor of shape (n_cells,)
        Values of ``X`` at the observed cells.
    before : SVD
        SVD of the previous ``L``.
    seen_before : Tensor of shape (n_cells,)
        Previous iterate at the observed cells.
    momentum : Momentum
        Momentum of the next step.
    extrapolated : LowRank
        ``Y``, the start of the last step.
    """

    X: LowRank
    spectrum: SVD  # of L
    effects: Effects
    seen: Tensor  # (n_cells,), X at the observed cells
    before: SVD
    seen_before: Tensor
    momentum: Momentum
    extrapolated: LowRank  # Y, the start of the last step


@dataclass(eq=False)
class SoftImpute(Solver):
    r"""Accelerated Soft-Impute on sparse data.

    .. math::

        \min_{L, a, b} \tfrac12 \|P(L + a 1^\top + 1 b^\top - M)\|_F^2
        + \lambda \|L\|_*
        \quad\text{subject to } \operatorname{rank} L \le \text{max\_rank}

    a *sum* over observed cells. Without effects, ``a = b = 0``. Each step fills the
    missing cells from ``Y`` and shrinks the singular values, ::

        L <- D_lambda(P(M) + P_perp(Y))

    or with weights ``W``, whose largest is ``w``, ::

        L <- D_(lambda / w)(Y + W P(M - Y) / w)

    where ``Y`` is ``L`` with `Momentum`, which restarts whenever the objective would
    rise. The filled matrix is sparse plus low-rank and is not formed; the search for
    its largest singular values starts from those of the last step.

    Effects are eliminated: for every ``L``, they are the least-squares effects of
    ``M - L``, so ``M - Y`` becomes its part ``Q(M - Y)`` without effects. The
    projection ``Q`` is linear: the effects of ``Y`` are extrapolated as ``L`` is, and
    the step length remains valid.

    Parameters
    ----------
    weight : float > 0
        Weight ``lambda`` of the nuclear norm.
    max_rank : int, optional
        Largest rank of the completion; None sets no bound.
    start : SVD, optional
        Initial ``L``, such as the solution for a larger weight; zero by default.
    sides : {"both", "rows", "columns"} or None, default=None
        The sides that have effects.

    References
    ----------
    Mazumder, Hastie, Tibshirani. Spectral regularization algorithms for learning large
    incomplete matrices. Journal of Machine Learning Research 11 (2010). Momentum: Yao,
    Kwok. Accelerated inexact Soft-Impute for fast large-scale matrix completion.
    IJCAI (2015). Effects: Athey, Bayati, Doudchenko, Imbens, Khosravi. Matrix
    completion methods for causal panel data models. JASA 116 (2021).
    """

    svd_tol = 1e-4
    svd_steps = 2

    weight: float
    max_rank: int | None = None
    start: SVD | None = None
    sides: Sides | None = None

    def init(self, data: SparseObserved) -> SoftImputeState:
        m, n = data.shape
        empty = data.values.new_zeros
        start = self.start or SVD(empty(m, 0), empty(0), empty(n, 0))
        return self._state(data, start, Effects.zero(data))

    def step(self, data: SparseObserved, state: SoftImputeState) -> SoftImputeState:
        new = self._advance(data, state, state.momentum)
        if state.momentum.t > 1 and new.objective > state.objective:
            new = self._advance(data, state, initial_momentum())
        return new

    def _advance(
        self, data: SparseObserved, state: SoftImputeState, momentum: Momentum
    ) -> SoftImputeState:
        Y, seen = state.spectrum.low_rank(), state.seen
        if (beta := momentum.beta) > 0:
            Y = Y * (1 + beta) + state.before.low_rank() * -beta
            seen = seen + beta * (seen - state.seen_before)
        largest = data.largest_weight
        filled = data.plus(data.weighted(data.values - seen) / largest, Y)
        spectrum = self._shrink(filled, state.spectrum, self.weight / largest)
        return replace(
            self._state(data, spectrum, state.effects),
            before=state.spectrum,
            seen_before=state.seen,
            momentum=momentum.next,
            extrapolated=Y,
        )

    def _state(
        self, data: SparseObserved, spectrum: SVD, effects: Effects
    ) -> SoftImputeState:
        X = spectrum.low_rank()
        seen = data.at(X)
        if self.sides is not None:
            effects = effects.fitted(data, data.values - seen, self.sides)
            X, seen = X + effects.low_rank(), seen + effects.at(data)
        misfit = data.weighted((seen - data.values).square()).sum()
        return SoftImputeState(
            X=X,
            objective=misfit / 2 + self.weight * spectrum.s.sum(),
            spectrum=spectrum,
            effects=effects,
            seen=seen,
            before=spectrum,
            seen_before=seen,
            momentum=initial_momentum(),
            extrapolated=X,
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

        The dual problem maximizes ``<Z, M> - |W^(-1/2) Z|^2 / 2`` over ``Z`` of
        spectral norm at most ``weight`` on the observed cells, whose sums over each row
        and each column with an effect are zero. The dual variable is the misfit ``W P(M
        - X)``, scaled down to that norm, which has a relative accuracy of 1e-4. Its
        sums are zero because the effects are those of least squares, and ``<Z, M>`` is
        ``<Z, M - a 1' - 1 b'>``. If ``max_rank`` is reached, the problem is not convex,
        and the measure is the relative change in the last step, ``|L - Y| / |L|``.

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
            low = current.spectrum.low_rank()
            moved = (low + current.extrapolated * -1.0).squared_norm()
            tiny = torch.finfo(moved.dtype).tiny
            return (moved.clamp_min(0) / low.squared_norm().clamp_min(tiny)).sqrt()
        values = data.values
        if self.sides is not None:
            values = values - current.effects.at(data)
        R = data.values - current.seen
        WR = data.weighted(R)
        start = current.spectrum.V[:, :1]
        misfit = data.plus(WR, data.zero())
        largest = spectral_norm(misfit, start)
        share = (self.weight / largest.clamp_min(self.weight)).clamp(max=1)
        dual = share * (WR * values).sum() - share**2 * (WR * R).sum() / 2
        scale = current.objective.clamp_min(torch.finfo(R.dtype).tiny)
        return (current.objective - dual) / scale

    def outputs(self, state: SoftImputeState) -> dict[str, Any]:
        F = state.spectrum.V * state.spectrum.s.sqrt()
        penalties = F.new_full(F.shape[1:], self.weight)
        if self.sides in ("both", "rows"):
            F = torch.cat([F, F.new_ones(len(F), 1)], 1)
            # Zero would make the system of an empty row singular.
            tiny = F.new_full((1,), torch.finfo(F.dtype).tiny)
            penalties = torch.cat([penalties, tiny])
        mean = torch.zeros_like(penalties)
        rows = RowModel(F, state.effects.b, penalties.diag(), mean)
        return {"X": state.X, "spectrum": state.spectrum, "rows": [rows]}


def initial_momentum() -> Momentum:
    """Initial momentum, of shape () and always on the CPU.

    Returns
    -------
    Momentum
    """
    return Momentum(torch.ones((), dtype=torch.float64))


def largest_weight(data: SparseObserved, sides: Sides | None = None) -> float:
    """``|W P(M)|_2``, the smallest weight for which the solution is zero.

    With effects, ``M`` is replaced by its part without them, and the solution is the
    effects.

    Parameters
    ----------
    data : SparseObserved
        The observed cells.
    sides : {"both", "rows", "columns"} or None, default=None
        The sides that have effects.

    Returns
    -------
    float
    """
    R = data.values
    if sides is not None:
        R = R - Effects.zero(data).fitted(data, R, sides).at(data)
        noise = torch.finfo(R.dtype).eps ** 1.5 * data.energy
        if data.weighted(R.square()).sum() <= noise:
            return 0.0
    whole = data.plus(data.weighted(R), data.zero())
    return float(spectral_norm(whole)) * (1 + 1e-6)
