"""Soft-Impute: a penalty on the nuclear norm."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, field
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
from skmc.completers.costs import Cost, Variant
from skmc.linalg import Randomness, svd_of
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import SoftImpute, Solver, largest_weight

PATH_RATIO = 0.7  # between consecutive weights
SMALLEST_SHARE = 1e-4  # ends the path
PATH_TOL = 1e-2


class SoftImputeCompleter(IterativeCompleter):
    r"""Low-rank completion with a nuclear-norm penalty; ratings are never made dense.

    .. math::

        \min_X \tfrac{1}{2} \|P(X - M)\|_F^2 + \lambda \|X\|_*

    over matrices of rank at most ``max_rank``. The first term is half a *sum* over the
    observed cells of the scaled data, which :math:`P` selects, and :math:`\|X\|_*` is
    the *sum* of the singular values. See `skmc.solvers.soft_impute.SoftImpute`.

    Parameters
    ----------
    lambda_nuclear : float in (0, 1] or "auto", default="auto"
        Weight :math:`\lambda` relative to :math:`\|P(M)\|_2`, the largest singular
        value of the scaled data with missing cells set to zero. At 1 the solution is
        the mean. Values to try: .01, .03, .1, .3 (relative to that value). "auto"
        follows the path 1, .7, .49, ... with a tenth of the observed cells held out,
        starts each solve from the last solution, and stops when the error has risen
        twice in a row. The best value is used for all cells.
    max_rank : int in [1, min(n_samples, n_features)] or None, default=None
        Bound on the rank. None sets no bound.
    max_iter : int >= 1, default=500
        Maximum number of iterations at one value of :math:`\lambda`.
    {max_time}
    tol : float >= 0, default=1e-3
        Stop when the duality gap is at most ``tol`` times the objective, which is then
        within that share of its minimum. The path uses .01.
    {warm_start}
        With "auto" the path is followed again, and its solution is the start.
    {scaling}
    {device}
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells of "auto". Otherwise nothing is random.
    {reading}

    Attributes
    ----------
    lambda_nuclear_ : float
        The relative weight that was used.
    rank_ : int
        The rank of the solution.
    path_ : dict of ndarray
        With "auto" and at least ten cells: "lambda_nuclear", "rank" and "error" (root
        mean square over the held-out cells, scaled) along the path.
    row_factors_, col_factors_ : ndarray of shape (n_samples, k), (n_features, k)
        Their product is the scaled completion.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every fifth iteration.
    {solve}

    Notes
    -----
    All rows, including new ones, are completed by ridge regression on ``V sqrt(D)`` of
    the solution ``U D V'`` with weight :math:`\lambda`. This is the factored form of
    the same penalty.

    Memory of a sparse fit grows with the observed cells and with ``(n_samples +
    n_features) rank``, of a dense one with ``n_samples n_features``.
    ``reconstruction_`` and `transform` are dense.

    References
    ----------
    Mazumder, Hastie, Tibshirani. Spectral regularization algorithms for learning large
    incomplete matrices. Journal of Machine Learning Research 11 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import SoftImputeCompleter
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0])
    >>> X[1, 2] = np.nan
    >>> SoftImputeCompleter(0.001, scaling=None).fit_transform(X)[1].round(1)
    array([2., 4., 8.])
    """

    completer_tags = CompleterTags(recovers=0.05)
    advice = "noisy data, dense or sparse"
    cost = Cost(0.06, cells=1e-5, n_rows=0.0006)
    stacked = (Variant("Soft-Impute", after="IALM"),)
    fit = fit_weighted
    storages: ClassVar[dict] = {SparseObserved: None}
    check_every = 5

    lambda_nuclear: (
        Annotated[float, Interval(Real, 0, 1, closed="right")] | Literal["auto"]
    ) = "auto"
    _: KW_ONLY
    max_rank: Count | None = None
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
        start = getattr(params, "_start", None)
        if self.lambda_nuclear != "auto" and params.last is not None:
            start = svd_of(params.last.factors()).to(data.values)
        weight = params.lambda_nuclear * largest_weight(data)
        return SoftImpute(weight or 1.0, params.max_rank, start)

    def _follow_path(self, trials: Trials) -> dict[str, Any]:
        """Find the weight with the smallest held-out error, and the solution there."""
        train, held_out = trials.cells
        largest = largest_weight(train)
        mean = math.sqrt(held_out.energy / len(held_out.values))
        path: list[tuple[float, int, float]] = [(1.0, 0, mean)]
        share, spectrum, best, risen = 1.0, None, (1.0, None), 0
        with trials.interruptible():
            while share >= SMALLEST_SHARE and risen < 2 and largest > 0:
                share *= PATH_RATIO
                trial = trials.run(
                    SoftImpute(share * largest, self.max_rank, spectrum),
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
