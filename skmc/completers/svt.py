"""Singular value thresholding (SVT)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor

from skmc.base import CompleterTags, IterativeCompleter
from skmc.cells import Observed
from skmc.linalg import SVD, Randomness, shrink
from skmc.parameters import Count, NonNegative, Params, Positive
from skmc.solvers import DecomposingSolver, Momentum, Solver, State, ratio


class SVTCompleter(IterativeCompleter):
    r"""Find the matrix of least nuclear norm by singular value thresholding (SVT).

    For large matrices of very low rank without noise; not for noisy cells, pictures or
    small matrices.

    .. math::

        \min_X \tau \|X\|_* + \tfrac{1}{2} \|X\|_F^2
        \quad\text{subject to } X = M \text{ on the observed cells}

    The nuclear norm is the *sum* of the singular values, and the second term half a
    *sum* over all cells. For large ``tau`` the solution is that of `IALMCompleter`,
    which finds it faster. The iterates have low rank from the start, which suits large
    matrices of very low rank. See `skmc.completers.svt.SingularValueThresholding`.

    Parameters
    ----------
    tau : float > 0, default=5.0
        Weight of the nuclear norm, in units of ``sqrt(n_samples n_features)`` times
        the root mean square of the observed cells after scaling. These units make it
        comparable between data. 5 is the authors' value. Values to try: 1.5, 5, 15
        (relative to these units); larger ones only cost time.
    delta : float > 0 or "auto", default="auto"
        Step size of the authors' iteration. They use 1.2 divided by the share of
        observed cells; convergence is certain below 2. "auto" is step 1 with Nesterov's
        momentum, which this implementation adds. It converges for any share, and
        faster.
    max_iter : int >= 1, default=1000
        Maximum number of singular value decompositions.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-3
        Stop when ``|P(X - M)|`` is at most ``tol`` times ``|P(mean - M)|``, the misfit
        of the mean, where ``P`` selects the observed cells.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
        Where "auto" is "global", it only divides by the root mean square here.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
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
        "n_iter", "objective" (of the scaled ``X``) and "residual" at every fifth
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
    IALMCompleter : Faster for small matrices.
    SoftImputeCompleter : For noisy cells.

    Notes
    -----
    Memory grows with ``n_samples n_features``, and with the square of the smaller of
    both where the decomposition is that of a Gram matrix.

    References
    ----------
    Cai, Candes, Shen. A singular value thresholding algorithm for matrix completion.
    SIAM Journal on Optimization 20 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import SVTCompleter
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0])
    >>> X[1, 2] = np.nan
    >>> SVTCompleter().fit_transform(X)[1].round(1)
    array([2., 4., 8.])
    """

    completer_tags = CompleterTags(
        recovers=0.01,
        equivariant=True,
        unweighted="it matches the observed cells exactly, whatever they weigh",
    )
    check_every = 5
    centre = False
    random_state = 0  # nothing is random
    step_parameter = "delta"

    tau: Positive = 5.0
    _: KW_ONLY
    delta: Positive | Literal["auto"] = "auto"
    max_iter: Count = 1000
    max_time: Positive | None = None
    tol: NonNegative = 1e-3
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        n_rows, n_cols = data.shape
        rms = (data.values.square().sum() / data.n_observed).sqrt()
        tau = params.tau * (n_rows * n_cols) ** 0.5 * float(rms)
        return SingularValueThresholding(
            tau, None if params.delta == "auto" else params.delta
        )


@dataclass(frozen=True, kw_only=True)
class SVTState(State):
    """An iterate of `SingularValueThresholding`.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    X : Tensor of shape (n_rows, n_cols)
        A completion.
    spectrum : SVD
        The SVD of ``X`` without the free means.
    Y : Tensor of shape (n_rows, n_cols)
        Dual variable, zero on the unobserved cells.
    extrapolated : Tensor of shape (n_rows, n_cols)
        ``Y`` with momentum; ``Y`` itself if ``delta`` is given.
    momentum : Momentum
        Momentum of the next step.
    """

    X: Tensor  # (n_rows, n_cols)
    spectrum: SVD  # of X without the free means
    Y: Tensor  # (m, n), the dual variable, zero off the observed cells
    extrapolated: Tensor  # (m, n), Y with momentum added
    momentum: Momentum


class SingularValueThresholding(DecomposingSolver[Observed, SVTState]):
    r"""Uzawa's iteration for the nuclear norm: gradient ascent on the dual problem.

    .. math::

        \min_X \tau \|X\|_* + \tfrac12 \|X\|_F^2
        \quad\text{subject to } X = M \text{ on the observed cells}

    by the steps ::

        X <- D_tau(Y)                    singular values less tau
        Y <- Y + delta P(M - X)

    from ``Y = k0 delta P(M)`` with ``k0 = ceil(tau / (delta |P(M)|_2))``: after fewer
    steps ``X`` would still be zero. If ``delta`` is None, the step is 1 with
    `Momentum`, which restarts where it points downhill. The authors do not have this
    variant. It converges for any share of observed cells, in a fraction of the
    iterations. Free means of the columns are not in the nuclear norm: they are
    subtracted before the singular values are shrunk, and added again.

    Parameters
    ----------
    tau : float
        Threshold, in the units of the data.
    delta : float, optional
        Step length. Convergence is guaranteed below 2; the authors use
        ``1.2 m n / |Omega|``.

    References
    ----------
    Cai, Candes, Shen. A singular value thresholding algorithm for matrix completion.
    SIAM Journal on Optimization 20 (2010).
    """

    def __init__(self, tau: float, delta: float | None = None):
        self.tau = tau
        self.delta = delta

    def init(self, data: Observed) -> SVTState:
        D, delta = data.values, self.delta or 1.0
        largest = torch.linalg.matrix_norm(data.centre(D)[1], 2)
        kicks = torch.where(largest > 0, ratio(self.tau, delta * largest).ceil(), 0.0)
        Y = kicks * delta * D
        return SVTState(
            X=torch.zeros_like(D),
            objective=torch.full_like(largest, torch.inf),
            spectrum=SVD.zero(D),
            Y=Y,
            extrapolated=Y,
            momentum=Momentum(torch.ones_like(largest)),
        )

    def step(self, data: Observed, state: SVTState) -> SVTState:
        means, rest = data.centre(state.extrapolated)
        spectrum = shrink(rest, self.tau, warm_start=state.spectrum)
        X, s = means + spectrum.dense(), spectrum.s
        Y = state.extrapolated - (self.delta or 1.0) * data.residual(X)
        extrapolated, momentum = Y, state.momentum
        if self.delta is None:
            momentum = momentum.restart_uphill(state.extrapolated, Y, state.Y)
            extrapolated, momentum = momentum.extrapolate(Y, state.Y), momentum.next
        return SVTState(
            X=X,
            objective=self.tau * s.sum(-1) + X.square().sum((-2, -1)) / 2,
            spectrum=spectrum,
            Y=Y,
            extrapolated=extrapolated,
            momentum=momentum,
        )

    def residual(self, data: Observed, previous: SVTState, current: SVTState) -> Tensor:
        """``|P(X - M)|`` relative to that of the mean, ``|P(mean - M)|``.

        The other optimality conditions hold in every step.
        """
        mean = data.values.sum((-2, -1)) / data.n_observed
        scale = data.energy - data.n_observed * mean.square()
        # If all cells are equal, the residual is relative to the cells themselves.
        rounding = 1e-12 * data.energy + torch.finfo(scale.dtype).tiny
        scale = torch.where(scale > rounding, scale, data.energy + rounding)
        return (data.misfit(current.X) / scale).sqrt()
