"""Fits in threads at once, and many fits in one process."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import COMPLETERS, low_rank
from containers import QUICK

from skmc.checks import quick

pytestmark = pytest.mark.long
THREADS = 4
WARM, FITS = 5, 5  # before memory is measured, and between two measurements
LEAK = 2000  # bytes for each fit; its input alone is larger


def matrices():
    """Different ones of two shapes, a fifth of their cells missing."""
    found = []
    for seed in range(THREADS):
        X = low_rank(30 + 10 * (seed % 2), 12, seed=seed)
        X[np.random.RandomState(seed).uniform(size=X.shape) < 0.2] = np.nan
        found.append(X)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", COMPLETERS)
def test_fits_in_threads_equal_those_one_by_one(cls):
    def answer(X):
        completer = quick(cls(), **{**QUICK, "max_iter": 30})
        return completer.fit_transform(X), completer.reconstruction_

    inputs = matrices()
    expected = [answer(X) for X in inputs]
    with ThreadPoolExecutor(THREADS) as pool:
        for one, other in zip(expected, pool.map(answer, inputs), strict=True):
            assert all(map(np.array_equal, one, other))


def resident():
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", COMPLETERS)
def test_memory_does_not_grow_with_the_number_of_fits(cls):
    """The allocator sometimes takes half a megabyte at once; a leak always grows."""
    completer, inputs = quick(cls(), **QUICK), matrices()

    def held(fits):
        for k in range(fits):
            completer.fit(inputs[k % THREADS])
        gc.collect()
        return resident()

    sizes = [held(fits) for fits in (WARM, FITS, FITS, FITS)]
    assert min(np.diff(sizes)) / FITS < LEAK, sizes
