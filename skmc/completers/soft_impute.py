"""Soft-Impute: a penalty on the nuclear norm."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from skmc.base import (
    Choice,
    CompleterTags,
    FittedFactors,
    IterativeCompleter,
    TakesWeights,
    Trials,
)
from skmc.cells import Given, SparseObserved
from skmc.compatibility import Interval
from skmc.linalg import (
    SVD,
    LowRank,
    Randomness,
    RowModel,
    SparsePlusLowRank,
    conjugate_gradients,
    shrink,
    spectral_norm,
    svd_of,
)
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import Momentum, Result, RowModelResult, Solver, State

PATH_RATIO = 0.7  # between consecutive weights
SMALLEST_SHARE = 1e-4  # ends the path
PATH_TOL = 1e-2
STEPS = 200  # most steps of conjugate gradients

Sides = Literal["both", "rows", "columns"]


class SoftImputeCompleter(TakesWeights, IterativeCompleter):
    r"""Complete noisy low-rank matrices with a nuclear-norm penalty, dense or sparse.

    For noisy matrices of low rank, panels, and ratings, which are never made dense; not
    for exact recovery, which needs `IALMCompleter` or `LogDetCompleter`.

    .. math::

        \min_{L, a, b} \tfrac{1}{2} \|P(X - M)\|_F^2 + \lambda \|L\|_*,
        \quad X = L + a 1^\top + 1 b^\top

    over matrices :math:`L` of rank at most ``max_rank``. The first term is half a *sum*
    over the observed cells of the scaled data, which :math:`P` selects, and
    :math:`\|L\|_*` is the *sum* of the singular values. By default, the effects
    :math:`a` of the rows and :math:`b` of the columns are zero; ``fixed_effects`` fits
    them without a penalty. See `skmc.completers.soft_impute.SoftImpute`.

    Parameters
    ----------
    lambda_nuclear : float in (0, 1] or "auto", default="auto"
        Weight :math:`\lambda` relative to :math:`\|P(M)\|_2`, the largest singular
        value of the scaled data with missing cells set to zero; with effects, of the
        residuals of their least-squares fit. At 1, :math:`L` is zero, so the solution
        is the mean or the effects. Values to try: .01, .03, .1, .3 (relative to that
        value). "auto" follows the path ``1, .7, .49, ...`` with a tenth of the observed
        cells held out, starts each solve from the last solution, and stops when the
        error has risen twice in a row. The best value is used for all cells.
    max_rank : int in [1, min(n_samples, n_features)] or None, default=None
        Bound on the rank of :math:`L`. None sets no bound.
    fixed_effects : {"both", "rows", "columns"} or None, default="columns"
        The sides that have effects without a penalty. With "columns", means of the
        columns cost no rank. "both" is the model of panels of units and times, known as
        MC-NNM. None is the method of the paper. If a constant is added to all observed
        cells of a row or column that has an effect, its completion changes by that
        constant. For rows, this requires one scale for all columns.
    max_iter : int >= 1, default=500
        Maximum number of iterations at one value of :math:`\lambda`.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-3
        Stop when the duality gap is at most ``tol`` times the objective, which is then
        within that share of its minimum. The path uses .01.
    warm_start : bool, default=False
        Whether to start from the solution of the last `fit`, whose matrix must have had
        the same shape.
        With "auto" the path is followed again, and its solution is the start.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
        Effects are fitted to scaled data. If rows have effects, "auto" means "global":
        with "columns", the effect of a row would be a number of standard deviations,
        not a constant.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells of "auto". Otherwise nothing is random.
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
    lambda_nuclear_ : float
        The relative weight that was used.
    rank_ : int
        The rank of :math:`L`.
    path_ : dict of ndarray
        With "auto" and at least ten cells: "lambda_nuclear", "rank" and "error" (root
        mean square over the held-out cells, scaled) along the path.
    row_factors_, col_factors_ : ndarray of shape (n_samples, k), (n_features, k)
        Their product is the scaled completion, with its effects.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every fifth iteration.
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

    See Also
    --------
    FactorizationCompleter : Factors instead of a convex problem; faster for ratings.
    TNNRCompleter : Does not shrink the largest singular values.
    skmc.panel.effect : Uses this class with ``fixed_effects="both"``.

    Notes
    -----
    All rows, including new ones, are completed by ridge regression on ``V sqrt(D)`` of
    the solution ``L = U D V'`` with weight :math:`\lambda`. This is the factored form
    of the same penalty. Each row has its own effect without a penalty, if rows have
    effects.

    Memory of a sparse fit grows with the observed cells and with ``(n_samples +
    n_features) rank``, of a dense one with ``n_samples n_features``.
    ``reconstruction_`` and `transform` are dense.

    References
    ----------
    Mazumder, Hastie, Tibshirani. Spectral regularization algorithms for learning large
    incomplete matrices. Journal of Machine Learning Research 11 (2010). Effects: Athey,
    Bayati, Doudchenko, Imbens, Khosravi. Matrix completion methods for causal panel
    data models. Journal of the American Statistical Association 116 (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import SoftImputeCompleter
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0])
    >>> X[1, 2] = np.nan
    >>> SoftImputeCompleter(0.001, scaling=None).fit_transform(X)[1].round(1)
    array([2., 4., 8.])

    Rows and columns that only add to each other:

    >>> X = np.array([[1.0, 2.0, 5.0], [3.0, 4.0, 7.0], [2.0, 3.0, np.nan]])
    >>> SoftImputeCompleter(1.0, fixed_effects="both").fit_transform(X)[2].round(6)
    array([2., 3., 6.])
    """

    completer_tags = CompleterTags(recovers=0.05)
    accepts = (SparseObserved,)  # a list of cells, never dense
    check_every = 5

    lambda_nuclear: (
        Annotated[float, Interval(Real, 0, 1, closed="right")] | Literal["auto"]
    ) = "auto"
    _: KW_ONLY
    max_rank: Count | None = None
    fixed_effects: Literal["both", "rows", "columns"] | None = "columns"
    max_iter: Count = 500
    max_time: Positive | None = None
    tol: NonNegative = 1e-3
    warm_start: bool = False
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    row_factors_: np.ndarray = field(init=False)
    col_factors_: np.ndarray = field(init=False)
    lambda_nuclear_: float = field(init=False)
    rank_: int = field(init=False)
    path_: dict[str, np.ndarray] = field(init=False)

    def _scaled(self, given: Given) -> Given:
        one_scale = self.scaling == "auto" and self.fixed_effects in ("both", "rows")
        if one_scale and given.scaling is None:
            scaling = given.data.scaling_of("global")
            data = given.data.scaled(scaling)
            given = replace(given, data=data, scaling=scaling)
        return super()._scaled(given)

    def _choose(self, data: SparseObserved, trials: Trials) -> Choice:
        if self.max_rank is not None and self.max_rank > min(data.shape):
            raise ValueError(
                f"max_rank={self.max_rank} is above min(n_samples, n_features)="
                f"{min(data.shape)}; lower it or use None."
            )
        if self.lambda_nuclear != "auto":
            return Choice({"lambda_nuclear": self.lambda_nuclear})
        if trials.cells[1] is None:
            return Choice({"lambda_nuclear": SMALLEST_SHARE})
        return self._follow_path(trials)

    def _make_solver(
        self, data: SparseObserved, params: Params, rng: Randomness
    ) -> Solver:
        start, sides = params.start, self.fixed_effects
        if self.lambda_nuclear != "auto" and params.last is not None:
            X = params.last.factors()
            # The last columns hold the effects.
            rank = X.left.shape[1] - 1 - (sides in ("both", "rows"))
            L = LowRank(X.left[:, :rank], X.right[:, :rank])
            start = svd_of(L).to(data.values)
        weight = params.lambda_nuclear * lambda_max(data, sides)
        return SoftImpute(weight or 1.0, params.max_rank, start, sides)

    def _follow_path(self, trials: Trials) -> Choice:
        """Find the weight with the smallest held-out error, and the solution there."""
        train, held_out = trials.cells
        sides = self.fixed_effects
        largest = lambda_max(train, sides)
        nothing = SoftImpute(largest, sides=sides).init(train).X
        error = math.sqrt(held_out.misfit(nothing) / len(held_out.values))
        path: list[tuple[float, int, float]] = [(1.0, 0, error)]
        share, spectrum, best, risen = 1.0, None, (1.0, None), 0
        with trials.interruptible():
            while share >= SMALLEST_SHARE and risen < 2 and largest > 0:
                share *= PATH_RATIO
                trial = trials.run(
                    SoftImpute(share * largest, self.max_rank, spectrum, sides),
                    max_iter=self.max_iter,
                    tol=max(self.tol, PATH_TOL),
                )
                spectrum = trial.result.spectrum
                error = math.sqrt(trials.error(trial) / len(held_out.values))
                if error < min(e for _, _, e in path):
                    best, risen = (share, spectrum), 0
                else:
                    risen += 1
                path.append((share, spectrum.rank, error))
        columns = zip(*path, strict=True)
        names = ("lambda_nuclear", "rank", "error")
        path_ = dict(zip(names, map(np.array, columns), strict=True))
        return Choice({"lambda_nuclear": best[0], "path": path_}, start=best[1])

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        fitted = FittedFactors.of(given, result)
        return {
            "_fitted": fitted,
            "row_factors_": fitted.left,
            "col_factors_": fitted.right,
            "rank_": result.spectrum.rank if isinstance(result, SpectrumResult) else 0,
        }


@dataclass(frozen=True, eq=False)
class Effects:
    """The matrix ``a 1' + 1 b'``.

    Parameters
    ----------
    a : Tensor of shape (n_rows,)
        Effects of the rows.
    b : Tensor of shape (n_cols,)
        Effects of the columns.
    """

    a: Tensor  # (n_rows,)
    b: Tensor  # (n_cols,)

    @classmethod
    def zero(cls, data: SparseObserved) -> Effects:
        """Effects that are all zero."""
        return cls(*(data.values.new_zeros(size) for size in data.shape))

    def at(self, data: SparseObserved) -> Tensor:  # (n_cells,)
        """Values at the observed cells, ``(n_cells,)``."""
        return self.a[data.rows] + self.b[data.cols]

    def low_rank(self) -> LowRank:
        """The matrix as a product."""
        left = torch.stack([self.a, torch.ones_like(self.a)], 1)
        return LowRank(left, torch.stack([torch.ones_like(self.b), self.b], 1))

    def fitted(
        self,
        data: SparseObserved,
        values: Tensor,  # (n_cells,)
        sides: Sides,
    ) -> Effects:
        r"""The least-squares effects of some values at the observed cells.

        .. math::

            \min_{a, b} \sum_{(i, j)} W_{ij} (v_{ij} - a_i - b_j)^2

        Effects of one side are weighted means. For both sides, ``a`` is eliminated, and
        conjugate gradients, which start from these effects, solve for ``b``.
        """
        n_row, n_col = (
            torch.where(side.counts > 0, side.counts, 1) for side in (data, data.T)
        )
        if sides == "rows":
            return Effects(data.row_sums(values) / n_row, torch.zeros_like(self.b))
        if sides == "columns":
            sums = data.sums(values, by_column=True)[0]
            return Effects(torch.zeros_like(self.a), sums / n_col)
        values = values - self.at(data)
        W = data.plus(data.weighted(torch.ones_like(values)), data.zero())
        n_row, root = n_row[:, None], n_col.sqrt()[:, None]
        rows = data.row_sums(values)[:, None]
        cols = data.sums(values, by_column=True).mT - W.mT @ (rows / n_row)

        def system(Z: Tensor) -> Tensor:
            return Z - W.mT @ (W @ (Z / root) / n_row) / root

        accuracy = torch.finfo(values.dtype).eps ** 1.5 * data.energy
        b = conjugate_gradients(system, cols / root, None, STEPS, accuracy)[0] / root
        a = (rows - W @ b) / n_row
        return Effects(self.a + a[:, 0], self.b + b[:, 0])


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


@dataclass(frozen=True, eq=False, kw_only=True)
class SpectrumResult(RowModelResult):
    """The same with the singular values."""

    spectrum: SVD


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

    def result(self, state: SoftImputeState) -> SpectrumResult:
        F = state.spectrum.V * state.spectrum.s.sqrt()
        penalties = F.new_full(F.shape[1:], self.weight)
        if self.sides in ("both", "rows"):
            F = torch.cat([F, F.new_ones(len(F), 1)], 1)
            # Zero would make the system of an empty row singular.
            tiny = F.new_full((1,), torch.finfo(F.dtype).tiny)
            penalties = torch.cat([penalties, tiny])
        mean = torch.zeros_like(penalties)
        model = RowModel(F, state.effects.b, penalties.diag(), mean)
        return SpectrumResult(X=state.X, models=[model], spectrum=state.spectrum)


def initial_momentum() -> Momentum:
    """Initial momentum, of shape () and always on the CPU."""
    return Momentum(torch.ones((), dtype=torch.float64))


def lambda_max(data: SparseObserved, sides: Sides | None = None) -> float:
    """``|W P(M)|_2``, the smallest weight for which the solution is zero.

    With effects, ``M`` is replaced by its part without them, and the solution is the
    effects.
    """
    R = data.values
    if sides is not None:
        R = R - Effects.zero(data).fitted(data, R, sides).at(data)
        noise = torch.finfo(R.dtype).eps ** 1.5 * data.energy
        if data.weighted(R.square()).sum() <= noise:
            return 0.0
    gradient = data.plus(data.weighted(R), data.zero())
    return float(spectral_norm(gradient)) * (1 + 1e-6)
