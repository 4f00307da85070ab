"""Conversion of the text of arguments to values."""

from __future__ import annotations

import argparse
import csv
import io
import math
from collections.abc import Callable


def _number(
    kind: type[int] | type[float], above: float, below: float, wanted: str
) -> Callable[[str], float]:
    def number(text: str) -> float:  # argparse prints "invalid number value"
        value = kind(text)
        if not above < value < below:
            raise argparse.ArgumentTypeError(f"{text} is not {wanted}")
        return value

    return number


natural = _number(int, -1, 2**32, "between 0 and 2**32 - 1")
positive = _number(int, 0, math.inf, "positive")
seconds = _number(float, 0, math.inf, "a positive number")
share = _number(float, 0, 1, "between 0 and 1")


def words(text: str) -> list[str]:
    return [word.strip() for word in next(csv.reader([text], skipinitialspace=True))]


def listed(items: list[str]) -> str:
    """The inverse of `words`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(items)
    return text.getvalue()


def levels(text: str) -> tuple[str, list[str]]:
    name, _, listed = text.partition("=")
    ordered = words(listed)
    if not name or len(ordered) < 2 or len(set(ordered)) < len(ordered):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not COLUMN=LOW,...,HIGH, as in size=small,medium,large"
        )
    return name, ordered


def separator(text: str) -> str:
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n':
        raise argparse.ArgumentTypeError("the separator must be one character")
    return text
