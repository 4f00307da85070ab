"""Errors of held-out cells, which are added to completions as draws of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

COMPARED = 6  # donors in each round; with more, the draws of a row are alike
ROUNDS = 8  # after which the remaining cells get independent errors


@dataclass(frozen=True)
class HeldOutErrors:
    """Errors of cells that were held out together, in units of their deviations.

    Parameters
    ----------
    values : ndarray of shape (n_cells,)
        Error of each held-out cell, divided by its standard deviation.
    donors : int ndarray of shape (n_cells,)
        Number of the donor of each cell, in ascending order: a row in one part of the
        cells. All cells of a donor were held out at the same time.
    cols : int ndarray of shape (n_cells,)
        Column of each cell.
    """

    values: np.ndarray
    donors: np.ndarray
    cols: np.ndarray

    @classmethod
    def of(
        cls,
        values: np.ndarray,  # (n_cells,)
        donors: np.ndarray,  # (n_cells,)
        cols: np.ndarray,  # (n_cells,)
    ) -> HeldOutErrors:
        """Sort cells by donor."""
        order = np.argsort(donors, kind="stable")
        return cls(values[order], donors[order], cols[order])

    def draw(
        self,
        missing: np.ndarray,  # (n_rows, n_cols)
        rng: np.random.RandomState,
    ) -> np.ndarray:  # (n_rows, n_cols)
        """Draw the errors of missing cells, together for each row.

        Each row takes the errors of the donor that has most of its missing cells, out
        of six random ones, and those of further donors for the cells that are left.
        After eight rounds, these take random errors of their columns. Columns without
        held-out cells take random errors of other columns.
        """
        errors, left = np.zeros(missing.shape), missing.copy()
        first = np.diff(self.donors, prepend=-1) > 0
        donor, starts = first.cumsum() - 1, np.flatnonzero(first)
        ends = np.append(starts[1:], len(first))
        for _ in range(ROUNDS):
            asked = np.isin(self.cols, np.flatnonzero(left.any(0)))
            useful = np.flatnonzero(np.bincount(donor[asked], minlength=len(starts)))
            if not len(useful):
                break
            rows = np.flatnonzero(left.any(1))
            best, most = rng.choice(useful, len(rows)), np.zeros(len(rows))
            for _ in range(COMPARED):
                donors = rng.choice(useful, len(rows))
                which, at = _within(starts[donors], ends[donors])
                wanted = left[rows[which], self.cols[at]]
                overlap = np.bincount(which, wanted, len(rows))
                best = np.where(overlap > most, donors, best)
                most = np.maximum(overlap, most)
            which, at = _within(starts[best], ends[best])
            i, j = rows[which], self.cols[at]
            errors[i, j] = np.where(left[i, j], self.values[at], errors[i, j])
            left[i, j] = False
        for col in np.flatnonzero(left.any(0)):
            of_column = self.values[self.cols == col]
            values = of_column if len(of_column) else self.values
            errors[left[:, col], col] = rng.choice(values, left[:, col].sum())
        return errors


def _within(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions between starts and ends, after the index of each one's start."""
    counts = ends - starts
    which = np.repeat(np.arange(len(starts)), counts)
    offset = np.repeat(starts - (counts.cumsum() - counts), counts)
    return which, np.arange(len(which)) + offset
