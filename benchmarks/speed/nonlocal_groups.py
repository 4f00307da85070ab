"""Costs of a nonlocal round: ``python -m benchmarks.speed.nonlocal_groups``.

Processor seconds of the parts of a round on one thread, beside their floor: the bytes
that must be moved and the products that must be formed. The eigendecompositions are
compared with a Cholesky factorization and solve of the same matrices.
"""

from __future__ import annotations

import time

import torch

from benchmarks.pages import hardware, record
from benchmarks.problems import hide, matrix
from skmc import NonlocalCompleter
from skmc.models import PatchGroups, lower_rank

SIDE, SIZE, RADIUS, STRIDE = 6, 40, 15, 3


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
    n_groups, n_cells = len(groups), SIDE**2
    stacked = torch.randn(n_groups, SIZE, n_cells, generator=generator)
    gram = stacked.mT @ stacked + torch.eye(n_cells)

    def solve():
        return torch.cholesky_solve(stacked.mT, torch.linalg.cholesky(gram))

    return {
        "groups": n_groups,
        "products of a round": 4 * n_groups * n_cells**2 * SIZE,
        "bytes of a round": 4 * 4 * n_groups * n_cells * SIZE,
        "seconds": {
            "match": seconds(lambda: patches.match(picture, references)),
            "shrink": seconds(lambda: patches.shrink(picture, groups, 0.1)),
            "of which low rank": seconds(lambda: lower_rank(stacked, 0.1)),
            "of which eigh": seconds(lambda: torch.linalg.eigh(gram)),
            "Cholesky and solve instead": seconds(solve),
            "two products": seconds(lambda: stacked @ (stacked.mT @ stacked)),
        },
    }


def measure() -> dict:
    """Parts at two sizes, and a whole fit of Barbara with 30 % hidden."""
    results: dict = {f"{side} x {side}": parts(side) for side in (120, 240)}
    X = hide(matrix("Barbara")[0], "random 30 %", 0)
    start = time.process_time()
    NonlocalCompleter(random_state=0, device="cpu").fit(X)
    results["processor seconds of a whole fit"] = time.process_time() - start
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    record("speed-nonlocal", {"hardware": hardware(), **measure()})
