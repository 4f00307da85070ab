"""A low-rank matrix transformed by one learned pointwise function, the link."""

from __future__ import annotations

import copy
import math
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import (
    Choice,
    CompleterTags,
    Completion,
    IterativeCompleter,
    TakesWeights,
    Trials,
)
from skmc.cells import Given, Observed
from skmc.completers._rank import RANKS, WITH_MEAN, choose_rank
from skmc.linalg import Randomness, full_svd, seed_of
from skmc.loop import OutOfTime, solve_part
from skmc.models import LinkedFactorization
from skmc.new_rows import EmbeddedRows
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import Descent, HardRank, Result, Solver
from skmc.terms import SquaredError, SquaredNorm

N_UNITS = 16
SVD_STEPS = 50  # iterations of the initial SVD
TRIAL_SHARE = 3 / 8  # share of max_iter for the trial of a rank or a weight
RIDGES = (100.0, 10.0, 1.0, 0.1, 0.0)
TYPICAL_RIDGE = 0.1  # of fits that compare two scalings


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkedResult(Result):
    """A completion and its model."""

    model: LinkedFactorization


class _LinkedDescent(Descent):
    """Descent that keeps the model, to complete new rows."""

    def result(self, state: Any) -> LinkedResult:  # type: ignore[override]
        return LinkedResult(X=state.X, model=copy.deepcopy(state.model))


class LinkedFactorizationCompleter(TakesWeights, IterativeCompleter):
    r"""Fit a low-rank matrix under one nonlinear function of its cells.

    For floors, ceilings, counts and saturating sensors: `link` shows the learned
    function. Not for columns with different units.

    .. math::

        \min \tfrac{1}{2} \|P(f(U V^\top) - M)\|_F^2
        + \tfrac{\lambda}{2} (\|U\|_F^2 + \|V\|_F^2),
        \qquad f(c) = a c + b + \sum_{j=1}^{16} h_j \tanh(s_j c + t_j)

    The first term is half a *sum* over the observed cells of the scaled data, which
    :math:`P` selects. :math:`f` is a function of one number, applied to every cell and
    learned together with ``U`` and ``V``. If the data contain such a link, completion
    is nearly exact at ranks at which a linear model is not. Otherwise :math:`f` stays
    nearly linear, and the completion stays near the truncated SVD. The fit starts at
    this SVD and at :math:`f(c) = c`.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or "auto", default="auto"
        Number of columns of ``U`` and ``V``. "auto" tries ranks from half to twice the
        choice of `SVDCompleter` and takes the best on a held-out tenth of the observed
        cells. 0, the means alone, is chosen if these complete the cells best.
    lambda_ridge : float >= 0 or "auto", default="auto"
        Weight :math:`\lambda` of half the squared norms of the factors. Values
        to try: .1, 1, 10, 100 (relative to data of variance 1; the misfit is a sum over
        all cells, so larger matrices need larger values). "auto"
        tries 100, 10, 1, .1 and 0 on a held-out tenth of the observed cells, before
        ``rank`` is chosen, and again if that is not `SVDCompleter`'s choice. A link
        is only found with a small weight; noise and few cells need a large one.
    lr : float > 0, default=0.03
        Learning rate of Adam, decayed to zero by a cosine over ``max_iter`` steps.
    max_iter : int >= 1, default=400
        Number of steps of Adam. Trials of "auto" take three eighths of it.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-6
        Stop when ``|dF/dW| |W| / (|X| |P(M)|)`` is at most ``tol``, for the objective
        ``F`` and all parameters ``W``.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. None leaves the data unscaled. With
        "columns", one link acts on all standardized columns; with "global", on cells of
        one unit. "auto" is "global" for `Entries` and sparse matrices. For arrays and
        data frames, it compares brief fits with both on held-out cells, in deviations
        of the columns.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial link and the held-out cells of "auto".
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
    latent_ : ndarray of shape (n_samples, n_features)
        Latent matrix :math:`U V^\top`, determined up to an affine map.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The completion ``f(latent_)`` in the data's units.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every 25th iteration.
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
    FactorizationCompleter : Low rank without a link function.
    NSRCompleter : A network for each column.

    Notes
    -----
    `transform` fits the ``rank`` numbers of a new row to its observed cells. The link
    and ``V`` are fixed, and the prior has the fitted rows' mean and covariance.

    Memory grows with ``n_samples n_features`` and ``(n_samples + n_features) rank``;
    the link is applied to cells in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import LinkedFactorizationCompleter
    >>> rng = np.random.RandomState(0)
    >>> M = np.exp(rng.uniform(-1, 1, (40, 1)) @ rng.uniform(-1, 1, (1, 30)))
    >>> X = np.where(rng.uniform(size=M.shape) < 0.3, np.nan, M)
    >>> completer = LinkedFactorizationCompleter(1, scaling="global", random_state=0)
    >>> completer = completer.fit(X)
    >>> bool(np.abs(completer.reconstruction_ - M)[np.isnan(X)].mean() < 0.01)
    True
    """

    completer_tags = CompleterTags(
        recovers=0.02, batched=("lambda_ridge", "random_state")
    )
    step_parameter = "lr"
    chosen = ("rank", "lambda_ridge", "scaling")
    may_underfit = True
    warn_at_max_iter = False  # the learning rate's schedule ends there

    rank: Count | Literal["auto"] = "auto"
    lambda_ridge: NonNegative | Literal["auto"] = "auto"
    _: KW_ONLY
    lr: Positive = 0.03
    max_iter: Count = 400
    max_time: Positive | None = None
    tol: NonNegative = 1e-6
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    _fitted: Completion = field(init=False)

    rank_: int = field(init=False)
    lambda_ridge_: float = field(init=False)
    latent_: np.ndarray = field(init=False)

    def _in_best_units(self, given: Given) -> Given:
        if self.scaling != "auto" or given.scaling.scale.shape[-1] == 1:
            return given
        # One function of all columns is lost if each of them gets its own unit.
        plain = replace(given.data, values=given.scaling.undo(given.data.values))
        shared = plain.scaling_of("global")
        of_all = replace(given, data=plain.scaled(shared), scaling=shared)
        with suppress(OutOfTime):
            errors = [self._trial_error(one, given) for one in (given, of_all)]
            return of_all if errors[1] < errors[0] else given
        return given

    def _trial_error(self, given: Given, by_column: Given) -> float:
        """Squared error of a brief fit on held-out cells, in columns' deviations."""
        seed = seed_of(self.random_state)
        rng = Randomness.of([seed], dtype=given.data.dtype)
        first = None if given.layout is None else given.first_columns
        trials = self._trials(given.data, seed, rng, first, given)
        train, held_out = trials.cells
        if trials.interrupted:
            raise KeyboardInterrupt
        if held_out is None:
            return 0.0
        rank = choose_rank(self.rank, given.data, trials, ranks=WITH_MEAN).params[
            "rank"
        ]
        if not rank and given is not by_column:
            return math.inf  # the mean of all cells is no model of a column
        ridge = TYPICAL_RIDGE if self.lambda_ridge == "auto" else self.lambda_ridge
        brief = max(1, int(TRIAL_SHARE * self.max_iter))
        tried = {"rank": rank, "lambda_ridge": ridge, "max_iter": brief}
        solver = self._make_solver(train, self._params(tried), trials.rng)
        X = trials.run(solver, max_iter=brief).X
        deviations = by_column.scaling.scale
        ratio = torch.where(deviations > 0, given.scaling.scale / deviations, 0.0)
        errors = (X - held_out.values) * ratio.to(X)
        return float(errors[held_out.mask].square().sum())

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        choice = choose_rank(self.rank, data, trials, ranks=WITH_MEAN)
        first = rank = choice.params["rank"]
        if not rank:  # the means are better
            ridge = 0.0 if self.lambda_ridge == "auto" else self.lambda_ridge
            return Choice({"rank": rank, "lambda_ridge": ridge})
        ridges = RIDGES if self.lambda_ridge == "auto" else (self.lambda_ridge,)
        brief = max(1, int(TRIAL_SHARE * self.max_iter))

        def solver_of(pair: tuple[int, float], train: Observed) -> Solver:
            tried = {"rank": pair[0], "lambda_ridge": pair[1], "max_iter": brief}
            return self._make_solver(train, self._params(tried), trials.rng)

        def best(pairs: list[tuple[int, float]]) -> tuple[int, float]:
            if len(pairs) == 1:
                return pairs[0]
            return trials.best(pairs, solver_of, max_iter=brief)

        _, ridge = best([(first, ridge) for ridge in ridges])
        if self.rank == "auto":
            most = min(2 * first, *data.shape)
            rank, _ = best([(r, ridge) for r in RANKS if first <= 2 * r and r <= most])
            if rank != first:
                _, ridge = best([(rank, ridge) for ridge in ridges])
        return Choice({"rank": rank, "lambda_ridge": ridge})

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        first = HardRank(params.rank)
        if not params.rank:
            return first
        start = solve_part(first, data, max_iter=SVD_STEPS, tol=params.tol)
        svd = full_svd(start.X).first(params.rank)
        root = svd.s.sqrt()
        # All trials start with the same units of the link.
        model = LinkedFactorization.nearly_linear(
            (svd.U * root[..., None, :]).contiguous(),
            (svd.V * root[..., None, :]).contiguous(),
            N_UNITS,
            rng.stream(0),
        )
        ridge = SquaredNorm(params.lambda_ridge).to(data.values)
        return _LinkedDescent(
            model,
            [SquaredError(data)],
            penalties={"U": ridge, "V": ridge},
            lr=params.lr,
            horizon=params.max_iter,
        )

    def _units_per_cell(self, n_cols: int) -> float:
        return N_UNITS

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        fitted, latent = super()._attributes(given, result), result.X
        if isinstance(result, LinkedResult):  # not if interrupted before the first one
            latent = result.model.latent().detach()
        return {**fitted, "latent_": latent.cpu().numpy().astype(given.cells.dtype)}

    def _row_map(self, result: Result, data: Observed) -> Any:
        if not isinstance(result, LinkedResult):
            return super()._row_map(result, data)
        return EmbeddedRows.of(result.model, result.model.U.detach(), result.X, data)

    def link(self, latent: Tensor) -> np.ndarray:
        """Apply the link to latent values and return to the data's units.

        Parameters
        ----------
        latent : array-like
            Latent values on the scale of ``latent_``, of any shape for
            ``scaling="global"`` or None, otherwise of shape (n, n_features).

        Returns
        -------
        ndarray of float64, of the same shape
        """
        check_is_fitted(self)
        z = torch.from_numpy(np.array(latent, float, order="C"))
        rows = self._fitted.row_map
        n_units = rows.scaling.scale.shape[-1]
        if n_units > 1 and z.shape[-1:] != (n_units,):
            raise ValueError(
                f"latent has shape {tuple(z.shape)}, but with scaling="
                f"{self.scaling!r} each column has its own unit: it must be (n, "
                f"{n_units})."
            )
        model = getattr(rows.folded, "decoder", None)
        # None if interrupted before the first model.
        cells = z if model is None else model.link_and_slope(z)[0]
        return rows.scaling.undo(cells).numpy().reshape(z.shape)
