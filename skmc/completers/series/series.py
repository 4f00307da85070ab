"""Series of many sensors, shops or states, completed over time."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base import (
    BOUNDS_AND_MARKS,
    BaseCompleter,
    Estimator,
    Limits,
    bounds_of,
    refuse_parameters,
)
from skmc.cells import Container, LikeObserved, Scaling
from skmc.compatibility import fit_context, with_callbacks
from skmc.completers._units import standardized, undone
from skmc.completers.gaussian import GaussianCompleter
from skmc.completers.series._local import LocalWeights, scaling_of
from skmc.completers.series._members import SeasonalMean, Span, members_for
from skmc.completers.series._periods import find_periods
from skmc.completers.series._stack import HELD_OUT, SeriesStack
from skmc.completers.series._table import Series, TimeGrid, TimeTable
from skmc.linalg import seed_of, threads_for
from skmc.loop import FitTasks
from skmc.metrics import check_level, nmae
from skmc.parameters import Count, Seed
from skmc.patterns import moved_gaps
from skmc.stacking import Spread
from skmc.tables import (
    as_table,
    indicator_for,
    marks_of_columns,
    position_of,
    with_indicator,
    with_tables,
)

# Parameters of the completer, which would concern matrices of standardized cells.
OF_SERIES = {
    **dict.fromkeys(
        (*BOUNDS_AND_MARKS, "like_observed"), "pass {name} to SeriesCompleter"
    ),
    **dict.fromkeys(
        ("lower_limit", "upper_limit"), "replace the cells beyond it, or leave it out"
    ),
    **dict.fromkeys(
        ("keep_observed", "keep_empty_features"),
        "series keep their observed cells and stay empty without one, so leave it out",
    ),
}
Periods = Annotated[Sequence[int] | np.ndarray, "array-like"]


def _takes_series(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method take a Series of pandas or polars, and return one for it."""

    @functools.wraps(method)
    def wrapped(self: SeriesCompleter, X: Any, *args: Any, **given: Any) -> Any:
        if not hasattr(X, "to_frame") or hasattr(X, "columns"):
            return method(self, X, *args, **given)
        if "y" in given or args:  # the truth is another Series
            y, *others = args or (given.pop("y"),)
            args = (y.to_frame(X.name) if hasattr(y, "to_frame") else y, *others)
        found = method(self, X.to_frame(), *args, **given)
        if isinstance(found, tuple):
            return tuple(_as_series(part, X) for part in found)
        return _as_series(found, X)

    return wrapped


def _as_series(found: Any, X: Any) -> Any:
    """Return the column of a table of one column as a Series like ``X``."""
    if not hasattr(found, "columns") or len(found.columns) != 1:
        return found
    if hasattr(found, "to_series"):  # polars
        return found.to_series()
    return found.iloc[:, 0].rename(X.name)


class SeriesCompleter(Estimator):
    r"""Complete the gaps of series: a row for each time, a column for each series.

    For sensors, loads, sales and other values over time; not for rows without a time,
    and not for forecasts.

    Series that repeat themselves can be arranged in matrices in several ways. Time
    :math:`t = d P + j` is slot j of period d, for example of a day:

    - *times*: a row for each time, with the cells of all series;
    - *periods*: a row for each period and series, with the cells of all slots;
    - *slots*: a row for each slot and series, with the cells of all periods.

    In each of them, rows can also have the cells at neighboring times or in neighboring
    periods. ``completer`` completes these matrices, with neighbors and without. Linear
    interpolation and the means of slots are further members. The completion is

    .. math::

        X_{ts} = \sum_k w_{lk} X^{(k)}_{ts}, \qquad w_{lk} \ge 0, \quad
        \sum_k w_{lk} = 1,

    where l is the class of the length of the gap: 1, 2 to 3, 4 to 7, and so on. Cells
    before the first and after the last observed cell of a series have classes of their
    own, by their distance from it. The weights minimize the squared error on observed
    cells that are held out in gaps like those of the missing cells, see Notes.

    Parameters
    ----------
    completer : completer or None, default=None
        Completer of the matrices, which is cloned. None is
        ``GaussianCompleter(tol=1e-3)``, which uses factors above 300 columns.
    period : "auto", int >= 2, sequence of int or None, default="auto"
        Numbers of times in a period, at most half of the series. "auto" takes a day, a
        week and a year from the index if the series repeat after them, and otherwise
        the peaks of the autocorrelation; at most two. None means no period.
    time : str, int or None, default=None
        Column of the times, which is returned unchanged. None means the index of a
        pandas data frame, if it has dates or distinct whole numbers; other rows are at
        consecutive times. Texts are read as dates if they have one format.
    unit : str, int or None, default=None
        Column of the units, such as shops or patients, or level of a pandas index, for
        a table with a row for each unit and time. The columns of each unit are series,
        which are completed together and may have different times. None means that all
        rows belong to the same series.
    max_gap : int >= 1 or None, default=None
        Largest number of consecutive missing rows of a series that are completed. The
        cells of longer gaps stay missing. None completes all.
    causal : bool, default=False
        Whether the completion of a time uses cells of this and of earlier times only,
        as a forecast does. What `fit` learns still depends on all times of the fit.
    scaling : {"auto", "columns"} or None, default="auto"
        "auto" and "columns" standardize each series by its own mean and deviation, so
        that a small series is completed as well as a large one, relative to its
        deviation. None leaves them, and minimizes the squared error in their unit.
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells.
    min_value, max_value : float, array-like, dict or None, default=None
        Bounds of completed cells and of intervals: one for all columns, one for each,
        or by name or position. None, NaN and columns that a dict does not list have
        none. Try 0 for loads and sales.
    like_observed : bool, default=False
        Whether completed cells resemble the observed ones: integers are whole, decimals
        have at most as many digits as those of the column, and values are within the
        column's observed range, unless ``min_value`` and ``max_value`` replace its
        ends.
    missing_values : float, str, sequence or dict, default=numpy.nan
        Values that mark missing cells, in addition to NaN, None and pandas' NA, such as
        -999, in all columns or in those of a dict.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.

    Attributes
    ----------
    periods_ : list of int
        The periods.
    weights_ : dict of str to ndarray of shape (2 * n_classes,)
        Weights :math:`w_{lk}` of each member, for gaps of length 1, 2 to 3, 4 to 7,
        ..., and then for the 1st, 2nd to 3rd, 4th to 7th, ... cell from the nearest
        observed one at an end.
    error_ : float
        Root mean squared error on the held-out cells, of weights that are fitted to
        others; in standard deviations if the series are standardized. Gaps and ends
        have the shares that they have of the missing cells.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the input has names

    See Also
    --------
    GaussianCompleter : The usual completer inside of this class.
    skmc.panel.effect : Effects of a treatment on some of the series.

    Notes
    -----
    Times become positions on a grid of equal steps: months if all times are on the same
    day of months, otherwise the most frequent difference. Times without a row are
    missing for all series. Rows need not be sorted. Times with a zone are converted to
    UTC, where no hour is lost or doubled; so hours, days and months are those of UTC.

    Columns that are not numbers, and series without an observed cell, are returned
    unchanged, with a warning. A new unit needs a new fit.

    `transform` completes rows whose times are those of the fit, or lie between them,
    in the grid of the fit; rows without times are taken for those of the fit if their
    number is the same, and for the rows after it otherwise. If a time is outside of the
    fit, all rows of the call are completed by members whose rows do not depend on the
    periods of the fit, with weights of their own. In both cases, cells are completed
    from the cells of the call and from what `fit` has learned.

    Other cells than those of the fit may have another level, amplitude or phase. So up
    to four tenths of the call's observed cells are held out, and completed by the stack
    in the units of the fit, by the stack in the means and deviations of the call, and
    by interpolation. Each series has its own weights of the three, which are shrunk to
    the stack in the units of the fit unless the others are certainly better on these
    cells. Deviations grow where the errors are larger than expected. With ``causal``,
    the held-out cells are in the first half of the times up to a cell, or more.

    Weights of a class of gaps without a hidden gap are those of all gaps, and its
    errors are taken from the class of the most similar length. So intervals of gaps
    that are much longer than those that fit into the series can be too narrow.

    There are few ends to learn from. So the weights of ends are mixed with a repetition
    of the nearest observed cell, by the more, the less certainly they were better on
    the held-out ends. The trend of a series is not extrapolated. With ``causal``, each
    gap is an end.

    A completer is fitted to at most 10 000 random rows of each matrix, twice. Windows
    with neighbors have at most 300 columns. The method is that of this package; it has
    not been published elsewhere.

    A tenth of the observed cells is held out: the gaps of the missing cells are moved
    in time, and to other series if there are too few. If that is fewer than 2000 cells,
    other tenths follow, up to four. The weights of ends come from series that are cut
    off earlier or later, as theirs are; at least sixteen of them, if four rounds have
    them. A member without a value, such as windows of which no cell is observed, leaves
    its weight to the others.

    References
    ----------
    Chen, Sun. Bayesian temporal factorization for multidimensional time series
    prediction. IEEE Transactions on Pattern Analysis and Machine Intelligence 44
    (2022), for the matrices of series. Breiman. Stacked regressions. Machine Learning
    24 (1996).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skmc import SeriesCompleter
    >>> hours = pd.date_range("2024-01-01", periods=24 * 14, freq="h")
    >>> rng = np.random.RandomState(0)
    >>> daily = 10 + 3 * np.sin(2 * np.pi * hours.hour.to_numpy() / 24)
    >>> load = pd.DataFrame(
    ...     {"north": daily + 0.1 * rng.randn(336), "south": 2 * daily}, index=hours
    ... )
    >>> load.iloc[50:60, 0] = np.nan
    >>> completer = SeriesCompleter(random_state=0).fit(load)
    >>> completer.periods_
    [24]
    >>> completed = completer.transform(load)
    >>> bool(abs(completed["north"] - daily).max() < 0.5)
    True
    """

    completer: BaseCompleter | None = None
    _: KW_ONLY
    period: Literal["auto"] | Count | Periods | None = "auto"
    time: str | int | None = None
    unit: str | int | None = None
    max_gap: Count | None = None
    causal: bool = False
    scaling: Literal["auto", "columns"] | None = "auto"
    random_state: Seed = None
    min_value: Limits = None
    max_value: Limits = None
    like_observed: bool = False
    missing_values: float | str | Periods | Mapping[Any, Any] = np.nan
    add_indicator: bool = False

    periods_: list[int] = field(init=False)
    weights_: dict[str, np.ndarray] = field(init=False)
    error_: float = field(init=False)
    _fitted: FittedSeries = field(init=False)
    _units: list[Any] = field(init=False)
    _like: LikeObserved | None = field(init=False)

    @_takes_series
    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Container, y: object = None) -> SeriesCompleter:
        """Learn how the series depend on each other and on time.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or container as for completers, of shape \
(n_times, n_columns)
            Series, or a single one as a pandas or polars Series; other methods return
            then one, too. NaN, None and pandas' NA mark missing cells. Columns of
            dates, durations and text are left as they are, with a warning.
        y : Ignored
            Ignored; present for pipelines.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            There is a single time, or no column of numbers with an observed cell; a
            time is missing or occurs twice in a unit; a unit is missing; a number is
            infinite; or ``period`` is longer than half of the series.
        """
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        refuse_parameters(
            self.completer or GaussianCompleter(), "SeriesCompleter", OF_SERIES
        )
        marks = marks_of_columns(self.missing_values)
        table = TimeTable.read(X, self.time, self.unit, marks=marks)
        like = self._like_of(table)
        indicator = indicator_for(X, marks) if self.add_indicator else None
        with FitTasks(self, X, y, None) as tasks:
            self._fitted = self._fit_table(table, tasks)
        self.indicator_, self._units = indicator, [*table.rows]
        self._like = like
        self.periods_ = self._fitted.periods
        self.error_, self.weights_ = self._fitted.error, self._fitted.weights
        return self

    @_takes_series
    def transform(self, X: Container) -> Any:
        """Complete the series at the times of the fit, or at other times.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_times, n_columns)
            Series with the columns of the fit.

        Returns
        -------
        DataFrame of the same kind, or ndarray, of shape (n_times, n_columns)
            Observed cells and columns that are not series are unchanged. Cells of gaps
            that are longer than ``max_gap`` stay missing. Columns of ``add_indicator``
            follow.
        """
        table, values, _, _ = self._predict(X)
        completed = table.completed(values)
        if not self.add_indicator:
            return completed
        names = super().get_feature_names_out()
        marks = marks_of_columns(self.missing_values)
        return with_indicator(
            completed, table.X, self._indicator_of_fit(), names, marks
        )

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
        return self._with_flags(names, names)

    @_takes_series
    def predict_std(self, X: Container) -> Any:
        """Standard deviation of the cells that `transform` returns.

        It is made of the errors of the held-out cells of the series in gaps of similar
        length, and of the variance of the members.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_times, n_columns)
            Series with the columns of the fit.

        Returns
        -------
        DataFrame of the same kind, or ndarray, of shape (n_times, n_columns)
            0 in observed cells, NaN in columns that are not series and where
            `transform` completes nothing.
        """
        table, _, std, _ = self._predict(X)
        return table.like(np.where(np.isnan(table.cells), std, 0.0))

    @_takes_series
    def predict_interval(self, X: Container, level: float = 0.9) -> tuple[Any, Any]:
        """Intervals that contain a share ``level`` of the missing cells.

        The share is that of the held-out cells, over all series and gaps.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_times, n_columns)
            Series with the columns of the fit.
        level : float in (0, 1), default=0.9
            Share of the missing cells.

        Returns
        -------
        low : DataFrame of the same kind, or ndarray, of shape (n_times, n_columns)
        high : DataFrame of the same kind, or ndarray, of shape (n_times, n_columns)
            The interval of an observed cell is its value.
        """
        check_level(level)
        table, values, std, spread = self._predict(X)
        half = std * spread.quantile(level)
        low, high = (self._admitted(end) for end in (values - half, values + half))
        return table.completed(low), table.completed(high)

    @_takes_series
    def score(self, X: Container, y: Any = None) -> float:
        """Negative normalized mean absolute error; higher is better, 0 is perfect.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_times, n_columns)
            Series with the columns of the fit.
        y : container of the same shape or None, default=None
            True values. The score compares the cells that are missing in ``X`` and
            known in ``y``. Without ``y``, a tenth of the observed cells is hidden, in
            gaps like those of the missing ones (the same each time), completed and
            compared. For times of the fit this score is optimistic. A one-dimensional
            ``y`` is the target of a pipeline and is ignored.

        Returns
        -------
        float
            ``-mean |X - M| / (max M - min M)``, of the standardized series if the fit
            standardizes them.

        Raises
        ------
        ValueError
            No cell can be compared.
        """
        table = self._read(X)
        if y is None or np.ndim(y) == 1:
            truth, order = table.cells, table.positions(self._fitted.grid).argsort()
            missing, hidden = np.isnan(truth[order]), np.empty(truth.shape, bool)
            rng = np.random.RandomState(0)
            n_hidden = round(HELD_OUT * (~missing).sum())
            hidden[order] = moved_gaps(missing, ~missing, n_hidden, rng)
            table = replace(table, cells=np.where(hidden, np.nan, truth))
        else:
            truth = self._read(y).cells_at(table)
            hidden = np.isnan(table.cells) & ~np.isnan(truth)
        if not hidden.any():
            raise ValueError("There is no cell to compare.")
        values = self._admitted(self._fitted.predict(table)[0])
        scaling = self._fitted.scaling
        M = standardized(truth, scaling)
        return -nmae(standardized(values, scaling), M, hidden)

    @threads_for(0)  # the members choose their own
    def _fit_table(self, table: TimeTable, tasks: FitTasks) -> FittedSeries:
        """Fit the members that the parameters ask for to the series of a table."""
        rng = np.random.RandomState(seed_of(self.random_state) % 2**32)
        grid = table.grid()
        at = table.positions(grid)
        span = Span(int(at.min()), int(np.ptp(at)) + 1, len(table.series))
        cells = _placed(table.cells, at, span)
        how = "columns" if self.scaling == "auto" else self.scaling
        scaling = scaling_of(cells, how)
        # A constant series may have other values later.
        scale = torch.where(scaling.scale > 0, scaling.scale, 1.0)
        scaling = replace(scaling, scale=scale)
        scaled = standardized(cells, scaling)
        periods = _periods_of(scaled, self.period, grid)
        completer: Any = self.completer
        if completer is None:
            completer = GaussianCompleter(tol=1e-3, random_state=0)
        members = members_for(completer, periods, span, self.causal, rng.randint(2**31))
        mean = SeasonalMean(periods[0] if periods else 1)
        present = _placed(table.present, at, span) == 1
        with warnings.catch_warnings():
            if self.completer is None:  # weights suit any state of its models
                warnings.simplefilter("ignore", ConvergenceWarning)
            stack = SeriesStack.fit(
                scaled, span.start, present, members, mean, self.causal, tasks, rng
            )
        return FittedSeries(
            table.series, grid, span, cells, scaling, how, periods, stack
        )

    def _predict(
        self, X: Container
    ) -> tuple[TimeTable, np.ndarray, np.ndarray, Spread]:
        """The table, and values, deviations and errors; NaN in long gaps."""
        table = self._read(X)
        values, std, spread = self._fitted.predict(table)
        values = self._admitted(values)
        if self.max_gap is not None:
            long = table.gap_lengths() > self.max_gap
            values, std = (np.where(long, np.nan, found) for found in (values, std))
        return table, values, std, spread

    def _read(self, X: Container) -> TimeTable:
        check_is_fitted(self)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        parts = self._fitted.series, self._units, marks_of_columns(self.missing_values)
        return TimeTable.read(X, self.time, self.unit, *parts)

    def _like_of(self, table: TimeTable) -> LikeObserved | None:
        """Restrictions of the values of each series; None if there are none."""
        names, columns = getattr(table.X, "columns", ()), [k for _, k in table.series]
        ends = self.min_value, self.max_value
        low, high = bounds_of(*ends, names, table.X.shape[1])
        for name, given in zip(("min_value", "max_value"), ends, strict=True):
            for column in given if isinstance(given, Mapping) else ():
                if position_of(table.X, column, name) not in columns:
                    raise ValueError(
                        f"{name} names column {column!r}, which is not a series of "
                        "numbers with an observed cell; leave it out."
                    )
        if not self.like_observed:
            low, high = low[columns], high[columns]
            if np.isnan([low, high]).all():
                return None
            return LikeObserved.within(low, high)
        own = {
            k: LikeObserved.of(
                table.cells[:, np.equal(columns, k)].reshape(-1, 1), low[k], high[k]
            )
            for k in set(columns)
        }
        parts = [own[k] for k in columns]
        return LikeObserved(
            np.concatenate([part.decimals for part in parts]),
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.high for part in parts]),
        )

    def _admitted(self, values: np.ndarray) -> np.ndarray:
        """The nearest values that the series may have."""
        return values if self._like is None else self._like.apply(values)

    def _choices(self, X: Any) -> dict[str, Any]:
        keys = [column for column in (self.time, self.unit) if column is not None]
        levels = getattr(getattr(X, "index", None), "names", ())
        own = {"passthrough": [column for column in keys if column not in levels]}
        return {"like_observed": self.like_observed} | super()._choices(X) | own

    def __sklearn_tags__(self) -> Any:
        return with_tables(super().__sklearn_tags__())


@dataclass(frozen=True, eq=False)
class FittedSeries:
    """A stack, and where the series of the fit were.

    Parameters
    ----------
    series : list of (unit, int)
        Series of the fit: unit, and column of the table.
    grid : TimeGrid
        Positions of times.
    span : Span
        Positions of the fit.
    cells : ndarray of shape (n_times, n_series)
        Cells of the fit.
    scaling : Scaling
        Standardization of the series.
    how : {"columns"} or None
        Cells that are standardized together.
    periods : list of int
        Periods.
    stack : SeriesStack
        Members and weights.
    """

    series: list[Series]
    grid: TimeGrid
    span: Span
    cells: np.ndarray
    scaling: Scaling
    how: str | None
    periods: list[int]
    stack: SeriesStack

    @property
    def error(self) -> float:
        """Error on the held-out cells."""
        return self.stack.error

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """Weights of the members for each class of gaps."""
        columns = self.stack.own.weights.T
        pairs = zip(self.stack.members, columns, strict=True)
        return {member.name: own for member, own in pairs}

    @threads_for(0)
    def predict(self, table: TimeTable) -> tuple[np.ndarray, np.ndarray, Spread]:
        """Complete the series of a table."""
        at, span = table.positions(self.grid), self.span
        if table.ticks is None:
            at = at + (span.start if len(at) == span.n_times else span.stop)
        else:
            self.grid.warn_of_gaps(at)
        later = at.min() < span.start or at.max() >= span.stop
        if later:
            span = Span(int(at.min()), int(np.ptp(at)) + 1, span.n_series)
        cells = _placed(table.cells, at, span)
        weights = self.stack.later if later else self.stack.own

        def stack(some: np.ndarray, units: Scaling) -> tuple[np.ndarray, np.ndarray]:
            scaled = standardized(some, units)
            values, std = self.stack.predict(scaled, span.start, weights)
            return undone(values, units), std * units.scale.numpy()

        how, causal, n_times = self.how, self.stack.causal, len(cells)
        # Causal weights are those of the first half of the times up to a cell.
        stops = [2**k for k in range(n_times.bit_length())] if causal else [n_times]
        values, std = stack(cells, self.scaling)
        if not later and (np.isnan(cells) | (cells == self.cells)).all():
            stops = []  # the weights of the fit are those of its cells
        for stop in stops:
            known, until = cells[:stop], min(2 * stop, n_times)
            local = LocalWeights.of(known, stack, self.scaling, how, causal)
            since = stop if causal else 0
            own = local.predict(cells[:until], known)
            values[since:until], std[since:until] = (part[since:] for part in own)
        at = at - span.start
        return values[at], std[at], weights.spread


def _placed(cells: np.ndarray, at: np.ndarray, span: Span) -> np.ndarray:
    found = np.full((span.n_times, span.n_series), np.nan)
    found[at - span.start] = cells
    return found


def _periods_of(cells: np.ndarray, asked: Any, grid: TimeGrid) -> list[int]:
    if isinstance(asked, str):
        return find_periods(cells, grid.calendar)
    found = [] if asked is None else np.atleast_1d(asked).tolist()
    for period in found:
        if not (isinstance(period, int) and 2 <= period <= len(cells) // 2):
            raise ValueError(
                f"period={asked!r} must have whole numbers of times between 2 and half "
                f"of the series, {len(cells) // 2}; got {period!r}."
            )
    return sorted(set(found))
