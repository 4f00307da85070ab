"""Mixins of completers whose ``fit`` takes more than the matrix."""

from __future__ import annotations

from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skmc.base.completer import BaseCompleter, validated
from skmc.base.factored import RowModels
from skmc.base.identifiers import by_identifier
from skmc.base.reading import read_rows
from skmc.cells import Container, Entries, in_order, labels_of


class TakesWeights(BaseCompleter):
    """Mixin of completers whose ``fit`` takes weights of cells.

    See Also
    --------
    TakesGraphs : Also graphs.
    TakesFeatures : Also graphs and features.
    TakesRowWeights : Weights of rows.
    """

    @validated
    def fit(
        self, X: Container, y: object = None, *, cell_weight: Container | None = None
    ) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            Matrix to complete: masked array, array or list with NaN, DataFrame, Arrow
            table, DataArray of xarray, AnnData, SciPy sparse matrix, tensor or
            `Entries`. `skmc.cells.to_cells` defines which cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks.
            With the truth as ``y``, `sklearn.callback.ScoringMonitor` draws a learning
            curve.
        cell_weight : array of shape (n_samples, n_features) or (n_cells,), optional
            Weight of each cell in the loss, >= 0. A weight of 2 has the effect of
            observing the cell twice; 0 removes it. One number for each cell of
            `Entries`, otherwise a matrix of the shape of ``X``. `transform` counts each
            cell of a new row once. What scikit-learn calls ``sample_weight`` belongs to
            rows. Weights multiply the squared errors of the cells in the loss, in the
            scaling, and where held-out cells choose hyper-parameters or stop the fit.

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
        self._run_fit(X, y, cell_weight=cell_weight)
        return self


class TakesRowWeights(BaseCompleter):
    """Mixin of completers whose ``fit`` takes weights of rows.

    See Also
    --------
    TakesWeights : Weights of cells.
    """

    @validated
    def fit(
        self, X: Container, y: object = None, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            Matrix to complete: masked array, array or list with NaN, DataFrame, Arrow
            table, DataArray of xarray, AnnData, SciPy sparse matrix, tensor or
            `Entries`. `skmc.cells.to_cells` defines which cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks.
            With the truth as ``y``, `sklearn.callback.ScoringMonitor` draws a learning
            curve.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, >= 0; None is 1. A row of weight 2 counts as two equal
            rows. Nothing is learned from a row of weight 0, but it is completed, as a
            new row. Weights are numbers of rows: divide those of a survey by their
            mean, so that priors and penalties keep their strength.

        Returns
        -------
        self
            The fitted completer.

        Raises
        ------
        ValueError
            ``sample_weight`` has another shape, or a weight is negative or NaN, or no
            row with an observed cell has a positive weight.
        """
        self._run_fit(X, y, sample_weight=sample_weight)
        return self


class TakesGraphs(BaseCompleter):
    """Mixin of completers whose ``fit`` takes graphs, and weights of cells.

    See Also
    --------
    TakesFeatures : Also features.
    TakesWeights : Weights alone.
    """

    @validated
    def fit(
        self,
        X: Container,
        y: object = None,
        *,
        row_graph: Container | None = None,
        col_graph: Container | None = None,
        cell_weight: Container | None = None,
    ) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            Matrix to complete: masked array, array or list with NaN, DataFrame, Arrow
            table, DataArray of xarray, AnnData, SciPy sparse matrix, tensor or
            `Entries`. `skmc.cells.to_cells` defines which cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks.
            With the truth as ``y``, `sklearn.callback.ScoringMonitor` draws a learning
            curve.
        row_graph : array, DataFrame or SciPy sparse matrix, optional
            Symmetric weights >= 0 between rows that resemble each other, of shape
            (n_samples, n_samples). The diagonal is ignored. The index and columns of a
            DataFrame are used as for features.
            Weights are divided by the mean degree of the rows.
        col_graph : as row_graph, of shape (n_features, n_features), optional
            Weights between columns.
        cell_weight : array of shape (n_samples, n_features) or (n_cells,), optional
            Weight of each cell in the loss, >= 0. A weight of 2 has the effect of
            observing the cell twice; 0 removes it. One number for each cell of
            `Entries`, otherwise a matrix of the shape of ``X``. `transform` counts each
            cell of a new row once. What scikit-learn calls ``sample_weight`` belongs to
            rows. Weights multiply the squared errors of the cells in the loss, in the
            scaling, and where held-out cells choose hyper-parameters or stop the fit.

        Returns
        -------
        self
            The fitted completer.

        Raises
        ------
        ValueError
            Graphs of other sizes, that are not symmetric or have negative weights, or
            cells whose weight is negative or NaN.
        """
        known = {"row_graph": row_graph, "col_graph": col_graph}
        self._run_fit(X, y, **known, cell_weight=cell_weight)
        return self


class TakesFeatures(BaseCompleter):
    """Mixin of completers whose ``fit`` takes features, graphs and weights of cells.

    See Also
    --------
    TakesGraphs : Graphs and weights.
    TakesWeights : Weights alone.
    """

    @validated
    def fit(
        self,
        X: Container,
        y: object = None,
        *,
        row_features: Container | None = None,
        col_features: Container | None = None,
        row_graph: Container | None = None,
        col_graph: Container | None = None,
        cell_weight: Container | None = None,
    ) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Rows and columns without an observed cell are completed from their features and
        graphs, if there are any.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            Matrix to complete: masked array, array or list with NaN, DataFrame, Arrow
            table, DataArray of xarray, AnnData, SciPy sparse matrix, tensor or
            `Entries`. `skmc.cells.to_cells` defines which cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks.
        row_features : array, DataFrame, tensor or sparse matrix, optional
            Features of the rows, of shape (n_samples, p). If ``X`` has identifiers, the
            lines of a DataFrame are found by its index. Identifiers that only it has
            are rows without a cell. Dense features are standardized; sparse ones are
            divided by one number, and cells that are not stored are 0.
        col_features : as row_features, of shape (n_features, p), optional
            Features of the columns.
        row_graph : array, DataFrame or SciPy sparse matrix, optional
            Symmetric weights >= 0 between rows that resemble each other, of shape
            (n_samples, n_samples). The diagonal is ignored. The index and columns of a
            DataFrame are used as for features.
        col_graph : as row_graph, of shape (n_features, n_features), optional
            Weights between columns.
        cell_weight : array of shape (n_samples, n_features) or (n_cells,), optional
            Weight of each cell in the loss, >= 0. A weight of 2 has the effect of
            observing the cell twice; 0 removes it. One number for each cell of
            `Entries`, otherwise a matrix of the shape of ``X``. `transform` counts each
            cell of a new row once. What scikit-learn calls ``sample_weight`` belongs to
            rows.

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
        self._run_fit(
            X,
            y,
            row_features=row_features,
            col_features=col_features,
            row_graph=row_graph,
            col_graph=col_graph,
            cell_weight=cell_weight,
        )
        return self

    def transform(
        self, X: Container, *, row_features: Container | None = None
    ) -> np.ndarray:
        """Complete rows of the fitted matrix or new rows.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows to complete.
        row_features : as in `fit`, of shape (n_samples, p), optional
            Features of these rows. Without them, the rows of the fitted matrix have the
            features and neighbors of the fit, if ``X`` has exactly its cells. The rows
            of any other ``X`` are treated as average.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The completion in the float dtype of ``X``; a DataArray with the labels of
            ``X`` for a DataArray, and a DataFrame under ``set_output``. Observed cells
            are unchanged unless ``keep_observed=False``. Rows without an observed cell
            are completed from their features if the fit had features or a graph of
            rows, and are filled with the column means otherwise.
        """
        if row_features is None:
            return super().transform(X)
        check_is_fitted(self)
        if isinstance(X, Entries) and X.ids is not None:
            X, known = by_identifier(X, {"row_features": row_features})
            row_features = known["row_features"]
        else:
            rows, _ = labels_of(X)
            row_features = in_order(row_features, rows, None, "row_features")
        cells = read_rows(self, X)
        values = cast(RowModels, self._fitted).with_features(cells, row_features)
        return self._answer(cells, values)
