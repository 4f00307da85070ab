"""A completer's solver, taken out of it, and its time; memory of a process."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skmc import Observed
from skmc.base import IterativeCompleter
from skmc.cells import Given
from skmc.linalg import Randomness
from skmc.solvers import Solver


def prepared(X: Any, completer: IterativeCompleter) -> Given:
    """The data as a completer's solver gets them, and the scaling to undo."""
    return completer._scaled(completer._given(X, {}))


def solver_of(X: Any, completer: IterativeCompleter) -> tuple[Any, Any]:
    """The solver that a completer would run on ``X``, and its scaled data."""
    data = prepared(X, completer).data
    rng = Randomness.of([0], dtype=data.dtype)
    chosen = completer._chosen(data, 0, rng, None, {}).params
    return completer._make_solver(data, completer._params(chosen), rng), data


@torch.no_grad()
def seconds_per_step(
    solver: Solver, data: Observed, n_iter: int, warm_up: int = 10
) -> float:
    """Mean wall time of a step after ``warm_up`` steps; waits for a CUDA device."""
    state = solver.init(data)
    for _ in range(warm_up):
        state = solver.step(data, state)
    synchronize(data)
    start = time.perf_counter()
    for _ in range(n_iter):
        state = solver.step(data, state)
    synchronize(data)
    return (time.perf_counter() - start) / n_iter


def synchronize(data: Observed) -> None:
    if data.values.is_cuda:
        torch.cuda.synchronize()


def in_turns(
    *functions: Callable[[], object],
    repeats: int = 7,
    clock: Callable[[], Any] = time.perf_counter,
) -> np.ndarray:
    """Median seconds of each function; all run in turns, so that all share noise."""

    def seconds(function: Callable[[], object]) -> Any:
        start = clock()
        function()
        return clock() - start

    return np.median([[seconds(f) for f in functions] for _ in range(repeats)], axis=0)


def both_clocks() -> np.ndarray:
    """Wall and processor seconds, for `in_turns`."""
    return np.array([time.perf_counter(), time.process_time()])


def peak_memory() -> float:
    """Bytes that this process has used at most so far; NaN on Windows."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux, where a child's ``ru_maxrss`` begins as its parent's
        words = status.read_text().split()
        return 1024 * float(words[words.index("VmHWM:") + 1])
    try:
        import resource
    except ModuleNotFoundError:
        return math.nan
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size * (1 if sys.platform == "darwin" else 1024)


def apart(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a new process, whose memory is its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *args).result()
