"""Sorting triplets into a folder of blocks."""

from __future__ import annotations

import errno
import json
import pickle
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from skmc.blocks.fragments import PART_ROWS, arrow, parts_of, value_dtype
from skmc.blocks.sorting import (
    SIDES,
    block_size,
    block_starts,
    counted,
    gathered,
    merged,
    read_ids,
    scattered,
)
from skmc.blocks.stored_cells import StoredCells
from skmc.blocks.workers import Local, OnCluster, logged
from skmc.cells import CsvFiles, StoredEntries

OWN = "skmc-blocks"  # the only subfolder of a user's folder that is written
DONE = "blocks.json"  # moved to its place last
REASONS = {  # for a file that cannot be written
    errno.ENOSPC: "is full",
    errno.EDQUOT: "is full for this user",
    errno.EFBIG: "takes no file of this size",
}


@dataclass(frozen=True)
class SparsePart:
    """Some rows of a SciPy sparse matrix, which may be mapped from files.

    Parameters
    ----------
    matrix : SciPy CSR array or matrix
        The whole matrix.
    first, last : int
        First row, and the row after the last one.
    """

    matrix: Any
    first: int
    last: int

    def tables(self) -> Any:
        """Read the rows."""
        pa = arrow()
        begin, end = (int(self.matrix.indptr[k]) for k in (self.first, self.last))
        counts = np.diff(self.matrix.indptr[self.first : self.last + 1])
        rows = np.repeat(np.arange(self.first, self.last), counts)
        values = np.asarray(self.matrix.data[begin:end])
        values = values.astype(value_dtype(values.dtype), copy=False)
        if not np.isfinite(values).all():
            raise ValueError("The sparse matrix holds NaN or infinity; leave them out.")
        cols = np.asarray(self.matrix.indices[begin:end], np.int64)
        yield pa.table({"row": rows, "col": cols, "value": values})


class BlockFolder:
    """Sorted blocks of rows and of columns in a folder.

    Parameters
    ----------
    path : Path
        Path of the folder.
    runner : Local
        Runner that calls functions for the blocks.
    """

    def __init__(self, path: Path, runner: Local):
        self.path, self.runner = path, runner
        self.cells = StoredCells(str(path))
        header = json.loads((path / DONE).read_text())
        self.dtype = np.dtype(header["dtype"])
        self.labeled: bool = header["labeled"]
        self.starts: dict[str, np.ndarray] = {}
        self.statistics: dict[str, dict[str, np.ndarray]] = {}
        for side in SIDES:
            with np.load(path / f"{side}.npz") as file:
                arrays = dict(file)
            self.starts[side] = arrays.pop("starts")
            self.statistics[side] = arrays

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return int(self.starts["row"][-1]), int(self.starts["col"][-1])

    def ids(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Identifiers of rows and columns in ascending order, or None for positions."""
        if not self.labeled:
            return None
        rows, cols = (read_ids(self.path, side).to_numpy() for side in SIDES)
        return rows, cols


def sorted_blocks(entries: StoredEntries) -> BlockFolder:
    """Sort entries into blocks, or open the blocks of an earlier fit."""
    runner = Local() if entries.client is None else OnCluster(entries.client)
    arrow()
    if entries.folder is not None:
        return _opened(entries, Path(entries.folder).resolve() / OWN, runner)
    folder = Path(tempfile.mkdtemp(prefix="skmc-blocks-"))
    try:
        blocks = _opened(entries, folder, runner)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # A fit keeps only the cells of the folder.
    weakref.finalize(blocks.cells, shutil.rmtree, folder, ignore_errors=True)
    return blocks


def _opened(entries: StoredEntries, folder: Path, runner: Local) -> BlockFolder:
    source = entries.source
    if hasattr(source, "to_parquet"):
        source = _written(entries, folder)
    key = _key(entries, source)
    if not _is_done(folder, key):
        folder.mkdir(parents=True, exist_ok=True)
        _fill(entries, source, folder, runner, key)
    return BlockFolder(folder, runner)


def _written(entries: StoredEntries, folder: Path) -> Path:
    """Write the partitions of a Dask DataFrame, on the cluster if there is one."""
    import dask

    target = folder / "source"
    frame = entries.source[list(entries.columns)]
    token, mark = dask.base.tokenize(frame), folder / "source.json"
    if mark.exists() and json.loads(mark.read_text()) == token:
        return target
    shutil.rmtree(target, ignore_errors=True)
    client = {} if entries.client is None else {"scheduler": entries.client}
    try:
        with dask.config.set(**client):
            frame.to_parquet(str(target), write_index=False, engine="pyarrow")
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        _explain(error, folder)
        raise
    fresh = mark.with_suffix(".new")
    fresh.write_text(json.dumps(token))
    fresh.replace(mark)
    return target


def _key(entries: StoredEntries, source: Any) -> list:
    """Fingerprint of the input of the blocks, which are rebuilt if it changes."""
    if sp.issparse(source):
        arrays = (source.indptr, source.indices, source.data)
        digests = [sha256(np.ascontiguousarray(x).data).hexdigest() for x in arrays]
        files = [[*map(int, source.shape), str(source.dtype), *digests]]
    else:
        parts, _ = parts_of(source, entries.columns)
        files = []
        for path in sorted({part.fragment.path for part in parts}):
            state = Path(path).stat()
            files.append([path, state.st_size, state.st_mtime_ns])
    how = None
    if isinstance(source, CsvFiles):
        options = source.read_options, source.parse_options, source.convert_options
        how = sha256(pickle.dumps(options)).hexdigest()
    columns = list(entries.columns)
    return [1, files, how, columns, entries.duplicates, entries.block_cells]


def _is_done(folder: Path, key: list) -> bool:
    done = folder / DONE
    return done.exists() and json.loads(done.read_text())["key"] == key


def _fill(
    entries: StoredEntries, source: Any, folder: Path, runner: Local, key: list
) -> None:
    part = folder / "unfinished"
    (folder / DONE).unlink(missing_ok=True)
    for name in ("row", "col", "unfinished"):  # left by an earlier or a killed fit
        shutil.rmtree(folder / name, ignore_errors=True)
    try:
        part.mkdir()
        header = _sort(entries, source, part, runner)
        (part / DONE).write_text(json.dumps({**header, "key": key}))
        for path in sorted(part.iterdir(), key=lambda path: path.name == DONE):
            path.replace(folder / path.name)
        part.rmdir()
    except BaseException as error:
        for name in ("row", "col", "unfinished"):
            shutil.rmtree(folder / name, ignore_errors=True)
        if not any(folder.iterdir()):
            folder.rmdir()
        _explain(error, folder)
        raise


def _explain(error: BaseException, folder: Path) -> None:
    """Raise an error with more information if the disk is full."""
    if not isinstance(error, OSError):
        return
    full = "No space left" in str(error)
    number = errno.ENOSPC if full else error.errno
    if number not in REASONS:
        return
    raise OSError(
        number,
        f"The disk of {folder} {REASONS[number]}. Sorting needs about three times the "
        "size of the uncompressed triplets; pass a folder on another disk. What was "
        "written has been removed",
    ) from error


def _sort(
    entries: StoredEntries, source: Any, folder: Path, runner: Local
) -> dict[str, Any]:
    pa = arrow()
    parts: list[Any]
    if sp.issparse(source):
        if entries.client is not None:
            raise ValueError(
                "A sparse matrix is sorted in this process; pass no client, or write "
                "the triplets to Parquet."
            )
        starts = block_starts(np.diff(source.indptr), PART_ROWS)
        parts = [SparsePart(source, int(i), int(j)) for i, j in pairwise(starts)]
        dtype = value_dtype(source.dtype)
    else:
        found, dtype = parts_of(source, entries.columns)
        parts = list(found)
    totals: list[Any] = [None, None]
    for counts in logged(runner.call(counted, parts), "part counted", len(parts)):
        totals = [merged([a, b]) for a, b in zip(totals, counts, strict=True)]
    if not totals[0]:  # weights may all be 0
        raise ValueError("There is no observed cell; at least one is needed.")
    starts_of = {}
    for k, side in enumerate(SIDES):
        counts = totals[k].sort_by("id")
        if sp.issparse(source):
            n = source.shape[k]
            count = np.zeros(n, np.int64)
            count[counts["id"].to_numpy()] = counts["count"].to_numpy()
            counts = pa.table({"id": np.arange(n), "count": count})
        pa.parquet.write_table(counts, folder / f"{side}-ids.parquet")
        count = counts["count"].to_numpy()
        size = block_size(int(count.sum()), entries.block_cells, runner.at_once)
        starts_of[side] = block_starts(count, size)
    numbered = list(enumerate(parts))
    done = runner.call(scattered, numbered, folder, starts_of["row"])
    for _ in logged(done, "part scattered", len(parts)):
        pass
    width: Any
    for side, width in (("row", starts_of["col"]), ("col", int(starts_of["row"][-1]))):
        starts = starts_of[side]
        gather = partial(
            gathered,
            side=side,
            folder=folder,
            starts=starts,
            others=width,
            duplicates=entries.duplicates,
        )
        n_blocks = len(starts) - 1
        done = runner.call(gather, range(n_blocks))
        pieces = list(logged(done, f"block of {side}s sorted", n_blocks))
        shutil.rmtree(folder / f"{side}-parts")
        joined = {k: np.concatenate([p[k] for p in pieces]) for k in pieces[0]}
        arrays: dict[str, Any] = {"starts": starts, **joined}
        np.savez(folder / f"{side}.npz", **arrays)
    return {"dtype": str(dtype), "labeled": not sp.issparse(source)}
