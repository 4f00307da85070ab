"""Records of a reproduction, saved one by one, so that a second run continues."""

from __future__ import annotations

import re
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.shared import made

TOO_SLOW = 120  # processor seconds
CHOSEN = (
    "rank_",
    "lambda_nuclear_",
    "lambda_ridge_",
    "lambda_decoder_",
    "alpha_",
    "n_neighbors_",
    "patch_size_",
)


class Results:
    """Maps ``part/case/method/seed`` to numbers, in a JSON file.

    Several processes may write to the file. A record has the scores, "seconds" of
    processor time, the number of convergence warnings, and "status", "n_iter" and the
    chosen parameters if the completer has them. A fit that took too long has the record
    ``{"too_slow": seconds}``.
    """

    def __init__(self, name: str):
        self.name = name
        self.ignored = made.ignored(name)
        self.take(made.read(name))

    def measure(
        self,
        key: str,
        completer: object,
        score: Callable[[object], dict[str, float]],
        limit: int | None = TOO_SLOW,
    ) -> None:
        """Record ``score(completer)``, which fits it, unless it is already recorded."""
        case, seed = key.rsplit("/", 1)
        slow = "too_slow" in self.records.get(f"{case}/0", {}) and seed != "0"
        if key in self.records or slow:
            return
        start = time.process_time()
        with convergence_warnings() as warned:
            try:
                with time_limit(limit):
                    record = score(completer)
            except TimeoutError:
                self.keep(key, {"too_slow": limit})
                return
        record["seconds"] = round(time.process_time() - start, 2)
        for name in ("status_", "n_iter_", *CHOSEN):
            if hasattr(completer, name):
                value = getattr(completer, name)
                record[name.rstrip("_")] = getattr(value, "item", lambda v=value: v)()
        record["warned"] = len(warned)
        self.keep(key, record)

    def keep(self, key: str, record: dict) -> None:
        print(key, record, flush=True)
        self.ignored.discard(key)
        self.take(made.add(self.name, {key: record}, made.line_by_line))

    def take(self, records: dict[str, dict]) -> None:
        self.records = {k: v for k, v in records.items() if k not in self.ignored}

    def values(self, key: str, name: str) -> list[float]:
        """The values of each seed for ``part/case/method``."""
        pattern = re.compile(re.escape(key) + r"/\d+")
        return [
            record[name]
            for k, record in self.records.items()
            if pattern.fullmatch(k) and name in record
        ]

    def mean(self, key: str, name: str) -> float | None:
        values = self.values(key, name)
        return float(np.mean(values)) if values else None

    def too_slow(self, key: str) -> bool:
        return "too_slow" in self.records.get(f"{key}/0", {})


@contextmanager
def convergence_warnings():
    """Collect convergence warnings; drop warnings about empty rows and columns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warned: list[str] = []
        yield warned
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            warned.append(str(warning.message))
        elif "no observed cell" not in str(warning.message):
            warnings.warn(warning.message, warning.category, stacklevel=2)


@contextmanager
def time_limit(seconds: int | None):
    """Raise TimeoutError after a processor time, at the next Python instruction.

    Windows has no timer of this kind: there, no fit is cut short.
    """

    def stop(*_):
        raise TimeoutError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds or 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
