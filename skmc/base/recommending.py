"""The mixin for completers that rank the columns of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skmc.base.identifiers import positions
from skmc.blocks import BlockObserved, RowReader
from skmc.cells import check_positions

BLOCK = 2**23  # numbers of a product of factors


class Recommends:
    """Mixin for completers with ``row_factors_`` and ``col_factors_``.

    List it before the base class.
    """

    _seen: Any  # starts and columns of the observed cells, or the path of their folder

    def _fitted(self, prepared: Any, outputs: dict[str, Any]) -> dict[str, Any]:
        data = prepared.data
        if isinstance(data, BlockObserved):
            seen: Any = str(data.folder.path)
        else:
            seen = data.starts.cpu().numpy(), data.cols.cpu().numpy().astype(np.int32)
        fitted: dict[str, Any] = super()._fitted(prepared, outputs)  # type: ignore[misc]
        return {**fitted, "_seen": seen}

    def recommend(
        self, users: ArrayLike, n: int = 10, *, exclude_seen: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the columns with the largest predictions in each of some rows.

        Parameters
        ----------
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
        priors = self._priors  # type: ignore[attr-defined]
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
        seen_in = self._seen_reader() if exclude_seen else None
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            whole = self._all_values(part)
            if seen_in is not None:
                whole[seen_in(part)] = -torch.inf
            best = whole.topk(found)
            values[start : start + size, :found] = best.values.numpy()
            items[start : start + size, :found] = best.indices.numpy()
        none = np.isneginf(values)
        if priors.ids is not None:
            items = priors.ids[1][items]
        return np.ma.masked_array(items, none), np.ma.masked_array(values, none)

    def _all_values(self, rows: np.ndarray) -> torch.Tensor:
        """Predictions of whole rows, of which -1 is unknown, ``(k, n_cols)``."""
        priors: Any = self._priors  # type: ignore[attr-defined]
        found = self._whole_rows(torch.from_numpy(rows))  # type: ignore[attr-defined]
        whole: torch.Tensor = self._scaling.undo(found)  # type: ignore[attr-defined]
        means = torch.from_numpy(priors.col_means).to(whole)
        whole[torch.from_numpy((rows < 0) | priors.empty_rows[rows])] = means
        empty = torch.from_numpy(priors.empty_cols)
        if empty.any():
            means = torch.from_numpy(priors.row_means[rows]).to(whole)
            whole[:, empty] = means.nan_to_num(nan=-torch.inf)[:, None]
        return whole

    def _seen_reader(self) -> Callable[[np.ndarray], tuple[Any, Any]]:
        """Return a function that finds the observed cells of rows."""
        seen = self._seen  # type: ignore[attr-defined]
        if isinstance(seen, str):
            return RowReader(seen)
        starts, cols = seen

        def cells_of(rows: np.ndarray) -> tuple[Any, Any]:
            count = np.where(rows < 0, 0, starts[rows + 1] - starts[rows])
            begin = np.repeat(starts[rows] - (np.cumsum(count) - count), count)
            at = begin + np.arange(count.sum())
            return np.repeat(np.arange(len(rows)), count), cols[at].astype(np.int64)

        return cells_of
