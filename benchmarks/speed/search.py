"""Speed of batched searches: ``python -m benchmarks.speed.search [rounds [steps]]``.

5 x 5 weights of AIR x 5 folds of cells, 2 000 iterations, double precision, at 30 x 40
and 100 x 100: `GridSearchCV`, `BatchedGridSearchCV` and `BatchedHalvingSearchCV`, each
with two worker processes, which are started in advance. The searches take turns;
figures are medians and ratios of medians.

``python -m benchmarks.speed.search small [rounds]``: 5 weights of other completers x 3
folds of cells, with their default iterations, at 30 x 40 and 60 x 40, without refit:
`GridSearchCV` and `BatchedGridSearchCV` in turns, in one process. Then the
microseconds of a step, alone and for a member of a batch of 25, down to 5 x 4, where
hardly anything is computed. `SoftImputeCompleter` has no batches.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.timing import in_turns, seconds_per_step, solver_of
from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    Entries,
    LinkedFactorizationCompleter,
    NSRCompleter,
    SoftImputeCompleter,
    patterns,
)
from skmc.datasets import load_photo
from skmc.metrics import nmae
from skmc.model_selection import BatchedGridSearchCV, BatchedHalvingSearchCV

WEIGHTS = [0.003, 0.03, 0.3, 3.0, 30.0]
SHAPES = {"30 x 40": (30, 40), "100 x 100": (100, 100)}
KINDS = {
    "GridSearchCV": GridSearchCV,
    "BatchedGridSearchCV": BatchedGridSearchCV,
    "BatchedHalvingSearchCV": BatchedHalvingSearchCV,
}


def searches(max_iter: int) -> dict:
    grid = {"lambda_row": WEIGHTS, "lambda_col": WEIGHTS}
    completer = AIRCompleter(max_iter=max_iter, random_state=0)
    cv = KFold(5, shuffle=True, random_state=0)
    return {
        name: kind(completer, grid, cv=cv, n_jobs=2) for name, kind in KINDS.items()
    }


def compare(shape: tuple[int, int], rounds: int, max_iter: int) -> dict:
    photo = load_photo("flower").astype(float)
    m, n = shape
    truth = photo[60 : 60 + m, 80 : 80 + n]
    hidden = patterns.random(truth, 0.3, random_state=0)
    X = Entries(np.ma.masked_array(truth, hidden))
    for search in searches(25).values():  # starts the workers
        search.fit(X)
    seconds: dict[str, list[float]] = {name: [] for name in KINDS}
    for _ in range(rounds):
        found = searches(max_iter)
        for name, search in found.items():
            start = time.perf_counter()
            search.fit(X)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: float(np.median(times)) for name, times in seconds.items()}
    loop, batch, halving = found.values()
    scores = [s.cv_results_["mean_test_score"] for s in (loop, batch)]
    return {
        "seconds": medians,
        "times as fast as GridSearchCV": {
            name: medians["GridSearchCV"] / s for name, s in medians.items()
        },
        "largest relative difference of mean scores, grid": float(
            np.abs(scores[1] / scores[0] - 1).max()
        ),
        "best_score_": {name: s.best_score_ for name, s in found.items()},
        "best_params_": {name: s.best_params_ for name, s in found.items()},
        "NMAE on the missing cells": {
            name: nmae(s.best_estimator_.reconstruction_, truth, hidden)
            for name, s in found.items()
        },
        "rungs": dict(
            zip(halving.n_resources_, halving.n_candidates_, strict=True),
        ),
    }


# Completers, the weight that is searched, and its values.
SMALL = (
    (
        LinkedFactorizationCompleter(3, 1.0, random_state=0),
        "lambda_ridge",
        [0.1, 1, 3, 10, 30],
    ),
    (
        NSRCompleter(rank=3, lambda_decoder=2.0, random_state=0),
        "lambda_decoder",
        [0.5, 2, 4, 8, 32],
    ),
    (AutoencoderCompleter(random_state=0), "lambda_weights", [0.1, 0.3, 1, 2, 3]),
)


def bent_matrix(m: int, n: int) -> Entries:
    rng = np.random.RandomState(0)
    truth = np.tanh(rng.randn(m, 3) @ rng.randn(3, n)) + 0.1 * rng.randn(m, n)
    hidden = patterns.random(truth, 0.3, spare=True, random_state=0)
    return Entries(np.ma.masked_array(truth, hidden))


def compare_small(rounds: int) -> dict:
    found: dict[str, dict] = {}
    for m, n in ((30, 40), (60, 40)):
        X = bent_matrix(m, n)
        for completer, name, weights in SMALL:
            cv = KFold(3, shuffle=True, random_state=0)
            searches = [
                kind(completer, {name: weights}, cv=cv, refit=False)
                for kind in (GridSearchCV, BatchedGridSearchCV)
            ]
            fits = (partial(search.fit, X) for search in searches)
            alone, together = in_turns(*fits, repeats=rounds)
            scores = [s.cv_results_["mean_test_score"] for s in searches]
            found.setdefault(type(completer).__name__, {})[f"{m} x {n}"] = {
                "seconds": {"GridSearchCV": alone, "BatchedGridSearchCV": together},
                "times as fast as GridSearchCV": {
                    "BatchedGridSearchCV": alone / together
                },
                "largest relative difference of mean scores": float(
                    np.abs(scores[1] / scores[0] - 1).max()
                ),
            }
    return found


def steps() -> dict:
    """Microseconds of a step by completer and shape, the lowest of three."""
    found: dict[str, dict] = {}
    completers = [completer for completer, *_ in SMALL]
    for completer in [*completers, SoftImputeCompleter(0.1)]:
        times = found[type(completer).__name__] = {}
        for m, n in ((5, 4), (30, 20), (60, 40), (200, 100)):
            X = bent_matrix(m, n)
            runs = {"alone": (*solver_of(X, completer), 1)}
            if completer.completer_tags.batched:
                members = [clone(completer) for _ in range(25)]
                prepared = [member.batch_prepare(X) for member in members]
                run = completer.batch_run(members, prepared, range(25))
                runs["member of 25"] = run.solver, run.data, 25
            times[f"{m} x {n}"] = {
                name: min(seconds_per_step(solver, data, 12, 5) for _ in range(3))
                / members
                * 1e6
                for name, (solver, data, members) in runs.items()
            }
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["small"]:
        rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
        small = {"hardware": hardware(), "rounds": rounds, **compare_small(rounds)}
        small["microseconds of a step"] = steps()
        record("speed-search", {"small": small})
        sys.exit()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    max_iter = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    conditions = {"hardware": hardware(), "rounds": rounds, "iterations": max_iter}
    record("speed-search", conditions)
    for name, shape in SHAPES.items():
        record("speed-search", {name: compare(shape, rounds, max_iter)})
