"""Truncated nuclear norm: all singular values but the largest are made small."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import SVD, full_svd, shrink
from skmc.solvers.solver import Solver, State


@dataclass(frozen=True, kw_only=True)
class TruncatedState(State):
    """Between inner problems, and inside of one.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    low : SVD
        The matrix that was shrunk last.
    T : Tensor of shape (\\*batch, n_rows, n_cols)
        ``A'B`` of the inner problem.
    n_inner : Tensor of shape (\\*batch,)
        Steps since the inner problem began.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    low: SVD  # the matrix that was shrunk last
    T: Tensor  # (*batch, n_rows, n_cols), A'B of the inner problem
    n_inner: Tensor  # (*batch,), steps since it began


@dataclass(frozen=True, kw_only=True)
class ADMMState(TruncatedState):
    """``objective`` is that of the X which ended the last inner problem.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    low : SVD
        The matrix that was shrunk last.
    T : Tensor of shape (\\*batch, n_rows, n_cols)
        ``A'B`` of the inner problem.
    n_inner : Tensor of shape (\\*batch,)
        Steps since the inner problem began.
    dual : Tensor of shape (\\*batch, n_rows, n_cols)
        Zero off the observed cells.
    tau : Tensor of shape (\\*batch,)
        ``1 / rho`` for these data.
    """

    dual: Tensor  # (*batch, n_rows, n_cols), zero off the observed cells
    tau: Tensor  # (*batch,), 1 / rho for these data


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
        The matrix that was shrunk last.
    T : Tensor of shape (\\*batch, n_rows, n_cols)
        ``A'B`` of the inner problem.
    n_inner : Tensor of shape (\\*batch,)
        Steps since the inner problem began.
    Y : Tensor of shape (\\*batch, n_rows, n_cols)
        Where the slope is taken.
    momentum : Tensor of shape (\\*batch,)
        The paper's ``t_k``.
    weight : Tensor of shape (\\*batch,)
        Weight of the data fit for these data.
    """

    Y: Tensor  # (*batch, n_rows, n_cols), where the slope is taken
    momentum: Tensor  # (*batch,), the paper's t_k
    weight: Tensor  # (*batch,), lambda for these data


class _Truncated(Solver):
    """Two nested loops as one: a step is an inner step, and some end an inner problem.

    An inner problem is ``|X|_* - tr(A X B')`` with ``A, B`` held, which is convex. It
    ends after ``inner_iter`` steps, or once a step moves X by ``inner_tol |P(M)|_F`` or
    less; then ``A'B`` is found again from the singular vectors of the shrunk matrix.
    """

    def __init__(self, rank: int, *, inner_iter: int = 5, inner_tol: float = 1e-4):
        self.rank = rank
        self.inner_iter = inner_iter
        self.inner_tol = inner_tol

    @abstractmethod
    def init(self, data: Observed) -> TruncatedState: ...

    def _begin(self, data: Observed) -> tuple[dict, Tensor]:
        """The first inner problem, from ``X = P(M)``, and the mean singular value."""
        low = _cleaned(full_svd(data.values))
        begun = {
            "low": low,
            "T": _truncation(low, self.rank),
            "n_inner": torch.zeros_like(data.n_observed),
        }
        mean = low.s.mean(-1)
        return begun, torch.where(mean > 0, mean, 1.0)

    def _ended(self, data: Observed, X: Tensor, state: TruncatedState) -> Tensor:
        """Whether the step from ``state`` to ``X`` ends the inner problem."""
        moved = _norm(X - state.X) <= self.inner_tol * _norm(data.values)
        return moved | (state.n_inner + 1 >= self.inner_iter)


class TruncatedADMM(_Truncated):
    r"""``min |X|_* - sum of the rank largest singular values  s.t. P(X) = P(M)``.

    The alternating direction method of multipliers on ``|L|_* - tr(A X B')``,
    ``L = X``, where the rows of ``A`` and ``B`` are the ``rank`` first left and right
    singular vectors of the last inner problem's answer: ::

        L = D_{1/rho}(X + (P_perp(A'B) - Y) / rho)
        X = P(M) + P_perp(L)
        Y = Y + rho P(L - M)

    These are the paper's steps: off the observed cells its multiplier is ``-A'B`` after
    each of them, so that only the part ``Y`` on the observed cells needs to be kept.

    When an inner problem ends, the paper starts the next one with a multiplier that has
    nothing to do with it, and takes up to 200 steps. Here ``Y`` is kept: the next
    problem differs by the change of ``A'B`` alone, and five steps towards its solution
    do. Each inner problem is convex, so both lead to the same solution of it. With one
    step each, the iterates may circle.

    For data times c, ``rho / c`` gives the same iterates times c. So ``rho`` is counted
    in units of one over the mean singular value of ``P(M)``, and the answer has no
    unit. ``rho`` is no part of the problem and decides on the number of steps only: the
    paper's .05 for pictures in 0..255, a shrinkage by 20 gray values, is 22 on a
    centred one of 240 x 240, and takes seven times as many steps.

    Parameters
    ----------
    rank : int >= 0
        Singular values that are free; 0 is the nuclear norm. Vectors of a singular
        value that is zero are none, so ``A`` and ``B`` may have fewer rows.
    rho : float > 0, default=1.5
        Weight of ``1/2 |L - X|_F^2``, in units of one over the mean singular value of
        the zero-filled matrix.
    inner_iter : int >= 1, default=5
        Steps at most with the same ``A, B``.
    inner_tol : float >= 0, default=1e-4
        Ends an inner problem, see above.

    References
    ----------
    Hu, Zhang, Ye, Li, He. Fast and accurate matrix completion via truncated nuclear
    norm regularization. IEEE TPAMI 35 (2013).

    Examples
    --------
    >>> import torch
    >>> from skmc import Observed, solve
    >>> from skmc.solvers.truncated import TruncatedADMM
    >>> M = torch.outer(torch.arange(1.0, 5), torch.tensor([1.0, 2.0, 4.0]))
    >>> mask = torch.ones(4, 3, dtype=torch.bool)
    >>> mask[1, 2] = False
    >>> X = solve(TruncatedADMM(1), Observed(M, mask), max_iter=100, tol=1e-5).X
    >>> X[1].round(decimals=3)
    tensor([2., 4., 8.])
    """

    def __init__(
        self,
        rank: int,
        *,
        rho: float = 1.5,
        inner_iter: int = 5,
        inner_tol: float = 1e-4,
    ):
        super().__init__(rank, inner_iter=inner_iter, inner_tol=inner_tol)
        self.rho = rho

    def init(self, data: Observed) -> ADMMState:
        begun, mean = self._begin(data)
        return ADMMState(
            X=data.values,
            objective=_tail(begun["low"].s, self.rank),
            dual=torch.zeros_like(data.values),
            tau=mean / self.rho,
            **begun,
        )

    def step(self, data: Observed, state: ADMMState) -> ADMMState:
        A = self._shrunk_from(data, state)
        low = shrink(A, state.tau, near=state.low)
        L = low.dense()
        X = data.fill(L)
        ended = self._ended(data, X, state)
        T, objective = state.T, state.objective
        if ended.any():
            members = ended[..., None, None]
            T = torch.where(members, _truncation(low, self.rank), T)
            tail = _tail(torch.linalg.svdvals(X), self.rank)
            objective = torch.where(ended, tail, objective)
        return ADMMState(
            X=X,
            objective=objective,
            low=low,
            T=T,
            n_inner=torch.where(ended, 0.0, state.n_inner + 1),
            dual=state.dual + data.residual(L) / state.tau[..., None, None],
            tau=state.tau,
        )

    def _shrunk_from(self, data: Observed, state: ADMMState) -> Tensor:
        pull = torch.where(data.mask, -state.dual, state.T)
        return state.X + state.tau[..., None, None] * pull

    def residual(
        self, data: Observed, previous: ADMMState, current: ADMMState
    ) -> Tensor:
        """The larger of two relative norms, both zero at a stationary point.

        Of ``P(L - M)`` over ``P(M)``, and of what remains off the observed cells of
        ``S - A'B`` over ``S``: there ``S`` is the subgradient of ``|L|_*`` that the
        last step found and ``A, B`` are those of ``L`` itself. Both problems, the inner
        and the outer one, are solved where it vanishes.

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
        A = self._shrunk_from(data, previous)
        L = current.low.dense()
        S = (A - L) / current.tau[..., None, None]
        slope = torch.where(data.mask, 0.0, S - _truncation(current.low, self.rank))
        misfit = data.residual(L)
        return torch.maximum(_over(misfit, data.values), _over(slope, S))


class TruncatedAPGL(_Truncated):
    r"""``min |X|_* - sum of the rank largest singular values + w/2 |P(X - M)|_F^2``.

    Accelerated proximal gradient steps on ``|X|_* - tr(A X B') + w/2 |P(X - M)|_F^2``,
    half a *sum* over observed cells: ::

        X = D_{1/w}(Y + A'B / w - P(Y - M))
        t' = (1 + sqrt(1 + 4 t^2)) / 2,   Y = X + (t - 1) / t' (X - X_previous).

    The step ``1/w`` is one over the Lipschitz constant of the slope; where the paper
    writes ``t`` for the step as well, we read this. ``t`` begins at 1 in each inner
    problem, as in the paper, and from the last X.

    Parameters
    ----------
    rank : int >= 0
        Singular values that are free; 0 is the nuclear norm.
    weight : float > 0, default=10
        ``w`` (the paper's lambda), in units of one over the mean singular value of
        the zero-filled matrix, so that the answer has no unit. Singular values of the
        misfit are at most ``1 / w``. The paper's .06 for pictures in 0..255 is 27 on a
        centred one of 240 x 240.
    inner_iter : int >= 1, default=20
        Steps at most with the same ``A, B``: fewer leave the momentum no time.
    inner_tol : float >= 0, default=1e-4
        An inner problem also ends when a step moves X by ``inner_tol |P(M)|_F``.

    References
    ----------
    Hu, Zhang, Ye, Li, He. Fast and accurate matrix completion via truncated nuclear
    norm regularization. IEEE TPAMI 35 (2013).
    """

    def __init__(
        self,
        rank: int,
        *,
        weight: float = 10.0,
        inner_iter: int = 20,
        inner_tol: float = 1e-4,
    ):
        super().__init__(rank, inner_iter=inner_iter, inner_tol=inner_tol)
        self.weight = weight

    def init(self, data: Observed) -> APGLState:
        begun, mean = self._begin(data)
        return APGLState(
            X=data.values,
            objective=_tail(begun["low"].s, self.rank),
            Y=data.values,
            momentum=torch.ones_like(mean),
            weight=self.weight / mean,
            **begun,
        )

    def step(self, data: Observed, state: APGLState) -> APGLState:
        low = shrink(self._shrunk_from(data, state), 1 / state.weight, near=state.low)
        X = low.dense()
        ended = self._ended(data, X, state)
        members = ended[..., None, None]
        T = torch.where(members, _truncation(low, self.rank), state.T)
        t = (1 + (1 + 4 * state.momentum.square()).sqrt()) / 2
        ahead = ((state.momentum - 1) / t)[..., None, None] * (X - state.X)
        misfit = data.residual(X).square().sum((-2, -1))
        return APGLState(
            X=X,
            objective=_tail(low.s, self.rank) + 0.5 * state.weight * misfit,
            low=low,
            T=T,
            n_inner=torch.where(ended, 0.0, state.n_inner + 1),
            Y=torch.where(members, X, X + ahead),
            momentum=torch.where(ended, 1.0, t),
            weight=state.weight,
        )

    def slope(self, data: Observed, X: Tensor, T: Tensor, weight: Tensor) -> Tensor:
        """Derivative of ``-tr(A X B') + w/2 |P(X - M)|_F^2``, with ``T = A'B``.

        Parameters
        ----------
        data : Observed
            The observed cells.
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.
        T : Tensor of shape (\\*batch, n_rows, n_cols)
            ``A'B`` of the inner problem.
        weight : Tensor of shape (\\*batch,)
            Weight of the data fit for these data.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        return weight[..., None, None] * data.residual(X) - T

    def _shrunk_from(self, data: Observed, state: APGLState) -> Tensor:
        slope = self.slope(data, state.Y, state.T, state.weight)
        return state.Y - slope / state.weight[..., None, None]

    def residual(
        self, data: Observed, previous: APGLState, current: APGLState
    ) -> Tensor:
        """``|S - A'B + w P(X - M)|_F / |S|_F``, zero at a stationary point.

        ``S`` is the subgradient of ``|X|_*`` that the last step found, ``A, B`` are
        those of ``X`` itself.

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
        weight = current.weight[..., None, None]
        S = weight * (self._shrunk_from(data, previous) - current.X)
        T = _truncation(current.low, self.rank)
        return _over(S + self.slope(data, current.X, T, current.weight), S)


@dataclass(frozen=True, kw_only=True)
class WeightedState(State):
    """An iterate of `WeightedTruncated`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    full : SVD
        The SVD of ``X``.
    length : Tensor of shape (\\*batch,)
        Of the next step: the paper's ``1 / alpha``.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    full: SVD  # of X
    length: Tensor  # (*batch,), of the next step: the paper's 1 / alpha


class WeightedTruncated(Solver):
    r"""TNN-WRE: a single loop of weighted subgradient steps, which shorten.

    ::

        X = X - 1/alpha (W U V' - W U_r V_r'),   P(X) = P(M),   alpha = growth alpha

    with the singular vectors ``U, V`` of X, the first ``rank`` of them in ``U_r, V_r``
    (vectors of a singular value that is zero are left out), and a diagonal ``W`` of row
    weights.

    The longest step ``1 / alpha`` is ``length`` times ``sqrt(max(m, n))`` times the
    root mean square of the observed values: then the entries of the first step are
    about as large as those of the data. On pictures of 300 x 300 in 0..255 with a root
    mean square of 115, that is the paper's ``alpha = 5e-4``. The unit is ours, so that
    the answer has none.

    Rows with fewer observed cells are moved further: ``w_i = 2 - k_i / n_cols`` for
    ``k_i`` observed cells, divided by the mean of all rows, which leaves ``alpha`` its
    meaning. That rows with more cells have the smaller weights is the paper's, this
    formula is ours, and so is one W for both terms.

    Parameters
    ----------
    rank : int >= 0
        Singular values that are free; 0 is the nuclear norm.
    length : float > 0, default=1
        Length of the first step, see above.
    growth : float > 1, default=1.15
        After every step ``alpha`` is multiplied by it. After 100 steps a million.

    References
    ----------
    Liu, Lai, Zhou, Kuang, Jin. A truncated nuclear norm regularization method based on
    weighted residual error for matrix completion. IEEE TIP 25 (2016).
    """

    def __init__(self, rank: int, *, length: float = 1.0, growth: float = 1.15):
        self.rank = rank
        self.length = length
        self.growth = growth

    def init(self, data: Observed) -> WeightedState:
        spread = _norm(data.values) / data.n_observed.sqrt()
        return self._state(data.values, self.length * spread * max(data.shape) ** 0.5)

    def step(self, data: Observed, state: WeightedState) -> WeightedState:
        move = self.weights(data) * self._rest(state.full, state.full.s > 0)
        X = data.fill(state.X - state.length[..., None, None] * move)
        return self._state(X, state.length / self.growth)

    def _state(self, X: Tensor, length: Tensor) -> WeightedState:
        full = _cleaned(full_svd(X))
        return WeightedState(
            X=X, objective=_tail(full.s, self.rank), full=full, length=length
        )

    def weights(self, data: Observed) -> Tensor:
        """``w`` with a mean of one, shape (\\*batch, n_rows, 1).

        Parameters
        ----------
        data : Observed
            The observed cells.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, 1)
        """
        weights = 2 - data.indicator.mean(-1, keepdim=True)
        return weights / weights.mean(-2, keepdim=True)

    def _rest(self, full: SVD, values: Tensor) -> Tensor:
        """``U diag(values) V'`` without the first ``rank`` of them."""
        r = self.rank
        return (full.U[..., r:] * values[..., None, r:]) @ full.V[..., r:].mT

    def residual(self, data: Observed, previous, current: WeightedState) -> Tensor:
        """How far all further steps together can move X, relative to ``P(M)``.

        A step moves X by at most ``max(w) sqrt(min(m, n) - rank) / alpha``, and the
        lengths of all further ones sum to ``growth / (growth - 1)`` of the next. So
        this is a bound on the distance to where the schedule leads, not on that to a
        stationary point: with a schedule laid down beforehand that may be another one.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : WeightedState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        most = self.weights(data).amax((-2, -1)) * (min(data.shape) - self.rank) ** 0.5
        reach = most * current.length * self.growth / (self.growth - 1)
        return reach / _norm(data.values).clamp_min(torch.finfo(reach.dtype).tiny)


def _norm(A: Tensor) -> Tensor:
    return A.square().sum((-2, -1)).sqrt()


def _over(A: Tensor, B: Tensor) -> Tensor:
    norm = _norm(B)
    return _norm(A) / norm.clamp_min(torch.finfo(norm.dtype).tiny)


def _tail(s: Tensor, rank: int) -> Tensor:
    """The sum of all singular values but the ``rank`` largest."""
    return s[..., rank:].sum(-1)


def _truncation(low: SVD, rank: int) -> Tensor:
    """``A'B``: the ``rank`` first pairs of singular vectors that are some."""
    first = low.first(rank)
    return (first.U * (first.s > 0)[..., None, :]) @ first.V.mT


def _cleaned(found: SVD) -> SVD:
    """Singular values that are rounding are zero."""
    s = found.s
    size = max(found.U.shape[-2], found.V.shape[-2])
    noise = size * torch.finfo(s.dtype).eps * s[..., :1]
    return SVD(found.U, torch.where(s > noise, s, 0.0), found.V)
