"""Rows that are draws from a Gaussian, or from a Gaussian copula."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import (
    CompleterTags,
    IterativeCompleter,
    LearnsMore,
    MoreCells,
    Prepared,
    Priors,
    ReadsChunks,
    Trials,
    resolve_device,
    rows_in_memory,
)
from skmc.blocks import ChunkedEM, ChunkedRows
from skmc.cells import Observed
from skmc.completers._marginals import CopulaMarginals, NormalMarginals
from skmc.completers._rank import checked_rank
from skmc.completers.costs import Cost, Variant
from skmc.linalg import (
    ExpectedSums,
    FactorGaussian,
    Gaussian,
    Randomness,
    threads_for,
    work_of,
)
from skmc.loop import solve
from skmc.solvers import EM, FactorEM, Solver

MOST_COLUMNS = 300  # of a full covariance
RANK = 20  # of the factors above
RIDGES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.1, 0.01, 0.001)
TRIAL_STEPS = 3  # from the solution of the weight before
ROWS_TRIED = 1000
STEPS_MORE = 3  # of EM over all rows, in `partial_fit`


class GaussianCompleter(LearnsMore, ReadsChunks, IterativeCompleter):
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
        :math:`\lambda`, in rows: the prior counts as so many rows in which the columns
        are uncorrelated. 0 is maximum likelihood, which needs many more rows than
        columns. Values to try: .1, .3, 1, 3, 10, 30, 100 (relative to one row). "auto"
        goes down a path 100, 30, 10, 3, 1, .1, .01, .001, three
        steps at each from the answer before, with a tenth of the observed cells held
        out, until their error rises; of more than 1000 rows it uses the first 1000.
    marginals : {"normal", "copula"}, default="normal"
        "copula" replaces the cells of each column by normal scores of their ranks
        first, and returns conditional means in the units of the data: for columns that
        are skewed, or of ordered levels. Columns of at most 32 distinct values are
        taken for levels.
    rank : int in [1, min(n_samples, n_features)], "auto" or None, default="auto"
        None is a full covariance. A number is that of the factors of a covariance
        :math:`F F^T + \Psi`, with :math:`\Psi` diagonal: see
        `skmc.solvers.em.FactorEM`. "auto" is None up to 300 columns, 20 above.
    max_iter : int >= 1, default=200
        EM steps.
    {max_time}
    tol : float >= 0, default=1e-4
        Stop once a step moves mean and covariance (with factors: the completion) by at
        most ``tol`` times their norm.
    {device}
        Computed in double precision.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out cells of "auto"; else there is nothing random.
    {missing_values}
    {add_indicator}
    {keep_empty_features}
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns for them what the
        other cells of their row say, as in ``reconstruction_``.

    Attributes
    ----------
    lambda_ridge_ : float
    rank_ : int or None
    location_ : ndarray of shape (n_features,)
        The mean. With "copula", of the scores.
    covariance_ : ndarray of shape (n_features, n_features)
        The covariance. With "copula", of the scores.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The conditional expectation of each cell given the *other* observed cells of its
        row, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every third iteration.
    {solve}

    Notes
    -----
    All rows are completed by the same formula, so `transform` does not iterate, and a
    row's answer does not depend on the others in the call.

    Memory grows with ``n_samples * n_features`` and ``n_features ** 2``; the systems of
    rows are solved in blocks of bounded size, but distinct patterns of missing cells
    keep the positions of their missing or observed columns, whichever are fewer. Time
    of a step grows with the number of distinct patterns times the cube of that number
    of columns; with factors, with ``n_samples * (n_features + rank) * rank ** 2``.

    Deviations are not a second return value of `transform`, as pipelines pass on a
    single array: `predict_std` is a method of its own, named after the ``return_std``
    of scikit-learn's regressors. Deviations and draws take the mean and the covariance
    as known. `skmc.uncertainty.MultipleCompletion` of this completer adds what they
    are uncertain by.

    The scores of "copula" are means over the interval of a level, not intervals as in
    the paper, so that correlations of columns of few levels come out too small.

    `fit` also takes Dask Arrays and DataFrames, whose chunks are rows. Each step is one
    pass over the chunks, whose expected sums are added, so the chunks are computed as
    often as there are steps: persist them if they fit in the memory of the cluster.
    "auto" uses the first 1000 rows. ``marginals`` must be "normal", and the covariance
    is full. There is no ``reconstruction_``; `transform` the collection instead.

    `partial_fit` with new rows is a step of incremental EM: the expected sums of
    :math:`1`, :math:`x` and :math:`x x^T` over the new rows are added to those of all
    rows so far, and mean and covariance follow from the totals. Of earlier rows, only
    the scaling of the columns is computed again. For rows without missing cells these
    sums are sufficient, so the result is that of a fit to all rows; with missing cells,
    the expectations of earlier rows are those of the model at the time. Columns are
    still scaled to variance 1 over all cells, where :math:`\lambda` is concerned. New
    cells of earlier rows, new columns, "copula" and factors need all rows: these calls
    are three EM steps over all rows from the present model, which approach a fit to all
    cells.

    References
    ----------
    Dempster, Laird, Rubin. Maximum likelihood from incomplete data via the EM
    algorithm. Journal of the Royal Statistical Society B 39 (1977). Neal, Hinton. A
    view of the EM algorithm that justifies incremental, sparse, and other variants.
    Learning in Graphical Models (1998). Schafer. Analysis
    of incomplete multivariate data. Chapman and Hall (1997). Little, Rubin. Statistical
    analysis with missing data. Wiley (2002), chapters 8 and 11. Zhao, Udell. Missing
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
    advice = "tables, in a second; how sure each cell is"
    cost = Cost(0.05, systems=2.4e-9)
    stacked = (
        Variant("Gaussian"),
        Variant("copula", {"marginals": "copula"}),
    )
    check_every = 3
    scaling = "columns"
    _parameter_constraints: ClassVar[dict] = {
        "lambda_ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "marginals": [StrOptions({"normal", "copula"})],
        "rank": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
    }

    def __init__(
        self,
        lambda_ridge: float | Literal["auto"] = "auto",
        *,
        marginals: Literal["copula", "normal"] = "normal",
        rank: int | Literal["auto"] | None = "auto",
        max_iter: int = 200,
        max_time: float | None = None,
        tol: float = 1e-4,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        keep_observed: bool = True,
    ) -> None:
        self.lambda_ridge = lambda_ridge
        self.marginals = marginals
        self.rank = rank
        self.max_iter = max_iter
        self.max_time = max_time
        self.tol = tol
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _prepare(self, cells: Any, priors: Priors) -> Prepared:
        if isinstance(cells, ChunkedRows) and (
            self.marginals != "normal" or self.rank not in ("auto", None)
        ):
            raise ValueError(
                "Rows of a Dask collection are fitted with marginals='normal' and "
                "rank=None; pass an array for the others."
            )
        if self.marginals == "normal":
            prepared = super()._prepare(cells, priors)
            scaling = prepared.scaling.to("cpu", torch.float64)
            marginals: Any = NormalMarginals(scaling)
            return Prepared(cells, priors, prepared.data, marginals)
        marginals = CopulaMarginals.of(cells)
        scores = torch.from_numpy(marginals.scores(cells))
        data = Observed(scores, ~torch.isnan(scores)).to(resolve_device(self.device))
        return Prepared(cells, priors, data, marginals)

    def _choose(self, data: Observed, trials: Trials) -> dict[str, Any]:
        rank = self.rank
        if rank == "auto":
            full = data.shape[1] <= MOST_COLUMNS or isinstance(data, ChunkedRows)
            rank = None if full else min(RANK, *data.shape)
        elif rank is not None:
            rank = checked_rank(rank, data.shape, "None")
        ridge, start = self.lambda_ridge, None
        if ridge == "auto":
            ridge, start = self._follow_path(rank, trials)
        return {"lambda_ridge": ridge, "rank": rank, "_start": start}

    def _follow_path(self, rank: int | None, trials: Trials) -> tuple[float, Any]:
        """The weight that completes held-out cells best, and the answer there."""
        best, model, lowest = (1.0, None), None, math.inf
        with trials.interruptible():
            if trials.cells[1] is None:
                return best
            for ridge in RIDGES:
                trial = trials.run(_solver(ridge, rank, model), max_iter=TRIAL_STEPS)
                model, error = trial.outputs["model"], trials.error(trial)
                if error >= lowest:
                    break
                best, lowest = (ridge, model), error
        return best

    def _split(self, data: Any, seed: int) -> tuple[Any, Any]:
        rows = slice(ROWS_TRIED)
        if not isinstance(data, ChunkedRows) and data.mask[rows].any():
            data = Observed(data.values[rows], data.mask[rows])
        return super()._split(data, seed)

    def _make_solver(self, data: Observed, params: Any, rng: Randomness) -> Solver:
        start = getattr(params, "_start", None)
        if isinstance(data, ChunkedRows):
            return ChunkedEM(params.lambda_ridge, start)
        return _solver(params.lambda_ridge, params.rank, start)

    def _fitted(self, prepared: Prepared, outputs: dict[str, Any]) -> dict[str, Any]:
        n_cols = prepared.data.shape[1]
        standard = Gaussian(torch.zeros(n_cols).double(), torch.eye(n_cols).double())
        model = outputs.get("model", standard).to("cpu")
        learned = self._learned(model, prepared.scaling)
        if isinstance(prepared.cells, ChunkedRows):
            return learned
        return {"_cells": prepared.cells.copy(), **learned}

    def _learned(self, model: Any, marginals: Any) -> dict[str, Any]:
        location, covariance = model.mean, model.covariance
        if isinstance(marginals, NormalMarginals):
            scale = marginals.scaling.scale[0]
            location = marginals.undo(location)[0]
            covariance = covariance * torch.outer(scale, scale)
        return {
            "location_": location.numpy(),
            "covariance_": covariance.numpy(),
            "_marginals": marginals,
            "_model": model,
        }

    def _fit_more(self, more: MoreCells) -> tuple[Priors, dict[str, Any]]:
        cells = more.into(rows_in_memory(self))
        rows, cols = np.nonzero(~np.isnan(cells))
        priors = Priors.of(rows, cols, cells[rows, cols], cells.shape)
        prepared = self._prepare(cells, priors)
        old, marginals = len(self._cells), self._marginals
        with threads_for(work_of(cells.size, cells.shape[1])):
            if self._adds_up(more, prepared):
                model = self._model
                sums = getattr(self, "_sums", None)
                total = ExpectedSums(*sums) if sums else self._sums_of(cells[:old])
                total = total.plus(self._sums_of(cells[old:]))
                # The scaling of the first rows stays; the prior follows that of all.
                scaling: Any = prepared.scaling
                scales = scaling.scaling.scale / marginals.scaling.scale
                model = total.gaussian(self.lambda_ridge_, scales[0].square())
                sums = tuple(vars(total).values())
                learned = self._learned(model, marginals)
                return priors, {"_cells": cells, "_sums": sums, **learned}
            start = self._rescaled(prepared.scaling, cells.shape[1])
            solution = solve(
                _solver(self.lambda_ridge_, self.rank_, start),
                prepared.data,
                max_iter=STEPS_MORE,
                check_every=STEPS_MORE,
            )
        return priors, {"_sums": None, **self._fitted(prepared, solution.outputs)}

    def _adds_up(self, more: MoreCells, prepared: Prepared) -> bool:
        """Whether new rows can be added to the sums over those so far."""
        if self.marginals == "copula" or self.rank_ is not None:
            return False
        now: Any = prepared.scaling
        scales = self._marginals.scaling.scale, now.scaling.scale
        same = more.shape[1] == self._shape[1]
        later = len(more.rows) > 0 and more.rows.min() >= self._shape[0]
        return bool(same and later and all((scale > 0).all() for scale in scales))

    def _sums_of(self, cells: np.ndarray) -> ExpectedSums:
        scores = torch.from_numpy(self._marginals.scores(cells))
        return ExpectedSums.of(self._model, scores, ~torch.isnan(scores))

    def _rescaled(self, marginals: Any, n_cols: int) -> Any:
        """The present model for other marginals, and for more columns."""
        model, old = self._model, len(self._model.mean)
        mean = torch.zeros(n_cols, dtype=torch.float64)
        factor = torch.ones(old, dtype=torch.float64)
        mean[:old] = model.mean
        if isinstance(marginals, NormalMarginals):
            a, b = self._marginals.scaling, marginals.scaling
            shift, scale = b.shift[0, :old], b.scale[0, :old]
            varies = (a.scale[0] > 0) & (scale > 0)
            factor = torch.where(varies, a.scale[0] / scale, factor)
            moved = torch.where(varies, (a.shift[0] - shift) / scale, 0.0)
            mean[:old] = model.mean * factor + moved
        if isinstance(model, FactorGaussian):
            loadings = mean.new_zeros(n_cols, model.loadings.shape[1])
            loadings[:old] = model.loadings * factor[:, None]
            noise = torch.ones_like(mean)
            noise[:old] = model.noise * factor.square()
            return FactorGaussian(mean, loadings, noise)
        covariance = torch.eye(n_cols, dtype=torch.float64)
        covariance[:old, :old] = model.covariance * torch.outer(factor, factor)
        return Gaussian(mean, covariance)

    @property
    def reconstruction_(self) -> np.ndarray:
        """The model's value of every cell, computed at each access."""
        check_is_fitted(self)
        return self._expected(rows_in_memory(self))

    def _values_at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        which, at = np.unique(rows, return_inverse=True)
        values: np.ndarray = self._expected(rows_in_memory(self)[which])[at, cols]
        return values

    def _expected(self, cells: np.ndarray) -> np.ndarray:
        completed = self._marginals.mean(*self._given_others(cells))
        return self._priors.fill(cells, completed).astype(cells.dtype)

    def _scores(self, cells: np.ndarray) -> tuple[Tensor, Tensor]:
        scores = torch.from_numpy(self._marginals.scores(cells))
        # Nothing was learned of how a constant column goes with the others.
        return scores, ~torch.isnan(scores) & torch.from_numpy(self._priors.varies)

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        if self.keep_observed and isinstance(self._marginals, NormalMarginals):
            # Missing cells alone, whose means need no variances.
            return self._marginals.undo(self._model(*self._scores(cells))).numpy()
        return self._marginals.mean(*self._given_others(cells))

    def _given_others(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _numpy(self._model.given_others(*self._scores(cells)))

    def predict_std(self, X: Any) -> np.ndarray:
        """Standard deviation of the cells that `transform` returns.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, whether `fit` has seen them or not.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Conditional on the observed cells of the row; 0 for these cells themselves
            (with ``keep_observed=False``: conditional on the others). All columns of
            ``X`` are there; empty ones have NaN.
        """
        check_is_fitted(self)
        cells = self._read(X, reset=False)
        std = self._marginals.std(*self._given_others(cells))
        if self.keep_observed:
            std[~np.isnan(cells)] = 0.0
        std[:, self._priors.empty_cols] = np.nan
        return std.astype(cells.dtype, copy=False)

    def sample(
        self, X: Any, n_samples: int = 1, random_state: Any = None
    ) -> np.ndarray:
        """Draw the missing cells from their joint distribution given the observed ones.

        For multiple imputation, with `skmc.uncertainty.pool`: the noise of single cells
        is included, what the mean and the covariance are uncertain by is not.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, whether `fit` has seen them or not.
        n_samples : int >= 1, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Draws the cells.

        Returns
        -------
        ndarray of shape (n_samples, n_rows, n_features)
            Observed cells unchanged.
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        cells = self._read(X, reset=False)
        scores, seen = self._scores(cells)
        found = np.empty((n_samples, *cells.shape), cells.dtype)
        for k in range(n_samples):
            # A draw z, corrected by what the observed cells say of their difference.
            z = self._model.draw(torch.from_numpy(rng.standard_normal(cells.shape)))
            off = self._model(scores - z + self._model.mean, seen) - self._model.mean
            drawn = self._marginals.undo(z + off).numpy()
            drawn = self._priors.fill(cells, drawn)
            found[k] = np.where(np.isnan(cells), drawn, cells)
        return found


def _solver(ridge: float, rank: int | None, start: Any) -> Solver:
    return EM(ridge, start) if rank is None else FactorEM(ridge, rank, start)


def _numpy(pair: tuple[Tensor, Tensor]) -> tuple[np.ndarray, np.ndarray]:
    return pair[0].numpy(), pair[1].numpy()
