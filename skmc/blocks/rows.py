"""The cells of single rows, read from blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skmc.blocks.parts import arrow
from skmc.blocks.writing import DONE


class RowReader:
    """Finds the columns in which rows have cells.

    Parameters
    ----------
    folder : path
        Folder of the blocks.

    Raises
    ------
    FileNotFoundError
        The blocks no longer exist.
    """

    def __init__(self, folder: str):
        self.folder = Path(folder)
        if not (self.folder / DONE).exists():
            raise FileNotFoundError(
                f"The cells of the fit are no longer in {folder}. Fit to entries with "
                "a folder of their own, or pass exclude_seen=False."
            )
        with np.load(self.folder / "row.npz") as file:
            self.starts, self.count = file["starts"], file["count"]

    def __call__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the cells of some rows.

        Parameters
        ----------
        rows : int ndarray of shape (k,)
            Positions; negative ones have no cells.

        Returns
        -------
        which, cols : int ndarray of shape (n_cells,)
            Index into ``rows``, and column, of each cell.
        """
        block = np.searchsorted(self.starts, rows, side="right") - 1
        found = [np.empty((2, 0), np.int64)]
        for b in np.unique(block[rows >= 0]):
            first, last = self.starts[b], self.starts[b + 1]
            table = arrow().parquet.read_table(
                self.folder / "row" / f"{b:06d}.parquet", columns=["col"]
            )
            cols = table["col"].to_numpy()
            ends = np.cumsum(self.count[first:last])
            for k in np.flatnonzero(block == b):
                end = ends[rows[k] - first]
                part = cols[end - self.count[rows[k]] : end]
                found.append(np.stack([np.full(len(part), k), part]))
        which, where = np.concatenate(found, 1)
        return which, where
