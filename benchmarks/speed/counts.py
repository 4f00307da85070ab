"""Factors of counts, by `FactorizationCompleter` and by the package implicit."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from scipy.sparse import coo_matrix
from threadpoolctl import threadpool_limits

from benchmarks.shared.timing import in_turns
from skmc import Entries, FactorizationCompleter
from skmc.datasets import load_movielens

RANK, ALPHA, RIDGE = 40, 2.0, 5.0
WITHIN = (0.02, 0.001)  # of the lowest loss
MOST = 200  # sweeps
Factors = tuple[np.ndarray, np.ndarray]


class Counts:
    """Counts in single precision, and fits that return factors."""

    def __init__(self, entries: Entries):
        self.places = entries.rows, entries.cols
        values, shape = entries.values.astype(np.float32), entries.matrix_shape
        self.single = Entries.from_triplets(*self.places, values, shape)
        self.weights = 1 + ALPHA * values
        self.confidence = coo_matrix((self.weights, self.places), shape).tocsr()

    def loss(self, U: np.ndarray, V: np.ndarray) -> float:
        """The loss of `FactorizationCompleter`."""
        guess = np.einsum("ik,ik->i", U[self.places[0]], V[self.places[1]])
        seen = self.weights * (guess - 1) ** 2 - guess**2
        every = np.sum((U.T @ U).astype(float) * (V.T @ V))
        ridges = RIDGE * (np.sum(U**2, dtype=float) + np.sum(V**2, dtype=float))
        return float(seen.sum(dtype=float) + every + ridges) / 2

    def ours(self, sweeps: int) -> Factors:
        completer = FactorizationCompleter(
            RANK,
            lambda_ridge=RIDGE,
            alpha=ALPHA,
            per_cell=0.0,
            max_iter=sweeps,
            tol=0.0,
            random_state=0,
        ).fit(self.single)
        U, V = completer.row_factors_, completer.col_factors_
        return U[:, :RANK], V[:, :RANK]

    def theirs(self, sweeps: int, use_cg: bool = True) -> Factors:
        from implicit.als import AlternatingLeastSquares

        model = AlternatingLeastSquares(
            RANK,
            regularization=RIDGE,
            alpha=1.0,
            iterations=sweeps,
            use_cg=use_cg,
            num_threads=torch.get_num_threads(),
            random_state=0,
        )
        with threadpool_limits(1, "blas"):  # otherwise its threads slow each other
            model.fit(self.confidence, show_progress=False)
        return model.user_factors, model.item_factors


def counts() -> dict:
    """Rank 40 of MovieLens-1M, single precision: times of sweeps, and to a loss.

    implicit takes three steps of conjugate gradients for each user, or solves exactly.
    The ratings are counts in a comparison at one thread.
    """
    ratings = {size: load_movielens(size).entries for size in ("100k", "1m")}
    # As in `million`.
    train = np.random.default_rng(7).random(len(ratings["1m"])) >= 0.1
    torch.set_num_threads(1)
    result = by_sweeps(Counts(ratings["1m"][train]))
    for size, entries in ratings.items():
        likes = entries[entries.values >= 4]
        ones = np.ones(len(likes), np.float32)
        places = likes.rows, likes.cols
        likes = Counts(Entries.from_triplets(*places, ones, likes.matrix_shape))
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found = {f"within {share}": to_loss(likes, share) for share in WITHIN}
            result[f"likes of MovieLens-{size}, {threads} threads"] = found
            print(size, threads, found, flush=True)
    return result


def by_sweeps(data: Counts) -> dict:
    """15 sweeps each, timed in turns. Other numbers of sweeps are run once."""
    runs: dict[str, Callable[[int], Factors]] = {
        "ours": data.ours,
        "implicit": data.theirs,
        "implicit, cholesky": partial(data.theirs, use_cg=False),
    }
    seconds = in_turns(*(partial(run, 15) for run in runs.values()))
    result = {
        "seconds": dict(zip(runs, seconds, strict=True)),
        "ours / implicit": seconds[0] / seconds[1],
        "ours / implicit, cholesky": seconds[0] / seconds[2],
        "loss": {name: data.loss(*run(15)) for name, run in runs.items()},
        "by sweeps": {"ours": {}, "implicit": {}},
    }
    for name, points in result["by sweeps"].items():
        for sweeps in (2, 3, 5, 15, 50, 150):
            start = time.process_time()
            factors = runs[name](sweeps)
            took = time.process_time() - start
            point = {"processor seconds": took, "loss": data.loss(*factors)}
            points[sweeps] = point
            print(name, sweeps, point, flush=True)
    return result


def to_loss(data: Counts, share: float) -> dict:
    """Processor seconds of the fewest sweeps to within a share of the lowest loss."""
    runs = {"ours": data.ours, "implicit": data.theirs}
    enough = (1 + share) * min(data.loss(*run(MOST)) for run in runs.values())
    sweeps = {}
    for name, run in runs.items():

        def gain(k: int, run: Callable[[int], Factors] = run) -> float:
            return enough - data.loss(*run(k))

        sweeps[name] = 1 + bisect_left(range(1, MOST), 0.0, key=gain)
    timed = (partial(run, sweeps[name]) for name, run in runs.items())
    seconds = in_turns(*timed, clock=time.process_time)
    return {
        "loss": enough,
        "sweeps": sweeps,
        "processor seconds": dict(zip(runs, seconds, strict=True)),
        "ours / implicit": seconds[0] / seconds[1],
    }
