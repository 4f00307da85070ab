"""Nuclear norm with an adaptive graph."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skmc.base import (
    CompleterTags,
    IterativeCompleter,
    Prepared,
    Trials,
)
from skmc.cells import Observed
from skmc.linalg import Randomness
from skmc.solvers import NCARL, Solver

ALPHAS = (10.0, 100.0, 1e3, 1e4)
NEIGHBORS = (5, 10, 20)
TRIAL_STEPS = 5  # more do not choose better


class NCARLCompleter(IterativeCompleter):
    r"""Least nuclear norm, smooth along a graph of columns that is learned (NCARL).

    ::

        min  |X|_*^2 + alpha tr(X L(X) X')   subject to  X = M on observed cells

    or, with ``lambda_noise``, ::

        min  |P(X - M)|_F^2 + lambda_noise |X|_*^2 + alpha tr(X L(X) X').

    All three are *sums*. ``L(X)`` is the Laplacian of the ``n_neighbors`` nearest
    columns, whose weights fall linearly with squared distance,
    `skmc.solvers.ncarl.adaptive_laplacian`. Each of few iterations takes ``L`` and the
    weights of the nuclear norm from the last X, and then completes every row exactly,
    by one linear system of its observed or its hidden cells, whichever are fewer. Where
    there are fewer rows than columns the matrix is solved transposed, and the graph is
    one of rows.

    Parameters
    ----------
    alpha : float >= 0 or "auto", default="auto"
        Multiplies the Dirichlet energy. The two norms have the same unit, squared, so
        this is a pure number. "auto" tries 10, 100, 1e3 and 1e4 (times
        ``lambda_noise``, where that is given) with 5 neighbours on a held-out tenth of
        the observed cells, 5 iterations each. The range is the paper's, the choice is
        ours. Little weight fails where few cells are seen.
    n_neighbors : int >= 1 or "auto", default="auto"
        Neighbours of each column (row) in the graph; at most one less than there are is
        used. "auto" tries 5, 10 and 20 like ``alpha``, after it.
    lambda_noise : float > 0 or None, default=None
        Multiplies the squared nuclear norm in the second form, which does not keep to
        the observed cells; 1e-3 suits noise of a tenth of the range of a picture. Ask
        with ``keep_observed=False`` for its values there. None is the first form.
    max_iter : int >= 1, default=15
        The paper's number. The fit is meant to end there and gives no warning.
    tol : float >= 0, default=1e-3
        A fit has converged once an iteration moves X by at most ``tol |X|_F``. The
        measure and its value are ours, see `skmc.solvers.ncarl.NCARL.residual`.
    {scaling}
        The paper does not standardise (None).
    device : str or torch.device, default="auto"
        Where to compute, in double precision; "auto" is CUDA if there is one.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out cells of "auto"; with given numbers there is nothing random.
    {reading}

    Attributes
    ----------
    alpha_ : float
    n_neighbors_ : int
    laplacian_ : ndarray of shape (k, k), k = min(n_samples, n_features)
        ``L(X)`` of the completion, as scaled.
    laplacian_axis_ : {"columns", "rows"}
        What the graph connects.
    {reconstruction_}
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every iteration.
    {solve}

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

    completer_tags = CompleterTags(recovers=0.05, equivariant=True)
    check_every = 1  # a step costs far more than a check
    warn_at_max_iter = False  # the method is one of few steps
    _parameter_constraints: ClassVar[dict] = {
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "n_neighbors": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "lambda_noise": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        alpha="auto",
        n_neighbors="auto",
        *,
        lambda_noise=None,
        max_iter=15,
        tol=1e-3,
        scaling="auto",
        device="auto",
        random_state=None,
        missing_values=np.nan,
        add_indicator=False,
        keep_empty_features=True,
        keep_observed=True,
    ):
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.lambda_noise = lambda_noise
        self.max_iter = max_iter
        self.tol = tol
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _choose(self, data: Observed, trials: Trials) -> dict[str, Any]:
        most = max(1, min(data.shape) - 1)
        unit = self.lambda_noise or 1.0
        alpha, k = self.alpha, self.n_neighbors
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

    def _make_solver(self, data: Observed, params: Any, rng: Randomness) -> Solver:
        return NCARL(params.alpha, params.n_neighbors, params.lambda_noise)

    def _fitted(self, prepared: Prepared, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted = super()._fitted(prepared, outputs)
        n_rows, n_cols = prepared.cells.shape
        fitted["laplacian_axis_"] = "rows" if n_rows < n_cols else "columns"
        if "laplacian" in outputs:  # else interrupted before there was one
            fitted["laplacian_"] = outputs["laplacian"].cpu().numpy()
        return fitted
