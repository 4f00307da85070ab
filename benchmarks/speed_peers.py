"""Speed beside other programs that do the same, and beside plain code for it.

Each ratio is one of median run times, measured in turns on one machine: AIR and a plain
transcription of its paper, an autoencoder and a plain training loop, `KNNImputer`,
NCARL and a loop over rows, Soft-Impute with full decompositions, `GridSearchCV`.
`speed_ratings.py` has the recommenders.
"""

from __future__ import annotations

import copy
import time
from functools import partial
from typing import Any

import numpy as np
import torch
from common import Results, run
from problems import hide, matrix
from sklearn.base import clone
from sklearn.impute import KNNImputer
from sklearn.model_selection import GridSearchCV, KFold
from timing import in_turns, seconds_per_step, solver_of
from torch import Tensor, nn

from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    Entries,
    KNNCompleter,
    LinkedFactorizationCompleter,
    NSRCompleter,
    Observed,
    SoftImputeCompleter,
    patterns,
)
from skmc.cells import SparseObserved
from skmc.completers.ncarl import NCARL, NCARLState
from skmc.completers.soft_impute import SoftImpute, lambda_max
from skmc.datasets import load_photo
from skmc.linalg import SVD, Randomness, full_svd, matmul, threads_for, work_of
from skmc.metrics import nmae, rmse
from skmc.model_selection import BatchedGridSearchCV
from skmc.models import Autoencoder
from skmc.solvers import RowDescent
from skmc.terms import SquaredNorm

REPEATS = 7


# -------------------------------------------------------------------------------- AIR


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
    """A step compared with the transcription, and with its ten matrix products alone.

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
        "transcription / AIR (every=1)": paper / one,
        "transcription / AIR (every=5, default)": paper / five,
        "AIR (every=1) / ten products": one / ten,
        "AIR (every=5, default) / ten products": five / ten,
        "AIR (every=1) / ten products by matmul": one / fast,
        "AIR (every=5, default) / ten products by matmul": five / fast,
    }


def time_to_quality(target: float = 0.0475) -> dict:
    """Seconds until NMAE <= target on Barbara, with AIR's defaults.

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
        "transcription / AIR": seconds / float(np.median(reached)),
    }


def air(results: Results) -> None:
    case = ("AIR", "Barbara", "random 30 %")
    results.measure((*case, "a step, depth 3"), iteration, limit=None)
    results.measure((*case, "a fit"), time_to_quality, limit=None)


# ------------------------------------------------------------------------ autoencoder

AUTOENCODER, WIDTH, LR, DECAY = (500, 784), 100, 0.01, 0.3 * 500


class Plain:
    """A plain training loop."""

    def __init__(self, data: Observed, network: nn.Module, batches: list):
        self.network, self.batches = copy.deepcopy(network), batches
        self.values, self.mask = data.values, data.mask.to(data.values.dtype)
        self.free = [nn.Parameter(torch.zeros_like(self.values[b])) for b in batches]
        self.weights = torch.optim.Adam(self.network.parameters(), lr=LR)
        self.inputs = [torch.optim.Adam([free], lr=LR) for free in self.free]

    def epoch(self) -> Tensor:
        total = torch.zeros(())
        for rows, free, inputs in zip(
            self.batches, self.free, self.inputs, strict=True
        ):
            values, mask = self.values[rows], self.mask[rows]
            output = self.network(values * mask + free * (1 - mask))
            decay = sum(W.square().sum() for W in self.network.weights)
            loss = 0.5 * ((output - values) * mask).square().sum()
            loss = loss + len(values) / len(self.values) * DECAY / 2 * decay
            for optimizer in (self.weights, inputs):
                optimizer.zero_grad()
            loss.backward()
            for optimizer in (self.weights, inputs):
                optimizer.step()
            total += loss.detach()
        return total


def epoch(batch_size: int, n_epochs: int = 5) -> dict:
    """One pass by ours, by a plain loop, and the six products of a pass alone.

    The loop has autograd of the whole loss, `torch.optim.Adam` with its defaults, and
    missing inputs as a masked parameter.
    """
    torch.set_num_threads(1)
    m, n = AUTOENCODER
    rng = np.random.RandomState(0)
    values = rng.randn(m, 20) @ rng.randn(20, n) / 20**0.5
    data = Observed(
        torch.tensor(values, dtype=torch.float32),
        torch.tensor(rng.random_sample((m, n)) > 0.3),
    )
    network = Autoencoder.random([n, WIDTH, n], Randomness.of([0]), gain=0.3)
    solver = RowDescent(
        network,
        {name: SquaredNorm(DECAY) for name in ("weights.0", "weights.1")},
        lr=LR,
        horizon=10**9,
        batch_size=batch_size,
        rng=Randomness.of([0]),
        free=True,
    )
    state = solver.init(data)
    parts = [slice(None) if b.rows is None else b.rows[:, 0] for b in state.batches]
    plain = Plain(data, network, parts)
    rows = torch.randn(min(m, batch_size), n)
    codes, W, V = torch.randn(len(rows), WIDTH), network.weights[0], network.weights[1]
    loss = torch.zeros(())

    @torch.no_grad()
    def ours():
        nonlocal state
        for _ in range(n_epochs):
            state = solver.step(data, state)

    def loop():
        nonlocal loss
        for _ in range(n_epochs):
            loss = plain.epoch()

    @torch.no_grad()
    def products():
        for _ in range(n_epochs * len(state.batches)):
            _ = rows @ W, codes @ V, codes.T @ rows, rows @ V.T, codes @ W.T
            _ = rows.T @ codes

    seconds = dict(
        zip(
            ("ours", "plain", "products"),
            in_turns(ours, loop, products) / n_epochs,
            strict=True,
        )
    )
    return {
        "seconds an epoch": seconds,
        "plain / ours": seconds["plain"] / seconds["ours"],
        "ours / products": seconds["ours"] / seconds["products"],
        "loss, ours": float(state.objective),
        "loss, plain": float(loss),
    }


def autoencoder(results: Results) -> None:
    for size in (500, 100):
        key = ("autoencoder", "500 x 784", "30 %", f"batches of {size}")
        results.measure(key, epoch, size, limit=None)


# --------------------------------------------------------------------------- neighbors


def knn_imputer() -> dict:
    """KNN at 10 000 x 50 with 20 % hidden, compared with scikit-learn's."""
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
        "KNNImputer / KNNCompleter": float(np.median(theirs) / np.median(ours)),
        "largest difference": float(np.abs(completed - reference).max()),
    }


N_COLS, QUANTITIES, NOISE, HIDDEN = 20, 4, 0.1, 0.2
RECALLS = (1.0, 0.9)
SOME = 2000


def four_quantities(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A complete table, and the cells to hide."""
    rng = np.random.RandomState(0)
    M = rng.randn(n_rows, QUANTITIES) @ rng.randn(QUANTITIES, N_COLS)
    M += NOISE * rng.randn(n_rows, N_COLS)
    return M, rng.random_sample(M.shape) < HIDDEN


def recalls(n_rows: int) -> dict:
    """Time, share of neighbors found and error, with clusters and without.

    Without clusters, 2000 rows are completed, and the time is that of these rows times
    the rest.
    """
    M, hidden = four_quantities(n_rows)
    X = np.where(hidden, np.nan, M)
    found = {}
    for recall in RECALLS:
        some = min(SOME, n_rows) if recall == 1 else n_rows
        start = time.perf_counter()
        completer = KNNCompleter(recall=recall, device="cpu").fit(X)
        fitted = time.perf_counter()
        completed = completer.transform(X[:some])
        end = time.perf_counter()
        found[f"recall={recall:g}"] = {
            "seconds": fitted - start + (end - fitted) * n_rows / some,
            "recall_": completer.recall_,
            "RMSE": rmse(completed[:SOME], M[:SOME], hidden[:SOME]),
        }
    return found


def neighbors(results: Results) -> None:
    key = ("neighbors", "10 000 x 50", "20 %", "KNNImputer")
    results.measure(key, knn_imputer, limit=None)
    for n_rows in (100_000, 1_000_000):
        key = ("neighbors", f"{n_rows} x {N_COLS}", "20 %", "clusters")
        results.measure(key, recalls, n_rows, limit=None)


# ------------------------------------------------------------------------ low-rank


def shrink_by_lapack(A: Tensor, tau: float) -> SVD:
    """Singular values less ``tau``, those above zero, with their vectors."""
    found = full_svd(A)
    s = (found.s - tau).clamp_min(0)
    return SVD(found.U, s, found.V).first(int((s > 0).sum()))


class FullSVD(SoftImpute):
    """The same iteration, with every shrinkage by LAPACK's full decomposition."""

    def _shrink(self, filled, near, threshold):
        return shrink_by_lapack(filled.dense(), threshold)


@torch.no_grad()
def reach(solver: SoftImpute, data, objective: float) -> dict:
    """Seconds and steps until the objective is within 1e-4 of its minimum."""
    start, n_iter = time.perf_counter(), 0
    state = solver.init(data)
    while state.objective > objective * (1 + 1e-4):
        state, n_iter = solver.step(data, state), n_iter + 1
    return {
        "seconds": time.perf_counter() - start,
        "steps": n_iter,
        "rank": state.spectrum.rank,
        "objective": float(state.objective),
    }


def soft_impute() -> dict:
    """2000 x 2000 of rank 20 with noise, 80 % hidden: partial and full SVD."""
    rng = np.random.RandomState(0)
    n, rank = 2000, 20
    truth = rng.randn(n, rank) @ rng.randn(rank, n) / rank**0.5
    rows, cols = np.nonzero(rng.random_sample((n, n)) < 0.2)
    values = truth[rows, cols] + 0.3 * rng.randn(len(rows))
    result = {}
    for name, kind in {"single": torch.float32, "double": torch.float64}.items():
        data = SparseObserved.of(rows, cols, torch.tensor(values, dtype=kind), (n, n))
        weight = 0.2 * lambda_max(data)
        solver = SoftImpute(weight)
        state = solver.init(data)
        for _ in range(200):
            state = solver.step(data, state)
        least = float(state.objective)
        runs = {"partial": [], "full": []}
        for _ in range(3):
            runs["partial"].append(reach(SoftImpute(weight), data, least))
            runs["full"].append(reach(FullSVD(weight), data, least))
        middle = {
            way: sorted(found, key=lambda run: run["seconds"])[1]
            for way, found in runs.items()
        }
        ratio = middle["full"]["seconds"] / middle["partial"]["seconds"]
        result[name] = {**middle, "full / partial": ratio}
    return result


def loop(Q: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Solve row after row: ``v_O = inv(H_OO) m_O``, and ``X = V H``."""
    H = torch.linalg.inv(Q)
    V = torch.zeros_like(values)
    for row, (m, p) in enumerate(zip(values, mask, strict=True)):
        seen = p.nonzero()[:, 0]
        V[row, seen] = torch.linalg.solve(H[seen[:, None], seen], m[seen])
    return V @ H


def two_steps(rate: float, m: int = 1000, n: int = 500) -> tuple[NCARLState, Tensor]:
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
    state, Q = two_steps(rate)
    values, mask = state.problem.values, state.problem.seen > 0
    methods = {
        "ours": lambda: state.problem.interpolate(Q),
        "loop": lambda: loop(Q, values, mask),
    }
    times: dict[str, list[float]] = {name: [] for name in methods}
    answers = {}
    for _ in range(15):
        for name, method in methods.items():
            start = time.perf_counter()
            answers[name] = method()
            times[name].append(time.perf_counter() - start)
    median = {name: float(np.median(t)) for name, t in times.items()}
    return {
        "seconds": median,
        "loop / ours": median["loop"] / median["ours"],
        "largest difference": float((answers["ours"] - answers["loop"]).abs().max()),
    }


def low_rank(results: Results) -> None:
    key = ("Soft-Impute", "2000 x 2000 of rank 20", "80 %", "full SVD")
    results.measure(key, soft_impute, limit=None)
    for rate in (0.2, 0.8):
        key = ("NCARL", "1000 x 500", f"{rate:.0%}", "loop over rows")
        results.measure(key, rows, rate, limit=None)


# ------------------------------------------------------------------------- searches

WEIGHTS = [0.003, 0.03, 0.3, 3.0, 30.0]
KINDS = {
    "GridSearchCV": GridSearchCV,
    "BatchedGridSearchCV": BatchedGridSearchCV,
}


def searches(max_iter: int) -> dict:
    grid = {"lambda_row": WEIGHTS, "lambda_col": WEIGHTS}
    completer = AIRCompleter(max_iter=max_iter, random_state=0)
    cv = KFold(5, shuffle=True, random_state=0)
    return {
        name: kind(completer, grid, cv=cv, n_jobs=2) for name, kind in KINDS.items()
    }


def compare(m: int, n: int, rounds: int = 5, max_iter: int = 2000) -> dict:
    """25 weights of AIR x 5 folds, with two worker processes, started in advance."""
    photo = load_photo("flower").astype(float)
    truth = photo[60 : 60 + m, 80 : 80 + n]
    hidden = patterns.random(truth, 0.3, random_state=0)
    X = Entries(np.ma.masked_array(truth, hidden))
    for search in searches(25).values():  # starts the workers
        search.fit(X)
    seconds: dict[str, list[float]] = {name: [] for name in KINDS}
    for _ in range(rounds):
        found = searches(max_iter)
        for name, search in found.items():
            start = time.perf_counter()
            search.fit(X)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: float(np.median(times)) for name, times in seconds.items()}
    loop, batch = found.values()
    scores = [s.cv_results_["mean_test_score"] for s in (loop, batch)]
    return {
        "seconds": medians,
        "times as fast as GridSearchCV": {
            name: medians["GridSearchCV"] / s for name, s in medians.items()
        },
        "largest relative difference of mean scores, grid": float(
            np.abs(scores[1] / scores[0] - 1).max()
        ),
        "best_score_": {name: s.best_score_ for name, s in found.items()},
        "NMAE on the missing cells": {
            name: nmae(s.best_estimator_.reconstruction_, truth, hidden)
            for name, s in found.items()
        },
    }


# Completers, the weight that is searched, and its values.
SMALL = (
    (
        LinkedFactorizationCompleter(3, 1.0, random_state=0),
        "lambda_ridge",
        [0.1, 1, 3, 10, 30],
    ),
    (
        NSRCompleter(rank=3, lambda_decoder=2.0, random_state=0),
        "lambda_decoder",
        [0.5, 2, 4, 8, 32],
    ),
    (AutoencoderCompleter(random_state=0), "lambda_weights", [0.1, 0.3, 1, 2, 3]),
)


def bent_matrix(m: int, n: int) -> Entries:
    rng = np.random.RandomState(0)
    truth = np.tanh(rng.randn(m, 3) @ rng.randn(3, n)) + 0.1 * rng.randn(m, n)
    hidden = patterns.random(truth, 0.3, spare=True, random_state=0)
    return Entries(np.ma.masked_array(truth, hidden))


def compare_small(completer: object, name: str, weights: list, m: int, n: int) -> dict:
    """5 weights x 3 folds of cells, without refit, in one process."""
    X = bent_matrix(m, n)
    cv = KFold(3, shuffle=True, random_state=0)
    searches = [
        kind(completer, {name: weights}, cv=cv, refit=False)
        for kind in (GridSearchCV, BatchedGridSearchCV)
    ]
    fits = (partial(search.fit, X) for search in searches)
    alone, together = in_turns(*fits, repeats=3)
    scores = [s.cv_results_["mean_test_score"] for s in searches]
    return {
        "seconds": {"GridSearchCV": alone, "BatchedGridSearchCV": together},
        "times as fast as GridSearchCV": alone / together,
        "largest relative difference": np.abs(scores[1] / scores[0] - 1).max(),
    }


def step(completer: Any, m: int, n: int) -> dict[str, float]:
    """Microseconds of a step, alone and for a member of a batch; the lowest of three.

    At 5 x 4, hardly anything is computed. `SoftImputeCompleter` has no batches.
    """
    X = bent_matrix(m, n)
    runs = {"alone": (*solver_of(X, completer), 1)}
    if completer.completer_tags.batched:
        members = [clone(completer) for _ in range(25)]
        prepared = [member.batch_prepare(X) for member in members]
        run = completer.batch_run(members, prepared, range(25))
        runs["member of 25"] = run.solver, run.data, 25
    return {
        f"microseconds, {name}": min(
            seconds_per_step(solver, data, 12, 5) for _ in range(3)
        )
        / members
        * 1e6
        for name, (solver, data, members) in runs.items()
    }


def search(results: Results) -> None:
    for m, n in ((30, 40), (100, 100)):
        key = ("search", f"flower, {m} x {n}", "30 %", "AIR")
        results.measure(key, compare, m, n, limit=None)
    for m, n in ((30, 40), (60, 40)):
        for small in SMALL:
            key = ("search", f"tanh, {m} x {n}", "30 %", type(small[0]).__name__)
            results.measure(key, compare_small, *small, m, n, limit=None)
    for m, n in ((5, 4), (30, 20), (60, 40), (200, 100)):
        for completer in [*(small[0] for small in SMALL), SoftImputeCompleter(0.1)]:
            key = ("a step", f"tanh, {m} x {n}", "30 %", type(completer).__name__)
            results.measure(key, step, completer, m, n, limit=None)


if __name__ == "__main__":
    run(__doc__, air, autoencoder, neighbors, low_rank, search)
