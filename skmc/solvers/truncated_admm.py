"""Truncated nuclear norm minimization by ADMM, with exact observed cells."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import shrink
from skmc.solvers.norms import relative_norm
from skmc.solvers.truncated import TruncatedNorm, TruncatedState, tail, truncation


@dataclass(frozen=True, kw_only=True)
class ADMMState(TruncatedState):
    """``objective`` is that of the X at the end of the last inner problem.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    low : SVD
        Last matrix whose singular values were shrunk.
    T : Tensor of shape (\\*batch, n_rows, n_cols)
        Matrix ``A'B`` of the inner problem.
    n_inner : Tensor of shape (\\*batch,)
        Number of steps since the inner problem began.
    dual : Tensor of shape (\\*batch, n_rows, n_cols)
        Dual variable, zero on the unobserved cells.
    tau : Tensor of shape (\\*batch,)
        Step ``1 / rho`` for these data.
    """

    dual: Tensor  # (*batch, n_rows, n_cols), zero off the observed cells
    tau: Tensor  # (*batch,), 1 / rho for these data


@dataclass(eq=False, kw_only=True)
class TruncatedADMM(TruncatedNorm):
    r"""The truncated nuclear norm subject to the observed cells, by ADMM.

    .. math::

        \min_X \|X\|_* - \sum_{i \le r} \sigma_i(X)
        \quad\text{subject to } P(X) = P(M)

    The alternating direction method of multipliers on ``|L|_* - tr(A X B')``,
    ``L = X``, where the rows of ``A`` and ``B`` are the first ``rank`` left and right
    singular vectors of the last inner problem's answer: ::

        L = D_{1/rho}(X + (P_perp(A'B) - Y) / rho)
        X = P(M) + P_perp(L)
        Y = Y + rho P(L - M)

    These are the paper's steps: on the unobserved cells its multiplier is ``-A'B``
    after each of them, so only the part ``Y`` on the observed cells is stored.

    When an inner problem ends, the paper starts the next one with an unrelated
    multiplier and takes up to 200 steps. Here ``Y`` is kept: the next problem differs
    only by the change of ``A'B``, and five steps towards its solution are enough. Each
    inner problem is convex, so both lead to the same solution. With a single step for
    each inner problem, the iterates may cycle.

    For data multiplied by c, ``rho / c`` gives the same iterates multiplied by c. So
    ``rho`` is in units of one over the mean singular value of ``P(M)``, and the
    completion does not depend on the unit of the data. ``rho`` is not part of the
    problem and affects only the number of steps. The paper's .05 for pictures in
    0..255, a shrinkage by 20 gray values, is 22 for a centered picture of 240 x 240,
    and takes more steps.

    Parameters
    ----------
    rank : int >= 0
        Number of singular values without penalty; 0 gives the nuclear norm. Zero
        singular values have no vectors here, so ``A`` and ``B`` may have fewer rows.
    inner_iter : int >= 1, default=5
        Largest number of steps with the same ``A, B``.
    inner_tol : float >= 0, default=1e-4
        An inner problem also ends when a step moves X by ``inner_tol |P(M)|_F``.
    rho : float > 0, default=1.5
        Weight of ``1/2 |L - X|_F^2``, in units of one over the mean singular value of
        the zero-filled matrix.

    References
    ----------
    Hu, Zhang, Ye, Li, He. Fast and accurate matrix completion via truncated nuclear
    norm regularization. IEEE TPAMI 35 (2013).

    Examples
    --------
    >>> import torch
    >>> from skmc import Observed, solve
    >>> from skmc.solvers import TruncatedADMM
    >>> M = torch.outer(torch.arange(1.0, 5), torch.tensor([1.0, 2.0, 4.0]))
    >>> mask = torch.ones(4, 3, dtype=torch.bool)
    >>> mask[1, 2] = False
    >>> X = solve(TruncatedADMM(1), Observed(M, mask), max_iter=100, tol=1e-5).X
    >>> X[1].round(decimals=3)
    tensor([2., 4., 8.])
    """

    rho: float = 1.5

    def init(self, data: Observed) -> ADMMState:
        begun, mean = self._begin(data)
        return ADMMState(
            X=data.values,
            objective=tail(begun["low"].s, self.rank),
            dual=torch.zeros_like(data.values),
            tau=mean / self.rho,
            **begun,
        )

    def step(self, data: Observed, state: ADMMState) -> ADMMState:
        means, rest = data.centre(self._shrunk_from(data, state))
        low = shrink(rest, state.tau, warm_start=state.low)
        L = means + low.dense()
        X = data.fill(L)
        ended = self._ended(data, X, state)
        T, objective = state.T, state.objective
        if ended.any():
            members = ended[..., None, None]
            T = torch.where(members, truncation(low, self.rank), T)
            s = torch.linalg.svdvals(data.centre(X)[1])
            objective = torch.where(ended, tail(s, self.rank), objective)
        return replace(
            state,
            X=X,
            objective=objective,
            low=low,
            T=T,
            n_inner=torch.where(ended, 0.0, state.n_inner + 1),
            dual=state.dual + data.residual(L) / state.tau[..., None, None],
        )

    def _shrunk_from(self, data: Observed, state: ADMMState) -> Tensor:
        pull = torch.where(data.mask, -state.dual, state.T)
        return state.X + state.tau[..., None, None] * pull

    def residual(
        self, data: Observed, previous: ADMMState, current: ADMMState
    ) -> Tensor:
        """The larger of two relative norms, both zero at a stationary point.

        These are ``P(L - M)`` over ``P(M)``, and the unobserved part of ``S - A'B``
        over ``S``. Here ``S`` is the subgradient of ``|L|_*`` from the last step and
        ``A, B`` are those of ``L`` itself. Where the residual is zero, both the inner
        and the outer problem are solved.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : ADMMState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        means, rest = data.centre(self._shrunk_from(data, previous))
        low = current.low.dense()
        L, S = means + low, (rest - low) / current.tau[..., None, None]
        slope = torch.where(data.mask, 0.0, S - truncation(current.low, self.rank))
        misfit = data.residual(L)
        return torch.maximum(
            relative_norm(misfit, data.values), relative_norm(slope, S)
        )
