"""How time, memory and errors change with size.

``growth``: every completer on squares and on tables of twenty columns, from a thousand
to ten million cells, one thread. Each gets a process for each of the two shapes; it is
ended when a size takes more than ``CAP`` seconds, so the whole takes about half an
hour. ``rows``: AIR on many rows, whose graph is sparse, beside all pairs. ``sweeps``:
of alternating least squares. ``memory``: of whole fits. ``defaults``: what it costs to
choose rank and weight. ``files`` and ``workers``: synthetic ratings in files, fitted in
memory, in blocks, and by none, one and two workers of a cluster. The files go to
``SKMC_SCRATCH``, which needs 12 GB for 1e8 ratings; they are removed.
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import torch
from common import Results, folder_of, run
from problems import matrix, split, write_ratings
from sklearn.datasets import load_digits
from timing import apart, peak_memory

import skmc
from skmc import AIRCompleter, Entries, FactorizationCompleter
from skmc.cells import SparseObserved
from skmc.checks import all_completers
from skmc.completers import OUTER
from skmc.completers.factorization.als import ALS
from skmc.datasets import load_expression, load_flixster, load_movielens, load_table
from skmc.linalg import Randomness
from skmc.metrics import rmse

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
CAP = 25  # seconds of one size, all calls together
N_COLS = 20  # of the tables
CELLS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
HIDDEN = 0.2
SHAPES = {
    "square": [(round(n**0.5), round(n**0.5)) for n in CELLS],
    "table": [(n // N_COLS, N_COLS) for n in CELLS],
}
# The others work with these.
NAMES = sorted({c.__name__ for c in all_completers()} - {*OUTER, "AutoCompleter"})


def problem(n_rows: int, n_cols: int) -> np.ndarray:
    """Rank 5 with a tenth of noise, a fifth of the cells missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 5)) @ rng.normal(size=(5, n_cols))
    X += 0.1 * np.sqrt(5) * rng.normal(size=X.shape)
    X[rng.random(X.shape) < HIDDEN] = np.nan
    return X


def measured(pipe: Any, name: str, shape: str) -> None:
    """Send times and memory of one completer for larger and larger matrices."""
    warnings.simplefilter("ignore")
    cls = getattr(skmc, name)
    cls().fit_transform(problem(30, 10))  # imports
    base = peak_memory()
    pipe.send({})
    for n_rows, n_cols in SHAPES[shape]:
        X = problem(2 * n_rows, n_cols)
        completer = cls()
        if "random_state" in completer.get_params():
            completer.set_params(random_state=0)
        row: dict[str, Any] = {"rows": n_rows, "columns": n_cols}
        for what, rows in (("fit_transform", X[:n_rows]), ("transform", X[n_rows:])):
            start = time.process_time()
            getattr(completer, what)(rows)
            row[what] = time.process_time() - start
            row["GB"] = (peak_memory() - base) / 1e9
            pipe.send(row)


def grown(name: str, shape: str) -> list[dict[str, Any]]:
    """The times in a child process, which gets ``CAP`` seconds for each size."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=measured, args=(theirs, name, shape))
    with mock.patch.dict(os.environ, ONE_THREAD):
        child.start()
    theirs.close()
    rows: dict[int, dict[str, Any]] = {}
    until = time.monotonic() + 2 * CAP  # with the time of the imports
    try:
        while ours.poll(max(until - time.monotonic(), 0)):
            row = ours.recv()
            if row:
                rows[row["rows"]] = row
            if not row or "transform" in row:
                until = time.monotonic() + CAP
    except EOFError:
        pass
    child.kill()
    child.join()
    return list(rows.values())


def growth(results: Results) -> None:
    """Times of fits, and of the completion of other rows."""
    for name in NAMES:
        for shape, sizes in SHAPES.items():
            first = ("growth", "{} x {}".format(*sizes[0]), shape, name)
            if results.wants(first):
                for row in grown(name, shape):
                    data = f"{row['rows']} x {row['columns']}"
                    results.add(("growth", data, shape, name), row)


# ------------------------------------------------------------------- AIR on many rows

N_ROWS = 1500
FILES = ("letter", "airfoil", "spambase", "concrete")
PICTURES = ("Cameraman", "peppers", "house")
# Rows, columns, and iterations of a fit.
ROWS = [
    *((20_000, 60, 400), (100_000, 20, 400)),
    *((n_rows, 20, 12) for n_rows in (50_000, 100_000, 200_000, 400_000)),
]


def truth_of(name: str) -> np.ndarray:
    """Some complete rows with standardized columns, or a picture."""
    if name in PICTURES:
        return matrix(name)[0]
    if name == "digits":
        return load_digits().data[:N_ROWS]
    if name == "yeast":
        data = load_expression()
        alpha = [str(column).startswith("alpha") for column in data["columns"]]
        X = data.data[:, alpha].astype(float)
    else:
        X = load_table(name).data.astype(float)
    X = X[~np.isnan(X).any(1)][-N_ROWS:]
    return (X - X.mean(0)) / X.std(0)


def accuracy(name: str, percent: int, many: int) -> dict[str, float]:
    """The error if more rows than ``many`` have a sparse graph."""
    truth = truth_of(name)
    hidden = np.random.default_rng(3).random(truth.shape) < percent / 100
    X = np.ma.masked_array(truth, hidden)
    with mock.patch("skmc.completers.air.MANY", many):
        completed = AIRCompleter(random_state=0).fit_transform(X)
    return {"rmse": rmse(completed, truth, hidden)}


def many_rows(n_rows: int, n_cols: int, max_iter: int) -> dict:
    """One fit: a smooth function of four hidden variables and noise."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n_rows, 4))
    truth = np.tanh(Z @ rng.normal(size=(4, n_cols)))
    truth += 0.5 * np.sin(Z @ rng.normal(size=(4, n_cols)))
    truth += 0.1 * rng.normal(size=truth.shape)
    hidden = rng.random(truth.shape) < 0.2
    X = np.where(hidden, np.nan, truth)
    start, cpu = time.perf_counter(), time.process_time()
    completed = AIRCompleter(max_iter=max_iter, random_state=0).fit_transform(X)
    return {
        "seconds": time.perf_counter() - start,
        "processor seconds": time.process_time() - cpu,
        "peak GB": peak_memory() / 1e9,
        "RMSE / deviation": float(rmse(completed, truth, hidden) / truth.std()),
    }


def rows(results: Results) -> None:
    """Columns have all pairs, except in pictures, which have as many as rows."""
    for name in (*FILES, "digits", "yeast", *PICTURES):
        for percent in (20, 50):
            for graph, many in (("all pairs", 10**6), ("neighbors", 100)):
                key = ("rows", name, f"{percent} %", f"AIR, {graph}")
                results.measure(key, accuracy, name, percent, many, limit=None)
    for m, n, max_iter in ROWS:
        key = ("rows", f"{m} x {n}", "20 %", f"AIR, {max_iter} iterations")
        results.measure(key, apart, many_rows, m, n, max_iter, limit=None)


# --------------------------------------------------------------------------- ratings


def tenth(entries: Entries) -> tuple[Entries, Entries]:
    """Nine tenths and one tenth of the cells."""
    test = np.random.default_rng(7).random(len(entries)) < 0.1
    return entries[~test], entries[test]


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
    return tenth(Entries.from_triplets(rows, cols, values.astype(np.float32), shape))


RATINGS: dict[str, Callable[[], tuple[Entries, Entries]]] = {
    "MovieLens-100K": lambda: split("100k", "90/10", 0),
    "Flixster": lambda: tenth(load_flixster().entries),
    "MovieLens-1M": lambda: split("1m", "90/10", 0),
    "30 000 x 4000, decay": lambda: noisy((30_000, 4000), 2_000_000, 40, 0.5, 0.85),
    "20 000 x 3000, noise": lambda: noisy((20_000, 3000), 1_500_000, 10, 2.0, 0.9),
    "2000 x 40 000": lambda: noisy((2000, 40_000), 2_000_000, 20, 1.0, 0.8),
    "four million": lambda: noisy((100_000, 5000), 4_000_000, 5, 0.3, 1.0),
    "ten million": ten_million,
}


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


@cache
def ratings_of(name: str) -> tuple[Entries, Entries]:
    return RATINGS[name]()


def defaults(results: Results) -> None:
    """Fits that choose rank and weight, and fits with those that were chosen."""
    for name in RATINGS:
        for where in ("memory", "files"):
            key = ("defaults", name, "90/10", f"Factorization, {where}")
            results.measure(key, chosen_and_given, name, where, limit=None)


def chosen_and_given(name: str, where: str) -> dict[str, dict[str, float]]:
    """In memory, or from a Parquet file, which the seconds include."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    train, test = ratings_of(name)
    found, given = {}, {}
    with TemporaryDirectory() as folder:
        if where == "files":
            places = {"row": train.rows, "col": train.cols}
            table = pa.table({**places, "value": train.values})
            pq.write_table(table, f"{folder}/cells.parquet")
        for kind in ("chosen", "given"):
            start = time.perf_counter()
            X = train
            if where == "files":
                X = Entries.from_parquet(folder, "row", "col", "value")
            completer = FactorizationCompleter(**given, random_state=0).fit(X)
            seconds = time.perf_counter() - start
            off = completer.predict_entries(test.rows, test.cols) - test.values
            best = completer.rank_, completer.lambda_ridge_
            given = dict(zip(("rank", "lambda_ridge"), best, strict=True))
            found[kind] = {
                "seconds": seconds,
                "rmse": float(np.sqrt(np.mean(np.square(off)))),
                "sweeps": completer.n_iter_,
                **given,
            }
    return found


def sweeps(results: Results) -> None:
    """Seconds of an ALS sweep (rank 20, float32) as ratings and rows grow."""
    sizes = [
        *((40_000, 20_000, n) for n in (100_000, 1_000_000, 5_000_000, 20_000_000)),
        *((m, 5_000, 50 * m) for m in (10_000, 50_000, 100_000, 400_000)),
    ]
    for m, n, cells in sizes:
        key = ("sweeps", f"{m} x {n}", f"{cells} ratings", "ALS")
        results.measure(key, sweep, m, n, cells, limit=None)


def sweep(m: int, n: int, cells: int) -> dict[str, float]:
    return {"seconds a sweep": sweep_seconds(synthetic(m, n, cells), 20)}


WHOLE: list[tuple[str, str, dict[str, Any]]] = [
    ("1m", "FactorizationCompleter", {"rank": 40, "lambda_ridge": 0.06}),
    ("1m", "FactorizationCompleter", {}),
    ("1m", "SoftImputeCompleter", {"lambda_nuclear": 0.05, "tol": 0.01}),
    ("1m", "BayesianFactorizationCompleter", {"implicit": True}),
    ("100k", "IALMCompleter", {}),
]


def fitted(size: str, name: str, params: dict[str, Any]) -> dict[str, float]:
    """Peak memory and seconds of a fit to MovieLens, in doubles."""
    warnings.simplefilter("ignore")
    ratings = load_movielens(size).entries
    before, start = peak_memory(), time.perf_counter()
    completer = getattr(skmc, name)(**params).fit(ratings)
    seconds = time.perf_counter() - start
    memory = {"peak GB": peak_memory() / 1e9, "GB before the fit": before / 1e9}
    return {"seconds": seconds, **memory, "iterations": completer.n_iter_}


def autoencoder(early_stopping: bool) -> dict[str, float]:
    """Two epochs of 100 000 x 500."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = np.empty((100_000, 500), np.float32)
    B = rng.standard_normal((10, 500), np.float32)
    for some in np.split(X, 100):
        some[:] = rng.standard_normal((len(some), 10), np.float32) @ B
        some[rng.random(some.shape, np.float32) < 0.3] = np.nan
    before, start = peak_memory(), time.perf_counter()
    skmc.AutoencoderCompleter(
        max_iter=2, early_stopping=early_stopping, random_state=0, device="cpu"
    ).fit(X)
    seconds = time.perf_counter() - start
    memory = {"peak GB": peak_memory() / 1e9, "GB before the fit": before / 1e9}
    return {"seconds": seconds, **memory}


def memory(results: Results) -> None:
    for size, name, params in WHOLE:
        said = ", ".join(f"{key}={value}" for key, value in params.items())
        key = ("memory", f"MovieLens-{size}", "none", f"{name}({said})")
        results.measure(key, apart, fitted, size, name, params, limit=None)
    for early_stopping in (True, False):
        method = f"AutoencoderCompleter(early_stopping={early_stopping})"
        key = ("memory", "100000 x 500", "30 %", method)
        results.measure(key, apart, autoencoder, early_stopping, limit=None)


# ------------------------------------------------------------------- ratings in files

SIZES = (10**6, 10**7, 2 * 10**7, 10**8)
PROCESSES = ["one process", "one worker", "two workers"]
MOST_IN_MEMORY = 3 * 10**7


def fit_files(folder: Path, how: str, workers: int = 0) -> dict:
    """Fit in this process; ``how`` is "memory" or "blocks"."""
    import pyarrow.parquet as pq

    names = ("user", "film", "stars")
    completer = FactorizationCompleter(
        16,
        lambda_ridge=0.05,
        max_iter=5,
        tol=0,
        scaling="global",
        device="cpu",
        random_state=0,
    )
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # as each worker
    start = [time.perf_counter(), time.process_time()]
    marks: dict[str, dict[str, float]] = {}
    of_workers: dict[str, list[float]] = {}

    def mark(name: str) -> None:
        now = [time.perf_counter(), time.process_time()]
        wall, processor = (b - a for a, b in zip(start, now, strict=True))
        marks[name] = {"seconds": wall, "processor seconds": processor}
        start[:] = now

    test = pq.read_table(folder / "test")
    if how == "memory":
        table = pq.read_table(folder / "train")
        user, film, stars = (table[name].to_numpy() for name in names)
        users, user = np.unique(user, return_inverse=True)
        films, film = np.unique(film, return_inverse=True)
        ratings = Entries.from_triplets(user, film, stars, duplicates="mean")
        ratings.values = ratings.values.astype(np.float32)
        del table, user, film, stars
        mark("read")
        completer.fit(ratings)
        mark("fit")
        places = [
            np.searchsorted(known, test[name].to_numpy()).clip(max=len(known) - 1)
            for name, known in zip(names, (users, films), strict=False)
        ]
        guess = completer.predict_entries(*places)
    else:
        from skmc.blocks import sorted_blocks

        client = cluster = None
        if workers:
            import dask
            from distributed import Client, LocalCluster

            # Dask makes workers return memory to the system, which doubles the time.
            threads = {f"{name}_NUM_THREADS": 1 for name in ("OMP", "MKL", "OPENBLAS")}
            dask.config.set({"distributed.nanny.pre-spawn-environ": threads})
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address=":0",
                memory_limit=None,
                local_directory=str(folder),
            )
            client = Client(cluster)
            start[0] = time.perf_counter()
        ratings = Entries.from_parquet(
            folder / "train",
            *names,
            duplicates="mean",
            folder=folder / "blocks",
            client=client,
        )
        sorted_blocks(ratings)
        mark("read")
        before = spent(client)
        completer.fit(ratings)
        mark("fit")
        after = spent(client)
        for name, ends in after.items():
            begins = [0.0] * workers if "peak" in name else before[name]
            of_workers[name] = [b - a for a, b in zip(begins, ends, strict=True)]
        guess = completer.predict_entries(*(test[k].to_numpy() for k in names[:2]))
        if cluster is not None:
            client.close()
            cluster.close()
    peak = peak_memory()
    error = float(np.sqrt(np.mean((guess - test["stars"].to_numpy()) ** 2)))
    workers_most = {name: max(each) for name, each in of_workers.items()}
    return {**marks, "peak bytes": peak, "rmse": error, **workers_most}


def spent(client: Any) -> dict[str, list[float]]:
    """Processor seconds of each worker, and the bytes that others have sent it."""
    if client is None:
        return {}

    def of(dask_worker: Any) -> tuple[float, float, float]:
        log = dask_worker.transfer_incoming_log
        peak = peak_memory()
        return time.process_time(), sum(entry["total"] for entry in log), peak

    found = list(client.run(of).values())
    names = (
        "worker processor seconds",
        "bytes from worker to worker",
        "worker peak bytes",
    )
    return {name: [each[k] for each in found] for k, name in enumerate(names)}


def in_files(
    results: Results, subject: str, n: int, variants: Sequence[tuple[str, str, int]]
) -> None:
    """Fit in new processes; ratings are written if a fit is missing, then removed."""
    cases = [
        ((subject, f"{n:.0e} ratings", "a hundredth", name), how, workers)
        for name, how, workers in variants
    ]
    cases = [case for case in cases if results.wants(case[0])]
    if not cases:
        return
    root = folder_of("SKMC_SCRATCH", "a folder with 12 GB of space")
    folder = root / f"skmc-ratings-{n}"
    shutil.rmtree(folder, ignore_errors=True)
    write_ratings(folder, n)
    try:
        for key, how, workers in cases:
            shutil.rmtree(folder / "blocks", ignore_errors=True)
            results.measure(key, apart, fit_files, folder, how, workers, limit=None)
    finally:
        shutil.rmtree(folder)


def files(results: Results) -> None:
    for n in SIZES:
        variants = [("memory", "memory", 0), ("blocks", "blocks", 0)]
        in_files(results, "files", n, variants[n > MOST_IN_MEMORY :])


def workers(results: Results) -> None:
    for n in SIZES[:3]:
        variants = [(name, "blocks", k) for k, name in enumerate(PROCESSES)]
        in_files(results, "workers", n, variants)


if __name__ == "__main__":
    run(__doc__, growth, rows, sweeps, memory, defaults, files, workers)
