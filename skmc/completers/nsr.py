"""A deep network with sparse activities and weights of low rank."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from skmc.base import CompleterTags
from skmc.folding import ForwardPass
from skmc.iterative import IterativeCompleter
from skmc.models import Autoencoder
from skmc.observed import Observed
from skmc.randomness import Randomness
from skmc.solvers.nonsmooth import CosineSchedule, NonsmoothDescent
from skmc.solvers.solver import Solver
from skmc.terms import Box, L1Norm, NuclearNorm, SquaredNorm

# Of Autoencoder's start, whose units saturate where rows are long.
START = 0.25


class NSRCompleter(IterativeCompleter):
    r"""Deep network with nonsmooth regularization (DNN-NSR).

    An autoencoder ``f`` with hidden outputs ``z_i`` and weights ``W_j`` maps rows,
    zero where missing, to complete ones::

        min  |P(f(P(M)) - M)|_F^2 + lambda_weights sum_j |W_j|_F^2
             + alpha sum_i |z_i|_1 + beta sum_j |W_j|_*   over   |theta|_inf <= bound,

    *sums* over the observed cells of the scaled data, over all rows, units and weights,
    with no half before them. It is solved in penalty form, ``z_i`` and ``W_j`` near
    slack variables, and how near grows as the fit goes on (gradual learning): see
    `skmc.solvers.nonsmooth.NonsmoothDescent`, which says what of the algorithm is ours.

    Parameters
    ----------
    variant : {"paper"}, default="paper"
        "paper" is Algorithm 1 of the paper.
    alpha : float >= 0, default=0.1
        Multiplies the l1 norm of the hidden outputs. The paper's value.
    beta : float >= 0, default=0.1
        Multiplies the nuclear norms of the weight matrices. The paper's value.
    lambda_weights : float >= 0, default=0.001
        Multiplies the squared norms of the weight matrices. The paper's value.
    mu_max, mu_min : float > 0, default=1e5 and 1
        The slack weighs ``1/(2 mu)``, where mu falls from ``mu_max`` to ``mu_min`` on
        half a cosine over ``max_iter`` epochs. The paper's values (it takes 1e6 where
        half of the cells or fewer are hidden). Far above 1 the two nonsmooth penalties
        hardly matter: with 1e5 they are absent for 98 % of the epochs. Equal values
        switch gradual learning off; ``mu_min`` above ``mu_max`` is refused.
    gamma : float > 1, default=10
        A step is ``1 / (gamma L)``, L the local Lipschitz constant of the gradient, and
        the extrapolation grows with it to a half. The paper's 1000 is slow: after 1000
        epochs on its synthetic data, half hidden, 30 % of the energy of the observed
        cells is unexplained, where 1.5, 10 and 100 leave 7 %; 10 is ours. In single
        precision steps of 1000 are too short to tell L, which then comes out too small.
    hidden : tuple of int >= 1 or None, default=None
        Widths of the hidden layers, which the paper does not give. None is ours: ``(10
        k, k, 10 k)`` with ``k = 1 + ceil(sqrt(min(n_samples, n_features)))``.
    bound : float > 0, default=10
        No weight and no bias leaves ``[-bound, bound]``. The paper has no number; ours.
    max_iter : int >= 1, default=1000
        Epochs. The fit is meant to end there, with the schedule.
    tol : float >= 0, default=1e-4
        Stop once ``|h - z|^2 <= tol |z|^2`` and ``|V - W|^2 <= tol |W|^2`` for the
        slack variables of all layers (the paper's test, relative) and the proximal
        gradient is as small (ours).
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardise by mean and standard deviation of observed cells, of each column or
        of all; undone on output. "auto" is "columns" where the columns have unlike
        units, see `skmc.scaling.Scaling.of`.
    device : str or torch.device, default="auto"
        Where to compute; "auto" is CUDA if there is one.
    random_state : int, RandomState instance or None, default=None
        Draws the start.
    missing_values : float, default=numpy.nan
        Another number that marks missing cells, besides what the container says.
    add_indicator : bool, default=False
        Append the columns of `sklearn.impute.MissingIndicator`.
    keep_empty_features : bool, default=True
        Keep columns without an observed cell (answered by row means); False drops them.
    keep_observed : bool, default=True
        Return observed cells as they are; False returns ``reconstruction_`` there too.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
    history_ : dict of ndarray
        "n_iter", "objective" (in penalty form, with ``mu_min`` for mu) and "residual"
        at every 25th epoch.
    n_iter_ : int
    status_ : {"converged", "stopped", "max_iter", "diverged", "interrupted"}
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the input has names

    References
    ----------
    Faramarzi, Haddadi, Amini, Ahookhosh. Matrix completion via nonsmooth
    regularization of fully connected neural networks. arXiv:2403.10232 (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc.completers.nsr import NSRCompleter
    >>> X = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    >>> X[11, 9] = np.nan
    >>> completer = NSRCompleter(hidden=(20,), random_state=0)
    >>> round(completer.fit_transform(X)[11, 9], -1)
    np.float64(120.0)
    """

    completer_tags = CompleterTags(recovers=0.5)
    warn_at_max_iter = False  # the schedule ends there
    _parameter_constraints: ClassVar[dict] = {
        **IterativeCompleter._parameter_constraints,
        "variant": [StrOptions({"paper"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "lambda_weights": [Interval(Real, 0, None, closed="left")],
        "mu_max": [Interval(Real, 0, None, closed="neither")],
        "mu_min": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 1, None, closed="neither")],
        "hidden": [tuple, list, None],
        "bound": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        variant="paper",
        *,
        alpha=0.1,
        beta=0.1,
        lambda_weights=1e-3,
        mu_max=1e5,
        mu_min=1.0,
        gamma=10.0,
        hidden=None,
        bound=10.0,
        max_iter=1000,
        tol=1e-4,
        scaling="auto",
        device="auto",
        random_state=None,
        missing_values=np.nan,
        add_indicator=False,
        keep_empty_features=True,
        keep_observed=True,
    ):
        self.variant = variant
        self.alpha = alpha
        self.beta = beta
        self.lambda_weights = lambda_weights
        self.mu_max = mu_max
        self.mu_min = mu_min
        self.gamma = gamma
        self.hidden = hidden
        self.bound = bound
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
        return self._gradual(self._network(data.shape, draw))

    def _network(self, shape: tuple[int, int], draw: Randomness) -> Autoencoder:
        code = 1 + math.ceil(min(shape) ** 0.5)
        hidden = (10 * code, code, 10 * code) if self.hidden is None else self.hidden
        if not all(isinstance(k, Integral) and int(k) >= 1 for k in hidden):
            raise ValueError(
                "hidden must hold the widths of the hidden layers, each an integer of "
                f"at least 1, got {hidden!r}; None chooses them by the shape of X."
            )
        return Autoencoder.random([shape[1], *hidden, shape[1]], draw)

    def _gradual(self, network: Autoencoder) -> Solver:
        """The paper's solver."""
        if self.mu_max < self.mu_min:
            raise ValueError(
                f"mu_max={self.mu_max!r} is below mu_min={self.mu_min!r}; mu falls "
                "from the one to the other, and equal values keep it constant."
            )
        for W in network.weights:
            W.data *= START
        return NonsmoothDescent(
            network,
            activity=L1Norm(self.alpha),
            rank=NuclearNorm(self.beta),
            decay=SquaredNorm(2 * self.lambda_weights),
            box=Box(self.bound),
            schedule=CosineSchedule(self.mu_max, self.mu_min, self.max_iter),
            gamma=self.gamma,
        )

    def _row_map(self, outputs, data: Observed) -> Callable[[Tensor, Tensor], Tensor]:
        if "network" not in outputs:  # interrupted before there was one
            return super()._row_map(outputs, data)
        return ForwardPass(outputs["network"])
