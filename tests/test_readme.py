"""What the README shows is what its code prints."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_ten_lines(capsys):
    code, shown = re.search(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(), re.DOTALL
    ).groups()
    exec(code, {})
    printed = capsys.readouterr().out
    numbers = [re.findall(r"[\d.]+", text) for text in (printed, shown)]
    for ours, theirs in zip(*numbers, strict=True):
        assert abs(float(ours) / float(theirs) - 1) < 0.02
