"""Calibrations of the categories of a table, chosen on held-out cells."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from skmc.completers._mixtures import calibration
from skmc.tables import Calibration, Source, matrix_weights

PARTS = 5  # of the cells of categories
ENOUGH = 100  # held-out cells of each category, for which no further fit is made


def calibrations_of(
    completer: Any, fitted: Any, source: Source, weights: np.ndarray | None
) -> list[Calibration]:
    """Choose the calibration of each column of categories.

    Parameters
    ----------
    completer : completer
        Unfitted completer of the matrix that represents the table.
    fitted : completer
        The same one, fitted to all cells.
    source : Source
        The table.
    weights : ndarray of shape (n_rows, n_columns) or None
        Weight of each cell.

    Returns
    -------
    list of Calibration
    """
    table, found = source.table, []
    held_out = list(_held_out(completer, fitted, source, weights))
    chosen = [k for k, kind in enumerate(table.kinds) if kind == "categorical"]
    for k, (columns, category) in zip(chosen, table.categories, strict=True):
        parts = [np.flatnonzero(hidden[:, k]) for hidden, _ in held_out]
        rows = np.concatenate(parts)
        blocks = [
            completed[np.ix_(part, columns)]
            for part, (_, completed) in zip(parts, held_out, strict=True)
        ]
        proba = category.probabilities(np.concatenate(blocks))
        true = source.numbers[rows, k].astype(int)
        counts = None if weights is None else weights[rows, k]
        found.append(calibration(proba, true, category.shares, counts))
    return found


def _held_out(
    completer: Any, fitted: Any, source: Source, weights: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Hidden cells of categories, and the completed matrix.

    A fifth of the cells is hidden from another fit, and so on until a hundred cells of
    each category have been held out. If models of other rows predict the rows of a fit,
    no other fit is needed, and all cells are held out, a fifth at a time.
    """
    table, numbers = source.table, source.numbers
    if not table.categories:
        return
    matrix, known = source.matrix, {}
    if weights is not None:
        known["cell_weight"] = matrix_weights(table, weights)
    seen = ~np.isnan(numbers)
    categorical = np.array([kind == "categorical" for kind in table.kinds])
    part = np.random.RandomState(0).randint(PARTS, size=numbers.shape)
    out_of_bag = getattr(fitted, "_out_of_bag", False)
    n_hidden = np.zeros(categorical.sum(), int)
    for number in range(PARTS):
        if not out_of_bag and n_hidden.min() >= ENOUGH:
            break
        hidden = seen & categorical & (part == number)
        hidden[~(seen & ~hidden).any(1)] = False  # not all cells of a row
        n_hidden += hidden[:, categorical].sum(0)
        rest = table.encode(np.where(hidden, np.nan, numbers))
        if out_of_bag:
            gone = np.isnan(rest) & ~np.isnan(matrix)
            yield hidden, fitted._fitted.without(matrix, gone)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those of the fit to all cells suffice
                yield hidden, completer.fit(rest, **known).transform(rest)
