"""Columns without an observed cell."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from skmc.tables.column import Column, Floats
from skmc.tables.raw_column import RawColumn


@dataclass(frozen=True)
class Empty(Column):
    """A column without an observed cell, which no column of the matrix represents.

    Nothing is known of its cells, which are completed by zero, as by scikit-learn's
    imputers: an estimator that follows in a pipeline takes no missing values.

    Parameters
    ----------
    zero : float, bool or Decimal
        Zero of the type of the column, or the bound that is nearest to it.
    """

    kind: ClassVar[str | None] = None
    zero: float | bool | Decimal

    @classmethod
    def of(cls, raw: RawColumn, low: float, high: float) -> Empty | None:
        """Describe a column without an observed cell."""
        name = str(raw.dtype).lower()
        if name.startswith("bool"):
            return cls(False)
        if name.startswith("decimal"):
            return cls(Decimal(0))
        if raw.plain or name in ("object", "null", "null[pyarrow]"):
            return cls(float(np.fmin(np.fmax(0.0, low), high)))
        return None

    @property
    def width(self) -> int:
        return 0

    def fills(self, raw: RawColumn) -> bool:
        return raw.numeric  # and not words, which are observed in new rows only

    def read(self, raw: RawColumn) -> Floats:
        return np.full(len(raw.missing), np.nan)

    def encode(self, values: Floats) -> Floats:
        return np.empty((len(values), 0))

    def rounded(self, values: Floats) -> Floats:
        return values

    def deviations(self, block: Floats) -> Floats:
        return np.full(len(block), np.nan)

    def decode(self, block: Floats) -> Floats:
        return np.zeros(len(block))

    def error(self, guess: Floats, truth: Floats) -> Floats:
        return np.full(len(guess), np.nan)

    def restore(self, values: Floats) -> list[Any]:
        return [self.zero] * len(values)
