"""The speed of the low-rank family: ``python -m benchmarks.speed.low_rank [parts]``.

Each ratio is one of median run times, measured alternately on one machine. ``ratings``
and ``counts`` need ``pip install -r benchmarks/speed/requirements.txt``. Memory is
measured in separate processes.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from tempfile import TemporaryDirectory

import numpy as np
import torch
from scipy.sparse import coo_matrix

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.timing import in_turns
from benchmarks.speed import ncarl
from benchmarks.speed.counts import counts
from benchmarks.speed.lapack import shrink_by_lapack
from skmc import Entries, FactorizationCompleter
from skmc.cells import SparseObserved
from skmc.datasets import load_flixster, load_movielens
from skmc.linalg import Randomness
from skmc.solvers import ALS, SoftImpute, largest_weight

REPEATS = 3


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
        weight = 0.2 * largest_weight(data)
        solver = SoftImpute(weight)
        state = solver.init(data)
        for _ in range(200):
            state = solver.step(data, state)
        least = float(state.objective)
        runs = {"partial": [], "full": []}
        for _ in range(REPEATS):
            runs["partial"].append(reach(SoftImpute(weight), data, least))
            runs["full"].append(reach(FullSVD(weight), data, least))
        middle = {
            way: sorted(found, key=lambda run: run["seconds"])[REPEATS // 2]
            for way, found in runs.items()
        }
        ratio = middle["full"]["seconds"] / middle["partial"]["seconds"]
        result[name] = {**middle, "full / partial": ratio}
    return result


def split(entries: Entries) -> tuple[Entries, Entries]:
    """Nine tenths and one tenth of the cells."""
    test = np.random.default_rng(7).random(len(entries)) < 0.1
    return entries[~test], entries[test]


def million() -> tuple[Entries, Entries]:
    return split(load_movielens("1m").entries)


RANK, SWEEPS, WEIGHT = 40, 10, 0.06


def ratings() -> dict:
    """Factorization and cmfrec on MovieLens-1M: same rank, sweeps and precision.

    Both have biases and a weight per rating: .06 of unit variance for us and .06 of the
    ratings for cmfrec. Half-steps of cmfrec are three steps of conjugate gradients, and
    exact at the end; ``cholesky`` makes all of them exact.
    """
    from cmfrec import CMF

    train, test = million()
    single = Entries.from_triplets(
        train.rows, train.cols, train.values.astype(np.float32), train.matrix_shape
    )
    places = train.rows, train.cols
    matrix = coo_matrix((train.values, places), train.matrix_shape)
    errors = {}

    def rmse(guess) -> float:
        return float(np.sqrt(np.mean((np.clip(guess, 1, 5) - test.values) ** 2)))

    def ours():
        completer = FactorizationCompleter(
            RANK, lambda_ridge=WEIGHT, max_iter=SWEEPS, tol=0.0, random_state=0
        ).fit(single)
        errors["ours"] = rmse(completer.predict_entries(test.rows, test.cols))

    def theirs(name, use_cg, threads):
        def run():
            model = CMF(
                k=RANK,
                lambda_=WEIGHT,
                scale_lam=True,
                niter=SWEEPS,
                use_cg=use_cg,
                nthreads=threads,
                use_float=True,
                verbose=False,
            ).fit(matrix)
            errors[name] = rmse(model.predict(test.rows, test.cols))

        return run

    result = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        names = ["cmfrec", "cmfrec, cholesky"]
        others = [theirs(names[0], True, threads), theirs(names[1], False, threads)]
        seconds = in_turns(ours, *others)
        result[f"{threads} threads"] = {
            "seconds": dict(zip(["ours", *names], seconds, strict=True)),
            "ours / cmfrec": seconds[0] / seconds[1],
            "ours / cmfrec, cholesky": seconds[0] / seconds[2],
            "RMSE": dict(errors),
        }
    return result


def ten_million() -> tuple[Entries, Entries]:
    """Like MovieLens-10M: 70 000 users, 10 000 films, power laws, rank 10, noise .8."""
    rng = np.random.default_rng(0)
    m, n, size, rank = 70_000, 10_000, 10_000_000, 10
    users, films = (
        rng.permutation(k)[(k * rng.random(2 * size) ** 2).astype(int)] for k in (m, n)
    )
    place = np.unique(users * n + films)
    place = np.sort(rng.permutation(place)[:size])
    rows, cols = place // n, place % n
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))
    values = np.einsum("ik,ik->i", U[rows], V[cols]) / rank**0.5 / 2
    values += 0.5 * rng.standard_normal(m)[rows] + 0.5 * rng.standard_normal(n)[cols]
    values += 0.8 * rng.standard_normal(len(rows))
    entries = Entries.from_triplets(rows, cols, values.astype(np.float32), (m, n))
    test = rng.random(len(entries)) < 0.1
    return entries[~test], entries[test]


def noisy(
    shape: tuple[int, int], size: int, rank: int, noise: float, decay: float
) -> tuple[Entries, Entries]:
    """Cells at random places; variance 1 and noise, components in geometric decay."""
    rng = np.random.default_rng(0)
    place = np.unique(rng.integers(0, shape[0] * shape[1], int(1.05 * size)))
    rows, cols = np.divmod(np.sort(rng.permutation(place)[:size]), shape[1])
    sizes = decay ** np.arange(rank)
    U, V = (rng.standard_normal((n, rank)) for n in shape)
    U *= sizes / np.linalg.norm(sizes)
    values = np.einsum("ik,ik->i", U[rows], V[cols])
    values += noise * rng.standard_normal(len(rows))
    return split(Entries.from_triplets(rows, cols, values.astype(np.float32), shape))


RATINGS: dict[str, Callable[[], tuple[Entries, Entries]]] = {
    "MovieLens-100K": lambda: split(load_movielens("100k").entries),
    "Flixster": lambda: split(load_flixster().entries),
    "MovieLens-1M": million,
    "30 000 x 4000, decay": lambda: noisy((30_000, 4000), 2_000_000, 40, 0.5, 0.85),
    "20 000 x 3000, noise": lambda: noisy((20_000, 3000), 1_500_000, 10, 2.0, 0.9),
    "2000 x 40 000": lambda: noisy((2000, 40_000), 2_000_000, 20, 1.0, 0.8),
    "four million": lambda: noisy((100_000, 5000), 4_000_000, 5, 0.3, 1.0),
    "ten million": ten_million,
}


def defaults() -> dict:
    """Fits that choose rank and weight, and fits with those that were chosen.

    In memory and from a Parquet file, which the seconds include.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    result = {}
    for name, make in RATINGS.items():
        train, test = make()
        found: dict[str, dict] = {}
        for where in ("memory", "files"):
            with TemporaryDirectory() as folder:
                if where == "files":
                    places = {"row": train.rows, "col": train.cols}
                    table = pa.table({**places, "value": train.values})
                    pq.write_table(table, f"{folder}/cells.parquet")
                chosen: dict = {}
                for kind in ("chosen", "given"):
                    start = time.perf_counter()
                    X = train
                    if where == "files":
                        X = Entries.from_parquet(folder, "row", "col", "value")
                    completer = FactorizationCompleter(**chosen, random_state=0).fit(X)
                    seconds = time.perf_counter() - start
                    guess = completer.predict_entries(test.rows, test.cols)
                    best = completer.rank_, completer.lambda_ridge_
                    chosen = dict(zip(("rank", "lambda_ridge"), best, strict=True))
                    found[f"{where}, {kind}"] = {
                        "seconds": seconds,
                        "RMSE": float(np.sqrt(np.mean((guess - test.values) ** 2))),
                        "sweeps": completer.n_iter_,
                        **chosen,
                    }
        result[name] = found
        print(name, found, flush=True)
    return result


def sweep_seconds(data: SparseObserved, rank: int, sweeps: int = 3) -> float:
    rng = Randomness.of([0], dtype=data.values.dtype)
    solver = ALS(
        rng.normal(data.shape[0], rank, 0.2),
        0.1,
        row_biases=True,
        col_biases=True,
        per_cell=1.0,
    )
    state = solver.init(data)
    state = solver.step(data, state)  # sorts by column
    times = []
    for _ in range(sweeps):
        start = time.perf_counter()
        state = solver.step(data, state)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def synthetic(n_rows: int, n_cols: int, n_cells: int) -> SparseObserved:
    rng = np.random.default_rng(0)
    place = np.unique(rng.integers(0, n_rows * n_cols, n_cells))
    values = torch.from_numpy(rng.standard_normal(len(place)).astype(np.float32))
    return SparseObserved.of(place // n_cols, place % n_cols, values, (n_rows, n_cols))


def growth() -> dict:
    """Seconds of an ALS sweep (rank 20, float32) as ratings and rows grow."""
    by_ratings = {
        f"{n:.0e}": sweep_seconds(synthetic(40_000, 20_000, n), 20)
        for n in (100_000, 1_000_000, 5_000_000, 20_000_000)
    }
    by_rows = {
        f"{m:.0e}": sweep_seconds(synthetic(m, 5_000, 50 * m), 20)
        for m in (10_000, 50_000, 100_000, 400_000)
    }
    return {
        "40 000 x 20 000, by ratings": by_ratings,
        "rows x 5 000, 50 ratings each, by rows": by_rows,
    }


CHILDREN = {
    "1M, Factorization of rank 40": (
        "1m",
        "FactorizationCompleter(40, lambda_ridge=.06)",
    ),
    "1M, Factorization, all chosen": ("1m", "FactorizationCompleter(random_state=0)"),
    "1M, Soft-Impute": ("1m", "SoftImputeCompleter(.05, tol=.01)"),
    "1M, Bayesian, implicit": ("1m", "BayesianFactorizationCompleter(implicit=True)"),
    "100K, IALM": ("100k", "IALMCompleter()"),
}
CHILD = """
import time, warnings
warnings.simplefilter("ignore")
from skmc import BayesianFactorizationCompleter, FactorizationCompleter
from skmc import IALMCompleter, SoftImputeCompleter
from skmc.datasets import load_flixster, load_movielens
def peak():
    status = open("/proc/self/status").read().split()
    return int(status[status.index("VmHWM:") + 1]) * 1024 / 1e9
ratings = load_movielens("{size}").entries
before, start = peak(), time.perf_counter()
completer = {call}.fit(ratings)
print(time.perf_counter() - start, peak(), before, completer.n_iter_)
"""


def memory() -> dict:
    """Peak memory (GB, 1e9 bytes) and seconds of fits to MovieLens, in doubles.

    On Linux only, which tells the peak of a child without that of its parent.
    """
    result = {}
    for name, (size, call) in CHILDREN.items():
        done = subprocess.run(
            [sys.executable, "-c", CHILD.format(size=size, call=call)],
            check=True,
            capture_output=True,
            text=True,
        )
        seconds, peak, before, n_iter = map(float, done.stdout.split())
        result[name] = {
            "seconds": seconds,
            "iterations": n_iter,
            "peak": peak,
            "before the fit": before,
        }
        print(name, result[name], flush=True)
    return result


def ncarl_rows() -> dict:
    """NCARL's row solves and a loop over rows at 1000 x 500."""
    return {f"{rate:.0%} hidden": ncarl.rows(rate) for rate in (0.2, 0.8)}


PARTS = {
    "soft-impute": soft_impute,
    "ratings": ratings,
    "defaults": defaults,
    "counts": counts,
    "growth": growth,
    "memory": memory,
    "ncarl": ncarl_rows,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        record("speed-low-rank", {part: {"hardware": hardware(), **PARTS[part]()}})
