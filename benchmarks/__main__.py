"""``python -m benchmarks``: all records, when and on what they were made, their state.

``python -m benchmarks run [NAME ...] [--stale] [--wait MINUTES]`` makes records again,
one after the other. Those made on the present commit are left out, unless they are
named. Only results that are out of date are measured, so an interrupted run continues;
of a record that has none, all are. Before each command it waits until the machine is
idle, for at most MINUTES.

A record is stale if the code of skmc behind it has changed, docstrings and comments
apart. `benchmarks.shared.registry` lists the commands and what they need.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import load
from benchmarks.shared import made, registry
from benchmarks.shared.sources import ROOT, git

POLL = 5  # seconds


def rows(name: str) -> Iterator[list[str]]:
    """The lines of a record in the list."""
    entries = made.entries(name)
    if not entries:
        yield [name, *["-"] * 6, "not made"]
    for entry in entries:
        shown = [entry.get(k) for k in ("processor", "threads", "load", "seconds")]
        states = [made.state(name, entry), *["busy"] * made.is_busy(entry)]
        states += ["unfinished"] * made.unfinished(name).exists()
        number = f" ({len(entry['results'])})" if "results" in entry else ""
        yield [
            name + number,
            entry["date"] or "-",
            entry["commit"] or "-",
            *("-" if value is None else str(value) for value in shown),
            ", ".join(states),
        ]


def show() -> None:
    """Print the list of all records."""
    head = ["record", "date", "commit", "processor", "threads", "load", "seconds"]
    lines = [
        [*head, "state"],
        *(row for name in registry.RECORDS for row in rows(name)),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for row in lines:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
    print(
        "\nWithout a processor: date and commit are those of the file in git. A number"
        "\nin brackets: so many results were added to the record later.\n"
    )
    for name, record in registry.RECORDS.items():
        if gone := registry.missing(record):
            print(f"{name} cannot be made here: there is no {', no '.join(gone)}")


def wanted(name: str, stale: bool) -> bool:
    """Whether a record that is not named is to be made."""
    entries = made.entries(name)
    states = [made.state(name, entry) for entry in entries]
    if made.unfinished(name).exists():
        return True
    if stale:
        return "stale" in states
    head = git("rev-parse", "--short", "HEAD")
    here = all("digest" in e and e["commit"].rstrip("+") == head for e in entries)
    return not (head and entries and here and set(states) == {"fresh"})


def wait(minutes: float) -> None:
    """Wait until the machine is idle, or until the time is over."""
    until = time.monotonic() + 60 * minutes
    load()
    while time.monotonic() < until:
        time.sleep(POLL)
        if (busy := load() or 0) <= made.BUSY:
            break
        print(f"Other programs take {busy:.2f} of the cores; waiting.", flush=True)


def succeeds(command: str, name: str, minutes: float) -> bool:
    """Run a command of a record once the machine is idle."""
    wait(minutes)
    print(f"+ python -m {command}", flush=True)
    words = [sys.executable, "-m", *map(os.path.expandvars, shlex.split(command))]
    pages = str(made.PAGES.resolve())
    environment = {**os.environ, "SKMC_REPRODUCTION": pages, made.AGAIN: name}
    return subprocess.run(words, cwd=ROOT, env=environment).returncode == 0


def make(name: str, minutes: float) -> bool:
    """Make the results of a record that are out of date, or all if none is.

    Results that no command measures any more are removed at the end. If a command
    fails, the results so far stay, and the next run measures the others.
    """
    began, unfinished = made.minute(time.time()), made.unfinished(name)
    if not (unfinished.exists() or made.outdated(name)):
        made.disown(name)
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    unfinished.touch()
    for command in registry.RECORDS[name].commands:
        if not succeeds(command, name, minutes):
            return False
    if left := made.outdated(name, until=began):
        made.forget(name, left)
    unfinished.unlink()
    return True


def run(arguments: Any) -> int:
    """Make the chosen records; the exit status says whether some failed."""
    if unknown := set(arguments.names) - set(registry.RECORDS):
        sys.exit(f"there are no records {', '.join(sorted(unknown))}")
    ended = dict[str, str]()
    for name in arguments.names or registry.RECORDS:
        if not arguments.names and not wanted(name, arguments.stale):
            continue
        if gone := registry.missing(registry.RECORDS[name]):
            ended[name] = f"skipped, there is no {', no '.join(gone)}"
        else:
            ended[name] = "made" if make(name, arguments.wait) else "failed"
    print("\n".join(f"{name}: {what}" for name, what in ended.items()) or "Nothing")
    return int("failed" in ended.values())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    again = parser.add_subparsers(dest="command").add_parser("run")
    again.add_argument("names", nargs="*", metavar="NAME")
    again.add_argument("--stale", action="store_true", help="only stale records")
    again.add_argument("--wait", type=float, default=30, metavar="MINUTES")
    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        return run(chosen)
    show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
