"""Everything that needs a CUDA device: ``python benchmarks/gpu.py``.

It runs the checks of every completer on the device, times fits of three sizes on the
device and on the CPU, and times what a GPU is taken for: many small fits at once, a
photograph of 3 megapixels, ten million ratings, and layers inside of a training step.
At the end it prints one table. The device's name is the subject of each row. It takes
at most 8 minutes. Without a device it says so and exits with status 1.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from common import Results, run

from skmc import (
    AIRCompleter,
    Entries,
    FactorizationCompleter,
    NonlocalCompleter,
    SNNCompleter,
)
from skmc.checks import all_completers, completer_checks
from skmc.inverses import DSVD
from skmc.model_selection import fit_batch

SECONDS = 4.0  # longest fit of a size, after which larger ones are left out


class Sizes(NamedTuple):
    """How large the problems are; the second instance is for trying the script."""

    matrices: tuple[tuple[int, int], ...]
    members: int  # fits in a batch
    photo: tuple[int, int]
    ratings: int
    layer: tuple[int, int, int]  # matrices in a batch, rows, columns
    checks: bool = True


FULL = Sizes(
    ((50, 40), (500, 400), (3000, 2000)), 64, (1536, 2048), 10**7, (256, 64, 64)
)
SMALL = Sizes(((20, 15),), 3, (48, 64), 2000, (4, 6, 5), checks=False)


def low_rank(shape: tuple[int, int], dtype: type = np.float32) -> np.ndarray:
    """A matrix of rank 5 with noise, of which 30 % are missing."""
    rng = np.random.RandomState(0)
    X = rng.randn(shape[0], 5) @ rng.randn(5, shape[1]) + 0.1 * rng.randn(*shape)
    X[rng.rand(*shape) < 0.3] = np.nan
    return X.astype(dtype)


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def seconds(function: Callable[[], object], device: str) -> float:
    synchronize(device)
    start = time.perf_counter()
    function()
    synchronize(device)
    return time.perf_counter() - start


def completers() -> list[type[Any]]:
    return [cls for cls in all_completers() if "device" in cls().get_params()]


def failed_checks(cls: type[Any], device: str) -> list[str]:
    """Names of the checks that a completer fails on a device, with their messages."""
    failed = []
    for check in completer_checks(cls(device=device)):
        if check.name.startswith("scikit-learn's"):
            continue
        try:
            check()
        except Exception as error:
            failed.append(str(error).replace("\n", " "))
    return failed


def checks(device: str) -> dict[str, Any]:
    """Failed checks of all completers, several at once."""
    workers = max(1, min(8, (os.cpu_count() or 1) // 2))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        found = list(pool.map(partial(failed_checks, device=device), completers()))
    for message in chain.from_iterable(found):
        print(message, flush=True)
    pairs = zip(completers(), found, strict=True)
    return {cls.__name__: len(failed) for cls, failed in pairs}


def fits(cls: type[Any], device: str, sizes: Sizes) -> dict[str, float]:
    """Seconds of fits of growing size, with at most 25 steps after their choices."""
    result: dict[str, float] = {}
    params: dict[str, Any] = {"random_state": 0, "max_iter": 25, "n_draws": 20}
    params |= {"max_time": SECONDS, "early_stopping": False, "tol": 0.0}
    params = {k: v for k, v in params.items() if k in cls().get_params()}
    for where in (device, "cpu"):
        cls(**{**params, "device": where}).fit(low_rank(sizes.matrices[0]))  # warm up
        for shape in sizes.matrices:
            X = low_rank(shape)
            completer = cls(**params, device=where)
            took = seconds(lambda c=completer, X=X: c.fit(X), where)  # type: ignore[misc]
            result[f"{shape[0]} x {shape[1]}, {where}"] = took
            if took > SECONDS:
                break
    return result


def batch(device: str, sizes: Sizes) -> dict[str, float]:
    """Seconds of a batch of fits of AIR, and of one fit as often."""
    X = low_rank((50, 40))

    def grid(count: int, where: str) -> list[AIRCompleter]:
        weights = np.geomspace(0.003, 30, count)
        return [
            AIRCompleter(w, max_iter=500, random_state=0, device=where) for w in weights
        ]

    n, result = sizes.members, {}
    fit_batch(grid(2, device), [X] * 2)
    for where in (device, "cpu"):
        one, many = grid(1, where)[0], grid(n, where)
        result[f"{n} at once, {where}"] = seconds(
            partial(fit_batch, many, [X] * n), where
        )
        result[f"1 fit x {n}, {where}"] = n * seconds(partial(one.fit, X), where)
    return result


def photograph(device: str, sizes: Sizes) -> dict[str, float]:
    """Seconds of a round of the non-local method, half of the pixels missing."""
    rows, cols = np.indices(sizes.photo)
    picture = np.sin(rows / 9) + np.cos(cols / 7) * np.sin((rows + cols) / 40)
    missing = np.random.RandomState(0).rand(*sizes.photo) < 0.5
    X = np.where(missing, np.nan, picture).astype(np.float32)
    result = {}
    for where in (device, "cpu"):
        completer = NonlocalCompleter(
            max_iter=2, max_time=60, random_state=0, device=where
        )
        took = seconds(partial(completer.fit, X), where)
        result[f"a round, {where}"] = took / completer.n_iter_
    return result


def ratings(device: str, sizes: Sizes) -> dict[str, float]:
    """Seconds of a sweep over ratings of users by films, at rank 20."""
    rng, n = np.random.RandomState(0), sizes.ratings
    shape = max(20, n // 140), max(20, n // 900)
    cells = np.unique(rng.randint(shape[0] * shape[1], size=n))
    rows, cols = np.divmod(cells, shape[1])
    stars = rng.randint(1, 6, len(cells)).astype(np.float32)
    entries = Entries.from_triplets(rows, cols, stars, shape)
    result = {}
    for where in (device, "cpu"):
        completer = FactorizationCompleter(
            20, lambda_ridge=0.1, max_iter=2, tol=0, random_state=0, device=where
        )
        took = seconds(partial(completer.fit, entries), where)
        result[where] = took / completer.n_iter_
    return result


def trains(A: torch.Tensor, values_of: Callable[[torch.Tensor], torch.Tensor]) -> None:
    values_of(A.detach().requires_grad_()).sum().backward()


def layer(device: str, sizes: Sizes) -> dict[str, float]:
    """Seconds of D-SVD and of PyTorch's SVD, forward and backward."""
    result = {}
    for where in (device, "cpu"):
        A = torch.randn(sizes.layer, generator=torch.Generator().manual_seed(0))
        A, dsvd = A.to(where), DSVD().to(where)
        methods: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
            "D-SVD": lambda M, dsvd=dsvd: dsvd(M).s,  # type: ignore[misc]
            "SVD": lambda M: torch.linalg.svd(M, full_matrices=False)[1],
        }
        for name, values_of in methods.items():
            trains(A, values_of)
            result[f"{name}, {where}"] = seconds(partial(trains, A, values_of), where)
    return result


def network(device: str, sizes: Sizes) -> dict[str, float]:
    """Seconds of a training step of a spectral network with three layers."""
    X, result = low_rank(sizes.matrices[-1]), {}
    for where in (device, "cpu"):
        completer = SNNCompleter(
            (2, 2), max_iter=10, early_stopping=False, random_state=0, device=where
        )
        completer.fit(X[:20, :15])
        result[where] = seconds(partial(completer.fit, X), where) / completer.n_iter_
    return result


def table(rows: dict[str, dict[str, str]], device: str) -> None:
    """Print seconds on the device and on the CPU, and their ratio."""
    print(f"\n{'':44}{device:>11}{'cpu':>11}{'cpu / device':>14}")
    for subject, values in rows.items():
        for name, value in values.items():
            what, _, where = name.rpartition(", ")
            other = values.get(f"{what}, cpu" if what else "cpu")
            if where != device or other is None:
                continue
            there, here = float(value), float(other)
            ratio = here / there if there else math.nan
            label = f"{subject} {what}".strip()
            print(f"{label:44}{there:11.4g}{here:11.4g}{ratio:14.3g}")


def measure(results: Results, device: str, name: str, sizes: Sizes = FULL) -> None:
    """Measure everything on a device that has a certain name."""
    whole = {
        "64 fits": batch,
        "photograph": photograph,
        "ratings, a sweep": ratings,
        "layers": layer,
        "SNN, a step": network,
    }

    def key(data: str) -> tuple[str, str, str, str, int]:
        return (name, data, "", "", 0)

    if sizes.checks:
        results.measure(key("failed checks"), checks, device, limit=None)
    for data, function in whole.items():
        results.measure(key(data), function, device, sizes, limit=None)
    for cls in completers():
        results.measure(key(cls.__name__), fits, cls, device, sizes, limit=None)
    rows = {case.data: row for case, row in results.known.items() if case[0] == name}
    table({data: row for data, row in rows.items() if data != "failed checks"}, device)


def gpu(results: Results) -> None:
    if not torch.cuda.is_available():
        sys.exit("There is no CUDA device here; nothing was measured.")
    name = torch.cuda.get_device_name()
    measure(results, "cuda", name)
    case = next(case for case in results.known if case[:2] == (name, "failed checks"))
    failed = {k: v for k, v in results.known[case].items() if v != "0"}
    if failed:
        sys.exit(f"Checks failed on {name}: {failed}")


if __name__ == "__main__":
    run(__doc__, gpu)
