"""Look-up of the rows that a completer was fitted on."""

from __future__ import annotations

import numpy as np

BLOCK = 2**20  # cells hashed at once


class RowIndex:
    """Exact look-up of rows by value and mask (NaN where missing).

    Rows are compared by a 64-bit multilinear hash of their bits and then cell by cell,
    so that the look-up costs one pass over the matrix.

    Parameters
    ----------
    cells : ndarray of shape (n_rows, n_cols)
        Rows of the fit, NaN where missing.
    """

    def __init__(self, cells: np.ndarray):
        self.cells = _canonical(cells)
        keys = _hash(self.cells)
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    @property
    def firsts(self) -> np.ndarray:
        """Result of `find` for the rows of the fit, ``(n_rows,)``."""
        n = len(self.keys)
        begins = np.append(True, self.keys[1:] != self.keys[:-1])
        first = np.maximum.accumulate(np.where(begins, np.arange(n), 0))
        firsts = np.empty(n, int)
        firsts[self.order] = self.order[first]
        again = np.flatnonzero(firsts != np.arange(n))
        # Other rows may have the same hash.
        a, b = self.cells[again], self.cells[firsts[again]]
        equal = ((a == b) | (np.isnan(a) & np.isnan(b))).all(1)
        firsts[again[~equal]] = -1
        return firsts

    def find(
        self,
        cells: np.ndarray,  # (n_rows, n_cols)
    ) -> np.ndarray:  # (n_rows,)
        """Find the position of the first equal row; it is -1 if no row is equal."""
        if cells.dtype != self.cells.dtype:
            return np.full(len(cells), -1)
        cells = _canonical(cells)
        place = np.searchsorted(self.keys, _hash(cells)).clip(max=len(self.keys) - 1)
        position = self.order[place]
        candidates = self.cells[position]
        equal = (candidates == cells) | (np.isnan(candidates) & np.isnan(cells))
        return np.where(equal.all(1), position, -1)


def content_order(
    cells: np.ndarray,  # (n_rows, n_cols)
) -> np.ndarray:  # (n_rows,)
    """Order the rows by a hash of the ranks of their cells, whatever their order is."""
    ranks = [np.searchsorted(np.sort(column), column) for column in cells.T]
    return RowIndex(np.array(ranks, float).T).order


def _canonical(cells: np.ndarray) -> np.ndarray:
    """One bit pattern for each number: a single NaN and no negative zero."""
    return np.where(np.isnan(cells), cells.dtype.type(np.nan), cells + 0)


def _hash(cells: np.ndarray) -> np.ndarray:
    factors = np.random.RandomState(0).randint(
        0, 2**63 - 1, size=2 * cells.shape[1], dtype=np.int64
    )
    a, b = factors.astype(np.uint64).reshape(2, -1)
    size = max(1, BLOCK // cells.shape[1])
    keys = np.empty(len(cells), np.uint64)
    for start in range(0, len(cells), size):
        rows = np.ascontiguousarray(cells[start : start + size])
        bits = rows.view(f"u{cells.itemsize}").astype(np.uint64)
        mixed = (bits ^ (bits >> np.uint64(29))) * (a | np.uint64(1)) + b
        mixed = (mixed ^ (mixed >> np.uint64(32))) * (b | np.uint64(1))
        keys[start : start + size] = mixed.sum(1)
    return keys
