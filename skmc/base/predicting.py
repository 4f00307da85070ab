"""Questions to a fit: scores, single cells, and the best columns of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skmc import patterns
from skmc.base.factored import RowModels
from skmc.base.reporting import warn_user
from skmc.blocks import StoredCells, is_lazy, lazy_entries, tables_of
from skmc.cells import Container, Entries, StoredEntries, check_positions, to_cells
from skmc.linalg import threads_for, work_of
from skmc.metrics import nmae

if TYPE_CHECKING:
    from skmc.base.completer import BaseCompleter

HIDDEN_TO_SCORE = 0.2  # share of each row's observed cells
BLOCK = 2**23  # numbers of a product of factors


def score(self: BaseCompleter, X: Container, y: object = None) -> float:
    """Negative normalized mean absolute error; higher is better, 0 is perfect.

    Parameters
    ----------
    X : container as in `fit`
        Rows to complete. Cells, `Entries` in memory or in files, are compared with
        the model's values of exactly these cells.
    y : container of X's shape, optional
        True values. The score compares the cells that are missing in ``X`` and
        known in ``y``. Without ``y``, a fifth of each row's observed cells (the
        same ones each time) are hidden, completed and compared. For rows of the
        fitted matrix this score is optimistic, because the fit has used those
        cells. A one-dimensional ``y`` is the target of a pipeline and is ignored.

    Returns
    -------
    float
        ``-mean |X - M| / (max M - min M)``.
    """
    check_is_fitted(self)
    if isinstance(X, (Entries, StoredEntries)):
        return _score_of_cells(self, X)
    cells = self._read(X, reset=False)
    if y is None or np.ndim(cast(ArrayLike, y)) == 1:
        truth = cells
        hidden = patterns.per_row(cells, HIDDEN_TO_SCORE, random_state=0)
        if not hidden.any():
            raise ValueError(
                "X has no row with two observed cells, so score cannot hide any; "
                "pass the truth as y."
            )
        with threads_for(work_of(cells.size, min(cells.shape))):
            completed = self._fitted.without(cells, hidden)
    else:
        truth = to_cells(y, name="y", missing_values=self.missing_values)
        if truth.shape != cells.shape:
            raise ValueError(f"y has shape {truth.shape}, X has {cells.shape}.")
        hidden = np.isnan(cells) & ~np.isnan(truth)
        if not hidden.any():
            raise ValueError("X has no missing cell that is observed in y.")
        completed = self._model_values(cells)
    return -nmae(completed, truth, hidden)


def _score_of_cells(completer: BaseCompleter, X: Entries | StoredEntries) -> float:
    """Compare cells with the model's values; those not in memory are read once."""
    parts: Any
    if not isinstance(X, Entries):
        tables = tables_of(X.source, X.columns[:3])
        parts = (
            [table[name].to_numpy() for name in table.column_names]
            for table in tables
            if len(table)
        )
    else:
        cells: Entries = X[X.values != completer.missing_values]
        ids = completer._priors.ids
        named = cells.ids is not None and ids is not None
        if not len(cells) or not (named or cells.matrix_shape == completer._shape):
            raise ValueError(
                f"X is {cells!r}; score needs cells of the fitted matrix, which has "
                f"shape {completer._shape}."
            )
        rows, cols = cells.labels if named else (cells.rows, cells.cols)
        if ids is not None and not named:
            rows, cols = ids[0][rows], ids[1][cols]
        parts = [(rows, cols, cells.values)]
    low, high = completer.data_range_
    total, count = 0.0, 0
    for rows, cols, values in parts:
        guess = completer.predict_entries(rows, cols)
        total += float(np.abs(guess - values).sum())
        count += len(values)
        low, high = min(low, values.min()), max(high, values.max())
    if not count:
        raise ValueError(f"{X!r} has no cells.")
    return -total / count / ((high - low) or 1.0)


def predict_entries(
    self: BaseCompleter, rows: ArrayLike, cols: ArrayLike
) -> np.ndarray:
    """Predict single cells of the fitted matrix.

    Parameters
    ----------
    rows, cols : array-like of shape (n_cells,)
        Zero-based positions. After a fit to cells with identifiers, as of
        `Entries.from_frame` and `Entries.from_parquet`, identifiers. One of them may
        be a single one: ``predict_entries(3, range(120))`` predicts 120 cells of row 3.
        Two Dask Series or Arrays give another one, which predicts its partitions
        when it is computed.

    Returns
    -------
    ndarray of shape (n_cells,)
        ``reconstruction_[rows, cols]``: the model's values, at observed cells too.
        An identifier of a row that the fit has not seen is predicted by the means
        of the columns, that of such a column by the means of the rows, with a
        warning.
    """
    check_is_fitted(self)
    if is_lazy(rows):
        later: np.ndarray = lazy_entries(self, rows, cols)
        return later
    if np.ndim(rows) == 0:
        rows = np.full(np.shape(cols), rows)
    if np.ndim(cols) == 0:
        cols = np.full(np.shape(rows), cols)
    priors, fitted = self._priors, self._fitted
    if priors.ids is None:
        return fitted.at(*check_positions(rows, cols, priors.shape))
    if np.shape(rows) != np.shape(cols) or np.ndim(rows) != 1:
        raise ValueError(
            "rows and cols must be one-dimensional and of equal length, got "
            f"shapes {np.shape(rows)} and {np.shape(cols)}."
        )
    i = positions(priors.ids[0], rows, "rows")
    j = positions(priors.ids[1], cols, "cols")
    values = np.where(i < 0, priors.col_means[j], priors.row_means[i])
    values[(i < 0) & (j < 0)] = priors.mean
    known = (i >= 0) & (j >= 0)
    values[known] = fitted.at(i[known], j[known])
    return values


def recommend_from_factors(
    self: BaseCompleter, users: ArrayLike, n: int = 10, *, exclude_seen: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Find the columns with the largest predictions in each of some rows.

    Parameters
    ----------
    users : array-like of shape (n_users,)
        Rows: zero-based positions; after a fit to cells with identifiers, as of
        `Entries.from_frame` and `Entries.from_parquet`, identifiers.
    n : int >= 1, default=10
        Number of columns for each row.
    exclude_seen : bool, default=True
        Whether to leave out the observed cells of the fit. After a fit to files,
        they are read from the blocks, see `Entries.from_parquet`.

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
    if isinstance(seen, StoredCells):
        return seen.of_rows
    starts, cols = seen

    def cells_of(rows: np.ndarray) -> tuple[Any, Any]:
        count = np.where(rows < 0, 0, starts[rows + 1] - starts[rows])
        begin = np.repeat(starts[rows] - (np.cumsum(count) - count), count)
        at = begin + np.arange(count.sum())
        return np.repeat(np.arange(len(rows)), count), cols[at].astype(np.int64)

    return cells_of


def positions(known: np.ndarray, wanted: ArrayLike, name: str) -> np.ndarray:
    """Find identifiers among known ones.

    Parameters
    ----------
    known : ndarray of shape (n,)
        Identifiers, each once.
    wanted : array-like of shape (k,)
        Identifiers to find.
    name : str
        What warnings call ``wanted``.

    Returns
    -------
    int ndarray of shape (k,)
        Positions; -1 for those that are not known, with a warning.

    Raises
    ------
    TypeError
        Numbers where identifiers are strings, or the reverse.
    """
    found = np.asarray(wanted)
    if found.dtype.kind in "OT" and found.size:  # as data frames have them
        found = np.asarray(found.tolist())
    text = known.dtype.kind == "U"
    if found.size and (found.dtype.kind == "U") != text:
        kinds = ("strings", "integers") if text else ("integers", "strings")
        raise TypeError(
            f"{name} must be {kinds[0]}, as the identifiers of the fit are, not "
            f"{found.dtype}."
        )
    order = None  # partial_fit appends new identifiers
    if not (known[:-1] <= known[1:]).all():
        order = np.argsort(known, kind="stable")
    place = np.searchsorted(known, found, sorter=order).clip(max=len(known) - 1)
    if order is not None:
        place = order[place]
    missing = known[place] != found
    if missing.any():
        warn_user(
            f"{name} has {missing.sum()} identifiers that the fit has not seen, such "
            f"as {found[missing][0].item()!r}; they are predicted by means."
        )
    place[missing] = -1
    return place


def as_array(ids: ArrayLike) -> np.ndarray:
    """Convert identifiers to an array that can be stored.

    Parameters
    ----------
    ids : ndarray
        Integers or strings.

    Returns
    -------
    ndarray of int64 or of fixed-width strings
    """
    array = np.asarray(ids)
    return array if array.dtype.kind in "iu" else array.astype(str)
