"""CSV files, whose text is unchanged except in missing cells."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from argparse import Namespace
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from skmc._command.failure import CommandError
from skmc._command.tables import FileColumn, TableFile, bound_names

SEPARATORS = ",;\t|"
NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE
)
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
SIGNS = re.compile(r"[%$€£¥\s]|[^\W\d]+$")  # letters at the end are a unit
# This line declares the separator for Excel.
SEPARATOR_LINE = re.compile(r"sep=(.)(\r\n|\n|\r)")


class Cell(NamedTuple):
    text: str
    start: int  # position of its first character, including quotes
    stop: int


class CSVFile(TableFile):
    """The text of a file and the positions of its cells.

    Only missing cells of the text change: numbers keep their digits, words their
    quotes, lines their ends.
    """

    options = (*TableFile.options, "missing", "separator", "no_header")
    one_column = "; if there are more, pass --separator"
    mark_as_missing = "pass it to --missing, or empty that cell"

    def __init__(self, path: str, options: Namespace):
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        if path.lower().endswith(".gz"):
            try:
                raw = gzip.decompress(raw)
            except (OSError, EOFError, zlib.error) as error:
                raise CommandError(f"{path} is not compressed by gzip") from error
        if b"\0" in raw:
            raise CommandError(f"{path} is not UTF-8 text; save it as UTF-8")
        self.mark = BOM_UTF8 if raw.startswith(BOM_UTF8) else b""
        raw = raw[len(self.mark) :]
        try:
            self.encoding, self.text = "utf-8", raw.decode("utf-8")
        except UnicodeDecodeError:  # every byte is a character of Latin-1
            self.encoding, self.text = "latin-1", raw.decode("latin-1")
        told = SEPARATOR_LINE.match(self.text)
        separator = told[1] if told else _separator(path, self.text)
        self.separator = options.separator or separator
        lines = _cells(self.text, told.end() if told else 0, self.separator, path)
        if not lines:
            raise CommandError(f"{path} is empty")
        first = lines[0][1]
        for line, cells in lines:
            if len(cells) != len(first):
                raise CommandError(
                    f"{path}, line {line}: {len(cells)} cell{'s' * (len(cells) > 1)}, "
                    f"but the first line has {len(first)}"
                )
        self.header: Sequence[Cell] = ()
        names = [str(k + 1) for k in range(len(first))]
        if not options.no_header:
            self.header, lines = first, lines[1:]
            names = [cell.text.strip() or str(k) for k, cell in enumerate(first, 1)]
        if not lines:
            raise CommandError(f"{path} has column names but no rows")
        super().__init__(path, options, names)
        self.lines = [line for line, _ in lines]
        self.cells = [cells for _, cells in lines]
        from skmc.tables import MISSING_WORDS

        self.missing = MISSING_WORDS.union(*options.missing)
        self.comma = _decimal_comma(self.cells, self.separator)
        marks = [self._number(word) for words in options.missing for word in words]
        self.codes = {float(mark) for mark in marks if mark}
        if self._row_like([cell.text.strip() for cell in self.header]):
            self.warn(
                f"{path}: the first line holds numbers and is read as column names; "
                "pass --no-header if it is a row"
            )
        # pandas and R leave the name of a column of row names empty.
        unnamed = self.header and not self.header[0].text.strip()
        self.describe(options, {0} if unnamed else set())

    def values(self, k: int) -> list:
        texts = [cells[k].text for cells in self.cells]
        return [None if self._is_missing(text.strip()) else text for text in texts]

    def _is_missing(self, text: str) -> bool:
        """Tell whether a cell is marked; -999 marks -999.00, too."""
        if text in self.missing:
            return True
        number = self._number(text) if self.codes else None
        return number is not None and float(number) in self.codes

    def place(self, k: int, i: int) -> str:
        line = self.lines[i]
        return f"{self.path}, row {i + 1} (line {line}), column {self.names[k]!r}"

    def ordered(self, k: int, values: list, levels: Sequence) -> FileColumn:
        words = [None if value is None else value.strip() for value in values]
        return super().ordered(k, words, levels)

    def column(self, k: int, values: list, categorical: bool) -> FileColumn:
        name = self.names[k]
        if categorical:
            return FileColumn(name, "category", values)
        if _are_codes([word.strip() for word in values if word is not None]):
            return FileColumn(name, "words", values)
        numbers = [None if word is None else self._number(word) for word in values]
        if not any(numbers):
            if all(self._nearly_number(w) for w in values if w is not None):
                self.warn(
                    f"{self.path}: column {name!r} has numbers with commas between "
                    "thousands, or with a sign or unit such as % or kg, which are read "
                    "as words; remove these characters"
                )
            return FileColumn(name, "words", values)
        wrong = [i for i, word in enumerate(values) if word and not numbers[i]]
        if wrong:
            word = values[wrong[0]]
            more = f" (and {len(wrong) - 1} more)" if wrong[1:] else ""
            why = "is not a number, but other cells of the column are; correct it"
            if re.fullmatch(r"[+-]?\d+(,\d+)+", word.strip()):
                why = (
                    "has a comma, and other numbers of the column do not; write a "
                    "decimal point, or no comma between thousands"
                )
            raise CommandError(
                f"{self.place(k, wrong[0])}: {word!r}{more} {why}, or pass --missing "
                f"{quote(word)}"
                f" (the cell is missing), --categorical {quote(name)} (the numbers are"
                f" names) or --index {quote(name)} (the column stays unchanged)"
            )
        kind = "number"
        if all(re.fullmatch(r"[+-]?\d+", number) for number in numbers if number):
            kind = "whole"
        return self.numbers(k, kind, [None if n is None else float(n) for n in numbers])

    def contents(self) -> bytes:
        """The text with the new values."""
        pieces, at = [], 0
        written = {k: self._known_words(k) for k in self.changes}
        for k in sorted(self.bounds) if self.header else ():
            pieces += [self.text[at : self.header[k].stop], self._beside(k, None)]
            at = self.header[k].stop
        for i, cells in enumerate(self.cells):
            for k in sorted(self.changes):
                cell = cells[k]
                if self.columns[k].values[i] is None:
                    value = self.changes[k][i]
                    quotes = self.text[cell.start : cell.stop].startswith('"')
                    new = written[k].get(value) or self._written(k, value, quotes)
                    pieces += [self.text[at : cell.start], new]
                    at = cell.stop
                if k in self.bounds:
                    pieces += [self.text[at : cell.stop], self._beside(k, i)]
                    at = cell.stop
        pieces.append(self.text[at:])
        return self.mark + "".join(pieces).encode(self.encoding)

    def _beside(self, k: int, i: int | None) -> str:
        """Ends of the interval of a cell, or the names of their columns."""
        if i is None:
            quotes = self.text[self.header[k].start] == '"'
            names = (name.replace('"', '""') for name in bound_names(self.names[k]))
            ends = [f'"{name}"' if quotes else name for name in names]
        else:
            values = [end[i] for end in self.bounds[k]]
            ends = ["" if v is None else self._written(k, v, False) for v in values]
        return "".join(f"{self.separator}{end}" for end in ends)

    def write(self, path: Path) -> None:
        text = self.contents()
        if path.name.removesuffix(".part").lower().endswith(".gz"):
            text = gzip.compress(text, mtime=0)
        path.write_bytes(text)

    def _known_words(self, k: int) -> dict:
        """Categories in the spelling of their first occurrence in the file."""
        if self.columns[k].numeric:
            return {}
        words: dict = {}
        for cells in self.cells:
            cell = cells[k]
            words.setdefault(cell.text, self.text[cell.start : cell.stop])
        return words

    def _written(self, k: int, value: str | float, quotes: bool) -> str:
        if isinstance(value, str):  # a date
            return f'"{value}"' if quotes or self.separator in value else value
        if self.columns[k].kind == "whole":
            text = str(round(value))
        else:
            text = repr(float(value))
        if self.comma:
            text = text.replace(".", ",")
        return f'"{text}"' if quotes else text

    def _number(self, text: str) -> str | None:
        """The number in Python's notation, None if the text is not a number."""
        text = text.strip()
        if self.comma:
            text = text.replace(",", ".")
        return text if NUMBER.fullmatch(text) else None

    def _nearly_number(self, text: str) -> bool:
        """Whether a text is a number except for a sign, a unit or commas."""
        plain = SIGNS.sub("", text)
        return bool(THOUSANDS.fullmatch(plain) or self._number(plain))

    def _row_like(self, texts: list[str]) -> bool:
        """Whether texts are numbers and missing cells instead of names."""
        if texts == ["", *map(str, range(len(texts) - 1))]:
            return False  # pandas writes this above a matrix and its index
        numbers = [self._number(text) for text in texts if text not in self.missing]
        nonempty = [number for number in numbers if number]
        # Names of columns are sometimes years, but never fractions.
        fractions = any(re.search(r"\d\.\d", number) for number in nonempty)
        return bool(nonempty) and (len(nonempty) == len(numbers) or fractions)


def _are_codes(texts: list[str]) -> bool:
    """Whether digits are codes such as 01000: of one width, some with leading zeros."""
    alike = len({len(text) for text in texts}) == 1 and len(texts[0]) > 1
    digits = alike and all(text.isascii() and text.isdigit() for text in texts)
    return digits and any(text.startswith("0") for text in texts)


def _separator(path: str, text: str) -> str:
    """The usual separator that is most frequent in the first line, outside quotes."""
    if path.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    first = re.sub(r'"[^"]*"', "", text.lstrip("\r\n")).split("\n", 1)[0]
    return max(SEPARATORS, key=first.count)


def _decimal_comma(rows: list[list[Cell]], separator: str) -> bool:
    """Whether numbers have a decimal comma."""
    if separator == ",":
        return False
    texts = (cell.text.strip() for cells in rows for cell in cells)
    numbers = (re.fullmatch(r"[+-]?\d+([.,])\d+", text) for text in texts)
    return {number[1] for number in numbers if number} == {","}


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
