"""The index of records: what each depends on, and how it is made anew."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from string import Template
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as index
from benchmarks.shared import made, pages, registry, sources
from benchmarks.shared.results import Results

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "reproduction"
CACHED = [sources.imports, sources.dependencies, made.tree]

FILES = {
    "skmc/__init__.py": "from skmc.room import *\nfrom skmc.other import Other",
    "skmc/room/__init__.py": "from skmc.room.half import Half as Half",
    "skmc/room/half.py": '"""Half."""\n\ndef Half(x):\n    return x / 2\n',
    "skmc/other.py": "from skmc import Half\n\nclass Other:\n    x = 3\n",
    "skmc/child.py": "y = 1\n",
    "benchmarks/halves.py": "from skmc import Half\nCODE = 'from skmc.child import y'",
}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Records and pages are written to a folder of the test."""
    monkeypatch.setattr(made, "RECORDS", tmp_path / "records")
    for module in (made, pages):
        monkeypatch.setattr(module, "PAGES", tmp_path)
    monkeypatch.setattr(made, "_earlier", {})
    (tmp_path / "records").mkdir()
    yield tmp_path
    for cached in CACHED:
        cached.cache_clear()


@pytest.fixture
def digest(monkeypatch, tmp_path):
    """The digest of `benchmarks.halves` in a small package."""

    def of(changes=()):
        for cached in CACHED:
            cached.cache_clear()
        for name, text in {**FILES, **dict(changes)}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return sources.digest("benchmarks.halves")

    monkeypatch.setattr(sources, "ROOT", tmp_path)
    return of


def test_every_record_is_registered():
    stored = {path.stem for path in (DOCS / "records").glob("*.json")}
    listed = {*registry.RECORDS}
    assert listed - stored <= {"gpu"} and stored <= listed
    assert {path.stem for path in (DOCS / "records" / "made").glob("*")} <= {
        *registry.RECORDS
    }
    templates = {path.stem for path in (DOCS / "templates").glob("*.md")}
    assert {p for r in registry.RECORDS.values() for p in r.pages} == templates
    commands = (ROOT / "benchmarks" / "reproduce" / "__main__.py").read_text()
    for record in registry.RECORDS.values():
        assert sources.path_of(record.module)
        for command in record.commands:
            module, *words = command.split()
            assert sources.path_of(module)
            if module == "benchmarks.reproduce":
                assert f'"{words[0]}"' in commands


def test_missing_data_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SKMC_DATA", str(tmp_path))
    monkeypatch.delenv("SKMC_PEERS", raising=False)
    record = registry.Record("", (), ("$SKMC_PEERS", "images/", "numpy", "no_package"))
    missing = ["$SKMC_PEERS", "SKMC_DATA/images/", "no_package"]
    assert registry.missing(record) == missing
    record = record._replace(needs=record.needs[:3])
    (tmp_path / "images").mkdir()
    monkeypatch.setenv("SKMC_PEERS", "somewhere")
    assert registry.missing(record) == []


def test_dependencies_are_those_of_the_names_that_are_imported():
    def files(name):
        found = sources.dependencies(registry.RECORDS[name].module)
        return {path.relative_to(ROOT / "skmc").as_posix() for path in found}

    assert {"completers/knn.py", "base/completer.py"} <= files("speed-knn")
    found = {name for name in files("speed-knn") if name.startswith("completers/")}
    assert found == {"completers/knn.py", "completers/costs.py"}
    assert "solvers/als.py" in files("speed-scale")
    assert "completers/autoencoder.py" in files("speed-autoencoder")  # in a child
    every = {
        path.relative_to(ROOT / "skmc").as_posix()
        for path in (ROOT / "skmc" / "completers").rglob("[!_]*.py")
    }
    assert every <= files("speed-growth") & files("auto")


def test_digest_is_that_of_the_code(digest):
    first = digest()
    half = FILES["skmc/room/half.py"]
    assert digest({"skmc/room/half.py": half.replace("Half.", "A half.") + "# x"}) == (
        first
    )
    assert digest({"skmc/other.py": "class Other:\n    x = 4\n"}) == first
    assert digest({"skmc/room/half.py": half.replace("2", "3")}) != first
    assert digest({"skmc/child.py": "y = 2\n"}) != first


def test_state(monkeypatch):
    entry = {"date": "2020-01-01", "commit": "", "digest": "1"}
    monkeypatch.setattr(made, "digest", lambda _: "1")
    assert made.state("draws", entry) == "fresh"
    monkeypatch.setattr(made, "digest", lambda _: "2")
    assert made.state("draws", entry) == "stale"
    assert made.state("draws", {**entry, "digest": None}) == "unknown"
    assert made.state("draws", {"date": "", "commit": ""}) == "unknown"


def process(monkeypatch, digest):
    """What follows is as if another process, with other sources, ran it."""
    monkeypatch.setattr(
        made, "tree", lambda _: {"commit": "c", "digest": digest, "version": "1"}
    )
    monkeypatch.setattr(made, "_earlier", {})
    monkeypatch.setattr(made, "LOAD", 0.0)


def test_entries_are_kept_while_results_of_them_are_left(monkeypatch, folder):
    path = folder / "records" / "draws.json"
    path.write_text('{"a": 1, "b": 2}')

    def claims():
        return [(e.get("digest"), e.get("results")) for e in made.entries("draws")]

    assert claims() == [(None, None)]
    process(monkeypatch, "1")
    pages.record("draws", {"b": 3})
    assert json.loads(path.read_text()) == {"a": 1, "b": 3}
    assert claims() == [(None, None), ("1", ["b"])]
    pages.record("draws", {"c": 3})
    process(monkeypatch, "2")
    pages.record("draws", {"b": 4})
    assert claims() == [(None, None), ("1", ["c"]), ("2", ["b"])]
    assert ", 1 results." in made.line("draws")
    with monkeypatch.context() as again:  # a page written at the end of a new run
        again.setenv(made.AGAIN, "draws")
        again.setattr(made, "digest", lambda _: "2")
        assert made.line("draws").count("Measured") == 1
        assert "results" not in made.line("draws")
    pages.record("draws", {"c": 4, "a": 4})
    assert claims() == [("2", None)]
    (entry,) = made.entries("draws")
    assert entry["seconds"] >= 0 and entry["processor"] and entry["threads"] >= 1


def test_seconds_of_a_continued_command_are_added(monkeypatch):
    process(monkeypatch, "1")
    monkeypatch.setattr(made, "START", made.time.time() - 100)
    for key in ("a", "b"):
        made.add("draws", {key: 1}, json.dumps)
    process(monkeypatch, "1")
    made.add("draws", {"c": 1}, json.dumps)
    assert made.entries("draws")[0]["seconds"] == pytest.approx(200, abs=5)
    process(monkeypatch, "1")
    made.add("draws", {"a": 1}, json.dumps)  # begins again
    assert made.entries("draws")[0]["seconds"] == pytest.approx(100, abs=5)


def test_pages_say_when_they_were_made(monkeypatch, folder):
    process(monkeypatch, "1")
    pages.record("draws", {"a": 1})
    template = Template((DOCS / "templates" / "draws.md").read_text())
    pages.write_page("draws", dict.fromkeys(template.get_identifiers(), ""))
    last = (folder / "draws.md").read_text().splitlines()[-1]
    assert last.startswith("Measured on 2") and "commit `c`" in last


def test_the_runner_waits_while_the_machine_is_busy(monkeypatch, capsys):
    loads, slept = iter([1.0, 0.9, 0.4, 0.1]), []
    monkeypatch.setattr(index, "load", lambda: next(loads))
    monkeypatch.setattr(index.time, "sleep", slept.append)
    index.wait(30)
    assert slept == [index.POLL] * 3
    assert "take 0.90 of the cores; waiting" in capsys.readouterr().out
    monkeypatch.setattr(index, "load", lambda: 0.9)
    index.wait(0)
    assert len(slept) == 3
    assert made.is_busy({"load": 0.9}) and not made.is_busy({"load": None})


@pytest.mark.parametrize("layout", [made.indented, made.line_by_line])
def test_a_record_that_was_interrupted_is_continued(
    monkeypatch, folder, capsys, layout
):
    process(monkeypatch, "1")
    record = registry.Record("benchmarks.speed.knn", ("one", "two"), (), ("page",))
    monkeypatch.setattr(registry, "RECORDS", {"x": record})
    monkeypatch.setattr(index, "git", lambda *_: "c")
    monkeypatch.setattr(index, "wait", lambda minutes: None)
    monkeypatch.setattr(made, "digest", lambda _: "1")
    path = folder / "records" / "x.json"
    path.write_text(layout({"one": 0, "two": 0, "old": 0}))
    measured, failing = [], {"two"}

    def command(words, env, **_):
        assert words[:2] == [sys.executable, "-m"]
        name, of = words[2], env[made.AGAIN]
        monkeypatch.setenv(made.AGAIN, of)
        results = Results(of)
        if name not in failing and name not in results.records:
            measured.append(name)
            results.take(made.add(of, {name: len(measured)}, layout))
        return subprocess.CompletedProcess(words, int(name in failing))

    monkeypatch.setattr(index, "subprocess", SimpleNamespace(run=command))
    (folder / "page.md").write_text("old")
    assert index.main(["run", "x"]) == 1
    assert (folder / "page.md").read_text() == "old"
    assert "x: failed" in capsys.readouterr().out
    assert made.read("x") == {"one": 1, "two": 0, "old": 0}
    index.main([])
    assert "unfinished" in capsys.readouterr().out
    assert made.known("x") == {"one": 1}
    failing.clear()
    assert index.main(["run", "--stale"]) == 0
    assert "x: made" in capsys.readouterr().out
    assert path.read_text() == layout({"one": 1, "two": 2})
    assert measured == ["one", "two"]
    (entry,) = made.entries("x")
    assert entry["digest"] == "1" and "results" not in entry
    assert index.main(["run"]) == 0 and measured == ["one", "two"]
    assert index.main(["run", "x"]) == 0 and measured == ["one", "two"] * 2


def test_a_record_of_this_commit_is_not_made_again(monkeypatch, capsys):
    record = registry.Record("benchmarks.speed.knn", ("one",))
    monkeypatch.setattr(registry, "RECORDS", {"x": record})
    monkeypatch.setattr(index, "git", lambda *_: "c")
    process(monkeypatch, "1")
    monkeypatch.setattr(made, "digest", lambda _: "1")
    monkeypatch.setattr(index, "make", lambda *_: True)
    assert index.wanted("x", False)
    made.add("x", {"a": 1}, json.dumps)
    assert not index.wanted("x", False) and not index.wanted("x", True)
    assert index.main(["run"]) == 0 and "x: made" not in capsys.readouterr().out
    assert index.main(["run", "x"]) == 0 and "x: made" in capsys.readouterr().out
    monkeypatch.setattr(made, "digest", lambda _: "2")
    assert index.wanted("x", True)
    record = record._replace(needs=("no_such_package",))
    monkeypatch.setattr(registry, "RECORDS", {"x": record})
    assert index.main(["run", "--stale"]) == 0
    assert "x: skipped, there is no no_such_package" in capsys.readouterr().out
    index.main([])
    assert "x cannot be made here" in capsys.readouterr().out


def test_stale_pages_say_so(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    states = importlib.import_module("record_states")
    monkeypatch.setattr(states, "commits", lambda _: [("2026-01-02 03:04", "c", True)])
    text = ["# Title\n\n[records](records/speed-nsr.json)\n"]
    states.say(None, "reproduction/auto", text)
    assert text[0].startswith("# Title\n\n:::{note}\nThe code behind")
    assert "auto (2026-01-02, commit `c`), speed-nsr (2026" in text[0]
    text = ["# Title\n\nThe result\nis 1.\n\n![A chart](x.png)\n\nMore\n"]
    states.say(None, "reproduction/auto", text)
    assert "![A chart](x.png)\n\n:::{note}" in text[0]
    monkeypatch.setattr(states, "commits", lambda _: [("", "", False)])
    text = ["# Title\n\nText\n"]
    states.say(None, "reproduction/auto", text)
    assert text == ["# Title\n\nText\n"]


def test_a_page_leaves_out_what_its_record_lacks(monkeypatch, folder):
    implicit = importlib.import_module("benchmarks.quality.implicit")
    process(monkeypatch, "1")
    text = (DOCS / "records" / "implicit.json").read_text()
    for lacking in ("none", "implicit"):
        kept = {k: v for k, v in json.loads(text).items() if f"/{lacking}/" not in k}
        (folder / "records" / "implicit.json").write_text(json.dumps(kept))
        implicit.page(implicit.Results("implicit"))
        page = (folder / "implicit.md").read_text()
        assert " nan" not in page and ("| implicit |" in page) == (lacking == "none")
        assert "for ours" in page and "for EASE" in page
