"""Nuclear norm with an adaptive graph (NCARL)."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from typing import Any, Literal

import numpy as np
import torch

from skmc.base import CompleterTags, IterativeCompleter, Trials
from skmc.cells import Given, Observed
from skmc.completers.costs import Cost, Variant
from skmc.linalg import Randomness
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import NCARL, Solver

ALPHAS = (10.0, 100.0, 1e3, 1e4)
NEIGHBORS = (5, 10, 20)
TRIAL_STEPS = 5  # more steps do not improve the choice


class NCARLCompleter(IterativeCompleter):
    r"""Nuclear-norm minimization with a learned graph of similar columns (NCARL).

    .. math::

        \min_X \|X\|_*^2 + \alpha \operatorname{tr}(X L(X) X^\top)
        \quad\text{subject to } X = M \text{ on the observed cells}

    or, with ``lambda_noise``,

    .. math::

        \min_X \|P(X - M)\|_F^2 + \lambda_{\text{noise}} \|X\|_*^2
        + \alpha \operatorname{tr}(X L(X) X^\top)

    where :math:`P` selects the observed cells. The norms, squared, and the trace are
    *sums*. :math:`L(X)` is the Laplacian of the graph of the ``n_neighbors`` nearest
    columns, whose weights decrease linearly with squared distance, see
    `skmc.solvers.ncarl.adaptive_laplacian`. Each of a few iterations takes ``L`` and
    the weights of the nuclear norm from the last X. It then completes every row exactly
    by one linear system of its observed or its hidden cells, whichever are fewer. A
    matrix with fewer rows than columns is transposed, and the graph connects rows.

    Parameters
    ----------
    alpha : float >= 0 or "auto", default="auto"
        Weight of the graph's energy. Values to try: 1, 10, 100, 1e3, 1e4 (relative to
        the squared nuclear norm, which has the same unit). "auto" tries 10, 100, 1e3
        and 1e4 (times ``lambda_noise`` if given) with 5 neighbors on a held-out tenth
        of the observed cells, 5 iterations each. The range is the paper's; the choice
        is ours. Small values fail if few cells are observed.
    n_neighbors : int >= 1 or "auto", default="auto"
        Number of neighbors of each column (row) in the graph, at most the number of
        columns (rows) minus one. "auto" then tries 5, 10 and 20 in the same way.
    lambda_noise : float > 0 or None, default=None
        Weight of the squared nuclear norm in the second form, which does not keep the
        observed cells; ``keep_observed=False`` returns its values there. Values to try:
        1e-5, 1e-4, 1e-3, 1e-2 (relative to the misfit, which has the same unit). 1e-3
        suits noise of a tenth of a picture's range. None is the first form.
    max_iter : int >= 1, default=15
        Maximum number of iterations; 15 is the paper's number. The fit normally ends
        there, without a warning.
    {max_time}
    tol : float >= 0, default=1e-3
        Stop when an iteration moves X by at most ``tol |X|_F``. This measure and its
        value are ours, see `skmc.solvers.ncarl.NCARL.residual`.
    {scaling}
        The paper does not standardize (None).
    {device}
        Computations are always in double precision.
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells of "auto". With given numbers, nothing is random.
    {reading}

    Attributes
    ----------
    alpha_ : float
        The weight that was used.
    n_neighbors_ : int
        The number of neighbors that was used.
    laplacian_ : ndarray of shape (k, k), k = min(n_samples, n_features)
        :math:`L(X)` of the scaled completion.
    laplacian_axis_ : {"columns", "rows"}
        Axis whose items the graph connects.
    {reconstruction_}
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every iteration.
    {solve}

    Notes
    -----
    Memory grows with ``n_samples n_features`` and with the square of the smaller of
    both; systems of rows are solved in blocks of bounded size.

    References
    ----------
    Li, Zhang, Zhang. Matrix completion via non-convex relaxation and adaptive
    correlation learning. IEEE Trans. Pattern Anal. Mach. Intell. 45 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import NCARLCompleter
    >>> X = np.outer(np.arange(1.0, 7), [1.0, 1.1, 1.2, 4.0, 4.1])
    >>> X[4, 1] = np.nan
    >>> completer = NCARLCompleter(alpha=10, n_neighbors=2, scaling=None)
    >>> completer.fit_transform(X)[4].round(1)
    array([ 5. ,  5.5,  6. , 20. , 20.5])
    >>> completer.laplacian_axis_, completer.laplacian_.shape
    ('columns', (5, 5))
    """

    completer_tags = CompleterTags(
        recovers=0.05,
        equivariant=True,
        unweighted="it keeps the observed cells, whatever they weigh",
    )
    advice = "pictures with scattered holes, columns in groups"
    cost = Cost(0.04, svd=1e-7)
    stacked = (Variant("NCARL"),)
    check_every = 1  # a step costs far more than a check
    warn_at_max_iter = False  # the method takes few steps by design

    alpha: NonNegative | Literal["auto"] = "auto"
    n_neighbors: Count | Literal["auto"] = "auto"
    _: KW_ONLY
    lambda_noise: Positive | None = None
    max_iter: Count = 15
    max_time: Positive | None = None
    tol: NonNegative = 1e-3
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    alpha_: float = field(init=False)
    n_neighbors_: int = field(init=False)
    laplacian_: np.ndarray = field(init=False)
    laplacian_axis_: str = field(init=False)

    def _choose(self, data: Observed, trials: Trials) -> dict[str, Any]:
        most = max(1, min(data.shape) - 1)
        unit = self.lambda_noise or 1.0
        alpha: Any = self.alpha
        k: Any = self.n_neighbors
        if alpha == "auto":
            first = min(most, NEIGHBORS[0] if k == "auto" else k)
            alpha = trials.best(
                [unit * alpha for alpha in ALPHAS],
                lambda alpha, _: NCARL(alpha, first, self.lambda_noise),
                max_iter=TRIAL_STEPS,
            )
        if k == "auto":
            k = trials.best(
                sorted({min(most, k) for k in NEIGHBORS}),
                lambda k, _: NCARL(alpha, k, self.lambda_noise),
                max_iter=TRIAL_STEPS,
            )
        return {"alpha": alpha, "n_neighbors": min(most, k)}

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        return NCARL(params.alpha, params.n_neighbors, params.lambda_noise)

    def _attributes(self, given: Given, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted = super()._attributes(given, outputs)
        n_rows, n_cols = given.data.shape
        fitted["laplacian_axis_"] = "rows" if n_rows < n_cols else "columns"
        if "laplacian" in outputs:  # not if interrupted before the first one
            fitted["laplacian_"] = outputs["laplacian"].cpu().numpy()
        return fitted
