"""What completers survive: ``python -m benchmarks.faults [PART ...]``.

The parts are kills, disk, suspension, threads, memory, inputs and page; without one,
all of them in this order. Each is recorded once; the inputs in batches, so that a
second run continues. ``--input NAME/NUMBER`` repeats one input, and raises its error.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.faults import full, kills, running
from benchmarks.faults.inputs import attempt
from benchmarks.shared.pages import dots, folded, table, write_page
from benchmarks.shared.results import Results
from skmc.checks import all_completers

NAME = "faults"
INPUTS = 4000  # for each completer
BATCH = 100
KILLS = 100  # of each kind
DISKS = 40  # of each kind
SEED = 0
ENDS = ("tried", "completed", "refused")
TITLES = {
    "kills/fit": "`kill -9` of a fit with checkpoints",
    "kills/save": "`kill -9` of `save`",
    "kills/sort": "`kill -9` of the sorting of ratings",
    "disk/save": "full disk: `save`",
    "disk/checkpoint": "full disk: checkpoints",
    "disk/sort": "full disk: sorting of ratings",
    "suspension": "suspended process with `max_time`",
    "threads": "fits in four threads at once",
    "memory": "growth of memory",
}


def in_folder(work: Callable[..., Any], *args: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return work(*args, Path(folder).resolve())


def measure_kills(results: Results, _: argparse.Namespace) -> None:
    parts: dict[str, Callable[[], dict]] = {
        "kills/fit": lambda: in_folder(
            kills.kill_fits, kills.COMPLETERS, KILLS // len(kills.COMPLETERS), SEED
        ),
        "kills/save": lambda: in_folder(kills.kill_saves, KILLS, SEED),
        "kills/sort": lambda: in_folder(kills.kill_sorts, KILLS, SEED),
    }
    for key, part in parts.items():
        if key not in results.records:
            results.keep(key, part())


def measure_disk(results: Results, _: argparse.Namespace) -> None:
    if "disk/sort" not in results.records:
        for key, found in in_folder(full.fill_disks, DISKS, SEED).items():
            results.keep(f"disk/{key}", found)


def measure_suspension(results: Results, options: argparse.Namespace) -> None:
    if "suspension" not in results.records:
        results.keep("suspension", in_folder(kills.suspend, options.seconds))


def measure_threads(results: Results, _: argparse.Namespace) -> None:
    if "threads" not in results.records:
        results.keep("threads", running.fit_at_once(rounds=10))


def measure_memory(results: Results, options: argparse.Namespace) -> None:
    if "memory" not in results.records:
        results.keep("memory", running.fit_often(options.fits))


def measure_inputs(results: Results, options: argparse.Namespace) -> None:
    """Give each completer its inputs, a batch at a time."""
    for first in range(0, options.inputs, BATCH):
        for cls in all_completers():
            key = f"inputs/{cls.__name__}/{first // BATCH}"
            if key in results.records:
                continue
            ends, lost = Counter[str](), {}
            for number in range(first, first + BATCH):
                try:
                    ends[attempt(cls, number)] += 1
                except Exception as error:
                    text = " ".join(f"{type(error).__name__}: {error}".split())
                    lost[number] = text[:300]
            results.keep(key, {"tried": BATCH, **ends, "lost": lost})


def quantity(number: float) -> str:
    return f"{number:,}".replace(",", " ")


def page(results: Results, _: argparse.Namespace) -> None:
    records = results.records
    rows, each = [], []
    for cls in all_completers():
        start = f"inputs/{cls.__name__}/"
        batches = [found for key, found in records.items() if key.startswith(start)]
        sums = [sum(b.get(k, 0) for b in batches) for k in ENDS]
        each.append([cls.__name__, *sums, sum(len(b["lost"]) for b in batches)])
    tried, completed, refused, wrong = map(sum, list(zip(*each, strict=True))[1:])
    rows = [("odd and wrong inputs", tried, wrong)]
    rows += [
        (title, records[key]["tried"], len(records[key]["lost"]))
        for key, title in TITLES.items()
    ]
    suspension, grown = records["suspension"], records["memory"]["grown"]
    write_page(
        NAME,
        {
            "n_tried": quantity(sum(row[1] for row in rows)),
            "n_lost": quantity(sum(row[2] for row in rows)),
            "chart": dots(
                NAME,
                "Faults tried",
                {t: {"survived": n - k, "lost": k or None} for t, n, k in rows},
                log=True,
            ),
            "table": table(
                ["fault", "tried", "survived", "lost"],
                [[t, quantity(n), quantity(n - k), quantity(k)] for t, n, k in rows],
            ),
            "n_inputs": quantity(tried),
            "each_tried": quantity(tried // len(each)),
            "each_fitted": quantity(records["memory"]["tried"] // len(each)),
            "n_completed": quantity(completed),
            "n_refused": quantity(refused),
            "each": folded(
                "The inputs of each completer",
                table(
                    ["completer", "inputs", *ENDS[1:], "lost"],
                    [[f"`{row[0]}`", *map(quantity, row[1:])] for row in each],
                ),
            ),
            "partial": records["kills/save"]["partial"],
            "seconds": f"{suspension['seconds']:g}",
            "suspended": table(
                ["`max_time`", "duration", "processor time", "`status_`"],
                [
                    [
                        *(
                            f"{fit[key]:.1f} s"
                            for key in ("limit", "wall", "processor")
                        ),
                        f"`{fit['status']}`",
                    ]
                    for fit in suspension["fits"]
                ],
            ),
            "grown": f"{max(grown.values())} bytes",
        },
    )


PARTS: dict[str, Callable[[Results, argparse.Namespace], None]] = {
    "kills": measure_kills,
    "disk": measure_disk,
    "suspension": measure_suspension,
    "threads": measure_threads,
    "memory": measure_memory,
    "inputs": measure_inputs,
    "page": page,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--input", metavar="NAME/NUMBER")
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--fits", type=int, default=1000, help="for each completer")
    parser.add_argument("--seconds", type=float, default=60.0, help="of suspension")
    options = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    if options.input:
        name, number = options.input.split("/")
        (cls,) = (cls for cls in all_completers() if cls.__name__ == name)
        print(attempt(cls, int(number)))
        return
    warnings.simplefilter("ignore")
    results = Results(NAME)
    for part in options.parts or PARTS:
        PARTS[part](results, options)


if __name__ == "__main__":
    main()
