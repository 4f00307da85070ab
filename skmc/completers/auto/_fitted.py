"""Predictions of a stack of fitted estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.base import BaseCompleter, MissingCells
from skmc.cells import Calibration, Layout, Scaling
from skmc.completers._units import standardized, undone
from skmc.linalg import threads_for_rows
from skmc.stacking import Spread

Values = Callable[[Any, np.ndarray], np.ndarray]  # of a member for scaled cells


@dataclass(eq=False)
class Stack:
    """Members and their weights, for new rows.

    Parameters
    ----------
    completers : mapping of str to estimator
        Members, fitted to standardized cells.
    weights : list of ndarray of shape (n_cols,)
        Weight of each member in each column.
    scaling : Scaling
        Scaling of the cells.
    layout : Layout or None, default=None
        What the columns are in a table that the matrix represents. The scores of
        categories are replaced by probabilities before they are weighted.
    calibrations : sequence of Calibration, default=()
        Calibrations of the weighted probabilities of the categories.
    """

    completers: Mapping[str, Any]
    weights: list[np.ndarray]
    scaling: Scaling
    layout: Layout | None = None
    calibrations: Sequence[Calibration] = ()

    def __call__(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        return self.combined(cells, values_of_rows(everywhere))

    def combined(self, cells: np.ndarray, values: Values) -> np.ndarray:
        """The weighted sum of ``values(completer, scaled)``, in the data's units."""
        total = np.zeros(cells.shape)
        for weight, value in self._members(cells, values):
            total += weight * value
        if self.layout is not None:
            total = self.layout.calibrated(total, self.calibrations)
        return undone(total, self.scaling)

    def of_fit(
        self, cells: np.ndarray, used: np.ndarray, everywhere: bool
    ) -> np.ndarray:
        """Values of the rows of the fit; those that were not used are new ones."""
        values = np.empty(cells.shape)
        values[used] = self.combined(cells[used], values_of_fit(everywhere))
        if not used.all():
            values[~used] = self(cells[~used], everywhere)
        return values

    def variance(self, cells: np.ndarray, values: Values) -> np.ndarray:
        """The weighted variance of ``values(completer, scaled)``, in scaled units."""
        mean, square = np.zeros(cells.shape), np.zeros(cells.shape)
        total = np.zeros(cells.shape[1])
        for weight, value in self._members(cells, values):
            total += weight
            off = value - mean
            mean += weight / np.where(total > 0, total, 1) * off
            square += weight * off * (value - mean)
        return square

    def _members(
        self, cells: np.ndarray, values: Values
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Weights and values of each member."""
        scaled = standardized(cells, self.scaling)
        for completer, weight in zip(
            self.completers.values(), self.weights, strict=True
        ):
            value = values(completer, as_seen_by(completer, scaled, self.scaling))
            value = as_scaled(completer, value, self.scaling)
            if self.layout is not None:
                value = self.layout.calibrated(value)
            yield weight, value


def values_of_rows(everywhere: bool) -> Values:
    """Values of members for any rows: of all cells, or of the missing ones."""

    def values(completer: Any, scaled: np.ndarray) -> np.ndarray:
        if isinstance(completer, BaseCompleter):
            return completer._fitted.predict(scaled, everywhere)
        return np.asarray(completer.transform(scaled))

    return values


def values_of_fit(everywhere: bool) -> Values:
    """Values of members for the rows of the fit, if all of them are given."""
    of_others = values_of_rows(everywhere)

    def values(completer: Any, scaled: np.ndarray) -> np.ndarray:
        if isinstance(completer, BaseCompleter) and completer._shape == scaled.shape:
            fitted = completer._fitted
            return fitted.whole() if everywhere else fitted.missing()
        return of_others(completer, scaled)

    return values


@dataclass(eq=False, kw_only=True)
class FittedStack(MissingCells):
    """The completed matrix, and a stack that completes other rows.

    Parameters
    ----------
    spread : Spread
        Spread of the errors on held-out cells.
    order : int ndarray of shape (n_rows,)
        The order of the rows in which the members were fitted.
    used : bool ndarray of shape (n_rows,)
        Mask of the rows that were used in the fit, in this order.
    """

    row_map: Stack
    spread: Spread
    order: np.ndarray
    used: np.ndarray

    @property
    def _rows_of_fit(self) -> np.ndarray:
        """The rows as the members know them."""
        return self.index.cells[self.order]

    def everywhere(self) -> np.ndarray:
        values = self.row_map.of_fit(self._rows_of_fit, self.used, everywhere=True)
        return values[np.argsort(self.order)]

    def without(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        def values(completer: BaseCompleter, scaled: np.ndarray) -> Any:
            if isinstance(completer, BaseCompleter):
                return completer._fitted.without(scaled, hidden)
            return np.asarray(completer.transform(np.where(hidden, np.nan, scaled)))

        rest = np.where(hidden, cells.dtype.type(np.nan), cells)
        return self.statistics.fill(rest, self.row_map.combined(cells, values))

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw completed rows, (n_samples, n_rows, n_cols).

        Errors of held-out cells are added. Categories are drawn by their probabilities.
        """
        missing, errors = np.isnan(cells), self.spread.errors
        if not len(errors.values):
            raise ValueError(
                "sample needs errors of held-out cells, and the fit had too few cells "
                "to hold any out."
            )
        values, std = self.rows(cells), self.deviations(cells)
        draws, layout = [], self.row_map.layout
        for _ in range(n_samples):
            drawn = values + std * errors.draw(missing, rng)
            if layout is not None:
                for columns, category in layout.categories:
                    drawn[:, columns] = category.drawn(values[:, columns], rng)
            draws.append(drawn)
        return np.stack(draws)

    def members_at(self, row: np.ndarray, j: int) -> list[tuple[str, float, float]]:
        """Name, weight and value of each member for a cell of a row (1, n_cols)."""
        stack, cells, k, everywhere = self.row_map, row, 0, not np.isnan(row[0, j])
        values = values_of_rows(everywhere)
        if (position := int(self.index.find(row)[0])) >= 0:
            cells, values = self._rows_of_fit, values_of_fit(everywhere)
            k = int(np.flatnonzero(self.order == position)[0])
        parts_of_cell = []
        with threads_for_rows(cells):
            members = stack._members(cells, values)
            for name, (weight, scaled) in zip(stack.completers, members, strict=True):
                value = undone(scaled[[k]], stack.scaling)[0, j]
                parts_of_cell.append((name, float(weight[j]), float(value)))
        return parts_of_cell

    def deviations(self, cells: np.ndarray) -> np.ndarray:
        """Standard deviations in the units of the matrix; 0 in observed cells."""
        variance = np.zeros(cells.shape)
        position = self.index.find(cells)
        in_fit = position >= 0
        with threads_for_rows(cells):
            if in_fit.any():
                values = values_of_fit(everywhere=False)
                of_fit = self.row_map.variance(self._rows_of_fit, values)
                place = np.argsort(self.order)[position[in_fit]]
                variance[in_fit] = of_fit[place]
            if not in_fit.all():
                values = values_of_rows(everywhere=False)
                variance[~in_fit] = self.row_map.variance(cells[~in_fit], values)
        scale = self.row_map.scaling.scale.numpy()
        std = self.spread.deviations(variance) * scale
        return np.where(np.isnan(cells), std, 0.0)


def as_seen_by(estimator: Any, scaled: np.ndarray, scaling: Scaling) -> np.ndarray:
    """The cells in the units in which an estimator sees them.

    Methods that compare cells of different columns see the data as they are.
    """
    return undone(scaled, scaling) if compares_columns(estimator) else scaled


def as_scaled(estimator: Any, values: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardize values of an estimator; the inverse of `as_seen_by`."""
    return standardized(values, scaling) if compares_columns(estimator) else values


def compares_columns(estimator: Any) -> bool:
    """Whether an estimator completes pictures, whose columns have one unit."""
    tags = getattr(estimator, "completer_tags", None)
    return tags is not None and tags.pictures
