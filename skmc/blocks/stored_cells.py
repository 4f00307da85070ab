"""The cells of a fit to blocks, which are read again on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from skmc.blocks.fragments import arrow

NOTHING: tuple[Any, dict] = None, {}


@dataclass(eq=False)
class StoredCells:
    """Reader of cells from the blocks of rows.

    Temporary blocks are removed with the last object that refers to them. Copies and
    files contain only the name of the folder.

    Parameters
    ----------
    folder : str
        Folder of the blocks.
    """

    folder: str
    _last: tuple[Any, dict] = field(
        default=NOTHING, init=False, repr=False, metadata={"stored": NOTHING}
    )

    def __reduce__(self) -> tuple:
        return StoredCells, (self.folder,)

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray]:
        """First row of each block, and number of cells of each row."""
        with np.load(self._path("row.npz")) as file:
            return file["starts"], file["count"]

    def _path(self, name: str) -> Path:
        path = Path(self.folder) / name
        if not path.exists():
            raise FileNotFoundError(
                f"The cells of the fit are no longer in {self.folder}. Temporary "
                "blocks are removed with the completer that was fitted; its copies in "
                "files need Entries with a folder of their own. Fit again; "
                "FactorizationCompleter also recommends with exclude_seen=False."
            )
        return path

    def _read(self, block: int, columns: list[str] | None = None) -> dict:
        asked, cells = self._last  # of another thread, perhaps
        if (block, columns) != asked:  # neighbors are mostly in the same block
            path = self._path(f"row/{block:06d}.parquet")
            table = arrow().parquet.read_table(path, columns=columns)
            cells = {name: table[name].to_numpy() for name in table.column_names}
            self._last = (block, columns), cells
        return cells

    def of_rows(
        self,
        rows: np.ndarray,  # (k,)
        columns: list[str] | None = None,
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Read the cells of some rows."""
        starts, count = self._index
        block = np.searchsorted(starts, rows, side="right") - 1
        which, found = [], []
        for b in np.unique(block[rows >= 0]) if (rows >= 0).any() else [0]:
            k = np.flatnonzero(block == b)
            n_cells = count[rows[k]]
            last = np.cumsum(count[starts[b] : starts[b + 1]])[rows[k] - starts[b]]
            at = np.repeat(last - np.cumsum(n_cells), n_cells) + np.arange(
                n_cells.sum()
            )
            cells = self._read(b, columns)
            which.append(np.repeat(k, n_cells))
            found.append({name: column[at] for name, column in cells.items()})
        joined = {name: np.concatenate([x[name] for x in found]) for name in found[0]}
        return np.concatenate(which), joined

    def all(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
        """Read all cells into memory, in the order of their rows."""
        starts, count = self._index
        blocks = [self._read(b) for b in range(len(starts) - 1)]
        joined = {name: np.concatenate([b[name] for b in blocks]) for name in blocks[0]}
        begin = np.append(0, np.cumsum(count))
        return begin, joined["col"], joined["value"], joined.get("weight")
