"""Words that may mean the same."""

from __future__ import annotations


def alike(words: list) -> list[str]:
    """Find two words that differ only in capitals or spaces, if there are any.

    >>> alike(["yes", "no", "Yes ", "no"]), alike(["yes", None, 1.5])
    (['Yes ', 'yes'], [])
    """
    spellings: dict[str, set[str]] = {}
    for word in {word for word in words if isinstance(word, str)}:
        spellings.setdefault("".join(word.casefold().split()), set()).add(word)
    return next((sorted(same)[:2] for same in spellings.values() if len(same) > 1), [])
