"""The speed of AIR and KNN: ``python -m benchmarks.speed.air [parts]``.

Each number is a ratio of median run times, measured alternately on one machine. The
baseline of AIR is a plain autograd transcription of the paper, below.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings

import numpy as np
import torch
from sklearn.impute import KNNImputer

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.problems import hide, matrix
from benchmarks.shared.timing import in_turns, peak_memory, seconds_per_step, solver_of
from skmc import AIRCompleter, KNNCompleter
from skmc.linalg import matmul, threads_for, work_of
from skmc.metrics import nmae

REPEATS = 7


class Transcription:
    """The paper in plain autograd: depth 3, both Laplacians and Adam."""

    def __init__(self, values, mask, *, lr=1e-3, weight=1e-4, seed=0):
        m, n = values.shape
        generator = torch.Generator().manual_seed(seed)
        width = min(m, n)
        shapes = [(m, width), (width, width), (width, n)]
        self.factors = [
            torch.empty(s).normal_(1e-3, 1e-3, generator=generator).requires_grad_()
            for s in shapes
        ]
        self.row, self.col = (
            torch.empty(k, k)
            .uniform_(-(k**-0.5), k**-0.5, generator=generator)
            .requires_grad_()
            for k in (m, n)
        )
        self.values, self.mask, self.weight = values, mask, weight
        self.optimizer = torch.optim.Adam([*self.factors, self.row, self.col], lr=lr)

    def laplacian(self, W):
        S = torch.softmax(-W, -1)
        A = (S + S.T) / 2
        A = A * (1 - torch.eye(len(A)))
        return torch.diag(A.sum(1)) - A

    def step(self):
        X = self.factors[0] @ self.factors[1] @ self.factors[2]
        fit = ((X - self.values) * self.mask).square().mean()
        rows = torch.trace(X.T @ self.laplacian(self.row) @ X)
        cols = torch.trace(X @ self.laplacian(self.col) @ X.T)
        loss = fit + self.weight * (rows + cols)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return X.detach()


def iteration(n_iter: int = 100) -> dict:
    """(a) compared with the transcription, (c) with its ten matrix products alone.

    The products run on as many threads as AIR uses, the transcription on all.
    """
    truth, _ = matrix("Barbara")
    X = hide(truth, "random 30 %", 0)
    values = torch.tensor(X.filled(0))
    mask = torch.tensor(~X.mask, dtype=torch.float32)
    plain = Transcription(values, mask)
    A, B = torch.randn(2, 240, 240)

    def products(multiply):
        def run():
            with threads_for(work_of(A.numel(), len(A))):
                for _ in range(10 * n_iter):
                    multiply(A, B)

        return run

    def transcription():
        for _ in range(n_iter):
            plain.step()

    solvers = {
        every: solver_of(
            X, AIRCompleter(depth=3, laplacian_every=every, random_state=0)
        )
        for every in (1, 5)
    }

    def steps(every):
        return lambda: seconds_per_step(*solvers[every], n_iter)

    ten, fast, paper, one, five = in_turns(
        products(torch.mm), products(matmul), transcription, steps(1), steps(5)
    )
    # seconds_per_step does ten more steps to warm up.
    one, five = (t * n_iter / (n_iter + 10) for t in (one, five))
    return {
        "milliseconds per iteration": {
            "ten products, Torch": 1e3 * ten / n_iter,
            "ten products, skmc.linalg.matmul": 1e3 * fast / n_iter,
            "transcription": 1e3 * paper / n_iter,
            "AIR, laplacian_every=1": 1e3 * one / n_iter,
            "AIR, laplacian_every=5": 1e3 * five / n_iter,
        },
        "(a) transcription / AIR (every=1)": paper / one,
        "(a) transcription / AIR (every=5, default)": paper / five,
        "(c) AIR (every=1) / ten products": one / ten,
        "(c) AIR (every=5, default) / ten products": five / ten,
        "AIR (every=1) / ten products by matmul": one / fast,
        "AIR (every=5, default) / ten products by matmul": five / fast,
    }


def time_to_quality(target: float = 0.0475) -> dict:
    """(b) seconds until NMAE <= target on Barbara, with AIR's defaults.

    The transcription runs once, at the paper's settings; the truth stops both clocks
    and chooses nothing.
    """
    truth, _ = matrix("Barbara")
    X = hide(truth, "random 30 %", 0)
    reached = []
    for _ in range(REPEATS):
        completer = AIRCompleter(random_state=0)
        start = time.perf_counter()
        completed = completer.fit_transform(X)
        reached.append(time.perf_counter() - start)
    assert nmae(completed, truth, X.mask) <= target
    values = torch.tensor(X.filled(0))
    plain = Transcription(values, torch.tensor(~X.mask, dtype=torch.float32))
    start, n_iter = time.perf_counter(), 0
    error = np.inf
    while error > target and n_iter < 15_000:
        for _ in range(100):
            last = plain.step()
        n_iter += 100
        error = nmae(last.numpy(), truth, X.mask)
    seconds = time.perf_counter() - start
    return {
        "target": target,
        "AIR": {
            "seconds of a whole fit_transform": float(np.median(reached)),
            "NMAE": nmae(completed, truth, X.mask),
        },
        "transcription": {"seconds": seconds, "iterations": n_iter, "NMAE": error},
        "(b) transcription / AIR": seconds / float(np.median(reached)),
    }


def growth() -> dict:
    """Milliseconds per iteration of the default AIR for m = 100 ... 800."""
    rng = np.random.RandomState(0)
    result = {}
    for m in (100, 200, 400, 800):
        X = np.ma.masked_array(
            rng.randn(m, m).astype(np.float32), rng.random_sample((m, m)) < 0.3
        )
        pair = solver_of(X, AIRCompleter(random_state=0))
        times = [seconds_per_step(*pair, 30) for _ in range(3)]
        result[f"m = {m}"] = 1e3 * float(np.median(times))
    return result


SMALL = (30, 30), (50, 40), (100, 50), (100, 100)
ONE_PROCESS = """
import json, time, warnings
import numpy as np
import torch
from benchmarks.shared.timing import solver_of
from skmc import AIRCompleter, DMFCompleter

warnings.simplefilter("ignore")
torch.set_num_threads(1)
result = {}
with torch.no_grad():
    for cls in (AIRCompleter, DMFCompleter):
        for m, n in SIDES:
            rng = np.random.RandomState(0)
            X = np.float32(rng.randn(m, 5) @ rng.randn(5, n))
            X = np.ma.masked_array(X, rng.random_sample(X.shape) < 0.3)
            solver, data = solver_of(X, cls(random_state=0))
            state, best = solver.init(data), np.inf
            for _ in range(20):
                start = time.process_time()
                for _ in range(25):
                    state = solver.step(data, state)
                best = min(best, (time.process_time() - start) / 25)
            result[f"{cls.__name__} {m} x {n}, a step"] = best
            times = []
            for _ in range(5):
                start = time.process_time()
                cls(random_state=0).fit_transform(X)
                times.append(time.process_time() - start)
            result[f"{cls.__name__} {m} x {n}, a fit"] = min(times)
print(json.dumps(result))
"""


def small() -> dict:
    """Processor time on small matrices, one thread.

    The best of 20 x 25 steps and of 5 fits; medians over 5 processes.
    """
    code = ONE_PROCESS.replace("SIDES", repr(SMALL))
    runs = []
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True
        )
        runs.append(json.loads(run.stdout))
    return {key: float(np.median([run[key] for run in runs])) for key in runs[0]}


def neighbours() -> dict:
    """(d) KNN at 10 000 x 50 with 20 % hidden, compared with scikit-learn's."""
    rng = np.random.RandomState(0)
    table = rng.randn(10_000, 50)
    table[rng.random_sample(table.shape) < 0.2] = np.nan
    ours, theirs = [], []
    for _ in range(3):
        start = time.perf_counter()
        completed = KNNCompleter(device="cpu").fit_transform(table)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        reference = KNNImputer().fit_transform(table)
        theirs.append(time.perf_counter() - start)
    return {
        "seconds": {
            "KNNCompleter": float(np.median(ours)),
            "KNNImputer": float(np.median(theirs)),
        },
        "(d) KNNImputer / KNNCompleter": float(np.median(theirs) / np.median(ours)),
        "largest difference": float(np.abs(completed - reference).max()),
    }


def large_neighbours() -> dict:
    """(d) 100 000 x 50: median of three runs, and peak memory of this process."""
    rng = np.random.RandomState(0)
    table = rng.randn(100_000, 50)
    table[rng.random_sample(table.shape) < 0.2] = np.nan
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        KNNCompleter(device="cpu").fit_transform(table)
        seconds.append(time.perf_counter() - start)
    peak = peak_memory() / 2**30
    return {"seconds": float(np.median(seconds)), "peak memory, GiB": peak}


PARTS = {
    "iteration": iteration,
    "time-to-quality": time_to_quality,
    "growth": growth,
    "small": small,
    "neighbours": neighbours,
    "large-neighbours": large_neighbours,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        record("speed-air", {part: {"hardware": hardware(), **PARTS[part]()}})
