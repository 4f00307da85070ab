"""Random numbers of one solve: one generator per batch member, no global state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from scipy.special import log_ndtr, ndtri_exp
from torch import Tensor


def fresh_seed() -> int:
    """Draw a seed from the system's entropy."""
    return int(np.random.SeedSequence().generate_state(1)[0])


# The values that scikit-learn admits; also the constraint of a parameter.
Seed = Annotated[int | np.random.RandomState | None, "random_state"]
# Provides seeds where the user gave none; a checkpoint stores them.
ENTROPY: ContextVar[Callable[[], int]] = ContextVar("skmc_entropy", default=fresh_seed)


def seed_of(random_state: Seed) -> int:
    """Convert scikit-learn's ``random_state`` to a seed; fresh entropy for None."""
    if random_state is None:
        return ENTROPY.get()()
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(random_state)


@dataclass(frozen=True)
class Randomness:
    """Random matrices ``(*batch, rows, cols)``, drawn on the CPU so that devices agree.

    Parameters
    ----------
    generators : list of Generator
        Random generator of each member, in row-major order.
    batch_shape : tuple of int
        Shape of the batch axes.
    dtype : dtype
        Floating-point type of the matrices.
    """

    generators: list[torch.Generator]  # one per member, row-major
    batch_shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(
        cls,
        seeds: Iterable[int],
        batch_shape: Iterable[int] = (),
        dtype: torch.dtype = torch.float32,
    ) -> Randomness:
        """Make one generator for each seed."""
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        return cls(generators, tuple(batch_shape), dtype)

    def stream(self, number: int) -> Randomness:
        """An independent stream: one part of a method does not affect another."""
        shift = number * 0x9E3779B97F4A7C15
        seeds = [(g.initial_seed() + shift) % 2**63 for g in self.generators]
        return Randomness.of(seeds, self.batch_shape, self.dtype)

    def select(self, members: Tensor) -> Randomness:
        """Keep some members of the single batch axis."""
        chosen = np.arange(len(self.generators))[members.cpu().numpy()]
        generators = [self.generators[k] for k in chosen]
        return Randomness(generators, (len(generators),), self.dtype)

    def normal(self, rows: int, cols: int, std: float) -> Tensor:
        """Draw from N(0, std^2)."""
        draws = [
            torch.empty(rows, cols, dtype=self.dtype).normal_(0.0, std, generator=g)
            for g in self.generators
        ]
        return torch.stack(draws).view(*self.batch_shape, rows, cols)

    def uniform(self, rows: int, cols: int, bound: float) -> Tensor:
        """Draw uniformly between ``-bound`` and ``bound``."""
        draws = [
            torch.empty(rows, cols, dtype=self.dtype).uniform_(
                -bound, bound, generator=g
            )
            for g in self.generators
        ]
        return torch.stack(draws).view(*self.batch_shape, rows, cols)


def truncated_normal(
    mean: np.ndarray,  # (n,)
    std: np.ndarray | float,  # (n,)
    low: np.ndarray | float,  # (n,)
    high: np.ndarray | float,  # (n,)
    rng: np.random.RandomState,
) -> np.ndarray:  # (n,)
    """Draw from normal distributions between two ends."""
    varies = (std > 0) & (np.asarray(high) > low)
    unit = np.where(varies, std, 1.0)
    a, b = (low - mean) / unit, np.where(varies, (high - mean) / unit, np.inf)
    share = rng.random_sample(len(mean))  # of the mass between the ends
    above = a > 0  # the upper tail, by symmetry: there, the masses are not near one
    a, b = np.where(above, -b, a), np.where(above, -a, b)
    share = np.where(above, 1 - share, share)
    with np.errstate(divide="ignore", invalid="ignore"):
        upto = log_ndtr(b)
        part = share + (1 - share) * np.exp(log_ndtr(a) - upto)
        drawn = ndtri_exp(upto + np.log(part))
    # Where even the logarithm overflows, all mass is at the end that is nearer.
    drawn = np.where(np.isneginf(upto), b, drawn)
    drawn = np.where(above, -drawn, drawn)
    values: np.ndarray = np.where(varies, mean + unit * drawn, mean).clip(low, high)
    return values
