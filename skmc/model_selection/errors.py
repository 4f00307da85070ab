"""Errors of held-out cells, which are added to completions as draws of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DONORS = 64  # that all rows share in a round
COMPARED = 0.1  # share of them that a row compares: with more, its draws are alike


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
        cls, values: np.ndarray, donors: np.ndarray, cols: np.ndarray
    ) -> HeldOutErrors:
        """Sort cells by donor.

        Parameters
        ----------
        values, donors, cols : ndarray of shape (n_cells,)
            Fields, in any order.

        Returns
        -------
        HeldOutErrors
        """
        order = np.argsort(donors, kind="stable")
        return cls(values[order], donors[order], cols[order])

    def draw(self, missing: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Draw the errors of missing cells, together for each row.

        Each row takes the errors of the donor that has most of its missing cells, out
        of about six random ones, and those of further donors for the cells that are
        left. Columns that no donor has take random errors of other columns.

        Parameters
        ----------
        missing : bool ndarray of shape (n_rows, n_cols)
            Cells to draw.
        rng : RandomState
            Source of random numbers.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
            Errors; 0 at the other cells.
        """
        found = np.zeros(missing.shape)
        known = np.bincount(self.cols, minlength=missing.shape[1]) > 0
        other = missing & ~known
        found[other] = rng.choice(self.values, other.sum())
        left = missing & known
        while left.any():
            rows, cols = (np.flatnonzero(left.any(axis)) for axis in (1, 0))
            useful = np.isin(self.cols, cols)
            E = self._some(np.unique(self.donors[useful]), missing.shape[1], rng)
            has, wanted = ~np.isnan(E), left[rows]
            overlap = wanted.astype(np.float32) @ has.T.astype(np.float32)
            overlap *= rng.random_sample(overlap.shape) < COMPARED
            best = (overlap + rng.random_sample(overlap.shape)).argmax(1)
            taken = wanted & has[best]
            found[rows] = np.where(taken, E[best], found[rows])
            left[rows] = wanted & ~taken
        return found

    def _some(
        self, donors: np.ndarray, n_cols: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Errors of random donors, NaN in columns that they do not have."""
        chosen = rng.choice(donors, min(DONORS, len(donors)), replace=False)
        E = np.full((len(chosen), n_cols), np.nan)
        starts = np.searchsorted(self.donors, chosen)
        ends = np.searchsorted(self.donors, chosen, side="right")
        for errors, start, end in zip(E, starts, ends, strict=True):
            errors[self.cols[start:end]] = self.values[start:end]
        return E
