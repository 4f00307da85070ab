"""Texts that may mark missing cells."""

from __future__ import annotations

from collections.abc import Iterable

# Words that pandas reads as missing, and that `skmc complete` reads as missing.
MISSING_WORDS = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan"),
        *("1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a"),
        *("nan", "null"),
    }
)


def may_mark_missing(cell: object) -> bool:
    """Whether a text is one of `MISSING_WORDS`, or has no letter and no digit."""
    if not isinstance(cell, str):
        return False
    return cell.strip() in MISSING_WORDS or not any(map(str.isalnum, cell))


def cure_of_marks(cells: Iterable[object]) -> str:
    """Advise what to do if texts among some cells mark missing ones."""
    marks = list(dict.fromkeys(cell for cell in cells if may_mark_missing(cell)))
    if not marks:
        return ""
    words = " and ".join(map(repr, marks))
    return (
        f" If {words} may be read as missing, pass missing_values={marks} to "
        "MixedCompleter, or replace such cells with NaN."
    )
