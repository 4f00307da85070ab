"""Rows for the completers that the table of how/index.md does not describe itself."""

from __future__ import annotations

from skmc.checks import all_completers
from skmc.completers import advice_of


def with_all_methods(text: str) -> str:
    """The page, which ends with the table, and a row for each other completer."""
    rows = [
        f"| `{cls.__name__}` | {cls.__doc__.splitlines()[0]} "
        f"| {advice_of(cls.__name__)} | |"
        for cls in all_completers()
        if f"\n| `{cls.__name__}" not in text
    ]
    return "\n".join([text.rstrip(), *rows, ""])


def add_rows(app, docname, content):
    if docname == "how/index":
        content[0] = with_all_methods(content[0])


def setup(app):
    app.connect("source-read", add_rows)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
