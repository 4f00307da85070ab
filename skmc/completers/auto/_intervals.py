"""How sure `AutoCompleter` is of the cells that it completes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skmc.completers.auto._combination import own_values, reconstruction, variance_of
from skmc.completers.auto._units import standardized


def predict_std(self: Any, X: Any) -> np.ndarray:
    r"""Standard deviation of the cells that `transform` returns.

    In missing cells it is the root of

    .. math::

        u_{ij}^2 = s_j^2 + \sum_k w_{jk} (X^{(k)}_{ij} - X_{ij})^2,

    where :math:`s_j^2` is the mean squared error of the stack on the held-out cells
    of the column; the error in all columns counts as ten of them.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_samples, n_features)
        Rows, whether `fit` has seen them or not.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        0 in observed cells. NaN in columns that are not numbers, and in missing
        cells if no cells could be held out.
    """
    check_is_fitted(self)
    std = _deviations(self, self._read(X, reset=False))
    return std if self._table is None else self._table.deviations(std)


def predict_interval(
    self: Any, X: Any, level: float = 0.9
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that contain a share ``level`` of the missing cells.

    The half width is the deviation, see `predict_std`, times a quantile of the
    errors on held-out cells in units of their deviations. The share holds on
    average over cells that are missing like these, not for single cells.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_samples, n_features)
        Rows, whether `fit` has seen them or not.
    level : float in (0, 1), default=0.9
        Share of the missing cells.

    Returns
    -------
    low : ndarray of shape (n_samples, n_features)
    high : ndarray of shape (n_samples, n_features)
        The interval of an observed cell is its value. With ``like_observed``, the
        bounds are rounded and clipped like the completion. NaN as in `predict_std`.
    """
    check_is_fitted(self)
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}.")
    cells = self._read(X, reset=False)
    half = self._spread.quantile(level) * _deviations(self, cells)
    center = np.where(np.isnan(cells), self._model_values(cells), cells)
    half[~np.isnan(cells)] = 0.0
    return _bound(self, center - half), _bound(self, center + half)


def _deviations(completer: Any, cells: np.ndarray) -> np.ndarray:
    """Standard deviations in the units of the matrix; 0 in observed cells."""
    weights = list(completer.column_weights_.values())
    variance = np.zeros(cells.shape)
    position = completer._rows.find(cells)
    known = position >= 0
    if known.any():
        scaled = standardized(completer._rows.cells, completer._scaling)
        whole = variance_of(completer.completers_, weights, scaled, reconstruction)
        variance[known] = whole[position[known]]
    if not known.all():
        scaled = standardized(cells[~known], completer._scaling)
        variance[~known] = variance_of(
            completer.completers_, weights, scaled, own_values
        )
    std = completer._spread.deviations(variance) * completer._scaling.scale.numpy()
    return np.where(np.isnan(cells), std, 0.0)


def _bound(completer: Any, matrix: np.ndarray) -> np.ndarray:
    if completer._like is not None:
        matrix = completer._like.apply(matrix)
    return matrix if completer._table is None else completer._table.numbers(matrix)
