"""Words that may mean the same, and cells that may be marks of missing ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skmc._command.tables import TableFile


def alike(words: list) -> list[str]:
    """Find two words that differ only in capitals or spaces, if there are any.

    >>> alike(["yes", "no", "Yes ", "no"]), alike(["yes", None, 1.5])
    (['Yes ', 'yes'], [])
    """
    found: dict[str, set[str]] = {}
    for word in {word for word in words if isinstance(word, str)}:
        found.setdefault("".join(word.casefold().split()), set()).add(word)
    return next((sorted(same)[:2] for same in found.values() if len(same) > 1), [])


def warn_of_doubts(file: TableFile) -> None:
    """Warn about cells that may be marks of missing ones."""
    from skmc.tables import doubtful_number, doubtful_word

    for k, c in enumerate(file.columns):
        found = None
        if c.numeric:
            found = doubtful_number(np.array(c.values, float))
        elif c.kind == "words":
            found = doubtful_word(c.values)
        if found is not None:
            row, doubt = found
            file.warn(
                f"{file.place(k, row)}: {doubt}; if it marks missing cells, "
                f"{file.mark_as_missing}"
            )
