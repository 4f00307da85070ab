"""Cells that may be marks of missing values."""

from __future__ import annotations

import numpy as np

from skmc.tables.column import Floats

DOUBTFUL_RATIO = 1e6  # ratio of a number to the median of its column, without signs


# Words that pandas reads as missing, and that `skmc complete` reads as missing.
MISSING_WORDS = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan"),
        *("1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a"),
        *("nan", "null"),
    }
)


def doubtful_number(values: Floats) -> tuple[int, str] | None:
    """Find a number that may mark missing cells.

    It is a million times as large as the median, or it is repeated and further from all
    others than these are from each other.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Column of numbers, NaN where missing.

    Returns
    -------
    tuple of int and str, or None
        The first row that holds it, and a description of the doubt.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc.tables import doubtful_number
    >>> row, doubt = doubtful_number(np.array([3, -999, np.nan, 5, 7, 4, -999]))
    >>> row, doubt[:19]
    (1, '-999 occurs 2 times')
    >>> doubtful_number(np.array([1.0, 2.0, 3.0, 9.0])) is None
    True
    """
    levels, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    sizes = np.repeat(np.abs(levels), counts)
    usual = np.median(sizes[sizes > 0]) if sizes.any() else 1.0
    found = None
    if len(sizes) and sizes.max() > DOUBTFUL_RATIO * usual:
        found = levels[np.abs(levels).argmax()]
        doubt = "is more than a million times as large as usual in this column"
    elif len(levels) >= 4:
        for end, others in ((0, levels[1:]), (-1, levels[:-1])):
            gap = np.abs(others - levels[end]).min()
            if counts[end] > 1 and gap > np.ptp(others):
                found = levels[end]
                doubt = (
                    f"occurs {counts[end]} times and is further from the other values "
                    "of this column than these are from each other"
                )
                break
    if found is None:
        return None
    return int(np.flatnonzero(values == found)[0]), f"{found:.10g} {doubt}"


def doubtful_word(words: list) -> tuple[int, str] | None:
    """Find a text that may mark missing cells.

    It is one of `MISSING_WORDS`, or has no letter and no digit.

    Parameters
    ----------
    words : list
        Column of words, None where missing.

    Returns
    -------
    tuple of int and str, or None
        The first row that holds one, and a description of the doubt.

    Examples
    --------
    >>> from skmc.tables import doubtful_word
    >>> doubtful_word(["low", None, "?"])
    (2, "'?' counts as a word")
    >>> doubtful_word(["low", None, "high"]) is None
    True
    """
    for row, word in enumerate(words):
        if isinstance(word, str) and (
            word.strip() in MISSING_WORDS or not any(map(str.isalnum, word))
        ):
            return row, f"{word!r} counts as a word"
    return None
