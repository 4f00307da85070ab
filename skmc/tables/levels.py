"""Columns of ordered levels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skmc.tables.column import Column, Floats
from skmc.tables.raw_column import RawColumn


@dataclass(frozen=True)
class Ordinal(Column):
    """A column of ordered levels, represented by their standardized positions.

    The answer is the nearest level. Errors are in levels, relative to the distance of
    the lowest from the highest.

    Parameters
    ----------
    levels : tuple
        The levels, lowest first.
    mean : float
        Mean of the observed positions.
    deviation : float
        Standard deviation of the observed positions; 1 where it is 0.
    """

    kind: ClassVar[str] = "ordinal"
    levels: tuple[Any, ...]
    mean: float
    deviation: float

    @classmethod
    def of(cls, codes: Floats, levels: tuple[Any, ...]) -> Ordinal:
        """Describe a column by its observed levels.

        Parameters
        ----------
        codes : ndarray of shape (n_observed,)
            Positions of the observed levels.
        levels : tuple
            The levels, lowest first.

        Returns
        -------
        Ordinal
        """
        return cls(levels, float(codes.mean()), float(codes.std()) or 1.0)

    def read(self, raw: RawColumn) -> Floats:
        return codes(raw.values, self.levels)

    def encode(self, values: Floats) -> Floats:
        return ((values - self.mean) / self.deviation)[:, None]

    def decode(self, block: Floats) -> Floats:
        number = np.rint(block[:, 0] * self.deviation + self.mean)
        return number.clip(0, len(self.levels) - 1)

    def error(self, guess: Floats, truth: Floats) -> Floats:
        return np.abs(guess - truth) / max(len(self.levels) - 1, 1)

    def restore(self, values: Floats) -> list[Any]:
        return [self.levels[int(code)] for code in values]


def codes(values: Sequence[Hashable], levels: tuple[Any, ...]) -> Floats:
    """Find the positions of values among the levels.

    Parameters
    ----------
    values : sequence
        Values of a column.
    levels : tuple
        Levels or categories.

    Returns
    -------
    ndarray of shape (n_values,)
        NaN where a value is not among the levels.
    """
    place = {level: float(code) for code, level in enumerate(levels)}
    return np.array([place.get(v, np.nan) for v in values], float)
