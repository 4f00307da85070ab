"""Factorization with biases, by alternating least squares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple, Self, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from torch import Tensor

from skmc.base import (
    Choice,
    CompleterTags,
    FittedFactors,
    IterativeCompleter,
    MoreCells,
    PartialFit,
    TakesFeatures,
    Trials,
)
from skmc.blocks import BlockObserved, StoredCells
from skmc.cells import (
    Cells,
    Container,
    Entries,
    Given,
    Priors,
    Scaling,
    SparseObserved,
    preferences,
)
from skmc.compatibility import Interval
from skmc.completers._explain_ratings import ExplainsRatings
from skmc.completers._rank import checked_rank
from skmc.completers._recommend import Recommends
from skmc.completers.factorization.als import ALS, Links, with_posteriors
from skmc.completers.factorization.recovered import Recovered
from skmc.completers.logdet import NEARLY_ZERO, SURE
from skmc.linalg import LowRank, Randomness, RowModel, partial_svd, threads_for, work_of
from skmc.loop import OutOfTime, Solution, seconds_left, solve_part
from skmc.new_rows import RowStream
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import Result, Solver

FIRST_RANK, LARGEST_RANK = 16, 64
WEIGHTS = tuple(0.32 * 0.5**k for k in range(16))
SIDE_WEIGHTS = tuple(0.32 * 0.7**k for k in range(32))  # with side information
FINER = 0.5**0.5  # factor between weights at the chosen rank
SIDE_FACTORS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
SWEEPS = (6, 4)  # of a trial from random factors, and from those of another trial
SIDE_SWEEPS = 10
BY_PATH = 1e-3  # weight below which a path of larger ones leads to the first factors
LEAST = 0.01  # smallest singular value of the first factors of counts
PREDICTED = 0.5  # largest share of the variance that is not, if recovery is tried
RECOVERY_STEPS = 15
VANISHED = 0.003  # share of a component in the deviation of the cells


def _explicit(completer: FactorizationCompleter) -> bool:
    if completer.alpha is None:
        return True
    raise AttributeError(
        "partial_fit cannot continue a fit with alpha; call fit with all cells."
    )


class FactorizationCompleter(
    TakesFeatures, PartialFit, ExplainsRatings, Recommends, IterativeCompleter
):
    r"""Predict ratings by low-rank factors with biases, never made dense.

    For ratings and clicks of any number, new users, and noisy matrices of low rank; not
    for large holes of pictures, and not for tables with few columns.

    The model is :math:`X = \text{mean} + U V^\top + b 1^\top + 1 c^\top`. Factors and
    biases minimize

    .. math::

        \tfrac{1}{2} \|P(X - M)\|_F^2
        + \tfrac{\lambda}{2} \sum_i p_i (\|u_i\|^2 + b_i^2)
        + \tfrac{\lambda}{2} \sum_j q_j (\|v_j\|^2 + c_j^2)

    The first term is half a *sum* over the observed cells of the scaled data, which
    :math:`P` selects; the others are *sums* over rows and over columns. Alternating
    least squares updates all columns given the rows, then all rows given the columns,
    by a few steps of conjugate gradients for all of them at once, or exactly where
    these are not enough. With ``per_cell=0`` and without biases this is
    the factored form of :math:`\lambda \|X\|_*`, see `SoftImputeCompleter`.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or "auto", default="auto"
        Number of columns of ``U`` and ``V``. More columns can describe more, and take
        more time. "auto" chooses from 1 to 64 on held-out cells, see Notes.
    lambda_ridge : float > 0 or "auto", default="auto"
        Weight :math:`\lambda`. Larger values shrink the factors more; rows with few
        cells need that. Values to try: .01, .03, .1, .3 (relative to data of variance 1
        and, with ``per_cell``, to the cells of the row or column). "auto" chooses on
        held-out cells, see Notes.
    lambda_side : float > 0 or "auto", default="auto"
        Weight of the side information about rows and columns, see Notes; without it,
        the weight has no effect. Larger values keep the factors closer to what features
        and graphs predict. Values to try: .01, .1, 1, 10, 100 (relative to data of
        variance 1). "auto" chooses on held-out cells, see Notes.
    alpha : float > 0 or None, default=None
        Confidence in a count, for implicit feedback, see Notes: observed cells are
        counts :math:`r \ge 0`, for example of purchases, and predictions are
        preferences from about 0 to 1. Values to try: 1, 3, 10, 30, 100 (relative to the
        inverse of a count; the paper's is 40). ``rank`` and ``lambda_ridge`` must then
        be given; search them with `skmc.model_selection.RankingScorer`. ``biases`` and
        ``scaling`` have no effect.
    biases : {"both", "rows", "columns"} or None, default="both"
        Biases of the model: ``b``, ``c``, both or none. ``scaling`` subtracts the mean.
    per_cell : float in [0, 1], default=1.0
        How the penalty of a row or column grows with the number of its observed cells:
        0, not at all; 1, in proportion; between, as this power of the number.
        :math:`p_i` and :math:`q_j` are this power. With weights, their sum counts, and
        with ``alpha`` the sum of :math:`1 + \alpha r_{ij}` over all cells. Values to
        try: 0, .5, 1.
    max_iter : int >= 1, default=200
        Maximum number of sweeps over columns and rows.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-3
        Stop when :math:`\|G_U\|_F \|U\|_F + \|G_V\|_F \|V\|_F \le \text{tol}
        \|P(M)\|_F^2`, with the gradients :math:`G` with respect to the factors.
    warm_start : bool, default=False
        Whether to start from the solution of the last `fit`, whose matrix must have had
        the same shape.
        "auto" is chosen again. If the rank changes, the factors start from random
        values.
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
        Seed of the initial factors and the held-out cells of "auto".
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
    lambda_ridge_ : float
        The weight that was used.
    lambda_side_ : float
        The weight that was used; only with features or graphs.
    row_factors_, col_factors_ : ndarray of shape (n_samples, k), (n_features, k)
        Factors, whose product is the scaled completion. They include the biases: those
        of rows are the last but one column of ``row_factors_``, those of columns the
        last column of ``col_factors_``.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every sweep.
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
    BayesianFactorizationCompleter : More accurate for ratings, and slower.
    LogDetCompleter : Exact recovery from few cells, with a certificate.
    SoftImputeCompleter : The same penalty as a convex problem.
    skmc.model_selection.RankingScorer : Judges recommendations.

    Notes
    -----
    With features :math:`S` of the rows, :math:`w_i = (u_i, b_i)` in the penalty becomes
    :math:`w_i - (S B)_i`, and :math:`\lambda_s \|B\|_F^2 / 2` with :math:`\lambda_s` =
    ``lambda_side`` is added: a linear prior, whose map :math:`B` is learned with the
    factors. A graph adds :math:`g_i` to the mean of each row, and :math:`\lambda_s
    \operatorname{tr} (G^\top (L + 0.1 I) G) / 2` with the Laplacian :math:`L` in units
    of the mean degree. In GRALS the factors themselves have this penalty. This
    implementation differs from it: a row with many ratings may differ from its
    neighbors at the cost of the ridge penalty. The same holds for columns. Rows and
    columns without ratings have :math:`w_i = (S B)_i + g_i`.

    With ``alpha``, the factors minimize

    .. math::

        \tfrac{1}{2} \sum_{i,j} (1 + \alpha r_{ij}) (u_i^\top v_j - [r_{ij} > 0])^2
        + \tfrac{\lambda}{2} (\sum_i p_i \|u_i\|^2 + \sum_j q_j \|v_j\|^2)

    over *all* cells; unobserved ones have :math:`r_{ij} = 0`. With ``per_cell=0``
    this is the objective of Hu, Koren and Volinsky, and with exponents up to 1 that of
    Rendle et al., whose weight of unobserved cells is :math:`1 / \alpha`. Each system
    has :math:`V^\top V` plus a sum over observed cells alone, so a sweep costs no more
    than one without ``alpha``. The first factors of rows are from power iterations on
    the matrix that is 1 where :math:`r_{ij} > 0` and 0 elsewhere. Rows without a
    positive count, features or graphs are predicted by the shares of rows that have
    each column.

    `fit` also takes ratings that are not in memory, see `Entries.from_parquet`. Their
    identifiers are then the attributes ``row_ids_`` and ``col_ids_``, in the order of
    the rows of the factors. A tenth of the ratings is held out for "auto", as in
    memory, but not the same tenth.

    `partial_fit` solves the systems of the rows in ``X``, given the columns, and then
    those of the columns in which these rows have cells, given all rows so far. For the
    latter, sums of :math:`u u^T` and :math:`u x` over the cells of each column are
    sufficient; earlier rows are not visited. Both steps minimize the objective of all
    cells exactly, in the units of the last fit, or give posterior means (see below).
    The result is approximate because other rows keep their factors, and rank, weight
    and noise do not change, until the cells are twice those of the last fit. Repeated
    blocks of `Entries` approach a fit to all cells. The sums take ``n_features (rank +
    2)**2`` numbers. The first call computes them by a pass over the cells. Features,
    graphs, weights and ``alpha`` need a new fit. After a fit to files, the first call
    loads all cells into memory.

    `explain` gives the terms of a prediction. The base is the mean plus the value
    :math:`o_k` that the column has in a row without cells, and the scaled cell
    :math:`x_{ij}` of another column contributes :math:`(x_{ij} - o_j)\, v_j^\top A^{-1}
    v_k`. :math:`A` is the matrix of the row's least-squares problem, and :math:`v`
    includes the factor 1 of its bias.
    With ``alpha``, the base is 0, and a count contributes :math:`(1 + \alpha r_{ij})\,
    v_j^\top A^{-1} v_k`. Features and graphs of the row add a further term. All terms
    are in the units of the explained column.

    At the end, all rows, including new ones, are completed by exact ridge regressions
    on the columns' factors. If the weight was chosen, they are completed by posterior
    means instead, since a row with few cells needs a larger penalty than the others:
    factors and biases of a row have a normal prior with the mean and the covariance of
    all rows, and the cells have the noise under which the held-out ones are most
    likely. Before, the columns are replaced by their posterior means in the same way if
    these predict the held-out cells better. Features and graphs keep their part of the
    mean; the penalty is kept with them if it predicts better. Results have the dtype of
    the input: ``float32`` ratings take less memory and time.

    Memory grows with the observed cells and with ``(n_samples + n_features) rank``;
    systems of rows are solved in blocks. ``reconstruction_`` and `transform` are dense.

    "auto" holds out a tenth of the observed cells. It tries the weights .32, .16, .08,
    ... at rank 16, then ranks of 32, 64 while the error falls and 8, 4, 2, 1, then
    ranks halfway between the best one and its neighbors, and last weights smaller or
    larger by factors of 1.41. Each trial takes four sweeps from the factors of the one
    before. ``rank_`` is without the components that have vanished in the best trial.
    With side information, it tries .32, .224, .157, ... in ten sweeps each from
    random factors, all ranks, and for ``lambda_side`` :math:`\lambda` times the mean
    number of cells of a row times 10, 3, 1, ..., .003.

    If the factors then predict half of the variance of the held-out cells, the matrix
    may have low rank exactly. `LogDetCompleter`'s search follows, on all cells without
    weights, for as long as the trials or for a few seconds. Its matrix is taken if the
    cells determine it (its certificate), or if it predicts most held-out cells, and
    their sum of squares, better. ``lambda_ridge_`` is then 1e-13, and the fit is least
    squares.

    A given weight below .001, of scaled data, is reached by a path of larger ones: from
    random factors, it would lead to matrices that fit the cells and nothing else.

    References
    ----------
    Zhou, Wilkinson, Schreiber, Pan. Large-scale parallel collaborative filtering for
    the Netflix prize. AAIM (2008).
    Hu, Koren, Volinsky. Collaborative filtering for implicit feedback datasets. ICDM
    (2008).
    Rendle, Krichene, Zhang, Koren. Revisiting the performance of iALS on item
    recommendation benchmarks. RecSys (2022), for the penalty of counts.
    Rao, Yu, Ravikumar, Dhillon. Collaborative filtering with graph information:
    consistency and scalable methods. NeurIPS (2015).
    Hastie, Mazumder, Lee, Zadeh. Matrix completion and low-rank SVD via fast
    alternating least squares. Journal of Machine Learning Research 16 (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import FactorizationCompleter
    >>> rng = np.random.RandomState(0)
    >>> X = np.add.outer(rng.randn(20), rng.randn(10))
    >>> truth, X[3, 4] = X[3, 4], np.nan
    >>> completer = FactorizationCompleter(random_state=0)
    >>> bool(abs(completer.fit_transform(X)[3, 4] - truth) < 0.1)
    True
    """

    completer_tags = CompleterTags(recovers=0.02)
    accepts = (SparseObserved, BlockObserved)
    check_every = 1

    rank: Count | Literal["auto"] = "auto"
    _: KW_ONLY
    lambda_ridge: Positive | Literal["auto"] = "auto"
    lambda_side: Positive | Literal["auto"] = "auto"
    alpha: Positive | None = None
    biases: Literal["both", "columns", "rows"] | None = "both"
    per_cell: Annotated[float, Interval(Real, 0, 1, closed="both")] = 1.0
    max_iter: Count = 200
    max_time: Positive | None = None
    tol: NonNegative = 1e-3
    warm_start: bool = False
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    row_factors_: np.ndarray = field(init=False)
    col_factors_: np.ndarray = field(init=False)
    rank_: int = field(init=False)
    lambda_ridge_: float = field(init=False)
    lambda_side_: float = field(init=False)
    _fitted: FittedFactors = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.alpha is not None
        return tags

    def _given(self, X: Container, known: Mapping[str, Any]) -> Given:
        given = super()._given(X, known)
        if self.alpha is None:
            return given
        if given.read is None:
            raise ValueError("alpha needs cells in memory; pass Entries.")
        if not (given.data.values > 0).any() and not (given.data.values < 0).any():
            raise ValueError(
                "X has no positive count; with alpha, a cell of 0 says as little as a "
                "missing one. Set alpha=None for ratings."
            )
        data = preferences(given.data, self.alpha)
        statistics = given.statistics.of_preferences(
            data.rows.numpy(), data.cols.numpy()
        )
        one = torch.ones_like(data.values[None, :1])
        scaling = Scaling(torch.zeros_like(one), one)
        return replace(given, data=data, statistics=statistics, scaling=scaling)

    def _for_trials(self, data: SparseObserved) -> Cells:
        # Single precision suffices for a choice.
        return data if self.scaling is None else data.in_single()

    def _choose(self, data: SparseObserved, trials: Trials) -> Choice:
        rank, weight, side = self.rank, self.lambda_ridge, self.lambda_side
        if self.alpha is not None and "auto" in (rank, weight):
            raise ValueError(
                "With alpha, rank and lambda_ridge must be numbers: errors of held-out "
                "cells do not judge preferences. Search them with a RankingScorer."
            )
        informed = any(data.sides)
        if rank == "auto":
            size = min(FIRST_RANK, *data.shape)
        else:
            size = checked_rank(int(rank), data.shape)
        per_row = len(data.values) / data.shape[0] if informed else 1.0
        first = WEIGHTS[0] if weight == "auto" else float(weight)
        cells = per_row**self.per_cell
        search = _FactorSearch(
            self._als,
            self.max_iter,
            trials,
            None if side == "auto" else float(side),
            cells,
        )
        automatic = "auto" in (rank, weight, side if informed else None)
        if automatic and not trials.interrupted and trials.cells[1] is not None:
            with trials.interruptible():
                weights = SIDE_WEIGHTS if informed else WEIGHTS
                weights = weights if weight == "auto" else (first,)
                search.walk([(size, weight) for weight in weights], patience=2)
                if informed and side == "auto":
                    search.choose_side()
                if rank == "auto":
                    most = min(LARGEST_RANK, *data.shape)
                    search.choose_rank(most, patience=6 if informed else 1)
                if weight == "auto" and not informed:
                    search.refine()
                    recovered = self._recovered(data, trials, search.best)
                    if recovered is not None:
                        chosen = {"rank": recovered.rank, "lambda_ridge": NEARLY_ZERO}
                        return Choice(chosen, recovered)
        best, noise = search.best, None
        if best is not None and weight == "auto":
            with trials.interruptible():
                noise = search.noise(self._has_biases)
        if best is not None and rank == "auto" and not informed:
            best = _without_vanished(best, data)
        if best is None:
            size = 1 if rank == "auto" else size
            side = first * cells if side == "auto" else side
            start = None
            plain = not informed and self.alpha is None and self.scaling is not None
            if first < BY_PATH and plain:
                start = self._by_path(data, size, first, trials)
            best = _Attempt(0.0, size, first, side, start)
        chosen = {"rank": best.rank, "lambda_ridge": best.weight}
        start = best.factors
        if informed:
            chosen, start = {**chosen, "lambda_side": best.side}, None
        return Choice(chosen, start, noise)

    def _by_path(
        self, data: SparseObserved, rank: int, weight: float, trials: Trials
    ) -> tuple[Tensor, Tensor] | None:
        """Factors for a small weight, which random ones would lead astray."""
        factors = None
        with trials.interruptible():
            for larger in (w for w in WEIGHTS if w > weight):
                if factors is not None and seconds_left() <= 0:
                    raise OutOfTime
                solver = self._als(data, rank, larger, 1.0, trials.rng, factors)
                sweeps = min(self.max_iter, SWEEPS[factors is not None])
                solution = solve_part(solver, data, max_iter=sweeps, check_every=1)
                factors = _last_factors(solution.X, rank, row_biases=True)
        return factors

    def _recovered(
        self, data: Any, trials: Trials, best: _Attempt | None
    ) -> Recovered | None:
        """A matrix that the cells determine, or that completes them better.

        A matrix of low rank that is found from enough cells is one of which penalized
        factors predict at least half of the variance.
        """
        if not isinstance(data, SparseObserved) or data.weights is not None:
            return None
        train, held_out = trials.cells
        assert best is not None and best.factors is not None
        penalized = LowRank.with_biases(*best.factors)
        if float(held_out.misfit(penalized)) > PREDICTED * float(held_out.energy):
            return None
        rank = None if self.rank == "auto" else self.rank
        recovered = Recovered.of(data, trials, rank, self._has_biases[0])
        if recovered is None or recovered.is_certain:
            return recovered
        # The start has seen the held-out cells, which the others must determine.
        m, n = data.shape
        if len(train.values) < SURE * recovered.rank * (m + n - recovered.rank):
            return None
        fit = trials.run(recovered, max_iter=RECOVERY_STEPS, tol=1e-6)
        errors = [held_out.residual(X).double().square() for X in (penalized, fit.X)]
        gain = errors[0] - errors[1]
        # Large errors are few: their mean alone would be a matter of chance.
        wins = float((gain > 0).double().mean()) > 0.5 + len(gain) ** -0.5
        return recovered if wins and float(gain.sum()) > 0 else None

    def _make_solver(
        self, data: SparseObserved, params: Params, rng: Randomness
    ) -> Solver:
        if isinstance(params.start, Recovered):
            return params.start
        before = None if params.last is None else params.last.factors()
        last = _last_factors(before, params.rank, self._has_biases[0]) or params.start
        side = params.lambda_side if any(data.sides) else 1.0
        return self._als(data, params.rank, params.lambda_ridge, side, rng, last)

    def _als(
        self,
        data: SparseObserved,
        rank: int,
        weight: float,
        side: float,
        rng: Randomness,
        last: tuple[Tensor, Tensor] | None = None,
    ) -> ALS:
        """Make the solver for given weights and factors, of which NaN are random."""
        explicit, biases, cols = self.alpha is None, None, None
        size = data.shape[0 if explicit or last is not None else 1]

        def drawn() -> Tensor:
            # Empty rows, whose factors vanish, take no numbers from the others.
            known = torch.ones(size, dtype=torch.bool, device=data.device)
            if explicit:
                known = data.counts > 0
            n_known = int(known.sum())
            numbers = rng.stream(rank).normal(n_known, rank, std=rank**-0.5)
            found = numbers.new_zeros(size, rank, dtype=data.dtype, device=data.device)
            found[known] = numbers.to(found)
            return found

        start: Tensor | Callable[[], Tensor] = drawn  # may be large, so it is not kept
        if last is not None:
            rows, cols = (W.to(data.dtype).to(data.device) for W in last)
            known, biases = rows[:, :rank], rows[:, rank]
            start = torch.where(known.isnan(), drawn(), known)
        elif not explicit:
            start = _spectral(data, drawn())
        return ALS(
            start,
            weight,
            row_biases=self._has_biases[0],
            col_biases=self._has_biases[1],
            per_cell=self.per_cell,
            implicit=not explicit,
            link_weight=side,
            start_biases=biases,
            start_cols=cols,
        )

    @property
    def _has_biases(self) -> tuple[bool, bool]:
        """Whether rows, and columns, have biases."""
        biases = None if self.alpha is not None else self.biases
        return biases in ("both", "rows"), biases in ("both", "columns")

    def _with_posteriors(
        self, data: Any, solution: Solution, noise: tuple[float, float | None]
    ) -> Solution:
        fit, biases = solution.result, self._has_biases
        result = with_posteriors(data, fit.factors, fit.links, biases, noise)
        return replace(solution, result=result)

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        fitted = FittedFactors.of(given, result)
        if self.alpha is not None:
            fitted.alpha = self.alpha
            counts = given.data.to("cpu").weights / self.alpha
            fitted.values = counts.numpy()
        return {"_fitted": fitted, **_factors(fitted)}

    @available_if(_explicit)
    def partial_fit(self, X: Container, y: object = None) -> Self:
        """Learn more ratings, users or items; not with ``alpha``.

        The first call is `fit`, which also makes all choices ("auto").

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            New rows, which are appended to the existing ones. The rows of `Entries`
            have numbers or identifiers: rows with unknown ones are new. To the others,
            cells are added, or replaced if they are known. If ``X`` has more columns
            than before, the last ones are new, and the other rows miss them.
        y : Ignored
            Ignored; present for pipelines.

        Returns
        -------
        self
            The fitted completer.
        """
        return super().partial_fit(X, y)

    def _all_cells(self, more: MoreCells) -> Given:
        fitted = _in_memory(self._fitted)
        (starts, cols), old = fitted.seen, cast(np.ndarray, fitted.values)
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        place = rows * more.shape[1] + cols
        kept = ~np.isin(place, more.rows * more.shape[1] + more.cols)
        values = more.values.astype(old.dtype)
        rows = np.concatenate([rows[kept], more.rows])
        cols = np.concatenate([cols[kept], more.cols])
        values = np.concatenate([old[kept], values])
        entries = Entries.from_triplets(rows, cols, values, more.shape)
        return Given.of_entries(entries, one_unit=fitted.statistics.one_unit)

    def _fit_more(self, more: MoreCells) -> tuple[FittedFactors, dict[str, Any]]:
        scaling_of = partial(Given.scaling_of, how=self.scaling, centre=self.centre)
        fitted = _with_more(self._fitted, more, self._has_biases, scaling_of)
        return fitted, _factors(fitted)


def _factors(fitted: FittedFactors) -> dict[str, Any]:
    return {"row_factors_": fitted.left, "col_factors_": fitted.right}


class _Attempt(NamedTuple):
    """A solution for the cells to train on, and its error on the others."""

    error: float
    rank: int
    weight: float
    side: float
    factors: tuple[Tensor, Tensor] | None  # (m, rank + 1), (n, rank + 1), with biases
    links: Links = ((), ())


@dataclass
class _FactorSearch:
    """Trials that start from the factors of earlier ones.

    A few sweeps are sufficient, because weights and ranks change by small steps.
    """

    als: Callable[..., ALS]  # of cells, rank, two weights, random numbers and a start
    max_iter: int
    trials: Trials
    side: float | None  # weight of linear priors; None is proportional to the ridge
    per_ridge: float  # ratio of the two weights
    best: _Attempt | None = None

    def walk(self, steps: Iterable[tuple[int, float]], patience: int) -> None:
        """Try ranks and weights in order, until ``patience`` of them are no better."""
        last, failures = self.best, 0
        train, _ = self.trials.cells
        for rank, weight in steps:
            # The maps of linear priors begin at zero, so their trials begin anew.
            start = None
            if last is not None and not any(train.sides):
                start = _resized(last, rank, train)
            side = weight * self.per_ridge if self.side is None else self.side
            rng = self.trials.rng
            solver = self.als(train, rank, weight, side, rng, start)
            sweeps = SIDE_SWEEPS if any(train.sides) else SWEEPS[start is not None]
            sweeps = min(self.max_iter, sweeps)
            solution = self.trials.run(solver, max_iter=sweeps)
            found = solution.result.factors, solution.result.links
            error = _error(solution, *self.trials.cells)
            last = _Attempt(error, rank, weight, side, *found)
            if self.best is None or last.error < self.best.error:
                self.best, failures = last, 0
            else:
                failures += 1
            if failures == patience:
                break

    def choose_side(self) -> None:
        assert self.best is not None
        _, rank, weight, side, *_ = self.best
        self.side = self.trials.best(
            [side * factor for factor in SIDE_FACTORS],
            lambda side, part: self.als(part, rank, weight, side, self.trials.rng),
            max_iter=min(self.max_iter, SIDE_SWEEPS),
            patience=3,
        )
        self.best = self.best._replace(side=self.side)
        if self.trials.lowest < self.best.error:
            found = cast(Solution, self.trials.solution).result
            self.best = self.best._replace(
                error=self.trials.lowest, factors=found.factors, links=found.links
            )

    def choose_rank(self, most: int, patience: int) -> None:
        """Double and halve the rank, and then try those halfway to the neighbors."""
        assert self.best is not None
        _, rank, weight, *_ = self.best
        doubled = [rank * 2**k for k in range(1, 7) if rank * 2**k <= most]
        self.walk([(r, weight) for r in doubled], patience)
        halved = [rank // 2**k for k in range(1, 7) if rank // 2**k]
        self.walk([(r, weight) for r in halved], patience + 1)
        rank = self.best.rank
        between = {3 * rank // 4, 3 * rank // 2} - {0, rank}
        self.walk([(r, weight) for r in sorted(between) if r <= most], patience=2)

    def refine(self) -> None:
        """Try smaller weights, or else larger ones, at the chosen rank."""
        assert self.best is not None
        _, rank, weight, *_ = self.best
        for factor in (FINER, 1 / FINER):
            self.walk([(rank, weight * factor**k) for k in range(1, 12)], patience=1)
            if self.best.weight != weight:
                break

    def noise(self, biases: tuple[bool, bool]) -> tuple[float, float | None] | None:
        """Variance of the noise under which the held-out cells are most likely.

        The others predict them by the posterior means of the rows. The second number is
        for the columns, and None if their posterior means predict no better. None alone
        means that all cells are equal, or that posterior means of rows that have linear
        priors predict worse than penalized rows.
        """
        train, held_out = self.trials.cells
        best = self.best
        assert best is not None and best.factors is not None
        parts = best.factors, best.links, biases
        count, lowest = float(held_out.counts.sum()), math.inf
        noise = smaller = float(_deviation(train)) ** 2
        of_rows = math.inf
        while smaller > 0 and (noise == smaller or seconds_left() > 0):
            found = with_posteriors(train, *parts, (smaller, None))
            squares, spread = _squares(found.models[0], found.X, train, held_out)
            surprise = squares / (count * smaller) + math.log(smaller) + spread
            if surprise >= lowest:
                break
            lowest, noise = surprise, smaller
            of_rows = float(held_out.misfit(found.X))
            smaller = noise / 2
        if not noise or (any(train.sides) and of_rows > best.error):
            return None
        of_both = held_out.misfit(with_posteriors(train, *parts, (noise, noise)).X)
        return noise, noise if of_both < of_rows else None


def _squares(
    model: RowModel, X: LowRank, train: Any, held_out: Any
) -> tuple[float, float]:
    """Sum of squared errors over the held-out cells, and their spread.

    The variance of a cell is the noise times ``1 + h``, where h is large if the cells
    of its row do not determine it. Each square is divided by this factor, and the
    spread is the mean of its logarithm.
    """
    if not isinstance(train, SparseObserved):
        return float(held_out.misfit(X)), 0.0
    at = held_out.rows, held_out.cols
    variance = 1 + model.variance_at(train.starts, train.cols, at, train.weights)
    squares = held_out.weighted(held_out.residual(X).square()).double()
    return float((squares / variance).sum()), float(variance.double().log().mean())


def _error(solution: Solution, train: Any, held_out: Any) -> float:
    """Sum of squared errors over the held-out cells, by their likelihood.

    With the most likely noise, the likelihood is that of these errors, which are the
    usual ones if the cells of all rows determine the held-out ones equally well. Plain
    squared errors would prefer a weight that is far too small where the few held-out
    cells happen to be in well-determined rows. With linear priors they are taken.
    """
    if any(train.sides):
        return float(held_out.misfit(solution.X))
    model = solution.result.models[0]
    squares, spread = _squares(model, solution.X, train, held_out)
    return squares * math.exp(spread)


def _resized(last: _Attempt, rank: int, data: SparseObserved) -> tuple[Tensor, Tensor]:
    """Factors of a trial with more or fewer components.

    The components with the largest singular values are kept. New ones, and those that
    have vanished under a larger weight, are NaN in the rows.
    """
    assert last.factors is not None
    (U, b), (V, c) = ((W[:, :-1], W[:, -1:]) for W in last.factors)
    if rank < last.rank:
        (Q, R), (P, S) = torch.linalg.qr(U), torch.linalg.qr(V)
        left, sizes, right = torch.linalg.svd(R @ S.mT)
        root = sizes[:rank].sqrt()
        U, V = Q @ left[:, :rank] * root, P @ right[:rank].mT * root
    more = (0, max(0, rank - last.rank))
    U, V = (torch.nn.functional.pad(W, more) for W in (U, V))
    share = (U.square().mean(0) * V.square().mean(0)).sqrt()
    U = torch.where(share < VANISHED * _deviation(data), torch.nan, U)
    return torch.cat([U, b], 1), torch.cat([V, c], 1)


def _without_vanished(best: _Attempt, data: SparseObserved) -> _Attempt:
    """The same attempt at the rank that its factors have.

    Components that have vanished under larger weights would grow in the longer fit.
    """
    if best.factors is None:
        return best
    U, V = (W[:, :-1] for W in best.factors)
    sizes = torch.linalg.svdvals(torch.linalg.qr(U).R @ torch.linalg.qr(V).R.mT)
    least = VANISHED * _deviation(data) * (len(U) * len(V)) ** 0.5
    rank = max(1, int((sizes >= least).sum()))
    if rank == best.rank:
        return best
    return best._replace(rank=rank, factors=_resized(best, rank, data))


def _deviation(data: SparseObserved) -> Tensor:
    return (data.energy / data.counts.sum()).sqrt()


def _last_factors(
    last: LowRank | None, rank: int, row_biases: bool
) -> tuple[Tensor, Tensor] | None:
    """Factors and biases of the last fit, if it had the same rank and biases."""
    if last is None or last.left.shape[1] != rank + 1 + row_biases:
        return None
    left, right = last.left, last.right
    b = left[:, rank : rank + 1] if row_biases else torch.zeros_like(left[:, :1])
    cols = torch.cat([right[:, :rank], right[:, -1:]], 1)
    return torch.cat([left[:, :rank], b], 1), cols


def _spectral(data: SparseObserved, noise: Tensor) -> Tensor:
    """Factors of the rows of the matrix that is 1 at the cells and 0 elsewhere.

    They are those of a few power iterations. None is zero, which sweeps would not
    change.
    """
    A = data.plus(torch.ones_like(data.values), data.zero())
    near = partial_svd(A, noise.shape[1], start=A.mT @ (A @ noise), max_steps=1)
    top = partial_svd(A, noise.shape[1], start=near.V, max_steps=1)
    return top.U * top.s.clamp_min(LEAST * top.s[0]).sqrt()


def _with_more(
    fitted: FittedFactors,
    more: MoreCells,
    biases: tuple[bool, bool],
    scaling_of: Callable[[Given], Scaling],
) -> FittedFactors:
    """Update the factors: new systems of the rows, and of the sums of the columns."""
    fitted = _in_memory(fitted)
    model, values = fitted.models[0], cast(np.ndarray, fitted.values)
    starts, cols = fitted.seen
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    earlier = _cells(rows, cols, values, (len(starts) - 1, more.shape[1]))
    added = more.rows, more.cols, more.values.astype(values.dtype)
    cells = earlier.replaced(_cells(*added, more.shape))
    touched = torch.from_numpy(np.unique(more.rows))
    before, after = earlier.of_rows(touched), cells.of_rows(touched)
    rows, cols, values = (
        part.numpy() for part in (cells.rows, cells.cols, cells.values)
    )
    one_unit = fitted.statistics.one_unit
    statistics = Priors.of(rows, cols, values, more.shape, one_unit=one_unit)
    given = Given(cells, statistics)
    scaling = fitted.scaling.kept(scaling_of(given))
    with threads_for(work_of(len(after.values))):
        stream = _stream(fitted).extended(*more.shape, biases[0])
        stream = stream.replaced(
            touched,
            before,
            after,
            scaling,
            model,
            row_biases=biases[0],
            col_biases=biases[1],
        )
    model = replace(model, F=stream.cols[:, :-1], offset=stream.cols[:, -1])
    return replace(
        fitted,
        statistics=statistics,
        scaling=scaling,
        models=[model],
        left=stream.rows.numpy(),
        right=stream.cols.numpy(),
        seen=(cells.starts.numpy(), cols.astype(np.int32)),
        values=values,
        sums=(stream.gram, stream.right, stream.origin),
    )


def _stream(fitted: FittedFactors) -> RowStream:
    factors = fitted.factors()
    if fitted.sums is not None:
        return RowStream(factors.left, factors.right, *fitted.sums)
    starts, cols = fitted.seen
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    shape = len(factors.left), len(factors.right)
    cells = _cells(rows, cols, fitted.values, shape)
    return RowStream.of(factors.left, factors.right, cells)


def _in_memory(fitted: FittedFactors) -> FittedFactors:
    """The same factors with their cells in memory, or raise an error."""
    reason = None
    if isinstance(fitted.seen, StoredCells):
        starts, cols, values, weights = fitted.seen.all()
        reason = None if weights is None else "weights"
        fitted = replace(fitted, seen=(starts, cols), values=values)
    elif fitted.identity is not None:
        reason = "features, graphs or weights"
    elif fitted.alpha is not None:
        reason = "alpha"
    if reason:
        raise ValueError(
            f"partial_fit cannot continue a fit with {reason}; call fit with all cells."
        )
    return fitted


def _cells(
    rows: ArrayLike, cols: ArrayLike, values: ArrayLike | None, shape: tuple[int, int]
) -> SparseObserved:
    rows, cols = (np.asarray(x).astype(np.int64) for x in (rows, cols))
    return SparseObserved.of(rows, cols, np.asarray(values), shape)
