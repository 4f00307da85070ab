"""Completers of matrices that also take tables as they come."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base import BaseCompleter, warn_of_places, warn_user
from skmc.cells import Container, Given, LikeObserved
from skmc.compatibility import StrOptions
from skmc.tables.errors import errors
from skmc.tables.frames import as_table, raw_columns
from skmc.tables.kinds import NO_CELL
from skmc.tables.reading import table_for
from skmc.tables.source import Source
from skmc.tables.table import Table


def warn_of_left(X: Any, table: Table, *, keep_empty: bool = True) -> None:
    """Warn of columns that are left as they are, with the reasons.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    table : Table
        Its description.
    keep_empty : bool, default=True
        Whether columns without an observed cell are left as they are; otherwise they
        are dropped.

    Raises
    ------
    ValueError
        No column is left to complete.
    """
    names = list(getattr(X, "columns", range(X.shape[1])))
    left = {k: why for k, why in table.left.items() if keep_empty or why != NO_CELL}
    columns = ", ".join(f"{names[k]!r} ({why})" for k, why in left.items())
    if not any(table.kinds):
        if set(table.left.values()) == {NO_CELL}:
            raise ValueError("X has no observed cell; at least one is needed.")
        raise ValueError(
            f"X has no column that can be completed: {columns or 'all pass through'}. "
            "MixedCompleter completes columns nevertheless that are listed in "
            "categorical."
        )
    if not keep_empty:
        warn_of_places("column", np.array(table.empty), "dropped", names)
    if left:
        warn_user(
            f"Columns that cannot be inferred are left as they are: {columns}. "
            "MixedCompleter completes them nevertheless if they are listed in "
            "categorical, and is silent if they are listed in passthrough."
        )


class TakesTables(BaseCompleter):
    """Base class of completers that encode columns which are not numbers.

    Its subclasses complete the matrix that represents such a table, see
    `skmc.MixedCompleter`. They need the parameter ``like_observed``, and add
    `_of_table` to the attributes of a fit.

    Parameters
    ----------
    {reading}
    """

    _table: ClassVar[Table | None] = None  # an attribute, if the matrix represents one
    _first_columns = None  # of the matrix that `Table` hands over

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "like_observed": ["boolean", StrOptions({"auto"})],
    }

    def _of_table(self, given: Given) -> dict[str, Any]:
        """Fitted attributes of a table, or of a matrix that represents itself."""
        if given.source is not None:
            return {"_table": given.source.table, "_like": None}
        like = LikeObserved.of(given.matrix) if self.like_observed is True else None
        return {"_table": None, "_like": like}

    def _read_rows(self, X: Container, *, reset: bool) -> tuple[np.ndarray, Any]:
        table = None if reset else self._table
        if table is None and not (reset and has_words(X)):
            return super()._read_rows(X, reset=reset)
        X = as_table(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        table = table or self._described(X)
        source = Source.of(table, X)
        return source.matrix, source

    def _together(self, labels: np.ndarray, given: Given) -> np.ndarray:
        """Give all cells that represent one cell of a table the label of the first.

        Otherwise a held-out category could be told from its other columns.
        """
        first = self._first_columns
        if given.source is not None:
            first = given.source.table.first_columns
        return labels if first is None else labels[:, first]

    def _described(self, X: Container) -> Table:
        if self.add_indicator:
            raise ValueError(
                "add_indicator is for matrices, and X has columns that are not numbers;"
                " append the columns of sklearn.impute.MissingIndicator."
            )
        table = table_for(self, X)
        warn_of_left(X, table)
        return table

    def _written(self, source: Source | None, completed: np.ndarray) -> Any:
        if source is None:
            return completed
        return source.completed(source.table.decode(completed))

    def score(self, X: Container, y: object = None) -> float:
        check_is_fitted(self)
        if self._table is None:
            return super().score(X, y)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        source = Source.of(self._table, X)
        return -float(np.nanmean(errors(source, y, self._fitted.rows)))


def has_words(X: Container) -> bool:
    """Tell whether a table has columns of anything but numbers.

    Parameters
    ----------
    X : container
        The table.

    Returns
    -------
    bool
    """
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
