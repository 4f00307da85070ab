"""Bayesian factorization with biases, averaged over posterior samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import (
    Choice,
    CompleterTags,
    IterativeCompleter,
    RowModels,
    Samples,
    TakesFeatures,
    Trials,
    common_parts,
    joined_cols,
    joined_rows,
    read_rows,
    without_constants,
)
from skmc.blocks import BlockObserved
from skmc.cells import Container, Given, SparseObserved
from skmc.compatibility import Interval
from skmc.completers._explain_ratings import ExplainsRatings
from skmc.completers._rank import checked_rank
from skmc.completers._recommend import Recommends
from skmc.completers.bayesian.gibbs import Gibbs
from skmc.linalg import Randomness, linear, threads_for_rows
from skmc.parameters import Count, Params, Positive, Seed
from skmc.solvers import Result, Solver, solved

RANK = 30


class BayesianFactorizationCompleter(
    TakesFeatures, Samples, ExplainsRatings, Recommends, IterativeCompleter
):
    r"""Predict ratings by low-rank factors, averaged over posterior samples.

    For ratings, when accuracy is worth the time: there is nothing to tune. Not for an
    answer at once; `FactorizationCompleter` is faster. The model is

    .. math::

        M_{ij} = \text{mean} + u_i^\top v_j + b_i + c_j + e_{ij}

    Factors, biases and noise are Gaussian. Gibbs sampling also draws their means, their
    precision matrices and the variance of the noise;
    `skmc.completers.bayesian.gibbs.Gibbs` states the priors. The completion is the
    average over the draws of each row's expectation given the columns. `predict_std`
    returns the standard deviation of every cell of a matrix, `predict_entries_std` that
    of the cells that you name, and `sample` draws rows. `fit` takes features and graphs
    of rows and columns, and rows or columns without an observed cell are predicted from
    them.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or None, default=None
        Number of columns of ``U`` and ``V``. A rank that is too large does little harm.
        None is 30, or ``min(n_samples, n_features)`` if that is smaller.
    n_draws : int >= 1, default=120
        Number of draws to average. Time and memory are proportional to it.
    n_burn_in : int >= 0, default=15
        Number of initial draws, which are discarded.
    implicit : bool, default=False
        Whether the model uses the information in *which* cells of a row or column are
        observed, whatever their values. True suits ratings, because people choose what
        they rate. If cells are missing at random, it costs time and a little accuracy.
    heteroscedastic : bool, default=False
        Whether the variance of the noise differs between rows and between columns. True
        suits ratings, as some people and some items are more predictable than others.
        The fit is then closest where the noise is small. In tables that do not have low
        rank, this costs accuracy elsewhere.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
        Draws made until then are averaged; during the burn-in, only the last one is
        used.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
        The priors are meant for data of variance 1; use None only for such data.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws.
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
    row_factors_, col_factors_ : ndarray of shape (n_samples, k), (n_features, k)
        Factors, whose product is the scaled completion; ``k = n_draws (rank + 1) + 1``,
        at the defaults ``30 kB`` for each row and column. Computed at each access.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" (half the squared misfit of a draw) and "residual"
        (infinite: there is no optimum) at every draw.
    n_iter_ : int
        Number of iterations.
    status_ : {"max_iter", "max_time", "diverged", "interrupted"}
        Final status of the fit; "max_iter" is the normal one.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    See Also
    --------
    FactorizationCompleter : The same model fitted once; faster, with weights to choose.
    GaussianCompleter : Uncertainty of cells in tables.
    skmc.uncertainty.MultipleCompletion : Uncertainty for any completer.

    Notes
    -----
    Rows are completed by their expectation given their cells, averaged over the draws.
    With ``heteroscedastic``, their cells are weighted by the precision of the noise in
    the columns, and the precision of the row is taken as average. `sample` takes one
    draw of the model for each sample, draws the factors of the rows given their cells,
    and adds the noise; the samples of a row are joint draws of its cells.
    ``implicit`` adds a linear map of indicators, each 1 / sqrt(k) for k observed cells,
    to the means of rows and columns. This is our interpretation of the papers.
    Features and graphs are also such linear maps (`skmc.cells.Side`): the precision of
    the map of features is a drawn multiple of the identity, and that of a graph's
    values is a drawn multiple of its Laplacian plus a tenth of the mean degree.

    `explain` gives the terms of a prediction, as that of `FactorizationCompleter`,
    averaged over the draws. The base is the mean prediction for a row without cells.
    With ``implicit``, the term of a cell includes the effect that its column is
    observed.

    Memory grows with the observed cells and with ``(n_samples + n_features) rank``;
    systems of rows are solved in blocks. ``reconstruction_`` and `transform` are dense.
    The fitted completer keeps the draws of the columns' factors, ``30 kB`` for each
    column at the defaults and half of that in single precision. It keeps no factors of
    rows, only the observed cells, 12 bytes each. Predictions solve the ``n_draws``
    systems of each requested row, with the same solutions as in the fit. A graph of
    rows adds the draws of its nodes' values, ``30 kB`` for each row.

    `fit` also takes ratings that are not in memory, see `Entries.from_parquet`. The
    draws equal those in memory up to rounding, and predictions of rows of the fit read
    the cells of these rows again.

    References
    ----------
    Salakhutdinov, Mnih. Bayesian probabilistic matrix factorization using Markov chain
    Monte Carlo. ICML (2008). Simm et al. Macau: scalable Bayesian factorization with
    high-dimensional side information using MCMC. MLSP (2017). Adams, Dahl, Murray.
    Incorporating side information in probabilistic matrix factorization with Gaussian
    processes. UAI (2010). Lakshminarayanan, Bouchard, Archambeau. Robust Bayesian
    matrix factorisation. AISTATS (2011), for the noise of rows and columns. Koren.
    Factorization meets the neighborhood. KDD (2008), for implicit terms.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import BayesianFactorizationCompleter
    >>> rng = np.random.RandomState(0)
    >>> X = np.add.outer(rng.randn(20), rng.randn(10))
    >>> truth, X[3, 4] = X[3, 4], np.nan
    >>> completer = BayesianFactorizationCompleter(2, random_state=0)
    >>> bool(abs(completer.fit_transform(X)[3, 4] - truth) < 0.2)
    True
    >>> bool(completer.predict_std(X)[3, 4] < 0.2)
    True
    """

    completer_tags = CompleterTags(recovers=0.05)
    accepts = (SparseObserved, BlockObserved)
    check_every = 1
    warn_at_max_iter = False
    tol = 0.0

    rank: Count | None = None
    _: KW_ONLY
    n_draws: Count = 120
    n_burn_in: Annotated[int, Interval(Integral, 0, None, closed="left")] = 15
    implicit: bool = False
    heteroscedastic: bool = False
    max_time: Positive | None = None
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    _fitted: FittedDraws = field(init=False)

    @property
    def max_iter(self) -> int:
        """Number of all draws, including the burn-in."""
        return self.n_burn_in + self.n_draws

    def _choose(self, data: SparseObserved, trials: Trials) -> Choice:
        if self.rank is None:
            return Choice({"rank": min(RANK, *data.shape)})
        return Choice({"rank": checked_rank(self.rank, data.shape, "None")})

    def _make_solver(
        self, data: SparseObserved, params: Params, rng: Randomness
    ) -> Solver:
        return Gibbs(
            rng,
            params.rank,
            params.n_burn_in,
            params.implicit,
            params.heteroscedastic,
        )

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        parts, data = common_parts(given, result), given.data.to("cpu")
        if given.read is not None:
            parts |= {"values": data.values, "weights": data.weights}
        return {"_fitted": FittedDraws(**parts)}

    @property
    def row_factors_(self) -> np.ndarray:
        """Expectations of the rows' factors in all draws, computed at each access."""
        check_is_fitted(self)
        return self._fitted.left

    @property
    def col_factors_(self) -> np.ndarray:
        """The columns' factors in all draws, joined at each access."""
        check_is_fitted(self)
        return self._fitted.right

    def predict_std(self, X: Container) -> np.ndarray:
        """Standard deviation of the cells that `transform` returns.

        The posterior variance of a cell is the mean over the draws of its variance
        given the row's cells, noise included, plus the variance over the draws of its
        expectation. With ``heteroscedastic``, the precision of the noise in a row is
        its expectation given the squared residuals of the row's cells, to which their
        variances are added.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Deviations in the units of the columns. 0 for observed cells, except with
            ``keep_observed=False``. Columns without an observed cell in `fit` have NaN.
        """
        check_is_fitted(self)
        cells = read_rows(self, X)
        with threads_for_rows(cells):
            std = self._fitted.std(cells)
        if self.keep_observed:
            std[~np.isnan(cells) & ~self._priors.empty_cols] = 0.0
        return std.astype(cells.dtype, copy=False)

    def predict_entries_std(self, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        """Standard deviation of single cells of the fitted matrix.

        The matrix stays sparse: memory and time are those of the requested rows and
        cells.

        Parameters
        ----------
        rows, cols : array-like of shape (n_cells,)
            Positions or identifiers, as for `predict_entries`.

        Returns
        -------
        ndarray of shape (n_cells,)
            The result of `predict_std` for these cells of the fitted matrix with
            ``keep_observed=False``, and given the weights of the fit: the deviation of
            a rating from its prediction, also at observed cells. NaN in columns without
            an observed cell, and for identifiers that the fit has not seen, with a
            warning.
        """
        check_is_fitted(self)
        i, j = self._positions_of_cells(rows, cols, "have no deviation")
        std, in_fit = np.full(len(i), np.nan), (i >= 0) & (j >= 0)
        std[in_fit] = self._fitted.std_at(i[in_fit], j[in_fit])
        return std


@dataclass(eq=False)
class FittedDraws(RowModels):
    """Draws of the columns' factors; the rows' factors follow from the cells.

    Parameters
    ----------
    values : Tensor of shape (n_cells,) or None, default=None
        Scaled cells of the fit, if they are in memory.
    weights : Tensor of shape (n_cells,) or None, default=None
        Weight of each of them.
    """

    values: Tensor | None = None
    weights: Tensor | None = None

    @property
    def left(self) -> np.ndarray:
        """Expectations of the rows' factors in each draw."""
        return joined_rows(self.row_factors()).numpy()

    @property
    def right(self) -> np.ndarray:
        """The columns' factors in each draw."""
        return joined_cols(self.models).numpy()

    def row_factors(self) -> list[Tensor]:
        return list(self._factors_of(torch.arange(self.statistics.shape[0])))

    def cells_of(self, rows: Tensor) -> SparseObserved:
        rows = rows % self.statistics.shape[0]
        shape = len(rows), self.statistics.shape[1]
        if self.values is None:
            where, stored = self.seen.of_rows(rows.numpy())
            cells = where, stored["col"], stored["value"], shape, stored.get("weight")
            given = SparseObserved.of(*cells).scaled(self.scaling)
            return without_constants(given, self.scaling)
        starts, cols = (torch.from_numpy(part).long() for part in self.seen)
        count = starts[rows + 1] - starts[rows]
        first = starts[rows] - (count.cumsum(0) - count)
        at = torch.arange(int(count.sum())) + first.repeat_interleave(count)
        weights = None if self.weights is None else self.weights[at]
        which = torch.arange(len(rows)).repeat_interleave(count)
        given = SparseObserved(which, cols[at], self.values[at], shape, weights)
        return without_constants(given, self.scaling)

    def _factors_of(self, rows: Tensor) -> Iterator[Tensor]:
        """Factors of some rows in each draw, from the cells and sides of the fit."""
        given, rows = self.cells_of(rows), rows % self.statistics.shape[0]
        cells = given.starts, given.cols, given.values
        for model in self.models:
            # A fit without features or graphs has no sides.
            pairs = zip(self.row_sides, model.sides, strict=False)
            means = sum(side.mean(B, rows) for side, B in pairs)
            yield model.solve(*cells, known=means, weights=given.weights)

    def scaled_rows(self, rows: Tensor) -> Tensor:
        n_draws = len(self.models)
        values = self.models[0].F.new_zeros(len(rows), self.statistics.shape[1])
        for model, W in zip(self.models, self._factors_of(rows), strict=True):
            values += linear(W / n_draws, model.F, model.offset / n_draws)
        return values

    def scaled_at(self, rows: Tensor, cols: Tensor) -> Tensor:
        asked, place = rows.unique(return_inverse=True)
        values = self.models[0].F.new_zeros(len(rows))
        for model, W in zip(self.models, self._factors_of(asked), strict=True):
            values += torch.linalg.vecdot(W[place], model.F[cols]) + model.offset[cols]
        return values / len(self.models)

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw rows given their cells, each time from one draw of the model."""
        given, drawn = self._given(cells), []
        order = [rng.permutation(len(self.models)) for _ in range(n_samples)]
        for k in np.concatenate(order)[:n_samples]:
            matrix = _drawn(self.models[k], given, rng)
            drawn.append(self.scaling.undo(matrix).numpy())
        return np.stack(drawn)

    def _given(self, cells: np.ndarray) -> SparseObserved:
        """The scaled cells of rows; those of the fit have their features and graphs."""
        if self.is_fit(cells):
            return self.used(cells, self.row_sides)
        return self.used(cells, ())

    def std(self, cells: np.ndarray) -> np.ndarray:
        """Standard deviation of each cell of rows, given the cells of the row."""
        given = self._given(cells)

        def of_draw(model: Any) -> tuple[Tensor, Tensor]:
            expected = solved(given, model) @ model.F.mT + model.offset
            variance = model.variance(given.starts, given.cols)
            noise, at = torch.ones_like(variance[:1]), (given.rows, given.cols)
            if model.relative is not None:
                in_row = _noise_of_rows(model, given, expected[at], variance[at])
                noise = in_row[:, None] / model.relative
            return expected, model.noise * (noise + variance)

        std = _deviation(of_draw(model) for model in self.models)
        unscaled = (std * self.scaling.scale).numpy()
        unscaled[:, self.statistics.empty_cols] = np.nan
        return unscaled

    def std_at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Standard deviation of cells of the fit, given the cells of the row."""
        asked, place = torch.from_numpy(rows).unique(return_inverse=True)
        j, given = torch.from_numpy(cols), self.cells_of(asked)

        def of_draw(model: Any, W: Tensor) -> tuple[Tensor, Tensor]:
            def predicted(i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
                values = torch.linalg.vecdot(W[i], model.F[j]) + model.offset[j]
                of_cells = given.starts, given.cols, (i, j), given.weights
                return values, model.variance_at(*of_cells)

            values, variance = predicted(place, j)
            noise = torch.ones_like(variance)
            if model.relative is not None:
                of_given = predicted(given.rows, given.cols)
                in_row = _noise_of_rows(model, given, *of_given)
                noise = in_row[place] / model.relative[j]
            return values, model.noise * (noise + variance)

        pairs = zip(self.models, self._factors_of(asked), strict=True)
        std = _deviation(of_draw(model, W) for model, W in pairs)
        scale = self.scaling.scale
        unscaled = (std * (scale[0, j] if scale.shape[1] > 1 else scale[0])).numpy()
        unscaled[self.statistics.empty_cols[cols]] = np.nan
        return unscaled


def _drawn(model: Any, given: SparseObserved, rng: np.random.RandomState) -> Tensor:
    """Draw all cells of rows: factors given the row's cells, then the noise."""

    def noise(n: int) -> Tensor:
        normal = torch.from_numpy(rng.standard_normal((given.shape[0], n)))
        return normal.to(model.F) * model.noise.sqrt()

    W = solved(given, model, noise(model.F.shape[1]))
    expected = W @ model.F.mT + model.offset
    added = noise(expected.shape[1])
    if model.relative is not None:
        predicted = expected[given.rows, given.cols]
        in_row = _noise_of_rows(model, given, predicted, torch.zeros_like(predicted))
        shape = (model.freedom + given.counts).double() / 2
        gamma = torch.from_numpy(rng.standard_gamma(shape.numpy())) / shape
        added = added * (in_row / gamma.to(in_row))[:, None].sqrt()
        added = added / model.relative.sqrt()
    return expected + added


def _noise_of_rows(
    model: Any, given: SparseObserved, predicted: Tensor, own: Tensor
) -> Tensor:
    """Relative variance of the noise of rows, from the residuals of their cells."""
    squares = (given.values - predicted).square() / model.noise + own
    sums = given.row_sums(squares * model.relative[given.cols])
    return (model.freedom + sums) / (model.freedom + given.counts)


def _deviation(draws: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    """Standard deviation of a mixture, from mean and variance of each component."""
    variance = mean = square = torch.zeros(())
    done = 1
    for done, (expected, of_draw) in enumerate(draws, start=1):
        variance = variance + of_draw
        # Welford's update: the expectations differ little.
        off = expected - mean
        mean = mean + off / done
        square = square + off * off * (done - 1) / done
    return ((variance + square) / done).sqrt()
