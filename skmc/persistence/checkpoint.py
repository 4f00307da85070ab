"""Checkpoints of long fits."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
from torch import Tensor

from skmc.linalg import ACTIVATIONS, ENTROPY, fresh_seed
from skmc.loop import STORE, Solution, Work
from skmc.persistence import archive
from skmc.serialization import StorageError, attributes
from skmc.solvers import Solver

KIND = "checkpoint"
# Functions are not stored, only their names here.
FUNCTIONS = {
    f"{name} {part}": getattr(activation, part)
    for name, activation in ACTIVATIONS.items()
    for part in ("value", "quotient")
}


@contextmanager
def checkpoint(path: str | os.PathLike, *, every: float = 60.0) -> Iterator[None]:
    """Make the fits in this block resumable after a crash.

    ::

        with checkpoint("fit.checkpoint"):
            completer.fit(X)
            save(completer, "completer.skmc")

    The progress of a fit is written to a folder at regular intervals, atomically. If
    the process dies, run the same block again. It gives the result of an uninterrupted
    run, to the last bit, and does not repeat the steps that were written. If the block
    ends without an error, it removes the folder.

    A block may contain several fits, including a search with ``n_jobs=1``, if they run
    in the same order every time. Fresh seeds (``random_state=None``) are stored too.
    `checkpoint` is a block and not a parameter, because clones of a completer in a
    search would share the parameter's file, and because a finished fit is lost in a
    crash unless its result is stored: the whole block must be repeated after a crash.

    Parameters
    ----------
    path : str or path-like
        Folder, which is created. Two processes must not share it.
    every : float >= 0, default=60
        Seconds between two writes. A crash loses at most the work of this time and of
        one step. The first write precedes the first step.

    Yields
    ------
    None

    Raises
    ------
    skmc.persistence.StorageError
        A `ValueError`: a checkpoint comes from other data, other parameters or another
        version of skmc, or a file is damaged.
    TypeError
        The state of a solver holds an object that cannot be stored.

    See Also
    --------
    save : Stores a fitted completer.

    Notes
    -----
    The solves of completers' fits are stored, with solvers of skmc and of your own: a
    `State` may hold whatever `save` stores, and optimizers of `torch.optim`. The short
    computations between solves are repeated. So are solves in other threads and
    processes, in `skmc.model_selection.fit_batch` and in the regressors of
    `skmc.sensing`. Results are equal to the last bit if uninterrupted fits are: on
    one machine with one number of threads.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from skmc import SVDCompleter
    >>> from skmc.persistence import checkpoint
    >>> X = np.outer(np.arange(1.0, 7), np.arange(1.0, 6))
    >>> X[2, 3] = np.nan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with checkpoint(Path(folder) / "fit"):
    ...         completer = SVDCompleter(rank=1, scaling=None).fit(X)
    >>> completer.reconstruction_[2, 3].round(2)
    np.float64(12.0)
    """
    if not every >= 0:
        raise ValueError(f"every must be a number of seconds >= 0, got {every!r}.")
    folder = _Folder(Path(path), every)
    tokens = STORE.set(folder), ENTROPY.set(folder.seed)
    try:
        yield
    finally:
        STORE.reset(tokens[0])
        ENTROPY.reset(tokens[1])
    folder.remove()


class _Folder:
    """Storage of solves in files: finished ones by number, and the running one.

    Solves that have finished since the last write are kept in memory until the next.
    """

    def __init__(self, path: Path, every: float):
        path.mkdir(parents=True, exist_ok=True)
        self.path, self.every = path, every
        self.running = path / "running.skmc"
        self.seeds_file = path / "seeds.json"
        self.next_write = -math.inf
        self.fit_id: str | None = None  # fingerprint of the current fit
        self.number = -1  # number of the current solve
        self.supplied: dict[str, Any] = {}
        self.unwritten: dict[int, tuple[str, Solution]] = {}
        self.loaded: dict[int, tuple[str, Solution]] = {}  # from the file read last
        self.files = {
            range(*map(int, file.stem.split("-")[1:])): file
            for file in path.glob("finished-*.skmc")
        }
        file = self.seeds_file
        self.seeds = json.loads(file.read_text()) if file.exists() else []
        self.n_seeds = 0

    def seed(self) -> int:
        """The next seed of an earlier run, or a fresh one."""
        if self.n_seeds == len(self.seeds):
            self.seeds.append(fresh_seed())
            text = json.dumps(self.seeds)
            archive.replace_file(self.seeds_file, lambda part: part.write_text(text))
        self.n_seeds += 1
        return self.seeds[self.n_seeds - 1]

    @contextmanager
    def fit(self, estimator: Any, cells: object) -> Iterator[None]:
        params = estimator.get_params(deep=False)
        try:
            params = archive.fingerprint(params)
        except TypeError:  # a parameter cannot be stored, such as another estimator
            params = joblib.hash(params)
        before = self.fit_id
        self.fit_id = archive.fingerprint([type(estimator).__name__, params, cells])
        try:
            yield
        finally:
            self.fit_id = before

    def begin(self, solver: Solver, data: object) -> Work | Solution | None:
        if self.fit_id is None:
            return None
        self.number += 1
        for numbers, file in self.files.items():
            if self.number in numbers and self.number not in self.loaded:
                self.loaded = archive.read(file, KIND)
        if self.number in self.loaded:
            return self._verified(*self.loaded.pop(self.number))
        tensors = {k: v for k, v in attributes(data).items() if isinstance(v, Tensor)}
        self.supplied = {"data": data, "solver": solver, **tensors, **FUNCTIONS}
        if self.running.exists():
            number, fit_id, work = archive.read(
                self.running, KIND, supplied=self.supplied
            )
            if number == self.number:
                return self._verified(fit_id, work)
        return None

    def _verified(self, fit_id: str, stored: object) -> Any:
        if fit_id != self.fit_id:
            raise StorageError(
                f"{self.path} is the checkpoint of other data, other parameters or "
                "another version of skmc; use another path, or delete the folder."
            )
        return stored

    def offer(self, work: Callable[[], Work]) -> None:
        if self.fit_id is None or time.monotonic() < self.next_write:
            return
        if self.unwritten:
            first, last = min(self.unwritten), max(self.unwritten)
            name = f"finished-{first}-{last + 1}.skmc"
            archive.write(self.path / name, KIND, self.unwritten)
            self.unwritten = {}
        stored = self.number, self.fit_id, work()
        archive.write(self.running, KIND, stored, supplied=self.supplied)
        self.next_write = time.monotonic() + self.every

    def finish(self, solution: Solution) -> None:
        if self.fit_id is not None:
            self.unwritten[self.number] = self.fit_id, solution

    def remove(self) -> None:
        """Remove the checkpoint's files, and the folder if it is empty then."""
        for file in [*self.path.glob("finished-*"), self.running, self.seeds_file]:
            file.unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()
