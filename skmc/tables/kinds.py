"""The kind of each column of a table."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np

from skmc.base import bounds_of
from skmc.cells import LikeObserved, is_number
from skmc.tables.column import Column
from skmc.tables.dates import Dates, NotDates
from skmc.tables.empty import Empty
from skmc.tables.frames import position_of, positions_of
from skmc.tables.levels import Categorical, Ordinal, codes, sorted_levels
from skmc.tables.numbers import Numeric
from skmc.tables.raw_column import RawColumn

HALF = 0.5
LEAST_CATEGORIES = 300  # of a column that are completed in any case
MOST_CELLS = 2_500_000  # of the matrix, for further categories of a column
DATES = str, dt.date, dt.timedelta, np.datetime64, np.timedelta64  # and texts of them
NO_CELL = "no observed cell"
# Names, positions, a mask, a slice, or a function of the table that selects columns.
Columns = Sequence[str | int | bool] | str | int | slice | Callable[[Any], Any]


class CannotComplete(Exception):
    """A column cannot be completed; the message gives the reason and the remedy."""


@dataclass(frozen=True)
class Rules:
    """The rules by which the kinds of columns are determined.

    A column that is neither numbers nor ordered levels nor dates is a column of
    categories if at least half of the rows hold a common value: one that occurs in at
    least the share ``min_frequency`` of all rows, and twice. Only these values become
    categories. Any other such column is not completed: identifiers, free text, and
    categories that are mostly missing or rarely repeat. A less frequent value is the
    right completion for less than this share of the cells. A column has
    at most ``1 / min_frequency`` categories, whatever the number of rows.

    Parameters
    ----------
    categorical : collection of int
        Positions of columns of which all values become categories.
    ordinal : mapping of int to tuple
        Levels of columns, lowest first, by position.
    passthrough : collection of int
        Positions of columns that are not completed.
    low, high : ndarray of shape (n_cols,)
        Bounds of numbers, which replace the observed range; NaN where there is none.
    bounded : collection of int
        Positions of the columns whose bounds were given by name.
    between : mapping of int to pair
        Bounds of columns that are dates, durations or texts of them, by position; None
        where there is none.
    min_frequency : float
        Smallest share of the rows in which a category occurs.
    like_observed : bool
        Whether completions have the decimals and the range of the observed values.
    """

    categorical: Collection[int]
    ordinal: Mapping[int, tuple[Any, ...]]
    passthrough: Collection[int]
    low: np.ndarray
    high: np.ndarray
    bounded: Collection[int] = ()
    between: Mapping[int, tuple[Any, Any]] = field(default_factory=dict)
    min_frequency: float = 0.01
    like_observed: bool = True

    @classmethod
    def of(
        cls,
        X: Any,
        *,
        categorical: Columns | None = None,
        ordinal: Mapping[Any, Sequence[Any]] | None = None,
        passthrough: Columns | None = None,
        min_value: Any = None,
        max_value: Any = None,
        **options: Any,
    ) -> Rules:
        """Make rules from the parameters of a completer."""
        names = getattr(X, "columns", ())
        lower, numbers = _dates_among(X, min_value, "min_value")
        upper, others = _dates_among(X, max_value, "max_value")
        low, high = bounds_of(numbers, others, names, X.shape[1])
        ordinal = ordinal or {}
        named = {
            "categorical": categorical,
            "ordinal": ordinal,
            "passthrough": passthrough,
        }
        chosen = {
            name: set(positions_of(X, some, name)) for name, some in named.items()
        }
        levels = {
            position_of(X, c, "ordinal"): tuple(own) for c, own in ordinal.items()
        }
        for first, second in combinations(chosen, 2):
            if both := chosen[first] & chosen[second]:
                raise ValueError(
                    f"column {min(both)} is in {first} and in {second}; list it in one "
                    "of them."
                )
        return cls(
            categorical=chosen["categorical"],
            ordinal=levels,
            passthrough=chosen["passthrough"],
            low=low,
            high=high,
            bounded={
                position_of(X, column, "min_value or max_value")
                for given in (min_value, max_value)
                if isinstance(given, Mapping)
                for column in given
            },
            between={k: (lower.get(k), upper.get(k)) for k in {*lower, *upper}},
            **options,
        )

    def column(self, raw: RawColumn, k: int) -> tuple[Column | None, str]:
        """Describe a column, or give the reason why it is not completed."""
        if k in self.passthrough:
            return None, ""
        if raw.missing.all():
            if k in self.ordinal or k in self.categorical:
                return None, NO_CELL
            return Empty.of(raw, self.low[k], self.high[k]), NO_CELL
        levels = self.ordinal.get(k)
        if levels is None and getattr(raw.dtype, "ordered", False):
            levels = raw.dtype.categories
        if levels is not None:
            return self._ordinal(raw, levels), ""
        if k in self.categorical:
            if odd := _odd(raw.seen):
                raise CannotComplete(
                    f"{raw.label} holds {odd[0]!r}, which is no category (text, "
                    "boolean, number); convert it, or list the column in passthrough"
                )
            return self._categories(raw, {*raw.seen}), ""
        if raw.numeric:
            return self._numeric(raw, k), ""
        try:
            dates = Dates.describe(raw, self._like, *self.between.get(k, (None, None)))
        except NotDates as problem:
            return None, str(problem)
        if dates is not None:
            return dates, ""
        return self._words(raw)

    def wrong_bound(self, raw: RawColumn, k: int, kind: str | None) -> str | None:
        """Say that a bound does not suit the kind of a column that it names."""
        dated = k in self.between
        number = k in self.bounded and not np.isnan([self.low[k], self.high[k]]).all()
        if kind == "date" and number:
            return (
                f"min_value or max_value names {raw.label}, which has no numbers but "
                f"is date; give a date, such as {raw.seen[0]!r}"
            )
        if kind != "date" and dated:
            return (
                f"min_value or max_value of {raw.label} is a date or text, but the "
                f"column is {kind or 'empty'}; leave it out"
            )
        if kind not in ("numeric", "date", None) and number:
            return (
                f"min_value or max_value names {raw.label}, which has no numbers but "
                f"is {kind}; leave it out"
            )
        return None

    def _ordinal(self, raw: RawColumn, levels: Sequence[Any]) -> Ordinal:
        levels = tuple(level for level in levels if not raw.is_mark(level))
        if unknown := set(raw.seen) - set(levels):
            raise CannotComplete(
                f"{raw.label} holds {min(unknown, key=str)!r}, which is not among its "
                f"levels {list(levels)}; add it to ordinal"
            )
        positions = codes(raw.seen, levels)
        admitted = None
        if self.like_observed:
            admitted = tuple(np.unique(positions).tolist())
        return Ordinal.of(positions, levels, raw.seen_weights, admitted)

    def _numeric(self, raw: RawColumn, k: int) -> Numeric:
        if raw.overflow:
            raise CannotComplete(raw.overflow)
        values = raw.floats
        observed = values[~np.isnan(values)]
        exponents = [
            v.as_tuple().exponent
            for v in (() if raw.plain else raw.seen)
            if isinstance(v, Decimal)
        ]
        return Numeric.of(
            observed,
            self._like(observed[:, None], self.low[k], self.high[k]),
            raw.seen_weights,
            exponent=min(exponents, default=None),
        )

    def _like(
        self, values: np.ndarray, low: float = np.nan, high: float = np.nan
    ) -> LikeObserved | None:
        if self.like_observed:
            return LikeObserved.of(values, low, high)
        if np.isnan(low) and np.isnan(high):
            return None
        return LikeObserved.within(np.array([low]), np.array([high]))

    def _words(self, raw: RawColumn) -> tuple[Column | None, str]:
        if odd := _odd(raw.seen):
            return None, f"cells of type {type(odd[0]).__name__}"
        words = [v for v in raw.seen if isinstance(v, str)]
        if 0 < len(words) < len(raw.seen) and not hasattr(raw.dtype, "categories"):
            mixed = f"numbers mixed with text such as {words[0]!r}"
            if raw.missing.any():
                raise CannotComplete(
                    f"{raw.label} has missing cells, and {mixed} in row "
                    f"{raw.values.index(words[0])}; replace the text with NaN, or list "
                    "the column in categorical or in passthrough"
                )
            return None, mixed
        n_rows, count = len(raw.values), Counter(raw.seen)
        least = max(2, math.ceil(self.min_frequency * n_rows))
        common = {value: n for value, n in count.items() if n >= least}
        numbers = [word for word in words if is_number(word)]
        are_numbers = len(numbers) > HALF * len(raw.seen)
        measured = are_numbers and any("." in word for word in numbers)  # not codes
        if sum(common.values()) >= HALF * n_rows and not measured:
            return self._categories(raw, set(common)), ""
        if are_numbers:
            return None, (
                f"numbers stored as text, such as {numbers[0]!r}; convert the column, "
                "for example with pandas.to_numeric"
            )
        share = raw.missing.mean()
        gone = f"{share:.0%} missing, " if share else ""
        cells, different = len(raw.seen), len(count)
        return None, (
            f"{gone}{different} different value{'s' * (different > 1)} in {cells} "
            f"cell{'s' * (cells > 1)}"
        )

    def _categories(self, raw: RawColumn, chosen: set[Any]) -> Categorical:
        most = most_categories(len(raw.values))
        if len(chosen) > most:
            count = Counter(value for value in raw.seen if value in chosen)
            chosen = {*sorted(count, key=lambda v: (-count[v], str(v)))[:most]}
        levels = sorted_levels(raw.dtype, chosen)
        return Categorical.of(codes(raw.seen, levels), levels, raw.seen_weights)


def most_categories(n_rows: int) -> int:
    """Largest number of categories of a column, each of which is a dense column."""
    return max(LEAST_CATEGORIES, MOST_CELLS // max(n_rows, 1))


def _dates_among(X: Any, given: Any, parameter: str) -> tuple[dict[int, Any], Any]:
    """Bounds of columns of dates, by position, and the others."""
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif several or str(getattr(given, "dtype", "")) == "object":
        pairs = list(enumerate(given))
    else:
        return {}, given
    dates = {
        position_of(X, column, parameter): end
        for column, end in pairs
        if isinstance(end, DATES)
    }
    rest: Any = {c: None if isinstance(end, DATES) else end for c, end in pairs}
    return dates, rest if isinstance(given, Mapping) else [*rest.values()]


def _odd(seen: list[Any]) -> list[Any]:
    return [v for v in seen if not isinstance(v, (str, Real, Decimal, np.bool_))]
