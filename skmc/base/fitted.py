"""The result of a fit: the model's value of every cell of any rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.cells import Given, Priors, Scaling
from skmc.new_rows import RowIndex

NOT_IN_MEMORY = (
    "The cells of the fit were not in memory, so there is no reconstruction_ and no "
    "partial_fit; use transform, or fit to an array."
)


@dataclass(eq=False)
class Fitted(ABC):
    """Predictions of a fit for its own rows and for new ones.

    Parameters
    ----------
    statistics : Priors
        Statistics of the observed cells of the fit.

    See Also
    --------
    Outcome : What a fit returns.
    """

    statistics: Priors

    @abstractmethod
    def predict(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        """Predict cells of rows, each of which is completed by itself.

        Parameters
        ----------
        cells : ndarray of shape (k, n_cols)
            Rows, NaN where a cell is missing.
        everywhere : bool
            Whether the values at observed cells are used.

        Returns
        -------
        ndarray of shape (k, n_cols)
            Values are arbitrary in rows and columns that means fill.
        """

    @abstractmethod
    def whole(self) -> np.ndarray:
        """The model's value of every cell of the fitted matrix.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
        """

    def missing(self) -> np.ndarray:
        """The fitted matrix with its missing cells completed, arbitrary elsewhere.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
        """
        return self.whole()

    def rows(self, cells: np.ndarray, everywhere: bool = True) -> np.ndarray:
        """Complete rows: those of the fit as in the fit, others by themselves.

        Parameters
        ----------
        cells : ndarray of shape (k, n_cols)
            Rows, NaN where a cell is missing.
        everywhere : bool, default=True
            Whether the values at observed cells are used.

        Returns
        -------
        ndarray of shape (k, n_cols)
            The model's value of every cell. Means fill rows and columns without any
            information.
        """
        return self.statistics.fill(cells, self.predict(cells, everywhere))

    def of_fitted_rows(self, given: Given, everywhere: bool = True) -> np.ndarray:
        """Result of `rows` for the matrix of the fit, without a look-up.

        Parameters
        ----------
        given : Given
            Input of the fit.
        everywhere : bool, default=True
            The same as in `rows`.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
        """
        return self.rows(given.matrix, everywhere)

    def without(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """Result of `rows` with some cells hidden, also in rows of the fit.

        Parameters
        ----------
        cells : ndarray of shape (k, n_cols)
            Rows, NaN where a cell is missing.
        hidden : bool ndarray of shape (k, n_cols)
            Cells to hide.

        Returns
        -------
        ndarray of shape (k, n_cols)
        """
        rest = np.where(hidden, cells.dtype.type(np.nan), cells)
        return self.rows(rest, everywhere=False)

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Values of single cells of the fitted matrix.

        Parameters
        ----------
        rows, cols : int ndarray of shape (n_cells,)
            Positions of the cells.

        Returns
        -------
        ndarray of shape (n_cells,)
        """
        values: np.ndarray = self.whole()[rows, cols]
        return values


@dataclass(frozen=True, eq=False)
class WarmStart:
    """What a fit leaves for the next one, on the CPU."""

    parameters: list[Tensor] | None = None
    edges: Mapping[str, Tensor] = field(default_factory=dict)  # by the items' name


@dataclass(eq=False)
class Completion(Fitted):
    """The completed matrix, and a map that completes other rows.

    Parameters
    ----------
    statistics : Priors
        Statistics as in `Fitted`.
    completion : ndarray of shape (n_rows, n_cols)
        The model's value of every cell.
    index : RowIndex
        Look-up of the rows of the fit.
    row_map : callable
        Map from new rows (k, n_cols), NaN where missing, to their completion.
    whole_answer : bool, default=False
        Whether the fitted matrix keeps its completion, including its empty rows and
        columns.
    warm : WarmStart, optional
        Where another fit can start.
    """

    completion: np.ndarray
    index: RowIndex
    row_map: Any
    whole_answer: bool = False
    warm: WarmStart = field(default_factory=lambda: WarmStart())

    def predict(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        return self._predicted(cells, self.index.find(cells), everywhere)

    def _predicted(
        self, cells: np.ndarray, position: np.ndarray, everywhere: bool
    ) -> np.ndarray:
        completed = self._own(everywhere)[position].astype(float)
        new = (position < 0) & ~np.isnan(cells).all(1)
        if new.any():
            completed[new] = self._new(cells[new], everywhere)
        return completed

    def _new(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        completed: np.ndarray = self.row_map(cells)
        return completed

    def rows(self, cells: np.ndarray, everywhere: bool = True) -> np.ndarray:
        if self.is_whole(cells):
            return self._own(everywhere)
        return super().rows(cells, everywhere)

    def of_fitted_rows(self, given: Given, everywhere: bool = True) -> np.ndarray:
        if self.whole_answer:
            return self._own(everywhere)
        cells = given.matrix
        completed = self._predicted(cells, self.index.firsts, everywhere)
        return self.statistics.fill(cells, completed)

    def whole(self) -> np.ndarray:
        return self.completion

    def _own(self, everywhere: bool) -> np.ndarray:
        return self.whole() if everywhere else self.missing()

    def is_whole(
        self,
        cells: np.ndarray,  # (k, n_cols)
    ) -> bool:
        """Whether ``cells`` is the fitted matrix, and that keeps its completion."""
        if not self.whole_answer:
            return False
        fitted = self.index.cells
        same = cells.dtype == fitted.dtype and cells.shape == fitted.shape
        return same and np.array_equal(cells, fitted, equal_nan=True)


@dataclass(eq=False)
class MissingCells(Completion):
    """A completion of missing cells; observed ones are predicted when they are used.

    In ``completion``, values at observed cells are arbitrary. ``row_map`` also takes
    whether these are used.
    """

    @abstractmethod
    def everywhere(self) -> np.ndarray:
        """The model's values of the fitted matrix, at least at observed cells.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
        """

    def missing(self) -> np.ndarray:
        return self.completion

    def whole(self) -> np.ndarray:
        return self._whole

    @cached_property
    def _whole(self) -> np.ndarray:
        cells, missing = self.index.cells, np.isnan(self.index.cells)
        if missing.all():
            return self.completion
        values = self.statistics.fill(cells, self.everywhere()).astype(cells.dtype)
        return np.where(missing, self.completion, values)

    def _new(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        completed: np.ndarray = self.row_map(cells, everywhere)
        return completed

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        missing = np.isnan(self.index.cells[rows, cols]).all()
        values: np.ndarray = self._own(everywhere=not missing)[rows, cols]
        return values


@dataclass(eq=False)
class ScaledRows:
    """A map of new rows that works on scaled cells.

    Parameters
    ----------
    scaling : Scaling
        Scaling of the fit, in double precision.
    varies : bool ndarray of shape (n_cols,)
        Columns with at least two values. The fit cannot tell how other columns depend
        on a constant one, so new rows are completed without it.
    folded : callable
        Map that completes scaled rows from their values and mask.
    """

    scaling: Scaling
    varies: np.ndarray
    folded: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        values = torch.from_numpy(cells.astype(float))
        mask = ~torch.isnan(values) & torch.from_numpy(self.varies)
        scaled = torch.where(mask, self.scaling.standardise(values), 0.0)
        return self.scaling.undo(self.folded(scaled, mask)).numpy()


@dataclass(eq=False)
class RowsOnly(Fitted):
    """A map of rows after a fit whose cells were not in memory.

    Parameters
    ----------
    statistics : Priors
        Statistics as in `Fitted`.
    row_map : callable
        Map of rows as in `Completion`.
    """

    row_map: Callable[[np.ndarray], np.ndarray]

    def predict(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        completed = np.empty(cells.shape)
        some = ~np.isnan(cells).all(1)
        if some.any():
            completed[some] = self.row_map(cells[some])
        return completed

    def whole(self) -> np.ndarray:
        raise AttributeError(NOT_IN_MEMORY)


@dataclass
class Outcome:
    """Result of a fit.

    Parameters
    ----------
    fitted : Fitted
        Completion of rows.
    attributes : dict
        Further fitted attributes by name.
    advice : str or None, default=None
        Warning about a fit that did not succeed, with the parameters to change.
    interrupted : bool, default=False
        Whether a `KeyboardInterrupt` ended the fit.

    See Also
    --------
    Fitted : Makes all predictions.
    """

    fitted: Fitted
    attributes: dict[str, Any] = field(default_factory=dict)
    advice: str | None = None
    interrupted: bool = False
