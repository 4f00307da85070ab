"""Rank and weights of a factorization, chosen on held-out cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from skmc.base import Trials
from skmc.cells import SparseObserved
from skmc.completers._rank import checked_rank
from skmc.linalg import LowRank, Randomness, partial_svd
from skmc.solvers import ALS

if TYPE_CHECKING:
    from skmc.completers.factorization import FactorizationCompleter

FIRST_RANK, LARGEST_RANK = 16, 64
WEIGHTS = tuple(0.32 * 0.5**k for k in range(16))
SIDE_WEIGHTS = tuple(0.32 * 0.7**k for k in range(32))  # with side information
FINER = 0.5**0.5  # factor between weights at the chosen rank
SIDE_FACTORS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
SWEEPS = (6, 4)  # of a trial from random factors, and from those of another trial
SIDE_SWEEPS = 10
LEAST = 0.01  # smallest singular value of the first factors of counts
VANISHED = 0.003  # share of a component in the deviation of the cells


def choose_all(
    completer: FactorizationCompleter, data: SparseObserved, trials: Trials
) -> dict[str, Any]:
    """Choose rank and weights on held-out cells, as the method ``_choose``."""
    rank, weight, side = completer.rank, completer.lambda_ridge, completer.lambda_side
    if completer.alpha is not None and "auto" in (rank, weight):
        raise ValueError(
            "With alpha, rank and lambda_ridge must be numbers: errors of held-out "
            "cells do not judge preferences. Search them with a RankingScorer."
        )
    informed = any(data.sides)
    if rank == "auto":
        size = min(FIRST_RANK, *data.shape)
    else:
        size = checked_rank(int(rank), data.shape)
    per_row = len(data.values) / data.shape[0] if informed else 1.0
    first = WEIGHTS[0] if weight == "auto" else float(weight)
    cells = per_row**completer.per_cell
    search = _Search(completer, trials, None if side == "auto" else float(side), cells)
    automatic = "auto" in (rank, weight, side if informed else None)
    if automatic and not trials.interrupted and trials.cells[1] is not None:
        with trials.interruptible():
            weights = SIDE_WEIGHTS if informed else WEIGHTS
            weights = weights if weight == "auto" else (first,)
            search.walk([(size, weight) for weight in weights], patience=2)
            if informed and side == "auto":
                search.choose_side()
            if rank == "auto":
                most = min(LARGEST_RANK, *data.shape)
                search.choose_rank(most, patience=6 if informed else 1)
            if weight == "auto" and not informed:
                search.refine()
    best = search.best
    if best is None:
        size = 1 if rank == "auto" else size
        side = first * cells if side == "auto" else side
        best = _Trial(0.0, size, first, side, None)
    chosen = {"rank": best.rank, "lambda_ridge": best.weight}
    if informed:
        return {**chosen, "lambda_side": best.side, "_start": None}
    return {**chosen, "_start": best.factors}


class _Trial(NamedTuple):
    """A solution for the cells to train on, and its error on the others."""

    error: float
    rank: int
    weight: float
    side: float
    factors: tuple[Tensor, Tensor] | None  # (m, rank + 1), (n, rank + 1), with biases


@dataclass
class _Search:
    """Trials that start from the factors of earlier ones.

    A few sweeps are sufficient, because weights and ranks change by small steps.
    """

    completer: FactorizationCompleter
    trials: Trials
    side: float | None  # weight of linear priors; None is proportional to the ridge
    per_ridge: float  # ratio of the two weights
    best: _Trial | None = None

    def walk(self, steps: Iterable[tuple[int, float]], patience: int) -> None:
        """Try ranks and weights in order, until ``patience`` of them are no better."""
        last, failures = self.best, 0
        train, _ = self.trials.cells
        for rank, weight in steps:
            # The maps of linear priors begin at zero, so their trials begin anew.
            start = None
            if last is not None and not any(train.sides):
                start = _resized(last, rank, train)
            side = weight * self.per_ridge if self.side is None else self.side
            rng = self.trials.rng
            solver = als(self.completer, train, rank, weight, side, rng, start)
            sweeps = SIDE_SWEEPS if any(train.sides) else SWEEPS[start is not None]
            sweeps = min(self.completer.max_iter, sweeps)
            solution = self.trials.run(solver, max_iter=sweeps)
            factors = last_factors(solution.X, rank, row_biases=True)
            last = _Trial(self.trials.error(solution), rank, weight, side, factors)
            if self.best is None or last.error < self.best.error:
                self.best, failures = last, 0
            else:
                failures += 1
            if failures == patience:
                break

    def choose_side(self) -> None:
        assert self.best is not None
        _, rank, weight, side, _ = self.best
        self.side = self.trials.best(
            [side * factor for factor in SIDE_FACTORS],
            lambda side, part: als(
                self.completer, part, rank, weight, side, self.trials.rng
            ),
            max_iter=min(self.completer.max_iter, SIDE_SWEEPS),
            patience=3,
        )
        error = min(self.best.error, self.trials.lowest)
        self.best = self.best._replace(side=self.side, error=error)

    def choose_rank(self, most: int, patience: int) -> None:
        """Double and halve the rank, and then try those halfway to the neighbors."""
        assert self.best is not None
        _, rank, weight, *_ = self.best
        doubled = [rank * 2**k for k in range(1, 7) if rank * 2**k <= most]
        self.walk([(r, weight) for r in doubled], patience)
        halved = [rank // 2**k for k in range(1, 7) if rank // 2**k]
        self.walk([(r, weight) for r in halved], patience + 1)
        rank = self.best.rank
        between = {3 * rank // 4, 3 * rank // 2} - {0, rank}
        self.walk([(r, weight) for r in sorted(between) if r <= most], patience=2)

    def refine(self) -> None:
        """Try smaller weights, or else larger ones, at the chosen rank."""
        assert self.best is not None
        _, rank, weight, *_ = self.best
        for factor in (FINER, 1 / FINER):
            self.walk([(rank, weight * factor**k) for k in range(1, 12)], patience=1)
            if self.best.weight != weight:
                break


def _resized(last: _Trial, rank: int, data: SparseObserved) -> tuple[Tensor, Tensor]:
    """Factors of a trial with more or fewer components.

    The components with the largest singular values are kept. New ones, and those that
    have vanished under a larger weight, are NaN in the rows.
    """
    assert last.factors is not None
    (U, b), (V, c) = ((W[:, :-1], W[:, -1:]) for W in last.factors)
    if rank < last.rank:
        (Q, R), (P, S) = torch.linalg.qr(U), torch.linalg.qr(V)
        left, sizes, right = torch.linalg.svd(R @ S.mT)
        root = sizes[:rank].sqrt()
        U, V = Q @ left[:, :rank] * root, P @ right[:rank].mT * root
    more = (0, max(0, rank - last.rank))
    U, V = (torch.nn.functional.pad(W, more) for W in (U, V))
    share = (U.square().mean(0) * V.square().mean(0)).sqrt()
    unit = (data.energy / data.counts.sum()).sqrt()
    U = torch.where(share < VANISHED * unit, torch.nan, U)
    return torch.cat([U, b], 1), torch.cat([V, c], 1)


def last_factors(
    last: LowRank | None, rank: int, row_biases: bool
) -> tuple[Tensor, Tensor] | None:
    """Factors and biases of the last fit, if it had the same rank and biases."""
    if last is None or last.left.shape[1] != rank + 1 + row_biases:
        return None
    left, right = last.left, last.right
    b = left[:, rank : rank + 1] if row_biases else torch.zeros_like(left[:, :1])
    cols = torch.cat([right[:, :rank], right[:, -1:]], 1)
    return torch.cat([left[:, :rank], b], 1), cols


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
    last: tuple[Tensor, Tensor] | None = None,
) -> ALS:
    """Make the solver for given weights and factors, of which NaN are random."""
    explicit, biases, cols = completer.alpha is None, None, None
    size = data.shape[0 if explicit or last is not None else 1]

    def drawn() -> Tensor:
        numbers = rng.stream(rank).normal(size, rank, std=rank**-0.5)
        return numbers.to(data.dtype).to(data.device)

    start: Tensor | Callable[[], Tensor] = drawn  # may be large, so it is not kept
    if last is not None:
        rows, cols = (W.to(data.dtype).to(data.device) for W in last)
        known, biases = rows[:, :rank], rows[:, rank]
        start = torch.where(known.isnan(), drawn(), known)
    elif not explicit:
        start = _spectral(data, drawn())
    return ALS(
        start,
        weight,
        row_biases=explicit and completer.biases in ("both", "rows"),
        col_biases=explicit and completer.biases in ("both", "columns"),
        per_cell=completer.per_cell,
        implicit=not explicit,
        link_weight=side,
        start_biases=biases,
        start_cols=cols,
    )
