"""Fits to ratings in files: ``python -m benchmarks.speed.scale PART FOLDER [SIZES]``.

The parts are ``growth`` (time and memory against ratings, in memory and in blocks) and
``workers`` (none, one and two workers of a cluster). Ratings are synthetic: degrees of
users and films follow a power law, there are 50 ratings for each user, and a film has
1000. Each fit runs in a process of its own, which reports its time and its largest
resident memory. The files go to FOLDER, which needs 12 GB for 1e8 ratings; they are
removed. Fits that are in the record are not repeated, so an interrupted run continues;
``--again`` repeats them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.shared import made
from benchmarks.shared.pages import hardware, record
from benchmarks.shared.timing import peak_memory

NAME = "speed-scale"
SWEEPS, RANK, WEIGHT = 5, 16, 0.05
CHUNK = 2**22
SIZES = {
    "growth": [10**6, 10**7, 2 * 10**7, 10**8],
    "workers": [10**6, 10**7, 2 * 10**7],
}
PROCESSES = ["one process", "one worker", "two workers"]
MOST_IN_MEMORY = 3 * 10**7


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
    marks: dict[str, list[float]] = {}  # wall and processor seconds
    of_workers: dict[str, list[float]] = {}

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
    return {"seconds": marks, "peak bytes": peak, "rmse": error, **of_workers}


def spent(client: Any) -> dict[str, list[float]]:
    """Processor seconds of each worker, and the bytes that others have sent it."""
    if client is None:
        return {}

    def of(dask_worker: Any) -> tuple[float, float, float]:
        log = dask_worker.transfer_incoming_log
        peak = peak_memory()
        return time.process_time(), sum(entry["total"] for entry in log), peak

    found = list(client.run(of).values())
    names = ("worker processor s", "bytes from worker to worker", "worker peak bytes")
    return {name: [each[k] for each in found] for k, name in enumerate(names)}


def apart(folder: Path, how: str, workers: int = 0) -> dict:
    """Fit in a new process."""
    command = [sys.executable, "-m", __spec__.name, "fit", folder, how, workers]
    ran = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=dict(os.environ)
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return json.loads(ran.stdout.splitlines()[-1])


def measure(part: str, root: Path, sizes: list[int], again: bool) -> None:
    """Run the fits of a part that are not in the record."""
    for n in sizes:
        folder = root / f"skmc-ratings-{n}"
        variants = [("blocks", 0), ("blocks", 1), ("blocks", 2)]
        if part == "growth":
            variants = [("memory", 0), ("blocks", 0)][n > MOST_IN_MEMORY :]
        for how, workers in variants:
            name = PROCESSES[workers] if part == "workers" else how
            found = made.known(NAME).get(part, {"hardware": hardware()})
            at_size = found.setdefault(f"{n:.0e}", {})
            if name in at_size and not again:
                continue
            if not folder.exists():
                shutil.rmtree(unfinished := root / "unfinished", ignore_errors=True)
                write(unfinished, n)
                unfinished.replace(folder)
            shutil.rmtree(folder / "blocks", ignore_errors=True)
            at_size[name] = apart(folder, how, workers)
            ratios(part, at_size)
            record(NAME, {part: found})
        shutil.rmtree(folder, ignore_errors=True)


def ratios(part: str, found: dict) -> None:
    """Add ratios of processor times, as ``docs/_ext/measured.py`` finds them."""
    pairs = [("blocks", "memory")]
    if part == "workers":
        pairs = [(name, PROCESSES[2]) for name in PROCESSES[:2]]
    for slow, fast in pairs:
        if slow in found and fast in found:
            found[f"{slow} / {fast}"] = least(found[slow]) / least(found[fast])


def least(run: dict) -> float:
    """Seconds of a fit on idle cores: of this process, and of the busiest worker."""
    own: float = run["seconds"]["fit"][1]
    return own + max(run.get("worker processor s", [0.0]))


if __name__ == "__main__":
    torch.set_num_threads(1)  # as each worker
    part, *rest = (text for text in sys.argv[1:] if text != "--again")
    if part == "fit":
        print(json.dumps(fit(Path(rest[0]), rest[1], int(rest[2]))))
    else:
        sizes = [int(float(size)) for size in rest[1:]] or SIZES[part]
        measure(part, Path(rest[0]), sizes, "--again" in sys.argv)
