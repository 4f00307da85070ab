"""Douglas-Rachford splitting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.solvers.norms import norm, ratio
from skmc.solvers.solver import DecomposingSolver, State
from skmc.terms import Term


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

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : SplittingState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        Y, W = previous.feasible, previous.W
        size = torch.minimum(norm(current.X), norm(2 * Y - W - current.X))
        return ratio(norm(current.X - Y), size)
