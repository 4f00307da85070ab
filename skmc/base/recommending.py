"""Ranking the columns of each row, and completing rows that have features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skmc.base.completer import BaseCompleter
from skmc.base.factored import RowModels
from skmc.base.identifiers import positions
from skmc.blocks import RowReader
from skmc.cells import Container, check_positions

BLOCK = 2**23  # numbers of a product of factors


def recommend_from_factors(
    self: BaseCompleter, users: ArrayLike, n: int = 10, *, exclude_seen: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Find the columns with the largest predictions in each of some rows.

    Parameters
    ----------
    self : completer
        Fitted, with ``row_factors_`` and ``col_factors_``.
    users : array-like of shape (n_users,)
        Rows: zero-based positions; after a fit to `Entries.from_parquet` or
        `Entries.from_dask`, identifiers as in the files.
    n : int >= 1, default=10
        Number of columns for each row.
    exclude_seen : bool, default=True
        Whether to leave out the observed cells of the fit. After a fit to files,
        this needs the folder of the blocks, see `Entries.from_parquet`.

    Returns
    -------
    items : masked ndarray of shape (n_users, n)
        Positions or identifiers of columns, best first. Masked where fewer than
        ``n`` columns are left.
    values : masked ndarray of shape (n_users, n)
        Their predictions.

    Raises
    ------
    FileNotFoundError
        The blocks of the fit no longer exist.

    Notes
    -----
    Rows are ranked in blocks of 2**23 predictions. For approximate search, hand
    ``row_factors_`` and ``col_factors_`` to a library for it: with one scale for
    all columns, predictions have the order of the products of factors.
    """
    check_is_fitted(self)
    fitted = cast(RowModels, self._fitted)
    priors = fitted.statistics
    if not n >= 1:
        raise ValueError(f"n must be >= 1, got {n!r}.")
    users = np.atleast_1d(users)
    if priors.ids is None:
        n_rows = priors.shape[0]
        rows = check_positions(users, np.zeros(len(users), int), (n_rows, 1))[0]
    else:
        rows = positions(priors.ids[0], users, "users")
    found = min(n, priors.shape[1])
    size = max(1, BLOCK // priors.shape[1])
    items = np.full((len(rows), n), -1)
    values = np.full((len(rows), n), -np.inf)
    seen_in = _seen_reader(fitted) if exclude_seen else None
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        whole = _all_values(fitted, part)
        if seen_in is not None:
            whole[seen_in(part)] = -torch.inf
        best = whole.topk(found)
        values[start : start + size, :found] = best.values.numpy()
        items[start : start + size, :found] = best.indices.numpy()
    none = np.isneginf(values)
    if priors.ids is not None:
        items = priors.ids[1][items]
    return np.ma.masked_array(items, none), np.ma.masked_array(values, none)


def _all_values(fitted: RowModels, rows: np.ndarray) -> torch.Tensor:
    """Predictions of whole rows, of which -1 is unknown, ``(k, n_cols)``."""
    priors = fitted.statistics
    whole = fitted.scaling.undo(fitted.scaled_rows(torch.from_numpy(rows)))
    means = torch.from_numpy(priors.col_means).to(whole)
    whole[torch.from_numpy((rows < 0) | priors.empty_rows[rows])] = means
    empty = torch.from_numpy(priors.empty_cols)
    if empty.any():
        means = torch.from_numpy(priors.row_means[rows]).to(whole)
        whole[:, empty] = means.nan_to_num(nan=-torch.inf)[:, None]
    return whole


def _seen_reader(fitted: RowModels) -> Callable[[np.ndarray], tuple[Any, Any]]:
    """Return a function that finds the observed cells of rows."""
    seen = fitted.seen
    if isinstance(seen, str):
        return RowReader(seen)
    starts, cols = seen

    def cells_of(rows: np.ndarray) -> tuple[Any, Any]:
        count = np.where(rows < 0, 0, starts[rows + 1] - starts[rows])
        begin = np.repeat(starts[rows] - (np.cumsum(count) - count), count)
        at = begin + np.arange(count.sum())
        return np.repeat(np.arange(len(rows)), count), cols[at].astype(np.int64)

    return cells_of


def transform_with_features(
    self: BaseCompleter, X: Container, *, row_features: Container | None = None
) -> np.ndarray:
    """Complete rows of the fitted matrix or new rows.

    Parameters
    ----------
    self : completer
        Fitted.
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
    if row_features is None:
        return BaseCompleter.transform(self, X)
    check_is_fitted(self)
    cells, source = self._read_rows(X, reset=False)
    values = cast(RowModels, self._fitted).with_features(cells, row_features)
    return self._written(source, self._completed(cells, values))
