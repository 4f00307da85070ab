"""Everything that needs a CUDA device, in one call: ``python -m benchmarks.speed.gpu``.

It checks that CPU and CUDA give the same answer for every completer, times iterations
of AIR, a batch, and whole fits on both, and writes them with the name of the device to
``docs/reproduction/records/gpu.json``. It takes a few minutes. Without a device it says
so and exits with status 1.
"""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from benchmarks.shared.pages import record
from benchmarks.shared.products import shrink_by_products
from benchmarks.shared.timing import seconds_per_step, solver_of, synchronize
from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    BiBNNCompleter,
    FactorizationCompleter,
    IALMCompleter,
    KNNCompleter,
    NonlocalCompleter,
    NSRCompleter,
    PatchCNNCompleter,
    SoftImputeCompleter,
    patterns,
)
from skmc.checks import all_completers
from skmc.datasets import load_photo
from skmc.linalg import shrink
from skmc.loop import Run, cuda_graphs
from skmc.model_selection import fit_batch

FITTED: tuple[Any, ...] = (
    AutoencoderCompleter,
    BiBNNCompleter,
    FactorizationCompleter,
    IALMCompleter,
    KNNCompleter,
    NonlocalCompleter,
    NSRCompleter,
    PatchCNNCompleter,
    SoftImputeCompleter,
)


def differences(X: np.ma.MaskedArray) -> dict[str, float]:
    """Largest difference between CPU and CUDA, in double precision."""
    result = {}
    classes: list[Any] = all_completers()
    for cls in classes:
        names = cls().get_params()
        if "device" not in names:
            continue
        fixed = {"random_state": 0, "max_iter": 100}
        params = {k: v for k, v in fixed.items() if k in names}
        here = cls(device="cpu", **params).fit_transform(X)
        there = cls(device="cuda", **params).fit_transform(X)
        result[cls.__name__] = float(np.abs(here - there).max())
    return result


def seconds(X: np.ma.MaskedArray, n_iter: int, **params) -> float:
    """Wall time of AIR iterations after warming up."""
    solver, data = solver_of(X, AIRCompleter(random_state=0, **params))
    return n_iter * seconds_per_step(solver, data, n_iter, warm_up=20)


def graphs(X: np.ma.MaskedArray, n_iter: int = 5_000) -> dict[str, float]:
    """Seconds of steps of AIR and their checks, as CUDA graphs and one by one."""
    result = {}
    for name, context in (("graphs", cuda_graphs()), ("one by one", nullcontext())):
        solver, data = solver_of(X, AIRCompleter(random_state=0, device="cuda"))
        with context:
            run = Run(solver, data)
        run.advance(100)  # the graph is captured
        synchronize(data)
        start = time.perf_counter()
        run.advance(100 + n_iter)
        synchronize(data)
        result[name] = time.perf_counter() - start
    return {**result, "ratio": result["one by one"] / result["graphs"]}


def shrinkage(n: int) -> dict[str, float]:
    """Seconds of one shrinkage of an n x n matrix to about a tenth of its rank."""
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(n, n, generator=generator).cuda()
    tau = 1.8 * n**0.5
    methods = {
        "eigenvalues": lambda: shrink(A, tau).dense(),
        "products": lambda: shrink_by_products(A, tau),
    }
    result = {}
    for name, method in methods.items():
        method()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(5):
            method()
        torch.cuda.synchronize()
        result[name] = (time.perf_counter() - start) / 5
    difference = (methods["products"]() - methods["eigenvalues"]()).abs().max()
    return {**result, "largest difference": float(difference)}


def fits(X: np.ma.MaskedArray) -> dict[str, dict[str, float]]:
    """Seconds of whole fits after a short one to warm up, and memory on the device."""
    found: dict[str, dict[str, float]] = {}
    for cls in FITTED:
        names = cls().get_params()
        fixed = {"random_state": 0} if "random_state" in names else {}
        found[cls.__name__] = {}
        for device in ("cuda", "cpu"):
            completer = cls(**fixed, device=device)
            short = {"max_iter": 2} if "max_iter" in names else {}
            clone(completer).set_params(**short).fit_transform(X)
            torch.cuda.reset_peak_memory_stats()
            start = time.perf_counter()
            completer.fit_transform(X)
            found[cls.__name__][device] = time.perf_counter() - start
            if device == "cuda":
                memory = torch.cuda.max_memory_allocated() / 2**20
                found[cls.__name__]["MiB at most"] = memory
    return found


def batch(X: np.ma.MaskedArray, members: int = 64) -> dict[str, float]:
    """Seconds of a batch of fits of AIR on CUDA, and of as many fits on one core."""

    def grid(device: str, count: int) -> list[AIRCompleter]:
        weights = np.geomspace(0.003, 30, count)
        return [AIRCompleter(w, random_state=0, device=device) for w in weights]

    fit_batch(grid("cuda", 2), [X] * 2)
    start = time.perf_counter()
    fit_batch(grid("cuda", members), [X] * members)
    cuda = time.perf_counter() - start
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    start = time.perf_counter()
    grid("cpu", 1)[0].fit(X)
    core = members * (time.perf_counter() - start)
    torch.set_num_threads(n_threads)
    return {"cuda": cuda, f"one core (1 fit x {members})": core, "ratio": core / cuda}


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("benchmarks.speed.gpu: no CUDA device here; nothing was measured.")
    warnings.simplefilter("ignore")
    photo = load_photo()
    X = np.ma.masked_array(photo, patterns.random(photo, 0.3, random_state=0))
    single = np.ma.masked_array(X.data.astype(np.float32)[:, :240], X.mask[:, :240])
    differ = differences(X)
    results = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "largest difference between CPU and CUDA": differ,
        "seconds of a fit at 213 x 320": fits(X),
        "64 fits of AIR at 213 x 240": batch(single),
        "AIR, seconds of 5 000 steps, depth 2": {
            "213 x 240": graphs(single),
            "50 x 40": graphs(single[:50, :40]),
        },
        "shrinkage, seconds": {f"n = {n}": shrinkage(n) for n in (240, 1000, 4000)},
        "AIR, seconds for 10 000 iterations at 213 x 240, depth 3": {
            "cuda": seconds(single, 10_000, depth=3, device="cuda"),
            "cpu (1 000 iterations x 10)": 10
            * seconds(single, 1_000, depth=3, device="cpu"),
        },
    }
    record("gpu", results)
    worst = max(differ.values())
    sys.exit(0 if worst < 1e-6 else f"CPU and CUDA differ by {worst:.1e}")


if __name__ == "__main__":
    main()
