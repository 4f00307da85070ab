"""Low-rank completion by an iterated truncated SVD."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions

from skmc.base import CompleterTags, IterativeCompleter, Trials, WarmStart
from skmc.cells import Observed
from skmc.completers._rank import choose_rank
from skmc.linalg import Randomness
from skmc.solvers import HardRank, Solver


class SVDCompleter(WarmStart, IterativeCompleter):
    r"""Low-rank completion by an iterated truncated SVD.

    .. math::

        \min_X \tfrac{1}{2} \|P(X - M)\|_F^2
        \quad\text{subject to } \operatorname{rank}(X) \le r

    This is half a *sum* over the observed cells of the scaled data, which :math:`P`
    selects; :math:`r` is ``rank``. Each iteration refills the missing cells from the
    truncated SVD.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or "auto", default="auto"
        "auto" tries the ranks 1, 2, 3, ... 100 on a held-out tenth of the observed
        cells until the error has risen four times in a row. The best rank is used for
        all cells. This choice is ours.
    max_iter : int >= 1, default=500
        Maximum number of iterations, each of which updates rows and columns in turn.
    {max_time}
    tol : float >= 0, default=1e-3
        Stop when the gradient along the matrices of this rank is at most ``tol`` times
        the norm of the observed cells, both as Frobenius norms.
    {warm_start}
        ``rank="auto"`` is chosen again.
    {scaling}
    {device}
    random_state : int, RandomState instance or None, default=None
        Draws the held-out cells of ``rank="auto"``. With a given rank, nothing is
        random.
    {reading}

    Attributes
    ----------
    rank_ : int
        The rank that was used.
    {reconstruction_}
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every 25th iteration.
    {solve}

    Notes
    -----
    Memory grows with ``n_samples n_features``, and with the square of the smaller of
    both where the decomposition is that of a Gram matrix.

    References
    ----------
    Troyanskaya et al. Missing value estimation methods for DNA microarrays.
    Bioinformatics 17 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import SVDCompleter
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0])
    >>> X[1, 2] = np.nan
    >>> SVDCompleter(rank=1, scaling=None).fit_transform(X)[1].round(1)
    array([2., 4., 8.])
    """

    completer_tags = CompleterTags(recovers=0.01, monotone=True, equivariant=True)
    _parameter_constraints: ClassVar[dict] = {
        "rank": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        rank: int | Literal["auto"] = "auto",
        *,
        max_iter: int = 500,
        max_time: float | None = None,
        tol: float = 1e-3,
        warm_start: bool = False,
        scaling: Literal["auto", "columns", "global"] | None = "columns",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        keep_observed: bool = True,
    ) -> None:
        self.rank = rank
        self.max_iter = max_iter
        self.max_time = max_time
        self.tol = tol
        self.warm_start = warm_start
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _choose(self, data: Observed, trials: Trials) -> dict[str, Any]:
        return {"rank": choose_rank(self.rank, data, trials)}

    def _make_solver(self, data: Observed, params: Any, rng: Randomness) -> Solver:
        if not self._resumes(data):
            return HardRank(params.rank)
        start = self._scaling.standardise(torch.from_numpy(self.reconstruction_))
        return HardRank(params.rank, start.to(data.values))
