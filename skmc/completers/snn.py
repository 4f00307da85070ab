"""Spectral neural network (SNN)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

import torch

from skmc.base import CompleterTags, IterativeCompleter, TakesWeights
from skmc.cells import Observed
from skmc.linalg import ACTIVATIONS, Randomness
from skmc.models import SpectralNetwork, checked_widths
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Share, Widths
from skmc.solvers import GradientFlow, Solver
from skmc.terms import SquaredError


class SNNCompleter(TakesWeights, IterativeCompleter):
    r"""Fit matrices whose singular values pass through an activation (SNN).

    For matrices of low rank with little or no noise, and pictures: there is nothing to
    tune. Not for much noise or large holes. The model is a spectral neural network:

    .. math::

        \min \tfrac{1}{2} \|P(X - M)\|_F^2
        \quad\text{over } X = c \sum_k \alpha_k \Gamma(U_k V_k^\top)

    This is half a *sum* over the observed cells of the scaled data, which :math:`P`
    selects. :math:`\Gamma(U \operatorname{diag}(s) V^\top) = U
    \operatorname{diag}(\gamma(s)) V^\top`, and all :math:`\alpha_k`, :math:`U_k` and
    :math:`V_k` are learned. Nothing bounds the rank: gradient flow from near zero makes
    large singular values grow first, and is stopped early. The constant :math:`c` is
    the largest singular value of :math:`P(M)` divided by the share of observed cells.

    Parameters
    ----------
    layers : sequence of int >= 1, default=(2,)
        Number of matrices in each layer. (K,) is the formula above. With (K, L, ...)
        each of the ``L`` matrices of the second layer is such a sum with its own
        coefficients, to which the next layer applies :math:`\Gamma` again. The matrices
        of the last layer are added up to ``X``.
    activation : {"tanh", "sigmoid", "truncated_relu"}, default="tanh"
        :math:`\gamma`: ``tanh(s)``, ``2 / (1 + exp(-s)) - 1`` or ``min(s, 1)``. The
        sigmoid is shifted to vanish at zero: if :math:`\gamma(0) > 0`, :math:`\Gamma`
        would jump where a singular value vanishes.
    init : {"near_zero", "spectral"}, default="near_zero"
        "near_zero": ``U_k`` and ``V_k`` are 1e-4 on the diagonal, plus noise of 1e-6.
        "spectral": ``X`` starts near 1e-8 times the observed cells, zero elsewhere,
        with ``U_k`` and ``V_k`` along their singular vectors. With larger factors than
        1e-8 the zeros persist. In both, :math:`\alpha` is uniform between 0 and 1.
    width : int >= 1 or None, default=None
        Number of columns of each ``U_k`` and ``V_k``. None is ``min(n_samples,
        n_features)``, which is also the maximum for "spectral".
    max_iter : int >= 1, default=2000
        Maximum number of steps of gradient flow. Their length is adaptive, see
        `skmc.solvers.gradient_flow.GradientFlow`.
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
        Without it the factorization eventually fits noise.
    validation_fraction : float in (0, 1), default=0.05
        Share of the observed cells that ``early_stopping`` holds out.
    n_iter_no_change : int >= 1, default=250
        Iterations without a better iterate after which ``early_stopping`` stops. The
        held-out error is computed every 25 iterations.
    warm_start : bool, default=False
        Whether to start from the solution of the last `fit`, whose matrix must have had
        the same shape.
        The last fit must also have had ``warm_start=True``. Learning rates restart.
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
        Seed of the initial parameters and the held-out cells.
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
        The model's value of every cell.
    history_ : dict of ndarray
        "n_iter", "objective", "residual" (and "validation", the root mean square over
        held-out cells of the scaled data) at every 25th iteration.
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
    AIRCompleter : Learns which rows and columns are similar.
    skmc.sensing.SpectralSensingRegressor : The same model for linear measurements.

    Notes
    -----
    Memory grows with ``n_samples n_features`` times the widths of the layers, a dozen
    numbers each, and with ``(n_samples + n_features) min(n_samples, n_features)`` times
    the first width.

    This implementation differs from the paper in the constant :math:`c` (the paper's
    matrices have norm one), in the shift of the sigmoid, and in the start "spectral":
    the orthogonal matrix by which the paper multiplies both factors is left out,
    because descent does not depend on it.

    References
    ----------
    Chu, Ghosh, Lam, Mukherjee. Implicit regularization via spectral neural networks
    and non-linear matrix sensing. 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import SNNCompleter
    >>> X = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    >>> X[11, 9] = np.nan
    >>> SNNCompleter(scaling=None, random_state=0).fit_transform(X)[11, 9].round()
    np.float64(120.0)
    """

    completer_tags = CompleterTags(recovers=0.05, batched=("random_state",))
    warn_at_max_iter = False  # with noisy cells the flow never converges
    may_underfit = True

    layers: Widths = (2,)
    activation: Literal["sigmoid", "tanh", "truncated_relu"] = "tanh"
    _: KW_ONLY
    init: Literal["near_zero", "spectral"] = "near_zero"
    width: Count | None = None
    max_iter: Count = 2000
    max_time: Positive | None = None
    tol: NonNegative = 1e-6
    early_stopping: bool = True
    validation_fraction: Share = 0.05
    n_iter_no_change: Count = 250
    warm_start: bool = False
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        layers = checked_widths(params.layers, "layers")
        size = torch.linalg.matrix_norm(data.values, 2)
        share = data.indicator.mean((-2, -1))
        scale = torch.where(size > 0, size / share, 1.0)
        start = getattr(SpectralNetwork, params.init)
        model = start(
            data.values,
            layers,
            ACTIVATIONS[params.activation],
            rng,
            width=params.width,
            scale=scale,
        )
        return GradientFlow(model, [SquaredError(data)])
