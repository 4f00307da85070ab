"""Measured numbers in prose come from records, by the role ``measured``.

A number that was not measured here is written as code or mathematics (parameters,
limits), says which cells are missing (30 % hidden), or stands in a sentence that says
"in the paper" or "published", or links to its source.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BY_HAND = ("air", "low-rank-speed", "networks-speed")  # of the pages of results
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "how").glob("*.md")),
    *(ROOT / "docs" / "reproduction" / f"{name}.md" for name in BY_HAND),
]

NUMBER = r"(?<![\w.])(?:\d[\d ]*(?:\.\d+)?|\.\d+)"
WORD = (
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|hundred|half"
    r"|third|quarter|fifth|sixth|seventh|eighth|tenth|twentieth|few|several)s?"
)
LONG = r"(?:(?:milli|micro|nano)?seconds?|minutes?|hours?|(?:kilo|mega|giga)bytes?)"
UNIT = rf"(?:{LONG}|decibels?|min|ms|µs|ns|s|h|[kMGT]i?B|dB)"
FACTOR = r"times\s+(?:as\s+(?!much|many)|(?:its|the)\s+(?:time|memory|error)\b)"
MORE = r"(?:times\s+)?(?:faster|slower|longer|lower|higher|larger|smaller|better|worse)"
MEASURE = r"\b(?:N?RMSE|N?MAE|PSNR|AUPR|AUC|NDCG|R²|errors?|correlations?|coverage)\b"
DECIMAL = r"(?<![\w.])(?<!BY )(?<!Python )(?<!scikit-learn )(?<!PyTorch )\d*\.\d+"
BARE = re.compile(
    rf"(?:{NUMBER}\s*|{WORD}\s+){UNIT}\b"
    rf"|\b(?:in|about|than|takes?|of)\s+a\s+{LONG}(?!\s+(?:array|one)\b)"
    rf"|(?:{NUMBER}|{WORD})\s+(?:{MORE}\b|{FACTOR})|\b(?:twice|half)\s+as\s+(?:fast|large|long|slow)"
    rf"|(?:{NUMBER}|{WORD})\s+(?:of\s+)?(?:the|its)\s+(?:time\b(?!\s+left)|memory|error)"
    rf"|(?:{NUMBER}|{WORD})\s*(?:%|percent\b)(?!\s+(?:\w+\s+){{0,4}}(?:hidden|missing))"
)
SOURCE = re.compile(
    r"\b(?:[Ii]n the papers?|[Pp]ublished|[Pp]aper reports)\b|https?:|arXiv"
)


def prose(text: str) -> str:
    """A text without code, mathematics, tables of the README and targets of links."""
    text = re.sub(r"^ *(`{3,}|:{3,}).*?^ *\1", "", text, flags=re.M | re.S)
    text = re.sub(r"^ *(?:>>>|\.\.\.) .*(?:\n.+)*", "", text, flags=re.M)
    text = re.sub(r"(?:\{measured\})?(`+)[^`].*?\1", "`code`", text, flags=re.S)
    text = re.sub(r"(\$\$?)[^$]+?\1", "`math`", text)
    return re.sub(r"\]\((?!http)[^)]*\)", "]", text)


def bare(text: str, pattern: re.Pattern = BARE) -> list[str]:
    """The sentences of a text that have a measured number in them."""
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d\.) )", prose(text))
    sentences = (
        " ".join(sentence.split())
        for block in blocks
        for sentence in re.split(r'(?<=[.:;!?])\s+(?=["A-Z`*_\[(])', block)
    )
    return [s for s in sentences if pattern.search(s) and not SOURCE.search(s)]


IN_PAGES = re.compile(rf"{BARE.pattern}|{DECIMAL}")
IN_DOCSTRINGS = re.compile(rf"{BARE.pattern}|{MEASURE}.*{DECIMAL}|{DECIMAL}.*{MEASURE}")


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_numbers_of_pages_are_of_records(path):
    text = path.read_text()
    if path.stem == "README":  # test_readme.py compares its tables
        text = re.sub(r"^\|.*", "", text, flags=re.M)
    assert bare(text, IN_PAGES) == []


@pytest.fixture
def role(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return importlib.import_module("measured_number")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_records_hold_the_numbers(path, role):
    for _, text in re.findall(r"\{measured\}(`+)(.+?)\1", path.read_text(), re.DOTALL):
        assert re.fullmatch(r"[\d.e+-]+( %)?", role.shown(text))


def test_role(role, monkeypatch):
    record = {"a / b": {"x": 3, "y": [1, 2]}, "one": {"s": 4}, "two": {"s": 8}}
    monkeypatch.setattr(role, "load", {"r": record}.__getitem__)
    assert role.shown(".1f r > a / b >\n x") == "3.0"
    assert role.shown(".0f r > *o* > s") == "6"
    assert role.shown(".0% r > a / b > y > 0 over r > one > s") == "25 %"
    assert role.shown(".1f r > two > s over 1e1") == "0.8"
    with pytest.raises(ValueError, match="No record holds 'r > three > s'"):
        role.shown(".0f r > three > s")


MEASURED = """
A fit takes 3.1 s. It needs two gigabytes. On u1, the RMSE is .91. It is 4 times as
fast as the other. It takes a tenth of the time. Errors are 3 % lower. Ask for an answer
in a second. That is 12 dB better. That is half as long. It is a third slower.

| AIR | 0.25 |

Draws have a coverage of 0.9.
"""
NOT_MEASURED = """
A fit ends after `max_time=3.0` seconds, or when $t > 3.1$. With 30 % of the cells
hidden, it takes {measured}`.1f x > y` s. In the paper, the error is .04. The error is
.05 ([source](https://example.org)). It needs Python 3.11. `fit` takes twice as many
steps.

```python
print("0.3 s")
```
"""


def test_the_patterns_find_measured_numbers():
    found = bare(MEASURED, IN_PAGES)
    assert len(found) == 12 and found[10] == "| AIR | 0.25 |"
    assert len(bare(MEASURED, IN_DOCSTRINGS)) == 11  # without the table
    assert bare(NOT_MEASURED, IN_PAGES) == []


def test_docstrings_have_no_measured_numbers():
    found = [
        f"{path.relative_to(ROOT)}: {sentence}"
        for path in sorted((ROOT / "skmc").rglob("*.py"))
        for text in docstrings(path)
        for sentence in bare(text, IN_DOCSTRINGS)
    ]
    assert found == [], "\n".join(found)
