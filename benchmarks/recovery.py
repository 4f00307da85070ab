"""From how few cells is a matrix of low rank recovered, and at which condition number?

A matrix is observed at rho times as many cells as it has degrees of freedom, with at
least as many in each row and column as its rank. Its singular values are spaced
logarithmically. The error is relative, over all cells. Only methods that are named so
are told the rank.

    python benchmarks/recovery.py
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
from common import Results, run

import skmc

SEEDS = range(20)
RHO = 1.3, 1.5, 2.0, 2.5, 3.0
CONDITION = 1.0, 10.0, 1e3, 1e6
METHODS = {
    "LogDet": lambda rank, seed: skmc.LogDetCompleter(random_state=seed),
    "Factorization": lambda rank, seed: skmc.FactorizationCompleter(random_state=seed),
    "Soft-Impute": lambda rank, seed: skmc.SoftImputeCompleter(random_state=seed),
    "IALM": lambda rank, seed: skmc.IALMCompleter(),
    "SVD": lambda rank, seed: skmc.SVDCompleter(random_state=seed),
    "SVD, given the rank": lambda rank, seed: skmc.SVDCompleter(rank, tol=1e-9),
}
# Smallest rho with a median error below 1e-4 at 1000 x 1000, rank 5, told the rank:
# Kuemmerle, Mayrink Verdun, ICML 2021; Bauch, Nadler, Zilber, SIMODS 2021.
PUBLISHED = {10.0: {"MatrixIRLS": 1.5, "R2RILS": 1.5}}
PUBLISHED[1e5] = {"MatrixIRLS": 2.0, "R2RILS": 3.0}


def problem(
    shape: tuple[int, int], rank: int, rho: float, condition: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of root mean square 1, and its observed cells."""
    rng = np.random.RandomState(seed)
    U, V = (np.linalg.qr(rng.randn(size, rank))[0] for size in shape)
    truth = U * np.logspace(0, -np.log10(condition), rank) @ V.T
    truth /= np.sqrt(np.mean(truth**2))
    seen = np.zeros(truth.size, bool)
    seen[rng.permutation(truth.size)[: int(rho * rank * (sum(shape) - rank))]] = True
    seen = seen.reshape(shape)
    for mask in (seen, seen.T):
        for row in mask:
            missing = rng.permutation(np.flatnonzero(~row))
            row[missing[: max(0, rank - row.sum())]] = True
    return truth, seen


def score(truth: np.ndarray, X: np.ndarray, completer: Any) -> dict[str, float]:
    """Error over all cells, rank, and share of the rows with a certificate."""
    completer.fit(X)
    error = np.linalg.norm(completer.reconstruction_ - truth) / np.linalg.norm(truth)
    found = {"error over all cells": float(error)}
    if hasattr(completer, "rank_"):
        found["rank"] = completer.rank_
    if hasattr(completer, "exact_"):
        found["certified rows"] = float(completer.exact_.mean())
    return found


def exact(results: Results) -> None:
    """Condition numbers and shares of cells, at 300 x 300."""
    for seed, rank in itertools.product(SEEDS, (5, 10)):
        for rho, condition in itertools.product(RHO, CONDITION):
            truth, seen = problem((300, 300), rank, rho, condition, seed)
            X = np.where(seen, truth, np.nan)
            data = f"300 x 300 rank {rank} condition {condition:g}"
            for name, make in METHODS.items():
                if name == "LogDet" or seed < 3:
                    case = ("exact", data, f"rho {rho:g}", name, seed)
                    fit = partial(score, truth, X, make(rank, seed))
                    results.measure(case, fit)
    for condition, printed in PUBLISHED.items():
        data = f"1000 x 1000 rank 5 condition {condition:g}"
        results.published("exact", data, "smallest rho", "rho", printed)


def noisy(results: Results) -> None:
    """Noise of two sizes."""
    for seed, sigma in itertools.product(SEEDS, (1e-2, 1e-4)):
        truth, seen = problem((300, 300), 5, 2.5, 10.0, seed)
        noise = sigma * np.random.RandomState(seed).randn(*truth.shape)
        X = np.where(seen, truth + noise, np.nan)
        for name, make in METHODS.items():
            if name == "LogDet" or seed < 3:
                case = ("noise", f"300 x 300 rank 5 sigma {sigma:g}", "rho 2.5", name)
                results.measure((*case, seed), partial(score, truth, X, make(5, seed)))


if __name__ == "__main__":
    run(__doc__, exact, noisy)
