"""The cost of the nuclear norm in DNN-NSR: ``python -m benchmarks.speed.nsr``.

Measured is the share of an epoch that is spent on shrinking the singular values of all
weight matrices: at the start of the schedule, where nothing exceeds the threshold, in
the middle and at the end. "LAPACK" stands for the same epochs with full decompositions
by LAPACK. Figures are medians of rounds in which the cases take turns. Widths are the
defaults, precision is single.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.timing import solver_of
from benchmarks.speed.lapack import shrink_by_lapack
from skmc import GradualNSRCompleter
from skmc.solvers import CosineSchedule
from skmc.terms import NuclearNorm

ROUNDS, EPOCHS = 7, 3
SIZES = {"300 x 200, half hidden": (300, 200, 0.5), "943 x 1682": (943, 1682, 0.94)}
MU = (1e5, 10.0, 1.0)


class Timed(NuclearNorm):
    """Measures the time of its proximal operator."""

    def __init__(self, weight: float, lapack: bool):
        super().__init__(weight)
        self.lapack, self.seconds = lapack, 0.0

    def prox_and_value(self, V, step):
        start = time.perf_counter()
        if self.lapack:
            found = shrink_by_lapack(V, step * self.weight)
            answer = found.dense(), self.weight * found.s.sum()
        else:
            answer = super().prox_and_value(V, step)
        self.seconds += time.perf_counter() - start
        return answer


class Case:
    """A fit at one ``mu``, a few epochs after its start."""

    def __init__(self, X, mu: float, lapack: bool):
        self.solver, self.data = solver_of(
            X, GradualNSRCompleter(max_iter=400, random_state=0)
        )
        self.solver.rank = Timed(float(self.solver.rank.weight), lapack)
        self.solver.schedule = CosineSchedule(mu, mu, 1)
        self.state = self.solver.init(self.data)
        self.run()

    def run(self) -> tuple[float, float]:
        """Milliseconds of an epoch, and of its proximal operators."""
        self.solver.rank.seconds = 0.0
        start = time.perf_counter()
        for _ in range(EPOCHS):
            self.state = self.solver.step(self.data, self.state)
        whole = time.perf_counter() - start
        return 1e3 * whole / EPOCHS, 1e3 * self.solver.rank.seconds / EPOCHS


@torch.no_grad()
def shares(m: int, n: int, rate: float) -> dict:
    rng = np.random.RandomState(0)
    truth = rng.randn(m, 10) @ rng.randn(10, n)
    X = np.ma.masked_array(truth.astype(np.float32), rng.random_sample((m, n)) < rate)
    cases = {
        f"mu = {mu:g}{', LAPACK' if lapack else ''}": Case(X, mu, lapack)
        for mu in MU
        for lapack in (False, True)
    }
    times = {name: np.empty((ROUNDS, 2)) for name in cases}
    for turn in range(ROUNDS):
        for name, case in cases.items():
            times[name][turn] = case.run()
    found = {}
    for name, values in times.items():
        epoch, prox = np.median(values, 0)
        ranks = [int(torch.linalg.matrix_rank(V)) for V in cases[name].state.blocks.V]
        found[name] = {
            "milliseconds of an epoch": epoch,
            "share of the proximal operators": float(
                np.median(values[:, 1] / values[:, 0])
            ),
            "milliseconds of them": prox,
            "ranks": ranks,
        }
    return found


@torch.no_grad()
def schedule(m: int, n: int, rate: float) -> dict:
    """All epochs of the default schedule."""
    rng = np.random.RandomState(0)
    truth = rng.randn(m, 10) @ rng.randn(10, n)
    X = np.ma.masked_array(truth.astype(np.float32), rng.random_sample((m, n)) < rate)
    completer = GradualNSRCompleter(max_iter=400, random_state=0)
    solver, data = solver_of(X, completer)
    solver.rank = Timed(completer.beta, False)
    state, decomposed = solver.init(data), 0
    solver.rank.seconds, start = 0.0, time.perf_counter()
    for _ in range(completer.max_iter):
        state = solver.step(data, state)
        decomposed += any(V.any() for V in state.blocks.V)
    return {
        "epochs": completer.max_iter,
        "of them with a decomposition": decomposed,
        "share of the proximal operators": solver.rank.seconds
        / (time.perf_counter() - start),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    record("speed-nsr", {"hardware": f"{hardware()}, one of them used"})
    for name, size in SIZES.items():
        record("speed-nsr", {name: shares(*size)})
    first = next(iter(SIZES))
    record("speed-nsr", {"default schedule": {first: schedule(*SIZES[first])}})
