"""Networks with nonsmooth regularization and gradual learning (DNN-NSR)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from numbers import Real
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from skmc.base import CompleterTags, IterativeCompleter, fit_weighted
from skmc.cells import Observed
from skmc.compatibility import Interval
from skmc.completers.costs import Cost
from skmc.linalg import CosineSchedule, Randomness
from skmc.loop import Solution
from skmc.models import Autoencoder, checked_widths
from skmc.new_rows import ForwardPass
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Widths
from skmc.solvers import NonsmoothDescent, Solver
from skmc.terms import Box, L1Norm, NuclearNorm, SquaredNorm

# Factor of Autoencoder's initial weights, whose units saturate for long rows.
START_SHARE = 0.25


class GradualNSRCompleter(IterativeCompleter):
    r"""Networks with nonsmooth regularization and gradual learning (DNN-NSR).

    The model is an autoencoder with hidden outputs :math:`z_i` and weights :math:`W_j`.
    Missing inputs are zero:

    .. math::

        \min \|P(f(P(M)) - M)\|_F^2 + \lambda_{\text{weights}} \sum_j \|W_j\|_F^2
        + \alpha \sum_i \|z_i\|_1 + \beta \sum_j \|W_j\|_*
        \quad\text{over } \|\theta\|_\infty \le \text{bound}

    All terms are *sums*, over the observed cells of the scaled data (:math:`P` selects
    them), over hidden outputs and over weights; none is halved. The problem is solved
    in penalty form: slack variables replace :math:`z_i` and :math:`W_j`, and their
    distance is penalized more strongly in the course of the fit (gradual learning).
    `skmc.solvers.nonsmooth.NonsmoothDescent` states which parts of the algorithm are
    ours. On the paper's own data this method is far less accurate than `NSRCompleter`.

    Parameters
    ----------
    alpha : float >= 0, default=0.1
        Weight of the l1 norm of the hidden outputs. The default is the paper's. Values
        to try: .001, .01, .1, 1 (relative to data of variance 1, as the next two).
    beta : float >= 0, default=0.1
        Weight of the nuclear norms of the weight matrices. The default is the paper's.
        Values to try: .01, .1, 1, 10 (relative to data of variance 1); the result
        hardly depends on it.
    lambda_weights : float >= 0, default=0.001
        Weight of the squared norms of the weight matrices. The default is the paper's.
        Values to try: .001, .01, .1, 1 (relative to data of variance 1); the result
        hardly depends on it.
    mu_max, mu_min : float > 0, default=1e5 and 1
        Bounds of mu. The slack variables have weight ``1/(2 mu)``, where mu falls from
        ``mu_max`` to ``mu_min`` along half a cosine over ``max_iter`` epochs. The
        defaults are the paper's (it uses 1e6 if half of the cells or fewer are hidden).
        Far above 1 the two nonsmooth penalties have little effect: with 1e5 they are
        absent for nearly all epochs. Equal values switch gradual learning off;
        ``mu_min > mu_max`` is an error.
    gamma : float > 1, default=10
        Divisor of the step size ``1 / (gamma L)``, where L is the local Lipschitz
        constant of the gradient. The extrapolation grows with gamma, up to a half. The
        paper's 1000 is slow. The default of 10 is ours. With 1000 in single precision,
        the steps are too short to measure L, which is then underestimated.
    hidden : tuple of int >= 1 or None, default=None
        Widths of the hidden layers, which the paper does not state. None is ours: ``(10
        k, k, 10 k)`` with ``k = 1 + ceil(sqrt(min(n_samples, n_features)))``.
    bound : float > 0, default=10
        Bound of weights and biases, which stay in ``[-bound, bound]``. The paper states
        no number; this one is ours.
    max_iter : int >= 1, default=1000
        Number of epochs. The fit normally ends there, as does the schedule.
    {max_time}
    tol : float >= 0, default=1e-4
        Stops when ``|h - z|^2 <= tol |z|^2`` and ``|V - W|^2 <= tol |W|^2`` for the
        slack variables of all layers (the paper's test, relative) and the proximal
        gradient is as small (ours).
    {scaling}
    {device}
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights.
    {reading}

    Attributes
    ----------
    {reconstruction_}
    history_ : dict of ndarray
        "n_iter", "objective" (in penalty form, with ``mu_min`` for mu) and "residual"
        at every 25th epoch.
    {solve}

    Notes
    -----
    `transform` passes new rows through the network, with zeros for missing cells.

    Memory holds the hidden outputs, ``n_samples`` times the widths of the layers.

    References
    ----------
    Faramarzi, Haddadi, Amini, Ahookhosh. Matrix completion via nonsmooth
    regularization of fully connected neural networks. arXiv:2403.10232 (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import GradualNSRCompleter
    >>> X = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    >>> X[11, 9] = np.nan
    >>> GradualNSRCompleter(random_state=0).fit_transform(X)[11, 9].round(-1)
    np.float64(120.0)
    """

    completer_tags = CompleterTags(recovers=0.5)
    fit = fit_weighted
    advice = "the published form of NSRCompleter, for comparisons"
    cost = Cost(0.8, cells=0.0002)
    may_underfit = True
    warn_at_max_iter = False  # the schedule ends there

    alpha: NonNegative = 0.1
    beta: NonNegative = 0.1
    lambda_weights: NonNegative = 1e-3
    _: KW_ONLY
    mu_max: Positive = 1e5
    mu_min: Positive = 1.0
    gamma: Annotated[float, Interval(Real, 1, None, closed="neither")] = 10.0
    hidden: Widths | None = None
    bound: Positive = 10.0
    max_iter: Count = 1000
    max_time: Positive | None = None
    tol: NonNegative = 1e-4
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        code = 1 + math.ceil(min(data.shape) ** 0.5)
        hidden = params.hidden
        widths = checked_widths(
            (10 * code, code, 10 * code) if hidden is None else hidden
        )
        n_cols = data.shape[1]
        network = Autoencoder.random([n_cols, *widths, n_cols], rng)
        if params.mu_max < params.mu_min:
            raise ValueError(
                f"mu_max={params.mu_max!r} is below mu_min={params.mu_min!r}; mu falls "
                "from mu_max to mu_min, and equal values keep it constant."
            )
        for W in network.weights:
            W.data *= START_SHARE
        return NonsmoothDescent(
            network,
            activity=L1Norm(params.alpha).to(data.values),
            rank=NuclearNorm(params.beta).to(data.values),
            decay=SquaredNorm(2 * params.lambda_weights).to(data.values),
            box=Box(params.bound),
            schedule=CosineSchedule(params.mu_max, params.mu_min, params.max_iter),
            gamma=params.gamma,
        )

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        if super()._advice(solution, misfit) is None:
            return None
        return (
            f"ended as {solution.status[0].value} after {int(solution.n_iter)} epochs, "
            f"{misfit:.2f} of the way from the observed cells to their means. Raise "
            "max_iter, lower gamma, or let scaling standardize the data."
        )

    def _row_map(
        self, outputs: dict[str, Any], data: Observed
    ) -> Callable[[Tensor, Tensor], Tensor]:
        if "network" not in outputs:  # interrupted before the first network
            return super()._row_map(outputs, data)
        return ForwardPass(outputs["network"])
