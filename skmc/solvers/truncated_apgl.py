"""Truncated nuclear norm minimization by accelerated proximal gradient, with noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import shrink
from skmc.solvers.momentum import Momentum
from skmc.solvers.norms import relative_norm
from skmc.solvers.truncated import TruncatedNorm, TruncatedState, tail, truncation


@dataclass(frozen=True, kw_only=True)
class APGLState(TruncatedState):
    """An iterate of `TruncatedAPGL`.

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
    Y : Tensor of shape (\\*batch, n_rows, n_cols)
        Point at which the gradient is evaluated.
    momentum : Momentum
        Momentum whose ``t`` is the paper's ``t_k``.
    weight : Tensor of shape (\\*batch,)
        Weight of the data fit for these data.
    """

    Y: Tensor  # (*batch, n_rows, n_cols), where the gradient is evaluated
    momentum: Momentum
    weight: Tensor  # (*batch,), lambda for these data


@dataclass(eq=False, kw_only=True)
class TruncatedAPGL(TruncatedNorm):
    r"""The truncated nuclear norm and a misfit, by accelerated proximal gradient.

    .. math::

        \min_X \|X\|_* - \sum_{i \le r} \sigma_i(X) + \frac w2 \|P(X - M)\|_F^2

    with half a *sum* over observed cells. In an inner problem the second term is
    ``-tr(A X B')`` and the steps are ::

        X = D_{1/w}(Y + A'B / w - P(Y - M))
        Y = X + beta (X - X_previous).

    With weights of cells, the misfit is weighted and the step is ``1 / (w max W)``. The
    step ``1/w`` is one over the Lipschitz constant of the gradient; the paper also
    writes ``t`` for the step, which we interpret in this way. The `Momentum` restarts
    with each inner problem, as in the paper, from the last X.

    Parameters
    ----------
    rank : int >= 0
        Number of singular values without penalty; 0 gives the nuclear norm.
    inner_iter : int >= 1, default=20
        Largest number of steps with the same ``A, B``; few steps leave no time for
        momentum.
    inner_tol : float >= 0, default=1e-4
        An inner problem also ends when a step moves X by ``inner_tol |P(M)|_F``.
    weight : float > 0, default=10
        Weight ``w`` (the paper's lambda), in units of one over the mean singular value
        of the zero-filled matrix, so that the completion does not depend on the unit of
        the data. Singular values of the misfit are at most ``1 / w``. The paper's .06
        for pictures in 0..255 is 27 on a centered one of 240 x 240.

    References
    ----------
    Hu, Zhang, Ye, Li, He. Fast and accurate matrix completion via truncated nuclear
    norm regularization. IEEE TPAMI 35 (2013).
    """

    weight: float = 10.0
    inner_iter: int = 20

    def init(self, data: Observed) -> APGLState:
        begun, mean = self._begin(data)
        return APGLState(
            X=data.values,
            objective=tail(begun["low"].s, self.rank),
            Y=data.values,
            momentum=Momentum(torch.ones_like(mean)),
            weight=self.weight / mean,
            **begun,
        )

    def step(self, data: Observed, state: APGLState) -> APGLState:
        length = 1 / (state.weight * data.largest_weight)
        means, rest = data.centre(self._shrunk_from(data, state))
        low = shrink(rest, length, warm_start=state.low)
        X = means + low.dense()
        ended = self._ended(data, X, state)
        members = ended[..., None, None]
        T = torch.where(members, truncation(low, self.rank), state.T)
        misfit = data.misfit(X)
        return replace(
            state,
            X=X,
            objective=tail(low.s, self.rank) + 0.5 * state.weight * misfit,
            low=low,
            T=T,
            n_inner=torch.where(ended, 0.0, state.n_inner + 1),
            Y=torch.where(members, X, state.momentum.extrapolate(X, state.X)),
            momentum=state.momentum.next.restart(ended),
        )

    def grad(self, data: Observed, X: Tensor, T: Tensor, weight: Tensor) -> Tensor:
        """Derivative of ``-tr(A X B') + w/2 |P(X - M)|_F^2``, with ``T = A'B``.

        Parameters
        ----------
        data : Observed
            The observed cells.
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.
        T : Tensor of shape (\\*batch, n_rows, n_cols)
            Matrix ``A'B`` of the inner problem.
        weight : Tensor of shape (\\*batch,)
            Weight of the data fit for these data.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        return weight[..., None, None] * data.weighted(data.residual(X)) - T

    def _shrunk_from(self, data: Observed, state: APGLState) -> Tensor:
        grad = self.grad(data, state.Y, state.T, state.weight)
        return state.Y - grad / (state.weight * data.largest_weight)[..., None, None]

    def residual(
        self, data: Observed, previous: APGLState, current: APGLState
    ) -> Tensor:
        """``|S - A'B + w P(X - M)|_F / |S|_F``, zero at a stationary point.

        ``S`` is the subgradient of ``|X|_*`` from the last step, and ``A, B`` are those
        of ``X`` itself.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : APGLState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        weight = (current.weight * data.largest_weight)[..., None, None]
        S = weight * (self._shrunk_from(data, previous) - current.X)
        T = truncation(current.low, self.rank)
        return relative_norm(S + self.grad(data, current.X, T, current.weight), S)
