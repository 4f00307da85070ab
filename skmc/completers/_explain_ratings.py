"""Contributions of the cells of a row to a prediction by factors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from skmc.base import (
    NO_POSITION,
    Contribution,
    Explains,
    Explanation,
    by_size,
    check_missing,
    column_of,
    row_of,
)
from skmc.cells import Container, SparseObserved
from skmc.completers._recommend import Recommends

SIDES = "features and graph of the row"


class ExplainsRatings(Explains, Recommends):
    """Mixin of completers whose predictions are sums over the cells of a row."""

    def explain(
        self, X: Container | Mapping[Any, float] | None, row: Any, column: Any
    ) -> Explanation:
        """Say which cells of a row its prediction of a column is made of.

        The value is that of ``transform(X)``, as a sum of contributions; the notes of
        the class say which.

        Parameters
        ----------
        X : container as in `fit`, dict or None
            Rows of the fitted matrix or new rows. A dict from columns to values is one
            new row. None takes the rows of the fit, without reading them again.
        row : int or label
            Row of ``X``: its position, its label in the index of a DataFrame, or its
            identifier if ``X`` is None or `Entries` and the fit had identifiers. 0 for
            a dict.
        column : int or str
            Column: its position, its name or its identifier.

        Returns
        -------
        Explanation
            Without contributions if the row has no observed cell and no features, or
            the column had no cell in the fit: means predict these.

        Raises
        ------
        ValueError
            The cell is observed, unless the cells are counts; there is no such row or
            column; or the row is one of a fit with ``cell_weight``, which is not kept.
        """
        if X is not None and not isinstance(X, Mapping):
            return super().explain(X, row, column)
        check_is_fitted(self)
        fitted, priors = self._fitted, self._priors
        j = column_of(column, self._column_names(), priors.shape[1])
        cells = np.full((1, priors.shape[1]), np.nan)
        if X is None:
            names = None if priors.ids is None else priors.ids[0]
            i = row_of(X, row, priors.shape[0], names)
            name = i if names is None else names[i : i + 1].tolist()[0]
            given, place = fitted.cells_of(torch.tensor([i])), i
            cells[0, given.cols.numpy()] = self._cells(given)
        else:
            row_of(X, row, 1, None)
            _, cols, values, _ = self._read_ratings(X, "X")
            cells[0, cols] = values
            name, given, place = "new", fitted.used(cells, ()), None
        if not priors.counts:
            check_missing(cells[0, j], name, self._named_column(j))
        base, contributions = self._by_means(cells, j), list[Contribution]()
        if base is None:
            base, contributions = self._terms(given, place, j)
        return self._explanation(name, j, base, contributions)

    def _contributions(
        self, cells: np.ndarray, i: int, j: int
    ) -> tuple[float, list[Contribution]]:
        fitted = self._fitted
        if fitted.is_fit(cells):
            return self._terms(fitted.cells_of(torch.tensor([i])), i, j)
        return self._terms(fitted.used(cells[[i]], ()), None, j)

    def _terms(
        self, given: SparseObserved, own: int | None, j: int
    ) -> tuple[float, list[Contribution]]:
        """Terms of the cells of a row, which has the position ``own`` in the fit."""
        base, amounts, prior = self._fitted.terms(given, own, j)
        cols = given.cols.tolist()
        parts = cols, cols, amounts.tolist(), self._cells(given).tolist()
        contributions = by_size(
            [Contribution(*each) for each in zip(*parts, strict=True)]
        )
        if prior:
            contributions.append(Contribution(SIDES, NO_POSITION, prior))
        return base, contributions

    def _cells(self, given: SparseObserved) -> np.ndarray:
        """Scaled cells of a row in the units of the data; counts with their weights."""
        fitted = self._fitted
        if fitted.alpha is not None:
            counts: np.ndarray = given.weighted(torch.ones_like(given.values)).numpy()
            return counts / fitted.alpha
        shift, scale = (
            part[0, given.cols if part.shape[1] > 1 else [0]]
            for part in (fitted.scaling.shift, fitted.scaling.scale)
        )
        cells: np.ndarray = (given.values * scale + shift).numpy()
        return cells
