"""Observed cells in files, which are read when a completer is fitted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

DUPLICATES = ("error", "last", "mean")
BLOCK_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class CsvFiles:
    """CSV files, and Arrow's options for reading them; see `Entries.from_csv`.

    Parameters
    ----------
    path : path or list of paths
        A file, a folder of files, or a list of files.
    read_options : pyarrow.csv.ReadOptions or None
        Options such as the column names of files without a header.
    parse_options : pyarrow.csv.ParseOptions or None
        Options such as the separator.
    convert_options : pyarrow.csv.ConvertOptions or None
        Options such as the types of the columns.
    """

    path: str | os.PathLike | list[str]
    read_options: object = None
    parse_options: object = None
    convert_options: object = None


@dataclass(frozen=True, eq=False)
class StoredEntries:
    """Observed cells that are not in memory, see `Entries.from_parquet`.

    Parameters
    ----------
    source : path, list of paths, CsvFiles, Dask DataFrame or SciPy sparse matrix
        Source of the cells.
    columns : tuple of str
        Names of the columns of row identifiers, column identifiers, values and, if
        there are any, weights.
    duplicates : {"error", "last", "mean"}
        Treatment of cells that occur more than once.
    folder : path or None
        Folder for the sorted blocks.
    client : distributed.Client or None
        Cluster that computes the fit.
    block_cells : int
        Number of cells of a block.
    """

    source: Any
    columns: tuple[str, ...]
    duplicates: str = "error"
    folder: str | os.PathLike | None = None
    client: Any = None
    block_cells: int = BLOCK_CELLS

    one_unit: ClassVar[bool] = True  # as in `Entries`

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
        """Refuse to make a dense array."""
        raise TypeError(
            f"{self!r} is not in memory. Only the method fit of "
            "FactorizationCompleter, BayesianFactorizationCompleter and MeanCompleter "
            "reads it, and recommend and predict_entries answer for its cells. For "
            "other methods and completers, read the table and use Entries.from_frame."
        )

    def __repr__(self) -> str:
        rows, cols, values = self.columns[:3]
        where = "" if self.client is None else " on a cluster"
        return f"StoredEntries({values!r} by {rows!r} and {cols!r}{where})"
