"""Rows that occur several times."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

ROUNDING = 1e-6  # of the largest value of a column
MOST = 2 * 10**8  # comparisons of pairs of cells
CHANCE = 0.5  # expected number of pairs of rows that are equal by chance


def copies(
    cells: np.ndarray,  # (n_rows, n_cols)
) -> np.ndarray:  # (n_rows,)
    """Find rows that are equal, up to rounding, on all cells that both have.

    Rows that may be equal by chance, as rows with few cells or few distinct values,
    are no copies.
    """
    m, n = cells.shape
    own = np.arange(m)
    if m * m * n > MOST:
        return own
    seen = ~np.isnan(cells)
    differ, chance = np.zeros((m, m), bool), np.zeros(n)
    for j, column in enumerate(cells.T):
        level = _levels(column)
        differ |= (level[:, None] != level) & seen[:, [j]] & seen[:, j]
        count = np.bincount(level[seen[:, j]]).astype(float)
        pairs = max(1, seen[:, j].sum() * (seen[:, j].sum() - 1))
        chance[j] = np.log(max((count * (count - 1)).sum() / pairs, 1 / m))
    likely = (seen * chance) @ seen.T.astype(float)
    related = ~differ & (likely < np.log(CHANCE) - 2 * np.log(m) + np.log(2))
    if related.sum() <= m:
        return own
    group = connected_components(related, directed=False)[1]
    _, first = np.unique(group, return_index=True)
    firsts: np.ndarray = first[group]
    return firsts


def _levels(column: np.ndarray) -> np.ndarray:
    """Numbers of the distinct values, in ascending order."""
    order = np.argsort(column)  # NaN come last
    largest = np.abs(column[~np.isnan(column)]).max(initial=0)
    steps = np.diff(column[order]) > ROUNDING * largest
    level = np.empty(len(column), int)
    level[order] = np.append(0, np.cumsum(steps))
    return level


def merged(
    cells: np.ndarray,  # (n_rows, n_cols)
) -> tuple[np.ndarray, np.ndarray]:
    """One row for each set of copies, with the cells of all of them."""
    first = copies(cells)
    kept, place = np.unique(first, return_inverse=True)
    rows = cells[kept]
    for row in np.flatnonzero(first != np.arange(len(cells))):
        into = rows[place[row]]
        into[:] = np.where(np.isnan(into), cells[row], into)
    return rows, place


def held_out_with_copies(
    hidden: np.ndarray,  # (n_cells,)
    rows: np.ndarray,  # (n_cells,)
    cols: np.ndarray,  # (n_cells,)
    values: np.ndarray,  # (n_cells,)
    shape: tuple[int, int],
) -> np.ndarray:  # (n_cells,)
    """Hide cells that copies of their rows show, too, together."""
    present, row = np.unique(rows, return_inverse=True)
    if len(present) ** 2 * shape[1] > MOST:
        return hidden
    cells = np.full((len(present), shape[1]), np.nan)
    cells[row, cols] = values
    place = copies(cells)[row] * shape[1] + cols
    _, first, same = np.unique(place, return_index=True, return_inverse=True)
    return hidden[first][same]
