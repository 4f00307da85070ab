"""A user's script type-checks against the package as the README installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[1] / ".mypy_cache" / "user"
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


@pytest.mark.parametrize(
    "checker",
    [
        ("mypy", "--strict", "--cache-dir", str(CACHE)),
        ("pyright", "--pythonpath", sys.executable),
    ],
    ids=lambda checker: checker[0],
)
def test_a_script_of_a_user(checker, tmp_path, monkeypatch):
    """Run in an empty folder, so that ``skmc`` is found only where it is installed."""
    # Otherwise pyright asks PyPI whether it is the latest version.
    monkeypatch.setenv("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1")
    (tmp_path / "user.py").write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "-m", *checker, "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
