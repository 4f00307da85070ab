"""Says on a page of results that the code behind them has changed since.

The records of a page are those that the registry lists and those that it links to. What
is not known, as in sources without git, is not said.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are not installed

from benchmarks.shared import made, registry


def commits(name: str) -> list[tuple[str, str, bool]]:
    """Date and commit of the results of a record, and whether they are stale."""
    return [
        (entry["date"], entry["commit"], made.state(name, entry) == "stale")
        for entry in made.entries(name)
    ]


def stale(docname: str, text: str) -> list[str]:
    """The stale records of a page, with dates and commits."""
    linked = re.findall(r"\(records/([\w-]+)\.json\)", text)
    names = {registry.of_page(docname.removeprefix("reproduction/")), *linked}
    return [
        f"{name} ({date.split()[0]}, commit `{commit}`)"
        for name in sorted(names & registry.RECORDS.keys())
        for date, commit, is_stale in commits(name)
        if is_stale
    ]


def say(app, docname, content) -> None:
    if not docname.startswith("reproduction/"):
        return
    if found := stale(docname, content[0]):
        said = f"The code behind these results has changed since: {', '.join(found)}."
        note = f"\n\n:::{{note}}\n{said}\n:::"
        # Below the title, the main result and its picture.
        top = re.match(r"# .*(\n\n(?!#).+(\n.+)*\n\n!\[.*)?", content[0])
        end = top.end() if top else 0
        content[0] = content[0][:end] + note + content[0][end:]


def setup(app):
    app.connect("source-read", say)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
