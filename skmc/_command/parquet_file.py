"""Parquet files; types, the order of columns and pandas' index stay."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skmc._command import tables
from skmc._command.failure import CommandError, optional
from skmc._command.tables import Column
from skmc.base import BaseCompleter


class ParquetFile:
    def __init__(self, path: str, options: Namespace):
        self.path = path
        self.arrow = optional("pyarrow", "Parquet", "pyarrow")
        parquet = optional("pyarrow.parquet", "Parquet", "pyarrow")
        with open(path, "rb") as file:
            try:
                self.table = parquet.read_table(file)
            except (self.arrow.ArrowException, OSError) as error:
                raise CommandError(f"{path} is no Parquet file ({error})") from error
        if not self.table.num_rows:
            raise CommandError(f"{path} has no row")
        names = self.table.column_names
        index = tables.positions(names, options.index, "--index")
        index |= {
            names.index(name) for name in self._index_of_pandas() if name in names
        }
        categorical = tables.positions(names, options.categorical, "--categorical")
        self.columns = [
            self._column(k, k in index, k in categorical) for k in range(len(names))
        ]
        self.changes: dict[int, list] = {}

    @property
    def n_cells(self) -> int:
        return self.table.num_rows * self.table.num_columns

    def notes(self) -> list[str]:
        return tables.notes(self.columns, self.path)

    def complete(self, completer: BaseCompleter) -> int:
        """Fill the holes; how many they were."""
        self.changes = tables.complete(self.columns, completer, self.path)
        return sum(self.columns[k].n_missing for k in self.changes)

    def matrix(self) -> np.ndarray:
        return tables.scaled_matrix(self.columns, self.path)

    def write(self, path: Path) -> None:
        parquet = optional("pyarrow.parquet", "Parquet", "pyarrow")
        arrays = [
            self._array(k, self.changes[k]) if k in self.changes else column
            for k, column in enumerate(self.table.columns)
        ]
        table = self.arrow.Table.from_arrays(arrays, schema=self.table.schema)
        parquet.write_table(table, path)

    def _index_of_pandas(self) -> list:
        metadata = self.table.schema.pandas_metadata or {}
        return [c for c in metadata.get("index_columns", ()) if isinstance(c, str)]

    def _where(self, k: int, i: int) -> str:
        return f"{self.path}, row {i + 1}, column {self.table.column_names[k]!r}"

    def _column(self, k: int, index: bool, categorical: bool) -> Column:
        types, column = self.arrow.types, self.table.column(k)
        name, dtype = self.table.column_names[k], column.type
        values = [None if v != v else v for v in column.to_pylist()]
        where = partial(self._where, k)
        if index or all(value is None for value in values):
            return Column(name, "kept", values)
        dictionary = types.is_dictionary(dtype)
        if dictionary and dtype.ordered:
            return Column(name, "level", values, tuple(self._levels(column)))
        if categorical or dictionary or types.is_boolean(dtype):
            return Column(name, "category", values)
        if types.is_integer(dtype):
            return tables.of_numbers(name, "whole", values, where)
        if types.is_floating(dtype):
            return tables.of_numbers(name, "number", values, where)
        if types.is_string(dtype) or types.is_large_string(dtype):
            return tables.of_words(name, values, where)
        reason = f"cells of type {dtype} are not completed"
        return tables.kept_whole(name, values, reason, where)

    def _levels(self, column: Any) -> list:
        return column.unify_dictionaries().combine_chunks().dictionary.to_pylist()

    def _array(self, k: int, values: list) -> Any:
        column = self.table.column(k)
        dtype = column.type
        if self.columns[k].kind == "whole":
            values = [tables.whole(value, str(dtype)) for value in values]
        if not self.arrow.types.is_dictionary(dtype):
            return self.arrow.array(values, dtype)
        levels = self._levels(column)
        codes = self.arrow.array([levels.index(v) for v in values], dtype.index_type)
        return self.arrow.DictionaryArray.from_arrays(
            codes, self.arrow.array(levels, dtype.value_type), ordered=dtype.ordered
        )
