"""Completers of matrices that also take tables as they come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base import BaseCompleter, Priors, warn_user
from skmc.cells import LikeObserved
from skmc.tables.frames import as_table, raw_columns
from skmc.tables.table import Table, described


def warn_of_left(X: Any, table: Table) -> None:
    """Warn of columns that are left as they are, with the reasons.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    table : Table
        Its description.

    Raises
    ------
    ValueError
        No column is left to complete.
    """
    columns = described(X, table.left)
    if not any(table.kinds):
        if set(table.left.values()) == {"no observed cell"}:
            raise ValueError("X has no observed cell; at least one is needed.")
        raise ValueError(
            f"X has no column that can be completed: {columns or 'all pass through'}. "
            "MixedCompleter completes columns nevertheless that are listed in "
            "categorical."
        )
    if table.left:
        warn_user(
            f"Columns that cannot be inferred are left as they are: {columns}. "
            "MixedCompleter completes them nevertheless if they are listed in "
            "categorical, and is silent if they are listed in passthrough."
        )


@dataclass(frozen=True)
class TablePriors(Priors):
    """Statistics of the observed cells, and what the matrix represents.

    Parameters
    ----------
    shape, n_observed, data_range, mean, row_means, col_means, empty_rows, empty_cols, \
full_cols, constant, one_unit, ids, informed_rows, weighted : object
        As for `skmc.base.Priors`.
    table : Table or None, default=None
        The table that the matrix represents, None if it represents itself.
    like : LikeObserved or None, default=None
        Restricts the values of missing cells.
    """

    table: Table | None = None
    like: LikeObserved | None = None


class TakesTables(BaseCompleter):
    """Base class of completers that encode columns which are not numbers.

    Its subclasses complete the matrix that represents such a table, see
    `skmc.MixedCompleter`. They need the parameter ``like_observed``.

    Parameters
    ----------
    {reading}
    """

    like_observed: bool | str = field(init=False)
    _table: Table | None = field(init=False, default=None)
    # Of the matrix that `Table` hands over.
    _first_columns: np.ndarray | None = field(init=False, default=None)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "like_observed": ["boolean", StrOptions({"auto"})],
    }

    def _read_to_fit(self, X: Any) -> tuple[Any, Priors]:
        table = like = None
        if _has_words(X):
            X = as_table(X)
            validate_data(self, X, skip_check_array=True)
            table = self._described(X)
            cells = table.encode(table.read(X)[0])
        else:
            cells = self._read(X, reset=True)
            if self.like_observed is True:
                like = LikeObserved.of(cells)
        rows, cols = np.nonzero(~np.isnan(cells))
        priors = Priors.of(rows, cols, cells[rows, cols], cells.shape)
        return cells, TablePriors(**vars(priors), table=table, like=like)

    def _common(self, priors: Priors) -> dict[str, Any]:
        common = super()._common(priors)
        if isinstance(priors, TablePriors):
            common |= {"_table": priors.table, "_like": priors.like}
        return common

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        if reset or self._table is None:
            return super()._read(X, reset=reset)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._table.encode(self._table.read(X)[0])

    def _together(self, labels: np.ndarray, priors: Priors) -> np.ndarray:
        """Give all cells that represent one cell of a table the label of the first.

        Otherwise a held-out category could be told from its other columns.
        """
        first = self._first_columns
        if isinstance(priors, TablePriors) and priors.table is not None:
            first = priors.table.first_columns
        return labels if first is None else labels[:, first]

    def _described(self, X: Any) -> Table:
        if self.add_indicator:
            raise ValueError(
                "add_indicator is for matrices, and X has columns that are not numbers;"
                " append the columns of sklearn.impute.MissingIndicator."
            )
        table = Table.of(X, like_observed=self.like_observed is not False)
        warn_of_left(X, table)
        return table

    def _written(self, X: Any, completed: np.ndarray) -> Any:
        if self._table is None:
            return completed
        X = as_table(X)
        _, missing = self._table.read(X)
        return self._table.write(X, self._table.decode(completed), missing)

    def score(self, X: Any, y: Any = None) -> float:
        check_is_fitted(self)
        if self._table is None:
            return super().score(X, y)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return -float(np.nanmean(self._table.errors(X, y, self._complete_rows)))


def _has_words(X: Any) -> bool:
    """Tell whether a table has columns of anything but numbers."""
    if isinstance(X, (list, tuple)):
        cells = (v for row in X if isinstance(row, (list, tuple)) for v in row)
        if not any(isinstance(value, str) for value in cells):
            return False
    elif isinstance(X, np.ndarray):
        if X.ndim != 2 or X.dtype.kind not in "OUS":
            return False
        if not any(isinstance(value, (str, bytes)) for value in X.flat):
            return False
    elif not (hasattr(X, "columns") and hasattr(X, "to_numpy")):
        return False
    raws = raw_columns(as_table(X))
    return any(not raw.numeric and not raw.missing.all() for raw in raws)
