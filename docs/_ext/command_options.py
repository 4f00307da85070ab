"""All options of the command, from its parsers, for the page of the command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

from skmc._command.arguments import make_parser

WIDTH = 88


def parsers() -> Iterator[argparse.ArgumentParser]:
    """The parser of the command, and those of its subcommands."""
    whole = make_parser()
    yield whole
    for action in whole._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def with_all_options(text: str) -> str:
    """The page, and a section with the help of each parser."""
    parts = [text.rstrip()]
    for parser in parsers():
        parser.formatter_class = partial(argparse.HelpFormatter, width=WIDTH)
        parts.append(f"### {parser.prog}\n\n```text\n{parser.format_help()}```")
    return "\n\n".join([*parts, ""])


def add_options(app, docname, content):
    if docname == "command":
        content[0] = with_all_options(content[0])


def setup(app):
    app.connect("source-read", add_options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
