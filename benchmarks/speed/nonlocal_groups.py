"""Costs of groups of patches: ``python -m benchmarks.speed.nonlocal_groups``.

Processor seconds of the parts of a round on one thread, beside their floor: the bytes
that must be moved and the products that must be formed. Singular vectors are those of
Gram matrices; Newton-Schulz steps to a projector, and a Cholesky factorization and
solve of the same matrices, are compared with them. Then whole fits with 30 % hidden,
each in a process of its own with all threads: seconds, and the peak of its memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import torch

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.problems import hide
from benchmarks.shared.timing import peak_memory
from skmc import NonlocalCompleter
from skmc.datasets import load_image
from skmc.models import PatchGroups, lower_rank, principal

SIDE, SIZE, RADIUS, STRIDE = 6, 40, 15, 4
NEWTON_STEPS = 15  # eigenvalues near the threshold need more
WHOLE = (240, 512, 1024)


def seconds(f, repeats: int = 3) -> float:
    """Processor seconds, the least of a few."""
    f()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        f()
        found.append(time.process_time() - start)
    return min(found)


@torch.no_grad()
def parts(side: int) -> dict:
    """Of a picture of ``side`` x ``side`` cells."""
    generator = torch.Generator().manual_seed(0)
    picture = torch.rand(side, side, generator=generator)
    patches = PatchGroups((side, side), SIDE, SIZE, RADIUS, STRIDE)
    references = patches.references(torch.ones_like(picture, dtype=torch.bool))
    groups = patches.match(picture, references)
    directions = patches.directions(picture, groups)
    n_groups, n_cells = len(groups), SIDE**2
    stacked = torch.randn(n_groups, SIZE, n_cells, generator=generator)
    identity = torch.eye(n_cells)
    gram = stacked.mT @ stacked + identity

    def solve():
        return torch.cholesky_solve(stacked.mT, torch.linalg.cholesky(gram))

    def projector():
        """Newton-Schulz iteration for the sign of the Gram matrix less a threshold."""
        sign = gram / (SIZE * n_cells) - 0.01 * identity
        for _ in range(NEWTON_STEPS):
            sign = sign @ (1.5 * identity - 0.5 * sign @ sign)
        return (sign + identity) / 2

    return {
        "groups": n_groups,
        "products of a round": 4 * n_groups * n_cells**2 * SIZE,
        "bytes of a round": 4 * 4 * n_groups * n_cells * SIZE,
        "seconds": {
            "match (every 6th round)": seconds(
                lambda: patches.match(picture, references)
            ),
            "directions (every 2nd round)": seconds(
                lambda: patches.directions(picture, groups)
            ),
            "shrink (every round)": seconds(
                lambda: patches.shrink(picture, groups, directions, 0.1)
            ),
            "principal": seconds(lambda: principal(stacked)),
            "of which eigh": seconds(lambda: torch.linalg.eigh(gram)),
            "Newton-Schulz instead": seconds(projector),
            "Cholesky and solve instead": seconds(solve),
            "lower rank": seconds(lambda: lower_rank(stacked, directions, 0.1)),
            "two products": seconds(lambda: stacked @ (stacked.mT @ stacked)),
        },
    }


def picture_of(side: int) -> np.ndarray:
    """Barbara's middle, or Barbara and its mirror images."""
    whole = load_image("barbara_512")
    while len(whole) < side:
        whole = np.pad(whole, [(0, len(whole))] * 2, mode="symmetric")
    start = (len(whole) - side) // 2 if side < 512 else 0
    return whole[start : start + side, start : start + side]


def whole(side: int) -> None:
    """Print the cost of a fit; memory is in addition to that of the process."""
    X = hide(picture_of(side), "random 30 %", 0)
    warm = hide(picture_of(240)[:48, :48], "random 30 %", 0)
    NonlocalCompleter(random_state=0, device="cpu").fit(warm)
    before = peak_memory()
    start = time.perf_counter(), time.process_time()
    NonlocalCompleter(random_state=0, device="cpu").fit(X)
    wall, processor = time.perf_counter() - start[0], time.process_time() - start[1]
    after = peak_memory()
    costs = {
        "seconds": wall,
        "processor seconds": processor,
        "processor microseconds per pixel": 1e6 * processor / side**2,
        "MiB in addition": (after - before) / 2**20,
        "MiB of the process": after / 2**20,
        "threads": torch.get_num_threads(),
    }
    print(json.dumps({name: round(cost, 2) for name, cost in costs.items()}))


def apart(side: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.speed.nonlocal_groups", str(side)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure() -> dict:
    """Parts at two sizes, and whole fits."""
    results: dict = {f"{side} x {side}": parts(side) for side in (120, 240)}
    fits = {f"{side} x {side}": apart(side) for side in WHOLE}
    return {**results, "whole fits": fits}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        whole(int(sys.argv[1]))
    else:
        torch.set_num_threads(1)
        record("speed-nonlocal-groups", {"hardware": hardware(), **measure()})
