"""Child processes that are killed at random moments, or suspended.

Children are forked before anything is computed here: that starts a process in
milliseconds, but threads do not survive it.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset  # as below: sorting would, in every child
import pyarrow.parquet as pq
import torch
import torch._dynamo  # the first step of an optimizer would, in every child

from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    BayesianFactorizationCompleter,
    DMFCompleter,
    Entries,
    FactorizationCompleter,
    MeanCompleter,
    SoftImputeCompleter,
    SVDCompleter,
)
from skmc.base import BaseCompleter
from skmc.checks import low_rank
from skmc.persistence import StorageError, checkpoint, load, save

COMPLETERS = [
    AIRCompleter(max_iter=150, early_stopping=True, random_state=0, device="cpu"),
    AutoencoderCompleter((10, 5), batch_size=9, max_iter=15, random_state=0),
    BayesianFactorizationCompleter(4, n_draws=40, random_state=0),
    FactorizationCompleter(rank=3, max_iter=300, tol=0.0, random_state=0),
    SoftImputeCompleter(tol=1e-2, random_state=0),
]


def apart(work: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a new process, in which nothing has been computed."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def forked(work: Callable[..., object], *args: Any) -> int:
    """Call a function in a child process; its number."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        os.fsync = lambda _: None  # slow, and not needed where only a process dies
        work(*args)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def finished(work: Callable[..., object], *args: Any) -> float:
    """Let a child process do it all; its seconds. If it fails, this fails."""
    start = time.monotonic()
    _, status = os.waitpid(forked(work, *args), 0)
    if status:
        raise RuntimeError(f"{work.__name__} has failed with status {status}")
    return time.monotonic() - start


def killed(seconds: float, work: Callable[..., object], *args: Any) -> bool:
    """Kill a child process after this time; whether it still ran.

    If it failed before, this fails.
    """
    pid = forked(work, *args)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status) and status:
        raise RuntimeError(f"{work.__name__} has failed with status {status}")
    return os.WIFSIGNALED(status)


def some_holes(n_rows: int = 40, n_cols: int = 20) -> np.ndarray:
    """A matrix of rank 3 with a fifth of its cells missing."""
    X = low_rank(n_rows, n_cols, 3)
    X[np.random.RandomState(0).uniform(size=X.shape) < 0.2] = np.nan
    return X


def fit(completer: Any, folder: Path | None, every: float, answer: Path) -> None:
    """Write down the completion of a matrix, and of new rows."""
    X = some_holes()
    if folder is None:
        completer.fit(X)
    else:
        with checkpoint(folder, every=every):
            completer.fit(X)
    np.savez(answer, completer.reconstruction_, completer.transform(X[:3] + 1))


def same(a: Path, b: Path) -> bool:
    with np.load(a) as one, np.load(b) as other:
        return all(np.array_equal(one[name], other[name]) for name in one)


def kill_fits(
    completers: Sequence[BaseCompleter], kills: int, seed: int, folder: Path
) -> dict[str, Any]:
    """Kill fits with checkpoints so often each, and resume them.

    A fit that is done removes its checkpoint, so that the next one begins anew. The
    answer of each is to be that of an undisturbed fit.
    """
    rng = random.Random(seed)
    tried, lost, ended = 0, [], 0
    for k, completer in enumerate(completers):
        name = type(completer).__name__
        plain, answer = folder / f"plain{k}.npz", folder / f"resumed{k}.npz"
        finished(fit, completer, None, 0.0, plain)
        args = fit, completer, folder / f"fit{k}", 0.03, answer
        whole = finished(*args)
        before = tried
        while tried < before + kills:
            if killed(rng.uniform(0, whole / 2), *args):
                tried += 1
                continue
            ended += 1
            lost += [name] * (not same(plain, answer))
        finished(*args)
        ended += 1
        lost += [name] * (not same(plain, answer))
    return {"tried": tried, "lost": lost, "ended": ended}


def kill_saves(kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kill a process that replaces one file over and over, and read the file."""

    def fit_both() -> None:
        for rank, path in enumerate(paths, 1):
            completer = SVDCompleter(rank, max_iter=3, random_state=0)
            save(completer.fit(some_holes(4000, 200)), path)

    def replace() -> None:
        both = [load(path) for path in paths]
        for k in count():
            save(both[k % 2], target)

    paths, target = [folder / "1.skmc", folder / "2.skmc"], folder / "fit.skmc"
    rng, lost, partial = random.Random(seed), [], 0
    finished(fit_both)
    expected = [load(path).reconstruction_ for path in paths]
    shutil.copy(paths[0], target)
    seen: set[int] = set()
    for _ in range(kills):
        killed(rng.uniform(0.1, 0.3), replace)
        partial += (folder / f".{target.name}.part").exists()
        try:
            found = load(target).reconstruction_
        except StorageError as error:
            lost.append(str(error))
            continue
        equal = [np.array_equal(found, answer) for answer in expected]
        if any(equal):
            seen.add(equal.index(True))
        else:
            lost.append("neither the old fit nor the new one")
    return {"tried": kills, "lost": lost, "partial": partial, "seen": sorted(seen)}


def write_ratings(path: Path) -> None:
    rng = np.random.default_rng(0)
    place = rng.choice(200 * 90, 6000, replace=False)
    cells = {"u": place // 90, "i": place % 90, "r": rng.normal(size=6000)}
    pq.write_table(pa.table(cells), path)


def sort(path: Path, block_cells: int, folder: Path) -> None:
    ratings = Entries.from_parquet(
        path, "u", "i", "r", folder=folder, block_cells=block_cells
    )
    MeanCompleter().fit(ratings)


def kill_sorts(kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kill the sorting of ratings into a folder, which holds other blocks of them."""
    source = folder / "ratings.parquet"
    rng, lost = random.Random(seed), []
    finished(write_ratings, source)
    wanted, whole = {}, 0.0
    for size in (700, 900):
        whole = finished(sort, source, size, folder / f"whole{size}")
        wanted[size] = digest(folder / f"whole{size}")
    tried = 0
    while tried < kills:
        size = rng.choice(sorted(wanted))
        args = sort, source, size, folder / "blocks"
        tried += killed(rng.uniform(0, whole), *args)
        try:
            finished(*args)
        except RuntimeError as error:
            lost.append(str(error))
            shutil.rmtree(folder / "blocks")
            continue
        if digest(folder / "blocks") != wanted[size]:
            lost.append(f"other blocks of {size} cells")
    return {"tried": tried, "lost": lost}


def digest(folder: Path) -> str:
    """SHA-256 of all files of a folder, and their names."""
    sha = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            sha.update(f"{path.relative_to(folder)} {path.stat().st_size}".encode())
            sha.update(path.read_bytes())
    return sha.hexdigest()


def suspend(seconds: float, folder: Path) -> dict[str, Any]:
    """Suspend two fits for a time; one has a longer limit, one a shorter one."""

    def endless(limit: float, answer: Path) -> None:
        start, processor = time.perf_counter(), time.process_time()
        completer = DMFCompleter(
            max_iter=10**9, early_stopping=False, tol=0.0, max_time=limit
        ).fit(some_holes())
        np.savez(
            answer,
            wall=time.perf_counter() - start,
            processor=time.process_time() - processor,
            status=completer.status_,
        )

    limits, found = (seconds / 2, seconds + 2), []
    answers = [folder / f"{k}.npz" for k in range(2)]
    pids = [
        forked(endless, limit, answer)
        for limit, answer in zip(limits, answers, strict=True)
    ]
    time.sleep(1)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    lost = []
    for pid, limit, answer in zip(pids, limits, answers, strict=True):
        _, status = os.waitpid(pid, 0)
        if status:
            raise RuntimeError(f"a suspended fit has failed with status {status}")
        with np.load(answer) as file:
            row = {"limit": limit, **{key: file[key].item() for key in file}}
        found.append(row)
        ends = max(limit, seconds + 1)
        if row["status"] != "max_time" or not ends - 1 < row["wall"] < ends + 1:
            lost.append(f"limit {limit:g}")
    return {"tried": 2, "lost": lost, "seconds": seconds, "fits": found}
