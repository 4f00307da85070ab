"""Draws of the missing scores of rows given the observed ones, within limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.completers.gaussian.censoring import Censoring
from skmc.linalg import truncated_normal

REDRAWS = 5  # of rows outside of bounds
SWEEPS = 10  # of Gibbs sampling of the rows that are still outside
START_SWEEPS = 8  # of expectation propagation before it, for cells beyond limits


def drawn_scores(
    model: Any,  # Gaussian or FactorGaussian
    scores: Tensor,  # (n_rows, n_cols)
    seen: Tensor,  # (n_rows, n_cols)
    rng: np.random.RandomState,
    limits: tuple[Tensor, Tensor] | None = None,  # (n_cols,) each
    beyond: Censoring | None = None,
) -> Tensor:  # (n_rows, n_cols)
    """Draw the missing scores given the observed ones, within limits.

    Rows outside of the limits are drawn again, or by Gibbs sampling after several draws
    outside. Rows with cells that may be ``beyond`` limits of detection are drawn by
    Gibbs sampling.
    """
    if limits is None:
        end = torch.full_like(model.mean, math.inf)
        limits = -end, end
    drawn = _free(model, scores, seen, rng)
    outside = _redraw(drawn, model, scores, seen, rng, *limits)
    if beyond is not None:
        outside |= beyond.of(~seen).any(1)
        beyond = beyond.rows(outside)
    if outside.any():
        found = _gibbs(model, drawn[outside], seen[outside], rng, *limits, beyond)
        drawn[outside] = found
    return drawn


def _free(
    model: Any, scores: Tensor, seen: Tensor, rng: np.random.RandomState
) -> Tensor:
    """Draw without limits.

    A draw z of the whole rows is corrected by the conditional mean of the difference at
    observed cells.
    """
    z = model.draw(torch.from_numpy(rng.standard_normal(scores.shape)))
    drawn: Tensor = z + model(scores - z + model.mean, seen) - model.mean
    return drawn


def _redraw(
    drawn: Tensor,  # (n_rows, n_cols)
    model: Any,
    scores: Tensor,
    seen: Tensor,
    rng: np.random.RandomState,
    low: Tensor,
    high: Tensor,
) -> Tensor:  # (n_rows,)
    """Draw rows outside of the limits again, in place, and find those to give up."""
    for _ in range(REDRAWS):
        outside = (~seen & ((drawn < low) | (drawn > high))).any(1)
        if not outside.any():
            break
        drawn[outside] = _free(model, scores[outside], seen[outside], rng)
    return outside


def _gibbs(
    model: Any,
    x: Tensor,  # (n_rows, n_cols), where it begins
    seen: Tensor,
    rng: np.random.RandomState,
    low: Tensor,
    high: Tensor,
    beyond: Censoring | None,
) -> Tensor:  # (n_rows, n_cols)
    """Draw limited cells one after the other, and then the others of their rows."""
    limited = (low.isfinite() | high.isfinite()).expand_as(seen)
    if beyond is not None:
        limited = limited | beyond.of(~seen)
        values = torch.where(seen, x, 0.0)
        expected = beyond.completed(model, values, seen, START_SWEEPS)
        noise = torch.from_numpy(rng.standard_normal(x.shape))
        x = torch.where(seen, x, expected.mean + expected.variance.sqrt() * noise)
    x = torch.where(seen, x, x.clamp(low, high))
    precision = torch.linalg.inv(model.covariance)
    for _ in range(SWEEPS):
        for j in limited.any(0).nonzero()[:, 0].tolist():
            rows = ~seen[:, j] & limited[:, j]
            variance = 1 / precision[j, j]
            pull = (x[rows] - model.mean) @ precision[j] * variance
            mean, std = (x[rows, j] - pull).numpy(), float(variance.sqrt())
            ends = float(low[j]), float(high[j])
            if beyond is None:
                found = truncated_normal(mean, std, *ends, rng)
            else:
                found = beyond.drawn(mean, std, *ends, rows, j, rng)
            x[rows, j] = torch.from_numpy(found)
        if not (seen | limited).all():
            x = _free(model, x, seen | limited, rng)
    return x
