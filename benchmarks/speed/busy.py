"""Speed beside busy processes: ``python -m benchmarks.speed.busy [PART [NAMES]]``.

The benchmark starts its own neighbors, processes that compute without a pause.

``steps`` compares one thread with all threads in the steps of solvers; the sizes of
`skmc.linalg.Workload` come from it. ``fits`` compares fits with the number of threads
that they choose and with all threads. ``search`` compares `GridSearchCV` with one and
with two worker processes, which are started in advance.

All variants take turns. The processor seconds of the process depend less than the wall
time on what else the machine does.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.timing import solver_of
from skmc import Entries, patterns
from skmc.completers import (
    AIRCompleter,
    DMFCompleter,
    FactorizationCompleter,
    IALMCompleter,
    KNNCompleter,
    NCARLCompleter,
    NonlocalCompleter,
    PatchCNNCompleter,
    SVDCompleter,
    TNNRCompleter,
)
from skmc.datasets import load_photo

TURNS = 3
NEIGHBORS = (0, 1, 2)
SECONDS = {"step": 0.2, "fit": 1.0}  # between two readings of the clocks, at least
# Hyper-parameters that would be chosen by fits are fixed.
STEPS: dict[str, tuple[Any, list[tuple[int, int]]]] = {
    "AIR": (AIRCompleter(), [(240, 240), (500, 500), (1000, 1000), (1500, 1500)]),
    "DMF": (DMFCompleter(), [(240, 240), (1000, 1000), (50_000, 50)]),
    "SVD": (SVDCompleter(rank=5), [(240, 240), (1000, 1000), (3000, 3000)]),
    "IALM": (IALMCompleter(), [(240, 240), (700, 700), (1400, 1400)]),
    "TNNR": (TNNRCompleter(rank=5), [(240, 240), (700, 700), (1400, 1400)]),
    "Factorization": (
        FactorizationCompleter(rank=5, lambda_ridge=0.1),
        [(240, 240), (2000, 1000), (10_000, 2000)],
    ),
    "NCARL": (NCARLCompleter(alpha=1.0, n_neighbors=10), [(240, 240), (500, 500)]),
    "PatchCNN": (PatchCNNCompleter(patch_size=7), [(240, 240), (700, 700)]),
    "Nonlocal": (NonlocalCompleter(), [(240, 240), (700, 700)]),
}
# Of a 240 x 240 picture; so few iterations that the slowest variant takes seconds.
FITS: list[Any] = [
    AIRCompleter(max_iter=25),
    DMFCompleter(max_iter=25),
    IALMCompleter(max_iter=5),
    NCARLCompleter(max_iter=2),
    SVDCompleter(),
    PatchCNNCompleter(patch_size=7, max_iter=2),
    FactorizationCompleter(),
    NonlocalCompleter(max_iter=2),
    KNNCompleter(),
]


@contextmanager
def neighbors(count: int) -> Iterator[None]:
    """Keep ``count`` processes busy."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def all_threads() -> Iterator[None]:
    """Take the choice of the number of threads away."""
    nothing = mock.patch(
        "skmc.linalg.threads._torch_threads", lambda count: nullcontext()
    )
    with nothing:
        yield


def measured(variants: dict[str, Callable[[], object]]) -> dict[str, Any]:
    """Median wall and processor seconds of each variant, taken in turns."""
    clocks = {"wall": time.perf_counter, "processor": time.process_time}
    found: dict[str, Any] = {name: [] for name in variants}
    for _ in range(TURNS):
        for name, variant in variants.items():
            start = [clock() for clock in clocks.values()]
            variant()
            end = [clock() for clock in clocks.values()]
            found[name].append(np.subtract(end, start))
    return {
        name: dict(zip(clocks, np.median(times, axis=0).tolist(), strict=True))
        for name, times in found.items()
    }


def repetitions(variant: Callable[[], object], seconds: float) -> int:
    """How often a variant, which has run once, runs in this time."""
    variant()
    start = time.perf_counter()
    variant()
    return max(1, round(seconds / (time.perf_counter() - start)))


def divide(found: dict[str, Any], count: int) -> None:
    """Change the times of ``count`` repetitions into those of one."""
    for row in found.values():
        for variant in row.values():
            for clock in variant:
                variant[clock] /= count


def beside(variants: dict[str, Callable[[], object]]) -> dict[str, Any]:
    """The same beside none, one and two neighbors."""
    result = {}
    for count in NEIGHBORS:
        with neighbors(count):
            result[f"{count} neighbors"] = measured(variants)
    return result


def matrix(shape: tuple[int, int]) -> np.ndarray:
    """Rank 5 with noise, 30 % hidden, single precision."""
    rng = np.random.RandomState(0)
    X = rng.randn(shape[0], 5) @ rng.randn(5, shape[1]) + 0.1 * rng.randn(*shape)
    X[rng.random_sample(shape) < 0.3] = np.nan
    return X.astype(np.float32)


def steps_of(completer: Any, shape: tuple[int, int]) -> dict[str, Any]:
    """Seconds of a step, with one and with all threads."""
    names = set(completer.get_params()) & {"random_state", "device"}
    fixed = {"random_state": 0, "device": "cpu"}
    completer = clone(completer).set_params(**{name: fixed[name] for name in names})
    many = torch.get_num_threads()
    torch.set_num_threads(1)
    solver, data = solver_of(matrix(shape), completer)
    with torch.no_grad():
        start = solver.step(data, solver.init(data))

    def steps(n_threads: int, count: int) -> None:
        torch.set_num_threads(n_threads)
        state = copy.deepcopy(start)  # steps differ
        for _ in range(count):
            state = solver.step(data, state)

    try:
        with torch.no_grad():
            count = repetitions(lambda: steps(1, 1), SECONDS["step"])
            found = beside(
                {
                    "one thread": lambda: steps(1, count),
                    "all threads": lambda: steps(many, count),
                }
            )
    finally:
        torch.set_num_threads(many)
    divide(found, count)
    for row in found.values():
        row["all threads / one thread"] = (
            row["all threads"]["wall"] / row["one thread"]["wall"]
        )
    return found


def steps(*names: str) -> None:
    for name in names or STEPS:
        completer, shapes = STEPS[name]
        for shape in shapes:
            size = f"{name}, {shape[0]} x {shape[1]}"
            record("speed-busy", {f"step, {size}": steps_of(completer, shape)})


def photo() -> np.ma.MaskedArray:
    """A picture of 240 x 240 whose left edge repeats its right part, 30 % hidden."""
    picture = np.pad(load_photo(), ((0, 27), (0, 0)), mode="reflect")[:, :240]
    return np.ma.masked_array(picture, patterns.random(picture, 0.3, random_state=0))


def fit(completer: Any, X: np.ma.MaskedArray, count: int) -> None:
    for _ in range(count):
        completer.fit_transform(X)


def unlimited(completer: Any, X: np.ma.MaskedArray, count: int) -> None:
    with all_threads():
        fit(completer, X, count)


def fits(*names: str) -> None:
    """Fits with the chosen threads and with all threads."""
    X = photo()
    for completer in FITS:
        name = type(completer).__name__
        if names and name not in names:
            continue
        given = {"random_state": 0, "device": "cpu"}
        known = {k: v for k, v in given.items() if k in completer.get_params()}
        chosen = clone(completer).set_params(**known)

        count = repetitions(partial(fit, chosen, X, 1), SECONDS["fit"])
        variants = {
            "chosen threads": partial(fit, chosen, X, count),
            "all threads": partial(unlimited, chosen, X, count),
        }
        found = beside(variants)
        divide(found, count)
        alone = found["0 neighbors"]["chosen threads"]["wall"]
        for busy, row in found.items():
            times = {variant: row[variant]["wall"] for variant in variants}
            row["all threads / chosen threads"] = (
                times["all threads"] / times["chosen threads"]
            )
            if busy != "0 neighbors":
                row["beside neighbors / without"] = times["chosen threads"] / alone
        record("speed-busy", {f"fit, {name}": found})


def search() -> None:
    """`GridSearchCV` with 1 and 2 workers, which have been started."""
    X = Entries(photo()[:100, :100])
    grid = {"lambda_row": [0.03, 0.3, 3.0], "lambda_col": [0.03, 0.3]}
    completer = AIRCompleter(max_iter=400, random_state=0, device="cpu")
    cv = KFold(3, shuffle=True, random_state=0)
    searches = {
        f"n_jobs={n}": GridSearchCV(completer, grid, cv=cv, n_jobs=n) for n in (1, 2)
    }
    searches["n_jobs=2"].fit(X)
    found = beside({name: partial(each.fit, X) for name, each in searches.items()})
    for row in found.values():
        row["n_jobs=2 / n_jobs=1"] = row["n_jobs=2"]["wall"] / row["n_jobs=1"]["wall"]
    record("speed-busy", {"search": found})


PARTS = {"steps": steps, "fits": fits, "search": search}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    record("speed-busy", {"hardware": hardware()})
    for part in sys.argv[1:2] or PARTS:
        PARTS[part](*sys.argv[2:])
