"""The rank of a matrix, given or chosen on held-out cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from skmc import patterns
from skmc.base import Choice, Trials
from skmc.cells import Cells, Observed
from skmc.loop import Solution
from skmc.new_rows import FoldIn, content_order
from skmc.solvers import HardRank, Solver

RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100)
# Rank 0 is the mean; it comes second, for fits that have time for one rank only.
WITH_MEAN = (RANKS[0], 0, *RANKS[1:])


def checked_rank(rank: int, shape: Sequence[int], otherwise: str = "'auto'") -> int:
    """Return ``rank``, or raise an error that suggests ``otherwise``."""
    largest = min(shape)
    if rank > largest:
        raise ValueError(
            f"rank={rank} is above min(n_samples, n_features)={largest}; lower it or "
            f"use {otherwise}."
        )
    return rank


def choose_rank(
    rank: int | str,
    data: Cells,
    trials: Trials,
    solver_of: Callable[[int, Any], Solver] = lambda rank, _: HardRank(rank),
    *,
    ranks: Sequence[int] = RANKS,
    max_iter: int = 100,
    # With few cells and components of similar size, the first few ranks are no better
    # than the mean, but the right one is far better.
    patience: int = 4,
    penalized: Callable[[int, Solution], float] | None = None,
) -> Choice:
    """Choose ``rank``; for "auto", the one that completes held-out cells best.

    ``solver_of`` makes a solver from a rank and the cells to train on. The search over
    ``ranks``, in trials of ``max_iter`` iterations, ends after ``patience`` successive
    failures; see `Trials.best` for ``penalized``. The noise of the best trial is chosen
    with it.
    """
    if rank != "auto":
        return Choice({"rank": checked_rank(int(rank), data.shape)})
    possible = [rank for rank in ranks if rank <= min(data.shape)]
    best = trials.best(
        possible,
        solver_of,
        max_iter=max_iter,
        patience=patience,
        penalized=penalized,
    )
    if trials.solution is None or not isinstance(data, Observed):
        return Choice({"rank": best})
    return Choice({"rank": best}, noise=noise_of(trials.solution.X, trials))


def noise_of(X: Tensor, trials: Trials) -> tuple[float, float]:
    """Variance of the cells of rows, and of columns, around a trial."""
    train, held_out = trials.cells
    values = train.values + held_out.values  # each is 0 where it has no cell
    used = (values != 0).any(0)  # others are constant, and have no noise
    cells = X, values, train.times, held_out.times
    parts = [part[:, used].cpu() for part in cells]
    return FoldIn.noise_of(*parts), FoldIn.noise_of(*(part.mT for part in parts))


def held_out_by_content(cells: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Draw cells to hold out that do not depend on the order of the rows."""
    order = content_order(cells)
    hidden = np.empty(cells.shape, bool)
    hidden[order] = patterns.random(cells[order], share, spare=True, random_state=seed)
    return hidden
