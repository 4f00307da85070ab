"""Networks with few weights for each column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, field
from typing import Literal

import torch
from torch import Tensor

from skmc.base import Choice, CompleterTags, IterativeCompleter, TakesWeights, Trials
from skmc.cells import Observed
from skmc.completers._rank import WITH_MEAN, choose_rank
from skmc.linalg import Randomness, full_svd
from skmc.loop import solve_part
from skmc.models import SkipNetwork
from skmc.new_rows import EmbeddedRows
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import CodeDescent, CodeResult, HardRank, Result, Solver
from skmc.terms import L1Norm, SquaredNorm

SVD_STEPS = 50  # iterations of the initial SVD
MAX_UNITS = 1000
DECODER_WEIGHTS = (32.0, 8.0, 2.0)
TRIAL_SHARE = 1 / 2  # of max_iter for a trial; shorter ones prefer large weights


class NSRCompleter(TakesWeights, IterativeCompleter):
    r"""Train a network with few weights for each column and a linear skip connection.

    For dense tables whose columns each follow a different nonlinear function; not for
    tables with four fifths of the cells missing.

    The network has one wide layer, :math:`f(x) = \tanh(c W + b) D + c S + a` with the
    code :math:`c = x E`:

    .. math::

        \min \tfrac{1}{2} \|P(f(\tilde X) - M)\|_F^2 + \lambda_D \|D\|_1
        + \tfrac{\lambda_E}{2} \|E\|_F^2 + \tfrac{\lambda_S}{2} \|S\|_F^2

    All terms are *sums*, over the observed cells of the scaled data (:math:`P` selects
    them) and over weights. :math:`\tilde X` holds the observed cells, and learned
    numbers where cells are missing. The fit starts at the truncated SVD of rank
    ``rank`` and adds the nonlinear part. The l1 norm leaves few units to each column,
    which keeps the network from fitting noise.

    The method is that of this package. It shares only the idea of sparsity with
    DNN-NSR, which `GradualNSRCompleter` implements as published.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or "auto", default="auto"
        Size of the code. "auto" is the rank that `SVDCompleter` chooses on held-out
        cells; 0 is the means alone.
    n_units : int >= 1 or None, default=None
        Width of the layer. None is ``4 n_features``, at most 1000.
    lambda_decoder : float >= 0 or "auto", default="auto"
        Weight of :math:`\|D\|_1`. Values to try: .5, 2, 8, 32 (relative to data of
        variance 1). "auto" tries 32, 8 and 2 on a held-out tenth of the
        observed cells, with half of ``max_iter`` epochs each.
    lambda_encoder : float >= 0, default=2.0
        Weight of half of :math:`\|E\|_F^2`. Values to try: .2, 2, 20, 200 (relative to
        data of variance 1); the result hardly depends on it.
    lambda_skip : float >= 0, default=0.2
        Weight of half of :math:`\|S\|_F^2`. Values to try: .02, .2, 2, 20 (relative to
        data of variance 1); the result hardly depends on it.
    lr : float > 0, default=0.01
        Learning rate of Adam, which rises over a tenth of ``max_iter`` epochs and
        decays to zero by a cosine. Without the rise, the units settle before
        they have found the columns that they serve.
    batch_size : int >= 1, default=1000
        Number of rows of a mini-batch.
    max_iter : int >= 1, default=400
        Number of epochs. The fit normally ends there, as does the schedule.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-4
        Stops when ``|dF/dW| |W| / (|X| |P(M)|)`` is at most ``tol``, for the objective
        ``F`` and all parameters ``W``.
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
        Seed of the initial weights, the held-out cells of "auto" and the mini-batches.
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
    rank_, lambda_decoder_ : int, float
        The values that were used.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every 25th epoch.
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
    GradualNSRCompleter : The published form of the idea.
    LinkedFactorizationCompleter : One link function for all columns.
    AutoencoderCompleter : One network for all columns, for many rows.

    Notes
    -----
    `transform` fits the code of a new row to its observed cells; the network is fixed
    and the fitted rows' codes are the prior (`skmc.new_rows.EmbeddedRows`).

    Memory grows with ``n_samples n_features``: rows pass through the network in
    mini-batches.

    References
    ----------
    Faramarzi, Haddadi, Amini, Ahookhosh. Matrix completion via nonsmooth
    regularization of fully connected neural networks. arXiv:2403.10232 (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import NSRCompleter
    >>> X = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    >>> X[11, 9] = np.nan
    >>> NSRCompleter(rank=1, random_state=0).fit_transform(X)[11, 9].round()
    np.float64(120.0)
    """

    completer_tags = CompleterTags(
        recovers=0.5,
        batched=("lambda_decoder", "lambda_encoder", "lambda_skip", "random_state"),
    )
    step_parameter = "lr"
    chosen = ("rank", "lambda_decoder")
    may_underfit = True
    warn_at_max_iter = False  # the schedule ends there

    _: KW_ONLY
    rank: Count | Literal["auto"] = "auto"
    n_units: Count | None = None
    lambda_decoder: NonNegative | Literal["auto"] = "auto"
    lambda_encoder: NonNegative = 2.0
    lambda_skip: NonNegative = 0.2
    lr: Positive = 0.01
    batch_size: Count = 1000
    max_iter: Count = 400
    max_time: Positive | None = None
    tol: NonNegative = 1e-4
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    rank_: int = field(init=False)
    lambda_decoder_: float = field(init=False)

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        choice = choose_rank(self.rank, data, trials, ranks=WITH_MEAN)
        rank, weight = choice.params["rank"], self.lambda_decoder
        if not rank:  # the means are better
            weight = 0.0 if weight == "auto" else weight
        if weight == "auto":
            brief = max(1, int(TRIAL_SHARE * self.max_iter))
            tried = {"rank": rank, "max_iter": brief}
            weight = trials.best(
                DECODER_WEIGHTS,
                lambda weight, train: self._make_solver(
                    train, self._params({**tried, "lambda_decoder": weight}), trials.rng
                ),
                max_iter=brief,
            )
        return Choice({"rank": rank, "lambda_decoder": weight})

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        if not params.rank:
            return HardRank(0)
        horizon = params.max_iter
        start = solve_part(HardRank(params.rank), data, max_iter=SVD_STEPS)
        # All trials start with the same units.
        network = SkipNetwork.from_svd(
            full_svd(start.X).first(params.rank),
            data.values,
            params.lambda_encoder,
            self._n_units(data.shape[1]),
            rng.stream(0),
        )
        penalties = {
            "decoder": L1Norm(params.lambda_decoder),
            "encoder": SquaredNorm(params.lambda_encoder),
            "skip": SquaredNorm(params.lambda_skip),
        }
        return CodeDescent(
            network,
            {name: term.to(data.values) for name, term in penalties.items()},
            lr=self.lr,
            horizon=horizon,
            warm_up=max(1, horizon // 10),
            batch_size=self.batch_size,
            rng=rng.stream(1),
            free=True,
        )

    def _n_units(self, n_cols: int) -> int:
        return self.n_units or min(4 * n_cols, MAX_UNITS)

    def _units_per_cell(self, n_cols: int) -> float:
        return self._n_units(n_cols) / n_cols

    def _row_map(
        self, result: Result, data: Observed
    ) -> Callable[[Tensor, Tensor], Tensor]:
        if not isinstance(result, CodeResult):  # interrupted before the first network
            return super()._row_map(result, data)
        return EmbeddedRows.of(result.network, result.codes, result.X, data)
