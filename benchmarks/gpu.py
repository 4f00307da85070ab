"""Everything that needs a CUDA device: ``python benchmarks/gpu.py``.

It checks that CPU and CUDA give the same answer for every completer, and times
iterations of AIR, a batch, whole fits, and the shrinkage of singular values on both.
The device's name is the subject of each row. It takes a few minutes. Without a device
it says so and exits with status 1.
"""

from __future__ import annotations

import math
import sys
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from common import Results, run
from sklearn.base import clone
from timing import seconds_per_step, solver_of, synchronize
from torch import Tensor

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


# ------------------------------ singular value shrinkage by matrix products alone

SETTLE = 8  # steps of quadratic convergence at the end
CLOSE = 1e-7  # singular values this close to tau may or may not become zero


def shrink_by_products(A: Tensor, tau: float) -> Tensor:
    r"""``D_tau(A)``, as in `skmc.linalg.shrink`, without a decomposition.

    With ``Pi = (I + sign(A'A - tau^2 I)) / 2``, the projector on the right singular
    vectors whose values exceed ``tau``, ::

        D_tau(A) = (A - tau polar(A Pi)) Pi

    Sign and polar factor come from the iteration of Newton and Schulz,
    ``X <- X (3 I - X' X) / 2``. The nonzero singular values of ``A Pi`` exceed ``tau``,
    so its polar factor takes ``log(s_1 / tau)`` steps: too few for rounding to grow.

    Parameters
    ----------
    A : Tensor of shape (\\*batch, m, n)
        The matrix.
    tau : float > 0
        Threshold that is subtracted from the singular values.

    Returns
    -------
    Tensor of shape (\*batch, m, n)

    References
    ----------
    Higham. Functions of matrices (2008), sections 5.3 and 8.3.
    """
    if A.shape[-2] < A.shape[-1]:
        return shrink_by_products(A.mT, tau).mT
    unit = A.abs().amax().clamp_min(torch.finfo(A.dtype).tiny)
    largest = torch.linalg.matrix_norm(A / unit).max()  # a bound: the Frobenius norm
    ratio = float(largest * unit) / tau
    if ratio <= 1:
        return torch.zeros_like(A)
    A = A / (unit * largest)
    eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    above = _iterate(A.mT @ A - eye / ratio**2, ratio**2 / CLOSE)
    Pi = (eye + above) / 2
    return (A * (unit * largest) - tau * _iterate(A @ Pi, ratio)) @ Pi


def _iterate(X: Tensor, condition: float) -> Tensor:
    """Drive the singular values from ``1 / condition`` on to one."""
    for _ in range(math.ceil(math.log(condition, 1.5)) + SETTLE):
        X = 1.5 * X - 0.5 * X @ (X.mT @ X)
    return X


def gpu(results: Results) -> None:
    if not torch.cuda.is_available():
        sys.exit("There is no CUDA device here; nothing was measured.")
    device = torch.cuda.get_device_name()
    photo = load_photo()
    X = np.ma.masked_array(photo, patterns.random(photo, 0.3, random_state=0))
    single = np.ma.masked_array(X.data.astype(np.float32)[:, :240], X.mask[:, :240])

    def measure(data: str, method: str, score: Any, *args: Any) -> None:
        key = (device, data, "30 %", method)
        results.measure(key, score, *args, limit=None)

    measure("213 x 320", "difference between CPU and CUDA", differences, X)
    measure("213 x 320", "seconds of a fit", fits, X)
    measure("213 x 240", "64 fits of AIR", batch, single)
    measure("213 x 240", "5 000 steps of AIR, depth 2", graphs, single)
    measure("50 x 40", "5 000 steps of AIR, depth 2", graphs, single[:50, :40])
    for n in (240, 1000, 4000):
        measure(f"{n} x {n}", "shrinkage, seconds", shrinkage, n)
    measure("213 x 240", "10 000 steps of AIR, depth 3", both_devices, single)
    key = (device, "213 x 320", "30 %", "difference between CPU and CUDA", 0)
    if worst := [f"{k} {v}" for k, v in results.known[key].items() if float(v) > 1e-6]:
        sys.exit(f"CPU and CUDA differ: {', '.join(worst)}")


def both_devices(X: np.ma.MaskedArray) -> dict[str, float]:
    cpu = 10 * seconds(X, 1_000, depth=3, device="cpu")
    cuda = seconds(X, 10_000, depth=3, device="cuda")
    return {"cuda": cuda, "cpu (1 000 steps x 10)": cpu}


if __name__ == "__main__":
    run(__doc__, gpu)
