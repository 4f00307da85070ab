"""CSV files, which come back as they were but for the holes."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from bisect import bisect_right
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skmc._command import tables
from skmc._command.failure import CommandError
from skmc._command.tables import Column
from skmc.base import BaseCompleter

# What pandas takes for missing.
MISSING = {
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
    *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
}
SEPARATORS = ",;\t|"
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


class Cell(NamedTuple):
    text: str
    start: int  # of its characters in the file, quotes included
    stop: int


class CSVFile:
    """The text of a file, and where in it the cells are.

    Nothing of the text is changed but the cells that are missing: numbers keep their
    digits, words their quotes, lines their ends.
    """

    def __init__(self, path: str, options: Namespace):
        self.path = path
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        if b"\0" in raw:
            raise CommandError(f"{path} is no text in UTF-8; save it as such")
        # What is no UTF-8 goes through unchanged, too.
        self.text = raw.decode("utf-8", "surrogateescape")
        start = int(self.text.startswith("\ufeff"))
        self.separator = options.separator or _separator(path, self.text[start:])
        lines = _cells(self.text, start, self.separator, path)
        if not lines:
            raise CommandError(f"{path} is empty")
        first = lines[0][1]
        for line, cells in lines:
            if len(cells) != len(first):
                raise CommandError(
                    f"{path}, line {line}: {_count(len(cells))}, but the first line "
                    f"has {len(first)}"
                )
        self.names = [str(k + 1) for k in range(len(first))]
        if not options.no_header:
            self.names = [
                cell.text.strip() or number
                for cell, number in zip(first, self.names, strict=True)
            ]
            lines = lines[1:]
        if not lines:
            raise CommandError(f"{path} has names of columns, but no row")
        self.lines = [line for line, _ in lines]
        self.cells = [cells for _, cells in lines]
        self.missing = MISSING | set(options.missing)
        self.comma = _decimal_comma(self.cells, self.separator)
        self.doubts = []
        if not options.no_header and self._row_like([c.text.strip() for c in first]):
            self.doubts.append(
                f"warning: {path}: the first line holds numbers only and is taken for "
                "the names of columns; --no-header if it is a row"
            )
        if len(first) == 1:
            texts = [first[0].text, *(c.text for (c,) in self.cells)]
            texts = [text.strip() for text in texts if text.strip()]
            marks = [m for m in SEPARATORS + " " if all(m in text for text in texts)]
            if marks:
                self.doubts.append(
                    f"warning: {path}: only one column was found, but all cells have "
                    f"{marks[0]!r} in them; see --separator"
                )
        index = tables.positions(self.names, options.index, "--index")
        if not options.no_header and not first[0].text.strip():
            index.add(0)  # as pandas and R write row names
        categorical = tables.positions(self.names, options.categorical, "--categorical")
        self.columns = [
            self._column(k, k in index, k in categorical) for k in range(len(first))
        ]
        self.changes: dict[int, list] = {}

    @property
    def n_cells(self) -> int:
        return len(self.cells) * len(self.columns)

    def notes(self) -> list[str]:
        return self.doubts + tables.notes(self.columns, self.path)

    def complete(self, completer: BaseCompleter) -> int:
        """Fill the holes; how many they were."""
        self.changes = tables.complete(self.columns, completer, self.path)
        return sum(self.columns[k].n_missing for k in self.changes)

    def matrix(self) -> np.ndarray:
        return tables.scaled_matrix(self.columns, self.path)

    def contents(self) -> bytes:
        """The text with the new values in it."""
        pieces, at = [], 0
        written = {k: self._known_words(k) for k in self.changes}
        for i, cells in enumerate(self.cells):
            for k in sorted(self.changes):
                if self.columns[k].values[i] is None:
                    cell, value = cells[k], self.changes[k][i]
                    quoted = self.text[cell.start : cell.stop].startswith('"')
                    new = written[k].get(value) or self._digits(k, value, quoted)
                    pieces += [self.text[at : cell.start], new]
                    at = cell.stop
        pieces.append(self.text[at:])
        return "".join(pieces).encode("utf-8", "surrogateescape")

    def write(self, path: Path) -> None:
        path.write_bytes(self.contents())

    def _known_words(self, k: int) -> dict:
        """A category as the file writes it where it comes first."""
        if self.columns[k].numeric:
            return {}
        found: dict = {}
        for cells in self.cells:
            cell = cells[k]
            found.setdefault(cell.text, self.text[cell.start : cell.stop])
        return found

    def _digits(self, k: int, value: float, quoted: bool) -> str:
        if self.columns[k].kind == "whole":
            text = str(round(value))
        else:
            text = repr(float(value))
        if self.comma:
            text = text.replace(".", ",")
        return f'"{text}"' if quoted else text

    def _number(self, text: str) -> str | None:
        """As Python reads it, None if it is no number."""
        text = text.strip()
        if self.comma:
            text = text.replace(",", ".")
        ok = re.fullmatch(
            r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf(inity)?)",
            text,
            re.ASCII | re.IGNORECASE,
        )
        return text if ok else None

    def _row_like(self, texts: list[str]) -> bool:
        """Whether these are numbers, and holes, rather than names."""
        if texts == ["", *map(str, range(len(texts) - 1))]:
            return False  # pandas writes this above a matrix and its index
        numbers = [self._number(text) for text in texts if text not in self.missing]
        return bool(numbers) and all(numbers)

    def _where(self, k: int, i: int) -> str:
        place = f"row {i + 1} (line {self.lines[i]}), column {self.names[k]!r}"
        return f"{self.path}, {place}"

    def _column(self, k: int, index: bool, categorical: bool) -> Column:
        name = self.names[k]
        texts = [cells[k].text for cells in self.cells]
        words = [None if t.strip() in self.missing else t for t in texts]
        if index or not any(words):
            return Column(name, "kept", words)
        if categorical:
            return Column(name, "category", words)
        where = partial(self._where, k)
        numbers = [None if w is None else self._number(w) for w in words]
        if not any(numbers):
            if all(THOUSANDS.fullmatch(w.strip()) for w in words if w is not None):
                self.doubts.append(
                    f"warning: {self.path}: column {name!r} has numbers with commas "
                    "between thousands, which are taken for words; remove the commas"
                )
            return tables.of_words(name, words, where)
        for i, (word, number) in enumerate(zip(words, numbers, strict=True)):
            if word is not None and number is None:
                raise CommandError(
                    f"{where(i)}: {word!r} is not a number, as others there are; "
                    f"correct it, or say --missing '{word}' (nothing is known there) "
                    f"or --categorical '{name}' (numbers are names there)"
                )
        whole = all(re.fullmatch(r"[+-]?\d+", n) for n in numbers if n)
        values = [None if n is None else float(n) for n in numbers]
        return tables.of_numbers(name, "whole" if whole else "number", values, where)


def _separator(path: str, text: str) -> str:
    """The likely character that is most often in the first line, out of quotes."""
    if path.lower().endswith(".tsv"):
        return "\t"
    first = re.sub(r'"[^"]*"', "", text.lstrip("\r\n")).split("\n", 1)[0]
    return max(SEPARATORS, key=first.count)


def _decimal_comma(rows: list[list[Cell]], separator: str) -> bool:
    """Whether numbers have a comma where English has a point."""
    if separator == ",":
        return False
    found = {
        mark
        for cells in rows
        for cell in cells
        if (mark := re.sub(r"[+-]?\d+([.,])\d+", r"\1", cell.text.strip()))
        in (".", ",")
    }
    return found == {","}


def _count(n: int) -> str:
    return f"{n} cell" if n == 1 else f"{n} cells"


def _cells(text: str, start: int, separator: str, path: str) -> list:
    """``(line, cells)`` of each row, lines counted from one; blank ones are none.

    But in a file of one column those between others are missing cells.
    """
    s = re.escape(separator)
    cell = re.compile(rf'(?:"((?:[^"]|"")*)"|((?!")[^{s}\r\n]*))({s}|\r\n|\n|\r|\Z)')
    ends = [match.end() for match in re.finditer(r"\r\n|\n|\r", text)]
    rows: list[tuple[int, list[Cell]]] = []
    row: list[Cell] = []
    at, begun, more = start, start, start < len(text)
    while more:
        match = cell.match(text, at)
        if match is None:
            line = bisect_right(ends, at) + 1
            raise CommandError(
                f"{path}, line {line}: cell {len(row) + 1} opens a quote that does not "
                "close before the next separator"
            )
        quoted, plain, end = match.groups()
        word = plain if quoted is None else quoted.replace('""', '"')
        row.append(Cell(word, at, match.start(3)))
        at = match.end()
        more = end == separator or at < len(text)
        if end != separator:
            rows.append((bisect_right(ends, begun) + 1, row))
            row, begun = [], at
    filled = [
        k
        for k, (_, row) in enumerate(rows)
        if len(row) > 1 or text[row[0].start : row[0].stop].strip()
    ]
    if filled and all(len(rows[k][1]) == 1 for k in filled):
        return rows[filled[0] : filled[-1] + 1]
    return [rows[k] for k in filled]
