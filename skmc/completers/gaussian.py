"""Rows that are samples of a Gaussian, or of a Gaussian copula."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from skmc.base import (
    CompleterTags,
    IterativeCompleter,
    PartialFit,
    TakesBounds,
    Trials,
)
from skmc.blocks import ChunkedEM, ChunkedRows
from skmc.cells import Cells, Given, Observed
from skmc.completers._conditional import Conditional, em, learned, predict_std, sample
from skmc.completers._gaussian_more import fit_more
from skmc.completers._marginals import CopulaMarginals, NormalMarginals
from skmc.completers._rank import checked_rank
from skmc.completers.costs import Cost, Variant
from skmc.linalg import Gaussian, Randomness, resolve_device
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import Solver

MOST_COLUMNS = 300  # largest number of columns for a full covariance
RANK = 20  # rank of the factors for more columns
RIDGES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.1, 0.01, 0.001)
TRIAL_STEPS = 3  # from the solution for the previous weight
ROWS_TRIED = 1000


def _chunked_em(ridge: float, rank: None, start: Gaussian | None) -> Solver:
    return ChunkedEM(ridge, start)


class GaussianCompleter(PartialFit, TakesBounds, IterativeCompleter):
    r"""Conditional expectations of a multivariate normal distribution, fitted by EM.

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
    `skmc.solvers.em.EM` for the steps.

    Parameters
    ----------
    lambda_ridge : float >= 0 or "auto", default="auto"
        Weight :math:`\lambda`, in rows: the prior counts as this number of rows with
        uncorrelated columns. 0 is maximum likelihood, which needs many more rows than
        columns. Values to try: .1, .3, 1, 3, 10, 30, 100 (relative to one row). "auto"
        follows the path ``100, 30, 10, 3, 1, .1, .01, .001``, with three
        steps at each from the last solution, until the error on a held-out tenth of the
        observed cells rises; of more than 1000 rows it uses the first 1000.
    marginals : {"normal", "copula"}, default="normal"
        Distribution of each column. "copula" first replaces the cells of each column by
        normal scores of their ranks, and returns conditional means in the units of the
        data. It suits skewed columns and ordered levels. Columns of at most 32 distinct
        values are treated as levels.
    rank : int in [1, min(n_samples, n_features)], "auto" or None, default="auto"
        Number of factors. None is a full covariance. A number is that of the factors of
        a covariance :math:`F F^T + \Psi`, where :math:`\Psi` is diagonal, see
        `skmc.solvers.em.FactorEM`. "auto" is None up to 300 columns and 20 above.
    max_iter : int >= 1, default=200
        Maximum number of EM steps.
    {max_time}
    tol : float >= 0, default=1e-4
        Stop once a step moves mean and covariance (with factors: the completion) by at
        most ``tol`` times their norm.
    {device}
        Computed in double precision.
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells of "auto". Otherwise nothing is random.
    {bounds}
    {missing_values}
    {add_indicator}
    {keep_empty_features}
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
    reconstruction_ : ndarray of shape (n_samples, n_features)
        Conditional expectation of each cell given the *other* observed cells of its
        row, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every third iteration.
    {solve}

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
    of scikit-learn's regressors. Deviations treat the mean and the covariance as known;
    draws include their uncertainty.

    The scores of "copula" are means over the interval of a level, not intervals as in
    the paper. So correlations of columns with few levels are too small.

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

    References
    ----------
    Dempster, Laird, Rubin. Maximum likelihood from incomplete data via the EM
    algorithm. Journal of the Royal Statistical Society B 39 (1977). Neal, Hinton. A
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
    cost = Cost(0.05, systems=2.4e-9)
    stacked = (
        Variant("Gaussian"),
        Variant("copula", {"marginals": "copula"}),
    )
    predict_std = predict_std
    sample = sample
    _fit_more = fit_more
    storages: ClassVar[dict] = {Observed: em, ChunkedRows: _chunked_em}
    check_every = 3
    scaling = "columns"

    lambda_ridge: NonNegative | Literal["auto"] = "auto"
    _: KW_ONLY
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
            return replace(given, scaling=NormalMarginals(scaling))
        marginals = CopulaMarginals.of(given.matrix)
        scores = torch.from_numpy(marginals.scores(given.matrix))
        data = Observed(scores, ~torch.isnan(scores)).to(resolve_device(self.device))
        return replace(given, data=data, scaling=marginals)

    def _choose(self, data: Cells, trials: Trials) -> dict[str, Any]:
        rank = self.rank
        if rank == "auto":
            chunked = self.storages[type(data)] is _chunked_em
            full = chunked or data.shape[1] <= MOST_COLUMNS
            rank = None if full else min(RANK, *data.shape)
        elif rank is not None:
            rank = checked_rank(rank, data.shape, "None")
        ridge, start = self.lambda_ridge, None
        if ridge == "auto":
            ridge, start = self._follow_path(rank, trials)
        return {"lambda_ridge": ridge, "rank": rank, "_start": start}

    def _follow_path(self, rank: int | None, trials: Trials) -> tuple[float, Any]:
        """Find the best weight on held-out cells, and the solution there."""
        best, model, lowest = (1.0, None), None, math.inf
        with trials.interruptible():
            if trials.cells[1] is None:
                return best
            for ridge in RIDGES:
                trial = trials.run(em(ridge, rank, model), max_iter=TRIAL_STEPS)
                model, error = trial.outputs["model"], trials.error(trial)
                if error >= lowest:
                    break
                best, lowest = (ridge, model), error
        return best

    def _for_trials(self, data: Observed) -> Cells:
        return data.first_rows(ROWS_TRIED)

    def _make_solver(self, data: Cells, params: Params, rng: Randomness) -> Solver:
        make = self.storages[type(data)]
        return make(params.lambda_ridge, params.rank, getattr(params, "_start", None))

    def _attributes(self, given: Given, outputs: dict[str, Any]) -> dict[str, Any]:
        n_cols = given.data.shape[1]
        standard = Gaussian(torch.zeros(n_cols).double(), torch.eye(n_cols).double())
        model = outputs.get("model", standard).to("cpu")
        cells = None if given.read is None else given.matrix.copy()
        fitted = Conditional(
            given.statistics,
            model,
            given.scaling,
            cells,
            first_columns=self._first_of_cells(n_cols),
        )
        return learned(fitted)
