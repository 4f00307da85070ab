"""The observed cells of a matrix as samples, so that scikit-learn can split cells."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from skmc.cells.containers import check_sparsity, dense, is_path, sparse_cells, to_cells
from skmc.cells.positions import check_positions, identified
from skmc.cells.stored import BLOCK_CELLS, CsvFiles, StoredEntries
from skmc.cells.table_matrix import Layout

LONG_BLOCK = 10  # cells; a block of at least this size is no coincidence


class Entries:
    """Observed cells ``(row, column, value)`` of one matrix.

    For ratings, and for searches that hold out cells; not needed for tables and
    pictures, whose arrays and frames are accepted as they are.

    ``len()`` is the number of cells, and a slice is the same matrix with fewer observed
    cells. So `sklearn.model_selection` splits *cells* instead of rows:
    ``GridSearchCV(AIRCompleter(), grid, cv=KFold(5, shuffle=True)).fit(Entries(X))``
    validates on held-out cells. Folds that are not shuffled would hide whole rows, and
    raise an error.

    Parameters
    ----------
    X : masked array, array or list with NaN, DataFrame, SciPy sparse, or tensor
        The matrix; see `skmc.cells.to_cells` for what counts as missing. A sparse
        matrix is not made dense.

    Attributes
    ----------
    rows, cols : ndarray of shape (n_cells,)
        Zero-based positions.
    values : ndarray of shape (n_cells,)
        Finite numbers.
    matrix_shape : tuple
        ``(n_rows, n_cols)``. ``shape`` is ``(n_cells,)``.
    ids : tuple of ndarray or None
        Identifiers of rows and columns, in ascending order, see `from_frame`.
    weights : ndarray of shape (n_cells,) or None
        Weight of each cell, see `from_frame`.
    one_unit : bool
        Whether all cells have the same unit, as ratings do: True for triplets and
        sparse matrices, False for arrays and data frames, whose columns may have
        different units. The default ``scaling="auto"`` of completers depends on it.
    layout : Layout or None
        What the columns are in a table that the matrix represents, see `TableMatrix`.

    See Also
    --------
    skmc.model_selection.CellSplit : Splits observed cells into folds.
    FactorizationCompleter : Ratings of any number, also from files.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import Entries
    >>> cells = Entries([[1.0, np.nan], [3.0, 4.0]])
    >>> len(cells), cells.matrix_shape
    (3, (2, 2))
    >>> cells[:2].to_cells()
    array([[ 1., nan],
           [ 3., nan]])
    """

    ids: tuple[np.ndarray, np.ndarray] | None = None
    weights: np.ndarray | None = None
    one_unit: bool = True
    layout: Layout | None = None

    def __init__(self, X: Any):
        if isinstance(X, Entries):
            self.ids, self.weights, self.one_unit = X.ids, X.weights, X.one_unit
            self.layout = X.layout
            rows, cols, values, shape = X.rows, X.cols, X.values, X.matrix_shape
        elif sp.issparse(X):
            (rows, cols, values), shape = sparse_cells(X), X.shape
        else:
            cells = to_cells(X)
            if cells.ndim != 2:
                raise ValueError(
                    f"Expected 2D array, got {cells.ndim}D array instead: X must be a "
                    "matrix. For ratings as triplets use Entries.from_triplets."
                )
            dense_cells = Entries.of_matrix(cells)
            rows, cols = dense_cells.rows, dense_cells.cols
            values, shape = dense_cells.values, dense_cells.matrix_shape
            self.one_unit = False
        self._set(rows, cols, values, shape, "error")

    @classmethod
    def from_triplets(
        cls,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, ...] | None = None,
        *,
        duplicates: str = "error",
    ) -> Entries:
        """Make entries from the row index, column index and value of each cell.

        Parameters
        ----------
        rows, cols : array-like of int, shape (n_cells,)
            Zero-based positions. Labels are turned into positions by
            ``numpy.unique(labels, return_inverse=True)``.
        values : array-like of numbers, shape (n_cells,)
            Value of each cell.
        shape : tuple of int, default: one more than the largest positions
            Shape of the matrix, ``(n_rows, n_cols)``.
        duplicates : {"error", "mean"}
            Treatment of cells that occur more than once.

        Returns
        -------
        Entries

        Raises
        ------
        ValueError
            Unequal lengths, a position outside ``shape``, a value that is not finite,
            or a cell that occurs twice.
        TypeError
            Positions that are not integers.

        Examples
        --------
        >>> from skmc import Entries
        >>> Entries.from_triplets([0, 0, 2], [1, 1, 0], [4, 5, 3], duplicates="mean")
        Entries(2 cells of a 3 x 2 matrix)
        """
        self = cls.__new__(cls)
        self._set(rows, cols, values, shape, duplicates)
        return self

    @classmethod
    def of_matrix(
        cls,
        cells: np.ndarray,
        *,
        one_unit: bool = False,
        layout: Layout | None = None,
    ) -> Entries:
        """Make entries from a matrix that `skmc.cells.to_cells` has read.

        Parameters
        ----------
        cells : ndarray of shape (n_rows, n_cols)
            NaN where a cell is missing.
        one_unit : bool, default=False
            Whether all cells have the same unit.
        layout : Layout or None, default=None
            What the columns are in a table, if the matrix represents one.

        Returns
        -------
        Entries
        """
        self = cls.__new__(cls)
        self.one_unit, self.layout = one_unit, layout
        self.rows, self.cols = np.nonzero(~np.isnan(cells))
        self.values = cells[self.rows, self.cols]
        self.matrix_shape = cells.shape[0], cells.shape[1]
        return self

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        rows: str,
        cols: str,
        values: str,
        weight: str | None = None,
        *,
        duplicates: str = "error",
    ) -> Entries:
        """Make entries from triplets in a table in memory, with any identifiers.

        After a fit, `predict_entries` and `recommend` take and return identifiers.
        `transform` returns the rows and columns in the order of ``row_ids_`` and
        ``col_ids_``. Features of rows or columns in a pandas DataFrame are found by
        its index, and identifiers that only this index has belong to the fit.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, Arrow table, or dict of arrays
            Table with one row for each cell.
        rows, cols : str
            Names of the columns of identifiers: integers or strings. Other objects are
            converted to text.
        values : str
            Name of the column of numbers.
        weight : str, optional
            Name of the column of cell weights, >= 0, like ``cell_weight`` of `fit`.
        duplicates : {"error", "mean"}, default="error"
            Treatment of cells that occur more than once. "mean" needs cells without
            weights.

        Returns
        -------
        Entries

        Raises
        ------
        ValueError
            An identifier or a number is missing, two identifiers have the same text,
            such as 1 and "1", or as in `from_triplets`.

        Examples
        --------
        >>> from skmc import Entries, MeanCompleter
        >>> table = {"user": ["a", "a", "b"], "film": [7, 9, 7], "stars": [4.0, 5, 2]}
        >>> ratings = Entries.from_frame(table, "user", "film", "stars")
        >>> MeanCompleter().fit(ratings).predict_entries(["b", "b"], [7, 9])
        array([3., 5.])
        """
        row_ids, row = identified(_column(frame, rows, "rows"), rows)
        col_ids, col = identified(_column(frame, cols, "cols"), cols)
        shape = len(row_ids), len(col_ids)
        if weight is not None and duplicates != "error":
            raise ValueError("duplicates must be 'error' if cells have weights.")
        numbers = np.asarray(_column(frame, values, "values"))
        cells = cls.__new__(cls)
        cells._set(row, col, numbers, shape, duplicates, (row_ids, col_ids))
        cells.ids = row_ids, col_ids
        if weight is not None:
            cells.weights = np.asarray(_column(frame, weight, "weight"), float)
        return cells

    @staticmethod
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

        `FactorizationCompleter`, `BayesianFactorizationCompleter` and `MeanCompleter`
        fit cells that do not fit in memory. `fit` sorts them into blocks of rows and
        blocks of columns; then it holds factors and one block in memory. See
        "Large data" in the user guide.

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
            Folder for the sorted blocks, which take twice the space of the triplets.
            Only its subfolder ``skmc-blocks`` is written. A later fit to the same files
            reuses the blocks. By default they are in a temporary folder, which exists
            as long as the fitted completer. A completer that is loaded from a file
            needs a folder for `recommend` and `partial_fit`, and
            `BayesianFactorizationCompleter` for all predictions of rows of the fit.
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

    @staticmethod
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

        `fit` reads them in chunks and continues as for `from_parquet`. A table that
        fits in memory can also be read by pandas, for `from_frame` and every completer.

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
            "film"])`` with the names of all columns. By default, the first line has
            them.
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

    @staticmethod
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
        parameters = ("rows", "cols", "values", "weight")
        for name, parameter in zip(columns, parameters, strict=False):
            _check_column(frame.columns, name, parameter)
        return StoredEntries(frame, columns, duplicates, folder, client, block_cells)

    @staticmethod
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

    def _set(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, ...] | None,
        duplicates: str,
        ids: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        values = to_cells(values, name="values")
        if np.shape(values) != np.shape(rows):
            raise ValueError(
                "rows, cols and values must have one item per cell, got shapes "
                f"{np.shape(rows)}, {np.shape(cols)} and {values.shape}."
            )
        if np.isnan(values).any():
            raise ValueError(
                f"values contains NaN at position {np.isnan(values).argmax()}; leave "
                "that cell out."
            )
        if shape is not None and len(shape) != 2:
            raise ValueError(f"shape must be (n_rows, n_cols), got {tuple(shape)}.")
        rows, cols = check_positions(rows, cols, shape)
        if shape is None:
            shape = rows.max(initial=-1) + 1, cols.max(initial=-1) + 1
            check_sparsity(shape, len(rows))
        n_rows, n_cols = (int(n) for n in shape)
        if duplicates not in ("error", "mean"):
            raise ValueError(
                f"duplicates must be 'error' or 'mean', got {duplicates!r}."
            )
        flat = rows * n_cols + cols
        unique, first, where = np.unique(flat, return_index=True, return_inverse=True)
        if len(unique) < len(flat):
            if duplicates == "error":
                again = np.setdiff1d(np.arange(len(flat)), first)[0]
                row, col = rows[again], cols[again]
                if ids is not None:  # as users know them
                    pairs = zip(ids, (row, col), strict=True)
                    row, col = (repr(*own[[k]].tolist()) for own, k in pairs)
                raise ValueError(
                    f"the cell at row {row}, column {col} comes more than once; pass "
                    "duplicates='mean' to average."
                )
            values = np.bincount(where, values) / np.bincount(where)
            rows, cols = rows[first], cols[first]
        self.rows, self.cols, self.values = rows, cols, values
        self.matrix_shape = (n_rows, n_cols)

    @property
    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each cell: identifiers if there are any, else positions."""
        if self.ids is None:
            return self.rows, self.cols
        return self.ids[0][self.rows], self.ids[1][self.cols]

    @property
    def shape(self) -> tuple[int]:
        """``(n_cells,)``, the shape of a list of samples."""
        return (len(self.values),)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):  # scikit-learn's (indices, Ellipsis)
            index = np.asarray(index[0])
            self._refuse_blocks(index)
        if isinstance(index, (int, np.integer)):
            return self.rows[index], self.cols[index], self.values[index]
        part = self.__class__.__new__(self.__class__)
        part.rows, part.cols = self.rows[index], self.cols[index]
        part.values, part.matrix_shape = self.values[index], self.matrix_shape
        part.ids, part.one_unit = self.ids, self.one_unit
        part.layout = self.layout
        if self.weights is not None:
            part.weights = self.weights[index]
        return part

    def _refuse_blocks(self, index: np.ndarray) -> None:
        """Raise an error if ``index`` leaves out one block of cells in row order.

        A block of whole rows is a test of new rows, and cells in another order, such
        as the order of time, may be split on purpose.
        """
        if (np.diff(self.rows) < 0).any():
            return
        left_out = np.delete(np.arange(len(self)), index)
        if len(left_out) >= LONG_BLOCK and np.ptp(left_out) < len(left_out):
            hidden = ~np.isin(self.rows[left_out], self.rows[index])
            if 0.5 < hidden.mean() < 1:
                raise ValueError(
                    "These cells leave out whole rows, which only means can complete: "
                    "folds must be shuffled, for example by cv=KFold(5, shuffle=True)."
                )

    def __repr__(self) -> str:
        n_rows, n_cols = self.matrix_shape
        return f"Entries({len(self)} cells of a {n_rows} x {n_cols} matrix)"

    def to_cells(self) -> np.ndarray:
        """Dense array of shape ``matrix_shape`` with NaN in unobserved cells.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
        """
        return dense(self.matrix_shape, self.rows, self.cols, self.values)


def _column(frame: Any, name: str, parameter: str) -> Any:
    """A column of a data frame, Arrow table, dict or structured array."""
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if names is None:
        names = getattr(getattr(frame, "dtype", None), "names", None)
    if names is None and isinstance(frame, Mapping):
        names = frame
    if names is None:
        remedy = ""
        if is_path(frame):
            remedy = "; read the file first, or use Entries.from_csv or from_parquet"
        raise TypeError(
            "frame must be a table of pandas, polars or Arrow, or a dict of columns, "
            f"got {type(frame).__name__}{remedy}."
        )
    _check_column(names, name, parameter)
    return frame[name]


def _check_column(names: Iterable[Any], name: str, parameter: str) -> None:
    columns = list(names)
    if name not in columns:
        raise ValueError(f"{parameter} names column {name!r}, but frame has {columns}.")


def without_duplicates(cells: Entries) -> Entries:
    """Keep the last one of cells that a slice contains several times."""
    place = np.ravel_multi_index((cells.rows, cells.cols), cells.matrix_shape)
    last = np.zeros(len(cells), bool)
    last[len(cells) - 1 - np.unique(place[::-1], return_index=True)[1]] = True
    kept: Entries = cells[last]
    return kept


def fingerprint(cells: Entries) -> str:
    """A text that is equal for equal sets of cells."""
    place = cells.rows * cells.matrix_shape[1] + cells.cols
    order = np.argsort(place)
    digest = hashlib.blake2b(place[order].tobytes())
    digest.update(cells.values[order].astype(float).tobytes())
    return digest.hexdigest()
