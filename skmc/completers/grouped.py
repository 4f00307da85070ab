"""Rows of groups, such as households or schools, completed with the group in mind."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from skmc.base import Estimator, read_row_weights, refuse_parameters
from skmc.cells import Container, in_order_of
from skmc.compatibility import fit_context, with_callbacks
from skmc.completers.mixed import MixedCompleter
from skmc.linalg import Seed
from skmc.new_rows import RowIndex
from skmc.tables import (
    as_table,
    column_of,
    marks_of_columns,
    position_of,
    positions_of,
    raw_columns,
    with_tables,
)

Columns = Annotated[Sequence[Any] | np.ndarray, "array-like"]


# Parameters of the completer that name columns, or have a value for each.
SINGLE = {"time", "unit"}
SELECTING = {"categorical", "passthrough", "by"}
OF_CELLS = {"missing_values", "ordinal"}  # values of all columns, unless by column
OF_COLUMNS = {"min_value", "max_value", "lower_limit", "upper_limit", *OF_CELLS}
OF_GROUPS = {"add_indicator": "use sklearn.impute.MissingIndicator beside it"}


def _variance_ratio(
    sums: np.ndarray, counts: np.ndarray, squares: np.ndarray
) -> np.ndarray:
    """Variance within groups over that between them; infinite without groups."""
    within = squares.sum(0) - (np.square(sums) / np.where(counts > 0, counts, 1)).sum(0)
    n_cells, n_groups = counts.sum(0), (counts > 0).sum(0)
    within = within / (n_cells - n_groups)
    between = (np.square(sums) / np.where(counts > 0, counts, 1)).sum(0)
    between = between - np.square(sums.sum(0)) / n_cells
    size = (n_cells - np.square(counts).sum(0) / n_cells) / (n_groups - 1)
    between = (between / (n_groups - 1) - within) / size
    ratio = np.where(between > 0, within / between, np.inf)
    return np.where(np.isnan(ratio), np.inf, ratio)


def _offers(name: str) -> Any:
    """Whether the completer has a method."""
    return available_if(lambda self: hasattr(self.completer or MixedCompleter(), name))


class GroupedCompleter(Estimator):
    r"""Complete a table whose rows belong to groups: households, schools, patients.

    For tables with a column that names the group of each row; not for rows without
    groups.

    Rows of one group resemble each other. For each column of numbers whose means differ
    between groups, the completer gets another column, with the mean of the *other* rows
    of the group,

    .. math::

        z_{ij} = m_j + \frac{n}{n + v_j} (m_{gj} - m_j),

    where :math:`m_{gj}` is the mean of their n observed cells, :math:`m_j` that of all
    rows, and :math:`v_j` the variance within groups divided by the variance between
    them. So a large group has its own mean, and a small one borrows from all rows; the
    completer decides how much a mean says.

    Parameters
    ----------
    completer : completer or None, default=None
        Completer of the table with the means, which is cloned. None is
        ``MixedCompleter()``. Its parameters that concern columns, such as
        ``min_value``, refer to those of ``X``.
    by : str, int, or columns as in `sklearn.compose.ColumnTransformer`
        Column of the groups, or columns that name them together. They are returned
        unchanged.

    Attributes
    ----------
    completer_ : completer
        The fitted completer.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the input has names

    See Also
    --------
    MixedCompleter : Tables without groups.
    SeriesCompleter : Series of several units over time, by its parameter ``unit``.

    Notes
    -----
    Rows of a group that was not in the fit, or without a group, have the means of all
    rows. A row of the fit does not count in its own means, so no observed cell tells
    itself. Categories, levels and dates have no means.

    If groups are large and their columns depend on each other in different ways, fit a
    completer to each of them instead.

    References
    ----------
    Means as columns: Mundlak. On the pooling of time series and cross section data.
    Econometrica 46 (1978). Their shrinkage: Robinson. That BLUP is a good thing: the
    estimation of random effects. Statistical Science 6 (1991).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skmc import GaussianCompleter, GroupedCompleter
    >>> rng = np.random.RandomState(0)
    >>> school = np.repeat(np.arange(20), 15)
    >>> level = 10 * rng.randn(20)[school]
    >>> truth = pd.DataFrame(
    ...     {"school": school, "maths": level + rng.randn(300), "age": rng.rand(300)}
    ... )
    >>> hidden = rng.rand(300) < 0.2
    >>> table = truth.assign(maths=truth["maths"].mask(hidden))
    >>> completer = GroupedCompleter(GaussianCompleter(), by="school")
    >>> completed = completer.fit_transform(table)
    >>> error = (completed["maths"] - truth["maths"])[hidden].std()
    >>> print(round(error, 1), round(truth["maths"].std(), 1))
    1.0 8.5
    """

    completer: Estimator | None = None
    _: KW_ONLY
    by: str | int | Columns

    completer_: Any = field(init=False)
    _means: _GroupMeans = field(init=False)
    _columns: list[int] = field(init=False)  # whose means are appended

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Container,
        y: object = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> GroupedCompleter:
        """Fit the completer to the table and the means of its groups.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array, of shape (n_samples, n_features)
            NaN, None and pandas' NA mark missing cells.
        y : Ignored
            Ignored; present for pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, >= 0, in the means and in the completer. One that takes
            weights of cells alone gets the weight of the row for each of its cells.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            There is a ``sample_weight``, and the completer takes no weights.
        ValueError
            ``by`` names no column, or all columns; the completer has ``add_indicator``,
            or names columns that do not exist.
        """
        table: Any = as_table(X)
        validate_data(self, table, skip_check_array=True)
        weights = None
        if sample_weight is not None:
            weights = read_row_weights(sample_weight, table, len(table))
        refuse_parameters(self._inner, "GroupedCompleter", OF_GROUPS)
        keys, groups = self._keys(table), self._groups(table)
        raws = raw_columns(table, self._marks)
        if len(keys) == len(raws):
            raise ValueError(
                f"X has {len(keys)} feature(s), all of which by={self.by!r} names, so "
                "none is completed."
            )
        self._columns = [
            k
            for k, raw in enumerate(raws)
            if k not in keys and raw.numeric and not raw.missing.all()
        ]
        means = _GroupMeans.of(self._cells(table), groups, weights)
        differ = zip(self._columns, np.isfinite(means.ratio), strict=True)
        self._columns = [k for k, differs in differ if differs]
        self._means = _GroupMeans.of(self._cells(table), groups, weights)
        completer = self._made_for(table)
        extended, known = self._extended(table), {}
        if weights is not None:
            known = _weights_of(completer, weights, extended)
        self.completer_ = completer.fit(extended, **known)
        return self

    def transform(self, X: Container) -> Any:
        """Complete rows of the fit, or new ones.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Table with the columns of the fit.

        Returns
        -------
        DataFrame of the same kind, or ndarray, of shape (n_samples, n_features)
            Observed cells are unchanged.
        """
        X = self._read(X)
        return self._restored(X, self.completer_.transform(self._extended(X)))

    @_offers("sample")
    def sample(
        self, X: Container, n_samples: int = 1, random_state: Seed = None
    ) -> Any:
        """Draw completions, see `sample` of the completer.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Table with the columns of the fit.
        n_samples : int >= 1, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Source of the draws.

        Returns
        -------
        list of DataFrame of the same kind, or of ndarray
        """
        X = self._read(X)
        drawn = self.completer_.sample(
            self._extended(X), n_samples, random_state=random_state
        )
        return [self._restored(X, draw) for draw in drawn]

    def score(self, X: Container, y: Any = None) -> float:
        """Negative normalized mean absolute error, see `score` of the completer.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Table with the columns of the fit.
        y : container of the same shape or None, default=None
            True values. Without them, observed cells are hidden and completed. A
            one-dimensional ``y`` is the target of a pipeline and is ignored.

        Returns
        -------
        float
            Higher is better, 0 is perfect.
        """
        X = self._read(X)
        truth = None if y is None or np.ndim(y) == 1 else as_table(y)
        if truth is not None:
            truth = self._joined(in_order_of(truth, X, "y"), self._around(X))
        return float(self.completer_.score(self._extended(X), truth))

    def _read(self, X: Container) -> Any:
        check_is_fitted(self)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _keys(self, X: Any) -> list[int]:
        """Positions of the columns that name the groups."""
        return positions_of(X, self.by, "by")

    def _groups(self, X: Any) -> list[Hashable]:
        """The group of each row; None where a part of its name is missing."""
        raws = raw_columns(X)
        keys = [raws[k] for k in self._keys(X)]
        gone = np.any([raw.missing for raw in keys], axis=0)
        names = zip(*(raw.values for raw in keys), strict=True)
        return [None if lost else name for name, lost in zip(names, gone, strict=True)]

    def _cells(self, X: Any) -> np.ndarray:
        raws = raw_columns(X, self._marks)
        cells = np.empty((len(X), len(self._columns)))
        for place, k in enumerate(self._columns):
            cells[:, place] = raws[k].floats
        return cells

    def _around(self, X: Any) -> np.ndarray:
        return self._means.around(self._cells(X), self._groups(X))

    def _extended(self, X: Any) -> Any:
        """The table without the columns of groups, and with the means."""
        return self._joined(X, self._around(X))

    @property
    def _inner(self) -> Any:
        return MixedCompleter() if self.completer is None else self.completer

    @property
    def _marks(self) -> Any:
        """Values that mark missing cells, for the completer and for the means."""
        return marks_of_columns(getattr(self._inner, "missing_values", np.nan))

    def _made_for(self, X: Any) -> Any:
        """The completer, whose parameters refer to the columns of ``X``.

        It gets a table without the columns of groups and with the means, which have
        neither bounds nor marks of missing cells.
        """
        completer, n_cols = clone(self._inner), X.shape[1]
        rest = [k for k in range(n_cols) if k not in self._keys(X)]
        place = {k: position for position, k in enumerate(rest)}
        params = completer.get_params(deep=False)
        changed: dict[str, Any] = {}
        for name in sorted(SELECTING & params.keys()):
            chosen = positions_of(X, params[name], name)
            changed[name] = [place[k] for k in chosen if k in place]
        for name in sorted(SINGLE & params.keys()):
            if isinstance(k := params[name], int):
                changed[name] = place[position_of(X, k, name)]
        for name in sorted(OF_COLUMNS & params.keys()):
            given = params[name]
            by_column = {}
            if isinstance(given, Mapping):
                by_column = {position_of(X, c, name): v for c, v in given.items()}
            elif given is None or isinstance(given, str) or name in OF_CELLS:
                continue
            elif np.ndim(given) == 2:  # a limit of each cell
                none = np.full((len(X), len(self._columns)), np.nan)
                changed[name] = np.hstack([np.asarray(given, float)[:, rest], none])
                continue
            elif np.ndim(given) == 1 and len(given) != n_cols:
                raise ValueError(
                    f"{name} has shape {np.shape(given)}, but X has {n_cols} columns; "
                    "give one number, one for each column, or a dict by name."
                )
            else:
                by_column = dict(enumerate(np.broadcast_to(given, n_cols).tolist()))
            changed[name] = {place[k]: v for k, v in by_column.items() if k in place}
        return completer.set_params(**changed)

    def _choices(self, X: Any) -> dict[str, Any]:
        """Those of the completer; the columns of groups are not completed."""
        choices: dict[str, Any] = self._inner._choices(X)
        left = positions_of(X, choices.get("passthrough"), "passthrough")
        return choices | {"passthrough": sorted({*self._keys(X), *left})}

    def _reader(self) -> Estimator | None:
        if self.completer is None:
            self.completer = MixedCompleter()
        return self.completer._reader()

    def _joined(self, X: Any, means: np.ndarray) -> Any:
        keys = self._keys(X)
        if not hasattr(X, "columns"):
            rest = np.delete(X, keys, 1)
            kind = rest.dtype if rest.dtype.kind == "f" else means.dtype
            return np.column_stack([rest, means.astype(kind)])
        kept = [k for k in range(X.shape[1]) if k not in keys]
        columns = dict(zip(self._names_of_means(X), means.T, strict=True))
        if hasattr(X, "iloc"):
            added = type(X)(columns, index=X.index)
            return X.iloc[:, kept].join(added) if columns else X.iloc[:, kept]
        rest = X.select([X.columns[k] for k in kept])
        return rest.hstack(type(X)(columns)) if columns else rest

    def _names_of_means(self, X: Any) -> list[Any]:
        """New names of the columns of means, of the type of the other names."""
        names = list(X.columns)
        if all(isinstance(name, tuple) for name in names):  # levels of pandas
            columns = [names[k] for k in self._columns]
            return [(f"mean of {first}", *others) for first, *others in columns]
        if not all(isinstance(name, str) for name in names):
            numbers = [name for name in names if isinstance(name, (int, np.integer))]
            first = max([-1, *map(int, numbers)]) + 1
            return [*range(first, first + len(self._columns))]
        added = [f"mean of {names[k]}" for k in self._columns]
        while set(added) & set(names):
            added = [f"{name} in the group" for name in added]
        return added

    def _restored(self, X: Any, completed: Any) -> Any:
        """The completed columns, and those of groups, in the order of the table."""
        keys = self._keys(X)
        rest = [k for k in range(X.shape[1]) if k not in keys]
        names_of_completer = getattr(self.completer_, "feature_names_in_", None)
        if names_of_completer is None:
            names_of_completer = [
                f"x{k}" for k in range(len(rest) + len(self._columns))
            ]
        place = {name: k for k, name in enumerate(names_of_completer)}
        names = self.completer_.get_feature_names_out()
        positions = [place[name] for name in names]
        columns = {
            rest[k]: column_of(completed, position)
            for position, k in enumerate(positions)
            if k < len(rest)
        }
        raws = raw_columns(X)
        numbers = all(raws[k].numeric for k in keys)
        if not hasattr(X, "columns"):
            for k in keys:
                columns[k] = raws[k].floats if raws[k].numeric else raws[k].values
            dtype = completed.dtype if numbers else object
            result = np.empty((len(X), len(columns)), dtype)
            for position, k in enumerate(sorted(columns)):
                result[:, position] = columns[k]
            return result
        kept = sorted({*columns, *keys})
        if hasattr(X, "iloc"):
            result = X.iloc[:, kept].copy()
            for position, k in enumerate(kept):
                if k in columns:
                    result.isetitem(position, columns[k])
            return result
        own_columns = {X.columns[k]: columns.get(k, column_of(X, k)) for k in kept}
        return type(X)(own_columns)

    def __sklearn_tags__(self) -> Any:
        return with_tables(super().__sklearn_tags__())


def _weights_of(completer: Any, weights: np.ndarray, X: Any) -> dict[str, np.ndarray]:
    """The argument of ``fit`` by which a completer takes weights of rows."""
    if has_fit_parameter(completer, "sample_weight"):
        return {"sample_weight": weights}
    if has_fit_parameter(completer, "cell_weight"):
        return {"cell_weight": np.repeat(weights[:, None], X.shape[1], 1)}
    raise TypeError(
        f"{type(completer).__name__} takes no weights; leave sample_weight out, or use "
        "GaussianCompleter, TreesCompleter or another completer of weighted rows."
    )


@dataclass(frozen=True, eq=False)
class _GroupMeans:
    r"""Means of the columns in each group, shrunken towards those of all rows.

    With :math:`n` cells of a group, whose mean is :math:`m_g`, and the mean :math:`m`
    of all, it is :math:`m + (m_g - m) n / (n + v)`. The ratio v of the variances within
    and between groups is that of the analysis of variance.

    Parameters
    ----------
    names : list of group
        The groups.
    sums, counts : ndarray of shape (n_groups, n_columns)
        Sums of the deviations from ``mean``, and numbers of observed cells, weighted.
    mean, ratio : ndarray of shape (n_columns,)
        Means of all rows, and variances within groups over those between them.
    rows : RowIndex
        Group and cells of the rows of the fit, whose own cells do not count in their
        means.
    weights : ndarray of shape (n_rows,)
        Weights of these rows.
    """

    names: list[Hashable]
    sums: np.ndarray
    counts: np.ndarray
    mean: np.ndarray
    ratio: np.ndarray
    rows: RowIndex
    weights: np.ndarray

    @classmethod
    def of(
        cls,
        cells: np.ndarray,
        groups: list[Hashable],
        weights: np.ndarray | None = None,
    ) -> _GroupMeans:
        """Find the means of cells, (n_rows, n_columns), NaN where missing."""
        if weights is None:
            weights = np.ones(len(cells))
        share = np.where(np.isnan(cells), 0.0, weights[:, None])
        total = share.sum(0)
        mean = (share * np.nan_to_num(cells)).sum(0) / np.where(total > 0, total, 1)
        away = np.where(share > 0, cells - mean, 0.0)
        names = list(dict.fromkeys(g for g in groups if g is not None))
        numbers = _numbers_of(names, groups)
        in_group, shape = numbers >= 0, (len(names), cells.shape[1])
        sums, counts, squares = (np.zeros(shape) for _ in range(3))
        np.add.at(sums, numbers[in_group], (share * away)[in_group])
        np.add.at(counts, numbers[in_group], share[in_group])
        np.add.at(squares, numbers[in_group], (share * np.square(away))[in_group])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = _variance_ratio(sums, counts, squares)
        index = RowIndex(np.column_stack([numbers, cells]))
        return cls(names, sums, counts, mean, ratio, index, weights)

    def around(self, cells: np.ndarray, groups: list[Hashable]) -> np.ndarray:
        """The means of the other rows of the group of each row, (n_rows, n_columns).

        Rows of an unknown group, and of none, have the means of all rows.
        """
        group = _numbers_of(self.names, groups)
        none = np.zeros((1, len(self.mean)))  # at position -1
        sums, counts = (np.vstack([x, none])[group] for x in (self.sums, self.counts))
        position = self.rows.find(np.column_stack([group, cells]))
        weights = np.where(position < 0, 0.0, self.weights[position])[:, None]
        observed_weights = np.where(np.isnan(cells), 0.0, weights)
        sums = sums - observed_weights * np.nan_to_num(cells - self.mean)
        total = np.maximum(counts - observed_weights, 0) + self.ratio
        return self.mean + sums / np.where(total > 0, total, 1)


def _numbers_of(names: list[Hashable], groups: list[Hashable]) -> np.ndarray:
    """Positions of groups among names; -1 for others."""
    number = {name: k for k, name in enumerate(names)}
    return np.array([number.get(group, -1) for group in groups], int)
