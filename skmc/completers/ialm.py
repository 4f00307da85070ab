"""Nuclear-norm minimization by augmented Lagrange multipliers."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

import torch

from skmc.base import CompleterTags, IterativeCompleter
from skmc.cells import Observed
from skmc.completers.costs import Cost, Variant
from skmc.linalg import Randomness
from skmc.parameters import Count, NonNegative, Params, Positive
from skmc.solvers import InexactALM, Solver


class IALMCompleter(IterativeCompleter):
    r"""Nuclear-norm minimization by the inexact augmented Lagrangian method (IALM).

    .. math::

        \min_X \|X\|_* \quad\text{subject to } X = M \text{ on the observed cells}

    The nuclear norm is the *sum* of the singular values of the scaled matrix. There is
    no weight to choose. If the observed cells are noisy, `SoftImputeCompleter` is a
    better choice. See `skmc.solvers.alm.InexactALM`.

    Parameters
    ----------
    max_iter : int >= 1, default=1000
        Maximum number of iterations. Each one decomposes the matrix: it computes all
        singular values, or only the largest if few exceed the threshold.
    {max_time}
    tol : float >= 0, default=1e-3
        Stop when ``|X + E - P(M)| / |P(M)|`` is at most ``tol`` and the filled-in cells
        ``E`` move by less than a tenth of that, ``min(mu, sqrt mu) |dE| / |P(M)|``.
        ``P(M)`` is zero at missing cells. The authors use 1e-4, which takes longer.
    {scaling}
        Where "auto" is "global", it only divides by the root mean square, because
        the nuclear norm here does not shrink a mean.
    {device}
    {reading}

    Attributes
    ----------
    {reconstruction_}
    history_ : dict of ndarray
        "n_iter", "objective" (the nuclear norm of the scaled ``X``) and "residual" at
        every fifth iteration.
    {solve}

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
    advice = "low rank without noise; nothing to tune"
    cost = Cost(0.03, svd=3e-8)
    stacked = (Variant("IALM"),)
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
