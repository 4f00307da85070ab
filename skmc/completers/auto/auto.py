"""A stack of many completers."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skmc import patterns
from skmc.base import (
    CompleterTags,
    Contribution,
    Explains,
    Explanation,
    Outcome,
    Samples,
    TakesBounds,
    bounds_of,
    by_weight,
    known_of_rows,
    read_rows,
    validated,
    warn_of_units,
    warn_user,
)
from skmc.cells import Container, Entries, Given, LikeObserved, Scaling
from skmc.completers._units import standardized
from skmc.completers.auto._candidates import Candidate, selected
from skmc.completers.auto._comparison import Cold, Comparison, Sample
from skmc.completers.auto._fitted import (
    FittedStack,
    Stack,
    compares_columns,
)
from skmc.linalg import seed_of
from skmc.loop import FitTasks, time_limit
from skmc.metrics import check_level
from skmc.new_rows import RowIndex
from skmc.parameters import Positive, Seed, Workers
from skmc.stacking import Spread

N_PARTS = 8
# Candidates are compared on 1500 rows, or fewer if there are many columns.
MIN_ROWS, MAX_ROWS, MAX_CELLS = 400, 1_500, 30_000

Candidates = Mapping[str, Any] | Annotated[Sequence[Any], "array-like"]


class AutoCompleter(Explains, Samples, TakesBounds):
    r"""Fit many completers and weight them by their errors on held-out cells.

    For matrices for which you do not know the right method, and the lowest errors on
    tables; not for an answer within a second.

    A few completers predict observed cells that were held out in the pattern of the
    missing ones. The completion is their weighted mean,

    .. math::

        X_{ij} = \sum_k w_{jk} X^{(k)}_{ij}, \qquad w_{jk} \ge 0, \quad
        \sum_k w_{jk} = 1,

    with weights for each column j that minimize the error of the held-out cells. In
    tables, which `MixedCompleter` completes with this class, the probabilities of
    categories are combined in the same way. Most matrices take a few seconds. The
    answer depends neither on the order of the rows nor on the speed of the machine.
    `leaderboard_` lists the candidates with their errors, and `verdict_` says how good
    the result is.

    Parameters
    ----------
    candidates : "auto", sequence of str, or mapping of str to estimator, default="auto"
        Candidates. "auto" tries the few that are best for data of this kind, see Notes.
        A sequence selects some by name: "mean", "knn", "knn-weighted", "gaussian",
        "copula", "chained", "chained-short", "trees-linear", "trees-rounds",
        "boosting", "svd", "ialm", "tnnr", "ncarl", "soft-impute", "air",
        "factorization", "bayesian-factorization" and "bayesian-factorization-implicit",
        or, for pictures, "nonlocal", "biharmonic", "patch-cnn" and "dmf-tv". A mapping
        holds completers or scikit-learn imputers.
        All of a sequence or mapping are tried, up to one without error.

        Those that take features or graphs, if `fit` gets any, are tried with and
        without them.
    max_time : float > 0 or None, default=None
        Time limit in seconds. When it has passed, the comparison or the last fits end,
        and the best that has been fitted is the answer. None sets no limit, and then
        nothing depends on the clock. One fit or completion that has begun may last
        longer.
    n_jobs : int or None, default=None
        Number of fits at the same time, as in joblib. It changes no digit of the
        result.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
        Errors are compared in deviations of the columns with "columns", and in the unit
        of the data otherwise. Methods that compare cells of different columns, such as
        `NonlocalCompleter`, always get the data as they are.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
        Estimators in a mapping use their own.
    random_state : int, RandomState instance or None, default=None
        Seed of the parts, and of all candidates except those of a mapping.
    like_observed : bool, default=False
        Whether missing cells get values that look like the observed ones: integers are
        whole, decimals have at most as many digits as those of the column, and values
        are within the column's observed range. In a table, that of `MixedCompleter` is
        used instead.
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
    leaderboard_ : pandas.DataFrame
        One row for each candidate, the best first: "candidate"; "status", which also
        gives the reason why a candidate was not tried or failed; "error", the root mean
        squared error on the first parts, of fits for the comparison; "cells", the
        number of predicted cells; "weight", the mean over the columns; "seconds";
        "warnings", their number. Computed at each access; needs pandas.
    verdict_ : str
        A summary in two sentences: how the error on held-out cells compares to that of
        column means and of the best single candidate.
    weights_ : dict of str to float
        Members and their weights if all columns share them.
    column_weights_ : dict of str to ndarray of shape (n_features,)
        Weights of each column, which the completion uses.
    completers_ : dict of str to estimator
        Members, fitted to the cells as scaled by ``scaling="columns"``, otherwise to
        the cells as they are, in rows of another order; use their `transform`.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell. Imputers of scikit-learn predict no values for
        observed cells; the observed values replace their predictions.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    See Also
    --------
    MixedCompleter : Tables of any columns; uses this class by default.
    skmc.model_selection.compare : Compares completers instead of combining them.
    SeriesCompleter : Rows are times.

    Notes
    -----
    The observed cells are divided into eight parts
    (`skmc.patterns.parts_like_missing`). The weights of column j minimize the squared
    error of the predictions in this column, plus a number of cells times the *mean*
    squared error in all columns. This number is chosen from infinity, 1000, 300, 100,
    30 and 10 on rows that were left out of the weights: small tables share the weights
    of all columns, and large ones have weights of their own in each.

    In a table, the candidates' scores of a category are replaced by the nearest
    probabilities. The weights of a category maximize the log score of the mixed
    probabilities of its held-out cells, drawn towards weights that all categories
    share. The mixture is calibrated: the ratios of its probabilities to the shares of
    the categories are raised to a power, and the shares are mixed in, as the log score
    demands.

    The candidates follow from the shape and the number of observed cells:

    ======================  =======================================================
    data                    candidates
    ======================  =======================================================
    up to 150 cells         mean, knn, gaussian, ialm
    up to 20 columns        mean, knn, ialm, gaussian, copula, chained-short,
                            trees-rounds
    more columns            mean, knn, ialm, factorization, gaussian, copula
    up to 20 % observed     mean, factorization, bayesian-factorization-implicit
    side information        also factorization and bayesian-factorization, with it
    ======================  =======================================================

    Cheap ones come first. A candidate without error ends the comparison.

    All candidates predict the first part, and more parts until there are 500 held-out
    cells. Candidates with a weight below .02 are dropped. The others predict one more
    part, until four parts or 2000 cells are predicted, or until the error of the stack
    on left-out rows is within a hundredth of that on the other rows, so that more cells
    would not improve the weights.

    A candidate is fitted again for each part, without the cells of this part; ensembles
    and chains then have fewer trees and draws, and Gaussians the prior that they have
    chosen for the first part. Finally, the members of the stack are fitted to all
    cells.

    Rows are exchangeable: a permutation of the rows permutes the completion. The parts
    and all other random choices follow the content of the rows and the seed, but not
    their positions. Only if a candidate for pictures is named are rows kept in order.

    ``scaling="auto"`` of a candidate becomes that of the stack.

    `explain` lists the members. The base is the mean :math:`m_j` of the observed cells
    of the column, and a member contributes :math:`w_{jk} (X^{(k)}_{ij} - m_j)`.

    Rows and columns without an observed cell have no held-out cells either. If features
    or graphs describe them, only candidates that take these are used there, with their
    share of the weights; if the stack has none, the best of them joins it. Features of
    a column are those of `FactorizationCompleter.fit`; new rows are treated as average.

    Candidates are compared on at most 1500 rows, and on fewer if there are more than
    20 columns, but on at least 400. `KNNCompleter` has all rows as donors there, as in
    its last fit. The default's chains and trees keep a fit to the compared rows, and
    complete the others as new rows. The matrix is made dense, and each member stores
    what its class documents.

    After an interruption the best result so far is kept. `skmc.persistence.save` stores
    the completer, with members from scikit-learn.

    This implementation adds weights by column, and the choice of candidates.

    References
    ----------
    Wolpert. Stacked generalization. Neural Networks 5 (1992). -- Breiman. Stacked
    regressions. Machine Learning 24 (1996). -- van der Laan, Polley, Hubbard. Super
    learner. Statistical Applications in Genetics and Molecular Biology 6 (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import AutoCompleter
    >>> rng = np.random.RandomState(0)
    >>> X = np.outer(rng.rand(30), rng.rand(20))
    >>> X[11, 9] = np.nan
    >>> completer = AutoCompleter(["mean", "knn", "svd"], random_state=0).fit(X)
    >>> print(completer.verdict_)
    svd alone, 100 % below the column means. `leaderboard_` has the details.
    """

    completer_tags = CompleterTags(
        recovers=0.05, unweighted="it compares methods without weights, too"
    )
    candidates: str | Candidates = "auto"
    _: KW_ONLY
    max_time: Positive | None = None
    n_jobs: Workers = None
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None
    like_observed: bool = False

    verdict_: str = field(init=False)
    weights_: dict[str, float] = field(init=False)
    column_weights_: dict[str, np.ndarray] = field(init=False)
    completers_: dict[str, Any] = field(init=False)
    _fitted: FittedStack = field(init=False)
    _kind = "completers"
    _leaderboard: list[dict[str, Any]] = field(init=False)

    @validated
    def fit(
        self,
        X: Container,
        y: object = None,
        *,
        row_features: Container | None = None,
        col_features: Container | None = None,
        row_graph: Container | None = None,
        col_graph: Container | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Candidates whose ``fit`` takes features or graphs are tried both with them,
        under names that end in "-informed", and without.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            Matrix to complete: masked array, array or list with NaN, DataFrame, SciPy
            sparse matrix, tensor or `Entries`. `skmc.cells.to_cells` defines which
            cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks.
        row_features : array, DataFrame, tensor or sparse matrix, optional
            Features of the rows, of shape (n_samples, p). If ``X`` has identifiers, the
            lines of a DataFrame are found by its index. Identifiers that only it has
            are rows without a cell.
        col_features : as row_features, of shape (n_features, p), optional
            Features of the columns.
        row_graph : array, DataFrame or SciPy sparse matrix, optional
            Symmetric weights >= 0 between rows that resemble each other, of shape
            (n_samples, n_samples). The diagonal is ignored. The index and columns of a
            DataFrame are used as for features.
        col_graph : as row_graph, of shape (n_features, n_features), optional
            Weights between columns.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, >= 0; None is 1. Nothing is learned from a row of weight
            0, but it is completed, as a new row. Candidates that take weights of cells
            get the weight of the row for each of its cells; those that take no weights
            are not tried. The errors that are compared, and those that the weights of
            the stack minimize, are weighted, too; deviations and intervals are not.

        Returns
        -------
        self
            The fitted completer. The informed candidates complete rows and columns of
            ``X`` without an observed cell.

        Raises
        ------
        ValueError
            As for `FactorizationCompleter.fit`. ``sample_weight`` has another shape, or
            a weight is negative or NaN.
        """
        self._run_fit(
            X,
            y,
            row_features=row_features,
            col_features=col_features,
            row_graph=row_graph,
            col_graph=col_graph,
            sample_weight=sample_weight,
        )
        return self

    def _given(self, X: Container, known: Mapping[str, Any]) -> Given:
        start = time.perf_counter()
        given = super()._given(X, known)
        cold, statistics = Cold.of(given), given.statistics
        statistics = replace(  # described rows are not empty
            statistics,
            empty_rows=statistics.empty_rows & ~cold.rows,
            empty_cols=statistics.empty_cols & ~cold.cols,
        )
        seconds = time.perf_counter() - start
        return replace(given, statistics=statistics, seconds=seconds)

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        left = None if self.max_time is None else self.max_time - given.seconds
        with time_limit(left), FitTasks(self, given.read, y, 3) as tasks:
            return self._fit_stack(given, tasks)

    def _fit_stack(self, given: Given, tasks: FitTasks) -> Outcome:
        """Compare candidates, weight them, and fit the members to all cells."""
        seed, index = seed_of(self.random_state), RowIndex(given.matrix)
        candidates = self._candidates(given, seed)
        order = np.arange(len(given.matrix))
        if not any(compares_columns(c.estimator) for c in candidates):
            order = _order_by_content(given.matrix, given.weights_of_rows, seed)
        rows, cold = _reordered(given, order), Cold.of(given)
        cold = Cold(cold.rows[order], cold.cols)
        how = "columns" if self._units(given) == "columns" else None
        scaling = rows.data.scaling_of(how)
        all_rows = _sample_of(rows, scaling)
        n_cols = all_rows.cells.shape[1]
        sample = all_rows.first(min(MAX_ROWS, max(MIN_ROWS, MAX_CELLS // n_cols)))
        comparison = self._comparison(given, all_rows, sample, scaling, seed)
        self._compare(comparison, candidates, tasks)
        stacking = comparison.stack()
        members, weights, cold_weights = cold.weights(comparison, stacking)
        completers = comparison.last_fits(members, sample, tasks)
        of_table = given.layout, stacking.calibrations
        stack, for_cold = (
            Stack(completers, list(by_column), scaling, *of_table)
            for by_column in (weights, cold_weights)
        )
        used, cells = rows.weights_of_rows > 0, rows.matrix
        values = stack.of_fit(cells, used, everywhere=False)
        values = given.statistics.fill(cells, values)
        if cold.rows.any():
            of_cold = for_cold.of_fit(cells, used, everywhere=False)
            values[cold.rows] = of_cold[cold.rows]
        common = zip(comparison.members, stacking.common, strict=True)
        attributes = {
            "weights_": {trial.name: float(weight) for trial, weight in common},
            "column_weights_": dict(zip(completers, weights, strict=True)),
            "completers_": completers,
            "verdict_": comparison.verdict(stacking),
            "_leaderboard": comparison.leaderboard(stacking),
            **self._limits(given),
        }
        fitted = FittedStack(
            statistics=given.statistics,
            completion=values[np.argsort(order)].astype(cells.dtype),
            index=index,
            row_map=stack,
            whole_answer=bool(cold.rows.any()),
            order=order,
            used=used,
            spread=Spread.of(
                stacking.residuals,
                stacking.variances,
                comparison.donors(),
                comparison.held_out().cols,
                n_cols,
            ),
        )
        return Outcome(fitted, attributes, interrupted=comparison.interrupted)

    def _comparison(
        self, given: Given, whole: Sample, sample: Sample, scaling: Scaling, seed: int
    ) -> Comparison:
        """Label the parts of the observed cells that candidates are to predict."""
        labels = patterns.parts_like_missing(sample.cells, N_PARTS, random_state=seed)
        entries = Entries.of_matrix(sample.cells, layout=given.layout)
        # Otherwise a held-out category could be inferred from its other columns.
        label = labels[:, given.first_columns][entries.rows, entries.cols]
        return Comparison(entries, label, scaling, sample.known, whole, self.n_jobs)

    def _units(self, given: Given) -> str | None:
        """The scaling, which is that of the candidates, too."""
        how = given.units(self.scaling)
        if given.layout is not None and given.layout.categories:
            return None  # its columns have one unit
        if self.scaling == "auto" and how == "global":
            warn_of_units(self, given.data)
        return how

    def _candidates(self, given: Given, seed: int) -> list[Candidate]:
        """The candidates, with the scaling of the stack."""
        sides, how = [*given.known], self._units(given)
        found = selected(self.candidates, given.matrix, sides, seed, self.device)
        if sides and not any(c.takes for c in found):
            warn_user(
                f"None of the candidates takes {' or '.join(sides)}; add "
                "'factorization' or 'bayesian-factorization', or leave them out."
            )
        return [c.scaled_by(how) for c in found]

    def _compare(
        self, comparison: Comparison, candidates: list[Candidate], tasks: FitTasks
    ) -> None:
        """Compare the candidates; raise an error if none of them could be fitted."""
        comparison.run(candidates, tasks)
        if not comparison.members:
            if comparison.interrupted:
                raise KeyboardInterrupt
            said = "; ".join(f"{t.name} {t.status}" for t in comparison.trials)
            raise ValueError(f"None of the candidates could be fitted: {said}.")

    def predict_std(self, X: Container) -> np.ndarray:
        r"""Standard deviation of the cells that `transform` returns.

        At missing cells it is the square root of

        .. math::

            u_{ij}^2 = s_j^2 + \sum_k w_{jk} (X^{(k)}_{ij} - X_{ij})^2,

        where :math:`s_j^2` is the mean squared error of the stack on the held-out cells
        of the column; the error in all columns counts as ten of these cells, and as
        fewer if the columns differ much.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Standard deviations; 0 in observed cells. NaN in missing cells if no cells
            could be held out.
        """
        check_is_fitted(self)
        return self._fitted.deviations(read_rows(self, X))

    def predict_interval(
        self, X: Container, level: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals that contain a share ``level`` of the missing cells.

        The half width is the deviation, see `predict_std`, times a quantile of the
        errors on held-out cells in units of their deviations. The share holds on
        average over cells that are missing like these, not for single cells.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.
        level : float in (0, 1), default=0.9
            Share of the missing cells.

        Returns
        -------
        low : ndarray of shape (n_samples, n_features)
        high : ndarray of shape (n_samples, n_features)
            The interval of an observed cell is its value. With ``like_observed``, the
            ends are rounded and clipped like the completion. NaN as in `predict_std`.
        """
        check_is_fitted(self)
        check_level(level)
        cells = read_rows(self, X)
        half = self._fitted.spread.quantile(level) * self._fitted.deviations(cells)
        center = self._model_values(cells)
        low, high = center - half, center + half
        if self._like is not None:
            low, high = self._like.apply(low), self._like.apply(high)
        observed = ~np.isnan(cells)
        return np.where(observed, cells, low), np.where(observed, cells, high)

    def _limits(self, given: Given) -> dict[str, Any]:
        """Bounds of completed cells, and decimals if these are like observed ones."""
        n_cols, layout = given.statistics.shape[1], given.layout
        like = bounds = layout.bounds if layout else self._bounds_of(n_cols)
        if self.like_observed and layout is None:
            names = getattr(self, "feature_names_in_", ())
            ends = bounds_of(self.min_value, self.max_value, names, n_cols)
            like = LikeObserved.of(given.matrix, *ends)
        return {"_bounds": bounds, "_like": like}

    def _explained(self, cells: np.ndarray, i: int, j: int, name: Any) -> Explanation:
        if np.isnan(cells[i]).all() and self._fitted.is_whole(cells):
            raise ValueError(
                f"Row {name!r} has no observed cell and is completed from its features "
                "or its graph, which explain does not know; explain one of the "
                "completers_ that take these."
            )
        return super()._explained(cells, i, j, name)

    def _contributions(
        self, cells: np.ndarray, i: int, j: int
    ) -> tuple[float, list[Contribution]]:
        mean = float(self._priors.col_means[j])
        members = self._fitted.members_at(cells[[i]], j)
        contributions = [
            Contribution(name, k, weight * (value - mean), value, weight)
            for k, (name, weight, value) in enumerate(members)
            if weight  # in this column
        ]
        return mean, by_weight(contributions)

    @property
    def leaderboard_(self) -> Any:
        """Candidates and their errors, see the attributes of the class."""
        check_is_fitted(self)
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise ImportError(
                "leaderboard_ needs pandas: pip install pandas."
            ) from error
        return pandas.DataFrame(self._leaderboard)


def _order_by_content(cells: np.ndarray, weights: np.ndarray, seed: int) -> np.ndarray:
    """An order of rows by content and seed, so that a permutation changes nothing.

    Ranks in the columns are hashed: they have no units. Empty rows and those of weight
    0 come last.
    """
    known = (weights > 0) & ~np.isnan(cells).all(1)
    used = np.flatnonzero(known)
    ranks = np.empty((len(used), cells.shape[1]))
    for j, column in enumerate(cells[used].T):
        ranks[:, j] = np.searchsorted(np.sort(column), column)
    order = RowIndex(ranks).order
    lot = np.random.RandomState(seed % 2**32).permutation(len(order))
    return np.append(used[order[lot]], np.flatnonzero(~known))


def _reordered(given: Given, order: np.ndarray) -> Given:
    """The rows in another order."""
    weights = None if given.row_weights is None else given.row_weights[order]
    return Given.of_matrix(
        given.matrix[order],
        row_weights=weights,
        one_unit=given.statistics.one_unit,
        known=known_of_rows(given.known, order),
    )


def _sample_of(rows: Given, scaling: Scaling) -> Sample:
    """The rows that are used in the fit, standardized, with their side information."""
    used, sides = rows.weights_of_rows > 0, dict(rows.known)
    if rows.row_weights is not None:
        sides["sample_weight"] = rows.row_weights
        sides = known_of_rows(sides, np.flatnonzero(used))
    return Sample(standardized(rows.matrix[used], scaling), sides)
