"""The network of the paper on DNN-NSR, and its solver."""

from __future__ import annotations

import math
from typing import Any

from skmc.linalg import CosineSchedule, Randomness
from skmc.models import Autoencoder, checked_widths
from skmc.solvers import NonsmoothDescent, Solver
from skmc.terms import Box, L1Norm, NuclearNorm, SquaredNorm

# Multiplies Autoencoder's initial weights, whose units saturate if rows are long.
START_SHARE = 0.25


def gradual_solver(params: Any, shape: tuple[int, int], rng: Randomness) -> Solver:
    """Return the solver of ``NSRCompleter(variant="paper")``.

    Parameters
    ----------
    params : namespace
        Hyper-parameters of the completer.
    shape : tuple of int
        Of the matrix.
    rng : Randomness
        Draws the start of the network.

    Returns
    -------
    Solver

    Raises
    ------
    ValueError
        ``mu_max`` is below ``mu_min``, or a width is not a positive integer.
    """
    code = 1 + math.ceil(min(shape) ** 0.5)
    hidden = (10 * code, code, 10 * code) if params.hidden is None else params.hidden
    widths = checked_widths(hidden)
    network = Autoencoder.random([shape[1], *widths, shape[1]], rng)
    if params.mu_max < params.mu_min:
        raise ValueError(
            f"mu_max={params.mu_max!r} is below mu_min={params.mu_min!r}; mu falls "
            "from mu_max to mu_min, and equal values keep it constant."
        )
    for W in network.weights:
        W.data *= START_SHARE
    return NonsmoothDescent(
        network,
        activity=L1Norm(params.alpha),
        rank=NuclearNorm(params.beta),
        decay=SquaredNorm(2 * params.lambda_weights),
        box=Box(params.bound),
        schedule=CosineSchedule(params.mu_max, params.mu_min, params.max_iter),
        gamma=params.gamma,
    )
