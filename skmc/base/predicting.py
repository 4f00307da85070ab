"""Scores, and predictions of single cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skmc import patterns
from skmc.base.reporting import warn_user
from skmc.blocks import is_lazy, lazy_entries, tables_of
from skmc.cells import (
    Container,
    Entries,
    LikeObserved,
    StoredEntries,
    check_positions,
    to_cells,
)
from skmc.linalg import Seed, threads_for_rows, truncated_normal
from skmc.metrics import nmae

if TYPE_CHECKING:
    from skmc.base.completer import BaseCompleter


REDRAWS = 20  # of rows outside of bounds
HIDDEN_TO_SCORE = 0.2  # share of each row's observed cells


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
        with threads_for_rows(cells):
            completed = self._fitted.without(cells, hidden)
    else:
        truth = to_cells(y, name="y", missing_values=self.missing_values)
        if truth.shape != cells.shape:
            raise ValueError(f"y has shape {truth.shape}, X has {cells.shape}.")
        hidden = np.isnan(cells) & ~np.isnan(truth)
        if not hidden.any():
            raise ValueError("X has no missing cell that is observed in y.")
        completed = self._model_values(cells)
    if self._like is not None:
        completed = self._like.apply(completed)
    return -nmae(completed, truth, hidden)


def sample(
    self: BaseCompleter,
    X: Container,
    n_samples: int = 1,
    random_state: Seed = None,
) -> Any:
    """Draw the missing cells from their distribution given the observed ones.

    For multiple imputation, use `skmc.uncertainty.pool`. The notes of the class say
    which distribution this is.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_samples, n_features)
        Rows, which need not be rows of the fit.
    n_samples : int >= 1, default=1
        Number of draws.
    random_state : int, RandomState instance or None, default=None
        Source of random numbers.

    Returns
    -------
    ndarray of shape (n_samples, n_rows, n_features)
        Draws, in which observed cells are unchanged. A list of tables if ``X`` is a
        table with columns that are not numbers.
    """
    check_is_fitted(self)
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
    rng = check_random_state(random_state)
    cells, source = self._read_rows(X, reset=False)
    with threads_for_rows(cells, n_samples):
        draws = cast(Any, self._fitted).sample(cells, n_samples, rng)
        if self._bounds is not None:
            _redraw(draws, cells, self._bounds, self._fitted, rng)
    if (empty := self._priors.empty_cols).any():
        draws[..., empty] = self._priors.fill(cells, draws[0])[:, empty]
    if self._like is not None:
        draws = np.stack([self._like.apply(draw) for draw in draws])
    draws = np.where(np.isnan(cells), draws, cells).astype(cells.dtype, copy=False)
    if source is None:
        return draws
    return [self._written(source, draw) for draw in draws]


def _redraw(
    draws: np.ndarray,
    cells: np.ndarray,
    bounds: LikeObserved,
    fitted: Any,
    rng: np.random.RandomState,
) -> None:
    """Draw rows again, in place, until their missing cells are within bounds.

    Rows with many bounded cells are rarely within all bounds. So single cells are
    replaced in the second half of the redraws. Cells that are still outside are drawn
    from a normal distribution between the bounds, with mean and deviation of their
    draws.
    """
    low, high = bounds.low, bounds.high
    sums, squares = np.zeros(cells.shape), np.zeros(cells.shape)
    for number in range(REDRAWS):
        outside = np.isnan(cells) & ((draws < low) | (draws > high))
        rows = np.flatnonzero(outside.any((0, 2)))
        if not len(rows):
            return
        again = fitted.sample(cells[rows], len(draws), rng).astype(float)
        sums[rows] += again.sum(0)
        squares[rows] += np.square(again).sum(0)
        inside = (low <= again) & (again <= high)
        better = outside[:, rows] & inside
        if number < REDRAWS // 2:
            whole = (inside | ~np.isnan(cells[rows])).all(2, keepdims=True)
            better = whole & outside[:, rows].any(2, keepdims=True)
        draws[:, rows] = np.where(better, again, draws[:, rows])
    outside = np.isnan(cells) & ((draws < low) | (draws > high))
    _, row, col = place = np.nonzero(outside)
    n = REDRAWS * len(draws)
    mean = sums[row, col] / n
    std = np.sqrt(np.maximum(squares[row, col] / n - np.square(mean), 0))
    draws[place] = truncated_normal(mean, std, low[col], high[col], rng)


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
        Zero-based positions, or identifiers if the fit had any, as from
        `Entries.from_frame` and `Entries.from_parquet`. One of them may be a scalar:
        ``predict_entries(3, range(120))`` predicts 120 cells of row 3. For two Dask
        Series or Arrays the result is one as well, which predicts its partitions when
        it is computed.

    Returns
    -------
    ndarray of shape (n_cells,)
        ``reconstruction_[rows, cols]``: the model's values, at observed cells too.
        Rows that the fit has not seen are predicted by the means of the columns, and
        such columns by the means of the rows, with a warning.
    """
    check_is_fitted(self)
    if is_lazy(rows):
        later: np.ndarray = lazy_entries(self, rows, cols)
        return later
    priors, fitted = self._priors, self._fitted
    i, j = positions_of_cells(self, rows, cols)
    known = (i >= 0) & (j >= 0)
    if known.all():
        return fitted.at(i, j)
    values = np.where(i < 0, priors.col_means[j], priors.row_means[i])
    values[(i < 0) & (j < 0)] = priors.mean
    values[known] = fitted.at(i[known], j[known])
    return values


def positions_of_cells(
    completer: BaseCompleter,
    rows: ArrayLike,
    cols: ArrayLike,
    otherwise: str = "are predicted by means",
) -> tuple[np.ndarray, np.ndarray]:
    """Find the positions of single cells of the fitted matrix.

    Parameters
    ----------
    completer : completer
        Fitted completer.
    rows, cols : array-like of shape (n_cells,)
        Positions or identifiers, as in `predict_entries`.
    otherwise : str, default="are predicted by means"
        Treatment of unknown identifiers, as in `positions`.

    Returns
    -------
    rows : int ndarray of shape (n_cells,)
        Positions of the rows; -1 for unknown identifiers, with a warning.
    cols : int ndarray of shape (n_cells,)
        Positions of the columns, likewise.
    """
    if np.ndim(rows) == 0:
        rows = np.full(np.shape(cols), rows)
    if np.ndim(cols) == 0:
        cols = np.full(np.shape(rows), cols)
    priors = completer._priors
    if priors.ids is None:
        return check_positions(rows, cols, priors.shape)
    if np.shape(rows) != np.shape(cols) or np.ndim(rows) != 1:
        raise ValueError(
            "rows and cols must be one-dimensional and of equal length, got "
            f"shapes {np.shape(rows)} and {np.shape(cols)}."
        )
    return (
        positions(priors.ids[0], rows, "rows", otherwise),
        positions(priors.ids[1], cols, "cols", otherwise),
    )


def positions(
    known: np.ndarray,
    wanted: ArrayLike,
    name: str,
    otherwise: str | None = "are predicted by means",
) -> np.ndarray:
    """Find identifiers among known ones.

    Parameters
    ----------
    known : ndarray of shape (n,)
        Known identifiers, without duplicates.
    wanted : array-like of shape (k,)
        Identifiers to find.
    name : str
        Name of ``wanted`` in messages.
    otherwise : str or None, default="are predicted by means"
        Treatment of unknown identifiers, for the warning. None raises an error.

    Returns
    -------
    int ndarray of shape (k,)
        Positions; -1 for unknown identifiers, with a warning.

    Raises
    ------
    TypeError
        Numbers where identifiers are strings, or the reverse.
    ValueError
        An identifier is not known, and ``otherwise`` is None.
    """
    found = np.asarray(wanted)
    if not found.size:
        return np.empty(found.shape, np.int64)
    if found.dtype.kind in "OT":  # as in data frames
        found = np.asarray(found.tolist())
    text = known.dtype.kind == "U"
    if (found.dtype.kind == "U") != text:
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
        such = f"that the fit has not seen, such as {found[missing][0].item()!r}"
        if otherwise is None:
            raise ValueError(f"{name} has identifiers {such}; leave them out.")
        warn_user(f"{name} has {missing.sum()} identifiers {such}; they {otherwise}.")
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
