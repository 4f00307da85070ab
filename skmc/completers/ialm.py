"""Nuclear-norm minimization by augmented Lagrange multipliers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor

from skmc.base import CompleterTags, IterativeCompleter
from skmc.cells import Observed
from skmc.linalg import SVD, Randomness, shrink
from skmc.parameters import Count, NonNegative, Params, Positive
from skmc.solvers import DecomposingSolver, Solver, State, norm


class IALMCompleter(IterativeCompleter):
    r"""Find the matrix of least nuclear norm with the observed cells (IALM).

    For matrices of low rank without noise, and gene expression: there is nothing to
    tune. Not for noisy cells, for which `SoftImputeCompleter` is a better choice, and
    not for pictures.

    .. math::

        \min_X \|X\|_* \quad\text{subject to } X = M \text{ on the observed cells}

    The nuclear norm is the *sum* of the singular values of the scaled matrix. See
    `skmc.completers.ialm.InexactALM` for the steps of the inexact augmented Lagrangian
    method.

    Parameters
    ----------
    max_iter : int >= 1, default=1000
        Maximum number of iterations. Each one decomposes the matrix: it computes all
        singular values, or only the largest if few exceed the threshold.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-3
        Stop when ``|X + E - P(M)| / |P(M)|`` is at most ``tol`` and the filled-in cells
        ``E`` move by less than a tenth of that, ``min(mu, sqrt mu) |dE| / |P(M)|``.
        ``P(M)`` is zero at missing cells. The authors use 1e-4, which takes longer.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
        Where "auto" is "global", it only divides by the root mean square, because
        the nuclear norm here does not shrink a mean.
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
        "n_iter", "objective" (the nuclear norm of the scaled ``X``) and "residual" at
        every fifth iteration.
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
    SVTCompleter : For large matrices of very low rank.
    SoftImputeCompleter : For noisy cells.
    TNNRCompleter : Does not shrink the largest singular values.

    Notes
    -----
    Memory grows with ``n_samples n_features``, and with the square of the smaller of
    both where the decomposition is that of a Gram matrix.

    References
    ----------
    Lin, Chen, Ma. The augmented Lagrange multiplier method for exact recovery of
    corrupted low-rank matrices. arXiv:1009.5055 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import IALMCompleter
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0])
    >>> X[1, 2] = np.nan
    >>> IALMCompleter().fit_transform(X)[1].round(1)
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

    _: KW_ONLY
    max_iter: Count = 1000
    max_time: Positive | None = None
    tol: NonNegative = 1e-3
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        return InexactALM(drift_tol=0.1 * params.tol)


@dataclass(frozen=True, kw_only=True)
class InexactALMState(State):
    """An iterate of `InexactALM`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    spectrum : SVD
        The SVD of ``X`` without the free means.
    dual : Tensor of shape (\\*batch, n_rows, n_cols)
        Lagrange multipliers.
    mu : Tensor of shape (\\*batch,)
        Penalty weight of the constraint.
    drift : Tensor of shape (\\*batch,)
        ``min(mu, sqrt mu) |E - E before| / |P(M)|``, with a unit-free ``mu``.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    spectrum: SVD  # of X without the free means
    dual: Tensor  # (*batch, m, n)
    mu: Tensor  # (*batch,)
    drift: Tensor  # (*batch,), min(mu, sqrt mu) |E - E before| / |P(M)|, mu unit-free


class InexactALM(DecomposingSolver[Observed, InexactALMState]):
    r"""The inexact augmented Lagrangian method for nuclear-norm minimization.

    .. math::

        \min_X \|X\|_* \quad\text{subject to } X = M \text{ on the observed cells}

    With ``D = P(M) = X + E``, and ``E`` zero on the observed cells, each step is ::

        X <- D_{1/mu}(D - E + Y / mu)            subtracts 1 / mu from singular values
        E <- the unobserved part of D - X + Y / mu
        Y <- Y + mu (D - X - E)

    from ``mu = .3 / |D|_2``. While ``min(mu, sqrt mu) |dE| / |D|`` is at most
    ``drift_tol``, ``mu`` is multiplied by ``1.2172 + 1.8588 |Omega| / (m n)``. The
    authors' test depends on the unit of the data; here ``mu`` is multiplied by their
    root mean square. Free means of the columns are not penalized: they are subtracted
    before the singular values are shrunk, and added again.

    Parameters
    ----------
    drift_tol : float, default=1e-05
        Drift below which ``mu`` grows and the iterates can converge.

    References
    ----------
    Lin, Chen, Ma. The augmented Lagrange multiplier method for exact recovery of
    corrupted low-rank matrices. arXiv:1009.5055 (2010), section 4.
    """

    def __init__(self, drift_tol: float = 1e-5):
        self.drift_tol = drift_tol

    def init(self, data: Observed) -> InexactALMState:
        D = data.values
        largest = torch.linalg.matrix_norm(data.centre(D)[1], 2)
        zero = torch.zeros_like(D)
        return InexactALMState(
            X=zero,
            objective=torch.zeros_like(largest),
            spectrum=SVD.zero(D),
            dual=zero,
            mu=0.3 / torch.where(largest > 0, largest, torch.ones_like(largest)),
            drift=torch.full_like(largest, torch.inf),
        )

    def step(self, data: Observed, state: InexactALMState) -> InexactALMState:
        D, mu = data.values, state.mu[..., None, None]
        # On the unobserved cells, Y is zero and E is -X after every step.
        means, rest = data.centre(torch.where(data.mask, D + state.dual / mu, state.X))
        spectrum = shrink(rest, 1 / state.mu, warm_start=state.spectrum)
        del rest
        X = means + spectrum.dense()
        scale = data.energy.sqrt().clamp_min(torch.finfo(D.dtype).tiny)
        unit_free = state.mu * scale / data.n_observed.sqrt()
        moved = norm(torch.where(data.mask, 0.0, X - state.X))
        drift = torch.minimum(unit_free, unit_free.sqrt()) * moved / scale
        share = data.n_observed / (D.shape[-2] * D.shape[-1])
        growth = 1.2172 + 1.8588 * share
        # A larger mu would only overflow.
        at_limit = state.mu * scale > 1 / torch.finfo(D.dtype).eps
        grows = (drift <= self.drift_tol) & ~at_limit
        return InexactALMState(
            X=X,
            objective=spectrum.s.sum(-1),
            spectrum=spectrum,
            dual=data.residual(X).mul_(-mu).add_(state.dual),
            mu=torch.where(grows, growth * state.mu, state.mu),
            drift=drift,
        )

    def residual(
        self, data: Observed, previous: InexactALMState, current: InexactALMState
    ) -> Tensor:
        """``|D - X - E| / |D|``, or infinity while the drift is above its tolerance."""
        scale = data.energy.clamp_min(torch.finfo(data.values.dtype).tiny)
        infeasible = (data.misfit(current.X) / scale).sqrt()
        return torch.where(current.drift > self.drift_tol, torch.inf, infeasible)
