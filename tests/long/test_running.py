"""Fits in threads at once, and many fits in one process."""

from __future__ import annotations

import ctypes
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import COMPLETERS, low_rank
from containers import QUICK

from skmc.checks import quick

pytestmark = pytest.mark.long
THREADS = 4
LEAK = 5000  # bytes for each fit; its cells, their mask and its answer are larger


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


class Heap(ctypes.Structure):
    """What `mallinfo2` of the C library returns; uordblks and hblkhd are in use."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def held():
    """Bytes in use of the C library's heap, and of Python's, nearly."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Heap
    gc.collect()
    heap = mallinfo()
    return heap.uordblks + heap.hblkhd + 64 * sys.getallocatedblocks()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", COMPLETERS)
def test_memory_does_not_grow_with_the_number_of_fits(cls):
    """Caches may grow at first; a leak always grows."""
    completer, inputs, sizes = quick(cls(), **QUICK), matrices(), []
    for _ in range(4):
        for X in inputs:
            completer.fit(X)
        sizes.append(held())
    assert min(np.diff(sizes)) / THREADS < LEAK, sizes
