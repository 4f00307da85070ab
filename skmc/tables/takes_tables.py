"""Base class of completers of matrices that also take tables."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base import (
    Estimator,
    KeepsEmpty,
    TakesBounds,
    bounds_of,
    warn_of_empty_columns,
    warn_user,
)
from skmc.cells import Container, Given, LikeObserved
from skmc.compatibility import StrOptions, safe_indexing
from skmc.tables.doubts import doubtful_number, doubtful_word
from skmc.tables.errors import errors
from skmc.tables.frames import as_table, raw_columns
from skmc.tables.indicator import indicator_for, with_indicator
from skmc.tables.reading import table_for
from skmc.tables.source import Source
from skmc.tables.table import Table


def warn_of_columns(completer: KeepsEmpty, X: Any, table: Table) -> None:
    """Warn about columns that are not completed, and about doubtful cells.

    Parameters
    ----------
    completer : completer
        Completer whose ``keep_empty_features`` says whether empty columns are kept.
    X : DataFrame or ndarray
        Data of the table.
    table : Table
        Description of the table.

    Raises
    ------
    ValueError
        There is no column to complete.
    """
    names = list(getattr(X, "columns", range(X.shape[1])))
    empty = table.empty
    reasons = [f"{names[k]!r} ({table.left[k]})" for k in table.left if k not in empty]
    columns = ", ".join(reasons)
    if not any(table.kinds):
        if empty and not reasons:
            raise ValueError("X has no observed cell; at least one is needed.")
        raise ValueError(
            f"X has no column that can be completed: {columns or 'all pass through'}. "
            "MixedCompleter completes columns nevertheless that are listed in "
            "categorical."
        )
    remedy = f"; set keep_empty_features=False of {type(completer).__name__} to drop"
    zeros = [k for k in empty if table.columns[k] is not None]
    others = [k for k in empty if table.columns[k] is None]
    for columns_of, kept in (
        (zeros, f"filled with 0{remedy} such columns"),
        (others, f"left empty, as words and dates have no zero{remedy} such columns"),
    ):
        warn_of_empty_columns(completer, np.array(columns_of, int), names, kept)
    if reasons:
        warn_user(
            f"Columns that cannot be inferred are left as they are: {columns}. "
            "MixedCompleter completes them nevertheless if they are listed in "
            "categorical, and is silent if they are listed in passthrough."
        )
    if doubts := _doubts(X, table):
        marks = list(dict.fromkeys(doubts.values()))
        warn_user(
            "Some cells may mark missing ones; if they do, replace them with NaN, or "
            f"pass missing_values={marks} to MixedCompleter: {'; '.join(doubts)}."
        )


def _doubts(X: Container, table: Table) -> dict[str, Any]:
    """Find the first doubtful cell of each column: a description, and its value."""
    said = {}
    raws = raw_columns(X, table.marks)
    for k, (raw, column) in enumerate(zip(raws, table.columns, strict=True)):
        found = None
        if column is not None and column.kind == "numeric":
            found = doubtful_number(raw.floats.astype(float))
        elif k in table.left or (column is not None and column.kind == "categorical"):
            cells = zip(raw.values, raw.missing, strict=True)
            found = doubtful_word([None if gone else word for word, gone in cells])
        if found is not None:
            said[f"{raw.label}, row {found[0]}: {found[1]}"] = raw.values[found[0]]
    return said


def kept_columns(completer: KeepsEmpty, table: Table) -> list[int]:
    """List the columns that a completer returns.

    Parameters
    ----------
    completer : completer
        Completer whose ``keep_empty_features`` says whether empty columns are kept.
    table : Table
        Description of the table.

    Returns
    -------
    list of int
        Positions of the columns.
    """
    dropped = [] if completer.keep_empty_features else table.empty
    return [k for k in range(len(table.columns)) if k not in dropped]


class TakesTables(TakesBounds):
    """Base class of completers that encode columns which are not numbers.

    Subclasses complete the matrix that represents such a table, see
    `skmc.MixedCompleter`. They need the parameter ``like_observed``, and add
    `_of_table` to the attributes of a fit.

    Parameters
    ----------
    {reading}
    """

    _table: ClassVar[Table | None] = None  # set if X is a table
    _represented: ClassVar[Table | None] = None  # set if X is the matrix of a table

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "like_observed": ["boolean", StrOptions({"auto"})],
    }

    def _of_table(self, given: Given) -> dict[str, Any]:
        """Fitted attributes of a table, or of a matrix without a table."""
        if given.source is not None:
            bounds = given.source.table.bounds
            found = {"_table": given.source.table, "_bounds": bounds, "_like": bounds}
            if self.add_indicator:
                found["indicator_"] = indicator_for(given.source.X)
            return found
        like = bounds = self._bounds_of(given.matrix.shape[1])
        if self.like_observed is True:
            low, high = bounds_of(
                self.min_value,
                self.max_value,
                getattr(self, "feature_names_in_", ()),
                given.matrix.shape[1],
            )
            like = LikeObserved.of(given.matrix, low, high)
        return {"_table": None, "_bounds": bounds, "_like": like}

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

        Otherwise a held-out category could be inferred from its other columns.
        """
        return labels[:, self._first_of_given(given)]

    def _represented_by(self, given: Given) -> Table | None:
        """The table that the matrix represents, unless it is one of numbers."""
        table = self._represented if given.source is None else given.source.table
        if table is None or table.only_numbers:
            return None
        same = len(table.first_columns) == given.matrix.shape[1]
        return table if same else None

    def _first_of_given(self, given: Given) -> np.ndarray:
        """For each column, the first one of the same cell, as `_first_of_cells`."""
        if given.source is not None:
            return np.asarray(given.source.table.first_columns)
        return self._first_of_cells(given.matrix.shape[1])

    def _described(self, X: Container) -> Table:
        table = table_for(self, X)
        warn_of_columns(self, X, table)
        return table

    def _written(self, source: Source | None, completed: np.ndarray) -> Any:
        if source is None:
            return completed
        written = source.completed(source.table.decode(completed))
        return safe_indexing(written, kept_columns(self, source.table), axis=1)

    def _answer(self, source: Any, cells: np.ndarray, values: np.ndarray) -> Any:
        if source is None:
            return super()._answer(source, cells, values)
        written = self._written(source, self._completed(cells, values))
        if not self.add_indicator:
            return written
        names = Estimator.get_feature_names_out(self)
        return with_indicator(written, source.X, self.indicator_, names)

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> np.ndarray:
        check_is_fitted(self)
        if self._table is None:
            return super().get_feature_names_out(input_features)
        names = Estimator.get_feature_names_out(self, input_features)
        return self._with_flags(names, names[kept_columns(self, self._table)])

    def score(self, X: Container, y: object = None) -> float:
        check_is_fitted(self)
        if self._table is None:
            return super().score(X, y)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        source = Source.of(self._table, X)
        return -float(np.nanmean(errors(source, y, self._fitted.rows)))


def has_words(X: Container) -> bool:
    """Whether a table has columns that are not numbers.

    Parameters
    ----------
    X : container
        Table to inspect.

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
