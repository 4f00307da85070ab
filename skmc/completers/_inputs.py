"""The inputs of the model of each column, of which wide tables have too many."""

from __future__ import annotations

import numpy as np

MOST_INPUTS = 50  # of a model
PRIOR_ROWS = 10  # without correlation, so that a few common rows do not count as much
CELLS_AT_ONCE = 2**22  # of a block of correlations


def most_correlated(
    X: np.ndarray, predicted: list[np.ndarray], inputs: list[np.ndarray]
) -> list[np.ndarray]:
    """Choose at most 50 inputs of each model: the most correlated columns.

    The time of all models then grows with the number of columns, not with its square.
    Correlations are those of the rows in which both columns are observed, and ten rows
    without correlation.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_cols)
        Standardized cells, NaN where missing.
    predicted : list of ndarray
        Columns that each model predicts. The largest of their correlations counts.
    inputs : list of ndarray
        Columns that each model may use, in ascending order.

    Returns
    -------
    list of ndarray
        Columns that each model uses, in ascending order.
    """
    if max(map(len, inputs), default=0) <= MOST_INPUTS:
        return inputs
    seen = (~np.isnan(X)).astype(float)
    Z = np.nan_to_num(X).astype(float)
    squares, chosen = Z * Z, []
    at_once = max(1, CELLS_AT_ONCE // X.shape[1])
    for start in range(0, len(predicted), at_once):
        part = slice(start, start + at_once)
        cols = np.concatenate(predicted[part])
        size = (squares[:, cols].T @ seen) * (seen[:, cols].T @ squares)
        common = seen[:, cols].T @ seen
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.abs(Z[:, cols].T @ Z) / np.sqrt(size)
        found = np.nan_to_num(found, posinf=0.0) * common / (common + PRIOR_ROWS)
        first = 0
        for own, others in zip(predicted[part], inputs[part], strict=True):
            score = found[first : first + len(own), others].max(0)
            first += len(own)
            best = np.argsort(-score, kind="stable")[:MOST_INPUTS]
            chosen.append(others[np.sort(best)])
    return chosen
