"""Bayesian factorization with biases, averaged over posterior samples."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import (
    CompleterTags,
    Recommends,
    SideInformed,
    Trials,
    joined_cols,
    joined_rows,
)
from skmc.cells import SparseObserved
from skmc.completers._rank import checked_rank
from skmc.completers.costs import Cost, Variant
from skmc.linalg import Randomness, RowModel
from skmc.solvers import Gibbs, Solver

RANK = 30


class BayesianFactorizationCompleter(Recommends, SideInformed):
    r"""Low-rank factors with biases, averaged over posterior samples: nothing to tune.

    .. math::

        M_{ij} = \text{mean} + u_i^\top v_j + b_i + c_j + e_{ij}

    Factors, biases and noise are Gaussian. Gibbs sampling also draws their means, their
    precision matrices and the variance of the noise; `skmc.solvers.gibbs.Gibbs` states
    the priors. The completion is the average over the draws of each row's expectation
    given the columns. It is more accurate than that of `FactorizationCompleter` and
    takes longer. `predict_std` returns the standard deviation of each cell. `fit` takes
    features and graphs of rows and columns, and rows or columns without an observed
    cell are answered from them.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or None, default=None
        Number of columns of ``U`` and ``V``. A rank that is too large does little harm.
        None is 30, or ``min(n_samples, n_features)`` if that is smaller.
    n_draws : int >= 1, default=120
        Number of draws that are averaged. Time and memory are proportional to it.
    n_burn_in : int >= 0, default=15
        Number of draws before those, which are discarded.
    implicit : bool, default=False
        Whether to model that *which* cells of a row are observed tells something about
        it, whatever their values, and likewise for columns. True suits ratings, as
        people rate what they chose. If cells are missing at random it costs time and a
        little accuracy.
    heteroscedastic : bool, default=False
        Whether the variance of the noise differs between rows and between columns. True
        suits ratings, as some people and some items are more predictable than others.
        The answer is then closest where the noise is small. In tables that no low rank
        describes, that costs accuracy elsewhere.
    {max_time}
        Draws made by then count; in the burn-in, the last of them does.
    {scaling}
        The priors are meant for data of variance 1; use None only for such data.
    {device}
    random_state : int, RandomState instance or None, default=None
        Draws everything.
    {reading}

    Attributes
    ----------
    rank_ : int
        The rank that was used.
    row_factors_, col_factors_ : ndarray of shape (n_samples, k), (n_features, k)
        Their product is the scaled completion; ``k = n_draws (rank + 1) + 1``, at the
        defaults 30 kB for each row and column. Computed at each access.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" (half the squared misfit of a draw) and "residual"
        (infinite: there is no optimum) at every draw.
    {n_iter_}
    status_ : {"max_iter", "max_time", "diverged", "interrupted"}
        How the fit ended; "max_iter" is the normal end.
    {input}

    Notes
    -----
    Rows get their expectation given their cells, averaged over the draws. With
    ``heteroscedastic``, their cells count by the precision of the noise in the columns,
    and that of the row counts as average.
    ``implicit`` adds a linear map of indicators, each 1 / sqrt(k) for k observed cells,
    to the means of rows and columns. This is our reading of what the papers leave open.
    Features and graphs are such linear maps, too (`skmc.cells.Side`): the precision of
    the map of features is a drawn multiple of the identity, and that of a graph's
    values is a drawn multiple of its Laplacian plus a tenth of the mean degree.

    Memory grows with the observed cells and with ``(n_samples + n_features) rank``;
    systems of rows are solved in blocks. ``reconstruction_`` and `transform` are dense.
    The fitted completer keeps the draws of the columns' factors, 30 kB for each column
    at the defaults and half of that in single precision, but no factors of rows: only
    the observed cells, 12 bytes each. Predictions solve the ``n_draws`` systems of each
    row that is asked for, whose solutions are those of the fit. A graph of rows adds
    the draws of its nodes' values, 30 kB for each row.

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
    advice = "ratings, when accuracy is worth the time; nothing to tune"
    cost = Cost(0.4, factors=6e-8, informed=2.0)
    stacked = (
        Variant("Bayesian"),
        Variant(
            "Bayesian, implicit",
            {"implicit": True, "heteroscedastic": True},
            Cost(0.5, factors=5e-8),
        ),
    )
    warn_at_max_iter = False
    tol = 0.0
    _parameter_constraints: ClassVar[dict] = {
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "n_burn_in": [Interval(Integral, 0, None, closed="left")],
        "implicit": ["boolean"],
        "heteroscedastic": ["boolean"],
    }

    def __init__(
        self,
        rank: int | None = None,
        *,
        n_draws: int = 120,
        n_burn_in: int = 15,
        implicit: bool = False,
        heteroscedastic: bool = False,
        max_time: float | None = None,
        scaling: Literal["auto", "columns", "global"] | None = "auto",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        keep_observed: bool = True,
    ) -> None:
        self.rank = rank
        self.n_draws = n_draws
        self.n_burn_in = n_burn_in
        self.implicit = implicit
        self.heteroscedastic = heteroscedastic
        self.max_time = max_time
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    @property
    def max_iter(self) -> int:
        """Number of all draws, including the burn-in."""
        return self.n_burn_in + self.n_draws

    def _choose(self, data: SparseObserved, trials: Trials) -> dict[str, Any]:
        if self.rank is None:
            return {"rank": min(RANK, *data.shape)}
        return {"rank": checked_rank(self.rank, data.shape, "None")}

    def _make_solver(
        self, data: SparseObserved, params: Any, rng: Randomness
    ) -> Solver:
        return Gibbs(
            rng,
            params.rank,
            params.n_burn_in,
            params.implicit,
            params.heteroscedastic,
        )

    def _kept_factors(
        self, data: SparseObserved, models: list[RowModel]
    ) -> dict[str, Any]:
        return {"_known_cells": (data.values, data.weights)}

    @property
    def row_factors_(self) -> np.ndarray:
        """Expectations of the rows' factors in all draws, computed at each access."""
        check_is_fitted(self)
        rows = torch.arange(self._shape[0])
        found: np.ndarray = joined_rows(list(self._factors_of(rows))).numpy()
        return found

    @property
    def col_factors_(self) -> np.ndarray:
        """The columns' factors in all draws, joined at each access."""
        check_is_fitted(self)
        found: np.ndarray = joined_cols(self._models).numpy()
        return found

    def _factors_of(self, rows: Tensor) -> Iterator[Tensor]:
        """Factors of some rows in each draw, from the cells and sides of the fit."""
        starts, cols = (torch.from_numpy(part).long() for part in self._seen)
        values, weights = self._known_cells
        rows = rows % self._shape[0]
        count = starts[rows + 1] - starts[rows]
        own = torch.cat([count.new_zeros(1), count.cumsum(0)])
        at = torch.arange(int(own[-1])) + (starts[rows] - own[:-1]).repeat_interleave(
            count
        )
        cells = own, cols[at], values[at]
        weights = None if weights is None else weights[at]
        for model in self._models:
            # A fit without features or graphs has no sides.
            pairs = zip(getattr(self, "_row_sides", ()), model.sides, strict=False)
            known = sum(side.mean(B, rows) for side, B in pairs)
            yield model.solve(*cells, known=known, weights=weights)

    def _whole_rows(self, rows: Tensor) -> Tensor:
        n_draws = len(self._models)
        whole = self._models[0].F.new_zeros(len(rows), self._shape[1])
        for model, W in zip(self._models, self._factors_of(rows), strict=True):
            whole += (W @ model.F.mT + model.offset) / n_draws
        return whole

    def _at(self, rows: Tensor, cols: Tensor) -> Tensor:
        asked, place = rows.unique(return_inverse=True)
        found = self._models[0].F.new_zeros(len(rows))
        for model, W in zip(self._models, self._factors_of(asked), strict=True):
            found += torch.linalg.vecdot(W[place], model.F[cols]) + model.offset[cols]
        return found / len(self._models)

    def predict_std(self, X: Any) -> np.ndarray:
        """Standard deviation of the cells that `transform` returns.

        The posterior variance of a cell is the mean over the draws of its variance
        given the row's cells, noise included, plus the variance over the draws of its
        expectation. With ``heteroscedastic``, the precision of the noise in a row is
        its expectation given the squared residuals of the row's cells, to which their
        variances are added.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, whether `fit` has seen them or not.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In the units of the columns. 0 for observed cells, except with
            ``keep_observed=False``. Columns without an observed cell in `fit` have NaN.
        """
        check_is_fitted(self)
        cells = self._read(X, reset=False)
        given, n_draws = self._given(cells), len(self._models)
        variance = torch.zeros(cells.shape, dtype=given.values.dtype)
        mean, square = torch.zeros_like(variance), torch.zeros_like(variance)
        at = given.rows, given.cols
        for done, model in enumerate(self._models, start=1):
            whole = given.solved(model) @ model.F.mT + model.offset
            own = model.variance(given.starts, given.cols)
            noise = torch.ones_like(variance[:1])
            if model.relative is not None and model.freedom is not None:
                squares = (given.values - whole[at]).square() / model.noise + own[at]
                sums = given.row_sums(squares * model.relative[given.cols])
                in_row = (model.freedom + sums) / (model.freedom + given.counts)
                noise = in_row[:, None] / model.relative
            variance += model.noise * (noise + own) / n_draws
            # Welford's update: the expectations differ little.
            off = whole - mean
            mean += off / done
            square += off * off * (done - 1) / done
        variance += square / n_draws
        std: np.ndarray = (variance.sqrt() * self._scaling.scale).numpy()
        if self.keep_observed:
            std[~np.isnan(cells)] = 0.0
        std[:, self._priors.empty_cols] = np.nan
        return std.astype(cells.dtype, copy=False)
