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
        """Whether the missing cells of a column are completed.

        Parameters
        ----------
        raw : RawColumn
            The column of a table.

        Returns
        -------
        bool
        """
        return True

    @abstractmethod
    def read(self, raw: RawColumn) -> Floats:
        """Read the values of a column.

        Parameters
        ----------
        raw : RawColumn
            The column of a table.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers or positions, NaN where missing or unknown.
        """

    @abstractmethod
    def encode(self, values: Floats) -> Floats:
        """Represent the column by columns of the matrix.

        Parameters
        ----------
        values : ndarray of shape (n_rows,)
            Numbers or positions, NaN where missing.

        Returns
        -------
        ndarray of shape (n_rows, width)
        """

    @abstractmethod
    def rounded(self, values: Floats) -> Floats:
        """Return the nearest values that the column admits.

        Parameters
        ----------
        values : ndarray of shape (n_rows,)
            Numbers or positions.

        Returns
        -------
        ndarray of shape (n_rows,)
        """

    @abstractmethod
    def deviations(self, block: Floats) -> Any:
        """Recover standard deviations of the column from those of the matrix.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Standard deviations of the columns of the matrix.

        Returns
        -------
        sequence of length n_rows
            Deviations in the units of the column; NaN where values have no distances.
        """

    @abstractmethod
    def decode(self, block: Floats) -> Floats:
        """Recover the column from the completed matrix.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Columns of the completed matrix.

        Returns
        -------
        ndarray of shape (n_rows,)
        """

    @abstractmethod
    def error(self, guess: Floats, truth: Floats) -> Floats:
        """Compare values with the truth.

        Parameters
        ----------
        guess : ndarray of shape (n_rows,)
            Numbers or positions.
        truth : ndarray of shape (n_rows,)
            Numbers or positions.

        Returns
        -------
        ndarray of shape (n_rows,)
            Errors, between 0 and 1 if the guess is in the range of the column.
        """

    @abstractmethod
    def restore(self, values: Floats) -> Any:
        """Convert numbers and positions to values of the table.

        Parameters
        ----------
        values : ndarray of shape (n_values,)
            Numbers or positions.

        Returns
        -------
        sequence of length n_values
        """


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


def moments(values: Floats, weights: Floats | None) -> tuple[float, float]:
    """Mean and standard deviation of observed cells.

    Parameters
    ----------
    values : ndarray of shape (n_observed,)
        Numbers or positions.
    weights : ndarray of shape (n_observed,) or None
        Weight of each of them; None is 1.

    Returns
    -------
    mean : float
    deviation : float
    """
    mean = np.average(values, weights=weights)
    variance = np.average(np.square(values - mean), weights=weights)
    return float(mean), float(variance) ** 0.5
