"""When and on what each record was made, in ``records/made/NAME.json``.

A file holds one entry for each time when results were added and that some of them are
still of. "results" lists the names of these; the one entry that lacks it is of all
others.
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
SAME = ("commit", "digest", "processor", "threads", "version")

_earlier: dict[str, float] = {}  # seconds of earlier commands that made the same entry


def add(
    name: str, found: Mapping[str, Any], text: Callable[[dict[str, Any]], str]
) -> dict[str, Any]:
    """Add results to a record; other processes may do so too."""
    path = RECORDS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        known = json.loads(path.read_text()) if path.exists() else {}
        records = {**known, **found}
        note(name, found, known)
        fresh = path.with_suffix(".new")
        fresh.write_text(text(records))
        fresh.replace(path)
    return records


def note(name: str, found: Collection[str], known: Collection[str] = ()) -> None:
    """Write down that this process made some results, beside those already there."""
    entry, results = this_process(name), set(found)
    before = entries(name) if known else []
    mine = next((e for e in before if all(e.get(k) == entry[k] for k in SAME)), None)
    if name not in _earlier:
        again = mine is None or not results.isdisjoint(known)
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
    path = RECORDS / "made" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(after, indent=2) + "\n")


def entries(name: str) -> list[dict[str, Any]]:
    """What is known of a record; of an old one, the commit that recorded it."""
    path, record = RECORDS / "made" / f"{name}.json", RECORDS / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text())
    # Without the commits that only moved the file.
    log = ("log", "-1", "--follow", "--diff-filter=AM", "--format=%h %cs", "--")
    commit, _, date = git(*log, str(record)).partition(" ")
    return [{"date": date, "commit": commit}] if record.exists() else []


def this_process(name: str) -> dict[str, Any]:
    torch = sys.modules.get("torch")
    return {
        "date": datetime.fromtimestamp(START, UTC).strftime("%Y-%m-%d %H:%M"),
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
    if entry.get("digest"):
        return "fresh" if entry["digest"] == digest(module) else "stale"
    if "digest" in entry or not git("cat-file", "-t", entry["commit"]):
        return "unknown"
    return "stale" if changed(module, entry["commit"]) else "fresh"


def is_busy(entry: Mapping[str, Any]) -> bool:
    return (entry.get("load") or 0) > BUSY


def line(name: str) -> str:
    """When and on what the results of a record were made, in a sentence for pages."""
    said = []
    for entry in filter(itemgetter("date"), entries(name)):
        day, known = entry["date"].split()[0], "processor" in entry
        parts = [f"{'Measured' if known else 'Recorded'} on {day}"]
        if known:
            parts += [entry["processor"], f"{entry['threads']} threads"]
        parts += [f"commit `{entry['commit']}`"] * bool(entry["commit"])
        parts += ["on a busy machine"] * is_busy(entry)
        parts += [f"{len(entry.get('results', ()))} results"] * ("results" in entry)
        said.append(", ".join(parts) + ".")
    return " ".join(said)
