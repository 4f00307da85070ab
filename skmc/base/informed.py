"""Completers that also learn from features and graphs of rows and of columns."""

from __future__ import annotations

import hashlib
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from skmc.base.completer import validated
from skmc.base.factored import FactoredCompleter
from skmc.base.iterative import Prepared
from skmc.base.priors import Priors
from skmc.base.side_information import (
    FeatureScaling,
    read_features,
    read_graph,
)
from skmc.base.weighted import TakesWeights
from skmc.cells import Entries, Side, SparseObserved

GIVEN = ("row_features", "col_features", "row_graph", "col_graph", "cell_weight")


class InformedEntries(Entries):
    """Observed cells, and what is known about rows and columns besides.

    Parameters
    ----------
    cells : Entries
        The cells, which may have weights.
    sides : pair of tuples of Side
        Linear priors of the rows and of the columns.
    row_scaling : FeatureScaling or None
        How features of rows are scaled.
    fitted : str
        Fingerprint of all cells that were given.
    """

    def __init__(
        self,
        cells: Entries,
        sides: tuple[tuple[Side, ...], tuple[Side, ...]],
        row_scaling: FeatureScaling | None,
        fitted: str,
    ):
        vars(self).update(vars(cells))
        self.sides, self.row_scaling, self.fitted = sides, row_scaling, fitted


class SideInformed(TakesWeights, FactoredCompleter):
    """Base class of factorizations with linear priors on the factors.

    Solvers of subclasses take ``data.sides``, and their row models have ``sides``.

    Parameters
    ----------
    {reading}
    """

    _row_sides: tuple[Side, ...] = field(init=False)

    @validated
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        row_features: Any = None,
        col_features: Any = None,
        row_graph: Any = None,
        col_graph: Any = None,
        cell_weight: Any = None,
    ) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Rows and columns without an observed cell are answered from their features and
        graphs, if there are any.

        Parameters
        ----------
        X : masked array, array or list with NaN, DataFrame, SciPy sparse matrix, \
tensor or `Entries`, of shape (n_samples, n_features)
            Matrix to complete. `skmc.cells.to_cells` defines which cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks.
        row_features : array, DataFrame, tensor or SciPy sparse matrix of shape \
(n_samples, p), optional
            Features of the rows. Dense features are standardized; sparse ones are
            divided by one number, and cells that are not stored are 0.
        col_features : as row_features, of shape (n_features, p), optional
            Features of the columns.
        row_graph : array or SciPy sparse matrix of shape (n_samples, n_samples), \
optional
            Symmetric weights >= 0 between rows that resemble each other. The diagonal
            is ignored.
        col_graph : as row_graph, of shape (n_features, n_features), optional
            Weights between columns.
        cell_weight : array of shape (n_samples, n_features) or (n_cells,), optional
            How often each cell counts, >= 0: 2 is the cell twice, 0 hides it. One
            number for each cell of `Entries`, otherwise a matrix of the shape of ``X``.
            `transform` counts each cell of a new row once. What scikit-learn calls
            ``sample_weight`` belongs to rows.

        Returns
        -------
        self
            The fitted completer.

        Raises
        ------
        ValueError
            Features or graphs of other sizes, features with missing values (complete
            them first), graphs that are not symmetric or have negative weights, or
            cells whose weight is negative or NaN.
        """
        values = (row_features, col_features, row_graph, col_graph, cell_weight)
        given = dict(zip(GIVEN, values, strict=True))
        return self._run_fit(
            X, y, **{name: value for name, value in given.items() if value is not None}
        )

    def _read_to_fit(self, X: Any, **given: Any) -> tuple[Any, Priors]:
        weight = given.pop("cell_weight", None)
        cells, priors = super()._read_to_fit(X, cell_weight=weight)
        if not given and weight is None:
            return cells, priors
        fitted = _fingerprint(getattr(cells, "given", cells))
        sides, scalings = [], []
        for axis, n in zip(("row", "col"), priors.shape, strict=True):
            found, scaling = [], None
            if (name := f"{axis}_features") in given:
                features = read_features(given[name], n, name)
                scaling = FeatureScaling.of(features)
                found.append(scaling.side(features))
            if (name := f"{axis}_graph") in given:
                found.append(read_graph(given[name], n, name))
            sides.append(tuple(found))
            scalings.append(scaling)
        # What has features or neighbors is not empty.
        known: dict[str, Any] = {"informed_rows": bool(sides[0])}
        if sides[0]:
            known["empty_rows"] = np.zeros_like(priors.empty_rows)
        if sides[1]:
            known["empty_cols"] = np.zeros_like(priors.empty_cols)
        informed = InformedEntries(cells, (sides[0], sides[1]), scalings[0], fitted)
        return informed, replace(priors, **known)

    def _observed(self, cells: Entries) -> SparseObserved:
        data = super()._observed(cells)
        if not isinstance(cells, InformedEntries):
            return data
        rows, cols = (
            tuple(side.to(data.values) for side in part) for part in cells.sides
        )
        return replace(data, sides=(rows, cols))

    def _fitted(self, prepared: Prepared, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted = super()._fitted(prepared, outputs)
        cells = prepared.cells
        if isinstance(cells, InformedEntries):
            sides = tuple(side.to("cpu") for side in prepared.data.sides[0])
            fitted["_row_sides"] = sides
            fitted["_row_scaling"] = cells.row_scaling
            fitted["_fitted_cells"] = cells.fitted
        return fitted

    def transform(self, X: Any, *, row_features: Any = None) -> np.ndarray:
        """Complete rows of the fitted matrix or new rows.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows to complete.
        row_features : as in `fit`, of shape (n_samples, p), optional
            Features of these rows. Without them, the rows of the fitted matrix have the
            features and neighbors of the fit, if ``X`` has exactly its cells; rows of
            any other ``X`` count as average.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The completion in the float dtype of ``X``; a DataFrame under
            ``set_output``. Observed cells are unchanged unless
            ``keep_observed=False``. Rows without an observed cell are answered from
            their features if the fit had features or a graph of rows, and are filled
            with the column means otherwise.
        """
        check_is_fitted(self)
        if row_features is None:
            completed: np.ndarray = super().transform(X)
            return completed
        cells = self._read(X, reset=False)
        if (scaling := getattr(self, "_row_scaling", None)) is None:
            raise ValueError(
                "row_features is given, but fit had none; pass them to fit too."
            )
        n_features = len(scaling.shift)
        features = read_features(row_features, len(cells), "row_features", n_features)
        side = scaling.side(features).to(self._models[0].F)
        values = self._priors.fill(cells, self._complete_rows(cells, (side,)))
        return self._written(X, self._completed(cells, values))

    def _is_fitted(self, cells: np.ndarray) -> bool:
        """Whether ``cells`` is the fitted matrix, if that matters."""
        if not hasattr(self, "_fitted_cells") or cells.shape != self._shape:
            return False
        return _fingerprint(Entries(cells)) == self._fitted_cells

    def _known(self, cells: np.ndarray) -> tuple[Side, ...]:
        return self._row_sides if self._is_fitted(cells) else ()

    def _complete_rows(
        self, cells: np.ndarray, known: tuple[Side, ...] | None = None
    ) -> np.ndarray:
        if known is None and self._is_fitted(cells):
            rows = torch.arange(len(cells))
            whole: np.ndarray = self._scaling.undo(self._whole_rows(rows)).numpy()
            return whole
        return super()._complete_rows(cells, known or ())

    def _complete_hidden(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        rest = np.where(hidden, cells.dtype.type(np.nan), cells)
        return self._complete_rows(rest, self._known(cells))


def _fingerprint(cells: Entries) -> str:
    place = cells.rows * cells.matrix_shape[1] + cells.cols
    order = np.argsort(place)
    digest = hashlib.blake2b(place[order].tobytes())
    digest.update(cells.values[order].astype(float).tobytes())
    return digest.hexdigest()
