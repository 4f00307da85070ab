"""Singular value thresholding (SVT)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

import torch

from skmc.base import CompleterTags, IterativeCompleter
from skmc.cells import Observed
from skmc.completers.costs import Cost
from skmc.linalg import Randomness
from skmc.parameters import Count, NonNegative, Params, Positive
from skmc.solvers import SingularValueThresholding, Solver


class SVTCompleter(IterativeCompleter):
    r"""Nuclear-norm minimization by singular value thresholding (SVT).

    .. math::

        \min_X \tau \|X\|_* + \tfrac{1}{2} \|X\|_F^2
        \quad\text{subject to } X = M \text{ on the observed cells}

    The nuclear norm is the *sum* of the singular values, and the second term half a
    *sum* over all cells. For large ``tau`` the solution is that of `IALMCompleter`,
    which finds it faster. The iterates have low rank from the start, which suits large
    matrices of very low rank. See `skmc.solvers.svt.SingularValueThresholding`.

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
        momentum, which is ours. It converges for any share, and faster.
    max_iter : int >= 1, default=1000
        Maximum number of singular value decompositions.
    {max_time}
    tol : float >= 0, default=1e-3
        Stop when ``|P(X - M)|`` is at most ``tol`` times ``|P(mean - M)|``, the misfit
        of the mean, where ``P`` selects the observed cells.
    {scaling}
        Where "auto" is "global", it only divides by the root mean square here.
    {device}
    {reading}

    Attributes
    ----------
    {reconstruction_}
    history_ : dict of ndarray
        "n_iter", "objective" (of the scaled ``X``) and "residual" at every fifth
        iteration.
    {solve}

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
    advice = "low rank without noise, for large matrices of very low rank"
    cost = Cost(0.05, svd=1e-7)
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
