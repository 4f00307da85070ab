"""CSV files, whose text stays unchanged except in missing cells."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from skmc._command.failure import CommandError
from skmc._command.tables import Column, TableFile

# What pandas reads as missing.
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


class CSVFile(TableFile):
    """The text of a file, and where in it the cells are.

    Only missing cells of the text change: numbers keep their digits, words their
    quotes, lines their ends.
    """

    def __init__(self, path: str, options: Namespace):
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        if b"\0" in raw:
            raise CommandError(f"{path} is not UTF-8 text; save it as UTF-8")
        # Bytes that are not UTF-8 are passed through unchanged.
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
        names = [str(k + 1) for k in range(len(first))]
        if not options.no_header:
            names = [
                cell.text.strip() or number
                for cell, number in zip(first, names, strict=True)
            ]
            lines = lines[1:]
        if not lines:
            raise CommandError(f"{path} has column names but no rows")
        super().__init__(path, names)
        self.lines = [line for line, _ in lines]
        self.cells = [cells for _, cells in lines]
        self.missing = MISSING | set(options.missing)
        self.comma = _decimal_comma(self.cells, self.separator)
        if not options.no_header and self._row_like([c.text.strip() for c in first]):
            self.warnings.append(
                f"{path}: the first line holds only numbers and is read as column "
                "names; pass --no-header if it is a row"
            )
        if len(first) == 1:
            texts = [first[0].text, *(c.text for (c,) in self.cells)]
            texts = [text.strip() for text in texts if text.strip()]
            marks = [m for m in SEPARATORS + " " if all(m in text for text in texts)]
            if marks:
                self.warnings.append(
                    f"{path}: only one column was found, but every cell contains "
                    f"{marks[0]!r}; see --separator"
                )
        # pandas and R leave the name of a column of row names empty.
        unnamed = not options.no_header and not first[0].text.strip()
        self.describe(options, {0} if unnamed else set())

    def values(self, k: int) -> list:
        texts = [cells[k].text for cells in self.cells]
        return [None if text.strip() in self.missing else text for text in texts]

    def place(self, k: int, i: int) -> str:
        line = self.lines[i]
        return f"{self.path}, row {i + 1} (line {line}), column {self.names[k]!r}"

    def column(self, k: int, values: list, categorical: bool) -> Column:
        name = self.names[k]
        if categorical:
            return Column(name, "category", values)
        numbers = [None if word is None else self._number(word) for word in values]
        if not any(numbers):
            if all(THOUSANDS.fullmatch(w.strip()) for w in values if w is not None):
                self.warnings.append(
                    f"{self.path}: column {name!r} has numbers with commas between "
                    "thousands, which are read as words; remove the commas"
                )
            return self.words(k, values)
        for i, (word, number) in enumerate(zip(values, numbers, strict=True)):
            if word is not None and number is None:
                raise CommandError(
                    f"{self.place(k, i)}: {word!r} is not a number, but other cells of "
                    f"the column are; correct it, or pass --missing '{word}' (the cell "
                    f"is missing) or --categorical '{name}' (the numbers are names)"
                )
        kind = "number"
        if all(re.fullmatch(r"[+-]?\d+", number) for number in numbers if number):
            kind = "whole"
        return self.numbers(k, kind, [None if n is None else float(n) for n in numbers])

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
        """Categories, written as where they first occur in the file."""
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
        """The number as Python writes it, None if the text is not a number."""
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
        """Tell whether texts are numbers and missing cells rather than names."""
        if texts == ["", *map(str, range(len(texts) - 1))]:
            return False  # pandas writes this above a matrix and its index
        numbers = [self._number(text) for text in texts if text not in self.missing]
        return bool(numbers) and all(numbers)


def _separator(path: str, text: str) -> str:
    """The usual separator that is most frequent in the first line, outside quotes."""
    if path.lower().endswith(".tsv"):
        return "\t"
    first = re.sub(r'"[^"]*"', "", text.lstrip("\r\n")).split("\n", 1)[0]
    return max(SEPARATORS, key=first.count)


def _decimal_comma(rows: list[list[Cell]], separator: str) -> bool:
    """Tell whether numbers have a decimal comma."""
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
    """List ``(line, cells)`` for each row; lines are counted from one.

    Blank lines are skipped. In a file of one column, a blank line between others is a
    missing cell.
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
                f"{path}, line {line}: the quote of cell {len(row) + 1} does not "
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
