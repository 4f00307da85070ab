"""Chained equations: draws from the distribution of the missing cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, field
from numbers import Real
from typing import Annotated, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from skmc.base import CompleterTags, Outcome, Samples, TakesBounds, limit_of
from skmc.cells import Container, Given
from skmc.compatibility import Interval
from skmc.completers._chain import ChainRows
from skmc.completers._chains import Chains
from skmc.completers._tree_rows import FittedTrees
from skmc.completers._units import standardized
from skmc.completers.costs import Cost, Variant
from skmc.linalg import seed_of, threads_for_rows
from skmc.loop import FitTasks, time_limit
from skmc.new_rows import RowIndex
from skmc.parameters import Count, NonNegative, Positive, Seed

N_CHAINS = 4


class ChainedCompleter(Samples, TakesBounds):
    r"""Draw missing cells column by column, by chained equations with trees.

    Each column :math:`j` has the model

    .. math::

        x_{ij} = b_j + \sum_{k \ne j} c_{jk} x_{ik} + r_{ij},

    whose coefficients solve a ridge regression, and whose residual :math:`r_{ij}` is
    that of a donor: a random row of the leaf to which a regression tree on the
    residuals sends row :math:`i`; each of its splits is the best one in at most ten
    columns, drawn at random. A sweep trains the models of all columns, on a
    bootstrap sample of the rows, and draws the missing cells of each column given all
    other cells of the row, observed or drawn. Columns follow each other by increasing
    number of missing cells. Several chains of sweeps run from different starts until
    they agree, and the draws of later sweeps are kept. New rows follow the same sweeps
    with the models of the fit. Draws of different sweeps or chains have different
    models, so the uncertainty of the parameters is included.

    `transform` returns means, for small errors of cells. `sample` returns draws. Only
    these keep the variances, correlations and regressions of the complete data.

    Parameters
    ----------
    lambda_ridge : float >= 0, default=1.0
        Weight of the *sum* of the squared coefficients, in addition to the *sum* of the
        squared residuals of the rows; columns are scaled to variance 1. Values to try:
        .1, .3, 1, 3, 10 (relative to one row).
    n_draws : int >= 1, default=20
        Number of draws with different models; four chains have a quarter each.
    match : {"donor"} or None, default="donor"
        "donor" replaces each draw by the nearest observed value of its column: draws
        of integers are integers, and floors and ceilings are kept. None takes the sum
        of prediction and residual.
    max_iter : int >= 1, default=20
        Largest number of sweeps of a chain before draws are kept.
    {max_time}
        The sweeps until then are used, at least one.
    tol : float >= 1, default=1.1
        The chains agree once their potential scale reduction is below this: the root
        of the ratio of the variance over all chains to that within a chain, of the
        means of the columns' missing cells, over the later half of the sweeps. Both
        variances are means over the columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the fit.
    {bounds}
    {reading}

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        Mean of the models' predictions of every cell, over all draws at missing cells,
        and over the draws whose bootstrap sample lacks the row at observed cells.
    n_iter_ : int
        Number of sweeps of a chain before draws are kept.
    {input}

    Notes
    -----
    A leaf has at least five donors. A model is trained on at most 5000 rows, and its
    inputs are at most 50 columns, those most correlated with its own. With ``n`` of
    these rows and ``d`` columns, time grows with ``d min(d, 50) n log(n)`` and memory
    with ``d n``, for each sweep of each of four chains. The draws of 131 072 cells are
    in memory together.

    The draws of a row depend only on that row. `transform`, `predict_std` and
    `predict_interval` take the same uniform numbers for all rows.

    All columns are numbers here. `skmc.MixedCompleter` of this completer draws a
    missing category from those in the leaf of a tree of the category. The number of
    chains, and the tree on the residuals of a linear model, are our own choice.

    References
    ----------
    van Buuren, Groothuis-Oudshoorn. mice: Multivariate imputation by chained equations
    in R. Journal of Statistical Software 45 (2011). Burgette, Reiter. Multiple
    imputation for missing data via sequential regression trees. American Journal of
    Epidemiology 172 (2010). Gelman, Rubin. Inference from iterative simulation using
    multiple sequences. Statistical Science 7 (1992).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import ChainedCompleter
    >>> rng = np.random.RandomState(0)
    >>> x = rng.randn(200)
    >>> X = np.column_stack([x, x**2 + 0.1 * rng.randn(200)])
    >>> X[:50, 1] = np.nan
    >>> completer = ChainedCompleter(random_state=0).fit(X)
    >>> completer.transform([[1.0, np.nan], [0.0, np.nan]]).round()
    array([[1., 1.],
           [0., 0.]])
    >>> completer.sample(X, n_samples=5, random_state=0).shape
    (5, 200, 2)
    """

    completer_tags = CompleterTags(
        recovers=0.5, unweighted="its models are fitted to rows, not to cells"
    )
    advice = "draws of tables, whose variances and correlations are those of the data"
    cost = Cost(0.1, sampled_trees=2e-5)
    stacked = (Variant("chained, donors", comparing={"n_draws": 8, "max_iter": 2}),)
    lambda_ridge: NonNegative = 1.0
    _: KW_ONLY
    n_draws: Count = 20
    match: Literal["donor"] | None = "donor"
    max_iter: Count = 20
    max_time: Positive | None = None
    tol: Annotated[float, Interval(Real, 1, None, closed="left")] = 1.1
    random_state: Seed = None

    n_iter_: int = field(init=False)
    _fitted: FittedTrees = field(init=False)
    _out_of_bag = True

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        n_tasks = self.max_iter + -(-self.n_draws // N_CHAINS)
        with time_limit(self.max_time), FitTasks(self, given.read, y, n_tasks) as tasks:
            return self._fit_chains(given, tasks)

    def _fit_chains(self, given: Given, tasks: FitTasks) -> Outcome:
        cells, priors = given.matrix, given.statistics
        rng = np.random.RandomState(seed_of(self.random_state) % 2**32)
        scaling = given.data.to(torch.float64).scaling_of("columns")
        X = standardized(cells.astype(float), scaling)
        missing = np.isnan(X)
        varies = priors.varies & (scaling.scale.numpy().ravel() > 0)
        groups = self._groups(missing, varies)
        n_chains = min(N_CHAINS, self.n_draws)
        n_kept = -(-self.n_draws // n_chains)
        levels = [_levels(X[:, group], self.match) for group in groups]
        chains = Chains(X, n_chains, groups, levels, self.lambda_ridge, rng)
        interrupted = False
        try:
            chains.run(self.max_iter, self.tol, n_kept, tasks)
        except KeyboardInterrupt:
            interrupted = True
            if not chains.sweeps:
                raise
        n_kept, asked = max(1, len(chains.sweeps) - chains.n_iter), n_kept
        advice = None
        if n_kept < asked and not interrupted:
            advice = (
                f"kept {n_kept * n_chains} of {self.n_draws} draws, because "
                f"{limit_of(self.max_time)} had passed; raise max_time."
            )
        rows = ChainRows(
            chains.sweeps,
            n_kept,
            min(self.n_draws, n_kept * n_chains),
            scaling,
            {g[0]: _levels(cells[:, g], self.match) for g in groups},
            in_bag=np.stack(chains.in_bag),
            seen=np.packbits(~missing, axis=1),
            seed=rng.randint(2**31),
        )
        index = RowIndex(cells)
        whole = rows.predict(cells, np.arange(len(cells)))
        completion = priors.fill(cells, whole).astype(cells.dtype)
        fitted = FittedTrees(priors, completion, index, rows)
        found = {"n_iter_": chains.n_iter}
        return Outcome(fitted, found, advice=advice, interrupted=interrupted)

    def _groups(self, missing: np.ndarray, varies: np.ndarray) -> list[np.ndarray]:
        """Columns that are drawn together, by increasing number of missing cells."""
        used = np.flatnonzero(varies)
        first = self._first_of_cells(len(varies))[used]
        groups = [used[first == k] for k in np.unique(first)]
        return sorted(groups, key=lambda group: int(missing[:, group[0]].sum()))

    def predict_std(self, X: Container) -> np.ndarray:
        """Standard deviation of the draws of each cell.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            0 in observed cells. All columns of ``X`` are included; empty ones have NaN.
        """
        return self._of_draws(X, lambda draws: draws.std(0, ddof=1)[None])[0]

    def predict_interval(
        self, X: Container, level: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals between quantiles of the draws of each cell.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.
        level : float in (0, 1), default=0.9
            Probability that the interval contains a missing cell. The ends are
            quantiles of ``5 n_draws`` draws, and within their range.

        Returns
        -------
        low : ndarray of shape (n_samples, n_features)
        high : ndarray of shape (n_samples, n_features)
            The interval of an observed cell is its value.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie in (0, 1), got {level}.")
        ends = [(1 - level) / 2, (1 + level) / 2]
        found = self._of_draws(
            X, lambda draws: np.quantile(draws, ends, axis=0, method="weibull")
        )
        if self._like is None:
            return found[0], found[1]
        cells = self._read(X, reset=False)
        low, high = (
            np.where(np.isnan(cells), self._like.apply(end), cells) for end in found
        )
        return low, high

    def _of_draws(
        self, X: Container, answer: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        check_is_fitted(self)
        cells = self._read(X, reset=False)
        with threads_for_rows(cells):
            found = self._fitted.row_map.spread(cells, answer)
        found[..., self._priors.empty_cols] = np.nan
        return found.astype(cells.dtype, copy=False)


def _levels(cells: np.ndarray, match: str | None) -> np.ndarray | None:
    """The distinct observed values of a column, which draws have; None for others."""
    if match is None or cells.shape[1] > 1:
        return None
    return np.unique(cells[~np.isnan(cells)]).astype(float)
