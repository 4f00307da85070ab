"""When and on what each record was made, in ``records/made/NAME.json``.

A file holds one entry for the results of the same code, processor, threads and kind of
load; date and commit are those of the last process that added one. "results" lists
their names; the one entry that lacks it is of all others.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from filelock import FileLock

import skmc
from benchmarks import START, load
from benchmarks.shared import registry
from benchmarks.shared.sources import changed, dependencies, digest, git

DOCS = Path(__file__).parents[2] / "docs" / "reproduction"
PAGES = Path(os.environ.get("SKMC_REPRODUCTION") or DOCS)
RECORDS = PAGES / "records"
BUSY = 0.3  # of the cores
LOAD = load()  # while this process imported
AGAIN = "SKMC_AGAIN"  # names the record that is being made
SAME = ("digest", "processor", "threads", "version")

_earlier: dict[str, float] = {}  # seconds of earlier commands that made the same entry


def add(
    name: str, found: Mapping[str, Any], text: Callable[[dict[str, Any]], str]
) -> dict[str, Any]:
    """Add results to a record; other processes may do so too."""
    path = RECORDS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        before = read(name)
        records = {**before, **found}
        note(name, found, before)
        write(path, text(records))
    return records


def write(path: Path, text: str) -> None:
    """Write a file that is never seen in part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def note(name: str, found: Collection[str], known: Collection[str] = ()) -> None:
    """Write down that this process made some results, beside those already there."""
    entry, results = this_process(name), set(found)
    before = entries(name) if known else []
    mine = next((e for e in before if continues(e, entry)), None)
    if name not in _earlier:
        again = mine is None or not results.isdisjoint(results_of(mine, before, known))
        _earlier[name] = 0.0 if again else mine["seconds"]
    entry["seconds"] = round(_earlier[name] + entry["seconds"], 1)
    entry["results"] = results
    if mine is not None:
        before.remove(mine)
        entry["load"] = max(entry["load"] or 0, mine["load"] or 0)
        entry["results"] = results | set(mine["results"]) if "results" in mine else None
    for other in before:
        if "results" in other:
            other["results"] = sorted({*other["results"]} - results)
    after = [e for e in before if e.get("results", True)] + [entry]
    listed = {key for e in after for key in e.get("results") or ()}
    if entry["results"] is not None and listed >= {*found, *known}:
        after = [e for e in after if "results" in e]
    if len(after) == 1 or entry["results"] is None:
        del entry["results"]
    else:
        entry["results"] = sorted(entry["results"])
    write_entries(name, after)


def continues(entry: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the same code was measured, on the same machine and as idle."""
    return is_busy(entry) == is_busy(other) and all(
        entry.get(key) == other[key] for key in SAME
    )


def results_of(
    entry: Mapping[str, Any],
    every: list[dict[str, Any]],
    known: Collection[str],
) -> set[str]:
    listed = {key for other in every for key in other.get("results", ())}
    return {*entry.get("results", {*known} - listed)}


def read(name: str) -> dict[str, Any]:
    path = RECORDS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def outdated(name: str, until: str | None = None) -> set[str]:
    """Results of other code, or of a busy machine; of those, the ones before a date."""
    every, known, found = entries(name), read(name), set[str]()
    for entry in every:
        again = state(name, entry) != "fresh" or is_busy(entry)
        if again and (until is None or entry["date"] < until):
            found |= results_of(entry, every, known)
    return found


def ignored(name: str) -> set[str]:
    """Results that are to be measured again, while a record is being made."""
    return outdated(name) if os.environ.get(AGAIN) == name else set()


def known(name: str) -> dict[str, Any]:
    """The results of a record, without those that are to be measured again."""
    old = ignored(name)
    return {key: value for key, value in read(name).items() if key not in old}


def unfinished(name: str) -> Path:
    """A file that exists until all commands of a record have ended."""
    return RECORDS / "made" / f"{name}.unfinished"


def disown(name: str) -> None:
    """Let all results of a record be out of date."""
    write_entries(name, [{**entry, "digest": ""} for entry in entries(name)])


def forget(name: str, keys: set[str]) -> None:
    """Remove results, and the entries that are of nothing else."""
    path, every, known, kept = RECORDS / f"{name}.json", entries(name), read(name), []
    for entry in every:
        left = results_of(entry, every, known) - keys
        kept += [{**entry, "results": sorted(left)}] * bool(left)
    if len(kept) == 1:
        del kept[0]["results"]
    write_entries(name, kept)
    layout = indented if path.read_text().startswith("{\n  ") else line_by_line
    write(path, layout({k: v for k, v in known.items() if k not in keys}))


def indented(records: Mapping[str, Any]) -> str:
    return json.dumps(records, indent=2) + "\n"


def line_by_line(records: Mapping[str, Any]) -> str:
    lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(records.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_entries(name: str, every: list[dict[str, Any]]) -> None:
    write(RECORDS / "made" / f"{name}.json", json.dumps(every, indent=2) + "\n")


def entries(name: str) -> list[dict[str, Any]]:
    """What is known of a record; of an old one, the commit that recorded it."""
    path, record = RECORDS / "made" / f"{name}.json", RECORDS / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text())
    # Without the commits that only moved the file.
    log = ("log", "-1", "--follow", "--diff-filter=AM", "--format=%h %cs", "--")
    commit, _, date = git(*log, str(record)).partition(" ")
    return [{"date": date, "commit": commit}] if record.exists() else []


def minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def this_process(name: str) -> dict[str, Any]:
    torch = sys.modules.get("torch")
    return {
        "date": minute(START),
        **tree(registry.RECORDS[name].module),
        "processor": processor(),
        "threads": torch.get_num_threads() if torch else os.cpu_count(),
        "load": LOAD,
        "seconds": time.time() - START,
    }


@cache
def tree(module: str) -> dict[str, Any]:
    """Commit and digest, unless a source was changed after this process started."""
    changes = git("status", "--porcelain", "--", "skmc", "benchmarks")
    commit = git("rev-parse", "--short", "HEAD")
    edited = any(path.stat().st_mtime > START for path in dependencies(module))
    return {
        "commit": f"{commit}+" if commit and changes else commit,
        "digest": None if edited else digest(module),
        "version": skmc.__version__,
    }


@cache
def processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        info = ""
    found = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    return found[1] if found else platform.processor()


def state(name: str, entry: Mapping[str, Any]) -> str:
    """Whether the code behind some results is still the same."""
    module = registry.RECORDS[name].module
    if entry.get("digest") is not None:
        return "fresh" if entry["digest"] == digest(module) else "stale"
    if "digest" in entry or not git("cat-file", "-t", entry["commit"]):
        return "unknown"
    return "stale" if changed(module, entry["commit"]) else "fresh"


def is_busy(entry: Mapping[str, Any]) -> bool:
    return (entry.get("load") or 0) > BUSY


def line(name: str) -> str:
    """When and on what the results of a record were made, in a sentence for pages."""
    every, results, old, said = entries(name), read(name), ignored(name), []
    shown = [e for e in every if results_of(e, every, results) - old]
    for entry in filter(itemgetter("date"), shown):
        day, known = entry["date"].split()[0], "processor" in entry
        parts = [f"{'Measured' if known else 'Recorded'} on {day}"]
        if known:
            parts += [entry["processor"], f"{entry['threads']} threads"]
        parts += [f"commit `{entry['commit']}`"] * bool(entry["commit"])
        parts += ["on a busy machine"] * is_busy(entry)
        if "results" in entry and len(shown) > 1:
            parts.append(f"{len(entry['results'])} results")
        said.append(", ".join(parts) + ".")
    return " ".join(said)
