"""The table of all methods in how/index.md, from what is said about the completers."""

from __future__ import annotations

from skmc.checks import all_completers
from skmc.completers import COMPLETERS


def method_table() -> str:
    rows = ["| completer | method | use it for |", "|---|---|---|"]
    for cls in all_completers():
        name, method = cls.__name__, cls.__doc__.splitlines()[0]
        rows.append(f"| `{name}` | {method} | {COMPLETERS[name][1] or method} |")
    return "\n".join([*rows, ""])


def add_table(app, docname, content):
    if docname == "how/index":
        content[0] += "\n" + method_table()


def setup(app):
    app.connect("source-read", add_table)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
