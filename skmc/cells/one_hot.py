"""Categories as columns of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OneHot:
    """A category represented by one column of a matrix for each of its values.

    The columns are one-hot, minus the shares of the categories, and divided by one
    number, so that their variances sum to one.

    Parameters
    ----------
    shares : ndarray of shape (n_levels,)
        Shares of the categories among the observed values.
    deviation : float
        Square root of the total variance of the one-hot columns; 1 where it is 0.
    """

    shares: Floats
    deviation: float

    @property
    def width(self) -> int:
        """Number of the columns."""
        return len(self.shares)

    def encode(
        self,
        values: Floats,  # (n_rows,)
    ) -> Floats:  # (n_rows, width)
        """Represent categories by columns of the matrix."""
        block = self.represent(values[:, None] == np.arange(self.width))
        block[np.isnan(values)] = np.nan
        return block

    def represent(
        self,
        probabilities: np.ndarray,  # (n_rows, width)
    ) -> Floats:  # (n_rows, width)
        """Represent probabilities of the categories by columns of the matrix."""
        block: Floats = (probabilities - self.shares) / self.deviation
        return block

    def decode(
        self,
        block: Floats,  # (n_rows, width)
    ) -> Floats:  # (n_rows,)
        """Find the category with the largest score."""
        return self._scores(block).argmax(1).astype(float)

    def probabilities(
        self,
        block: Floats,  # (n_rows, width)
    ) -> Floats:  # (n_rows, width)
        """Return the probabilities nearest to the scores of the categories.

        Scores estimate the expectations of the one-hot columns, but may be negative.
        The nearest probabilities are the scores of a row minus a common number, with
        negative differences replaced by 0, such that they sum to one.
        """
        scores = self._scores(block)
        descending = -np.sort(-scores, axis=1)
        excess = (descending.cumsum(1) - 1) / np.arange(1, self.width + 1)
        last = (descending > excess).sum(1) - 1
        shifted: Floats = scores - excess[np.arange(len(scores)), last, None]
        return np.maximum(shifted, 0)

    def drawn(
        self,
        block: Floats,  # (n_rows, width)
        rng: np.random.RandomState,
    ) -> Floats:  # (n_rows, width)
        """Draw categories by their probabilities."""
        below = self.probabilities(block).cumsum(1)
        draw = rng.random_sample((len(block), 1)) * below[:, -1:]
        return self.encode((draw >= below).sum(1).astype(float))

    def _scores(self, block: Floats) -> Floats:
        return block * self.deviation + self.shares


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

    def apply(
        self,
        probabilities: Floats,  # (n_rows, n_levels)
        shares: Floats,  # (n_levels,)
    ) -> Floats:  # (n_rows, n_levels)
        """Calibrate probabilities."""
        sharp = sharpened(probabilities, shares, self.power)
        mixed: Floats = (1 - self.weight) * sharp + self.weight * shares
        return mixed


def sharpened(
    probabilities: Floats,  # (n_rows, n_levels)
    shares: Floats,  # (n_levels,)
    power: float,
) -> Floats:  # (n_rows, n_levels)
    """Raise the ratios of probabilities to the shares to a power."""
    ratio = np.zeros(probabilities.shape)
    np.divide(probabilities, shares, out=ratio, where=shares > 0)
    # The largest ratio is 1, which no power makes zero.
    raised: Floats = shares * (ratio / ratio.max(1, keepdims=True)) ** power
    raised /= raised.sum(1, keepdims=True)
    return raised
