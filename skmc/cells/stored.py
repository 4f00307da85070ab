"""Observed cells in files, which are read when a completer is fitted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

import scipy.sparse as sp

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
        """Refuse to make a dense array.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"{self!r} is not in memory. Only FactorizationCompleter, "
            "BayesianFactorizationCompleter and MeanCompleter fit it; for others, read "
            "the table and use Entries.from_triplets."
        )

    def __repr__(self) -> str:
        rows, cols, values = self.columns[:3]
        where = "" if self.client is None else " on a cluster"
        return f"StoredEntries({values!r} by {rows!r} and {cols!r}{where})"


def from_parquet(
    path: str | os.PathLike | list[str],
    rows: str,
    cols: str,
    values: str,
    weight: str | None = None,
    *,
    duplicates: str = "error",
    folder: str | os.PathLike | None = None,
    client: object = None,
    block_cells: int = BLOCK_CELLS,
) -> StoredEntries:
    """Make entries from triplets in Parquet or Arrow files, which `fit` reads.

    `FactorizationCompleter`, `BayesianFactorizationCompleter` and `MeanCompleter` fit
    cells that do not fit in memory. `fit` sorts them into blocks of rows and blocks of
    columns; then it holds factors and one block in memory. See the guide "More data
    than memory".

    Parameters
    ----------
    path : path or list of paths
        File, folder of files, or list of files with equal columns.
    rows, cols : str
        Names of the columns of identifiers: integers of up to 64 bits, or strings.
    values : str
        Name of the column of numbers.
    weight : str, optional
        Name of the column of weights, >= 0: a weight of 2 counts the number twice,
        and 0 removes it before duplicates are sought. The fit is that of
        ``cell_weight`` in `FactorizationCompleter.fit`; `score` and `transform`
        count each cell once. `MeanCompleter` takes no weights.
    duplicates : {"error", "last", "mean"}, default="error"
        Treatment of cells that occur more than once, in any of the files. "last" is
        the last one in the order of the files' names and of their rows, with its
        weight; "mean" is the weighted mean, with the sum of the weights.
    folder : path, optional
        Folder for the sorted blocks, which take twice the space of the triplets. Only
        its subfolder ``skmc-blocks`` is written. A later fit to the same files reuses
        the blocks. By default they are in a temporary folder, which exists as long as
        the fitted completer. A completer that is loaded from a file needs a folder for
        `recommend` and `partial_fit`, and `BayesianFactorizationCompleter` for all
        predictions of rows of the fit.
    client : distributed.Client, optional
        Dask cluster that sorts and fits. All workers must reach ``path`` and
        ``folder`` under these names.
    block_cells : int >= 1, default=2**22
        Number of cells of a block, each of which needs about 150 bytes of memory.

    Returns
    -------
    StoredEntries

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from skmc import Entries, MeanCompleter
    >>> table = {"user": ["a", "a", "b"], "film": [7, 9, 7], "stars": [4.0, 5, 2]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table(table), folder + "/part-0.parquet")
    ...     ratings = Entries.from_parquet(folder, "user", "film", "stars")
    ...     completer = MeanCompleter().fit(ratings)
    >>> completer.predict_entries(["b", "b"], [7, 9])
    array([3., 5.])
    """
    columns = (rows, cols, values, *(() if weight is None else (weight,)))
    return StoredEntries(path, columns, duplicates, folder, client, block_cells)


def from_csv(
    path: str | os.PathLike | list[str],
    rows: str,
    cols: str,
    values: str,
    weight: str | None = None,
    *,
    duplicates: str = "error",
    folder: str | os.PathLike | None = None,
    client: object = None,
    block_cells: int = BLOCK_CELLS,
    read_options: object = None,
    parse_options: object = None,
    convert_options: object = None,
) -> StoredEntries:
    r"""Make entries from triplets in CSV files, which `fit` reads.

    `fit` reads them in chunks and continues as for `from_parquet`. A table that fits in
    memory can also be read by pandas, for `from_frame` and every completer.

    Parameters
    ----------
    path : path or list of paths
        File, folder of CSV files, or list of files with equal columns.
    rows, cols, values : str
        Names of columns, as for `from_parquet`.
    weight : str, optional
        Name of the column of weights, as for `from_parquet`.
    duplicates, folder, client, block_cells : object
        See `from_parquet`.
    read_options : pyarrow.csv.ReadOptions, optional
        Options for files without a header: ``ReadOptions(column_names=["user",
        "film"])`` with the names of all columns. By default, the first line has them.
    parse_options : pyarrow.csv.ParseOptions, optional
        Options for other separators: ``ParseOptions(delimiter="\t")``.
    convert_options : pyarrow.csv.ConvertOptions, optional
        Options for identifiers such as "007", which are integers otherwise:
        ``ConvertOptions(column_types={"film": "string"})``. By default, the first
        megabyte determines the type of a column of identifiers, numbers and weights
        are floats, and only the empty text is a missing cell.

    Returns
    -------
    StoredEntries

    Examples
    --------
    >>> import tempfile
    >>> from skmc import Entries, MeanCompleter
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("user,film,stars\na,7,4\na,9,5\nb,7,2\n")
    ...     file.flush()
    ...     ratings = Entries.from_csv(file.name, "user", "film", "stars")
    ...     completer = MeanCompleter().fit(ratings)
    >>> completer.predict_entries(["b", "b"], [7, 9])
    array([3., 5.])
    """
    columns = (rows, cols, values, *(() if weight is None else (weight,)))
    source = CsvFiles(path, read_options, parse_options, convert_options)
    return StoredEntries(source, columns, duplicates, folder, client, block_cells)


def from_dask(
    frame: Any,
    rows: str,
    cols: str,
    values: str,
    weight: str | None = None,
    *,
    folder: str | os.PathLike,
    duplicates: str = "error",
    client: object = None,
    block_cells: int = BLOCK_CELLS,
) -> StoredEntries:
    """Make entries from triplets in a Dask DataFrame, which `fit` computes.

    `fit` writes its partitions to Parquet files in ``folder``, and continues as for
    `from_parquet`.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Triplets.
    rows, cols, values : str
        Names of columns, as for `from_parquet`.
    weight : str, optional
        Name of the column of weights, as for `from_parquet`.
    folder : path
        Folder for the partitions and the sorted blocks.
    duplicates : {"error", "last", "mean"}, default="error"
        As for `from_parquet`; the order is that of the partitions.
    client : distributed.Client, optional
        See `from_parquet`.
    block_cells : int >= 1, default=2**22
        Number of cells of a block.

    Returns
    -------
    StoredEntries
    """
    columns = (rows, cols, values, *(() if weight is None else (weight,)))
    return StoredEntries(frame, columns, duplicates, folder, client, block_cells)


def from_memmap(
    matrix: Any,
    *,
    folder: str | os.PathLike | None = None,
    block_cells: int = BLOCK_CELLS,
) -> StoredEntries:
    """Make entries from a SciPy sparse matrix whose arrays are mapped from files.

    All cells have weight 1; for other weights write triplets, see `from_parquet`.

    Parameters
    ----------
    matrix : SciPy CSR array or matrix
        Stored cells are observed. Its arrays may be `numpy.memmap`.
    folder : path, optional
        See `from_parquet`.
    block_cells : int >= 1, default=2**22
        Number of cells of a block.

    Returns
    -------
    StoredEntries
    """
    if not (sp.issparse(matrix) and matrix.format == "csr"):
        raise TypeError(
            f"matrix must be a SciPy matrix in CSR format, got {type(matrix)!r}."
        )
    names = ("row", "column", "value")
    return StoredEntries(matrix, names, folder=folder, block_cells=block_cells)
