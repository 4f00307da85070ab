"""Numbers that may be marks of missing values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skmc.base.reporting import listed, warn_user
from skmc.exceptions import DoubtfulCellsWarning

MOST_SAID = 5  # columns in a warning
LEAST_LEVELS = 4  # of a column in which one of them can be odd
DOUBTFUL_RATIO = 1e6  # ratio of a number to the median of its column, without signs


def warn_of_doubtful_numbers(
    cells: np.ndarray,  # (n_rows, n_cols)
    names: Sequence[str] | None,
) -> None:
    """Warn about numbers such as -999 that are repeated and far from all others."""
    doubts, marks = [], []
    for col in _with_far_ends(cells):
        if (doubt := doubtful_number(cells[:, col].astype(float))) is not None:
            row, text = doubt
            doubts.append(f"{listed(np.array([col]), names)}, row {row}: {text}")
            marks.append(float(cells[row, col]))
    if doubts:
        remedy, n_more = "", len(doubts) - MOST_SAID
        more = f"; and in {n_more} other columns" if n_more > 0 else ""
        if len({*marks}) == 1:
            remedy = f", or pass missing_values={marks[0]:.10g}"
        warn_user(
            "Some cells may mark missing ones; if they do, replace them with NaN"
            f"{remedy}: {'; '.join(doubts[:MOST_SAID])}{more}.",
            DoubtfulCellsWarning,
        )


def _with_far_ends(cells: np.ndarray) -> np.ndarray:
    """Columns in which one number and all others are in different halves of the range.

    Marks are whole numbers; zeros are those of counts. A few passes over the cells,
    without sorting them.
    """
    low, high = np.fmin.reduce(cells), np.fmax.reduce(cells)
    middle = low / 2 + high / 2
    far = np.zeros(len(low), bool)
    for half, end in ((cells < middle, low), (cells > middle, high)):
        n_equal, n_half = (cells == end).sum(0), half.sum(0)
        far |= (n_equal == n_half) & (n_equal > 1) & (end == np.rint(end)) & (end != 0)
    return np.flatnonzero(far & (low < high))


def doubtful_number(
    values: np.ndarray,  # (n_rows,)
) -> tuple[int, str] | None:
    """Find a number that may mark missing cells.

    It is a million times as large as the median; or it is 0, negative, or written with
    nines or eights only, is repeated, and is further from all others than these are
    from each other.
    """
    levels, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    sizes = np.repeat(np.abs(levels), counts)
    usual = np.median(sizes[sizes > 0]) if sizes.any() else 1.0
    suspect = None
    if len(sizes) and sizes.max() > DOUBTFUL_RATIO * usual:
        suspect = levels[np.abs(levels).argmax()]
        doubt = "is more than a million times as large as usual in this column"
    elif len(levels) >= LEAST_LEVELS:
        for end, others in ((0, levels[1:]), (-1, levels[:-1])):
            gap = np.abs(others - levels[end]).min()
            is_mark = levels[end] <= 0 or {*f"{levels[end]:.10g}"} in ({"9"}, {"8"})
            if is_mark and counts[end] > 1 and gap > np.ptp(others):
                suspect = levels[end]
                doubt = (
                    f"occurs {'twice' if counts[end] == 2 else f'{counts[end]} times'} "
                    "and is far from all other values of this column"
                )
                break
    if suspect is None:
        return None
    return int(np.flatnonzero(values == suspect)[0]), f"{suspect:.10g} {doubt}"
