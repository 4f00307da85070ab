"""Where pages and records go, and how tables are written."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import torch

DOCS = Path(__file__).parents[2] / "docs" / "reproduction"
TEMPLATES = DOCS / "templates"
PAGES = Path(os.environ.get("SKMC_REPRODUCTION") or DOCS)
RECORDS = PAGES / "records"


def hardware() -> str:
    """The processor and the number of threads."""
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        info = ""
    found = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    name = found[1] if found else platform.processor()
    return f"{name}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_page(name: str, fields: Mapping[str, object]) -> None:
    """Write ``name.md``: the template of this name with its fields filled in.

    The hardware that records were measured on is text of the template.
    """
    template = Template((TEMPLATES / f"{name}.md").read_text())
    path = PAGES / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(template.substitute(fields))
    print(f"Wrote {path}", flush=True)


def save_figure(figure: Any, name: str) -> None:
    """Write a Matplotlib figure to ``name.png`` and close it."""
    import matplotlib.pyplot as plt

    path = PAGES / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=64)
    plt.close(figure)
    print(f"Wrote {path}", flush=True)


def record(name: str, found: Mapping[str, Any]) -> None:
    """Print results and add them to ``name.json``.

    The file is read again each time, because another process may have written to it.
    """
    print(json.dumps(found, indent=2), flush=True)
    path = RECORDS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, **found}, indent=2) + "\n")
