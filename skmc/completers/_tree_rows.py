"""Completion of rows by rounds of trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from skmc.base import Completion, Fitted
from skmc.cells import Scaling
from skmc.completers._forests import Forest, Models, predict
from skmc.completers._units import standardized, undone

LARGEST = float(np.finfo(np.float32).max)


@dataclass(eq=False)
class TreeRows:
    """Rounds of models that complete rows one after the other.

    Parameters
    ----------
    rounds : list of list
        Models of each round.
    scaling : Scaling
        Scaling of the fit.
    linear : Fitted or None, default=None
        Linear model, whose residuals the models predict.
    """

    rounds: list[Models]
    scaling: Scaling
    linear: Fitted | None = None

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        return self.predict(cells, np.full(len(cells), -1))

    def predict(self, cells: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Complete rows; ``own`` are their positions in the fitted matrix."""
        X = inputs = scaled(cells, self.scaling)
        start = whole = expected(cells, self.scaling, self.linear)
        for models in self.rounds:
            whole = start + predict(models, inputs, own)
            inputs = filled(X, whole)
        return undone(whole, self.scaling)

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw missing cells column by column, each given those drawn before.

        The columns that represent a category are drawn together.
        """
        X = scaled(cells, self.scaling)
        models = cast("list[Forest]", self.rounds[0] if self.rounds else [])
        drawn = np.repeat(X[None], n_samples, 0)
        known = np.repeat(cells[None], n_samples, 0)
        for model in sorted(models, key=lambda m: np.isnan(X[:, m.predicted[0]]).sum()):
            cols = model.predicted
            rows = np.flatnonzero(np.isnan(X[:, cols[0]]))
            values = model.draw(drawn[:, rows], rng)
            given = known[:, rows].reshape(-1, cells.shape[1])
            linear = expected(given, self.scaling, self.linear)[:, cols]
            at = (slice(None), rows[:, None], cols)
            drawn[at] = values + linear.reshape(values.shape)
            known[at] = undone(drawn[:, rows], self.scaling)[..., cols]
        return undone(np.nan_to_num(drawn), self.scaling)


@dataclass(eq=False)
class FittedTrees(Completion):
    """The completed matrix, and the trees that complete other rows.

    The map of rows also has ``predict(cells, own)``, where ``own`` are the positions of
    the rows in the fitted matrix, -1 for others.
    """

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw completed rows, (n_samples, n_rows, n_cols)."""
        return self.row_map.sample(cells, n_samples, rng)

    def without(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        # Trees that were trained on a fitted row have seen the cells that are hidden
        # here.
        own = self.index.find(cells)
        rest = np.where(hidden, cells.dtype.type(np.nan), cells)
        return self.statistics.fill(rest, self.row_map.predict(rest, own))


def scaled(cells: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardized cells in the precision of scikit-learn's trees."""
    return single(standardized(cells.astype(float), scaling))


def single(cells: np.ndarray) -> np.ndarray:
    """Cells in the precision of scikit-learn's trees."""
    return np.clip(cells, -LARGEST, LARGEST).astype(np.float32)


def expected(cells: np.ndarray, scaling: Scaling, linear: Fitted | None) -> np.ndarray:
    """Standardized predictions of the linear model; without one, the means, zero."""
    if linear is None:
        return np.zeros(cells.shape)
    values = linear.predict(cells, everywhere=True).astype(float)
    return scaled(values, scaling).astype(float)


def filled(X: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), whole, X).astype(np.float32)
