"""Tables of numbers, ordered levels and categories."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from numbers import Real
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base import BaseCompleter, Estimator, Limits
from skmc.cells import Container
from skmc.compatibility import Interval, fit_context, safe_indexing, with_callbacks
from skmc.completers import _mixed_answers as answers
from skmc.completers._calibrations import calibrations_of
from skmc.completers.auto import AutoCompleter
from skmc.completers.auto._fit import WRITING
from skmc.loop import FitTasks, time_limit
from skmc.tables import (
    Calibration,
    Source,
    as_table,
    indicator_for,
    kept_columns,
    matrix_weights,
    read_table_weights,
    table_for,
    warn_of_columns,
    with_indicator,
    with_tables,
)

Values = Annotated[Sequence[Any] | np.ndarray, "array-like"]
Columns = Values | str | int | slice | Callable[[Any], Any]


class MixedCompleter(Estimator):
    """Completes tables of numbers, ordered levels, categories and dates.

    A completer works on a matrix that represents the table, in which every column of
    the table has the same weight:

    - A number is standardized: its column's mean is subtracted, and the result is
      divided by the standard deviation.
    - An ordered level is represented by its position 0, 1, 2, ..., standardized
      likewise. The completion is the nearest level.
    - Categories get one column each, which is one in the rows of that category and zero
      in the others. The shares of the categories are subtracted, and all these columns
      are divided by one number, so that their variances have the sum one. A missing
      category is missing in all of its columns and does not get a column of its own.
      The completion is the category with the largest probability, see `predict_proba`.
    - A date, time or duration is the number of years, months, days, hours, ... since a
      fixed date, in the coarsest of these units in which all observed values are whole.
      It is standardized like a number, and the completion is a whole number of these
      units, in the same type, time zone or text format.

    The statistics are those of the observed cells in `fit`. A table of numbers alone is
    passed to the completer unchanged. Otherwise, the completer's ``scaling="auto"``
    becomes None, because the matrix is standardized. With ``scaling="columns"`` each
    category has the weight of a column, rare categories included.

    Columns of text, of booleans, and of unordered categories are completed if at least
    half of their rows hold a *common* value: one that occurs in at least the share
    ``min_frequency`` of the rows, and twice. Completions are common values. All other
    such columns are returned unchanged, with one warning that lists them with the
    reasons: identifiers, free text, and categories that are mostly missing or rarely
    repeat.

    Parameters
    ----------
    completer : completer or None, default=None
        Completer of the matrix; `fit` works on a clone. None is
        ``AutoCompleter(random_state=0)``.
    categorical : columns as in `sklearn.compose.ColumnTransformer`, or None, \
default=None
        Columns that are always completed as categories. Each of their values is a
        category, including numbers and rare values. Names, positions, a mask with one
        bool for each column, a slice, or a function of the table that returns these,
        such as ``make_column_selector(dtype_include="category")``.
    ordinal : dict of column to sequence of levels, lowest first, or None, default=None
        Columns of ordered levels, in addition to pandas' ordered categories.
    passthrough : columns as for ``categorical``, or None, default=None
        Columns to return unchanged and not to learn from, without a warning.
    min_frequency : float in [0, 1], default=0.01
        Smallest share of the rows in which a common value occurs. A column has at most
        ``1 / min_frequency`` categories, whatever the number of rows.
    like_observed : bool, default=True
        Whether completed numbers resemble the observed ones: integers are whole,
        decimals have at most as many digits as those of the column, values are within
        the column's observed range, and ordered levels are levels that occur.
    min_value, max_value : float, array-like of shape (n_features,), dict of column to \
float, or None, default=None
        Bounds of completed numbers, as in `sklearn.impute.IterativeImputer`. They
        replace the end of the observed range, and the other end, too, if that
        contradicts them. NaN and columns that a dict does not list have none. Draws are
        from the distribution between the bounds.
    missing_values : float, str, date, duration, or sequence of these, \
default=numpy.nan
        Values that mark missing cells, in addition to NaN, None and pandas' NA, such as
        -999 or ``[-999, "?"]``. They mark cells of all columns that are completed.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. As by scikit-learn's imputers,
        numbers and columns without a type are filled with 0, and booleans with False.
        Columns of words, categories and dates stay missing: nothing is known of them,
        and encoders take missing values. False drops all of them.

    Attributes
    ----------
    completer_ : completer
        Clone of the completer, fitted to the matrix.
    kinds_ : list of {"numeric", "ordinal", "categorical", "date", None}
        Kind of each column. None means that the column is returned unchanged, or
        filled with 0 if it has no observed cell.
    categories_ : dict of column to list
        Categories of each column of categories, by name, or by position if the
        input has no names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the input has names

    Notes
    -----
    Probabilities of categories are calibrated by the log score on held-out cells: a
    fifth of the cells of categories is hidden from another fit. In small tables there
    are up to five such fits, until a hundred cells of each column have been held out.
    `TreesCompleter` with "extra_trees" and without ``linear``, and `ChainedCompleter`,
    need none, because they predict the rows of a fit by models of other rows, and
    `AutoCompleter` has held-out cells of its own. Columns keep their dtype. Without
    ``like_observed``, integers become floating-point numbers if any of them is missing.
    A category that is not common or did not occur in `fit` is missing for the completer
    and is returned unchanged. The order of day and month in texts such as 03/04/2020 is
    inferred from the other dates of the column. If that is not possible, the column is
    returned unchanged. Numbers mixed with text, such as ``3.5`` and "unknown", are an
    error if the column has missing cells. Otherwise the column is returned unchanged.
    The errors of all columns are reported together.

    Examples
    --------
    >>> import pandas as pd
    >>> from skmc import MixedCompleter
    >>> table = pd.DataFrame(
    ...     {
    ...         "length": [1.0, 1.1, 0.9, 5.0, 5.2, 4.8, None],
    ...         "width": [2.1, 2.0, 1.8, 9.9, 10.1, 10.0, 10.0],
    ...         "kind": ["cat", "cat", "cat", "dog", None, "dog", "dog"],
    ...     }
    ... )
    >>> from skmc import SVDCompleter
    >>> completer = MixedCompleter(SVDCompleter(rank=1)).fit(table)
    >>> completer.kinds_
    ['numeric', 'numeric', 'categorical']
    >>> completer.transform(table).round(1).tail(3)
       length  width kind
    4     5.2   10.1  dog
    5     4.8   10.0  dog
    6     4.9   10.0  dog
    """

    completer: BaseCompleter | None = None
    _: KW_ONLY
    categorical: Columns | None = None
    ordinal: Mapping[Any, Sequence[Any]] | None = None
    passthrough: Columns | None = None
    min_frequency: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.01
    like_observed: bool = True
    min_value: Limits = None
    max_value: Limits = None
    missing_values: float | str | dt.date | dt.timedelta | Values = np.nan
    add_indicator: bool = False
    keep_empty_features: bool = True

    # Calibrations of categories; None if those of the completer are calibrated.
    _calibrations = cast("list[Calibration] | None", None)

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Container, y: object = None, *, cell_weight: Container | None = None
    ) -> MixedCompleter:
        """Learn the relations between the columns.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or container as for completers, of shape \
        (n_samples, n_features)
            NaN, None and pandas' NA mark missing cells.
        y : Ignored
            Ignored; present for pipelines.
        cell_weight : array of shape (n_samples, n_features) or (n_cells,), optional
            Weight of each cell, >= 0: a weight of 2 counts the cell twice, 0 hides it.
            One number for each cell of `Entries`, otherwise a matrix of the shape of
            ``X``. Weights are used in the statistics of the columns and in the
            completer. The kinds of columns and their common values do not depend on
            weights above 0.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            The completer takes no ``cell_weight``.
        ValueError
            ``cell_weight`` has another shape, or the weight of an observed cell is
            negative or NaN.
        """
        start = time.perf_counter()
        weights = read_table_weights(X, cell_weight, self.missing_values)
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        table = table_for(self, X, weights)
        warn_of_columns(self, X, table)
        completer = self.completer
        if completer is None:
            completer = AutoCompleter(random_state=0)
        for name in ("min_value", "max_value"):
            if getattr(completer, name, None) is not None:
                raise ValueError(
                    f"{name} of {type(completer).__name__} would bound the columns of "
                    f"the matrix that represents X; pass {name} to MixedCompleter."
                )
        completer = table.completer_of(completer)
        source, known = Source.of(table, X), {}
        if weights is not None:
            known["cell_weight"] = matrix_weights(table, weights)
        left = completer.get_params(deep=False).get("max_time")
        if left is not None:  # of which reading and writing take a part, too
            left = max(0.0, left - (1 + WRITING) * (time.perf_counter() - start))
        with time_limit(left):
            with FitTasks(self, X, y, 1) as tasks, tasks.handed_to(completer):
                self.completer_ = completer.fit(source.matrix, **known)
            calibrations = None
            if not isinstance(completer, AutoCompleter):  # which has its own
                again = table.completer_of(completer)
                calibrations = calibrations_of(again, completer, source, weights)
        self.indicator_ = None
        if self.add_indicator:
            self.indicator_ = indicator_for(X, table.marks)
        self._table, self.kinds_ = table, table.kinds
        self.categories_, self._calibrations = source.categories, calibrations
        return self

    def transform(self, X: Container) -> Any:
        """Complete rows of the fitted table or new rows.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Table to complete.

        Returns
        -------
        DataFrame of the same kind, or ndarray, of shape (n_samples, n_features)
            Observed cells are unchanged. An array holds objects unless all columns are
            numeric. Columns of ``add_indicator`` follow. Empty columns are dropped if
            ``keep_empty_features`` is False.
        """
        source = self._source(X)
        matrix = self._completed(source.matrix)
        completed = source.completed(self._table.decode(matrix))
        completed = safe_indexing(completed, kept_columns(self, self._table), axis=1)
        if not self.add_indicator:
            return completed
        parts = source.X, self.indicator_, super().get_feature_names_out()
        return with_indicator(completed, *parts, self._table.marks)

    predict_std = available_if(answers.inner_has("predict_std"))(answers.predict_std)
    predict_interval = available_if(answers.inner_has("predict_interval"))(
        answers.predict_interval
    )
    sample = available_if(answers.inner_has("sample"))(answers.sample)
    predict_proba = available_if(answers.has_categories)(answers.predict_proba)

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of ``X``. None stands for the names seen in `fit`, or
            ``x0``, ``x1`` ...

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = super().get_feature_names_out(input_features)
        return self._with_flags(names, names[kept_columns(self, self._table)])

    def _completed(self, matrix: np.ndarray) -> np.ndarray:
        """Complete the matrix that represents a table."""
        completed = self.completer_.transform(matrix)
        if self._calibrations is None:
            return cast(np.ndarray, completed)
        return self._table.calibrated(completed, self._calibrations)

    def _source(self, X: Container) -> Source:
        check_is_fitted(self)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return Source.of(self._table, X)

    score = answers.score
    error_by_type = answers.error_by_type

    def _fit_summary(self) -> dict[str, str]:
        count = Counter(kind or "left unchanged" for kind in self.kinds_)
        columns = ", ".join(f"{n} {kind}" for kind, n in count.items())
        return {"columns": columns, **self.completer_._fit_summary()}

    def __sklearn_tags__(self) -> Any:
        return with_tables(super().__sklearn_tags__())
