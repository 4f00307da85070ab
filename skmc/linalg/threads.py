"""The device of a computation, and its number of threads.

The number depends on the size of the computation and on its calls.

Torch divides each call among its threads, which then wait for each other. A step on a
small matrix consists of many short calls. More threads save little time on an idle
machine. On a busy one, each call waits until its last thread gets a processor.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from enum import Enum
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController

# Cost of one number in a pass over numbers, such as a sum, in multiplications of a
# matrix product.
PASS = 64
ASSUMED_MEMORY = 8 * 2**30  # bytes, where the operating system does not report it


class Workload(Enum):
    """The main kind of operation in a computation.

    The value is the work, see `work_of`, from which `threads_for` allows more than one
    thread.
    """

    PRODUCTS = 1e9
    DECOMPOSITIONS = 1e11


def work_of(numbers: int, side: int = 0) -> int:
    """Return the work of a product of a matrix with a square one."""
    return numbers * (side + PASS)


class _Here(threading.local):
    """State of the calling Python thread."""

    allowed: int | None = None  # number of threads outside of all blocks
    used: int | None = None


_here = _Here()


@contextmanager
def threads_for(work: float, workload: Workload = Workload.PRODUCTS) -> Iterator[None]:
    """Use one thread in a small computation, and all allowed ones in a large one.

    The number of Torch's threads outside of all blocks is the user's limit. It is
    never exceeded and is restored at the end. Within the block, the limit of one
    thread holds for Torch and OpenMP in the calling Python thread. It holds for the
    BLAS of NumPy and SciPy in the whole process, until no block needs it. A block
    inside another may raise the number of threads again. Work on a CUDA device is not
    affected.
    """
    small, outside = work < workload.value, (_here.allowed, _here.used)
    allowed = _here.allowed or torch.get_num_threads()
    used = 1 if small else allowed
    if used == _here.used or (_here.allowed is None and not small):
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(_torch_threads(used))
        if small:
            stack.enter_context(_one_blas_thread)
        _here.allowed, _here.used = allowed, used
        try:
            yield
        finally:
            _here.allowed, _here.used = outside


def threads_for_rows(
    rows: np.ndarray,  # (n_rows, n_cols)
    times: int = 1,
) -> AbstractContextManager[None]:
    """`threads_for` computations with rows outside of solves."""
    return threads_for(work_of(times * rows.size, min(rows.shape)))


def in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Call a function for many items, each with one thread, as many as are allowed.

    Threads of a single call wait for each other; those of different calls do not.
    """
    items = list(items)
    n_threads = min(len(items), _here.allowed or torch.get_num_threads())
    if n_threads <= 1:
        yield from map(function, items)
        return

    @torch.no_grad()
    def alone(item: Any) -> Any:
        with threads_for(0):
            return function(item)

    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(alone, items)


@functools.cache
def _libraries() -> ThreadpoolController:
    """BLAS and OpenMP libraries of this process, found once."""
    return ThreadpoolController()


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    """Set the number of threads of OpenMP and Torch in the calling Python thread."""
    with _libraries().limit(limits=count, user_api="openmp"):
        # The threads of Torch's MKL, or of Torch where it has none.
        info = torch.__config__.parallel_info()
        match = re.search(r"mkl_get_max_threads\(\) : (\d+)", info)
        before = int(match[1]) if match else torch.get_num_threads()
        if before == torch.get_num_threads() == count:
            yield
            return
        # MKL ignores OpenMP's setting once torch.set_num_threads has been called.
        try:
            torch.set_num_threads(count)
            # Other Python threads now also start with this number.
            undo = threading.Thread(target=torch.set_num_threads, args=(before,))
            undo.start()
            undo.join()
            yield
        finally:
            torch.set_num_threads(before)


class _OneBlasThread:
    """A limit of one thread for NumPy's and SciPy's BLAS, shared by Python threads."""

    def __init__(self) -> None:
        self.lock, self.blocks = threading.Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.blocks:
                self.limit = _libraries().limit(limits=1, user_api="blas")
            self.blocks += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.blocks -= 1
            if not self.blocks:
                self.limit.restore_original_limits()


_one_blas_thread = _OneBlasThread()


def resolve_device(device: str | torch.device) -> torch.device:
    """Convert the parameter ``device`` of an estimator into a device."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.zeros(1, device=resolved).item()
    except torch.cuda.OutOfMemoryError:
        raise  # it is there, but full
    except (RuntimeError, AssertionError, NotImplementedError, ImportError):
        available = ["cpu"] + [f"cuda:{k}" for k in range(torch.cuda.device_count())]
        available += ["mps"] * torch.backends.mps.is_available()
        raise ValueError(
            f"device={str(device)!r} is not available; use 'auto' or one of "
            f"{available}."
        ) from None
    return resolved


def memory_of(device: torch.device) -> int:
    """Return the total memory of a device.

    On Windows, where Python cannot query it, ``8 GiB`` are assumed.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return ASSUMED_MEMORY
