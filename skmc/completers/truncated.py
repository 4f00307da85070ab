"""Truncated nuclear norm regularization (TNNR)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from skmc.base import Choice, CompleterTags, IterativeCompleter, TakesWeights, Trials
from skmc.cells import Observed
from skmc.completers._rank import WITH_MEAN, choose_rank, held_out_by_content
from skmc.linalg import SVD, Randomness, full_svd, shrink
from skmc.loop import Solution
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import (
    DecomposingSolver,
    Momentum,
    Solver,
    State,
    norm,
    ratio,
    relative_norm,
)

TRIAL_ITER = 50  # iterations of the trial of a rank


class TNNRCompleter(TakesWeights, IterativeCompleter):
    r"""Penalize all singular values except the largest ones (TNNR).

    For pictures and matrices of low rank with few strong components; not for much
    noise.

    .. math::

        \min_X \|X\|_* - \sum_{i \le r} \sigma_i(X)
        \quad\text{subject to } P(X) = P(M)

    The objective is the *sum* of all singular values except the ``rank`` largest, and
    :math:`P` selects the observed cells. The nuclear norm shrinks the singular values
    that carry the structure; this objective does not. The problem is not convex. It is
    solved as a sequence of convex problems with the objective
    :math:`\|X\|_* - \operatorname{tr}(A X B^\top)`, where ``A`` and ``B`` hold the
    first ``rank`` singular vectors of the last X.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or "auto", default="auto"
        Number of singular values without penalty. "auto" chooses from 0 (the nuclear
        norm) to 100 on a held-out tenth of the observed cells; it stops after three
        ranks without a lower error. Of ranks that recover these cells exactly, it
        chooses the first one that leaves nothing to penalize. The paper tries ranks on
        the truth.
    solver : {"admm", "apgl"}, default="admm"
        Solver. "admm" matches the observed cells exactly. "apgl" replaces the
        constraint by ``lambda_fit / 2 |P(X - M)|_F^2``, half a *sum* over observed
        cells, for noisy data. Only "apgl" takes ``cell_weight`` in `fit`, because
        weights have no effect on cells that are matched exactly.
    weighted : bool, default=False
        Whether to use TNN-WRE instead: a single loop of subgradient steps on the same
        problem. Each step is shorter by 1/1.15, and steps are longer in rows with fewer
        observed cells. The observed cells are matched exactly. ``solver="apgl"`` is an
        error here.
    lambda_fit : float > 0, default=10
        Weight of the misfit of "apgl"; the other solvers ignore it. Values to try: 1,
        3, 10, 30, 100, 300 (relative to the unit that follows). The unit is one
        over the mean singular value of the scaled matrix with missing cells set to
        zero, which makes it comparable between data. The paper's .06 for pictures in
        0..255 is 27 on a picture of 240 x 240.
    max_iter : int >= 1, default=500
        Maximum number of singular value decompositions.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-3
        Stop when the violation of the optimality conditions is at most ``tol``: see
        ``residual`` of the solvers in `skmc.completers.truncated`. TNN-WRE stops when
        all further steps cannot move X by more than ``tol |P(M)|_F``.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells of ``rank="auto"``. With a given rank, nothing is
        random.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    rank_ : int
        The rank that was used.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.
    history_ : dict of ndarray
        "n_iter", "objective" (of the scaled data) and "residual" at every 25th
        iteration.
    n_iter_ : int
        Number of iterations.
    status_ : str
        Reason why the fit ended: "converged", "stopped", "max_iter", "max_time",
        "diverged" or "interrupted".
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    Raises
    ------
    ValueError
        ``rank`` is above min(n_samples, n_features), or ``weighted`` is combined with
        ``solver="apgl"``.

    See Also
    --------
    NCARLCompleter : With a learned graph of similar columns.
    IALMCompleter : The nuclear norm without truncation.

    Notes
    -----
    Memory grows with ``n_samples n_features`` and with the square of the smaller of
    both.

    With ``rank="auto"``, the missing cells of a row are their posterior means given
    its other cells: its scores are normal with the covariance of all rows, and the
    noise is the one under which the held-out cells are most likely. So rows with few
    cells are not far away. If there are fewer rows than columns, this holds for
    columns. New rows are completed in the same way.

    References
    ----------
    Hu, Zhang, Ye, Li, He. Fast and accurate matrix completion via truncated nuclear
    norm regularization. IEEE TPAMI 35 (2013). -- Liu, Lai, Zhou, Kuang, Jin. A
    truncated nuclear norm regularization method based on weighted residual error for
    matrix completion. IEEE TIP 25 (2016): TNN-WRE.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import TNNRCompleter
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0])
    >>> X[1, 2] = np.nan
    >>> TNNRCompleter(rank=1, scaling=None).fit_transform(X)[1].round(1)
    array([2., 4., 8.])
    """

    completer_tags = CompleterTags(recovers=0.001, equivariant=True)

    rank: Count | Literal["auto"] = "auto"
    _: KW_ONLY
    solver: Literal["admm", "apgl"] = "admm"
    weighted: bool = False
    lambda_fit: Positive = 10.0
    max_iter: Count = 500
    max_time: Positive | None = None
    tol: NonNegative = 1e-3
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    rank_: int = field(init=False)

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        if data.weights is not None and (self.weighted or self.solver == "admm"):
            raise ValueError(
                "cell_weight has no effect on observed cells that are matched exactly; "
                "use solver='apgl' with weighted=False, or leave it out."
            )
        if self.weighted and self.solver != "admm":
            raise ValueError(
                f"weighted=True is a separate method that does not use solver="
                f"{self.solver!r}; leave solver at 'admm'."
            )
        return choose_rank(
            self.rank,
            data,
            trials,
            lambda rank, _: self._of_rank(rank),
            ranks=WITH_MEAN,
            max_iter=min(TRIAL_ITER, self.max_iter),
            patience=3,
            penalized=partial(_penalized, data),
        )

    def _drawn_distinct(self, cells: np.ndarray, share: float, seed: int) -> np.ndarray:
        return held_out_by_content(cells, share, seed)

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        return self._of_rank(params.rank)

    def _of_rank(self, rank: int) -> Solver:
        if self.weighted:
            return WeightedTruncated(rank)
        if self.solver == "apgl":
            return TruncatedAPGL(rank, weight=self.lambda_fit)
        return TruncatedADMM(rank)


def _penalized(data: Observed, rank: int, solution: Solution) -> float:
    """Share of the squares in the singular values after the first ``rank``.

    Scattered cells of a matrix of low rank are met by the nuclear norm as well, but
    missing blocks only by the rank that leaves nothing to penalize.
    """
    s = torch.linalg.svdvals(data.centre(solution.X)[1])
    return float(ratio(s[rank:].square().sum(), s.square().sum()))


@dataclass(frozen=True, kw_only=True)
class TruncatedState(State):
    """A state between or inside of inner problems.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    X : Tensor of shape (n_rows, n_cols)
        A completion.
    low : SVD
        Last matrix whose singular values were shrunk.
    T : Tensor of shape (n_rows, n_cols)
        Matrix ``A'B`` of the inner problem.
    n_inner : Tensor of shape ()
        Number of steps since the inner problem began.
    """

    X: Tensor  # (n_rows, n_cols)
    low: SVD  # last matrix whose singular values were shrunk
    T: Tensor  # (n_rows, n_cols), A'B of the inner problem
    n_inner: Tensor  # (), steps in the inner problem


@dataclass(eq=False)
class TruncatedNorm(DecomposingSolver):
    """Two nested loops as one: each step is an inner step, and may end the problem.

    An inner problem is ``|X|_* - tr(A X B')`` with fixed ``A, B``, which is convex. It
    ends after ``inner_iter`` steps, or once a step moves X by ``inner_tol |P(M)|_F`` or
    less. Then ``A'B`` is recomputed from the singular vectors of the shrunk matrix.
    Free means of the columns are subtracted before singular values are shrunk, and
    added again.

    Parameters
    ----------
    rank : int >= 0
        Number of singular values without penalty.
    inner_iter : int >= 1, default=5
        Largest number of steps with the same ``A, B``.
    inner_tol : float >= 0, default=1e-4
        Relative change of X at which an inner problem ends.
    """

    rank: int
    _: KW_ONLY
    inner_iter: int = 5
    inner_tol: float = 1e-4

    def _begin(self, data: Observed) -> tuple[dict, Tensor]:
        """The first inner problem, from ``X = P(M)``, and the mean singular value."""
        low = cleaned(full_svd(data.centre(data.values)[1]))
        begun = {
            "low": low,
            "T": truncation(low, self.rank),
            "n_inner": torch.zeros_like(data.n_observed),
        }
        mean = low.s.mean(-1)
        return begun, torch.where(mean > 0, mean, 1.0)

    def _ended(self, data: Observed, X: Tensor, state: TruncatedState) -> Tensor:
        """Whether the step from ``state`` to ``X`` ends the inner problem."""
        moved = norm(X - state.X) <= self.inner_tol * norm(data.values)
        return moved | (state.n_inner + 1 >= self.inner_iter)


def tail(
    s: Tensor,  # (k)
    rank: int,
) -> Tensor:  # ()
    """Sum of all singular values except the ``rank`` largest."""
    return s[..., rank:].sum(-1)


def truncation(low: SVD, rank: int) -> Tensor:  # (n_rows, n_cols)
    """``A'B`` of the first ``rank`` pairs of singular vectors."""
    first = low.first(rank)
    return (first.U * (first.s > 0)[..., None, :]) @ first.V.mT


def cleaned(found: SVD) -> SVD:
    """Replace singular values within the rounding error by zeros."""
    s = found.s
    size = max(found.U.shape[-2], found.V.shape[-2])
    noise = size * torch.finfo(s.dtype).eps * s[..., :1]
    return SVD(found.U, torch.where(s > noise, s, 0.0), found.V)


@dataclass(frozen=True, kw_only=True)
class ADMMState(TruncatedState):
    """``objective`` is that of the X at the end of the last inner problem.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    X : Tensor of shape (n_rows, n_cols)
        A completion.
    low : SVD
        Last matrix whose singular values were shrunk.
    T : Tensor of shape (n_rows, n_cols)
        Matrix ``A'B`` of the inner problem.
    n_inner : Tensor of shape ()
        Number of steps since the inner problem began.
    dual : Tensor of shape (n_rows, n_cols)
        Dual variable, zero on the unobserved cells.
    tau : Tensor of shape ()
        Step ``1 / rho`` for these data.
    """

    dual: Tensor  # (n_rows, n_cols), zero off the observed cells
    tau: Tensor  # (), 1 / rho for these data


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
    >>> from skmc.completers.truncated import TruncatedADMM
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
        means, rest = data.centre(self._unshrunk(data, state))
        low = shrink(rest, state.tau, warm_start=state.low)
        L = means + low.dense()
        X = data.fill(L)
        ended = self._ended(data, X, state)
        T, objective = state.T, state.objective
        if ended:
            T = truncation(low, self.rank)
            s = torch.linalg.svdvals(data.centre(X)[1])
            objective = tail(s, self.rank)
        return replace(
            state,
            X=X,
            objective=objective,
            low=low,
            T=T,
            n_inner=torch.where(ended, 0.0, state.n_inner + 1),
            dual=state.dual + data.residual(L) / state.tau,
        )

    def _unshrunk(self, data: Observed, state: ADMMState) -> Tensor:
        """The matrix whose singular values the step from ``state`` shrinks."""
        pull = torch.where(data.mask, -state.dual, state.T)
        return state.X + state.tau * pull

    def residual(
        self, data: Observed, previous: ADMMState, current: ADMMState
    ) -> Tensor:
        """The larger of two relative norms, both zero at a stationary point.

        These are ``P(L - M)`` over ``P(M)``, and the unobserved part of ``S - A'B``
        over ``S``. Here ``S`` is the subgradient of ``|L|_*`` from the last step and
        ``A, B`` are those of ``L`` itself. Where the residual is zero, both the inner
        and the outer problem are solved.
        """
        means, rest = data.centre(self._unshrunk(data, previous))
        low = current.low.dense()
        L, S = means + low, (rest - low) / current.tau
        grad = torch.where(data.mask, 0.0, S - truncation(current.low, self.rank))
        misfit = data.residual(L)
        return torch.maximum(relative_norm(misfit, data.values), relative_norm(grad, S))


@dataclass(frozen=True, kw_only=True)
class APGLState(TruncatedState):
    """An iterate of `TruncatedAPGL`.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    X : Tensor of shape (n_rows, n_cols)
        A completion.
    low : SVD
        Last matrix whose singular values were shrunk.
    T : Tensor of shape (n_rows, n_cols)
        Matrix ``A'B`` of the inner problem.
    n_inner : Tensor of shape ()
        Number of steps since the inner problem began.
    Y : Tensor of shape (n_rows, n_cols)
        Point at which the gradient is evaluated.
    momentum : Momentum
        Momentum whose ``t`` is the paper's ``t_k``.
    weight : Tensor of shape ()
        Weight of the data fit for these data.
    """

    Y: Tensor  # (n_rows, n_cols), where the gradient is evaluated
    momentum: Momentum
    weight: Tensor  # (), lambda for these data


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
        means, rest = data.centre(self._unshrunk(data, state))
        low = shrink(rest, length, warm_start=state.low)
        X = means + low.dense()
        ended = self._ended(data, X, state)
        T = torch.where(ended, truncation(low, self.rank), state.T)
        misfit = data.misfit(X)
        return replace(
            state,
            X=X,
            objective=tail(low.s, self.rank) + 0.5 * state.weight * misfit,
            low=low,
            T=T,
            n_inner=torch.where(ended, 0.0, state.n_inner + 1),
            Y=torch.where(ended, X, state.momentum.extrapolate(X, state.X)),
            momentum=state.momentum.next.restart(ended),
        )

    def grad(
        self,
        data: Observed,
        X: Tensor,  # (n_rows, n_cols)
        T: Tensor,  # (n_rows, n_cols)
        weight: Tensor,  # ()
    ) -> Tensor:  # (n_rows, n_cols)
        """Derivative of ``-tr(A X B') + w/2 |P(X - M)|_F^2``, with ``T = A'B``."""
        return weight * data.weighted(data.residual(X)) - T

    def _unshrunk(self, data: Observed, state: APGLState) -> Tensor:
        """The matrix whose singular values the step from ``state`` shrinks."""
        grad = self.grad(data, state.Y, state.T, state.weight)
        return state.Y - grad / (state.weight * data.largest_weight)

    def residual(
        self, data: Observed, previous: APGLState, current: APGLState
    ) -> Tensor:
        """``|S - A'B + w P(X - M)|_F / |S|_F``, zero at a stationary point.

        ``S`` is the subgradient of ``|X|_*`` from the last step, and ``A, B`` are those
        of ``X`` itself.
        """
        weight = current.weight * data.largest_weight
        S = weight * (self._unshrunk(data, previous) - current.X)
        T = truncation(current.low, self.rank)
        return relative_norm(S + self.grad(data, current.X, T, current.weight), S)


@dataclass(frozen=True, kw_only=True)
class WeightedState(State):
    """An iterate of `WeightedTruncated`.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    X : Tensor of shape (n_rows, n_cols)
        A completion.
    full : SVD
        The SVD of ``X``.
    length : Tensor of shape ()
        Length of the next step: the paper's ``1 / alpha``.
    """

    X: Tensor  # (n_rows, n_cols)
    full: SVD  # of X
    length: Tensor  # (), of the next step: the paper's 1 / alpha


class WeightedTruncated(DecomposingSolver[Observed, WeightedState]):
    r"""TNN-WRE: a single loop of weighted subgradient steps of decreasing length.

    .. math::

        \min_X \|X\|_* - \sum_{i \le r} \sigma_i(X)
        \quad\text{subject to } P(X) = P(M)

    by the steps ::

        X = X - 1/alpha (W U V' - W U_r V_r'),   P(X) = P(M),   alpha = growth alpha

    with the singular vectors ``U, V`` of X, the first ``rank`` of them in ``U_r, V_r``,
    and a diagonal matrix ``W`` of row weights. Zero singular values have no singular
    vectors here.

    The longest step ``1 / alpha`` is ``length`` times ``sqrt(max(m, n))`` times the
    root mean square of the observed values. Then the entries of the first step are
    about as large as those of the data. On pictures of 300 x 300 in 0..255 with a root
    mean square of 115, that is the paper's ``alpha = 5e-4``. With this unit, the
    completion does not depend on the unit of the data.

    Rows with fewer observed cells move further: ``w_i = 2 - k_i / n_cols`` for ``k_i``
    observed cells, divided by the mean of all rows, which preserves the meaning of
    ``alpha``. The paper requires smaller weights for rows with more cells. It does not
    give a formula, nor does it use a single ``W`` for both terms.

    Parameters
    ----------
    rank : int >= 0
        Number of singular values without penalty; 0 gives the nuclear norm.
    length : float > 0, default=1
        Length of the first step, see above.
    growth : float > 1, default=1.15
        Factor of ``alpha`` after every step. The default makes ``alpha`` 1.2e6 times as
        large in 100 steps.

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
        spread = norm(data.values) / data.n_observed.sqrt()
        return self._state(data.values, self.length * spread * max(data.shape) ** 0.5)

    def step(self, data: Observed, state: WeightedState) -> WeightedState:
        r, full = self.rank, state.full
        rest = (full.U[..., r:] * (full.s > 0)[..., None, r:]) @ full.V[..., r:].mT
        move = self.weights(data) * rest
        X = data.fill(state.X - state.length * move)
        return self._state(X, state.length / self.growth)

    def _state(self, X: Tensor, length: Tensor) -> WeightedState:
        full = cleaned(full_svd(X))
        return WeightedState(
            X=X, objective=tail(full.s, self.rank), full=full, length=length
        )

    def weights(self, data: Observed) -> Tensor:  # (n_rows, 1)
        """Row weights ``w`` with a mean of one."""
        weights = 2 - data.indicator.mean(-1, keepdim=True)
        return weights / weights.mean(-2, keepdim=True)

    def residual(
        self, data: Observed, previous: WeightedState, current: WeightedState
    ) -> Tensor:
        """Bound of the change of X in all further steps, relative to ``P(M)``.

        A step moves X by at most ``max(w) sqrt(min(m, n) - rank) / alpha``. The lengths
        of all further steps sum to ``growth / (growth - 1)`` times the next one. So
        this bounds the distance to the end of the schedule, which need not be a
        stationary point.
        """
        most = self.weights(data).amax((-2, -1)) * (min(data.shape) - self.rank) ** 0.5
        reach = most * current.length * self.growth / (self.growth - 1)
        return ratio(reach, norm(data.values))
