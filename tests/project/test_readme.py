"""The README shows the output of its code, and recorded results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import skmc
from skmc.compatibility import DOCUMENTATION

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def blocks():
    """The variables after all Python blocks of the README have run."""
    variables: dict = {}
    for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(code, variables)
    return variables


def test_the_code_gives_the_stated_results(blocks):
    right = [int(blocks["right"].sum()), len(blocks["right"])]
    for numbers in re.findall(r"(\d+) of (\d+) hidden cultivars", README):
        assert right[1] == int(numbers[1]) and abs(right[0] - int(numbers[0])) <= 1
    assert blocks["restored"].shape == blocks["photo"].shape


def test_the_table_is_the_completed_one(blocks):
    """Observed cells and the truth literally, completed numbers to a fiftieth."""
    completed, table, hidden = (blocks[k] for k in ("completed", "table", "hidden"))
    truth = [[str(v).removesuffix(".0") for v in row] for row in table.to_numpy()]
    top = "| cultivar |\n|---|---|---|---|---|\n"
    shown = README.split(top)[1].split("\n\n")[0].splitlines()
    assert len(shown) == 6
    for line in shown:
        cells = re.findall(r"\| (?:\*\*(\S+)\*\* \((\S+)\)|(\S+))(?= \|)", line)
        k = truth.index([old or kept for _, old, kept in cells])
        assert [bool(new) for new, *_ in cells] == hidden[k].tolist()
        for (new, *_), value in zip(cells, completed.iloc[k], strict=True):
            if isinstance(value, str):
                assert not new or new == value
            elif new:
                assert float(new) == pytest.approx(value, rel=0.02)


def test_the_address_is_the_same_everywhere():
    (url,) = re.findall(r"^url = (.*)$", (ROOT / "setup.cfg").read_text(), re.M)
    assert f"{url}/docs" == DOCUMENTATION
    assert f'repository-code: "{url}"' in (ROOT / "CITATION.cff").read_text()
    version = f"version: {skmc.__version__}\n"
    assert version in (ROOT / "CITATION.cff").read_text()
    title = re.search("^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert title.startswith((f"[{skmc.__version__}] - 2", f"[{skmc.__version__}] - U"))
