"""Examples run and end in a picture; those that need files say which."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

pytestmark = pytest.mark.long

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, tmp_path, monkeypatch):
    """In this process, as ``python -W error`` would run it."""
    copy = tmp_path / path.name
    copy.write_text(path.read_text())
    monkeypatch.setattr("sys.argv", [str(copy)])
    needed = re.search(r"\(Needs ``(.*?)`` in SKMC_DATA", path.read_text())
    if needed and not (Path(os.environ.get("SKMC_DATA", "-")) / needed[1]).exists():
        with pytest.raises(FileNotFoundError, match=f"{needed[1]} does not exist"):
            runpy.run_path(str(copy), run_name="__main__")
        return
    with plt.rc_context():
        runpy.run_path(str(copy), run_name="__main__")
    plt.close("all")
    assert copy.with_suffix(".png").stat().st_size > 10_000
