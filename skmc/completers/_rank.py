"""The rank of a matrix, given or chosen on held-out cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skmc.base import Trials
from skmc.solvers import HardRank, Solver

RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100)


def checked_rank(rank: int, shape: Sequence[int], otherwise: str = "'auto'") -> int:
    """``rank``, if a matrix of this shape can have it.

    Parameters
    ----------
    rank : int
        The parameter.
    shape : sequence of int
        Of the matrix.
    otherwise : str, default="'auto'"
        What else the user can ask for.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        The rank is above ``min(n_samples, n_features)``.
    """
    most = min(shape)
    if rank > most:
        raise ValueError(
            f"rank={rank} is above min(n_samples, n_features)={most}; lower it or use "
            f"{otherwise}."
        )
    return rank


def choose_rank(
    rank: int | str,
    data: Any,
    trials: Trials,
    solver_of: Callable[[int, Any], Solver] = lambda rank, _: HardRank(rank),
    *,
    ranks: Sequence[int] = RANKS,
    max_iter: int = 100,
    # With few cells and components of like size, the first few ranks are no better
    # than none, and the right one is far better.
    patience: int = 4,
) -> int:
    """``rank``; for "auto", the one that completes held-out cells best.

    Parameters
    ----------
    rank : int or "auto"
        The parameter.
    data : Observed or SparseObserved
        The observed cells.
    trials : Trials
        Fits to a part of them.
    solver_of : callable, default=truncated SVD
        Makes a solver from a rank and the cells to train on.
    ranks : sequence of int, default=RANKS
        Those that are tried.
    max_iter : int, default=100
        Iterations of a trial.
    patience : int, default=4
        Failures in a row that end the search.

    Returns
    -------
    int
    """
    if rank != "auto":
        return checked_rank(int(rank), data.shape)
    possible = [rank for rank in ranks if rank <= min(data.shape)]
    return trials.best(possible, solver_of, max_iter=max_iter, patience=patience)
