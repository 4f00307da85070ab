"""Columns of ordered levels and of categories."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

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
        codes: Floats,
        levels: tuple[Any, ...],
        weights: Floats | None = None,
        admitted: tuple[float, ...] | None = None,
    ) -> Ordinal:
        """Describe a column by its observed levels.

        Parameters
        ----------
        codes : ndarray of shape (n_observed,)
            Positions of the observed levels.
        levels : tuple
            Levels, lowest first.
        weights : ndarray of shape (n_observed,) or None, default=None
            Weight of each of them.
        admitted : tuple of float or None, default=None
            Positions that completions may have.

        Returns
        -------
        Ordinal
        """
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
class Categorical(Levels):
    """A column of categories, represented by one column for each category.

    The columns are one-hot, minus the shares of the categories, and divided by one
    number, so that their variances sum to one. The completion is the category with
    the largest score. The error is one if the guess is wrong, else zero.

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
    shares: Floats
    deviation: float

    @classmethod
    def of(
        cls, positions: Floats, levels: tuple[Any, ...], weights: Floats | None = None
    ) -> Categorical:
        """Describe a column by its observed categories.

        Parameters
        ----------
        positions : ndarray of shape (n_observed,)
            Positions of the observed categories; NaN for other values.
        levels : tuple
            The categories.
        weights : ndarray of shape (n_observed,) or None, default=None
            Weight of each of them.

        Returns
        -------
        Categorical
        """
        known = ~np.isnan(positions)
        counted = None if weights is None else weights[known]
        count = np.bincount(positions[known].astype(int), counted, len(levels))
        shares = count / count.sum()
        deviation = float((shares * (1 - shares)).sum()) ** 0.5
        return cls(levels, shares, deviation or 1.0)

    @property
    def width(self) -> int:
        return len(self.levels)

    def encode(self, values: Floats) -> Floats:
        block = self.represent(values[:, None] == np.arange(self.width))
        block[np.isnan(values)] = np.nan
        return block

    def represent(self, probabilities: np.ndarray) -> Floats:
        """Represent probabilities of the categories by columns of the matrix.

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, width)
            Probabilities; 1 is the category of an observed cell.

        Returns
        -------
        ndarray of shape (n_rows, width)
        """
        block: Floats = (probabilities - self.shares) / self.deviation
        return block

    def decode(self, block: Floats) -> Floats:
        return self._scores(block).argmax(1).astype(float)

    def rounded(self, values: Floats) -> Floats:
        return values

    def deviations(self, block: Floats) -> Floats:
        return np.full(len(block), np.nan)

    def probabilities(self, block: Floats) -> Floats:
        """Return the probabilities nearest to the scores of the categories.

        Scores estimate the expectations of the one-hot columns, but may be negative.
        The nearest probabilities are the scores of a row minus a common number, with
        negative differences replaced by 0, such that they sum to one.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Columns of the completed matrix.

        Returns
        -------
        ndarray of shape (n_rows, width)
            Probabilities; the largest one belongs to the category that `decode`
            returns.
        """
        scores = self._scores(block)
        descending = -np.sort(-scores, axis=1)
        excess = (descending.cumsum(1) - 1) / np.arange(1, self.width + 1)
        last = (descending > excess).sum(1) - 1
        found: Floats = scores - excess[np.arange(len(scores)), last, None]
        return np.maximum(found, 0)

    def drawn(self, block: Floats, rng: np.random.RandomState) -> Floats:
        """Draw categories by their probabilities.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Columns of the completed matrix.
        rng : RandomState
            Source of random numbers.

        Returns
        -------
        ndarray of shape (n_rows, width)
            Columns of the matrix that represent the draws.
        """
        below = self.probabilities(block).cumsum(1)
        draw = rng.random_sample((len(block), 1)) * below[:, -1:]
        return self.encode((draw >= below).sum(1).astype(float))

    def _scores(self, block: Floats) -> Floats:
        return block * self.deviation + self.shares

    def error(self, guess: Floats, truth: Floats) -> Floats:
        return np.asarray(guess != truth, float)


@dataclass(frozen=True)
class Calibration:
    """Probabilities away from the shares of the categories, and mixed with these.

    Parameters
    ----------
    power : float, default=1.0
        Power of the ratios of the probabilities to the shares, see `sharpened`.
    weight : float, default=0.0
        Weight of the shares.
    """

    power: float = 1.0
    weight: float = 0.0

    def apply(self, probabilities: Floats, shares: Floats) -> Floats:
        """Calibrate probabilities.

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, n_levels)
            Probabilities of the categories.
        shares : ndarray of shape (n_levels,)
            Shares of the categories.

        Returns
        -------
        ndarray of shape (n_rows, n_levels)
        """
        own = sharpened(probabilities, shares, self.power)
        found: Floats = (1 - self.weight) * own + self.weight * shares
        return found


def sharpened(probabilities: Floats, shares: Floats, power: float) -> Floats:
    """Raise the ratios of probabilities to the shares to a power.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_levels)
        Probabilities of the categories.
    shares : ndarray of shape (n_levels,)
        Shares of the categories.
    power : float
        Power, > 0: below 1, the result is nearer to the shares.

    Returns
    -------
    ndarray of shape (n_rows, n_levels)
        Shares times the powers, of sum one.
    """
    ratio = np.zeros(probabilities.shape)
    np.divide(probabilities, shares, out=ratio, where=shares > 0)
    # The largest ratio is 1, which no power makes zero.
    found: Floats = shares * (ratio / ratio.max(1, keepdims=True)) ** power
    found /= found.sum(1, keepdims=True)
    return found


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
        Positions; NaN where a value is not among the levels.
    """
    place = {level: float(code) for code, level in enumerate(levels)}
    return np.array([place.get(v, np.nan) for v in values], float)


def sorted_levels(dtype: object, levels: Iterable[Any]) -> tuple[Any, ...]:
    """Sort categories in the order of pandas' dtype, else numbers before words.

    Parameters
    ----------
    dtype : dtype of NumPy, pandas or polars
        Type of the column.
    levels : iterable
        The categories.

    Returns
    -------
    tuple
    """
    present = set(levels)
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return tuple(c for c in list(categories) if c in present)
    return tuple(sorted(present, key=lambda v: (isinstance(v, str), v)))
