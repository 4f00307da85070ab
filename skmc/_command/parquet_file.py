"""Parquet files, whose types, column order and pandas index are kept."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skmc._command.failure import CommandError, UsageError, optional
from skmc._command.tables import FileColumn, TableFile, bound_names, whole


class ParquetFile(TableFile):
    """A Parquet file, read and written by Arrow."""

    def __init__(self, path: str, options: Namespace):
        self.arrow = optional("pyarrow", "Parquet", "pyarrow")
        self.parquet = optional("pyarrow.parquet", "Parquet", "pyarrow")
        with open(path, "rb") as file:
            try:
                self.table = self.parquet.read_table(file)
            except (self.arrow.ArrowException, OSError) as error:
                raise CommandError(f"{path} is not a Parquet file ({error})") from error
        if not self.table.num_rows:
            raise CommandError(f"{path} has no rows")
        super().__init__(path, options, self.table.column_names)
        metadata = self.table.schema.pandas_metadata or {}
        index = metadata.get("index_columns", ())  # a RangeIndex is a dictionary
        self.describe(options, [k for k, n in enumerate(self.names) if n in index])

    def place(self, k: int, i: int) -> str:
        return f"{self.path}, row {i + 1}, column {self.names[k]!r}"

    def values(self, k: int) -> list:
        return [None if v != v else v for v in self.table.column(k).to_pylist()]

    def column(self, k: int, values: list, categorical: bool) -> FileColumn:
        types, name = self.arrow.types, self.names[k]
        dtype = self.table.column(k).type
        dictionary = types.is_dictionary(dtype)
        if dictionary and dtype.ordered:
            return FileColumn(name, "level", values, tuple(self._levels(k)))
        if categorical or dictionary or types.is_boolean(dtype):
            return FileColumn(name, "category", values)
        if types.is_integer(dtype):
            return self.numbers(k, "whole", values)
        if types.is_floating(dtype):
            return self.numbers(k, "number", values)
        if types.is_decimal(dtype):
            return FileColumn(name, "number", values)
        return FileColumn(name, "words", values)

    def ordered(self, k: int, values: list, levels: Sequence) -> FileColumn:
        dtype = self.table.column(k).type
        if self.arrow.types.is_dictionary(dtype):
            dtype = dtype.value_type
        try:
            levels = self.arrow.array(levels).cast(dtype).to_pylist()
        except self.arrow.ArrowException as error:
            raise UsageError(
                f"--ordinal {self.names[k]}: the column holds {dtype}, and the levels "
                f"{', '.join(levels)} do not"
            ) from error
        return super().ordered(k, values, levels)

    def write(self, path: Path) -> None:
        arrays = [
            self._array(k) if k in self.changes else column
            for k, column in enumerate(self.table.columns)
        ]
        table = self.arrow.Table.from_arrays(arrays, schema=self.table.schema)
        for k in sorted(self.bounds, reverse=True):
            ends = zip(bound_names(self.names[k]), self.bounds[k], strict=True)
            for after, (name, values) in enumerate(ends, start=1):
                column = self.arrow.array(values, self.arrow.float64())
                table = table.add_column(k + after, name, column)
        self.parquet.write_table(table, path)

    def _levels(self, k: int) -> list:
        column = self.table.column(k).unify_dictionaries().combine_chunks()
        return column.dictionary.to_pylist()

    def _array(self, k: int) -> Any:
        values, dtype = self.changes[k], self.table.column(k).type
        if self.columns[k].kind == "whole":
            values = [whole(value, str(dtype)) for value in values]
        if not self.arrow.types.is_dictionary(dtype):
            return self.arrow.array(values, dtype)
        levels = list(dict.fromkeys([*self._levels(k), *self.columns[k].levels]))
        codes = self.arrow.array([levels.index(v) for v in values], dtype.index_type)
        return self.arrow.DictionaryArray.from_arrays(
            codes, self.arrow.array(levels, dtype.value_type), ordered=dtype.ordered
        )
