"""Tables of triplets in files, in parts that fit in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skmc.blocks.csv_chunks import CsvFile
from skmc.cells import CsvFiles

if TYPE_CHECKING:
    from pyarrow.dataset import Fragment

PART_ROWS = 2**22  # largest number of rows of a table in memory
KINDS = ("identifiers", "identifiers", "values", "weights")  # kinds of the columns
CSV = (
    "; see parse_options (separator), read_options (names) and convert_options (types) "
    "of Entries.from_csv"
)


def arrow() -> Any:
    """Return pyarrow, or raise an error that names the extra."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.dataset
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            'Entries that are not in memory need Arrow: pip install "skmc[blocks]".'
        ) from error
    return pyarrow


@dataclass(frozen=True)
class Part:
    """Some row groups of one file.

    Parameters
    ----------
    fragment : pyarrow.dataset.Fragment or CsvFile
        Source of the rows.
    columns : tuple of str
        Names of the columns of row identifiers, column identifiers, values and, if
        there are any, weights.
    """

    fragment: Any
    columns: tuple[str, ...]

    def tables(self) -> Iterator[Any]:
        """Read the rows, at most about `PART_ROWS` at a time."""
        pa = arrow()
        waiting: list[Any] = []
        with _explained(self.fragment):
            for batch in self.fragment.to_batches(columns=list(self.columns)):
                waiting.append(batch)
                if sum(map(len, waiting)) >= PART_ROWS:
                    yield self._checked(pa.Table.from_batches(waiting))
                    waiting = []
        if any(map(len, waiting)):
            yield self._checked(pa.Table.from_batches(waiting))

    def _checked(self, table: Any) -> Any:
        pa = arrow()
        table = table.select(list(self.columns)).combine_chunks()
        for name in self.columns:
            if table[name].null_count:
                raise ValueError(
                    f"{self._where(name)} has missing cells; leave them out."
                )
        row, col = (
            table[name].cast(kind_of(table.schema.field(name).type))
            for name in self.columns[:2]
        )
        values = table[self.columns[2]].to_numpy()
        values = values.astype(value_dtype(values.dtype), copy=False)
        largest = np.sqrt(np.finfo(values.dtype).max)
        wrong = ~(np.abs(values) <= largest)  # also NaN
        if wrong.any():
            raise ValueError(
                f"{self._where(self.columns[2])} holds {values[wrong.argmax()]}; leave "
                "such rows out."
            )
        cells = {"row": row, "col": col, "value": pa.array(values)}
        if len(self.columns) == 3:
            return pa.table(cells)
        weights = table[self.columns[3]].to_numpy()
        wrong = ~((weights >= 0) & (weights <= largest))  # also NaN
        if wrong.any():
            raise ValueError(
                f"{self._where(self.columns[3])} holds {weights[wrong.argmax()]}; "
                "weights must be finite and at least 0."
            )
        weights = weights.astype(values.dtype)
        return pa.table({**cells, "weight": weights}).filter(pa.array(weights > 0))

    def _where(self, name: str) -> str:
        return f"Column {name!r} of {self.fragment.path}"


def value_dtype(dtype: np.dtype) -> np.dtype:
    """Return float32 for numbers of at most that precision, otherwise float64."""
    small = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if small else np.float64)


def kind_of(type_: Any) -> Any:
    """Return the type to which identifiers of an Arrow type are converted."""
    pa = arrow()
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_integer(type_):
        return pa.int64()
    text = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
    if any(is_text(type_) for is_text in text):
        return pa.large_string()
    raise TypeError(f"has type {type_}; identifiers must be integers or strings")


def parts_of(
    source: str | os.PathLike | list | CsvFiles, columns: tuple[str, ...]
) -> tuple[list[Part], np.dtype]:
    """Divide a folder of Parquet, Arrow or CSV files into parts."""
    files = _files(source, columns)
    parts: list[Part] = []
    first: tuple[str, list[Any]] | None = None
    for fragment in files:
        with _explained(fragment):
            schema = fragment.physical_schema
        for name in columns:
            if name not in schema.names:
                raise ValueError(
                    f"{fragment.path} has no column {name!r}; it has {schema.names}"
                    f"{_hint(fragment)}."
                )
        kinds = [_kind(fragment, name, KINDS[k]) for k, name in enumerate(columns)]
        if first is None:
            first = fragment.path, kinds
        for name, ours, other in zip(columns, kinds, first[1], strict=True):
            if ours != other:
                raise ValueError(
                    f"Column {name!r} is {other} in {first[0]} and {ours} in "
                    f"{fragment.path}; write both files with one type"
                    f"{_hint(fragment)}."
                )
        parts += [Part(piece, columns) for piece in _pieces(fragment)]
    assert first is not None
    return parts, np.dtype(str(first[1][2]))


def tables_of(source: Any, columns: tuple[str, ...]) -> Iterator[Any]:
    """Read triplets from files or from a Dask DataFrame."""
    if hasattr(source, "to_delayed"):
        for partition in source[list(columns)].to_delayed():
            table = arrow().Table.from_pandas(partition.compute(), preserve_index=False)
            yield table.rename_columns(["row", "col", "value"])
        return
    for part in parts_of(source, columns)[0]:
        yield from part.tables()


def _files(source: Any, columns: tuple[str, ...]) -> list[Any]:
    ds, csv = arrow().dataset, source if isinstance(source, CsvFiles) else None
    source = source if csv is None else csv.path
    if isinstance(source, (str, os.PathLike)):
        source = os.fspath(source)
    else:
        source = [os.fspath(path) for path in source]
    names = [source] if isinstance(source, str) else source
    of_arrow = (".arrow", ".feather", ".ipc")
    if isinstance(source, str) and os.path.isdir(source):
        names = os.listdir(source)
    format_ = (
        "ipc" if any(str(name).endswith(of_arrow) for name in names) else "parquet"
    )
    # Each file has its own schema; without this one, Arrow uses that of the first file.
    dataset = ds.dataset(source, format=format_, schema=arrow().schema([]))
    fragments = sorted(dataset.get_fragments(), key=lambda f: f.path)
    if not fragments:
        raise ValueError(f"{source} holds no files of ratings.")
    if csv is not None:
        return [CsvFile(fragment.path, csv, columns[2:]) for fragment in fragments]
    return fragments


def _hint(fragment: Fragment | CsvFile) -> str:
    return CSV if isinstance(fragment, CsvFile) else ""


@contextmanager
def _explained(fragment: Fragment | CsvFile) -> Iterator[None]:
    """Add the file and a remedy to Arrow's errors, which name lines of CSV files."""
    try:
        yield
    except arrow().ArrowInvalid as error:
        raise ValueError(
            f"{fragment.path} cannot be read: {error}{_hint(fragment)}."
        ) from error


def _kind(fragment: Fragment | CsvFile, name: str, kind: str) -> Any:
    pa = arrow()
    type_ = fragment.physical_schema.field(name).type
    where = f"Column {name!r} of {fragment.path}"
    if kind != "identifiers":
        numeric = (
            pa.types.is_integer(type_)
            or pa.types.is_floating(type_)
            or pa.types.is_boolean(type_)
        )
        if not numeric:
            raise TypeError(
                f"{where} has type {type_}; {kind} must be numbers{_hint(fragment)}."
            )
        return value_dtype(np.dtype(type_.to_pandas_dtype()))
    try:
        return kind_of(type_)
    except TypeError as error:
        raise TypeError(f"{where} {error}{_hint(fragment)}.") from None


def _pieces(fragment: Fragment | CsvFile) -> Iterator[Any]:
    """Split a Parquet file at its row groups into pieces of at least `PART_ROWS`."""
    if isinstance(fragment, CsvFile) or not hasattr(fragment, "row_groups"):
        yield fragment
        return
    waiting, rows = [], 0
    for group in fragment.row_groups:
        waiting.append(group.id)
        rows += group.num_rows
        if rows >= PART_ROWS:
            yield fragment.subset(row_group_ids=waiting)
            waiting, rows = [], 0
    if rows:
        yield fragment.subset(row_group_ids=waiting)
