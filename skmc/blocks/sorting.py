"""The steps that sort triplets into blocks of rows and blocks of columns.

Arrow reads, writes and groups. Each step is one function of one part or one block, so
that a loop or the tasks of a cluster can call it. All data pass through files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from skmc.blocks.fragments import Part, arrow

SIDES = ("row", "col")


def counted(part: Part) -> tuple[Any, Any]:
    """Count how often each identifier occurs in a part."""
    counts_of_sides: list[Any] = [None, None]
    for table in part.tables():
        for side, name in enumerate(SIDES):
            counts = table.group_by(name).aggregate([(name, "count")])
            counts = counts.rename_columns(["id", "count"])
            counts_of_sides[side] = merged([counts_of_sides[side], counts])
    return counts_of_sides[0], counts_of_sides[1]


def merged(counts: list[Any]) -> Any:
    """Add the counts of several parts."""
    tables = [table for table in counts if table is not None]
    if len(tables) < 2:
        return tables[0] if tables else None
    summed = arrow().concat_tables(tables).group_by("id").aggregate([("count", "sum")])
    return summed.rename_columns(["id", "count"])


def block_size(n_cells: int, most: int, at_once: int) -> int:
    """Choose the size of blocks, so that all workers have equally many."""
    rounds = -(-n_cells // (most * at_once))
    return -(-n_cells // (rounds * at_once))


def block_starts(
    count: np.ndarray,  # (n,)
    size: int,
) -> np.ndarray:  # (n_blocks + 1,)
    """Divide rows into blocks of about ``size`` cells."""
    begin = np.cumsum(count) - count
    starts = np.unique(begin // size, return_index=True)[1]
    return np.append(np.sort(starts), len(count))


def scattered(numbered: tuple[int, Part], folder: Path, starts: np.ndarray) -> None:
    """Encode a part's identifiers, and divide it into files, one for each row block."""
    pa = arrow()
    number, part = numbered
    ids = [read_ids(folder, side) for side in SIDES]
    for k, table in enumerate(part.tables()):
        codes = [
            pa.compute.index_in(table[side], value_set=ids_of_side).to_numpy()
            for side, ids_of_side in zip(SIDES, ids, strict=True)
        ]
        cells = dict(zip(SIDES, codes, strict=True))
        cells |= {name: table[name].to_numpy() for name in table.column_names[2:]}
        _write_files(folder / "row-parts", f"{number:06d}-{k:04d}", starts, cells)


def read_ids(folder: Path, side: str) -> Any:
    """Read the identifiers of rows or columns."""
    return arrow().parquet.read_table(folder / f"{side}-ids.parquet")["id"]


def _write_files(
    folder: Path, name: str, starts: np.ndarray, cells: dict[str, np.ndarray]
) -> None:
    pa = arrow()
    block = np.searchsorted(starts, cells["row"], side="right") - 1
    order = np.argsort(block.astype(np.int32), kind="stable")
    ends = np.cumsum(np.bincount(block, minlength=len(starts) - 1))
    table = pa.table({name: column[order] for name, column in cells.items()})
    for b in np.unique(block):
        first = ends[b - 1] if b else 0
        target = folder / f"{b:06d}"
        target.mkdir(parents=True, exist_ok=True)
        pa.parquet.write_table(
            table.slice(first, ends[b] - first),
            target / f"{name}.parquet",
            compression="none",
            use_dictionary=False,
            write_statistics=False,
        )


def gathered(
    number: int,
    side: str,
    folder: Path,
    starts: np.ndarray,
    others: np.ndarray | int,
    duplicates: str,
) -> dict[str, np.ndarray]:
    """Sort the triplets of one block, write the block, and scatter its transpose."""
    pa = arrow()
    files = sorted((folder / f"{side}-parts" / f"{number:06d}").glob("*.parquet"))
    table = pa.concat_tables([pa.parquet.read_table(file) for file in files])
    row, col = (table[name].to_numpy() for name in SIDES)
    first, last = int(starts[number]), int(starts[number + 1])
    width = int(others if isinstance(others, int) else others[-1])
    key = (row - first).astype(np.int64) * width + col
    order = np.argsort(key, kind="stable")
    key = key[order]
    cells = {name: table[name].to_numpy()[order] for name in table.column_names[2:]}
    twice = key[1:][key[1:] == key[:-1]]
    if len(twice) and duplicates == "error":
        places = divmod(int(twice[0]) + first * width, width)
        ids = zip(SIDES, places, strict=True)
        row, col = (read_ids(folder, name)[k].as_py() for name, k in ids)
        raise ValueError(
            f"The cell of row {row!r} and column {col!r} occurs more than once; pass "
            "duplicates='last' or duplicates='mean'."
        )
    if len(twice):
        key, cells = _without_duplicates(key, cells, duplicates == "last")
    row, col = key // width, key % width
    target = folder / side
    target.mkdir(exist_ok=True)
    col = col.astype(np.int32)
    pa.parquet.write_table(
        pa.table({"row": row.astype(np.int32), "col": col, **cells}),
        target / f"{number:06d}.parquet",
        compression="none",
        use_dictionary=["row"],
        write_statistics=False,
    )
    if not isinstance(others, int):
        transpose = {"row": col, "col": (row + first).astype(np.int32), **cells}
        _write_files(folder / "col-parts", f"{number:06d}", others, transpose)
    value, weight = cells["value"].astype(float), cells.get("weight")
    return statistics(row, value, last - first, weight)


def _without_duplicates(
    key: np.ndarray,  # (n_cells,), sorted
    cells: dict[str, np.ndarray],
    keep_last: bool,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Replace cells of the same key by the last one, or by their mean."""
    begin = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    if not keep_last:
        return key[begin], _averaged(begin, **cells)
    last = np.append(begin[1:], len(key)) - 1
    return key[begin], {name: column[last] for name, column in cells.items()}


def _averaged(
    begin: np.ndarray, value: np.ndarray, weight: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Weighted means, and sums of weights, of the groups that begin at ``begin``."""
    each = np.ones(len(value)) if weight is None else weight.astype(float)
    total = np.add.reduceat(each, begin)
    first = value[begin].astype(float)  # makes the mean of equal values exact
    apart = value - np.repeat(first, np.diff(np.append(begin, len(value))))
    mean = first + np.add.reduceat(each * apart, begin) / total
    cells = {"value": mean.astype(value.dtype)}
    return cells if weight is None else {**cells, "weight": total.astype(weight.dtype)}


def statistics(
    row: np.ndarray,  # (n_cells,)
    value: np.ndarray,  # (n_cells,)
    n: int,
    weight: np.ndarray | None = None,  # (n_cells,)
) -> dict[str, np.ndarray]:  # (n,)
    """Compute statistics of the cells of each row."""
    moments = _moments(row, value, n)
    if weight is not None:
        weighted = _moments(row, value, n, weight)
        moments |= {f"weighted_{name}": sums for name, sums in weighted.items()}
    count = moments["count"]
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    filled = np.flatnonzero(count)
    if len(filled):
        begin = (np.cumsum(count) - count)[filled]
        low[filled] = np.minimum.reduceat(value, begin)
        high[filled] = np.maximum.reduceat(value, begin)
    return {**moments, "low": low, "high": high}


def _moments(
    row: np.ndarray, value: np.ndarray, n: int, weight: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    count = np.bincount(row, weight, n)  # integers without weights
    each = 1.0 if weight is None else weight
    mean = np.bincount(row, each * value, n) / np.where(count > 0, count, 1)
    squares = np.bincount(row, each * np.square(value - mean[row]), n)
    return {"count": count, "mean": mean, "squares": squares}
