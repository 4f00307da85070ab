"""Ratings in memory and the same ratings in files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SHAPE = (60, 30)
NAMES = ("user", "film", "stars")


def triplets(dtype=float):
    """Shuffled cells of a matrix of rank 2 with noise; every row and column has one."""
    rng = np.random.RandomState(0)
    truth = rng.randn(SHAPE[0], 2) @ rng.randn(2, SHAPE[1]) + rng.randn(SHAPE[0], 1)
    rows, cols = np.nonzero(rng.rand(*SHAPE) < 0.4)
    order = rng.permutation(len(rows))
    values = truth[rows, cols] + 0.1 * rng.randn(len(rows))
    return rows[order], cols[order], values[order].astype(dtype)


def users(rows):
    return np.array([f"u{row:03d}é" for row in rows])


def films(cols):
    return np.asarray(cols) * 10**15


def write(folder, rows, cols, values, n_files=4, **names):
    folder.mkdir(exist_ok=True)
    for k, part in enumerate(np.array_split(np.arange(len(values)), n_files)):
        table = {
            "user": users(rows[part]),
            "film": films(cols[part]),
            "age": cols[part],
        }
        table["stars"] = values[part]
        pq.write_table(pa.table(table), folder / f"part-{k}.parquet", row_group_size=50)
    return folder


def weighted_cells():
    """Cells of `triplets` and weights, with which each row and column has a cell."""
    rows, cols, values = triplets()
    weights = np.random.RandomState(1).choice([0, 0.2, 1, 2, 3.5], len(values))
    assert all(len(np.unique(x[weights > 0])) == x.max() + 1 for x in (rows, cols))
    return rows, cols, values, weights
