"""Columns of ordered levels and of categories."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skmc.cells import OneHot
from skmc.tables.column import Column, Floats, Standardized, moments
from skmc.tables.raw_column import RawColumn


@dataclass(frozen=True)
class Levels(Column):
    """A column whose values are positions among its levels.

    Parameters
    ----------
    levels : tuple
        Levels, lowest first, or categories.
    """

    levels: tuple[Any, ...]

    def read(self, raw: RawColumn) -> Floats:
        return codes(raw.values, self.levels)

    def restore(self, values: Floats) -> list[Any]:
        return [self.levels[int(code)] for code in values]


@dataclass(frozen=True)
class Ordinal(Standardized, Levels):
    """A column of ordered levels, represented by their standardized positions.

    The completion is the nearest level. Errors are in levels, relative to the distance
    of the lowest from the highest.

    Parameters
    ----------
    levels : tuple
        Levels, lowest first.
    mean : float
        Mean of the observed positions.
    deviation : float
        Standard deviation of the observed positions; 1 where it is 0.
    admitted : tuple of float or None, default=None
        Positions of the levels that completions may have, in ascending order; None
        admits all.
    """

    kind: ClassVar[str | None] = "ordinal"
    admitted: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        codes: Floats,  # (n_observed,)
        levels: tuple[Any, ...],
        weights: Floats | None = None,  # (n_observed,)
        admitted: tuple[float, ...] | None = None,
    ) -> Ordinal:
        """Describe a column by its observed levels."""
        mean, deviation = moments(codes, weights)
        return cls(levels, mean, deviation or 1.0, admitted)

    def rounded(self, values: Floats) -> Floats:
        if self.admitted is None:
            return np.rint(values).clip(0, len(self.levels) - 1)
        admitted = np.array(self.admitted)
        between = (admitted[1:] + admitted[:-1]) / 2
        nearest: Floats = admitted[np.searchsorted(between, values)]
        return np.where(np.isnan(values), np.nan, nearest)

    def error(self, guess: Floats, truth: Floats) -> Floats:
        return np.abs(guess - truth) / max(len(self.levels) - 1, 1)


@dataclass(frozen=True)
class Categorical(OneHot, Levels):
    """A column of categories, represented by one column for each category.

    The completion is the category with the largest score. The error is one if the guess
    is wrong, else zero.

    Parameters
    ----------
    levels : tuple
        The categories.
    shares : ndarray of shape (n_levels,)
        Shares of the categories among the observed values.
    deviation : float
        Square root of the total variance of the one-hot columns; 1 where it is 0.
    """

    kind: ClassVar[str | None] = "categorical"

    @classmethod
    def of(
        cls,
        positions: Floats,  # (n_observed,)
        levels: tuple[Any, ...],
        weights: Floats | None = None,  # (n_observed,)
    ) -> Categorical:
        """Describe a column by its observed categories."""
        seen = ~np.isnan(positions)
        counted = None if weights is None else weights[seen]
        count = np.bincount(positions[seen].astype(int), counted, len(levels))
        shares = count / count.sum()
        deviation = float((shares * (1 - shares)).sum()) ** 0.5
        return cls(levels, shares, deviation or 1.0)

    def rounded(self, values: Floats) -> Floats:
        return values

    def deviations(self, block: Floats) -> Floats:
        return np.full(len(block), np.nan)

    def error(self, guess: Floats, truth: Floats) -> Floats:
        return np.asarray(guess != truth, float)


def codes(values: Sequence[Hashable], levels: tuple[Any, ...]) -> Floats:  # (n_values,)
    """Find the positions of values among the levels."""
    place = {level: float(code) for code, level in enumerate(levels)}
    return np.array([place.get(v, np.nan) for v in values], float)


def sorted_levels(dtype: object, levels: Iterable[Any]) -> tuple[Any, ...]:
    """Sort categories in the order of pandas' dtype, else numbers before words."""
    present = set(levels)
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return tuple(c for c in list(categories) if c in present)
    return tuple(sorted(present, key=lambda v: (isinstance(v, str), v)))
