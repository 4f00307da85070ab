"""Fits in threads at once, and many fits in one process."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.containers import QUICK
from skmc.checks import all_completers, low_rank, quick

THREADS = 4
WARM = 100  # fits before memory is measured
LEAK = 2000  # bytes for each fit; its input alone is larger


def matrices() -> list[np.ndarray]:
    """Different ones of two shapes, a fifth of their cells missing."""
    found = []
    for seed in range(THREADS):
        X = low_rank(30 + 10 * (seed % 2), 12, seed=seed)
        X[np.random.RandomState(seed).uniform(size=X.shape) < 0.2] = np.nan
        found.append(X)
    return found


def fit_at_once(rounds: int) -> dict[str, Any]:
    """Fit each completer in four threads, and one after the other."""
    inputs, tried, lost = matrices(), 0, []

    def answer(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        completer = quick(cls(), **{**QUICK, "max_iter": 30})
        return completer.fit_transform(X), completer.reconstruction_

    with ThreadPoolExecutor(THREADS) as pool:
        for cls in all_completers():
            expected = [answer(X) for X in inputs]
            for _ in range(rounds):
                for one, other in zip(expected, pool.map(answer, inputs), strict=True):
                    equal = all(map(np.array_equal, one, other))
                    lost += [cls.__name__] * (not equal)
                    tried += 1
    return {"tried": tried, "lost": lost}


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def fit_often(fits: int) -> dict[str, Any]:
    """Fit each completer so often; memory grows by so many bytes for each fit.

    This is the growth in the half of the fits with less of it: the allocator sometimes
    takes half a megabyte at once, but a leak grows in both.
    """
    grown: dict[str, float] = {}
    inputs = matrices()

    def held(completer: Any, fits: int) -> int:
        for k in range(fits):
            completer.fit(inputs[k % THREADS])
        gc.collect()
        return resident()

    for cls in all_completers():
        completer = quick(cls(), **QUICK)
        sizes = WARM, fits // 2, fits // 2
        before, middle, end = (held(completer, size) for size in sizes)
        least = min(middle - before, end - middle)
        grown[cls.__name__] = round(max(least, 0) / (fits // 2))
    lost = [name for name, size in grown.items() if size > LEAK]
    return {"tried": fits * len(grown), "lost": lost, "grown": grown}
