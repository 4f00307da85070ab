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

CACHE = Path(__file__).parents[2] / ".mypy_cache" / "user"
SCRIPT = """\
import numpy as np
from numpy.typing import NDArray
from skmc import AIRCompleter, Entries, SVDCompleter, patterns
from skmc.metrics import nmae

truth = np.outer(np.arange(9.0), np.arange(6.0))
hidden = patterns.random(truth, 0.3, random_state=0)
completer = AIRCompleter(0.1, random_state=0).fit(np.ma.masked_array(truth, hidden))
SVDCompleter("auto", scaling=None).fit(truth).predict_entries([0], [1])
completed: NDArray[np.float64] = completer.transform(truth)
error: float = nmae(completed, truth, hidden)
score: float = completer.score(Entries(truth))
"""


CHECKERS = [
    ("mypy", "--strict", "--cache-dir", str(CACHE)),
    ("pyright", "--pythonpath", sys.executable),
]
each = pytest.mark.parametrize("checker", CHECKERS, ids=lambda checker: checker[0])


def checked(checker, script, tmp_path, monkeypatch):
    """Run in an empty folder, so that ``skmc`` is found only where it is installed."""
    # Otherwise pyright asks PyPI whether it is the latest version.
    monkeypatch.setenv("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1")
    (tmp_path / "user.py").write_text(script)
    return subprocess.run(
        [sys.executable, "-m", *checker, "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )


@pytest.mark.long
@each
def test_a_script_of_a_user(checker, tmp_path, monkeypatch):
    ran = checked(checker, SCRIPT, tmp_path, monkeypatch)
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
def test_wrong_calls_of_constructors_are_errors(checker, tmp_path, monkeypatch):
    """Each wrong call is an error, and no documented parameter or attribute is one."""
    classes = [*all_completers(), MixedCompleter, SeriesCompleter]
    names = ", ".join(cls.__name__ for cls in classes)
    lines = ["from typing import Any", f"from skmc import {names}", "anything: Any = 1"]
    expected = set()
    for cls in classes:
        right, wrong = uses(cls)
        lines += right + wrong
        expected.update(wrong)
    ran = checked(checker, "\n".join(lines), tmp_path, monkeypatch)
    found = re.findall(r"user\.py:(\d+):.*error", ran.stdout)
    assert {lines[int(number) - 1] for number in found} == expected
