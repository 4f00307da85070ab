"""Columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

import numpy as np

from skmc.cells import LikeObserved
from skmc.tables.column import Floats, Standardized, moments
from skmc.tables.raw_column import RawColumn


@dataclass(frozen=True)
class Numeric(Standardized):
    """A column of numbers, represented by one standardized column.

    Parameters
    ----------
    mean : float
        Mean of the observed values.
    deviation : float
        Standard deviation of the observed values; 1 if they are all equal.
    span : float
        Range of the observed values, of which errors are a share; 1 if it is 0.
    like : LikeObserved or None
        Decimals and range of the completions; None does not restrict them.
    exponent : int or None
        Smallest exponent of `decimal.Decimal` values, None if the column has others.
    """

    kind: ClassVar[str | None] = "numeric"
    span: float
    like: LikeObserved | None = None
    exponent: int | None = None

    @classmethod
    def of(
        cls,
        values: np.ndarray,  # (n_observed,)
        like: LikeObserved | None,
        weights: Floats | None = None,  # (n_observed,)
        **others: Any,
    ) -> Self:
        """Describe a column by its observed values."""
        values = values.astype(float)
        span = float(values.max() - values.min())
        if not span:
            return cls(float(values[0]), 1.0, 1.0, like, **others)
        mean, deviation = moments(values, weights)
        return cls(mean, deviation or 1.0, span, like, **others)

    def standardized(self, low: float, high: float) -> tuple[float, float]:
        """Bounds of the values of the matrix that are rounded into some bounds."""
        half = 0.0
        if self.like is not None and not np.isnan(self.like.decimals[0]):
            half = 0.5 * 10.0 ** -self.like.decimals[0]
        low, high = low - half - self.mean, high + half - self.mean
        return low / self.deviation, high / self.deviation

    def read(self, raw: RawColumn) -> Floats:
        return raw.floats.astype(float)

    def rounded(self, values: Floats) -> Floats:
        return values if self.like is None else self.like.apply(values[:, None])[:, 0]

    def error(self, guess: Floats, truth: Floats) -> Floats:
        return np.abs(guess - truth) / self.span

    def restore(self, values: Floats) -> Any:
        if self.exponent is None:
            return values
        unit = Decimal(1).scaleb(self.exponent)
        return [Decimal(repr(float(value))).quantize(unit) for value in values]
