"""The interface of the columns of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skmc.tables.raw_column import RawColumn

Floats = NDArray[np.float64]


class Column(ABC):
    """A column of a table, which one or more columns of a matrix represent.

    Its values are numbers; levels and categories are represented by their positions.
    """

    kind: ClassVar[str | None]

    @property
    def width(self) -> int:
        """Number of columns of the matrix that represent this column."""
        return 1

    def fills(self, raw: RawColumn) -> bool:
        """Whether the missing cells of a column are completed."""
        return True

    @abstractmethod
    def read(self, raw: RawColumn) -> Floats:  # (n_rows,)
        """Read the values of a column."""

    @abstractmethod
    def encode(
        self,
        values: Floats,  # (n_rows,)
    ) -> Floats:  # (n_rows, width)
        """Represent the column by columns of the matrix."""

    @abstractmethod
    def rounded(
        self,
        values: Floats,  # (n_rows,)
    ) -> Floats:  # (n_rows,)
        """Return the nearest values that the column admits."""

    @abstractmethod
    def deviations(
        self,
        block: Floats,  # (n_rows, width)
    ) -> Any:
        """Recover standard deviations of the column from those of the matrix."""

    @abstractmethod
    def decode(
        self,
        block: Floats,  # (n_rows, width)
    ) -> Floats:  # (n_rows,)
        """Recover the column from the completed matrix."""

    @abstractmethod
    def error(
        self,
        guess: Floats,  # (n_rows,)
        truth: Floats,  # (n_rows,)
    ) -> Floats:  # (n_rows,)
        """Compare values with the truth."""

    @abstractmethod
    def restore(
        self,
        values: Floats,  # (n_values,)
    ) -> Any:
        """Convert numbers and positions to values of the table."""


@dataclass(frozen=True)
class Standardized(Column):
    """A column of values with distances, represented by one standardized column.

    Parameters
    ----------
    mean : float
        Mean of the observed values.
    deviation : float
        Standard deviation of the observed values; 1 where it is 0.
    """

    mean: float
    deviation: float

    def encode(self, values: Floats) -> Floats:
        return ((values - self.mean) / self.deviation)[:, None]

    def decode(self, block: Floats) -> Floats:
        return self.rounded(block[:, 0] * self.deviation + self.mean)

    def deviations(self, block: Floats) -> Any:
        return block[:, 0] * self.deviation


def moments(
    values: Floats,  # (n_observed,)
    weights: Floats | None,  # (n_observed,)
) -> tuple[float, float]:
    """Mean and standard deviation of observed cells."""
    mean = np.average(values, weights=weights)
    variance = np.average(np.square(values - mean), weights=weights)
    return float(mean), float(variance) ** 0.5
