"""Chained equations: draws from the distribution of the missing cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from skmc.base import (
    NO_POSITION,
    CompleterTags,
    Contribution,
    Explains,
    Outcome,
    Samples,
    TakesBounds,
    TakesRowWeights,
    by_weight,
    limit_of,
    read_rows,
    row_names,
)
from skmc.cells import Container, Given, Scaling
from skmc.cells.copies import copies
from skmc.compatibility import Interval
from skmc.completers._trees import (
    FittedTrees,
    Trees,
    leaves_of,
    most_correlated,
    on_grid,
    shares_on_grid,
    single,
    small,
)
from skmc.completers._units import standardized, undone
from skmc.linalg import seed_of, threads_for_rows
from skmc.loop import FitTasks, seconds_left, time_limit
from skmc.metrics import check_level, scale_reduction
from skmc.new_rows import RowIndex
from skmc.parameters import Count, NonNegative, Positive, Seed

# The strength of the linear part of each chain, as multiples of `lambda_ridge`. Chains
# that agree on it vary too little: whether a relation is linear is uncertain, too. The
# last chain has hardly a linear part. Without any, the splits of a column of integers
# would often be equally good, and rounding would decide between them.
RIDGES = (1.0, 1.0, 100.0, 1e8)
N_PARTS = 10  # of the rows, of which each draw leaves out one
LEAST_SWEEPS = 4  # before models are kept
MAX_SAMPLES = 5000  # rows that the model of a column is trained on
COLS_PER_SPLIT = 10  # drawn at random, among which the best one splits a node
# Smallest numbers of donors in a leaf, or half of fewer: the first one is the default.
LEAVES = (5, 10, 20, 2, 1)
HALVES = 2  # of the rows, which the first sweeps leave out to choose the leaves
DIGITS = 9  # of errors that are compared
CELLS_AT_ONCE = 2**17  # whose draws are in memory together
REPEATS = 5  # of the sweeps, for deviations and intervals
LEAST_SHARE = 0.1  # of the variance of the noise, in a residual of the training
RARE = 1e-9  # weight of draws that were trained on a cell, if there are others

Uniforms = Callable[[int], np.ndarray]  # (n_draws, n_rows) or (n_draws, 1), in [0, 1)


class ChainedCompleter(Explains, Samples, TakesBounds, TakesRowWeights):
    r"""Draw missing cells column by column, by chained equations with trees.

    For draws of tables, whose variances and correlations are those of the data, and for
    nonlinear tables; not for hundreds of columns, and not for the lowest error of
    single cells.

    Each column :math:`j` has the model

    .. math::

        x_{ij} = b_j + \sum_{k \ne j} c_{jk} x_{ik} + r_{ij},

    whose coefficients solve a ridge regression. A regression tree groups rows with
    similar residuals, and the residual :math:`r_{ij}` is drawn: it is that of a random
    row, the donor, in the leaf of row :math:`i`. Each split of the tree is the best one
    in at most ten columns, drawn at random. A sweep trains the models of all columns,
    on the rows without one of ten parts, and draws the missing cells of each column
    given all other cells of the row, observed or drawn. Each model weights its rows at
    random, by the Bayesian bootstrap, so that models differ as much as estimates from
    other rows would. Columns follow each other by increasing number of missing cells.
    Four chains of sweeps run from different starts until they agree, and the draws of
    later sweeps are kept. They differ in the weight of the coefficients: two have
    ``lambda_ridge``, one has 100 times as much, and one so much that only the tree is
    left. New rows follow the same sweeps with the models of the fit. Draws of different
    sweeps or chains have different models, so the uncertainty of the model is included.

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
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
        The sweeps until then are used, at least one.
    tol : float >= 1, default=1.1
        The chains agree once their potential scale reduction is below this: the root
        of the ratio of the variance over all chains to that within a chain, of the
        means of the columns' missing cells, over the later half of the sweeps. Both
        variances are means over the columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the fit.
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
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        Mean of the models' predictions of every cell, over all draws at missing cells,
        and over the draws that were trained without the row at observed cells.
    n_iter_ : int
        Number of sweeps of a chain before draws are kept.
    history_ : dict of ndarray
        "n_iter", the sweeps, with those whose draws are kept; "mean" and "deviation",
        of shape (n_sweeps, n_chains, n_features), of the missing cells that a sweep
        draws in each column, NaN for columns without any; and "reduction", the
        potential scale reduction after each sweep, NaN for the first two.
        `skmc.plot.ConvergenceDisplay` draws them.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    See Also
    --------
    TreesCompleter : Predicts each column once, for the smallest error of single cells.
    GaussianCompleter : Faster draws, from a normal distribution or a copula.
    skmc.uncertainty.pool : Combines estimates of several draws.

    Notes
    -----
    Residuals of the training rows are smaller than the noise, as the coefficients fit
    them; they are divided by the ratio of the deviations, which leverages give.
    The leaves of a column have at least 1, 2, 5, 10 or 20 donors. In the first two
    sweeps they have one, and each leaves out half of the rows. There, the error of the
    mean over all draws is estimated as if the leaves were the smallest nodes with so
    many donors. The size with the smallest error follows.

    A model is trained on at most 5000 rows, and its inputs are at most 50 columns,
    those most correlated with its own. With ``n`` of these rows and ``d`` columns, time
    grows with ``d min(d, 50) n log(n)`` and memory with ``d n``, for each sweep of each
    of four chains. The draws of 131 072 cells are in memory together.

    The draws of a row depend only on that row. `transform`, `predict_std` and
    `predict_interval` take the same uniform numbers for all rows.

    `explain` lists the donors, whose weights are the means over the draws of the shares
    of a row in a leaf. The base is the mean :math:`m` of the observed cells of the
    column, and a donor with the value :math:`x_k` and the weight :math:`w_k`
    contributes :math:`w_k (x_k - m)`. The linear part is the mean over the draws of the
    difference between the linear predictions of the row and of its donors.

    All columns are numbers here. `skmc.MixedCompleter` of this completer draws a
    missing category from those in the leaf of a tree of the category. The number of
    chains, and the tree on the residuals of a linear model, are those of this package.

    References
    ----------
    van Buuren, Groothuis-Oudshoorn. mice: Multivariate imputation by chained equations
    in R. Journal of Statistical Software 45 (2011). Burgette, Reiter. Multiple
    imputation for missing data via sequential regression trees. American Journal of
    Epidemiology 172 (2010). Rubin. The Bayesian bootstrap. Annals of Statistics 9
    (1981). Gelman, Rubin. Inference from iterative simulation using
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
    lambda_ridge: NonNegative = 1.0
    _: KW_ONLY
    n_draws: Count = 20
    match: Literal["donor"] | None = "donor"
    max_iter: Count = 20
    max_time: Positive | None = None
    tol: Annotated[float, Interval(Real, 1, None, closed="left")] = 1.1
    random_state: Seed = None

    n_iter_: int = field(init=False)
    history_: dict[str, np.ndarray] = field(init=False)
    _fitted: FittedTrees = field(init=False)
    _out_of_bag = True
    _kind = "rows"

    def _given(self, X: Container, known: Mapping[str, Any]) -> Given:
        return replace(super()._given(X, known), row_names=row_names(X))

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        n_tasks = self.max_iter + -(-self.n_draws // len(RIDGES))
        with time_limit(self.max_time), FitTasks(self, given.read, y, n_tasks) as tasks:
            return self._fit_chains(given, tasks)

    def _fit_chains(self, given: Given, tasks: FitTasks) -> Outcome:
        cells, priors = given.matrix, given.statistics
        rng = np.random.RandomState(seed_of(self.random_state) % 2**32)
        scaling = given.data.to(torch.float64).scaling_of("columns")
        weights = given.weights_of_rows
        used = np.flatnonzero((weights > 0) & ~np.isnan(cells).all(1))
        X = standardized(cells[used].astype(float), scaling)
        missing = np.isnan(X)
        varies = priors.varies & (scaling.scale.numpy().ravel() > 0)
        groups = _groups(missing, varies, given.first_columns)
        n_chains = min(len(RIDGES), self.n_draws)
        n_kept = -(-self.n_draws // n_chains)
        levels = [_levels(X[:, group], self.match) for group in groups]
        ridges = [self.lambda_ridge * times for times in RIDGES[:n_chains]]
        parts = max(2, min(N_PARTS, self.n_draws))
        chains = _Chains(
            X, weights[used], ridges, groups, levels, parts, self.n_draws, rng
        )
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
        in_bag = np.zeros((len(chains.sweeps), n_chains, len(cells)), bool)
        in_bag[..., used] = chains.in_bag
        rows = _ChainRows(
            chains.sweeps,
            n_kept,
            min(self.n_draws, n_kept * n_chains),
            scaling,
            {g[0]: _levels(cells[used][:, g], self.match) for g in groups},
            in_bag=np.packbits(in_bag, axis=2),
            seen=np.packbits(~np.isnan(cells), axis=1),
            used=used,
            seed=rng.randint(2**31),
        )
        index = RowIndex(cells)
        values = rows.predict(cells, np.arange(len(cells)), everywhere=False)
        completion = priors.fill(cells, values).astype(cells.dtype)
        fitted = FittedTrees(priors, completion, index, rows)
        found = {
            "n_iter_": chains.n_iter,
            "history_": chains.history(scaling),
            "_row_names": given.row_names,
        }
        return Outcome(fitted, found, advice=advice, interrupted=interrupted)

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
        check_level(level)
        ends = [(1 - level) / 2, (1 + level) / 2]
        found = self._of_draws(
            X, lambda draws: np.quantile(draws, ends, axis=0, method="weibull")
        )
        if self._like is None:
            return found[0], found[1]
        cells = read_rows(self, X)
        low, high = (
            np.where(np.isnan(cells), self._like.apply(end), cells) for end in found
        )
        return low, high

    def _contributions(
        self, cells: np.ndarray, i: int, j: int
    ) -> tuple[float, list[Contribution]]:
        mean = float(self._priors.col_means[j])
        if not self._priors.varies[j]:
            return float(self._priors.constant[j]), []
        value, weights = self._fitted.row_map.donors(cells[[i]], j)
        donors = np.flatnonzero(weights)
        own, weights = (
            self._fitted.index.cells[donors, j].astype(float),
            weights[donors],
        )
        parts = donors, weights * (own - mean), own, weights
        found = [
            Contribution(k, k, *numbers)
            for k, *numbers in zip(*(part.tolist() for part in parts), strict=True)
        ]
        rest = value - float(weights @ own)
        linear = Contribution("linear part", NO_POSITION, rest)
        return mean, [*by_weight(found), linear]

    def _of_draws(
        self, X: Container, answer: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        check_is_fitted(self)
        cells = read_rows(self, X)
        with threads_for_rows(cells):
            found = self._fitted.row_map.spread(cells, answer)
        found[..., self._priors.empty_cols] = np.nan
        return found.astype(cells.dtype, copy=False)


def _groups(
    missing: np.ndarray, varies: np.ndarray, first_columns: np.ndarray
) -> list[np.ndarray]:
    """Columns that are drawn together, by increasing number of missing cells."""
    used = np.flatnonzero(varies)
    first = first_columns[used]
    groups = [used[first == k] for k in np.unique(first)]
    return sorted(groups, key=lambda group: int(missing[:, group[0]].sum()))


class _Chains:
    """Chains of sweeps from different starts.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_cols)
        Standardized cells, NaN where missing.
    weights : ndarray of shape (n_rows,)
        Weights of the rows, > 0.
    ridges : list of float
        Weight of the squared coefficients in each chain.
    groups : list of ndarray
        Columns that are drawn together, in the order of a sweep.
    levels : list of ndarray or None
        Values to which the draws of each group are restricted.
    n_parts : int
        Number of parts of the rows, which the draws leave out in turn. Copies of a row
        are in one part.
    n_draws : int
        Number of draws whose means are the completion.
    rng : RandomState
        Source of parts, trees and draws.
    """

    def __init__(
        self,
        X: np.ndarray,
        weights: np.ndarray,
        ridges: list[float],
        groups: list[np.ndarray],
        levels: list[np.ndarray | None],
        n_parts: int,
        n_draws: int,
        rng: np.random.RandomState,
    ) -> None:
        self.X, self.missing, self.groups = X, np.isnan(X), groups
        self.weights = weights
        self.levels, self.ridges, self.rng = levels, ridges, rng
        self.n_parts, self.part = n_parts, rng.permutation(len(X))[copies(X)] % n_parts
        self.sweeps: list[list[_ChainModel]] = []
        self.in_bag: list[np.ndarray] = []
        # Moments of the missing cells after each sweep, (n_chains, n_cols).
        self.means: list[np.ndarray] = []
        self.deviations: list[np.ndarray] = []
        self.reductions: list[float] = []
        self.times = weights[:, None] * self.missing
        self.n_draws = n_draws
        self.losses = np.zeros((len(groups), len(LEAVES)))
        self.n_iter = 0  # number of sweeps before models are kept
        used = np.sort(np.concatenate([*groups, np.empty(0, int)]))
        others = [np.setdiff1d(used, group) for group in groups]
        self.inputs = most_correlated(X, groups, others, weights)
        self.whole = np.repeat(np.nan_to_num(X)[None], len(ridges), 0)
        for group in groups:
            seen = np.flatnonzero(~self.missing[:, group[0]])
            rows = np.flatnonzero(self.missing[:, group[0]])
            share = weights[seen] / weights[seen].sum()
            donors = rng.choice(seen, (len(ridges), len(rows)), p=share)
            self.whole[:, rows[:, None], group] = X[donors[..., None], group]

    def run(self, max_iter: int, tol: float, n_kept: int, tasks: FitTasks) -> None:
        """Sweep until the chains agree, and ``n_kept`` times more.

        By Gelman and Rubin: the variance over all chains of the means of columns'
        missing cells is compared with that within the chains, over the later half of
        the sweeps.
        """
        agreed = late = False
        while not (agreed or late) and self.n_iter < max_iter:
            self._sweep(tasks, judged=self.n_iter < HALVES)
            self.n_iter += 1
            agreed = self.n_iter >= LEAST_SWEEPS and self.reductions[-1] < tol
            late = seconds_left() <= 0
        while not late and len(self.sweeps) < self.n_iter + n_kept:
            self._sweep(tasks)
            late = seconds_left() <= 0

    def _sweep(self, tasks: FitTasks, judged: bool = False) -> None:
        """Train the models of columns, and draw the missing cells from each.

        ``judged`` leaves out half of the rows, and judges the sizes of leaves there.
        """
        n_chains, n_before = len(self.ridges), len(self.sweeps)
        left_out = (n_before * n_chains + np.arange(n_chains)) % self.n_parts
        in_bag = self.part != left_out[:, None]
        if judged:
            in_bag[:] = self.part % HALVES != n_before
        columns = []
        chosen = [LEAVES[k] for k in np.argmin(self.losses.round(DIGITS), 1)]
        for number, (group, inputs, levels) in enumerate(
            zip(self.groups, self.inputs, self.levels, strict=True)
        ):
            column, fits = _ChainModel.trained(
                self.X,
                self.weights,
                self.whole,
                in_bag,
                group,
                inputs,
                self.ridges,
                levels,
                1 if judged else chosen[number],
                self.rng,
            )
            if judged:
                self.losses[number] += self._loss(column, fits, ~in_bag[0])
            _draw(column, self.whole, self.missing, self._uniform)
            columns.append(column)
        self.sweeps.append(columns)
        self.in_bag.append(in_bag)
        self._record()
        tasks.done("sweep")

    def _loss(
        self, column: _ChainModel, fits: Sequence[_Fit], left_out: np.ndarray
    ) -> np.ndarray:
        """Squared errors of the mean over all draws, summed, for each size of leaves.

        The variance of the models counts once for each draw. The rows ``left_out``
        are not those of the training.
        """
        into = column.predicted
        rows = np.flatnonzero(left_out & ~self.missing[:, into[0]])
        guesses = np.stack(
            [
                fit.means(cells[np.ix_(rows, column.inputs)])
                for cells, fit in zip(self.whole, fits, strict=True)
            ]
        )
        mean, more = guesses.mean(0), 1 / self.n_draws - 1 / len(fits)
        squares = np.square(mean - self.X[np.ix_(rows, into)]).sum(-1)
        spread = guesses.var(0, ddof=min(1, len(fits) - 1)).sum(-1)
        found: np.ndarray = (squares + more * spread) @ self.weights[rows]
        return found

    def _record(self) -> None:
        total = self.times.sum(0)
        total[total == 0] = 1
        mean = (self.times * self.whole).sum(1) / total
        away = np.square(self.whole - mean[:, None])
        self.means.append(mean)
        self.deviations.append(np.sqrt((self.times * away).sum(1) / total))
        self.reductions.append(scale_reduction(self.means))

    def history(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """The moments after all sweeps, in units of the columns."""
        drawn = np.where(self.times.any(0), 1.0, np.nan)
        scale = scaling.scale.numpy().ravel()
        return {
            "n_iter": np.arange(1, len(self.sweeps) + 1),
            "mean": drawn * undone(np.stack(self.means), scaling),
            "deviation": drawn * scale * np.stack(self.deviations),
            "reduction": np.array(self.reductions),
        }

    def _uniform(self, n_rows: int) -> np.ndarray:
        return self.rng.rand(len(self.whole), n_rows)


@dataclass(eq=False)
class _ChainRows:
    """A map of rows to their completion, which repeats the sweeps of the fit.

    Parameters
    ----------
    sweeps : list of list of _ChainModel
        Models of the columns in each sweep, with a draw for each chain.
    n_kept : int
        Number of sweeps at the end whose draws are used.
    n_draws : int
        Number of these draws.
    scaling : Scaling
        Scaling of the fit.
    values : dict of int to ndarray or None
        Distinct observed values of columns, if draws are such values.
    in_bag : ndarray of shape (n_sweeps, n_chains, n_rows / 8)
        Rows of the fit on which each draw was trained, one bit for each row.
    seen : ndarray of shape (n_rows, n_cols / 8)
        Observed cells of the fit, one bit for each cell.
    used : int ndarray
        Rows of the fit on which the models were trained.
    seed : int
        Seed of the uniform numbers that all rows share.
    """

    sweeps: list[list[_ChainModel]]
    n_kept: int
    n_draws: int
    scaling: Scaling
    values: dict[int, np.ndarray | None]
    in_bag: np.ndarray
    seen: np.ndarray
    used: np.ndarray
    seed: int

    def __call__(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        return self.predict(cells, np.full(len(cells), -1), everywhere)

    def predict(
        self, cells: np.ndarray, own: np.ndarray, everywhere: bool
    ) -> np.ndarray:
        """Expected missing cells of rows, or all cells.

        ``own`` are the positions of the rows in the fitted matrix. An observed cell of
        the fit is predicted by the draws that were not trained on its row.
        """
        found = np.empty(cells.shape)
        for part in _parts(cells):
            found[part] = self._expected(cells[part], own[part], everywhere)
        return undone(found, self.scaling)

    def spread(
        self, cells: np.ndarray, answer: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Statistics of the draws of each cell, (n_statistics, n_rows, n_cols)."""
        parts = []
        for part in _parts(cells):
            rng = np.random.RandomState(self.seed)
            draws = [self._draws(cells[part], rng, shared=True) for _ in range(REPEATS)]
            parts.append(answer(np.concatenate(draws)))
        return np.concatenate(parts, 1)

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw completed rows, (n_samples, n_rows, n_cols)."""
        found = np.empty((n_samples, *cells.shape), cells.dtype)
        for first in range(0, n_samples, self.n_draws):
            into = found[first : first + self.n_draws]
            chosen = rng.permutation(self.n_draws)[: len(into)]
            for part in _parts(cells):
                into[:, part] = self._draws(cells[part], rng)[chosen]
        return found

    def _draws(
        self, cells: np.ndarray, rng: np.random.RandomState, shared: bool = False
    ) -> np.ndarray:
        """Repeat the sweeps, (n_draws, n_rows, n_cols)."""
        X = standardized(cells.astype(float), self.scaling)
        missing, whole, kept = np.isnan(X), self._started(X), []
        for number, columns in enumerate(self.sweeps, self.n_kept - len(self.sweeps)):
            for column in columns:
                _draw(column, whole, missing, self._uniforms(rng, shared))
            if number >= 0:
                kept.append(undone(whole, self.scaling))
        drawn = np.concatenate(kept)[: self.n_draws]
        for col, values in self.values.items():
            if values is not None:
                drawn[..., col] = _nearest(values, drawn[..., col])
        return np.where(np.isnan(cells), drawn, cells)

    def _expected(
        self, cells: np.ndarray, own: np.ndarray, everywhere: bool
    ) -> np.ndarray:
        total, count = np.zeros(cells.shape), np.zeros(cells.shape)
        for number, column, rows, linear, leaves in self._kept(cells, everywhere):
            into = np.ix_(rows, column.predicted)
            votes = self._votes(column.predicted[0], number, own[rows])[..., None]
            total[into] += ((linear + column.means[leaves]) * votes).sum(0)
            count[into] += votes.sum(0)
        return total / np.maximum(count, RARE)

    def _kept(
        self, cells: np.ndarray, everywhere: bool
    ) -> Iterator[tuple[int, _ChainModel, np.ndarray, np.ndarray, np.ndarray]]:
        """Repeat the sweeps; yield each model whose draws are used.

        Its sweep precedes it. The rows in which its column is missing follow, or all
        rows, and their linear predictions and leaves.
        """
        X = standardized(cells.astype(float), self.scaling)
        missing, whole = np.isnan(X), self._started(X)
        rng = np.random.RandomState(self.seed)
        uniforms = self._uniforms(rng, shared=True)
        for number, columns in enumerate(self.sweeps, self.n_kept - len(self.sweeps)):
            for column in columns:
                if number < 0:
                    _draw(column, whole, missing, uniforms)
                    continue
                holed = missing[:, column.predicted[0]]
                rows = np.flatnonzero(holed | everywhere)
                linear, leaves = column.predict(whole[:, rows])
                yield number, column, rows, linear, leaves
                linear, leaves = linear[:, holed[rows]], leaves[:, holed[rows]]
                drawn = column.draw(linear, leaves, uniforms(holed.sum()))
                whole[:, np.flatnonzero(holed)[:, None], column.predicted] = drawn

    def donors(self, row: np.ndarray, j: int) -> tuple[float, np.ndarray]:
        """A missing cell of a row (1, n_cols), and the weights of its donors.

        Each draw has the donors of a leaf, which share its weight.
        """
        value, weights, n_draws = 0.0, np.zeros(len(self.used)), 0
        for _, column, _, linear, leaves in self._kept(row, everywhere=True):
            if j not in column.predicted:
                continue
            k = int(np.flatnonzero(column.predicted == j)[0])
            value += (linear[:, 0, 0] + column.means[leaves[:, 0], k]).sum()
            n_draws += len(linear)
            for leaf in leaves[:, 0]:
                rows, shares = column.donors_of(leaf)
                weights[rows] += shares
        scaled = np.full((1, row.shape[1]), value / n_draws)
        found = np.zeros(len(self.seen))
        found[self.used] = weights / n_draws
        return float(undone(scaled, self.scaling)[0, j]), found

    def _votes(self, col: int, number: int, own: np.ndarray) -> np.ndarray:
        """Weights of the draws that predict the column, (n_chains, n_rows)."""
        bits = self.in_bag[number - self.n_kept][:, own // 8]
        in_bag = (bits >> (7 - own % 8)) & 1
        seen = (self.seen[own, col // 8] >> (7 - col % 8)) & 1
        return np.where((in_bag == 0) | (own < 0) | (seen == 0), 1.0, RARE)

    def _started(self, X: np.ndarray) -> np.ndarray:
        return np.repeat(np.nan_to_num(X)[None], self.in_bag.shape[1], 0)

    def _uniforms(self, rng: np.random.RandomState, shared: bool) -> Uniforms:
        """Make uniform numbers for each row, or stratified ones that all rows share."""
        n = self.in_bag.shape[1]
        if not shared:
            return lambda n_rows: rng.random_sample((n, n_rows))
        return lambda _: (rng.permutation(n)[:, None] + rng.rand()) / n


@dataclass(frozen=True)
class _ChainModel(Trees):
    """Draws of the model of one column, or of all columns that code a category.

    The model is linear, with a tree on its residuals. The donors of a leaf are the
    residuals of the rows in it. A category has no linear part.
    """

    predicted: np.ndarray  # (q,), columns
    inputs: np.ndarray  # (m,), columns
    coefs: np.ndarray  # (n_draws, m + 1), the last one is the intercept
    count: np.ndarray  # (n_leaves,), number of donors
    donors: np.ndarray  # (n_donors, q)
    upto: np.ndarray | None  # (n_donors,), cumulative weights; None if all are equal
    rows: np.ndarray  # (n_donors,), among those of the training
    levels: np.ndarray | None  # distinct observed values, of which each draw is one

    @classmethod
    def trained(
        cls,
        X: np.ndarray,
        weights: np.ndarray,
        whole: np.ndarray,
        in_bag: np.ndarray,
        predicted: np.ndarray,
        inputs: np.ndarray,
        ridges: list[float],
        levels: np.ndarray | None,
        min_leaf: int,
        rng: np.random.RandomState,
    ) -> tuple[_ChainModel, list[_Fit]]:
        """Train one draw for each completed matrix, on the rows in its bag.

        ``X`` has NaN at missing cells; ``whole`` has the shape (n_draws, n_rows,
        n_cols), and ``in_bag`` has the shape (n_draws, n_rows).
        """
        seen = ~np.isnan(X[:, predicted[0]])
        fits, parts, times = [], [], []
        for cells, bag, ridge in zip(whole, in_bag, ridges, strict=True):
            rows = np.flatnonzero(seen & bag)
            if not len(rows):
                rows = np.flatnonzero(seen)
            if len(rows) > MAX_SAMPLES:
                rows = rng.choice(rows, MAX_SAMPLES, replace=False)
            A, y = cells[np.ix_(rows, inputs)], X[np.ix_(rows, predicted)]
            # The Bayesian bootstrap: each row counts as a random number of rows.
            share = shares_on_grid(rng.gamma(weights[rows]))
            fit, *own = _trained(A, y, share, ridge, min_leaf, rng)
            fits.append(fit)
            parts.append((*own, rows))
            times.append(share)
        leaves, residuals, of_fit = zip(*parts, strict=True)
        trees = [fit.tree for fit in fits]
        # The columns of the splits are positions among the inputs.
        arrays = cls.arrays_of([tree.tree_ for tree in trees], np.arange(len(inputs)))
        firsts = Trees(**arrays).first_leaves
        leaf = np.concatenate(
            [
                first + np.searchsorted(leaves_of(tree.tree_), nodes)
                for first, tree, nodes in zip(firsts, trees, leaves, strict=True)
            ]
        )
        donors, weight = np.concatenate(residuals), np.concatenate(times)
        order = np.lexsort((donors[:, 0], leaf))
        equal = (weight == weight[0]).all()
        model = cls(
            **arrays,
            predicted=predicted,
            inputs=inputs,
            coefs=np.stack([fit.coefs for fit in fits]),
            count=small(np.bincount(leaf)),
            donors=donors[order],
            upto=None if equal else np.cumsum(weight[order]),
            rows=small(np.concatenate(of_fit)[order]),
            levels=levels,
        )
        return model, fits

    def predict(self, whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predictions of the linear part, (n_draws, n_rows, 1), and leaves of rows.

        ``whole`` has the shape (n_draws, n_rows, n_cols), with inputs for each draw.
        """
        # A product of matrices would round a row differently beside other rows, and
        # that can change its leaf.
        products = whole[..., self.inputs] * self.coefs[:, None, :-1]
        linear = products.sum(-1) + self.coefs[:, -1:]
        return linear[..., None], self.leaves(single(whole[..., self.inputs]))

    @property
    def first_donors(self) -> np.ndarray:
        """The first donor of each leaf."""
        return np.cumsum(self.count, dtype=int) - self.count

    @property
    def means(self) -> np.ndarray:
        """Means of the donors of each leaf, ``(n_leaves, q)``."""
        if self.upto is None:
            sums = np.add.reduceat(self.donors, self.first_donors)
            return sums / self.count[:, None]
        weights = np.diff(self.upto, prepend=0.0)[:, None]
        sums = np.add.reduceat(weights * self.donors, self.first_donors)
        return sums / np.add.reduceat(weights, self.first_donors)

    def donors_of(self, leaf: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows in a leaf, and their shares in its mean."""
        first, count = int(self.first_donors[leaf]), int(self.count[leaf])
        weights = np.ones(count)
        if self.upto is not None:
            before = self.upto[first - 1] if first else 0.0
            weights = np.diff(self.upto[first : first + count], prepend=before)
        return self.rows[first : first + count], weights / weights.sum()

    def draw(
        self, linear: np.ndarray, leaves: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        """Add the residual of a random donor of the leaf, drawn by weight."""
        first, count = self.first_donors[leaves], self.count[leaves]
        if self.upto is None:
            donor = first + (uniform * count).astype(int)
        else:
            last = first + count - 1
            low = np.where(first, self.upto[first - 1], 0.0)
            place = low + uniform * (self.upto[last] - low)
            donor = np.searchsorted(self.upto, place, side="right").clip(first, last)
        values = linear + self.donors[donor]
        return values if self.levels is None else _nearest(self.levels, values)


def _levels(cells: np.ndarray, match: str | None) -> np.ndarray | None:
    """The distinct observed values of a column, which draws have; None for others."""
    if match is None or cells.shape[1] > 1:
        return None
    return np.unique(cells[~np.isnan(cells)]).astype(float)


class _Fit(NamedTuple):
    """The coefficients and the tree of one draw of a model."""

    coefs: np.ndarray  # (m + 1,)
    tree: DecisionTreeRegressor

    def means(self, A: np.ndarray) -> np.ndarray:
        """Predictions, ``(n_sizes, n_rows, q)``, if leaves had more donors.

        The leaf of a row is the smallest node that has enough of them.
        """
        tree = self.tree.tree_
        number, parent = tree.n_node_samples, np.zeros(tree.node_count, int)
        for branch in (tree.children_left, tree.children_right):
            parent[branch[branch >= 0]] = np.flatnonzero(branch >= 0)
        found = []
        leaf = self.tree.apply(_inputs_of_splits(A), check_input=False)
        for size in LEAVES:
            node = leaf.copy()
            least = min(size, number[0] // 2)
            while len(few := np.flatnonzero(number[node] < least)):
                node[few] = parent[node[few]]
            found.append(tree.value[node, :, 0])
        return np.stack(found) + (A @ self.coefs[:-1] + self.coefs[-1])[:, None]


def _inputs_of_splits(A: np.ndarray) -> np.ndarray:
    return single(A) if A.shape[1] else np.zeros((len(A), 1), np.float32)


def _trained(
    A: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    ridge: float,
    min_leaf: int,
    rng: np.random.RandomState,
) -> tuple[_Fit, np.ndarray, np.ndarray]:
    """Train the linear part and the tree; also leaves and residuals of the rows.

    The residuals have the variance of the noise: those of the linear fit ``H y`` are
    divided by the norms of the rows of ``I - H``.
    """
    coefs, shrunk = np.zeros(A.shape[1] + 1), np.ones((len(A), 1))
    if y.shape[1] == 1:
        inputs = torch.from_numpy(np.column_stack([A, np.ones(len(A))]))
        weighted = torch.from_numpy(weights)[:, None] * inputs
        gram = weighted.mT @ inputs
        gram.diagonal()[:-1] += ridge
        known = weighted.mT @ torch.from_numpy(y[:, 0])
        coefs = torch.linalg.solve(gram, known).numpy()
        hat = torch.linalg.solve(gram, inputs.mT).mT
        leverage, spread = (hat * weighted).sum(1), hat @ (weighted.mT @ weighted)
        squares = 1 - 2 * leverage + (hat * spread).sum(1)
        shrunk = squares.clamp_min(LEAST_SHARE).sqrt().numpy()[:, None]
    residual = (y - (A @ coefs[:-1] + coefs[-1])[:, None]) / shrunk
    split = _inputs_of_splits(A)
    tree = DecisionTreeRegressor(
        min_samples_leaf=max(1, min(min_leaf, len(A) // 2)),
        max_features=min(COLS_PER_SPLIT, split.shape[1]),
        random_state=rng.randint(2**31),
    )
    tree.fit(split, on_grid(residual, 22), sample_weight=weights, check_input=False)
    return _Fit(coefs, tree), tree.apply(split, check_input=False), residual


def _draw(
    column: _ChainModel, whole: np.ndarray, missing: np.ndarray, uniforms: Uniforms
) -> None:
    """Draw the missing cells of a column, given all other cells, in place."""
    rows = np.flatnonzero(missing[:, column.predicted[0]])
    uniform = uniforms(len(rows))
    if len(rows):
        drawn = column.draw(*column.predict(whole[:, rows]), uniform)
        whole[:, rows[:, None], column.predicted] = drawn


def _nearest(levels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The nearest of sorted levels to each value."""
    if len(levels) == 1:
        return np.full_like(values, levels[0])
    above = np.searchsorted(levels, values).clip(1, len(levels) - 1)
    below = levels[above - 1]
    return np.where(values - below < levels[above] - values, below, levels[above])


def _parts(cells: np.ndarray) -> Iterator[slice]:
    return gen_batches(len(cells), max(1, CELLS_AT_ONCE // cells.shape[1]))
