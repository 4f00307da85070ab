"""Nuclear norm with an adaptive graph."""

from __future__ import annotations

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skmc.base import CompleterTags
from skmc.iterative import IterativeCompleter
from skmc.observed import Observed
from skmc.randomness import Randomness
from skmc.solvers.ncarl import NCARL
from skmc.solvers.solver import Solver

ALPHAS = (10.0, 100.0, 1e3, 1e4)
NEIGHBORS = (5, 10, 20)
TRIAL_STEPS = 5


class NCARLCompleter(IterativeCompleter):
    completer_tags = CompleterTags(recovers=1.2)
    check_every = 1  # a step costs far more than a check
    warn_at_max_iter = False  # the method is one of few steps
    _parameter_constraints: ClassVar[dict] = {
        **IterativeCompleter._parameter_constraints,
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
        scaling="global",
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

    def _make_solver(self, data: Observed, draw: Randomness) -> Solver:
        most = max(1, min(data.shape) - 1)
        unit = self.lambda_noise or 1.0
        # Until there is a choice.
        self.alpha_ = unit * ALPHAS[-2] if self.alpha == "auto" else self.alpha
        auto = self.n_neighbors == "auto"
        self.n_neighbors_ = min(most, NEIGHBORS[0] if auto else self.n_neighbors)
        if self.alpha == "auto":
            self.alpha_ = self._choose(
                data,
                [unit * alpha for alpha in ALPHAS],
                lambda alpha, _: NCARL(alpha, self.n_neighbors_, self.lambda_noise),
                max_iter=TRIAL_STEPS,
            )
        if auto:
            self.n_neighbors_ = self._choose(
                data,
                sorted({min(most, k) for k in NEIGHBORS}),
                lambda k, _: NCARL(self.alpha_, k, self.lambda_noise),
                max_iter=TRIAL_STEPS,
            )
        return NCARL(self.alpha_, self.n_neighbors_, self.lambda_noise)

    def _fitted(self, cells, data, scaling, outputs) -> dict:
        fitted = super()._fitted(cells, data, scaling, outputs)
        n_rows, n_cols = cells.shape
        fitted["laplacian_axis_"] = "rows" if n_rows < n_cols else "columns"
        fitted["laplacian_"] = outputs["laplacian"].cpu().numpy()
        return fitted
