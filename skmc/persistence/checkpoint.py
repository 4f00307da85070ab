"""Long fits that survive a crash."""

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
from skmc.persistence import files
from skmc.persistence.serialize import StorageError, attributes
from skmc.solvers import Solver

KIND = "checkpoint"
# Code is not stored, only what it is called here.
FUNCTIONS = {
    f"{name} {part}": getattr(activation, part)
    for name, activation in ACTIVATIONS.items()
    for part in ("value", "quotient")
}


@contextmanager
def checkpoint(path: str | os.PathLike, *, every: float = 60.0) -> Iterator[None]:
    """Fits in this block can be taken up again after a crash.

    ::

        with checkpoint("fit.checkpoint"):
            completer.fit(X)
            save(completer, "completer.safetensors")

    What a fit has done is written to a folder every so many seconds, whole or not at
    all. If the process dies, run the same block again: it does what it did before, to
    the last bit, and so much faster as it is known already. Left without an error, the
    block removes the folder: all that was to be done is done.

    A block may hold several fits, a search with ``n_jobs=1`` too, as long as they come
    in the same order again. Numbers that are drawn afresh (``random_state=None``) are
    kept along. It is a block rather than a parameter because clones of a completer in a
    search would share the parameter's file, and because what has to be done again is
    the block: a fit that has ended is not safe before its outcome is.

    Parameters
    ----------
    path : str or path-like
        A folder, which is made. Two processes must not share one.
    every : float >= 0, default=60
        Seconds between two writes, which are what a crash costs at most, and the time
        of one step of the fit. The first write is at the first step.

    Yields
    ------
    None

    Raises
    ------
    skmc.persistence.StorageError
        A `ValueError`: a fit finds the checkpoint of other data, other parameters or
        another version of skmc in its place, or a file that was damaged.

    Notes
    -----
    Kept are the solves of completers' fits. What little is computed between them is
    computed again, and so are solves in other threads and processes, in
    `skmc.model_selection.fit_batch` and in the regressors of `skmc.sensing`. "To the
    last bit" holds where an uninterrupted fit is the same from run to run: on one
    machine with one number of threads.

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
    """Keeps solves in files: those that ended by their numbers, and the one that runs.

    Solves that ended since the last write wait in memory for the next.
    """

    def __init__(self, path: Path, every: float):
        path.mkdir(parents=True, exist_ok=True)
        self.path, self.every = path, every
        self.running, self.drawn = path / "running.safetensors", path / "seeds.json"
        self.due = -math.inf
        self.fitted: str | None = None
        self.number = -1  # of the solve
        self.given: dict[str, Any] = {}
        self.ended: dict[int, tuple[str, Solution]] = {}  # since the last write
        self.known: dict[int, tuple[str, Solution]] = {}  # as read last
        self.files = {
            range(*map(int, file.stem.split("-")[1:])): file
            for file in path.glob("ended-*.safetensors")
        }
        self.seeds = json.loads(self.drawn.read_text()) if self.drawn.exists() else []
        self.n_seeds = 0

    def seed(self) -> int:
        """The seed that was drawn here before, or a fresh one."""
        if self.n_seeds == len(self.seeds):
            self.seeds.append(fresh_seed())
            text = json.dumps(self.seeds)
            files.replace_file(self.drawn, lambda part: part.write_text(text))
        self.n_seeds += 1
        return self.seeds[self.n_seeds - 1]

    @contextmanager
    def fit(self, estimator: Any, cells: Any) -> Iterator[None]:
        params = estimator.get_params(deep=False)
        try:
            params = files.fingerprint(params)
        except TypeError:  # others' estimators are among them
            params = joblib.hash(params)
        what = [type(estimator).__name__, params, cells]
        before, self.fitted = self.fitted, files.fingerprint(what)
        try:
            yield
        finally:
            self.fitted = before

    def begin(self, solver: Solver, data: Any) -> Work | Solution | None:
        if self.fitted is None:
            return None
        self.number += 1
        for numbers, file in self.files.items():
            if self.number in numbers and self.number not in self.known:
                self.known = files.read(file, KIND)
        if self.number in self.known:
            return self._checked(*self.known.pop(self.number))
        parts = {k: v for k, v in attributes(data).items() if isinstance(v, Tensor)}
        self.given = {"data": data, "solver": solver, **parts, **FUNCTIONS}
        if self.running.exists():
            number, fit, work = files.read(self.running, KIND, given=self.given)
            if number == self.number:
                return self._checked(fit, work)
        return None

    def _checked(self, fit: str, kept: Any) -> Any:
        if fit != self.fitted:
            raise StorageError(
                f"{self.path} is the checkpoint of other data, other parameters or "
                "another version of skmc; use another path, or delete it to begin anew."
            )
        return kept

    def offer(self, work: Callable[[], Work]) -> None:
        if self.fitted is None or time.monotonic() < self.due:
            return
        if self.ended:
            name = f"ended-{min(self.ended)}-{max(self.ended) + 1}.safetensors"
            files.write(self.path / name, KIND, self.ended)
            self.ended = {}
        kept = self.number, self.fitted, work()
        files.write(self.running, KIND, kept, given=self.given)
        self.due = time.monotonic() + self.every

    def finish(self, solution: Solution) -> None:
        if self.fitted is not None:
            self.ended[self.number] = self.fitted, solution

    def remove(self) -> None:
        for file in [*self.path.glob("ended-*"), self.running, self.drawn]:
            file.unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()
