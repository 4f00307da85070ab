"""Fits to ratings in files: ``python -m benchmarks.speed.scale PART [FOLDER]``.

The parts are ``growth``, ``memory`` and ``workers``. Ratings are synthetic: degrees of
users and films follow a power law, there are 50 ratings for each user, and a film has
1000. Each fit runs in a process of its own, which reports its processor time and its
largest resident memory. FOLDER is for the files, which are removed.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

SWEEPS, RANK, WEIGHT = 5, 16, 0.05
CHUNK = 2**22
SIZES = [10**6, 10**7]


def write(folder: Path, n: int, seed: int = 0) -> None:
    """Write ``n`` ratings to Parquet files, and a hundredth as many to hold out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    n_users, n_films = max(n // 50, 100), max(n // 1000, 50)
    U = rng.standard_normal((n_users, 4), np.float32)
    V = rng.standard_normal((n_films, 4), np.float32) / 2
    labels = rng.permutation(n_users)  # active users are not neighbors
    for name, size in (("train", n), ("test", n // 100)):
        (folder / name).mkdir(parents=True)
        for k, begin in enumerate(range(0, size, CHUNK)):
            part = min(CHUNK, size - begin)
            user = labels[(n_users * rng.random(part) ** 2).astype(np.int64)]
            film = (n_films * rng.random(part) ** 3).astype(np.int64)
            noise = rng.standard_normal(part, np.float32)
            stars = (U[user] * V[film]).sum(1) + noise / 2
            table = {"user": user, "film": film, "stars": stars}
            pq.write_table(pa.table(table), folder / name / f"{k:04d}.parquet")


def fit(folder: Path, how: str, workers: int = 0) -> dict:
    """Fit in this process; ``how`` is "memory" or "blocks"."""
    import pyarrow.parquet as pq

    from skmc import Entries, FactorizationCompleter

    names = ("user", "film", "stars")
    completer = FactorizationCompleter(
        RANK,
        lambda_ridge=WEIGHT,
        max_iter=SWEEPS,
        tol=0,
        scaling="global",
        device="cpu",
        random_state=0,
    )
    warnings.simplefilter("ignore")
    start = [time.perf_counter(), time.process_time()]
    marks = {}

    def mark(name: str) -> None:
        now = [time.perf_counter(), time.process_time()]
        marks[name] = [b - a for a, b in zip(start, now, strict=True)]
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
            from distributed import Client, LocalCluster

            cluster = LocalCluster(
                workers,
                threads_per_worker=1,
                dashboard_address=None,
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
        completer.fit(ratings)
        mark("fit")
        guess = completer.predict_entries(*(test[k].to_numpy() for k in names[:2]))
        if cluster is not None:
            client.close()
            cluster.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    error = float(np.sqrt(np.mean((guess - test["stars"].to_numpy()) ** 2)))
    return {"seconds": marks, "peak bytes": peak, "rmse": error}


def apart(folder: Path, how: str, workers: int = 0) -> dict:
    """Fit in a new process."""
    command = [sys.executable, "-m", __spec__.name, "fit", folder, how, workers]
    ran = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=dict(os.environ)
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return json.loads(ran.stdout.splitlines()[-1])


def growth(root: Path, sizes: list[int]) -> None:
    """Time and memory against the number of ratings, in memory and in blocks."""
    for n in sizes:
        folder = root / str(n)
        write(folder, n)
        for how in ("memory", "blocks"):
            if how == "memory" and n > 3 * 10**7:
                continue
            print(n, how, json.dumps(apart(folder, how)), flush=True)
        shutil.rmtree(folder)


def workers(root: Path, sizes: list[int]) -> None:
    """Seconds with one process, and with one and two workers of a local cluster."""
    for n in sizes:
        folder = root / str(n)
        write(folder, n)
        for number in (0, 1, 2):
            shutil.rmtree(folder / "blocks", ignore_errors=True)
            found = apart(folder, "blocks", number)
            print(n, f"{number} workers", json.dumps(found), flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    part, *rest = sys.argv[1:]
    if part == "fit":
        print(json.dumps(fit(Path(rest[0]), rest[1], int(rest[2]))))
    else:
        sizes = [int(float(size)) for size in rest[1:]] or SIZES
        with tempfile.TemporaryDirectory(dir=rest[0] if rest else None) as root:
            {"growth": growth, "workers": workers}[part](Path(root), sizes)
