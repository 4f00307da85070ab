"""Autoencoders that learn their missing inputs together with their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, field
from typing import Any, Literal

import torch
from torch import Tensor

from skmc.base import (
    Choice,
    CompleterTags,
    IterativeCompleter,
    TakesWeights,
    Trials,
)
from skmc.cells import Cells, Observed
from skmc.linalg import Randomness
from skmc.loop import solve_part
from skmc.models import Autoencoder, checked_widths
from skmc.new_rows import LearnedInputs
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Share, Widths
from skmc.solvers import NetworkResult, Result, RowDescent, Solver
from skmc.terms import SquaredNorm

# Values from .1 to 1 give equal results; the paper's 4 saturates the units.
GAIN = 0.3
WEIGHTS = 0.3, 0.03
TRIAL_SHARE = 0.5  # of max_iter, for the trial of a weight


class AutoencoderCompleter(TakesWeights, IterativeCompleter):
    r"""Reconstruct each row from a few hidden units (AEMC; with several layers, DLMC).

    For many rows that depend nonlinearly on a few factors; not for few rows or for
    ratings. The model is an autoencoder of rows with missing cells:

    .. math::

        \min \frac{1}{2n} \|P(f(\tilde X) - M)\|_F^2
        + \frac{\lambda_{\text{weights}}}{2} \sum_i \|W_i\|_F^2

    over the weights :math:`W_i` and biases of the network :math:`f` and over the
    missing cells of its input :math:`\tilde X`, whose other cells are those of
    :math:`M`. The first term is half a *sum* over the observed cells of the scaled data
    (:math:`P` selects them), divided by the number of rows :math:`n`. The second is
    half a *sum* of squared weights; biases are not penalized. Rows are samples (columns
    in the paper). Missing inputs start at zero and are not targets: their gradient
    comes through the network. The completion is :math:`f(\tilde X)`. Hidden units apply
    ``1.7159 tanh(2a/3)``; outputs are linear.

    With several hidden layers, an autoencoder with one hidden layer is trained first,
    then one on its codes, and so on. They are nested and trained together as above,
    with :math:`\tilde X` starting from the completion by the first.

    Ours: Adam in mini-batches of rows (the paper uses nonlinear conjugate gradients);
    early stopping; the defaults (the paper's ``lambda_weights`` of 1e-3 overfits);
    initial weights that are uniform in ``+-.3 sqrt(6 / (fan_in + fan_out))`` (the
    paper's 4 instead of .3 saturates the units); for inner autoencoders, whose data are
    codes, ``lambda_weights`` times the mean square of these codes.

    Parameters
    ----------
    hidden : sequence of int >= 1, default=(100,)
        Widths of the encoder's layers. The decoder mirrors them: (100, 50) is
        100-50-100.
    lambda_weights : float >= 0 or "auto", default="auto"
        Weight of half the sum of squares of all weights. Values to try: .03, .1, .3, 1
        (relative to the misfit of a row of variance 1 in each column). "auto" tries .3
        and .03 on a held-out tenth of the observed cells, in half of ``max_iter``
        epochs each. With several layers, 0.1 is better for pictures.
    lr : float > 0, default=0.01
        Adam's initial learning rate, decayed to zero by a cosine over ``max_iter``
        epochs. 0.003 is better for ratings.
    batch_size : int >= 1, default=100
        Number of rows of a mini-batch. Rows are assigned to mini-batches at random,
        once.
    max_iter : int >= 1, default=500
        Number of epochs, which are passes over all rows, for each stage of training.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-6
        Stop when ``|dF/dW| |W| / (|X| |P(M)|)`` is at most ``tol``, for the objective
        ``F`` and all parameters ``W``.
    early_stopping : bool, default=True
        Whether to hold out ``validation_fraction`` of the observed cells, keep the
        iterate that completes them best, and stop after ``n_iter_no_change`` iterations
        without a better one. Each row and column keeps a cell to train on.
    validation_fraction : float in (0, 1), default=0.05
        Share of the observed cells that ``early_stopping`` holds out.
    n_iter_no_change : int >= 1, default=100
        Iterations without a better iterate after which ``early_stopping`` stops. The
        held-out error is computed every 25 iterations.
        An iteration is an epoch.
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
        Seed of the initial weights, the mini-batches and the held-out cells.
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
    lambda_weights_ : float
        The weight that was used.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.
    history_ : dict of ndarray
        "n_iter", "objective" (``n`` times the formula), "residual" (and "validation",
        the root mean square over held-out cells of the scaled data) at every 25th
        iteration.
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
    NSRCompleter : One network per column.
    skmc.AutoCompleter : Compares methods and combines the best ones.

    Notes
    -----
    New rows pass through the network. Their missing inputs are fitted to their observed
    cells by `skmc.new_rows.LearnedInputs`.

    Memory grows with ``n_samples n_features``. Rows pass through the network in
    mini-batches, so its layers add nothing that grows with the rows.

    References
    ----------
    Fan, Chow. Deep learning based matrix completion. Neurocomputing 266 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import AutoencoderCompleter
    >>> t = np.linspace(-1, 1, 200)[:, None]
    >>> X = np.tanh(2 * t * np.linspace(0.5, 1.5, 8))
    >>> holes = X.copy()
    >>> holes[150, 3] = np.nan
    >>> completer = AutoencoderCompleter(random_state=0)
    >>> abs(completer.fit_transform(holes)[150, 3] - X[150, 3]) < 0.1
    np.True_
    """

    completer_tags = CompleterTags(
        recovers=0.03, batched=("lambda_weights", "random_state")
    )
    step_parameter = "lr"
    may_underfit = True
    warn_at_max_iter = False  # the learning rate's schedule ends there
    chosen = ("lambda_weights",)

    hidden: Widths = (100,)
    lambda_weights: NonNegative | Literal["auto"] = "auto"
    _: KW_ONLY
    lr: Positive = 0.01
    batch_size: Count = 100
    max_iter: Count = 500
    max_time: Positive | None = None
    tol: NonNegative = 1e-6
    early_stopping: bool = True
    validation_fraction: Share = 0.05
    n_iter_no_change: Count = 100
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    lambda_weights_: float = field(init=False)

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        if self.lambda_weights != "auto":
            return Choice({"lambda_weights": self.lambda_weights})
        brief = max(1, int(TRIAL_SHARE * self.max_iter))

        def solver_of(weight: float, train: Observed) -> Solver:
            params = {"lambda_weights": weight, "max_iter": brief}
            return self._make_solver(train, self._params(params), trials.rng)

        weight = trials.best(WEIGHTS, solver_of, max_iter=brief)
        return Choice({"lambda_weights": weight})

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        widths = checked_widths(params.hidden)
        n_cols = data.shape[1]
        network = Autoencoder.random([n_cols, widths[0], n_cols], rng, gain=GAIN)
        solver = self._descent(params, network, data, rng, free=True)
        if len(widths) == 1:
            return solver
        first = self._train(solver, data)
        inputs = data.fill(first.X)
        network = nested(self._shells(params, first.network, inputs, rng))
        return self._descent(params, network, data, rng, free=True, inputs=inputs)

    def _shells(
        self,
        params: Params,
        first: Autoencoder,
        inputs: Tensor,
        rng: Randomness,
    ) -> list[Autoencoder]:
        """The autoencoders of the rows, of their codes, of the codes of these, ..."""
        shells, codes = [first], inputs
        for outer, inner in zip(self.hidden, self.hidden[1:], strict=False):
            with torch.no_grad():
                codes = shells[-1].hidden(codes)[0]
            data = Observed(codes, torch.ones_like(codes, dtype=torch.bool))
            network = Autoencoder.random(
                [outer, inner, outer], rng, gain=GAIN, bent_output=True
            )
            unit = codes.double().square().mean((-2, -1))
            solver = self._descent(params, network, data, rng, unit=unit)
            trained = self._train(solver, data)
            shells.append(trained.network)
        return shells

    def _descent(
        self,
        params: Params,
        network: Autoencoder,
        data: Observed,
        rng: Randomness,
        *,
        unit: float | Tensor = 1.0,
        **inputs: Any,
    ) -> RowDescent:
        # The solver's loss is a sum, n times the paper's loss.
        weight = params.lambda_weights * unit * data.shape[0]
        decay = SquaredNorm(weight).to(data.values)
        return RowDescent(
            network,
            {f"weights.{i}": decay for i in range(len(network.weights))},
            lr=self.lr,
            horizon=params.max_iter,
            batch_size=self.batch_size,
            rng=rng,
            **inputs,
        )

    def _units_per_cell(self, n_cols: int) -> float:
        return 2 * sum(self.hidden) / n_cols

    def _train(self, solver: RowDescent, data: Observed) -> NetworkResult:
        solution = solve_part(
            solver,
            data,
            max_iter=solver.horizon,
            tol=self.tol,
            check_every=self.check_every,
        )
        network: NetworkResult = solution.result
        return network

    def _row_map(self, result: Result, data: Cells) -> Any:
        if not isinstance(result, NetworkResult):  # interrupted before the first one
            return super()._row_map(result, data)
        return LearnedInputs(result.network)


def nested(shells: Sequence[Autoencoder]) -> Autoencoder:
    """Nest autoencoders: all encoders, then the decoders in reverse order."""
    order = [(shell, 0) for shell in shells] + [(s, 1) for s in reversed(shells)]
    return Autoencoder(
        [shell.weights[i] for shell, i in order],
        [shell.biases[i] for shell, i in order],
    )
