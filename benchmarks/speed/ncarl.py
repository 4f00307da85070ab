"""The speed of NCARL's row solves: ``python -m benchmarks.speed.low_rank ncarl``.

The baseline is a loop over rows that solves each row's observed system, as in the
paper. Both start from the same quadratic form and invert it where they need to. Each
number is a ratio of median run times, measured alternately on one machine.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor

from skmc import Observed
from skmc.solvers import NCARL, NCARLState

REPEATS = 15


def loop(Q: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Solve row after row: ``v_O = inv(H_OO) m_O``, and ``X = V H``."""
    H = torch.linalg.inv(Q)
    V = torch.zeros_like(values)
    for row, (m, p) in enumerate(zip(values, mask, strict=True)):
        seen = p.nonzero()[:, 0]
        V[row, seen] = torch.linalg.solve(H[seen[:, None], seen], m[seen])
    return V @ H


def problem(rate: float, m: int = 1000, n: int = 500) -> tuple[NCARLState, Tensor]:
    """A state two steps into a noisy matrix of rank 10, and its quadratic form."""
    rng = np.random.RandomState(0)
    values = rng.randn(m, 10) @ rng.randn(10, n) + 0.1 * rng.randn(m, n)
    data = Observed(
        torch.tensor(values), torch.tensor(rng.random_sample((m, n)) > rate)
    )
    solver = NCARL(1e3, 5)
    state = solver.init(data)
    for _ in range(2):
        state = solver.step(data, state)
    return state, solver.quadratic_form(state)


@torch.no_grad()
def rows(rate: float) -> dict:
    """Seconds of all row solves of one step, by our solver and by the loop."""
    state, Q = problem(rate)
    values, mask = state.problem.values, state.problem.seen > 0
    methods = {
        "ours": lambda: state.problem.interpolate(Q),
        "loop": lambda: loop(Q, values, mask),
    }
    times: dict[str, list[float]] = {name: [] for name in methods}
    answers = {}
    for _ in range(REPEATS):
        for name, method in methods.items():
            start = time.perf_counter()
            answers[name] = method()
            times[name].append(time.perf_counter() - start)
    median = {name: float(np.median(t)) for name, t in times.items()}
    return {
        "hidden": rate,
        "seconds": median,
        "loop / ours": median["loop"] / median["ours"],
        "largest difference": float((answers["ours"] - answers["loop"]).abs().max()),
    }
