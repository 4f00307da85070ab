"""Common treatment of the arguments of patterns."""

from __future__ import annotations

import numpy as np

from skmc.cells import Container, to_cells
from skmc.linalg import Seed, seed_of


def observed_in(X: Container) -> np.ndarray:
    observed = ~np.isnan(to_cells(X))
    if observed.ndim != 2:
        raise ValueError(f"X must be a matrix, got {observed.ndim} dimensions.")
    if not observed.size:
        raise ValueError(f"X has shape {observed.shape}, and so no cell to hide.")
    return observed


def begin(
    X: Container, fraction: float, random_state: Seed
) -> tuple[np.ndarray, np.random.RandomState]:
    """Read the observed cells, and make the generator for the choice."""
    observed = observed_in(X)
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must lie in [0, 1], got {fraction}.")
    return observed, np.random.RandomState(seed_of(random_state) % 2**32)


def hide_likely(
    likelihood: np.ndarray,
    observed: np.ndarray,
    fraction: float,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Sample ``fraction`` of the observed cells in proportion to ``likelihood``."""
    n_hidden = round(fraction * observed.sum())
    # The largest log(p) + Gumbel noise are a weighted sample without replacement.
    with np.errstate(divide="ignore"):
        keys = np.log(likelihood) + rng.gumbel(size=observed.shape)
    order = np.argsort(np.where(observed, keys, -np.inf), axis=None)
    hidden = np.zeros(observed.size, bool)
    hidden[order[observed.size - n_hidden :]] = True
    return hidden.reshape(observed.shape) & observed


def spared(observed: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Mask of the observed cells, except one of each row and one of each column."""
    lot = np.where(observed, rng.random_sample(observed.shape), -1)
    kept = (lot == lot.max(1, keepdims=True)) | (lot == lot.max(0, keepdims=True))
    return observed & ~kept
