"""What all benchmarks share: results as rows of a CSV file, and the command line."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning

TOO_SLOW = 120  # processor seconds
COLUMNS = "subject", "data", "mask", "method", "seed", "measure", "value", "seconds"


class Case(NamedTuple):
    """What is measured at once. One case has a row for each of its measures."""

    subject: str
    data: str
    mask: str
    method: str
    seed: int = 0


class Results:
    """Rows of ``OUT/NAME.csv``. A second start measures what is not there yet.

    Parameters
    ----------
    out : Path
        Folder of the file.
    name : str
        Name of the file.
    words : sequence of str
        Only cases that have all of these words in their names are measured.
    """

    def __init__(self, out: Path, name: str, words: tuple[str, ...] | list[str] = ()):
        out.mkdir(parents=True, exist_ok=True)
        self.path, self.words = out / f"{name}.csv", words
        self.known: dict[Case, dict[str, str]] = {}
        self.skipped: set[str] = set()
        if not self.path.exists():
            return
        with self.path.open(newline="") as file:
            for row in csv.DictReader(file):
                *names, seed = (row[name] for name in Case._fields)
                case = Case._make([*names, int(seed)])
                self.known.setdefault(case, {})[row["measure"]] = row["value"]

    def wants(self, case: tuple) -> bool:
        """Whether a case is chosen, and not measured yet.

        If the fit of the first seed took too long, the others would, too.
        """
        case = Case(*case)
        first = self.known.get(case._replace(seed=0), {}).get("error", "")
        if case in self.known or first.startswith("TimeoutError"):
            return False
        text = " ".join(map(str, case))
        return all(word in text for word in self.words)

    def measure(
        self,
        case: tuple,
        score: Callable[..., Mapping[str, Any]],
        *args: Any,
        limit: int | None = TOO_SLOW,
    ) -> None:
        """Add the measures that ``score(*args)`` returns, unless they are there.

        An error is a row, too. Data or programs that are not here are named once.
        """
        if not self.wants(case):
            return
        start = spent()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with time_limit(limit):
                    found = dict(score(*args))
            except (ImportError, FileNotFoundError) as error:
                self.skip(error)
                return
            except TimeoutError:
                found = {"error": f"TimeoutError: more than {limit} seconds"}
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"[:200]}
        seconds = spent() - start
        if n_warned := sum(issubclass(w.category, ConvergenceWarning) for w in caught):
            found["convergence warnings"] = n_warned
        self.add(case, found, seconds)

    def add(
        self, case: tuple, found: Mapping[str, Any], seconds: float | None = None
    ) -> None:
        """Add the measures of a case, and print them in one line."""
        case = Case(*case)
        took = "" if seconds is None else f"{seconds:.2f}"
        values = {name: shown(value) for name, value in flat(found)}
        self._append([(*case, name, value, took) for name, value in values.items()])
        self.known[case] = values
        line = ", ".join(f"{name} {value}" for name, value in values.items())
        print("/".join(map(str, case)), line, took and f"({took} s)", flush=True)

    def published(
        self, subject: str, data: str, mask: str, measure: str, printed: Mapping
    ) -> None:
        """Add the figures of a paper, by method, beside ours."""
        for method, value in printed.items():
            case = Case(subject, data, mask, f"{method}, published")
            if value is not None and self.wants(case):
                self.add(case, {measure: value})

    def skip(self, error: Exception) -> None:
        if (text := str(error)) not in self.skipped:
            self.skipped.add(text)
            print(f"Skipped: {text}", flush=True)

    def _append(self, rows: list[tuple]) -> None:
        head = [] if self.path.exists() else [COLUMNS]
        with self.path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([*head, *rows])


def flat(found: Mapping, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values of nested mappings."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}, ")
        else:
            yield f"{prefix}{name}", value


def spent() -> float:
    """Processor seconds of this process, and of its children once they have ended."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def shown(value: Any) -> str:
    if isinstance(value, Real) and not isinstance(value, Integral):
        return f"{float(value):.6g}"
    return " ".join(str(value).split())


def run(doc: str | None, *parts: Callable[[Results], None]) -> None:
    """The command line of a benchmark: each of its parts adds to the results."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="measure only cases with all WORDs"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).with_name("out"),
        metavar="DIR",
        help="folder of the CSV file (default: %(default)s)",
    )
    options = parser.parse_args()
    results = Results(options.out, Path(sys.argv[0]).stem, options.words)
    (options.out / "environment.txt").write_text(environment())
    for part in parts:
        try:
            part(results)
        except (ImportError, FileNotFoundError) as error:
            results.skip(error)


def environment() -> str:
    """Date, processor and versions, for the folder of the results."""
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        info = ""
    found = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    packages = "skmc", "numpy", "scipy", "scikit-learn", "torch"
    lines = [
        date.today().isoformat(),
        found[1] if found else platform.processor(),
        f"{os.cpu_count()} cores, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}",
        f"Python {platform.python_version()}",
        *(f"{name} {version(name)}" for name in packages),
    ]
    return "\n".join(lines) + "\n"


def folder_of(variable: str, what: str) -> Path:
    """The folder, or the program, that an environment variable names."""
    if not os.environ.get(variable):
        raise FileNotFoundError(f"{variable} does not name {what}")
    return Path(os.environ[variable]).expanduser()


@contextmanager
def time_limit(seconds: int | None) -> Iterator[None]:
    """Raise TimeoutError after a processor time, at the next Python instruction.

    Windows has no timer of this kind: there, no fit is cut short.
    """

    def stop(*_: object) -> None:
        raise TimeoutError

    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
