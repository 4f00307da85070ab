"""Rows that are samples of a Gaussian, or of a Gaussian copula.

The scores of cells (`NormalMarginals`, `CopulaMarginals`) are Gaussian rows, whose mean
and covariance EM finds. `Conditional` completes fitted and new rows by them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import Any, Literal, Self, cast

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import (
    NOT_IN_MEMORY,
    Choice,
    CompleterTags,
    Contribution,
    Explains,
    Fitted,
    IterativeCompleter,
    Limits,
    MoreCells,
    PartialFit,
    Samples,
    TakesBounds,
    TakesRowWeights,
    Trials,
    by_size,
    read_rows,
)
from skmc.blocks import ChunkedRows
from skmc.cells import Cells, Container, Given, LikeObserved, Observed, Scaling
from skmc.cells.copies import copies
from skmc.completers._rank import checked_rank
from skmc.completers.gaussian.censoring import (
    CensoredCells,
    CensoredEM,
    CensoredFactorEM,
    CensoredResult,
    Censoring,
    detection_limits,
    warn_of_limits,
)
from skmc.completers.gaussian.distributions import ExpectedSums, Gaussian
from skmc.completers.gaussian.draws import drawn_scores
from skmc.completers.gaussian.em import EM, ChunkedEM, FactorEM, GaussianResult
from skmc.completers.gaussian.regression import terms
from skmc.linalg import (
    Randomness,
    resolve_device,
    threads_for,
    threads_for_rows,
    truncated_normal,
    work_of,
)
from skmc.loop import solve
from skmc.new_rows import content_order
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import Result, Solver

MOST_COLUMNS = 300  # largest number of columns for a full covariance
RANK = 20  # rank of the factors for more columns
RIDGES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.1, 0.01, 0.001)
TRIAL_STEPS = 3  # from the solution for the previous weight
RANKS = (1, 2, 3, 5, 8, 12, 20)
RANK_STEPS = 15
ROWS_TRIED = 1000
N_PARTS = 5  # of the rows, which are held out in turn until there are enough
ROWS_JUDGED = 100
STEPS_MORE = 3  # of EM over all rows, of `partial_fit`
FIRST_STEPS = 20  # of data augmentation before the first draw of the model
POSTERIOR_STEPS = 3  # of data augmentation between two draws of the model
MOST_LEVELS = 32  # largest number of values that are treated as ordered levels
OFTEN = 3  # times the median number of cells of a value, for a point mass
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


class GaussianCompleter(
    Explains, PartialFit, Samples, TakesBounds, TakesRowWeights, IterativeCompleter
):
    r"""Fill each cell with its expected value, given the rest of its row.

    For tables, in a second, and to know how sure each cell is; not for pictures, and
    not for relations that stay nonlinear with ``marginals="copula"``. The model is a
    multivariate normal distribution, fitted by EM.

    Rows are draws from :math:`N(\mu, S)`. Both are found from the observed cells by

    .. math::

        \min_{\mu, S} \; -\sum_i \log N(x_{io};\, \mu_o, S_{oo})
        + \frac{\lambda}{2} \left(\mathrm{tr}\, S^{-1} + \log\det S\right),

    a *sum* over the rows :math:`i` with observed cells :math:`o`, on columns scaled to
    variance 1. A missing cell is completed by its conditional expectation given the
    observed cells of its row, whose error has a known variance:

    .. math::

        E[x_m | x_o] = \mu_m + S_{mo} S_{oo}^{-1} (x_o - \mu_o), \qquad
        Var[x_m | x_o] = S_{mm} - S_{mo} S_{oo}^{-1} S_{om}.

    `predict_std` returns these deviations and `sample` draws completed matrices. See
    `skmc.completers.gaussian.em.EM` for the steps.

    Parameters
    ----------
    lambda_ridge : float >= 0 or "auto", default="auto"
        Weight :math:`\lambda`, in rows: the prior counts as this number of rows with
        uncorrelated columns. 0 is maximum likelihood, which needs many more rows than
        columns. Values to try: .1, .3, 1, 3, 10, 30, 100 (relative to one row). "auto"
        chooses on held-out rows, see Notes.
    lower_limit : float, array-like, dict, "min" or None, default=None
        Limit of detection: a cell below it is always missing. One for all columns, one
        for each, by name or position, or a matrix of the shape of ``X`` with the limit
        of each missing cell. "min" is the smallest observed value of the column. None,
        NaN, ``-inf`` and columns that a dict does not list have no limit.
    upper_limit : as lower_limit, with "max", default=None
        Limit above which a cell is always missing, such as a time of follow-up or the
        end of a scale.
    censored : {"some", "all"}, default="some"
        Which missing cells with a limit are beyond it. With "some", a cell within its
        limits may be missing, too, with a probability of its column that the fit
        estimates. "all" if no cell is missing for another reason. If you know which
        cells are beyond a limit, pass a matrix that has the limits of these cells, and
        "all".
    marginals : {"normal", "copula"}, default="normal"
        Distribution of each column. "copula" first replaces the cells of each column by
        normal scores of their ranks, and returns conditional means in the units of the
        data. It suits skewed columns and ordered levels. Columns of at most 32 distinct
        values are treated as levels, and so are values that are much more frequent than
        the others of their column, such as zeros of amounts or 40 hours.
    rank : int in [1, min(n_samples, n_features)], "auto" or None, default="auto"
        Number of factors. None is a full covariance. A number is that of the factors of
        a covariance :math:`F F^T + \Psi`, where :math:`\Psi` is diagonal, see
        `skmc.completers.gaussian.em.FactorEM`. "auto" is None up to 300 columns and 20
        above; with limits, it is chosen from 1, 2, 3, 5, 8, 12 and 20 on held-out
        cells.
    max_iter : int >= 1, default=200
        Maximum number of EM steps.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-4
        Stop once a step moves mean and covariance (with factors: the completion) by at
        most ``tol`` times their norm.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
        Computed in double precision.
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells of ``rank="auto"`` with limits. Otherwise nothing is
        random.
    min_value : float, array-like, dict or None, default=None
        Smallest value of completed cells and of draws: one for all columns, one for
        each, or by name or position. None, NaN and columns that a dict does not list
        have no bound. Try 0 for amounts and counts. Completions are clipped, and draws
        are from the distribution between the bounds.
    max_value : as min_value, default=None
        Largest value, at least ``min_value``.
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
        Whether to return observed cells unchanged. False returns their expectations
        given the other cells of the row, as in ``reconstruction_``.

    Attributes
    ----------
    lambda_ridge_ : float
    rank_ : int or None
    location_ : ndarray of shape (n_features,)
        Mean of the columns; with "copula", of the scores.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance of the columns; with "copula", of the scores.
    censored_share_ : ndarray of shape (n_features,) or None
        Expected share of the missing cells of each column that are beyond its limits;
        NaN in columns without a missing cell. None if there are no limits.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        Conditional expectation of each cell given the *other* observed cells of its
        row, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every third iteration.
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
    ChainedCompleter : Draws without the assumption of a normal distribution.
    TreesCompleter : Columns with nonlinear relations.
    MixedCompleter : Tables with categories and dates.

    Notes
    -----
    All rows are completed by the same formula, so `transform` does not iterate, and the
    completion of a row does not depend on the other rows of the call.

    Memory grows with ``n_samples * n_features`` and ``n_features ** 2``; the systems of
    rows are solved in blocks of bounded size, but distinct patterns of missing cells
    keep the positions of their missing or observed columns, whichever are fewer. Time
    of a step grows with the number of distinct patterns times the cube of that number
    of columns; with factors, with ``n_samples * (n_features + rank) * rank ** 2``.

    Deviations are not a second return value of `transform`, because pipelines pass on a
    single array. `predict_std` is a separate method, named after the ``return_std``
    of scikit-learn's regressors. Deviations treat the mean and the covariance as known.

    `sample` draws missing cells from their joint distribution. Each draw has a mean and
    a covariance of its own, from their posterior distribution given the fitted cells,
    by three steps of data augmentation. The prior is that of regressions of each column
    on those with fewer missing cells, whose residual variances have the degrees of
    freedom of a least-squares fit. With ``lambda_ridge="auto"``, the prior of the
    draws is none if each two columns are observed together in more than twice as many
    rows as there are columns: the prior that completes best shrinks correlations, and
    estimates from the draws would be biased. Where the covariance has factors, and
    after a fit to a collection of Dask, all draws have those of the fit.

    The scores of "copula" are means over the interval of a level, not intervals as in
    the paper. So correlations of columns with few levels are too small. The variance of
    normal scores within the levels is added to that of a prediction.

    `fit` also takes Dask Arrays and DataFrames, whose chunks are rows. Each step is one
    pass over the chunks, whose expected sums are added. The chunks are computed once
    per step: persist them if they fit in the memory of the cluster.
    "auto" uses the first 1000 rows. ``marginals`` must be "normal", and the covariance
    is full. There is no ``reconstruction_``; `transform` the collection instead.

    `partial_fit` with new rows is a step of incremental EM: the expected sums of
    :math:`1`, :math:`x` and :math:`x x^T` over the new rows are added to those of all
    rows so far, and mean and covariance follow from the totals. Of earlier rows, only
    the scaling of the columns is recomputed. For rows without missing cells these
    sums are sufficient, so the result is that of a fit to all rows. With missing cells,
    the expectations of earlier rows are those of the model at their time. For the
    prior, columns are still scaled to variance 1 over all cells. New cells of earlier
    rows, new columns, "copula" and factors need all rows: these calls take three EM
    steps over all rows from the current model, which approach a fit to all cells.

    With limits, a missing cell multiplies the likelihood by 1 beyond its limits and by
    the probability ``p`` of its column within them. Expectation propagation completes
    the rows, see `skmc.completers.gaussian.censoring.CensoredEM`. Means, deviations and
    draws are those of the cells under this likelihood: with "all" they are beyond the
    limits, and with "some" they mix both cases. Limits cut normal distributions, so
    take logarithms of amounts and intensities first. With limits, ``rank="auto"`` comes
    first, and the path of ``lambda_ridge`` begins at 1; `partial_fit` takes steps over
    all rows; and the values of observed cells in ``reconstruction_`` ignore the limits.

    `explain` gives the terms of the conditional expectation. The base is the mean
    :math:`\mu_j` of the column, and another column :math:`k` of the row contributes
    :math:`\beta_k (x_k - \mu_k)`. The weights :math:`\beta = S_{oo}^{-1} S_{oj}` are
    the coefficients of the regression on all observed columns of the row. If two
    columns are nearly equal, the weight of one of them can have the opposite sign.

    ``lambda_ridge="auto"`` follows the path 100, 30, 10, 3, 1, .1, .01, .001, with
    three steps at each from the last solution, until the likelihood of held-out rows
    falls: that of each cell given the others in its row. Fifths of the rows are held
    out in turn until they have 100 rows. Of more than 1000 rows it uses the first 1000.

    References
    ----------
    Dempster, Laird, Rubin. Maximum likelihood from incomplete data via the EM
    algorithm. Journal of the Royal Statistical Society B 39 (1977). Minka. Expectation
    propagation for approximate Bayesian inference. Uncertainty in Artificial
    Intelligence (2001), for limits. Neal, Hinton. A
    view of the EM algorithm that justifies incremental, sparse, and other variants.
    Learning in Graphical Models (1998). Schafer. Analysis of incomplete multivariate
    data. Chapman and Hall (1997), for the draws. Little, Rubin. Statistical analysis
    with missing data. Wiley (2002), chapters 8 and 11. Zhao, Udell. Missing
    value imputation for mixed data via Gaussian copula. KDD (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import GaussianCompleter
    >>> rng = np.random.RandomState(0)
    >>> x = rng.randn(200)
    >>> X = np.column_stack([x, 2 * x + rng.randn(200)])
    >>> completer = GaussianCompleter(0).fit(X)
    >>> completer.transform([[1.0, np.nan]]).round(1)
    array([[1. , 1.9]])
    >>> completer.predict_std([[1.0, np.nan]]).round(1)
    array([[0. , 0.9]])
    """

    completer_tags = CompleterTags(
        recovers=0.05,
        monotone=True,
        unweighted="its likelihood is a product over rows, not over cells",
    )
    accepts = (Observed, ChunkedRows)
    check_every = 3
    scaling = "columns"

    lambda_ridge: NonNegative | Literal["auto"] = "auto"
    _: KW_ONLY
    lower_limit: Limits | Literal["min"] = None
    upper_limit: Limits | Literal["max"] = None
    censored: Literal["some", "all"] = "some"
    marginals: Literal["copula", "normal"] = "normal"
    rank: Count | Literal["auto"] | None = "auto"
    max_iter: Count = 200
    max_time: Positive | None = None
    tol: NonNegative = 1e-4
    device: str | torch.device = "auto"
    random_state: Seed = None

    lambda_ridge_: float = field(init=False)
    rank_: int | None = field(init=False)
    location_: np.ndarray = field(init=False)
    covariance_: np.ndarray = field(init=False)
    censored_share_: np.ndarray | None = field(init=False)
    _fitted: Conditional = field(init=False)

    def _scaled(self, given: Given) -> Given:
        in_memory = given.read is not None
        if not in_memory and (
            self.marginals != "normal" or self.rank not in ("auto", None)
        ):
            raise ValueError(
                "Rows of a Dask collection are fitted with marginals='normal' and "
                "rank=None; pass an array for the others."
            )
        if self.marginals == "normal":
            given = super()._scaled(given)
            scaling = given.scaling.to("cpu", torch.float64)
            given = replace(given, scaling=NormalMarginals(scaling))
            censoring = self._censoring(given)
            if censoring is None:
                return given
            used = torch.from_numpy(given.weights_of_rows > 0)
            warn_of_limits(given.matrix, censoring)
            return replace(given, data=CensoredCells.of(given.data, censoring, used))
        if self._has_limits:
            raise ValueError(
                'lower_limit and upper_limit need marginals="normal"; transform skewed '
                "columns first, for example by their logarithm."
            )
        weights = given.weights_of_rows
        cells = given.matrix[weights > 0]
        marginals = CopulaMarginals.of(cells, weights[weights > 0])
        scores, times = torch.from_numpy(marginals.scores(cells)), given.data.weights
        data = Observed(scores, ~torch.isnan(scores), weights=times)
        data = data.to(resolve_device(self.device))
        return replace(given, data=data, scaling=marginals)

    @property
    def _has_limits(self) -> bool:
        return self.lower_limit is not None or self.upper_limit is not None

    def _censoring(self, given: Given) -> Censoring | None:
        """Limits in units of the scores, of each row of ``X`` or of all rows alike."""
        if not self._has_limits:
            return None
        if given.read is None:
            raise ValueError(
                "lower_limit and upper_limit need cells in memory; pass an array."
            )
        used = given.weights_of_rows > 0
        limits = detection_limits(
            self.lower_limit,
            self.upper_limit,
            given.matrix,
            used,
            getattr(self, "feature_names_in_", ()),
        )
        scores = [torch.from_numpy(given.scaling.scores(limit)) for limit in limits]
        varies = torch.from_numpy(given.statistics.varies)
        low, high = (
            torch.where(varies, score, end)
            for score, end in zip(scores, (-math.inf, math.inf), strict=True)
        )
        missing = torch.from_numpy(np.isnan(given.matrix))
        limited = (missing & (low.isfinite() | high.isfinite())).any(0)
        if not limited.any():
            return None
        share = torch.zeros(len(limited), dtype=torch.float64)
        if self.censored == "some":
            weights = torch.from_numpy(given.weights_of_rows)
            share[limited] = (weights @ missing.double())[limited] / weights.sum()
        return Censoring(low, high, share, share)

    def _with_choice_of(self, fit: GaussianCompleter) -> Self:
        """An unfitted clone with the prior and the rank that a fit has chosen."""
        chosen = {"lambda_ridge": fit.lambda_ridge_, "rank": fit.rank_}
        return clone(self).set_params(**chosen)

    def _choose(self, data: Cells, trials: Trials) -> Choice:
        rank = self.rank
        if rank == "auto":
            full = isinstance(data, ChunkedRows) or data.shape[1] <= MOST_COLUMNS
            rank = None if full else min(RANK, *data.shape)
        elif rank is not None:
            rank = checked_rank(rank, data.shape, "None")
        ridge, start = self.lambda_ridge, None
        if isinstance(data, CensoredCells) and self.rank == "auto":
            first = 1.0 if ridge == "auto" else ridge
            rank, start = self._follow_ranks(first, data, trials)
        if ridge == "auto":
            ridge, start = self._follow_path(rank, data, trials, start)
        return Choice({"lambda_ridge": ridge, "rank": rank}, start)

    def _follow_ranks(
        self, ridge: float, data: Cells, trials: Trials
    ) -> tuple[int, Any]:
        """Find the best number of factors on held-out cells, and the solution there.

        Too many factors explain the observed cells well and the missing ones badly,
        which then seem to be beyond their limits.
        """
        best, lowest, worse = (1, None), math.inf, 0
        with trials.interruptible():
            for rank in (r for r in RANKS if r <= min(data.shape)):
                if trials.cells[1] is None or worse > 1:
                    break
                solver = _em(trials.cells[0], ridge, rank, None)
                trial = trials.run(solver, max_iter=RANK_STEPS)
                error = trials.error(trial)
                worse = worse + 1 if error >= lowest else 0
                if error < lowest:
                    best, lowest = (rank, trial.result.model), error
        return best

    def _follow_path(
        self, rank: int | None, data: Cells, trials: Trials, start: Any = None
    ) -> tuple[float, Any]:
        """Find the best weight on held-out rows, and the solution there.

        The path begins at the weight 1 if there is a solution for it.
        """
        best, lowest = (1.0, start), math.inf
        ridges = RIDGES if start is None else [r for r in RIDGES if r <= 1]
        with trials.interruptible():
            rows: Any = self._for_trials(data)
            if isinstance(rows, ChunkedRows):
                rows = rows.first_rows()
            parts = _held_out_rows(rows)
            groups = _groups(trials.first_columns)
            starts = [start] * len(parts)
            for ridge in ridges if parts else ():
                found = [
                    trials.run(
                        _em(train, ridge, rank, last), train, max_iter=TRIAL_STEPS
                    ).result
                    for (train, _), last in zip(parts, starts, strict=True)
                ]
                starts = [result.state or result.model for result in found]
                error = sum(
                    _surprise(result.model, judged, groups)
                    for result, (_, judged) in zip(found, parts, strict=True)
                )
                if error >= lowest:
                    break
                best, lowest = (ridge, found[0].model), error
        return best

    def _for_trials(self, data: Any) -> Cells:
        return data.first_rows(ROWS_TRIED)

    def _make_solver(self, data: Cells, params: Params, rng: Randomness) -> Solver:
        return _em(data, params.lambda_ridge, params.rank, params.start)

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        n_cols = given.data.shape[1]
        if isinstance(result, GaussianResult):
            model = result.model.to("cpu")
        else:  # interrupted before the first iterate
            model = Gaussian(torch.zeros(n_cols).double(), torch.eye(n_cols).double())
        cells = None if given.read is None else given.matrix.copy()
        censoring = self._censoring(given)
        if censoring is not None and isinstance(result, CensoredResult):
            censoring = replace(censoring, share=result.share.cpu())
        fitted = Conditional(
            given.statistics,
            model,
            given.scaling,
            cells,
            first_columns=given.first_columns,
            row_weights=given.row_weights,
            censoring=censoring,
        )
        return fitted.attributes()

    def _all_cells(self, more: MoreCells) -> Given:
        cells = more.into(self._fitted.in_memory())
        return Given.of_matrix(cells, one_unit=self._fitted.statistics.one_unit)

    def _fit_more(self, more: MoreCells) -> tuple[Conditional, dict[str, Any]]:
        fitted = self._fitted
        old = len(fitted.in_memory())
        given = self._scaled(self._all_cells(more))
        cells, marginals = given.matrix, fitted.marginals
        with threads_for(work_of(cells.size, cells.shape[1])):
            if self._adds_up(more, given):
                total = fitted.sums or fitted.sums_of(cells[:old])
                total = total.plus(fitted.sums_of(cells[old:]))
                # The scaling of the first rows is kept; the prior uses the scaling of
                # all rows.
                scales = given.scaling.scaling.scale / marginals.scaling.scale
                model = total.gaussian(self.lambda_ridge_, scales[0].square())
                parts = given.statistics, model, marginals, cells, total
                answers = Conditional(*parts, fitted.first_columns)
                found = answers.attributes()
            else:
                start = fitted.rescaled(given.scaling, cells.shape[1])
                solution = solve(
                    _em(given.data, self.lambda_ridge_, self.rank_, start),
                    given.data,
                    max_iter=STEPS_MORE,
                    check_every=STEPS_MORE,
                )
                found = self._attributes(given, solution.result)
        return found.pop("_fitted"), found

    def _adds_up(self, more: MoreCells, given: Given) -> bool:
        """Whether the sums over new rows can be added to those of earlier ones."""
        if self.marginals == "copula" or self.rank_ is not None or self._has_limits:
            return False
        scales = self._fitted.marginals.scaling.scale, given.scaling.scaling.scale
        same = more.shape[1] == self._shape[1]
        later = len(more.rows) > 0 and more.rows.min() >= self._shape[0]
        return bool(same and later and all((scale > 0).all() for scale in scales))

    def predict_std(self, X: Container) -> np.ndarray:
        """Standard deviation of the cells that `transform` returns.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Conditional on the observed cells of the row; 0 for these cells themselves
            (with ``keep_observed=False``: conditional on the others). All columns of
            ``X`` are included; empty ones have NaN.
        """
        check_is_fitted(self)
        cells = read_rows(self, X)
        with threads_for_rows(cells):
            std = self._fitted.std(cells)
        if self.keep_observed:
            std[~np.isnan(cells) & ~self._priors.empty_cols] = 0.0
        return std.astype(cells.dtype, copy=False)

    def _contributions(
        self, cells: np.ndarray, i: int, j: int
    ) -> tuple[float, list[Contribution]]:
        if self.marginals != "normal":
            raise ValueError(
                "explain needs marginals='normal': 'copula' maps each column to normal "
                "scores and back, so its values are not sums of contributions. Use "
                "marginals='normal', or explain a KNNCompleter."
            )
        row = np.where(self._priors.varies, cells[i].astype(float), np.nan)
        fitted = self._fitted
        base, found = terms(fitted.model, fitted.marginals.scaling, row, j)
        if fitted.censoring is not None:
            value = float(fitted.rows(cells, everywhere=False)[i, j])
            rest = value - base - sum(part.amount for part in found)
            found.append(Contribution("limits of detection", -1, rest))
        return base, by_size(found)

    def _drawn_rows(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        ridge = self.lambda_ridge_
        if self.lambda_ridge == "auto" and self._fitted.is_determined:
            ridge = 0.0  # a prior that completes better would bias estimates
        return self._fitted.sample(cells, n_samples, ridge, rng, self._bounds)


def _held_out_rows(data: Observed) -> list[tuple[Observed, Observed]]:
    """Hold out fifths of the rows: cells to train on, and those of held-out rows.

    The rows of the fit would prefer a covariance that is far too certain, because it
    was learned from them. Neither the order of the rows nor rows or columns without
    variation matter, and copies of a row are in one part.
    """
    cells = torch.where(data.mask, data.values, torch.nan).cpu().numpy()
    varies = (np.nan_to_num(cells) != 0).any(0)
    some = np.flatnonzero(~np.isnan(cells[:, varies]).all(1))
    core = cells[np.ix_(some, varies)]
    if not core.size:
        return []
    place = np.argsort(content_order(core))[copies(core)]
    number = np.unique(place, return_inverse=True)[1]
    n_rows = number.max() + 1
    n_parts = min(N_PARTS, n_rows)
    n_judged = min(n_parts, -(-ROWS_JUDGED * n_parts // n_rows))
    found = []
    for part in range(n_judged if n_parts > 1 else 0):
        rows = some[number % n_parts == part]
        hidden = np.zeros(cells.shape, bool)
        hidden[rows] = ~np.isnan(cells[rows])
        train, held_out = data.without(hidden)
        constant = torch.from_numpy(~varies).to(data.device)
        found.append((train, cast(Observed, held_out).hide(constant)))
    return found


def _surprise(model: Any, rows: Observed, groups: Sequence[np.ndarray]) -> float:
    """Negative log-likelihoods of cells, each given the others in its row.

    A squared error would prefer a covariance that is far too certain where the few
    cells happen to be in rows with many others. Columns of one group represent one
    cell, and are no others of each other.
    """
    values = rows.values.double()
    mean, variance = model.given_others(values, rows.mask)
    for columns in groups:
        others = rows.mask.clone()
        others[:, columns] = False
        moments = model.given_others(values, others)
        mean[:, columns], variance[:, columns] = (x[:, columns] for x in moments)
    off = rows.values - mean
    surprise = rows.times * (off.square() / variance + variance.log())
    return float(surprise[rows.mask & (variance > 0)].sum())


def _groups(first_columns: np.ndarray | None) -> list[np.ndarray]:
    """Columns of each cell of a table that several of them represent."""
    if first_columns is None:
        return []
    first, count = np.unique(first_columns, return_counts=True)
    return [np.flatnonzero(first_columns == k) for k in first[count > 1]]


def _em(data: Cells, ridge: float, rank: int | None, start: Any) -> Solver:
    if isinstance(data, ChunkedRows):
        return ChunkedEM(ridge, start)
    beyond = isinstance(data, CensoredCells)
    if rank is None:
        return CensoredEM(ridge, start) if beyond else EM(ridge, start)
    solver = CensoredFactorEM if beyond else FactorEM
    return solver(ridge, rank, start)


@dataclass(eq=False)
class Conditional(Fitted):
    """Conditional distributions of the missing cells of rows.

    Parameters
    ----------
    model : Gaussian or FactorGaussian
        Distribution of the scores of a row.
    marginals : NormalMarginals or CopulaMarginals
        Map from cells to scores and back.
    cells : ndarray of shape (n_rows, n_cols) or None, default=None
        Fitted matrix, if it was in memory.
    sums : ExpectedSums or None, default=None
        Expected sums over all rows after `partial_fit`.
    first_columns : ndarray of shape (n_cols,) or None, default=None
        For each column of a matrix that represents a table, the first column that
        represents the same cell.
    row_weights : ndarray of shape (n_rows,) or None, default=None
        Weights of the rows of the fitted matrix. None is 1.
    censoring : Censoring or None, default=None
        Limits of the scores of all rows alike, or of the rows of the fitted matrix.
    """

    model: Any
    marginals: Any
    cells: np.ndarray | None = None
    sums: Any = None
    first_columns: np.ndarray | None = None
    row_weights: np.ndarray | None = None
    censoring: Censoring | None = None

    def in_memory(self) -> np.ndarray:
        """The fitted matrix, or an AttributeError if it was not in memory."""
        if self.cells is None:
            raise AttributeError(NOT_IN_MEMORY)
        return self.cells

    @property
    def is_determined(self) -> bool:
        """Whether the rows determine the covariance without a prior.

        Each two columns are observed together in more than twice as many rows as there
        are columns.
        """
        if self.cells is None:
            return False
        seen = ~np.isnan(self.cells[:, self.statistics.varies])
        weights = self.row_weights
        if weights is None:
            weights = np.ones(len(seen))
        together = (weights[:, None] * seen).T @ seen
        return bool(together.min(initial=np.inf) > 2 * seen.shape[1])

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of the completer."""
        location, covariance = self.model.mean, self.model.covariance
        if isinstance(self.marginals, NormalMarginals):
            scale = self.marginals.scaling.scale[0]
            location = self.marginals.undo(location)[0]
            covariance = covariance * torch.outer(scale, scale)
        return {
            "location_": location.numpy(),
            "covariance_": covariance.numpy(),
            "censored_share_": self._censored_share(),
            "_fitted": self,
        }

    def predict(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        return self._mean(cells, everywhere)

    def _mean(
        self, cells: np.ndarray, everywhere: bool, limits: Censoring | None = None
    ) -> np.ndarray:
        simple = isinstance(self.marginals, NormalMarginals) and self.censoring is None
        if not everywhere and simple:
            # Missing cells only; their means need no variances.
            return self.marginals.undo(self.model(*self.scores(cells))).numpy()
        return self.marginals.mean(*self.given_others(cells, limits))

    def without(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        rest = np.where(hidden, cells.dtype.type(np.nan), cells)
        limits = self._limits_of(cells)  # none in the hidden cells, which were observed
        values = self._mean(rest, False, limits)
        return self.statistics.fill(rest, values)

    def whole(self) -> np.ndarray:
        return self._expected(np.arange(len(self.in_memory())), everywhere=True)

    def missing(self) -> np.ndarray:
        return self._expected(np.arange(len(self.in_memory())), everywhere=False)

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        which, at = np.unique(rows, return_inverse=True)
        everywhere = not np.isnan(self.in_memory()[rows, cols]).all()
        return self._expected(which, everywhere)[at, cols]

    def _expected(self, rows: np.ndarray, everywhere: bool) -> np.ndarray:
        """The values of some rows of the fitted matrix."""
        cells = self.in_memory()[rows]
        values = self._mean(cells, everywhere, self._limits_of(cells, rows))
        return self.statistics.fill(cells, values).astype(cells.dtype)

    def _limits_of(
        self, cells: np.ndarray, rows: np.ndarray | None = None
    ) -> Censoring | None:
        """Limits of the missing cells of rows, maybe the ``rows`` of the fit."""
        found = self.censoring
        if found is None:
            return None
        if rows is not None and len(found.low) > 1:
            found = found.rows(rows)
        if len(found.low) not in (1, len(cells)):
            raise ValueError(
                f"The limits of the fit are those of its {len(found.low)} rows, but X "
                f"has {len(cells)} rows; fit with limits of columns to complete others."
            )
        return found.at(torch.from_numpy(np.isnan(cells)))

    def _censored_share(self) -> np.ndarray | None:
        """Expected share of the missing cells of each column that are beyond limits."""
        limits = None if self.cells is None else self._limits_of(self.cells)
        if limits is None or self.cells is None:
            return None
        scores, seen = self.scores(self.cells)
        within = limits.completed(self.model, scores, seen).within
        beyond = (limits.of(~seen).double() - within).sum(0).numpy()
        missing = np.isnan(self.cells).sum(0)
        return np.where(missing > 0, beyond / np.maximum(missing, 1), np.nan)

    def scores(self, cells: np.ndarray) -> tuple[Tensor, Tensor]:
        """Scores of cells, and a mask of the scores that are used."""
        scores = torch.from_numpy(self.marginals.scores(cells))
        # The fit has not learned how other columns depend on a constant one.
        varies = torch.from_numpy(self.statistics.varies)
        return scores, ~torch.isnan(scores) & varies

    def given_others(
        self, cells: np.ndarray, limits: Censoring | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the score of each cell, given the others in its row.

        Columns that represent one cell of a table are no others of each other. Missing
        cells are given that they may be beyond their ``limits``.
        """
        if limits is None:
            limits = self._limits_of(cells)
        scores, seen = self.scores(cells)
        moments = self.model.given_others(scores, seen)
        if limits is not None:
            found = limits.completed(self.model, scores, seen)
            pairs = zip((found.mean, found.variance), moments, strict=True)
            moments = tuple(torch.where(seen, old, new) for new, old in pairs)
        mean, variance = moments[0].numpy(), moments[1].numpy()
        for columns in _groups(self.first_columns):
            rows = np.flatnonzero(~np.isnan(cells[:, columns[0]]))
            rest = cells[rows]
            rest[:, columns] = np.nan
            moments = self.model.given_others(*self.scores(rest))
            at = np.ix_(rows, columns)
            mean[at] = moments[0][:, columns].numpy()
            variance[at] = moments[1][:, columns].numpy()
        return mean, variance

    def std(self, cells: np.ndarray) -> np.ndarray:
        """Standard deviation of each cell, given the others in its row."""
        std = self.marginals.std(*self.given_others(cells))
        std[:, self.statistics.empty_cols] = np.nan
        return std

    def sample(
        self,
        cells: np.ndarray,
        n_samples: int,
        ridge: float,
        rng: np.random.RandomState,
        bounds: LikeObserved | None = None,
    ) -> np.ndarray:
        """Draw the missing cells given the observed ones, within bounds."""
        scores, seen = self.scores(cells)
        found = np.empty((n_samples, *cells.shape), cells.dtype)
        limits, beyond = self._limits(bounds), self._limits_of(cells)
        models = self._posterior(ridge, rng, limits)
        for k, model in zip(range(n_samples), models, strict=False):
            drawn = drawn_scores(model, scores, seen, rng, limits, beyond)
            values = self.statistics.fill(cells, self.marginals.drawn(drawn, rng))
            if bounds is not None:
                values = self._into(values, cells, bounds, rng)
            found[k] = np.where(np.isnan(cells), values, cells)
        return found

    def _into(
        self,
        values: np.ndarray,
        cells: np.ndarray,
        bounds: LikeObserved,
        rng: np.random.RandomState,
    ) -> np.ndarray:
        """Draw values of a copula again if no observed value is within the bounds."""
        low, high = bounds.low, bounds.high
        place = np.nonzero(np.isnan(cells) & ((values < low) | (values > high)))
        if len(place[0]) and isinstance(self.marginals, CopulaMarginals):
            moments = self.given_others(cells)
            mean = self.marginals.mean(*moments)[place]
            std = self.marginals.std(*moments)[place]
            ends = low[place[1]], high[place[1]]
            values[place] = truncated_normal(mean, std, *ends, rng)
        return bounds.apply(values)

    def _limits(self, bounds: LikeObserved | None) -> tuple[Tensor, Tensor] | None:
        """Bounds of the scores of columns that vary."""
        if bounds is None:
            return None
        varies, ends = self.statistics.varies, (-np.inf, np.inf)
        pairs = zip(self.marginals.limits(bounds.low, bounds.high), ends, strict=True)
        low, high = (torch.from_numpy(np.where(varies, z, end)) for z, end in pairs)
        return low, high

    def _posterior(
        self,
        ridge: float,
        rng: np.random.RandomState,
        limits: tuple[Tensor, Tensor] | None,
    ) -> Iterator[Any]:
        """Draw models by data augmentation, or repeat a model that allows no draws."""
        model = self.model
        if self.cells is None or not isinstance(model, Gaussian):
            yield from repeat(model)
            return
        weights = self.row_weights
        if weights is None:
            weights = np.ones(len(self.cells))
        used = np.flatnonzero(weights)
        beyond = self._limits_of(self.cells[used], used)
        scores = torch.from_numpy(self.marginals.scores(self.cells[used]))
        seen, times = ~torch.isnan(scores), torch.from_numpy(weights[used])
        missing, steps = (times @ (~seen).double()).numpy(), FIRST_STEPS
        while True:
            for _ in range(steps):
                whole = drawn_scores(model, scores, seen, rng, limits, beyond)
                order = np.lexsort((rng.random_sample(len(missing)), missing))
                model = Gaussian.from_posterior(whole, times, ridge, order, rng)
            steps = POSTERIOR_STEPS
            yield model

    def sums_of(self, cells: np.ndarray) -> ExpectedSums:
        scores = torch.from_numpy(self.marginals.scores(cells))
        return ExpectedSums.of(self.model, scores, ~torch.isnan(scores))

    def rescaled(self, marginals: Any, n_cols: int) -> Any:
        """Convert the model to other marginals, and to more columns."""
        model, old = self.model, len(self.model.mean)
        mean = torch.zeros(n_cols, dtype=torch.float64)
        factor = torch.ones(old, dtype=torch.float64)
        mean[:old] = model.mean
        if isinstance(marginals, NormalMarginals):
            a, b = self.marginals.scaling, marginals.scaling
            shift, scale = b.shift[0, :old], b.scale[0, :old]
            varies = (a.scale[0] > 0) & (scale > 0)
            factor = torch.where(varies, a.scale[0] / scale, factor)
            moved = torch.where(varies, (a.shift[0] - shift) / scale, 0.0)
            mean[:old] = model.mean * factor + moved
        return model.extended(mean, factor)


@dataclass(frozen=True, eq=False)
class NormalMarginals:
    """Marginals of normal columns, which are standardized.

    Parameters
    ----------
    scaling : Scaling
        Means and standard deviations of the observed cells.
    """

    scaling: Scaling

    def scores(self, cells: np.ndarray) -> np.ndarray:
        return self.scaling.standardise(torch.from_numpy(cells.astype(float))).numpy()

    def undo(self, z: Tensor) -> Tensor:
        return self.scaling.undo(z)

    def drawn(self, z: Tensor, rng: np.random.RandomState) -> np.ndarray:
        return self.undo(z).numpy()

    def mean(self, m: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self.undo(torch.from_numpy(m)).numpy()

    def std(self, m: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return np.sqrt(variance) * self.scaling.scale.numpy()

    def limits(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Scores of bounds, (2, n_cols)."""
        return self.scores(np.stack([low, high]))


@dataclass(frozen=True, eq=False)
class CopulaMarginal:
    """The distribution of the observed cells of a column.

    Level ``i`` is an interval of normal scores between two edges. Its own score is the
    conditional mean in this interval, so the scores have mean 0, and a variance below
    1: the variance *within* the levels is what they lack. It is added where scores
    become values of point masses, which then have their observed shares in a column
    that nothing predicts.

    Parameters
    ----------
    levels : ndarray of shape (k,)
        Distinct values, in ascending order.
    edges : ndarray of shape (k + 1,)
        Edges of the intervals, from minus infinity to infinity.
    centres : ndarray of shape (k,)
        Normal score of each level.
    masses : bool ndarray of shape (k,)
        Whether a level is a point mass: all scores in its interval are this value.
        Between the others, values are interpolated.
    """

    levels: np.ndarray
    edges: np.ndarray
    centres: np.ndarray
    masses: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, weights: np.ndarray | None = None) -> CopulaMarginal:
        if not len(x):
            x, weights = np.zeros(1), None
        levels, place = np.unique(x, return_inverse=True)
        count = np.bincount(place, weights)
        share = count / count.sum()
        edges = ndtri(np.concatenate([[0], np.cumsum(share)[:-1], [1]]))
        density = np.exp(-np.square(edges) / 2) / np.sqrt(2 * np.pi)
        masses = np.ones(len(levels), bool)
        if len(levels) > MOST_LEVELS:
            often = np.sort(count)[-MOST_LEVELS]
            masses = count >= max(often, OFTEN * np.median(count))
        centres = -np.diff(density) / share
        return cls(levels.astype(float), edges, centres, masses)

    @cached_property
    def within(self) -> float:
        """Mean variance of normal scores within the point masses."""
        parts = _moments_between(self.edges, np.zeros(1), np.ones(1))
        share, squares = parts[0][0], parts[2][0]
        return float((squares - share * np.square(self.centres))[self.masses].sum())

    def scores(self, x: np.ndarray) -> np.ndarray:
        return np.interp(x, self.levels, self.centres)

    def quantiles(self, z: np.ndarray) -> np.ndarray:
        level = np.searchsorted(self.edges[1:-1], z)
        between = np.interp(z, self.centres, self.levels)
        return np.where(self.masses[level], self.levels[level], between)

    def limits(self, low: float, high: float) -> tuple[float, float]:
        """The interval of the scores of values between two bounds.

        There is none if all values are outside of the bounds.
        """
        inside = np.flatnonzero((self.levels >= low) & (self.levels <= high))
        if not len(inside):
            return -np.inf, np.inf
        first, last = inside[0], inside[-1]
        ends = self.scores(np.array([low, high]))
        if self.masses[first]:
            ends[0] = self.edges[first]
        elif first == 0:
            ends[0] = -np.inf
        if self.masses[last]:
            ends[1] = self.edges[last + 1]
        elif last == len(self.levels) - 1:
            ends[1] = np.inf
        return ends[0], ends[1]

    def moments(
        self, m: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the values of normal scores."""
        s = np.maximum(np.sqrt(variance + self.within), 1e-12)
        if self.masses.all():
            below = ndtr((self.edges - m[:, None]) / s[:, None])
            share = np.diff(below)
            mean = share @ self.levels
            second = (np.square(self.levels - mean[:, None]) * share).sum(1)
            return mean, np.sqrt(second)
        # Integrals of the interpolated values, and what differs in point masses.
        values = np.interp(m[:, None] + s[:, None] * NODES, self.centres, self.levels)
        origin = values @ WEIGHTS
        mean = np.zeros(len(m))
        second = np.square(values - origin[:, None]) @ WEIGHTS
        for k in np.flatnonzero(self.masses):
            level = self.levels[k] - origin
            for side in (-1, 1):
                ends = sorted([self.edges[k + (side > 0)], self.centres[k]])
                slope = 0.0
                if 0 <= k + side < len(self.levels):
                    slope = self.levels[k + side] - self.levels[k]
                    slope /= self.centres[k + side] - self.centres[k]
                share, first, square = _moments_between(np.array(ends), m, s)
                share, first, square = share[:, 0], first[:, 0], square[:, 0]
                # The interpolated value is level + slope (z - centre).
                a = level - slope * self.centres[k]
                mean += (level - a) * share - slope * first
                second += (np.square(level) - np.square(a)) * share
                second -= 2 * a * slope * first + slope**2 * square
        return origin + mean, np.sqrt(np.maximum(second - np.square(mean), 0))


def _moments_between(
    edges: np.ndarray, m: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Integrals of 1, z and z squared under normal densities, between edges.

    ``m`` and ``s`` have shape (n,); the results (n, n_edges - 1).
    """
    m, s = m[:, None], s[:, None]
    unit = (edges - m) / s
    density = np.exp(-np.square(unit) / 2) / np.sqrt(2 * np.pi)
    ends = np.where(np.isinf(edges), 0.0, edges + m) * density
    share, first = np.diff(ndtr(unit)), np.diff(density)
    return (
        share,
        m * share - s * first,
        (np.square(m) + np.square(s)) * share - s * np.diff(ends),
    )


@dataclass(frozen=True, eq=False)
class CopulaMarginals:
    """Marginals of columns that are monotone functions of normal variables.

    Parameters
    ----------
    columns : list of CopulaMarginal
        Distributions of the observed cells.
    """

    columns: list[CopulaMarginal] = field(repr=False)

    @classmethod
    def of(cls, cells: np.ndarray, weights: np.ndarray) -> CopulaMarginals:
        """The distributions of columns; ``weights`` are those of the rows."""
        columns = zip(cells.T, ~np.isnan(cells).T, strict=True)
        return cls([CopulaMarginal.of(x[seen], weights[seen]) for x, seen in columns])

    def _each(self, apply: Any, *arrays: np.ndarray) -> np.ndarray:
        columns = zip(self.columns, *(a.T for a in arrays), strict=True)
        return np.stack([apply(column, *x) for column, *x in columns], axis=1)

    def scores(self, cells: np.ndarray) -> np.ndarray:
        return self._each(CopulaMarginal.scores, cells)

    def drawn(self, z: Tensor, rng: np.random.RandomState) -> np.ndarray:
        """The values of drawn scores, within whose levels normal scores vary."""
        deviations = [column.within**0.5 for column in self.columns]
        noise = rng.standard_normal(z.shape) * deviations
        return self._each(CopulaMarginal.quantiles, z.numpy() + noise)

    def limits(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Scores of bounds, (2, n_cols)."""
        return self._each(lambda c, x: np.array(c.limits(*x)), np.stack([low, high]))

    def mean(self, m: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self._each(lambda c, *moments: c.moments(*moments)[0], m, variance)

    def std(self, m: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self._each(lambda c, *moments: c.moments(*moments)[1], m, variance)
