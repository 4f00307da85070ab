"""Examples run and end in a picture; those that need files say which."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, tmp_path):
    copy = tmp_path / path.name
    copy.write_text(path.read_text())
    ran = subprocess.run(
        [sys.executable, "-W", "error", copy],
        capture_output=True,
        text=True,
        timeout=180,
        # Their matrices are small: with two threads some take four times as long.
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    needed = re.search(r"\(Needs ``(.*?)`` in SKMC_DATA", path.read_text())
    if needed and not (Path(os.environ.get("SKMC_DATA", "-")) / needed[1]).exists():
        assert ran.returncode == 1
        assert re.search(f"FileNotFoundError: .*{needed[1]} does not exist", ran.stderr)
        return
    assert ran.returncode == 0, ran.stderr
    assert copy.with_suffix(".png").stat().st_size > 10_000
