"""Truncated nuclear norm regularization (TNNR)."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from typing import Any, Literal

import torch

from skmc.base import CompleterTags, IterativeCompleter, Trials, fit_weighted
from skmc.cells import Observed
from skmc.completers._rank import WITH_MEAN, choose_rank
from skmc.completers.costs import Cost, Variant
from skmc.linalg import Randomness
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import Solver, TruncatedADMM, TruncatedAPGL, WeightedTruncated

TRIAL_ITER = 50  # iterations of the trial of a rank


class TNNRCompleter(IterativeCompleter):
    r"""Truncated nuclear norm regularization (TNNR): large values are not penalized.

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
        Number of singular values without penalty. "auto" tries 0 (the nuclear norm), 1,
        2, 3, ... 100 on a held-out tenth of the observed cells until the error has
        risen twice in a row.
        The best rank is used for all cells. The paper tries ranks on the truth; this
        choice is ours.
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
    {max_time}
    tol : float >= 0, default=1e-3
        Stop when the violation of the optimality conditions is at most ``tol``: see
        ``residual`` of the solvers in `skmc.solvers`. TNN-WRE stops when all further
        steps cannot move X by more than ``tol |P(M)|_F``.
    {scaling}
    {device}
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells of ``rank="auto"``. With a given rank, nothing is
        random.
    {reading}

    Attributes
    ----------
    rank_ : int
        The rank that was used.
    {reconstruction_}
    history_ : dict of ndarray
        "n_iter", "objective" (of the scaled data) and "residual" at every 25th
        iteration.
    {solve}

    Raises
    ------
    ValueError
        ``rank`` is above min(n_samples, n_features), or ``weighted`` is combined with
        ``solver="apgl"``.

    Notes
    -----
    Memory grows with ``n_samples n_features`` and with the square of the smaller of
    both.

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
    fit = fit_weighted
    advice = "pictures, matrices of low rank"
    cost = Cost(0.08, svd=4e-7)
    stacked = (Variant("TNNR"),)

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

    def _choose(self, data: Observed, trials: Trials) -> dict[str, Any]:
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
        rank = choose_rank(
            self.rank,
            data,
            trials,
            lambda rank, _: self._of_rank(rank),
            ranks=WITH_MEAN,
            max_iter=min(TRIAL_ITER, self.max_iter),
            patience=3,
        )
        return {"rank": rank}

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        return self._of_rank(params.rank)

    def _of_rank(self, rank: int) -> Solver:
        if self.weighted:
            return WeightedTruncated(rank)
        if self.solver == "apgl":
            return TruncatedAPGL(rank, weight=self.lambda_fit)
        return TruncatedADMM(rank)
