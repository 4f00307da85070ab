"""The rooms of the house, and what each may import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import skmc

ROOT = Path(skmc.__file__).parent
PROJECT = ROOT.parent
CORE = {"linalg", "cells", "terms", "models", "solvers", "loop", "new_rows"}
TYPES = {"compatibility", "parameters"}
CONTRACT = {*CORE, "blocks", "patterns", "metrics", *TYPES, "base"}
FITTING = {*CONTRACT, "model_selection", "completers", "tables", "sensing"}
# What each room may import of skmc, besides itself. A room that is not here fails, and
# so does an import that is not here.
MAY_IMPORT = {
    "linalg": set(),
    "inverses": {"linalg"},
    "cells": {"linalg"},
    "terms": {"cells", "linalg"},
    "models": {"cells", "linalg"},
    "solvers": {"terms", "models", "cells", "linalg"},
    "loop": {"solvers", "cells", "linalg"},
    "new_rows": {"cells", "linalg"},
    "patterns": {"cells", "linalg"},
    "metrics": {"cells"},
    "datasets": {"cells"},
    "blocks": {"solvers", "cells", "linalg"},
    "compatibility": set(),
    "parameters": {"linalg", "compatibility"},
    "base": {*CORE, "blocks", "patterns", "metrics", *TYPES},
    "sensing": {*CORE, *TYPES, "base"},
    "model_selection": {*CONTRACT, "tables"},
    "tables": CONTRACT,
    "completers": {*CONTRACT, "model_selection", "tables"},
    "pictures": {"linalg", "cells", "patterns", "base", "completers"},
    "uncertainty": {
        *TYPES,
        "cells",
        "linalg",
        "loop",
        "patterns",
        "base",
        "model_selection",
        "tables",
    },
    "panel": {"cells", "linalg", "base", "completers", "plot"},
    "checks": {*TYPES, "cells", "patterns", "metrics", "base", "completers", "tables"},
    "persistence": {*FITTING, "skmc"},
    "distributed": {"cells", "base", "model_selection", "completers"},
    "plot": {"cells", "loop", "metrics", "base"},
    "_command": {
        *FITTING,
        "pictures",
        "checks",
        "persistence",
        "plot",
        "datasets",
        "skmc",
        "uncertainty",
    },
    "__main__": {"_command"},
    # What stands in skmc/__init__.py.
    "skmc": {"cells", "loop", "base", "completers", "tables"},
}
SKLEARN_FREE = {*CORE, "blocks", "inverses"}
FILES = [*ROOT.rglob("*.py")]


def nodes_of(path: Path, running: bool) -> Iterator[ast.AST]:
    """All nodes of a file, or those that run: blocks for type checkers do not."""
    left = [ast.parse(path.read_text())]
    while left:
        node = left.pop()
        yield node
        for_types = (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        inner = node.orelse if running and for_types else ast.iter_child_nodes(node)
        left.extend(inner)


def imports(path: Path, running: bool = False) -> list[tuple[str, str]]:
    """(module, name) for each name that a file imports; "" for a whole module."""
    found = []
    for node in nodes_of(path, running):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [(node.module or "", alias.name) for alias in node.names]
    return found


def room_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "skmc" if first == "__init__" else first


def target(module: str, name: str) -> tuple[str, bool]:
    """The room that an import reaches, and whether it enters by the front door."""
    parts = module.split(".")
    if len(parts) == 1:  # a room, or a name of skmc/__init__.py
        room = ROOT / name
        found = name and (room.is_dir() or room.with_suffix(".py").exists())
        return (name if found else "skmc"), True
    return parts[1], len(parts) == 2 and not name.startswith("_")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PROJECT)))
def test_rooms_import_only_exported_names_of_allowed_rooms(path):
    room = room_of(path)
    assert room in MAY_IMPORT, f"{room} is in no room of the table"
    for module, name in imports(path):
        top = module.split(".")[0]
        assert top not in ("pandas", "polars"), module
        assert not (room in SKLEARN_FREE and top == "sklearn"), module
        if top == "skmc":
            reached, by_the_door = target(module, name)
            if reached != room:
                assert reached in MAY_IMPORT[room], f"{room} imports {module}.{name}"
                assert by_the_door, f"{module}.{name} is not at the door of {reached}"


def test_no_circles():
    modules = {
        ".".join(path.relative_to(PROJECT).with_suffix("").parts): path
        for path in FILES
    }

    def reached(module: str, name: str) -> str | None:
        whole = f"{module}.{name}"
        candidates = (whole, f"{whole}.__init__", module, f"{module}.__init__")
        return next((found for found in candidates if found in modules), None)

    graph = {
        module: {reached(*named) for named in imports(path, running=True)} - {None}
        for module, path in modules.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_the_design_describes_every_room():
    page = (PROJECT / "docs" / "design.md").read_text()
    described = re.findall(r"^\| `(\w+)` \|", page.split("## Terms")[0], re.MULTILINE)
    assert sorted(described) == sorted(MAY_IMPORT.keys() - {"__main__", "skmc"})


def test_the_list_of_rooms_fits_on_a_screen():
    left_out = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}
    assert len({path.name for path in ROOT.iterdir()} - left_out) <= 27


def test_the_folders_of_the_tests_are_rooms():
    folders = {path.name for path in (PROJECT / "tests").iterdir() if path.is_dir()}
    assert folders - {"__pycache__", "library", "long", "project"} <= MAY_IMPORT.keys()


def test_names_are_imported_lazily():
    code = (
        "import sys, skmc; slow = {'torch', 'sklearn', 'numpy'};"
        "assert skmc.__version__ and set(skmc.__all__) <= set(dir(skmc));"
        "assert 'patterns' in dir(skmc) and not slow & set(sys.modules);"
        "assert skmc.metrics.nmae and not hasattr(skmc, 'nothing');"
        "from skmc import *; assert AIRCompleter is skmc.AIRCompleter;"
        "assert slow <= set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_type_checkers_find_all_exported_names():
    """They do not discover files, so each completer has a line."""
    listed = imports(ROOT / "completers" / "__init__.py")
    seen = [
        *((module, name) for module, name in listed if name.endswith("Completer")),
        *imports(ROOT / "__init__.py"),
    ]
    seen = [named for named in seen if named[0][:5] == "skmc." and named[1] != "*"]
    assert sorted(name for _, name in seen) == skmc.__all__
    for module, name in seen:
        assert getattr(skmc, name) is getattr(sys.modules[module], name)


def test_importing_opens_no_device_and_nothing_optional():
    code = (
        "from skmc import *; import sys, torch; assert not torch.cuda.is_initialized();"
        "bad = {'matplotlib', 'skimage', 'PIL', 'polars'} & set(sys.modules);"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
