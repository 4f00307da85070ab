"""Users' scripts are type-checked against the package as the README installs it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc.docscrape import ClassDoc

from skmc import MixedCompleter, SeriesCompleter
from skmc.checks import all_completers

SCRIPTS = Path(__file__).parents[1] / "typing"
CACHE = Path(__file__).parents[2] / ".mypy_cache" / "user"
CHECKERS = [
    ("mypy", "--strict", "--cache-dir", str(CACHE)),
    ("pyright", "--pythonpath", sys.executable),
]
each = pytest.mark.parametrize("checker", CHECKERS, ids=lambda checker: checker[0])
pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Pyright would ask PyPI whether it is the latest version."""
    monkeypatch.setenv("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1")


def checked(checker, path, folder):
    """Run in an empty folder, so that ``skmc`` is found only where it is installed."""
    command = [sys.executable, "-m", *checker, str(path)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@each
def test_scripts_of_users(checker, tmp_path):
    ran = checked(checker, SCRIPTS, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def uses(cls):
    """Lines that use a completer rightly, and lines with an error each."""
    name, parameters = cls.__name__, inspect.signature(cls).parameters.values()
    by_position = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    first = ", ".join(repr(p.default) for p in by_position)
    known = ", ".join(f"{p.name}=anything" for p in parameters)
    attributes = [n for p in ClassDoc(cls)["Attributes"] for n in p.name.split(", ")]
    right = [f"{name}({first})", f"{name}({known})"]
    right += [f"{name}().fit([[1.0]]).{attribute}" for attribute in attributes]
    wrong = [f"{name}(no_parameter=1)", f"{name}({first}{', ' * bool(first)}True)"]
    wrong += [f"{name}({p.name}=object())" for p in parameters if p.annotation != "Any"]
    return right, wrong


@each
def test_wrong_calls_of_constructors_are_errors(checker, tmp_path):
    """Each wrong call is an error, and no documented parameter or attribute is one."""
    classes = [*all_completers(), MixedCompleter, SeriesCompleter]
    names = ", ".join(cls.__name__ for cls in classes)
    lines = ["from typing import Any", f"from skmc import {names}", "anything: Any = 1"]
    expected = set()
    for cls in classes:
        right, wrong = uses(cls)
        lines += right + wrong
        expected.update(wrong)
    script = tmp_path / "user.py"
    script.write_text("\n".join(lines))
    ran = checked(checker, script, tmp_path)
    found = re.findall(r"user\.py:(\d+):.*error", ran.stdout)
    assert {lines[int(number) - 1] for number in found} == expected
