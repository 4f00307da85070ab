"""The role ``measured``: a number of a record in ``docs/reproduction/records``.

Its text is a format and a path: the name of the record and its keys. A ratio of two
numbers has " over " between them; the second can also be a plain number. A star matches
any text in a key, and stands for the mean of all numbers that match::

    {measured}`.1f speed-spark > 1m > Spark > seconds`
    {measured}`.0% speed-spark > 1m > ours > seconds over speed-spark > 1m > Spark >
    seconds`

A tooltip says when and on what the number was measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from docutils import nodes
from record_states import made  # the benchmarks are not installed
from sphinx.util.docutils import SphinxRole

RECORDS = Path(__file__).parents[1] / "reproduction" / "records"


@cache
def load(name: str) -> Any:
    return json.loads((RECORDS / f"{name}.json").read_text())


def found(tree: Any, keys: list[str]) -> Iterator[float]:
    if not keys:
        yield float(tree)
    elif isinstance(tree, list):
        yield from found(tree[int(keys[0])], keys[1:])
    else:
        pattern = re.escape(keys[0]).replace(r"\*", ".*")
        for key, value in tree.items():
            if re.fullmatch(pattern, key):
                yield from found(value, keys[1:])


def number(path: str) -> float:
    """A number of a record, the mean of several, or a plain number."""
    if ">" not in path:
        return float(path)
    name, *keys = path.split(" > ")
    values = list(found(load(name), keys))
    if not values:
        raise ValueError(f"No record holds {path!r}.")
    return mean(values)


def shown(text: str) -> str:
    """The formatted number of a role's text."""
    form, _, rest = " ".join(text.split()).partition(" ")
    above, *below = rest.split(" over ")
    ratio = number(above) / number(below[0]) if below else number(above)
    return f"{ratio:{form}}".replace("%", " %")


class Measured(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        records = dict.fromkeys(re.findall(r"(?:^\S+|over) ([\w-]+) > ", self.text))
        for name in records:
            self.env.note_dependency(str(RECORDS / f"{name}.json"))
        said = " ".join(map(made.line, records))
        return [nodes.abbreviation(self.text, shown(self.text), explanation=said)], []


def setup(app):
    app.add_role("measured", Measured())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
