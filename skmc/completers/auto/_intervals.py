"""Uncertainty of the cells that `AutoCompleter` completes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skmc.cells import Container
from skmc.tables import numeric_deviations

if TYPE_CHECKING:
    from skmc.completers.auto.completer import AutoCompleter


def predict_std(self: AutoCompleter, X: Container) -> np.ndarray:
    r"""Standard deviation of the cells that `transform` returns.

    At missing cells it is the square root of

    .. math::

        u_{ij}^2 = s_j^2 + \sum_k w_{jk} (X^{(k)}_{ij} - X_{ij})^2,

    where :math:`s_j^2` is the mean squared error of the stack on the held-out cells
    of the column; the error in all columns counts as ten of these cells.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_samples, n_features)
        Rows, which need not be rows of the fit.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Standard deviations; 0 in observed cells. NaN in non-numeric columns, and in
        missing cells if no cells could be held out.
    """
    check_is_fitted(self)
    std = self._fitted.deviations(self._read(X, reset=False))
    return std if self._table is None else numeric_deviations(self._table, std)


def predict_interval(
    self: AutoCompleter, X: Container, level: float = 0.9
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that contain a share ``level`` of the missing cells.

    The half width is the deviation, see `predict_std`, times a quantile of the
    errors on held-out cells in units of their deviations. The share holds on
    average over cells that are missing like these, not for single cells.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_samples, n_features)
        Rows, which need not be rows of the fit.
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
    half = self._fitted.spread.quantile(level) * self._fitted.deviations(cells)
    center = np.where(np.isnan(cells), self._model_values(cells), cells)
    half[~np.isnan(cells)] = 0.0
    return _bound(self, center - half), _bound(self, center + half)


def _bound(completer: AutoCompleter, matrix: np.ndarray) -> np.ndarray:
    if completer._like is not None:
        matrix = completer._like.apply(matrix)
    return matrix if completer._table is None else completer._table.numbers(matrix)
