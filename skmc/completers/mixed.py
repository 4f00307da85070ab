"""Tables of numbers, ordered levels and categories."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY
from numbers import Real
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from skmc.base import (
    BOUNDS_AND_MARKS,
    BaseCompleter,
    Estimator,
    Explanation,
    Limits,
    refuse_parameters,
    row_names,
)
from skmc.cells import Calibration, Container, TableMatrix
from skmc.compatibility import Interval, fit_context, safe_indexing, with_callbacks
from skmc.completers.auto import AutoCompleter
from skmc.loop import FitTasks, time_limit
from skmc.parameters import Positive, Seed, Workers
from skmc.stacking import calibration
from skmc.tables import (
    Source,
    Table,
    as_table,
    errors,
    explained_in_table,
    indicator_for,
    matrix_weights,
    read_table_weights,
    table_for,
    unknown_categories,
    warn_of_columns,
    warn_of_unknown,
    weights_of_table_rows,
    with_indicator,
    with_tables,
)

Values = Annotated[Sequence[Any] | np.ndarray, "array-like"]
Columns = Values | str | int | slice | Callable[[Any], Any]
WRITING = 2  # times of writing and of looking up rows, relative to that of reading
KINDS = ("numeric", "ordinal", "categorical", "date")
PARTS = 5  # of the cells of categories
# Parameters of the completer, which would concern the matrix and not the table.
OF_TABLES = {
    **dict.fromkeys(BOUNDS_AND_MARKS, "pass {name} to MixedCompleter"),
    "keep_empty_features": "pass {name} to MixedCompleter",
    **dict.fromkeys(
        ("lower_limit", "upper_limit"), "use the completer alone, for numbers"
    ),
    "keep_observed": "tables keep their observed cells, so leave it out",
    "like_observed": "MixedCompleter has it, by default True",
}
ENOUGH = 100  # held-out cells of each category, for which no further fit is made


def _inner_has(name: str) -> Callable[[MixedCompleter], bool]:
    """Make a check whether the completer of a `MixedCompleter` has a method."""

    def check(self: MixedCompleter) -> bool:
        inner = getattr(self, "completer_", self.completer)
        getattr(AutoCompleter if inner is None else inner, name)  # or AttributeError
        return True

    return check


def _has_categories(self: MixedCompleter) -> bool:
    """Check that the table of the fit has columns of categories, if it was a table."""
    return getattr(self, "categories_", None) != {}


class MixedCompleter(Estimator):
    """Complete tables of numbers, ordered levels, categories and dates.

    For any table, with any completer; not for free text and identifiers, which are
    returned unchanged.

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
        category, including numbers and rare values; in large tables, the 300 most
        frequent ones at least. Names, positions, a mask with one
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
float or date, or None, default=None
        Bounds of completed numbers, as in `sklearn.impute.IterativeImputer`. They
        replace the end of the observed range, and the other end, too, if that
        contradicts them. NaN and columns that a dict does not list have none. Draws are
        from the distribution between the bounds. Those of columns of dates are dates,
        durations or texts in the format of the column.
    missing_values : float, str, date, duration, sequence of these, or dict of column \
to these, default=numpy.nan
        Values that mark missing cells, in addition to NaN, None and pandas' NA, such as
        -999 or ``[-999, "?"]``. They mark cells of all columns that are completed;
        those of a dict mark cells of its columns, by name or position: ``{"age": -1}``.
        A number marks texts of it, too, and "-1" marks the number -1.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. As by scikit-learn's imputers,
        numbers and columns without a type are filled with 0, and booleans with False.
        Columns of words, categories and dates stay missing: nothing is known of them,
        and encoders take missing values. False drops all of them.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds, including reading and writing the table. None
        is that of the completer: 60 for ``AutoCompleter``.
    n_jobs : int or None, default=None
        Number of parallel jobs of the completer, if it has this parameter. None is its
        own.
    random_state : int, RandomState instance or None, default=None
        Seed of the completer, if it has this parameter. None is its own.

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

    See Also
    --------
    AutoCompleter : Combines methods for tables of numbers.
    GroupedCompleter : Rows belong to households, schools or patients.
    SeriesCompleter : Rows are times.

    Notes
    -----
    Probabilities of categories are calibrated by the log score on held-out cells: a
    fifth of the cells of categories is hidden from another fit. In small tables there
    are up to five such fits, until a hundred cells of each column have been held out.
    `TreesCompleter` with "extra_trees" and without ``linear``, and `ChainedCompleter`,
    need none, because they predict the rows of a fit by models of other rows, and
    `AutoCompleter` has held-out cells of its own. Columns keep their dtype. Without
    ``like_observed``, integers become floating-point numbers if any of them is missing.
    Rare and unseen categories are kept, but the completer treats them as missing. The
    order of day and month in texts such as 03/04/2020 is inferred from the other dates
    of the column. If that is not possible, the column is returned unchanged. Numbers
    mixed with text, such as ``3.5`` and "unknown", are an error if the column has
    missing cells. Otherwise the column is returned unchanged. The errors of all columns
    are reported together.

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
    missing_values: (
        float | str | dt.date | dt.timedelta | Values | Mapping[Any, Any]
    ) = np.nan
    add_indicator: bool = False
    keep_empty_features: bool = True
    max_time: Positive | None = None
    n_jobs: Workers = None
    random_state: Seed = None

    # Calibrations of categories; None if those of the completer are calibrated.
    _calibrations = cast("list[Calibration] | None", None)
    _row_names = cast("np.ndarray | None", None)  # in the fit, if X had an index

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Container,
        y: object = None,
        *,
        cell_weight: Container | None = None,
        sample_weight: ArrayLike | None = None,
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
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, >= 0, instead of weights of cells: a row of weight 2
            counts as two equal rows. Nothing is learned from a row of weight 0, but it
            is completed, as a new row. A completer that takes weights of cells alone
            gets the weight of the row for each of its cells.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            The completer takes no ``cell_weight``, or no weights at all.
        ValueError
            Weights have another shape, are negative or NaN, or are given for both cells
            and rows.
        """
        start = time.perf_counter()
        weights = read_table_weights(X, cell_weight, self.missing_values)
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        if sample_weight is not None:
            if weights is not None:
                raise ValueError(
                    "X has weights of cells and of rows; pass cell_weight or "
                    "sample_weight, not both."
                )
            weights = weights_of_table_rows(X, sample_weight)
        table = table_for(self, X, weights)
        warn_of_columns(self, X, table)
        indicator = indicator_for(X, table.marks) if self.add_indicator else None
        completer, source = self._completer_for(table), Source.of(table, X)
        known = _known_weights(completer, table, weights, sample_weight is not None)
        left = self.max_time
        if left is None:
            left = getattr(completer, "max_time", None)
        if left is not None:  # of which reading and writing take a part, too
            left = max(0.0, left - (1 + WRITING) * (time.perf_counter() - start))
        with time_limit(left):
            with FitTasks(self, X, y, 1) as tasks, tasks.handed_to(completer):
                matrix = TableMatrix(source.matrix, table.layout)
                self.completer_ = completer.fit(matrix, **known)
            calibrations = None
            if not isinstance(completer, AutoCompleter):  # which has its own
                again, weighed = clone(completer), source
                if sample_weight is not None and weights is not None:
                    used = np.flatnonzero(weights[:, 0])
                    weighed = Source.of(table, safe_indexing(X, used))
                    weights = weights[used]
                    known = {name: own[used] for name, own in known.items()}
                calibrations = _calibrations_of(
                    again, completer, weighed, weights, known
                )
        self.indicator_ = indicator
        self._table, self.kinds_ = table, table.kinds
        self._row_names = row_names(X)
        self._rare = {k: [*found] for k, found in unknown_categories(source).items()}
        self.categories_, self._calibrations = source.categories, calibrations
        return self

    def _completer_for(self, table: Table) -> Any:
        """The completer of the matrix that represents a table, before its fit."""
        completer = self.completer
        if completer is None:
            completer = AutoCompleter(random_state=0)
        refuse_parameters(completer, "MixedCompleter", OF_TABLES)
        completer = for_matrix(completer, table)
        params = completer.get_params(deep=False)
        for name in ("max_time", "n_jobs", "random_state"):
            if name in params and (value := getattr(self, name)) is not None:
                completer.set_params(**{name: value})
        return completer

    def transform(self, X: Container) -> Any:
        """Complete rows of the fitted table or new rows.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Table to complete.

        Returns
        -------
        DataFrame of the same kind, or ndarray, of shape (n_samples, n_features)
            Observed cells are unchanged. Categories that were not in the fit are
            kept, and other cells are completed without them, with a warning. An
            array holds objects unless all columns are
            numeric. Columns of ``add_indicator`` follow. Empty columns are dropped if
            ``keep_empty_features`` is False.
        """
        source = self._source(X)
        warn_of_unknown(source, self._rare)
        matrix = self._completed(source.matrix)
        completed = source.completed(self._table.decode(matrix))
        completed = safe_indexing(
            completed, self._table.kept_columns(self.keep_empty_features), axis=1
        )
        if not self.add_indicator:
            return completed
        parts = source.X, self._indicator_of_fit(), super().get_feature_names_out()
        return with_indicator(completed, *parts, self._table.marks)

    @available_if(_inner_has("predict_std"))
    def predict_std(self, X: Container) -> Any:
        """Standard deviation of the cells that `transform` returns.

        This method is available if the completer has ``predict_std``.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.

        Returns
        -------
        DataFrame of the same kind, or ndarray, of shape (n_samples, n_features)
            0 in observed cells. Numbers have the units of their columns, ordered levels
            those of their positions; dates are `datetime.timedelta`. NaN in columns of
            categories, see `predict_proba`, and in columns that are not completed.
        """
        source = self._source(X)
        return source.deviations(self.completer_.predict_std(source.matrix))

    @available_if(_inner_has("predict_interval"))
    def predict_interval(self, X: Container, level: float = 0.9) -> tuple[Any, Any]:
        """Intervals that contain a share ``level`` of the missing cells.

        This method is available if the completer has ``predict_interval``, which states
        the average over which the share holds.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.
        level : float in (0, 1), default=0.9
            Share of the missing cells.

        Returns
        -------
        low : DataFrame of the same kind, or ndarray, of shape (n_samples, n_features)
        high : DataFrame of the same kind, or ndarray, of shape (n_samples, n_features)
            The interval of an observed cell is its value. Missing categories stay
            missing. Bounds are rounded and clipped like the completion.
        """
        source = self._source(X)
        bounds = self.completer_.predict_interval(source.matrix, level)
        low, high = (_written(source, bound) for bound in bounds)
        return low, high

    @available_if(_inner_has("sample"))
    def sample(
        self,
        X: Container,
        n_samples: int = 1,
        random_state: Seed = None,
    ) -> list[Any]:
        """Draw the missing cells from their distribution given the observed ones.

        This method is available if the completer has ``sample``.

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
        list of DataFrame of the same kind, or of ndarray, each of shape \
(n_samples, n_features)
            Observed cells are unchanged. Draws are rounded and clipped like the
            completion. A missing category is the one with the largest drawn score;
            `skmc.ChainedCompleter` and `skmc.TreesCompleter` draw it from the observed
            categories of similar rows, and `skmc.AutoCompleter` by its probabilities.
        """
        source = self._source(X)
        draws = self.completer_.sample(source.matrix, n_samples, random_state)
        return [source.completed(source.table.decode(draw)) for draw in draws]

    @available_if(_inner_has("explain"))
    def explain(self, X: Container, row: Any, column: Any) -> Explanation:
        """Say why a missing number gets its value.

        This method is available if the completer has ``explain``, whose class says what
        the contributions are.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows of the fitted table or new rows.
        row : int or label
            Row of ``X``: its position, or its label in the index of a DataFrame. An
            integer is a label if the index holds other integers than the positions.
        column : int or str
            Column of numbers: its position or its name.

        Returns
        -------
        Explanation
            In the units of the column. The columns of the matrix that represent a
            category make one contribution.

        Raises
        ------
        ValueError
            The cell is observed, the column has no numbers, or there is no such row or
            column.
        """
        source = self._source(X)
        return explained_in_table(
            source,
            row,
            column,
            lambda i, j: self.completer_.explain(source.matrix, i, j),
            self._row_names,
        )

    @available_if(_has_categories)
    def predict_proba(self, X: Container) -> dict[Any, np.ndarray]:
        """Estimate the probabilities of the categories.

        This method is available if the table of the fit has columns of categories. The
        completer estimates the expectations of the columns that represent a category.
        The nearest numbers that are at least 0 and sum to one are calibrated: their
        ratios to the shares of the categories are raised to a power, and the result is
        mixed with the shares. For each column, the power and the weight of the shares
        maximize the log score on held-out cells: where nothing explains a category, its
        probabilities are near the shares.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.

        Returns
        -------
        dict of column to ndarray of shape (n_samples, n_categories)
            Probabilities for each column of categories, by name, or by position if
            ``X`` has no names, in the order of ``categories_``. The largest probability
            is that of the category that `transform` returns. An observed category has
            the probability 1; the row of an observed value that is not a category is
            NaN.
        """
        source = self._source(X)
        return source.probabilities(self._completed(source.matrix))

    def score(self, X: Container, y: object = None) -> float:
        """Return the negative mean error of cells; higher is better.

        Parameters
        ----------
        X : container as in `fit`
            Table, as for `error_by_type`.
        y : container of X's shape, optional
            Truth, as for `error_by_type`.

        Returns
        -------
        float
            Negative mean over all compared cells of any kind.
        """
        return -float(np.nanmean(self._errors(X, y)))

    def error_by_type(self, X: Container, y: object = None) -> dict[str, float]:
        """Return the mean errors of numeric, ordinal, categorical and date cells.

        The error of a number or date is absolute, relative to the range of its column
        in `fit`. The error of a level is the distance in levels, relative to the
        largest possible distance. The error of a category is 1 if it is wrong.

        Parameters
        ----------
        X : container as in `fit`
            Table to complete.
        y : container of X's shape, optional
            Truth. Cells that are missing in ``X`` and known in ``y`` are compared.
            Without ``y``, a fifth of each row's observed cells is hidden (the same
            cells each time), completed and compared; this is optimistic for rows of
            the fit. A one-dimensional ``y`` is the target of a pipeline and ignored.

        Returns
        -------
        dict
            Mean error for each of "numeric", "ordinal", "categorical" and "date" that
            occurs in the table. NaN if no cell of that kind can be compared.
        """
        errors = self._errors(X, y)
        kinds = np.array(self.kinds_, object)
        errors_of_kinds = {}
        for kind in KINDS:
            chosen = errors[:, kinds == kind]
            if chosen.size:
                some = not np.isnan(chosen).all()
                errors_of_kinds[kind] = float(np.nanmean(chosen)) if some else np.nan
        return errors_of_kinds

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
        return self._with_flags(
            names, names[self._table.kept_columns(self.keep_empty_features)]
        )

    def _completed(self, matrix: np.ndarray) -> np.ndarray:
        """Complete the matrix that represents a table."""
        completed = self.completer_.transform(matrix)
        if self._calibrations is None:
            return cast(np.ndarray, completed)
        return self._table.layout.calibrated(completed, self._calibrations)

    def _source(self, X: Container) -> Source:
        check_is_fitted(self)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return Source.of(self._table, X)

    def _errors(self, X: Container, y: object) -> np.ndarray:
        """Errors of the compared cells; NaN elsewhere."""
        return errors(self._source(X), y, self._completed)

    def _fit_summary(self) -> dict[str, str]:
        count = Counter(kind or "left unchanged" for kind in self.kinds_)
        columns = ", ".join(f"{n} {kind}" for kind, n in count.items())
        return {"columns": columns, **self.completer_._fit_summary()}

    def __sklearn_tags__(self) -> Any:
        return with_tables(super().__sklearn_tags__())


def _written(source: Source, matrix: np.ndarray) -> Any:
    """The table of a matrix, in which missing categories stay missing."""
    return source.completed(source.table.decode(matrix), only_measured=True)


def for_matrix(completer: Any, table: Table) -> Any:
    """Clone a completer for the matrix of a table, which is standardized."""
    copy = clone(completer)
    if not table.only_numbers and copy.get_params().get("scaling") == "auto":
        copy.set_params(scaling=None)
    return copy


def _known_weights(
    completer: Any, table: Table, weights: np.ndarray | None, of_rows: bool
) -> dict[str, np.ndarray]:
    """Weights as arguments of the completer's fit: of rows if it takes them."""
    if weights is None:
        return {}
    if of_rows and has_fit_parameter(completer, "sample_weight"):
        return {"sample_weight": weights[:, 0]}
    return {"cell_weight": matrix_weights(table, weights)}


def _calibrations_of(
    completer: Any,
    fitted: Any,
    source: Source,
    weights: np.ndarray | None,
    known: Mapping[str, Any],
) -> list[Calibration]:
    """Choose the calibration of each column of categories.

    ``completer`` is unfitted; ``fitted`` is the same one, fitted to all cells.
    ``weights`` are those of the cells of the table, and ``known`` are further arguments
    of ``fit``.
    """
    table, calibrations = source.table, []
    held_out = list(_held_out(completer, fitted, source, known))
    chosen = [k for k, kind in enumerate(table.kinds) if kind == "categorical"]
    for k, (columns, category) in zip(chosen, table.layout.categories, strict=True):
        held_out_rows = [np.flatnonzero(hidden[:, k]) for hidden, _ in held_out]
        rows = np.concatenate(held_out_rows)
        blocks = [
            completed[np.ix_(part, columns)]
            for part, (_, completed) in zip(held_out_rows, held_out, strict=True)
        ]
        proba = category.probabilities(np.concatenate(blocks))
        true = source.numbers[rows, k].astype(int)
        counts = None if weights is None else weights[rows, k]
        calibrations.append(calibration(proba, true, category.shares, counts))
    return calibrations


def _held_out(
    completer: Any, fitted: Any, source: Source, known: Mapping[str, Any]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Hidden cells of categories, and the completed matrix.

    A fifth of the cells is hidden from another fit, and so on until a hundred cells of
    each category have been held out. If models of other rows predict the rows of a fit,
    no other fit is needed, and all cells are held out, a fifth at a time.
    """
    table, numbers = source.table, source.numbers
    layout = table.layout
    if not layout.categories:
        return
    matrix = source.matrix
    seen = ~np.isnan(numbers)
    categorical = np.array([kind == "categorical" for kind in table.kinds])
    part = np.random.RandomState(0).randint(PARTS, size=numbers.shape)
    out_of_bag = getattr(fitted, "_out_of_bag", False)
    n_hidden = np.zeros(categorical.sum(), int)
    for number in range(PARTS):
        if not out_of_bag and n_hidden.min() >= ENOUGH:
            break
        hidden = seen & categorical & (part == number)
        hidden[~(seen & ~hidden).any(1)] = False  # not all cells of a row
        n_hidden += hidden[:, categorical].sum(0)
        rest = table.encode(np.where(hidden, np.nan, numbers))
        if out_of_bag:
            gone = np.isnan(rest) & ~np.isnan(matrix)
            yield hidden, fitted._fitted.without(matrix, gone)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those of the fit to all cells suffice
                fit = completer.fit(TableMatrix(rest, layout), **known)
                yield hidden, fit.transform(rest)
