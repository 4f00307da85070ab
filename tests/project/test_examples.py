"""Examples run without warnings and draw a picture."""

from __future__ import annotations

import io
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

pytestmark = pytest.mark.long

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, monkeypatch):
    """In this process, as ``python -W error`` would run it without a display."""
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("Agg")
    plt.close("all")
    with plt.rc_context():
        runpy.run_path(str(path), run_name="__main__")
    assert plt.get_fignums()
    picture = io.BytesIO()
    plt.savefig(picture)
    plt.close("all")
    assert picture.tell() > 10_000
