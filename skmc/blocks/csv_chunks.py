"""CSV files, read in chunks like the fragments of Arrow's datasets."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from skmc.cells import CsvFiles


@dataclass(frozen=True, eq=False)
class CsvFile:
    """One CSV file, with a part of the interface of a `pyarrow.dataset.Fragment`.

    Arrow's own fragments read ahead without a limit if the file is read faster than its
    rows are used, so that memory would grow with the file.

    Parameters
    ----------
    path : str
        Path of the file.
    files : CsvFiles
        Options for reading it.
    numbers : tuple of str
        Columns that are floats unless ``files`` gives another type.
    """

    path: str
    files: CsvFiles
    numbers: tuple[str, ...]

    @cached_property
    def physical_schema(self) -> Any:
        """Names and types of the columns, from the beginning of the file."""
        with self._open([]) as reader:
            return reader.schema

    def to_batches(self, columns: list[str]) -> Iterator[Any]:
        """Read the file in chunks."""
        with self._open(columns) as reader:
            yield from reader

    def _open(self, columns: list[str]) -> Any:
        import pyarrow.csv

        if self.files.convert_options is None:
            convert = pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(self.numbers, pyarrow.float64()),
                null_values=[""],
                strings_can_be_null=True,
            )
        else:
            convert = copy(self.files.convert_options)
        convert.include_columns = columns  # an empty list means all
        return pyarrow.csv.open_csv(
            self.path, self.files.read_options, self.files.parse_options, convert
        )
