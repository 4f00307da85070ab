"""Observed cells in files, which are read when a completer is fitted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

DUPLICATES = ("error", "last", "mean")
BLOCK_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class StoredEntries:
    """Observed cells that are not in memory, see `Entries.from_parquet`.

    Parameters
    ----------
    source : path, list of paths, Dask DataFrame or SciPy sparse matrix
        Where the cells are.
    columns : tuple of str
        Names of the columns of row identifiers, column identifiers, values and, if
        there are any, weights.
    duplicates : {"error", "last", "mean"}
        What to do when a cell occurs more than once.
    folder : path or None
        Where the sorted blocks are kept.
    client : distributed.Client or None
        The cluster on which to compute.
    block_cells : int
        Number of cells of a block.
    """

    source: Any
    columns: tuple[str, ...]
    duplicates: str = "error"
    folder: str | os.PathLike | None = None
    client: Any = None
    block_cells: int = BLOCK_CELLS

    def __post_init__(self) -> None:
        if self.duplicates not in DUPLICATES:
            raise ValueError(
                f"duplicates must be one of {DUPLICATES}, got {self.duplicates!r}."
            )
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"{self.columns} must name different columns.")
        if not self.block_cells >= 1:
            raise ValueError(f"block_cells must be >= 1, got {self.block_cells!r}.")
        if self.client is not None and self.folder is None:
            raise ValueError(
                "With a client, folder must name a folder that all workers share."
            )

    @property
    def weighted(self) -> bool:
        """Whether cells have weights."""
        return len(self.columns) > 3

    def to_cells(self) -> Any:
        """Refuse to make a dense array.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"{self!r} is not in memory. Only FactorizationCompleter and MeanCompleter "
            "fit it; for others, read the table and use Entries.from_triplets."
        )

    def __repr__(self) -> str:
        rows, cols, values = self.columns[:3]
        where = "" if self.client is None else " on a cluster"
        return f"StoredEntries({values!r} by {rows!r} and {cols!r}{where})"
