"""Columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skmc.tables.column import Column, Floats


@dataclass(frozen=True)
class Numeric(Column):
    """A column of numbers, represented by one standardized column.

    Parameters
    ----------
    mean : float
        Mean of the observed values.
    deviation : float
        Standard deviation of the observed values; 1 where it is 0.
    span : float
        Range of the observed values; 1 where it is 0. Errors are relative to it.
    """

    kind: ClassVar[str] = "numeric"
    mean: float
    deviation: float
    span: float

    @classmethod
    def of(cls, values: Floats) -> Numeric:
        """Describe a column by its observed values.

        Parameters
        ----------
        values : ndarray of shape (n_observed,)
            Observed values of the column.

        Returns
        -------
        Numeric
        """
        span = float(values.max() - values.min()) or 1.0
        return cls(float(values.mean()), float(values.std()) or 1.0, span)

    def encode(self, values: Floats) -> Floats:
        return ((values - self.mean) / self.deviation)[:, None]

    def decode(self, block: Floats) -> Floats:
        return block[:, 0] * self.deviation + self.mean

    def error(self, guess: Floats, truth: Floats) -> Floats:
        return np.abs(guess - truth) / self.span

    def restore(self, values: Floats) -> Floats:
        return values
