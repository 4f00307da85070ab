"""Cells that may not be what they seem."""

from __future__ import annotations


def lonely(values: list) -> int | None:
    """Find the first cell of a repeated value that is far from all others.

    >>> lonely([3, -999, None, 5, 7, -999]), lonely([0, 1, 0, 1]), lonely([1, 2, 3, 9])
    (1, None, None)
    """
    levels = sorted({value for value in values if value is not None})
    if len(levels) < 4:
        return None
    for value, *others in (levels, levels[::-1]):
        spread = abs(others[-1] - others[0])
        if abs(value - others[0]) > spread and values.count(value) > 1:
            return values.index(value)
    return None


def alike(words: list) -> list[str]:
    """Find two words that differ in capitals or spaces alone, if there are any.

    >>> alike(["yes", "no", "Yes ", "no"]), alike(["yes", None, 1.5])
    (['Yes ', 'yes'], [])
    """
    found: dict[str, set[str]] = {}
    for word in {word for word in words if isinstance(word, str)}:
        found.setdefault("".join(word.casefold().split()), set()).add(word)
    return next((sorted(same)[:2] for same in found.values() if len(same) > 1), [])
