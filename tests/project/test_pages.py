"""Each page of results begins with its main result, and its tables are narrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "reproduction"
MOST_COLUMNS = 8


def faults(text: str) -> Iterator[str]:
    """What makes a page hard to read."""
    title, first, *rest = re.split(r"\n\s*\n", text.strip())
    if not re.fullmatch(r"# .+", title):
        yield "no title"
    plain = re.sub(r"`[^`]*`|\[([^]]*)\]\([^)]*\)", r"x\1", first)
    if re.match(r"[^\w`*(\[{]", first) or not plain.endswith("."):
        yield "no paragraph below the title"
    if re.search(r"[.!?]\s+[^a-z]", plain):
        yield "more than one sentence below the title"
    if not any(re.match(r"!\[.+\]\(.+\)", block) for block in rest[:4]):
        yield "no picture among the first six blocks"
    for line in re.findall(r"^\|(?:\s*:?-+:?\s*\|)+$", text, re.MULTILINE):
        if (columns := line.count("|") - 1) > MOST_COLUMNS:
            yield f"a table of {columns} columns"


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda path: path.stem)
def test_page_is_readable(path):
    assert list(faults(path.read_text())) == []


def test_faults_are_found():
    wide = "| a " * 9 + "|\n" + "| - " * 9 + "|"
    text = f"# Errors\n\nThe error is 0.1. That is low.\n\n{wide}\n"
    assert list(faults(text)) == [
        "more than one sentence below the title",
        "no picture among the first six blocks",
        "a table of 9 columns",
    ]
    assert next(faults("# Errors\n\n| a |\n| - |")) == "no paragraph below the title"
