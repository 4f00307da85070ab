"""Weights of cells: how often each counts in the loss."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from skmc.base.completer import validated
from skmc.base.priors import Priors
from skmc.cells import Entries


class WeightedEntries(Entries):
    """Observed cells, and how often each counts.

    Parameters
    ----------
    given : Entries
        The cells, those of weight 0 included.
    weights : ndarray of shape (n_cells,)
        Their weights.
    """

    def __init__(self, given: Entries, weights: np.ndarray):
        vars(self).update(vars(given[weights > 0]))
        self.given, self.weights = given, weights[weights > 0]


class WeightedMatrix(np.ndarray):
    """A matrix with NaN where a cell is missing, and how often each cell counts.

    Cells of weight 0 are missing. ``given`` is the matrix with these cells. Results of
    NumPy's functions have no weights.
    """

    given: np.ndarray | None = None
    weights: np.ndarray | None = None

    @classmethod
    def of(cls, given: np.ndarray, weights: np.ndarray) -> WeightedMatrix:
        """From a matrix and the weights of all cells.

        Parameters
        ----------
        given : ndarray of shape (n_rows, n_cols)
            NaN where a cell is missing.
        weights : ndarray of shape (n_rows, n_cols)
            Weights >= 0.

        Returns
        -------
        WeightedMatrix
        """
        hidden = weights == 0
        self = np.where(hidden, given.dtype.type(np.nan), given).view(cls)
        self.given, self.weights = given, weights
        return self

    @property
    def identity(self) -> tuple[np.ndarray, np.ndarray | None]:
        """What a checkpoint of another fit would differ in."""
        return np.asarray(self), self.weights


class TakesWeights:
    """Mixin for completers whose loss is a sum over cells, which weights multiply.

    List it right before the base class. If there are weights, ``_fit_cells`` is called
    with `WeightedEntries` or a `WeightedMatrix`.
    """

    @validated
    def fit(self, X: Any, y: Any = None, *, cell_weight: Any = None) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Parameters
        ----------
        X : masked array, array or list with NaN, DataFrame, SciPy sparse matrix, \
tensor or `Entries`, of shape (n_samples, n_features)
            Matrix to complete. `skmc.cells.to_cells` defines which cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks. With the
            truth as ``y``, `sklearn.callback.ScoringMonitor` draws a learning curve.
        cell_weight : array of shape (n_samples, n_features) or (n_cells,), optional
            How often each cell counts, >= 0: 2 is the cell twice, 0 hides it. Weights
            multiply the squared errors of the cells in the loss, in the scaling, and
            where held-out cells choose hyper-parameters or stop the fit. One number for
            each cell of `Entries`, otherwise a matrix of the shape of ``X``.
            `transform` counts each cell of a new row once. What scikit-learn calls
            ``sample_weight`` belongs to rows.

        Returns
        -------
        self
            The fitted completer.

        Raises
        ------
        ValueError
            ``cell_weight`` has another shape, or the weight of an observed cell is
            negative or NaN.
        """
        given = {} if cell_weight is None else {"cell_weight": cell_weight}
        return self._run_fit(X, y, **given)  # type: ignore[attr-defined, no-any-return]

    def _read_to_fit(self, X: Any, **given: Any) -> tuple[Any, Priors]:
        if (weight := given.pop("cell_weight", None)) is None:
            return super()._read_to_fit(X, **given)  # type: ignore[misc]
        found, _ = super()._read_to_fit(X, **given)  # type: ignore[misc]
        cells = found if isinstance(found, Entries) else Entries(found)
        weights = read_weights(weight, X, cells)
        used = weights > 0
        priors = Priors.of(
            cells.rows[used],
            cells.cols[used],
            cells.values[used],
            cells.matrix_shape,
            weights[used],
        )
        if cells is found:
            return WeightedEntries(cells, weights), priors
        dense = np.zeros(cells.matrix_shape, found.dtype)
        dense[cells.rows, cells.cols] = weights
        return WeightedMatrix.of(found, dense), priors


def read_weights(weights: Any, X: Any, cells: Entries) -> np.ndarray:
    """Read how often each cell counts.

    Parameters
    ----------
    weights : array, DataFrame or SciPy sparse matrix
        One number for each cell of ``X`` if it is `Entries`, otherwise a matrix of the
        shape of ``X``.
    X : container
        The argument of ``fit``.
    cells : Entries
        The observed cells of ``X``.

    Returns
    -------
    ndarray of shape (n_cells,)
        Weights of ``cells``.

    Raises
    ------
    ValueError
        Another shape, or an observed cell whose weight is negative or NaN.
    """
    of_cells = isinstance(X, Entries)
    needed = (len(X),) if of_cells else cells.matrix_shape
    shape = np.shape(weights)
    if shape != needed:
        kind = "one number for each cell of X" if of_cells else "the shape of X"
        raise ValueError(
            f"cell_weight has shape {shape}; it must have {kind}, {needed}."
        )
    if of_cells:
        place, first = np.unique(X.rows * X.matrix_shape[1] + X.cols, return_index=True)
        at = np.searchsorted(place, cells.rows * X.matrix_shape[1] + cells.cols)
        found = np.asarray(weights, float)[first[at]]
    elif sp.issparse(weights):
        found = np.asarray(sp.csr_array(weights)[cells.rows, cells.cols], float)
    else:
        found = np.asarray(weights, float)[cells.rows, cells.cols]
    wrong = ~(np.isfinite(found) & (found >= 0))
    if wrong.any():
        k = wrong.argmax()
        raise ValueError(
            f"cell_weight is {found[k]} at row {cells.rows[k]}, column "
            f"{cells.cols[k]}; weights of observed cells must be finite and at least 0."
        )
    return found
