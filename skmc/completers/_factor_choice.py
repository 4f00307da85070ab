"""Rank and weights of a factorization, chosen on held-out cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from skmc.base import Trials
from skmc.cells import SparseObserved
from skmc.completers._rank import checked_rank, choose_rank
from skmc.linalg import LowRank, Randomness, partial_svd
from skmc.solvers import ALS

if TYPE_CHECKING:
    from skmc.completers.factorization import FactorizationCompleter

FACTOR_RANKS = (1, 2, 4, 8, 16, 32, 64)
FIRST_RANK = 16  # rank at which the weight is chosen
WEIGHTS = tuple(0.32 * 0.7**k for k in range(32))
SIDE_FACTORS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
TRIAL_SWEEPS = 10
LEAST = 0.01  # smallest singular value of the first factors


def choose_all(
    completer: FactorizationCompleter, data: SparseObserved, trials: Trials
) -> dict[str, Any]:
    """Choose rank and weights on held-out cells, as the method ``_choose``."""
    rank, most = completer.rank, min(data.shape)
    weight: Any = completer.lambda_ridge
    side: Any = completer.lambda_side
    if completer.alpha is not None and "auto" in (rank, weight):
        raise ValueError(
            "With alpha, rank and lambda_ridge must be numbers: errors of held-out "
            "cells do not judge preferences. Search them with a RankingScorer."
        )
    sweeps = min(completer.max_iter, TRIAL_SWEEPS)
    informed, automatic = any(data.sides), side == "auto"
    per_row = informed and completer.per_cell
    cells = len(data.values) / data.shape[0] if per_row else 1.0

    size = min(FIRST_RANK, most) if rank == "auto" else checked_rank(rank, data.shape)
    make = partial(als, completer, rng=trials.rng)
    if weight == "auto":
        weight = trials.best(
            WEIGHTS,
            lambda weight, part: make(
                part, size, weight, weight * cells if automatic else side
            ),
            max_iter=sweeps,
        )
    if automatic:
        side = weight * cells
    if informed and automatic:
        side = trials.best(
            [side * factor for factor in SIDE_FACTORS],
            lambda side, part: make(part, size, weight, side),
            max_iter=sweeps,
            patience=3,
        )
    if rank == "auto":
        size = _rank(data, trials, make, weight, side, sweeps)
    chosen = {"rank": size, "lambda_ridge": weight}
    return {**chosen, "lambda_side": side} if informed else chosen


def _rank(
    data: SparseObserved,
    trials: Trials,
    make: Callable[..., ALS],
    weight: float,
    side: float,
    sweeps: int,
) -> int:
    """The best power of two, or a rank between it and its neighbors."""

    def best(ranks: Sequence[int]) -> int:
        return choose_rank(
            "auto",
            data,
            trials,
            lambda rank, part: make(part, rank, weight, side),
            ranks=ranks,
            max_iter=sweeps,
            patience=len(ranks),  # the small ranks of ratings are similar
        )

    rank = best(FACTOR_RANKS)
    lowest, most = trials.lowest, min(FACTOR_RANKS[-1], *data.shape)
    half_way = {3 * rank // 4, 3 * rank // 2} - {0, *FACTOR_RANKS}
    between = sorted(r for r in half_way if r <= most)
    other = best(between) if between else rank
    return other if trials.lowest < lowest else rank


def _spectral(data: SparseObserved, noise: Tensor) -> Tensor:
    """Factors of the rows of the matrix that is 1 at the cells and 0 elsewhere.

    They are those of a few power iterations. None is zero, which sweeps would not
    change.
    """
    A = data.plus(torch.ones_like(data.values), data.zero())
    near = partial_svd(A, noise.shape[1], start=A.mT @ (A @ noise), max_steps=1)
    top = partial_svd(A, noise.shape[1], start=near.V, max_steps=1)
    return top.U * top.s.clamp_min(LEAST * top.s[0]).sqrt()


def als(
    completer: FactorizationCompleter,
    data: SparseObserved,
    rank: int,
    weight: float,
    side: float,
    rng: Randomness,
    last: LowRank | None = None,
    conjugate: bool = False,
) -> ALS:
    """Make the solver for given factors, weights and start."""
    explicit = completer.alpha is None
    normal = partial(rng.stream(rank).normal, std=rank**-0.5)
    if explicit or last is not None:
        start = normal(data.shape[0], rank).to(data.dtype)
    else:
        start = _spectral(data, normal(data.shape[1], rank).to(data.values))
    row_biases = explicit and completer.biases in ("both", "rows")
    biases = cols = None
    if last is not None and last.left.shape[1] == rank + 1 + row_biases:
        like = torch.empty(0, dtype=data.dtype, device=data.device)
        left, cols = last.left.to(like), last.right.to(like)
        start, biases = left[:, :rank], left[:, rank] if row_biases else None
        cols = torch.cat([cols[:, :rank], cols[:, -1:]], 1)
    options: dict[str, Any] = {
        "row_biases": row_biases,
        "col_biases": explicit and completer.biases in ("both", "columns"),
        "per_cell": explicit and completer.per_cell,
        "implicit": not explicit,
        "link_weight": side,
        "conjugate": conjugate,
        "start_biases": biases,
        "start_cols": cols,
    }
    solver: ALS = completer.storages[type(data)](start, weight, **options)
    return solver
