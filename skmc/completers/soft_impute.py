"""Soft-Impute: a penalty on the nuclear norm."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, field, replace
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch

from skmc.base import (
    CompleterTags,
    FittedFactors,
    IterativeCompleter,
    Trials,
    fit_weighted,
)
from skmc.cells import Given, SparseObserved
from skmc.compatibility import Interval
from skmc.completers.costs import LOW_RANK, Cost, Variant
from skmc.linalg import LowRank, Randomness, svd_of
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import SoftImpute, Solver, largest_weight

PATH_RATIO = 0.7  # between consecutive weights
SMALLEST_SHARE = 1e-4  # ends the path
PATH_TOL = 1e-2


class SoftImputeCompleter(IterativeCompleter):
    r"""Low-rank completion with a nuclear-norm penalty; ratings are never made dense.

    .. math::

        \min_{L, a, b} \tfrac{1}{2} \|P(X - M)\|_F^2 + \lambda \|L\|_*,
        \quad X = L + a 1^\top + 1 b^\top

    over matrices :math:`L` of rank at most ``max_rank``. The first term is half a *sum*
    over the observed cells of the scaled data, which :math:`P` selects, and
    :math:`\|L\|_*` is the *sum* of the singular values. By default, the effects
    :math:`a` of the rows and :math:`b` of the columns are zero; ``fixed_effects`` fits
    them without a penalty. See `skmc.solvers.soft_impute.SoftImpute`.

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
    fixed_effects : {{"both", "rows", "columns"}} or None, default="columns"
        The sides that have effects without a penalty. With "columns", means of the
        columns cost no rank. "both" is the model of panels of units and times, known as
        MC-NNM. None is the method of the paper. If a constant is added to all observed
        cells of a row or column that has an effect, its completion changes by that
        constant. For rows, this requires one scale for all columns.
    max_iter : int >= 1, default=500
        Maximum number of iterations at one value of :math:`\lambda`.
    {max_time}
    tol : float >= 0, default=1e-3
        Stop when the duality gap is at most ``tol`` times the objective, which is then
        within that share of its minimum. The path uses .01.
    {warm_start}
        With "auto" the path is followed again, and its solution is the start.
    {scaling}
        Effects are fitted to scaled data. If rows have effects, "auto" means "global":
        with "columns", the effect of a row would be a number of standard deviations,
        not a constant.
    {device}
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells of "auto". Otherwise nothing is random.
    {reading}

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
    {solve}

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
    advice = "noisy data, dense or sparse"
    cost = Cost(0.06, cells=1e-5, n_rows=0.0006)
    stacked = (Variant("Soft-Impute", after=LOW_RANK),)
    fit = fit_weighted
    storages: ClassVar[dict] = {SparseObserved: None}
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

    def _choose(self, data: SparseObserved, trials: Trials) -> dict[str, Any]:
        if self.max_rank is not None and self.max_rank > min(data.shape):
            raise ValueError(
                f"max_rank={self.max_rank} is above min(n_samples, n_features)="
                f"{min(data.shape)}; lower it or use None."
            )
        if self.lambda_nuclear != "auto":
            return {"lambda_nuclear": self.lambda_nuclear}
        if trials.cells[1] is None:
            return {"lambda_nuclear": SMALLEST_SHARE}
        return self._follow_path(trials)

    def _make_solver(
        self, data: SparseObserved, params: Params, rng: Randomness
    ) -> Solver:
        start, sides = getattr(params, "_start", None), self.fixed_effects
        if self.lambda_nuclear != "auto" and params.last is not None:
            X = params.last.factors()
            # The last columns hold the effects.
            rank = X.left.shape[1] - 1 - (sides in ("both", "rows"))
            L = LowRank(X.left[:, :rank], X.right[:, :rank])
            start = svd_of(L).to(data.values)
        weight = params.lambda_nuclear * largest_weight(data, sides)
        return SoftImpute(weight or 1.0, params.max_rank, start, sides)

    def _follow_path(self, trials: Trials) -> dict[str, Any]:
        """Find the weight with the smallest held-out error, and the solution there."""
        train, held_out = trials.cells
        sides = self.fixed_effects
        largest = largest_weight(train, sides)
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
                spectrum = trial.outputs["spectrum"]
                error = math.sqrt(trials.error(trial) / len(held_out.values))
                if error < min(e for _, _, e in path):
                    best, risen = (share, spectrum), 0
                else:
                    risen += 1
                path.append((share, spectrum.rank, error))
        columns = zip(*path, strict=True)
        names = ("lambda_nuclear", "rank", "error")
        return {
            "lambda_nuclear": best[0],
            "_start": best[1],
            "path": dict(zip(names, map(np.array, columns), strict=True)),
        }

    def _attributes(self, given: Given, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted = FittedFactors.of(given, outputs)
        return {
            "_fitted": fitted,
            "row_factors_": fitted.left,
            "col_factors_": fitted.right,
            "rank_": outputs["spectrum"].rank if "spectrum" in outputs else 0,
        }
