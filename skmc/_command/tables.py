"""Table files: the kinds of their columns, and the completion of missing cells."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skmc._command.failure import CommandError, UsageError
from skmc._command.file import File, around
from skmc._command.spellings import alike

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from skmc import MixedCompleter, SeriesCompleter
    from skmc.tables import Source, Table

# Beginnings of warnings about what the file tells in its own terms.
TOLD_OF_COLUMNS = "Columns that cannot|Some cells may mark"
TOLD = f"Rows? .* of X ha|X looks like ratings|{TOLD_OF_COLUMNS}"
OF_TABLE = "1 for a wrong category, otherwise a share of the range of its column"
MIN_STEPS, EQUAL_STEPS = 10, 0.9  # of times; and share of steps that are equal
LARGEST = np.sqrt(np.finfo(float).max)  # the square of a larger number overflows


@dataclass
class FileColumn:
    """One column of a file.

    ``kind`` is "number", "whole" (integers), "category", "level"
    (ordered ``levels``), "words" (categories, dates or other text, determined by
    `skmc.tables`), or "kept": the column is returned unchanged and not used.
    """

    name: str
    kind: str
    values: list  # None where missing
    levels: tuple = ()

    @property
    def numeric(self) -> bool:
        return self.kind in ("number", "whole")

    @property
    def empty(self) -> bool:
        return all(value is None for value in self.values)


class TableFile(File, ABC):
    """A file with named columns, of which only the missing cells change."""

    options: ClassVar[tuple[str, ...]] = (
        *("index", "categorical", "ordinal", "draws", "intervals", "time"),
    )
    matrix_of = " Columns are standardized."
    columns: list[FileColumn]
    one_column = ""  # remedy for a file with one column
    mark_as_missing = "empty such cells"

    def __init__(self, path: str, options: Namespace, names: Sequence[str]):
        super().__init__(path, options)
        self.names = list(names)
        self.time: str | None = getattr(options, "time", None)
        self.units: str | None = getattr(options, "unit", None)
        self.drawn: list[dict[int, list]] = []
        self.changes: dict[int, list] = {}  # position of a column -> filled values
        self.bounds: dict[int, tuple[list, ...]] = {}  # ... -> ends of intervals
        self.found: dict[str, list[str]] = {}  # kind that was found -> columns

    @abstractmethod
    def place(self, k: int, i: int) -> str:
        """Name a row and a column for an error message."""

    @abstractmethod
    def column(self, k: int, values: list, categorical: bool) -> FileColumn:
        """Describe a column that may be completed."""

    @abstractmethod
    def values(self, k: int) -> list:
        """Cells of a column, None where missing."""

    def describe(self, options: Namespace, index: Collection[int]) -> None:
        """Determine the kinds of the columns; those in ``index`` are unchanged."""
        index = {*index, *self._chosen(options.index, "--index")}
        if self.time is not None:
            index |= self._chosen([self.time], "--time")
        if self.units is not None:
            index |= self._chosen([self.units], "--unit")
        categorical = self._chosen(options.categorical, "--categorical")
        ordinal = dict(options.ordinal)
        for k in self._chosen(list(ordinal), "--ordinal") & (index | categorical):
            raise UsageError(
                f"--ordinal {self.names[k]}: --index or --categorical names this "
                "column, too; leave one of them out"
            )
        self.columns, problems = [], []
        for k, name in enumerate(self.names):
            values = self.values(k)
            column = FileColumn(name, "kept", values)
            if k not in index and any(value is not None for value in values):
                try:
                    if name in ordinal:
                        column = self.ordered(k, values, ordinal[name])
                    else:
                        column = self.column(k, values, k in categorical)
                except CommandError as problem:
                    problems.append(str(problem))
            self.columns.append(column)
        if len(problems) > 1:
            lines = "\n  ".join(problems)
            raise CommandError(f"{self.path}: {len(problems)} problems\n  {lines}")
        if problems:
            raise CommandError(problems[0])
        for c in self.columns:
            if c.empty:
                what = f"{self.path}: column {c.name!r}"
                self.warn(f"{what} has no observed cell and stays empty")
        if len(self.columns) == 1:
            self.warn(
                f"{self.path}: only one column was found, so its missing cells can only"
                f" be filled with its mean or most frequent value{self.one_column}"
            )

    def _chosen(self, chosen: list[str], option: str) -> set[int]:
        for name in chosen:
            if name not in self.names:
                raise UsageError(
                    f"{option} {name}: no such column; the columns are "
                    f"{', '.join(self.names)}"
                )
        return {k for k, name in enumerate(self.names) if name in chosen}

    def ordered(self, k: int, values: list, levels: Sequence) -> FileColumn:
        """Make a column of ordered levels, the lowest first."""
        for i, value in enumerate(values):
            if value is not None and value not in levels:
                raise CommandError(
                    f"{self.place(k, i)}: {value!r} is not among the levels "
                    f"{', '.join(map(str, levels))}; add it to --ordinal, or "
                    f"{self.mark_as_missing}"
                )
        return FileColumn(self.names[k], "level", values, tuple(levels))

    def numbers(self, k: int, kind: str, values: list) -> FileColumn:
        """Make a column of numbers that all completers accept."""
        for i, value in enumerate(values):
            if value is not None and abs(value) > LARGEST:
                what = "infinite" if np.isinf(value) else "too large to be squared"
                raise CommandError(
                    f"{self.place(k, i)}: {value:g} is {what}; {self.mark_as_missing}"
                )
        return FileColumn(self.names[k], kind, values)

    @property
    def n_cells(self) -> int:
        return sum(len(column.values) for column in self.columns)

    def notes(self) -> list[str]:
        return [
            f"columns {what}: {', '.join(names)}"
            for what, names in self.found.items()
            if names
        ]

    def complete(self, completer: Any) -> int:
        """Fill the missing cells that can be inferred, and count them."""
        from skmc.tables import missing_cells

        if all(c.empty for c in self.columns):
            raise CommandError(
                f"{self.path} has no observed cell; at least one is needed"
            )
        self.warn_of_doubts()
        if self.time is not None:
            return self.complete_series(self.time, self.units, completer)
        kept = [c for c in self.columns if c.kind == "kept" and not c.empty]
        self.found["left unchanged"] = [repr(c.name) for c in kept]
        cells = self.objects()
        if not missing_cells(cells).any():
            return 0
        source = self.source_of(completer, cells)
        if not source.missing.any():
            return 0
        self.fitted = completer
        if self.level is not None:
            gone = np.flatnonzero(source.missing.any(0))
            self.check_names(self.used[p] for p in gone)
        self.hint_at_times(source)
        empty = np.isnan(source.matrix).all(1)
        if empty.any() and len(self.columns) > 1:
            places = f"row {empty.argmax() + 1} has"
            if empty.sum() > 1:
                places = (
                    f"{empty.sum()} rows, the first is row {empty.argmax() + 1}, have"
                )
            self.warn(
                f"{self.path}: {places} no cell to infer others from; means or most "
                "frequent values fill such rows"
            )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", TOLD, UserWarning)
            tables = self.completions(cells)
            for table in tables:
                self.drawn.append(self.filled(self.used, table, source.missing))
            if self.level is not None:
                numbers = source.missing & source.table.numeric
                found = [np.asarray(end)[numbers] for end in self.bounds_of(cells)]
                ends = np.full((2, *cells.shape), np.nan)
                ends[:, numbers] = around(found, tables[0][numbers])
                self.keep_bounds(self.used, ends, numbers)
        self.fitted = completer.completer_
        return int(source.missing.sum())

    @property
    def used(self) -> list[int]:
        """Positions of the columns that may be completed."""
        return [
            k for k, c in enumerate(self.columns) if c.kind != "kept" and not c.empty
        ]

    def objects(self) -> np.ndarray:
        """The columns that may be completed, as objects; None where missing."""
        columns = [self.columns[k] for k in self.used]
        cells = np.empty((len(self.columns[0].values), len(columns)), object)
        for place, column in enumerate(columns):
            cells[:, place] = column.values
        return cells

    def completer_of(self, completer: Any) -> MixedCompleter:
        """Make the completer of the table from one of matrices."""
        from skmc import MixedCompleter

        columns = [self.columns[k] for k in self.used]
        bounds = {
            name: value
            for name in ("min_value", "max_value")
            if (value := getattr(completer, name, None)) is not None
        }
        completer.set_params(**dict.fromkeys(bounds))
        return MixedCompleter(
            completer,
            categorical=[p for p, c in enumerate(columns) if c.kind == "category"],
            ordinal={p: c.levels for p, c in enumerate(columns) if c.levels},
            random_state=self.seed,
            **bounds,
        )

    def source_of(self, completer: MixedCompleter, cells: np.ndarray) -> Source:
        """Read the table as the completer does, and tell what it finds."""
        from skmc.tables import doubtful_date, source_of

        source = source_of(cells, completer)
        for place, kind in enumerate(source.table.kinds):
            doubt = None
            if kind == "date":
                doubt = doubtful_date([*cells[:, place]], source.numbers[:, place])
            if doubt is not None:
                self.warn_of_doubt(self.used[place], *doubt)
        self._tell_of([self.columns[k] for k in self.used], source.table)
        return source

    def filled(
        self, used: Sequence[int], completed: np.ndarray, missing: np.ndarray
    ) -> dict[int, list]:
        """New values of the columns with missing cells; observed cells are exact."""
        by_column = {}
        for place in np.flatnonzero(missing.any(0)).tolist():
            k, new = used[place], completed[:, place].tolist()
            pairs = zip(self.columns[k].values, new, strict=True)
            by_column[k] = [new if old is None else old for old, new in pairs]
        return by_column

    def keep_bounds(
        self, used: Sequence[int], bounds: Any, missing: np.ndarray
    ) -> None:
        """Keep the ends of the intervals of missing numbers."""
        ends = np.array(bounds, object)
        ends[:, ~missing] = None
        for place in np.flatnonzero(missing.any(0)).tolist():
            self.bounds[used[place]] = tuple(ends[:, :, place].tolist())

    def choose(self, k: int) -> None:
        self.changes = self.drawn[k]

    def check_names(self, filled: Iterable[int]) -> None:
        """Check that the names of columns for the ends of intervals are free."""
        for name in (n for k in filled for n in bound_names(self.names[k])):
            if name in self.names:
                raise UsageError(
                    f"--intervals: {self.path} has a column {name!r} already; rename it"
                )

    def _tell_of(self, columns: list[FileColumn], table: Table) -> None:
        """Note the kinds of columns, and those that cannot be inferred."""
        for kind, what in (("categorical", "categories"), ("date", "dates")):
            self.found[f"completed as {what}"] = [
                repr(c.name)
                for c, found in zip(columns, table.kinds, strict=True)
                if found == kind
            ]
        for c, found in zip(columns, table.kinds, strict=True):
            if found == "categorical" and (pair := alike(c.values)):
                one, other = map(repr, pair)
                self.warn(
                    f"{self.path}, column {c.name!r}: {one} and {other} count as "
                    "different categories"
                )
        if table.left:
            names = [f"{columns[k].name!r} ({why})" for k, why in table.left.items()]
            if not any(table.kinds):
                raise CommandError(
                    f"{self.path} has no column that can be completed: "
                    f"{', '.join(names)}; pass a column to --categorical to complete it"
                    " nevertheless"
                )
            first = columns[next(iter(table.left))].name
            self.warn(
                f"{self.path}: columns left unchanged because they cannot be inferred: "
                f"{', '.join(names)}. --categorical {quote(first)} completes a column "
                f"as categories, --index {quote(first)} silences this warning"
            )

    def compared(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The matrix that methods complete, and the table unless it has only numbers.

        Numbers are standardized; NaN where a cell is missing.
        """
        from skmc import MeanCompleter

        self.warn_of_doubts()
        cells = self.objects()
        source = self.source_of(self.completer_of(MeanCompleter()), cells)
        if not source.table.only_numbers:
            self.matrix_of, self.error = "", OF_TABLE
            return source.matrix, cells
        X = source.numbers[:, source.table.numeric]
        deviation = np.nanstd(X, axis=0)
        X = (X - np.nanmean(X, axis=0)) / np.where(deviation > 0, deviation, 1)
        return X, None

    def warn_of_doubts(self) -> None:
        """Warn about cells that may be marks of missing ones."""
        from skmc.tables import doubtful_number, doubtful_word

        for k, c in enumerate(self.columns):
            doubt = None
            if c.numeric:
                doubt = doubtful_number(np.array(c.values, float))
            elif c.kind == "words":
                doubt = doubtful_word(c.values)
            if doubt is not None:
                self.warn_of_doubt(k, *doubt)

    def warn_of_doubt(self, k: int, row: int, doubt: str) -> None:
        self.warn(
            f"{self.place(k, row)}: {doubt}; if it marks missing cells, "
            f"{self.mark_as_missing}"
        )

    def hint_at_times(self, source: Source) -> None:
        """Warn that rows are times if a column of dates has equal steps."""
        if not source.missing[:, source.table.numeric].any():
            return
        for place, kind in enumerate(source.table.kinds):
            steps = np.diff(source.numbers[:, place])
            if kind != "date" or len(steps) < MIN_STEPS or not (steps > 0).all():
                continue
            if (steps == np.median(steps)).mean() >= EQUAL_STEPS:
                name = self.columns[self.used[place]].name
                self.warn(
                    f"{self.path}: column {name!r} has dates of equal steps; if its "
                    f"rows are times of series, pass --time {quote(name)}, which "
                    "completes numbers from earlier and later ones"
                )

    def complete_series(
        self, time: str, unit: str | None, completer: SeriesCompleter
    ) -> int:
        """Complete the columns of numbers over time, and count the completed cells."""
        from skmc.tables import Source, Table

        keys = [self.names.index(name) for name in (time, unit) if name is not None]
        used = [
            k
            for k, column in enumerate(self.columns)
            if k not in keys and column.numeric and not column.empty
        ]
        if not used:
            raise CommandError(f"{self.path} has no column of numbers besides {time!r}")
        others = [c.name for k, c in enumerate(self.columns) if k not in (*keys, *used)]
        unchanged = [*(self.names[k] for k in keys), *others]
        self.found["left unchanged"] = [repr(name) for name in unchanged]
        cells = np.array([self.columns[k].values for k in used], object).T
        source = Source.of(Table.of(cells), cells)
        rows = np.empty((len(cells), len(keys) + len(used)), object)
        for key, what in zip(keys, ("time", "unit"), strict=False):
            if gone := [i for i, v in enumerate(self.values(key)) if v is None]:
                raise CommandError(
                    f"{self.place(key, gone[0])}: the {what} of this row is missing; "
                    "fill it in, or remove the row"
                )
        rows[:, 0] = _times(self.values(keys[0]))
        for k in keys[1:]:
            rows[:, 1] = self.values(k)
        rows[:, len(keys) :] = source.numbers
        self.fitted = completer
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "time=0 is not sorted")
            try:
                completion = self.fitted.fit(rows).transform(rows)
            except ValueError as problem:
                reason = str(problem)
                for own in ("time=0", "column 0"):
                    reason = reason.replace(own, f"column {time!r}")
                reason = reason.replace("unit=1", f"column {unit!r}")
                raise CommandError(f"{self.path}: {reason}") from problem

        def completed(found: Any) -> np.ndarray:
            """The completed columns of numbers."""
            return np.asarray(source.completed(found[:, len(keys) :].astype(float)))

        self.drawn = [self.filled(used, completed(completion), source.missing)]
        if self.level is not None:
            self.check_names(self.drawn[0])
            ends = completer.predict_interval(rows, self.level)
            self.keep_bounds(used, [completed(end) for end in ends], source.missing)
        return int(source.missing.sum())


def _times(values: list) -> list:
    """Whole numbers, such as years, or the texts and dates of a column."""
    try:
        return [int(str(value)) for value in values]
    except (TypeError, ValueError):
        return values


def bound_names(name: str) -> tuple[str, str]:
    """Names of the columns for the ends of an interval."""
    return f"{name} lower", f"{name} upper"


def whole(value: float | int, dtype: DTypeLike) -> int:
    """Round to the nearest number of an integer type; observed integers are exact."""
    if isinstance(value, int):
        return value
    limits = np.iinfo(dtype)
    return min(max(round(float(value)), int(limits.min)), int(limits.max))
