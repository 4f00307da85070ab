"""The best columns for rows of a fit and for new rows, and similar columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from importlib import import_module
from numbers import Integral
from typing import Any, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import BaseCompleter, RowModels, positions, warn_user
from skmc.blocks import StoredCells
from skmc.cells import (
    FIT_AGAIN,
    Container,
    Entries,
    Given,
    check_index,
    dense,
    sparse_cells,
    to_cells,
)
from skmc.linalg import in_threads, matmul, threads_for
from skmc.tables import raw_columns

BLOCK = 2**23  # largest number of elements of a product of factors
SMALL = 4  # columns; smaller groups save no time
NEW_USER = "correct it, or pass the cells of a new row as a dict of columns to values"

Ratings: TypeAlias = Mapping[Any, float] | Entries | sp.sparray | sp.spmatrix
# Predictions of rows, (k, n_cols), and row and column of each of their cells.
Block: TypeAlias = tuple[Tensor, tuple[np.ndarray, np.ndarray] | None]


class Recommends(BaseCompleter):
    """Mixin of completers that rank columns and rows; their fit is `RowModels`."""

    rank_: int = field(init=False)
    _fitted: RowModels = field(init=False)

    def _given(self, X: Container, known: Mapping[str, Any]) -> Given:
        columns = _columns_of_ratings(X)
        names = ", ".join(map(repr, columns))
        if columns and not all(raw.numeric for raw in raw_columns(X)):
            raise ValueError(
                f"X has a row for each rating, with columns {names}, and not one for "
                f"each user; pass Entries.from_frame(X, {names})."
            )
        if columns:
            warn_user(
                "X has no missing cell. If it has a row for each rating, and not one "
                f"for each user, pass Entries.from_frame(X, {names})."
            )
        return super()._given(X, known)

    def recommend(
        self,
        users: ArrayLike | Ratings,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        exclude: ArrayLike | None = None,
        among: ArrayLike | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Find the columns with the largest predictions in each of some rows.

        Parameters
        ----------
        users : name, array-like of shape (n_users,), dict, Entries or sparse matrix
            Rows of the fit: zero-based positions, or identifiers after a fit to cells
            with identifiers, as from `Entries.from_frame` and `Entries.from_parquet`.
            Or the cells of new rows, each of which is completed by itself, as by
            `transform`: a dict from columns to values, which is one row; `Entries` with
            the columns of the fit; or a sparse matrix of shape (n_users, n_features).
            Columns are given by identifiers if the fit had any; those of a sparse
            matrix are in the order of the fit. The rows of `Entries` with identifiers
            are in the order of ``users.ids[0]``. Rows that the fit knows nothing about
            get the columns with the largest means, with a warning; after a fit with
            ``alpha``, the columns that most rows have.
        n : int >= 1, default=10
            Number of columns for each row.
        exclude_seen : bool, default=True
            Whether to leave out the observed cells: those of the fit, or those of the
            new rows. After a fit to files, the former are read from the blocks, see
            `Entries.from_parquet`.
        exclude : array-like of shape (k,), optional
            Columns to leave out in all rows: positions or identifiers.
        among : array-like of shape (k,), optional
            Columns to rank: positions or identifiers. All by default.
        as_frame : bool, default=False
            Whether to return a pandas DataFrame with a row for each recommendation and
            the columns "user", "item" and "score". New rows without identifiers are
            users 0, 1, ....

        Returns
        -------
        items : masked ndarray of shape (n_users, n)
            Positions or identifiers of columns, best first. Masked where fewer than
            ``n`` columns are left. A DataFrame instead of both results if ``as_frame``.
        values : masked ndarray of shape (n_users, n)
            Predictions of these cells.

        Raises
        ------
        FileNotFoundError
            The blocks of the fit no longer exist.
        ImportError
            ``as_frame`` is true, and pandas is not installed.
        ValueError
            A position is outside of the matrix, or a new row has other columns.

        Notes
        -----
        Rows are ranked in blocks of 2**23 predictions, each by one thread. For
        approximate search, pass ``row_factors_`` and ``col_factors_`` to a library for
        it: with one scale for all columns, the products of factors rank like the
        predictions.

        Examples
        --------
        >>> from skmc import Entries, FactorizationCompleter
        >>> stars = {
        ...     "user": ["ann", "ann", "bob", "bob", "cid", "cid"],
        ...     "film": ["Alien", "Brazil", "Alien", "Clue", "Brazil", "Clue"],
        ...     "stars": [5, 2, 5, 1, 2, 1],
        ... }
        >>> ratings = Entries.from_frame(stars, "user", "film", "stars")
        >>> completer = FactorizationCompleter(1, lambda_ridge=0.1, random_state=0)
        >>> items, values = completer.fit(ratings).recommend({"Clue": 1}, 1)
        >>> str(items[0, 0])
        'Alien'
        >>> completer.recommend("bob", as_frame=True).round(1)
          user    item  score
        0  bob  Brazil    2.1
        """
        check_is_fitted(self)
        of_block: Callable[[slice], Block]
        if isinstance(users, (Mapping, Entries)) or sp.issparse(users):
            n_rows, of_block = self._new_rows(cast(Ratings, users))
        else:
            n_rows, of_block = self._rows_of_fit(users, exclude_seen)
        dropped = self._left_out(1, exclude, among)

        def left(part: slice) -> Tensor:
            values, seen = of_block(part)
            if dropped.any():
                values.masked_fill_(dropped, -torch.inf)
            if seen is not None and exclude_seen:
                values[seen] = -torch.inf
            return values

        ranked = self._largest(1, n_rows, n, left)
        if not as_frame:
            return ranked
        asked: Any = range(n_rows)
        if not isinstance(users, Mapping) and not sp.issparse(users):
            asked = getattr(users, "ids", (users,))
            asked = range(n_rows) if asked is None else np.atleast_1d(asked[0])
        return _as_frame(asked, ranked, ("user", "item"))

    def similar_items(
        self,
        items: ArrayLike,
        n: int = 10,
        *,
        exclude: ArrayLike | None = None,
        among: ArrayLike | None = None,
        as_frame: bool = False,
    ) -> Any:
        r"""Find the columns whose factors have the largest cosines with others.

        The cosine of the columns :math:`i` and :math:`j` is :math:`v_i^\top v_j /
        (\|v_i\| \|v_j\|)`, where :math:`v_j` are the factors without biases; after a
        Bayesian fit, those of all draws. It does not depend on the mean of a column:
        popular columns are not preferred.

        Parameters
        ----------
        items : array-like of shape (n_items,)
            Columns of the fit: zero-based positions, or identifiers after a fit to
            cells with identifiers.
        n : int >= 1, default=10
            Number of columns for each of them.
        exclude : array-like of shape (k,), optional
            Columns that are never returned.
        among : array-like of shape (k,), optional
            Columns to rank. All by default.
        as_frame : bool, default=False
            Whether to return a pandas DataFrame with a row for each pair. The columns
            are "item", "similar_item" and "score".

        Returns
        -------
        items : masked ndarray of shape (n_items, n)
            Positions or identifiers of columns, most similar first, without the column
            itself and without columns of unknown factors. Masked if there are fewer
            than ``n``.
        values : masked ndarray of shape (n_items, n)
            Cosines of these columns, in [-1, 1].

        Raises
        ------
        ValueError
            A column that the fit has not seen.
        """
        ranked = self._similar(1, items, "items", n, exclude, among)
        if not as_frame:
            return ranked
        return _as_frame(np.atleast_1d(items), ranked, ("item", "similar_item"))

    def similar_users(
        self,
        users: ArrayLike,
        n: int = 10,
        *,
        exclude: ArrayLike | None = None,
        among: ArrayLike | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Find the rows whose factors have the largest cosines with others.

        Parameters
        ----------
        users : array-like of shape (n_users,)
            Rows of the fit: zero-based positions, or identifiers after a fit to cells
            with identifiers.
        n : int >= 1, default=10
            Number of rows for each of them.
        exclude : array-like of shape (k,), optional
            Rows that are never returned.
        among : array-like of shape (k,), optional
            Rows to rank. All by default.
        as_frame : bool, default=False
            Whether to return a pandas DataFrame with a row for each pair. The columns
            are "user", "similar_user" and "score".

        Returns
        -------
        users : masked ndarray of shape (n_users, n)
            Positions or identifiers of rows, most similar first, without the row itself
            and without rows of unknown factors. Masked if there are fewer than ``n``.
        values : masked ndarray of shape (n_users, n)
            Cosines of these rows, as in `similar_items`.

        Raises
        ------
        ValueError
            A row that the fit has not seen.
        """
        ranked = self._similar(0, users, "users", n, exclude, among)
        if not as_frame:
            return ranked
        return _as_frame(np.atleast_1d(users), ranked, ("user", "similar_user"))

    def _similar(
        self,
        axis: int,
        asked: ArrayLike,
        name: str,
        n: int,
        exclude: ArrayLike | None,
        among: ArrayLike | None,
    ) -> tuple[np.ma.MaskedArray, np.ma.MaskedArray]:
        """The rows (``axis=0``) or columns with the most similar factors."""
        check_is_fitted(self)
        positions = torch.from_numpy(self._positions(axis, asked, name, None))
        fitted = self._fitted
        each = [model.F for model in fitted.models] if axis else fitted.row_factors()
        factors = torch.cat([W[:, : self.rank_] for W in each], 1)  # without biases
        factors = torch.nn.functional.normalize(factors)
        priors = self._priors
        empty = priors.empty_cols if axis else priors.empty_rows
        unknown = ~factors.any(1) | torch.from_numpy(empty)
        dropped = unknown | self._left_out(axis, exclude, among)

        def cosines(part: slice) -> Tensor:
            cosine = matmul(factors[positions[part]], factors.mT).clamp_(-1, 1)
            cosine.masked_fill_(dropped, -torch.inf)
            cosine[unknown[positions[part]]] = -torch.inf
            cosine[torch.arange(len(cosine)), positions[part]] = -torch.inf
            return cosine

        return self._largest(axis, len(positions), n, cosines)

    def _left_out(
        self, axis: int, exclude: ArrayLike | None, among: ArrayLike | None
    ) -> Tensor:
        """Whether each row (``axis=0``) or column is not to be ranked."""
        dropped = torch.full((self._shape[axis],), among is not None)
        for name, chosen, drop in (("among", among, False), ("exclude", exclude, True)):
            if chosen is not None:
                places = self._positions(axis, chosen, name, "are left out")
                dropped[places[places >= 0]] = drop
        return dropped

    def _largest(
        self,
        axis: int,
        n_asked: int,
        n: int,
        of_block: Callable[[slice], Any],
    ) -> tuple[np.ma.MaskedArray, np.ma.MaskedArray]:
        """The rows or columns of the largest values, without those that are -inf."""
        if not n >= 1:
            raise ValueError(f"n must be >= 1, got {n!r}.")
        size, ids = self._shape[axis], self._priors.ids
        factors = self._fitted.models[0].F
        # Results that are made between blocks would fragment the memory.
        best = factors.new_full((n_asked, n), -torch.inf).numpy()
        items = np.zeros((n_asked, n), np.int64)

        def fill(part: slice) -> None:
            top = _top(of_block(part), min(n, size))
            best[part, :size], items[part, :size] = top

        with threads_for(0):
            step = max(1, BLOCK // size)
            list(in_threads(fill, gen_batches(n_asked, step) if n_asked else ()))
        none = np.isneginf(best)
        names = np.where(none, -1, items) if ids is None else ids[axis][items]
        return np.ma.masked_array(names, none), np.ma.masked_array(best, none)

    def _positions(
        self,
        axis: int,
        wanted: ArrayLike,
        name: str,
        otherwise: str | None,
    ) -> np.ndarray:
        """Positions of rows (``axis=0``) or columns, as `positions` finds them."""
        priors, wanted = self._priors, np.atleast_1d(cast(Any, wanted))
        if priors.ids is None:
            remedy = FIT_AGAIN if axis or otherwise is None else NEW_USER
            return check_index(wanted, priors.shape[axis], name, remedy)
        return positions(priors.ids[axis], wanted, name, otherwise)

    def _rows_of_fit(
        self, users: ArrayLike, exclude_seen: bool
    ) -> tuple[int, Callable[[slice], Block]]:
        """Number of the selected rows of the fit, and a function of blocks."""
        fitted = self._fitted
        rows = self._positions(0, users, "users", "are predicted by means")

        def of_block(part: slice) -> Block:
            values = _all_values(fitted, rows[part])
            return values, _seen(fitted, rows[part]) if exclude_seen else None

        return len(rows), of_block

    def _new_rows(self, users: Ratings) -> tuple[int, Callable[[slice], Block]]:
        """Number of new rows, and a function of blocks."""
        priors = self._priors
        rows, cols, values, n_rows = self._read_ratings(users)
        order = np.argsort(rows, kind="stable")
        rows, cols, values = rows[order], cols[order], values[order]
        empty = n_rows - len(np.unique(rows[values > 0] if priors.counts else rows))
        if empty and not priors.informed_rows:
            warn_user(
                f"users has {empty} new rows without a value in a column of the fit; "
                "they are predicted by means."
            )

        def of_block(part: slice) -> Block:
            first, last = np.searchsorted(rows, [part.start, part.stop])
            seen = rows[first:last] - part.start, cols[first:last]
            shape = part.stop - part.start, self._shape[1]
            cells = dense(shape, *seen, values[first:last])
            predicted = torch.from_numpy(self._model_values(cells, everywhere=True))
            return predicted.nan_to_num(nan=-torch.inf), seen

        return n_rows, of_block

    def _read_ratings(
        self, users: Ratings, name: str = "users"
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Row, column in the fit and value of each cell, and number of rows."""
        ids, n_cols = self._priors.ids, self._shape[1]
        otherwise = "are left out"
        if isinstance(users, Mapping):
            values = to_cells(list(users.values()), name=f"values of {name}")
            for column, value in zip(users, values, strict=True):
                if np.isnan(value):
                    raise ValueError(
                        f"{name} has no value of {column!r}; leave it out."
                    )
            cols = self._positions(1, list(users), f"columns of {name}", otherwise)
            in_fit = cols >= 0
            users = Entries.from_triplets(
                np.zeros(in_fit.sum(), int), cols[in_fit], values[in_fit], (1, n_cols)
            )
        elif isinstance(users, Entries):
            if (users.ids is None) != (ids is None):
                have = "no identifiers" if users.ids is None else "identifiers"
                raise ValueError(
                    f"users has {have}, unlike the fit; make both by "
                    "Entries.from_frame, or both without."
                )
            if ids is not None and users.ids is not None:
                cols = positions(ids[1], users.ids[1], "columns of users", otherwise)
                cols = cols[users.cols]
                in_fit, n_rows = cols >= 0, users.matrix_shape[0]
                return users.rows[in_fit], cols[in_fit], users.values[in_fit], n_rows
        else:
            missing = self.missing_values
            cells = sparse_cells(users, name="users", missing_values=missing)
            users = Entries.from_triplets(*cells, users.shape)
        if users.matrix_shape[1] > n_cols:
            raise ValueError(
                f"users has {users.matrix_shape[1]} columns, but the fit has {n_cols}."
            )
        users = users[users.values != self.missing_values]
        return users.rows, users.cols, users.values, users.matrix_shape[0]


def _columns_of_ratings(X: Any) -> list[str]:
    """The first three columns of a data frame that names users and items in its rows.

    Such a table has three or four columns and no missing cell. The first two have
    texts or integers, which occur repeatedly, but each pair of them once.
    """
    columns = list(getattr(X, "columns", ()))
    if len(columns) not in (3, 4) or not hasattr(X, "to_numpy"):
        return []
    raws = raw_columns(X)
    if any(raw.missing.any() for raw in raws):
        return []
    users, items = (raw.values for raw in raws[:2])
    for labels in (users, items):
        if not all(isinstance(label, (str, Integral)) for label in labels):
            return []
    pairs = set(zip(users, items, strict=True))
    if len(pairs) < len(users) or max(map(len, map(set, (users, items)))) == len(pairs):
        return []
    return columns[:3]


def _as_frame(
    asked: Any, found: tuple[np.ma.MaskedArray, np.ma.MaskedArray], names: Any
) -> Any:
    """A table with a row for each result that is not masked."""
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise ImportError("as_frame=True needs pandas: pip install pandas.") from error
    best, scores = found
    left = ~np.ma.getmaskarray(best)
    columns = np.repeat(np.asarray(asked), left.sum(1)), best.data[left]
    table = dict(zip(names, columns, strict=True))
    return pandas.DataFrame(table | {"score": scores.data[left]})


def _top(whole: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The largest values of each row and their columns, in descending order.

    They lie in the groups of columns with the largest maxima.
    """
    n_cols = whole.shape[1]
    size = math.isqrt(n_cols // n)
    if size < SMALL:
        best = whole.topk(n)
        return best.values, best.indices
    n_groups = n_cols // size  # group k has the columns k, k + n_groups, ...
    rest = n_groups * size
    maxima = whole[:, :rest].unflatten(1, (size, n_groups)).amax(1)
    cols = torch.arange(0, rest, n_groups)[:, None] + maxima.topk(n).indices[:, None]
    others = torch.arange(rest, n_cols).expand(len(whole), -1)
    cols = torch.cat([cols.flatten(1), others], 1)
    best = whole.gather(1, cols).topk(n)
    return best.values, cols.gather(1, best.indices)


def _all_values(fitted: RowModels, rows: np.ndarray) -> Tensor:
    """Predictions of whole rows, where row -1 is unknown, ``(k, n_cols)``."""
    priors = fitted.statistics
    values = fitted.scaled_rows(torch.from_numpy(rows))
    values.mul_(fitted.scaling.scale).add_(fitted.scaling.shift)
    means = torch.from_numpy(priors.col_means).to(values)
    values[torch.from_numpy((rows < 0) | priors.empty_rows[rows])] = means
    empty = torch.from_numpy(priors.empty_cols)
    if empty.any():
        means = torch.from_numpy(priors.row_means[rows]).to(values)
        values[:, empty] = means.nan_to_num(nan=-torch.inf)[:, None]
    return values


def _seen(fitted: RowModels, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position in ``rows``, and column, of each observed cell of these rows."""
    seen = fitted.seen
    if isinstance(seen, StoredCells):
        which, cells = seen.of_rows(rows, ["col"])
        return which, cells["col"].astype(np.int64)
    starts, cols = seen
    count = np.where(rows < 0, 0, starts[rows + 1] - starts[rows])
    begin = np.repeat(starts[rows] - (np.cumsum(count) - count), count)
    at = begin + np.arange(count.sum())
    return np.repeat(np.arange(len(rows)), count), cols[at].astype(np.int64)
