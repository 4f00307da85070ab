"""Bi-branch neural networks (BiBNN)."""

from __future__ import annotations

from dataclasses import KW_ONLY, field, replace
from typing import Literal

import torch

from skmc.base import Choice, CompleterTags, IterativeCompleter, TakesWeights, Trials
from skmc.cells import Observed
from skmc.completers._rank import WITH_MEAN, choose_rank
from skmc.linalg import Randomness
from skmc.models import BiBranch, Branch, checked_widths
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Share, Widths
from skmc.solvers import Descent, HardRank, Solver
from skmc.terms import SquaredError


class BiBNNCompleter(TakesWeights, IterativeCompleter):
    r"""Multiply the outputs of two networks, one for rows and one for columns (BiBNN).

    For comparisons with neural networks; not for new rows, and not for low errors.

    .. math::

        \min \tfrac{1}{2} \|P(X - M)\|_F^2
        \quad\text{over } X_{ij} = \langle f(e_i), g(e_j) \rangle

    This is half a *sum* over the observed cells of the scaled data, which :math:`P`
    selects. :math:`f` takes the number of the row as a one-hot vector, :math:`g` that
    of the column. Each has the hidden layers ``hidden`` (tanh) and a linear output of
    size ``rank``. Without a hidden layer this is plain factorization,
    :math:`X = U V^\top`. Only the size of the networks and early stopping regularize.
    If the scaling subtracts the means of columns, ``X`` also has the means of its
    residuals, which are free. Only the paper's abstract is public: everything beyond
    two branches is our choice.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or "auto", default="auto"
        Size of both outputs, which bounds the rank of the completion. "auto" is the
        rank that `SVDCompleter` chooses on held-out cells: with few cells, a size of 20
        overfits before the rest is learned. 0 is the means alone.
    hidden : tuple of int >= 1, default=(256,)
        Widths of the hidden layers of each branch; () has none.
    lr : float > 0, default=0.003
        Learning rate of Adam, decayed to zero by a cosine over ``max_iter`` steps.
    init_scale : float > 0, default=0.03
        Standard deviation of the initial entries of the first layer (of ``U`` and ``V``
        without a hidden layer). Further weights have variance ``1 / fan_in``.
    max_iter : int >= 1, default=1000
        Number of steps of Adam.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-6
        Stop when ``|dF/dW| |W| / (|X| |P(M)|)`` is at most ``tol``, for the objective
        ``F`` and all weights ``W``.
    early_stopping : bool, default=True
        Whether to hold out ``validation_fraction`` of the observed cells, keep the
        iterate that completes them best, and stop after ``n_iter_no_change`` iterations
        without a better one. Each row and column keeps a cell to train on.
        Without it the network eventually fits noise.
    validation_fraction : float in (0, 1), default=0.05
        Share of the observed cells that ``early_stopping`` holds out.
    n_iter_no_change : int >= 1, default=250
        Iterations without a better iterate after which ``early_stopping`` stops. The
        held-out error is computed every 25 iterations.
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
        Seed of the initial weights and the held-out cells.
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
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.
    history_ : dict of ndarray
        "n_iter", "objective", "residual" and "validation", the root mean square over
        held-out cells of the scaled data, at every 25th iteration.
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
    FactorizationCompleter : Factors without networks.
    NSRCompleter : A network for each column.

    Notes
    -----
    A row that was not in `fit` has no number. `transform` fits its embedding, a vector
    in place of ``f(e_i)``, to its observed cells by ridge regression on the span of the
    columns' vectors, see `skmc.new_rows.FoldIn`.

    Memory grows with ``n_samples n_features`` and with ``(n_samples + n_features)
    max(hidden)``, a dozen numbers each: for a narrow table with the default width,
    mostly with the latter.

    References
    ----------
    Li, Wang, So. An interpretable bi-branch neural network for matrix completion.
    Signal Processing 200 (2022).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import BiBNNCompleter
    >>> X = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    >>> X[11, 9] = np.nan
    >>> completed = BiBNNCompleter(rank=2, random_state=0).fit_transform(X)
    >>> bool(110 < completed[11, 9] < 130)
    True
    """

    completer_tags = CompleterTags(recovers=0.001)
    step_parameter = "lr"
    may_underfit = True
    warn_at_max_iter = False  # the learning rate's schedule ends there

    rank: Count | Literal["auto"] = "auto"
    hidden: Widths = (256,)
    _: KW_ONLY
    lr: Positive = 0.003
    init_scale: Positive = 0.03
    max_iter: Count = 1000
    max_time: Positive | None = None
    tol: NonNegative = 1e-6
    early_stopping: bool = True
    validation_fraction: Share = 0.05
    n_iter_no_change: Count = 250
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    rank_: int = field(init=False)

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        choice = choose_rank(self.rank, data, trials, ranks=WITH_MEAN)
        return replace(choice, noise=None)

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        if not params.rank:  # the means are better
            return HardRank(0)
        hidden = checked_widths(params.hidden, fewest=0)
        rows, cols = (
            Branch.random([size, *hidden, params.rank], params.init_scale, rng)
            for size in data.shape
        )
        terms = [SquaredError(data)]
        model = BiBranch(rows, cols)
        return Descent(
            model,
            terms,
            lr=params.lr,
            horizon=params.max_iter,
            free_means=data.free_means,
        )
