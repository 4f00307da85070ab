"""Rows of groups, such as households or schools, completed with the group in mind."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base import Estimator
from skmc.cells import Container, in_order_of
from skmc.compatibility import fit_context, with_callbacks
from skmc.completers.mixed import MixedCompleter
from skmc.tables import as_table, positions_of, raw_columns, with_tables

Columns = Annotated[Sequence[Any] | np.ndarray, "array-like"]


def _keys(cells: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in np.where(np.isnan(cells), np.nan, cells)]


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
    found = np.where(between > 0, within / between, np.inf)
    return np.where(np.isnan(found), np.inf, found)


def _offers(name: str) -> Any:
    """Whether the completer has a method."""
    return available_if(lambda self: hasattr(self.completer or MixedCompleter(), name))


class GroupedCompleter(Estimator):
    r"""Completes a table whose rows belong to groups: households, schools, patients.

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
        ``MixedCompleter()``.
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
    def fit(self, X: Container, y: object = None) -> GroupedCompleter:
        """Fit the completer to the table and the means of its groups.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array, of shape (n_samples, n_features)
            NaN, None and pandas' NA mark missing cells.
        y : Ignored
            Ignored; present for pipelines.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            ``by`` names no column, or all columns; the completer has ``add_indicator``.
        """
        table: Any = as_table(X)
        validate_data(self, table, skip_check_array=True)
        keys, raws, groups = self._keys(table), raw_columns(table), self._groups(table)
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
        means = _GroupMeans.of(self._cells(table), groups)
        differ = zip(self._columns, np.isfinite(means.ratio), strict=True)
        self._columns = [k for k, differs in differ if differs]
        self._means = _GroupMeans.of(self._cells(table), groups)
        completer: Any = self.completer
        if completer is None:
            completer = MixedCompleter()
        if getattr(completer, "add_indicator", False):
            raise ValueError(
                f"add_indicator of {type(completer).__name__} would append columns for "
                "the means, too; use sklearn.impute.MissingIndicator beside it."
            )
        self.completer_ = clone(completer).fit(self._extended(table))
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
        self, X: Container, n_samples: int = 5, *, random_state: Any = None
    ) -> Any:
        """Draw completions, see `sample` of the completer.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Table with the columns of the fit.
        n_samples : int >= 1, default=5
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
        own = [raws[k] for k in self._keys(X)]
        gone = np.any([raw.missing for raw in own], axis=0)
        names = zip(*(raw.values for raw in own), strict=True)
        return [None if lost else name for name, lost in zip(names, gone, strict=True)]

    def _cells(self, X: Any) -> np.ndarray:
        raws = raw_columns(X)
        found = np.empty((len(X), len(self._columns)))
        for place, k in enumerate(self._columns):
            found[:, place] = raws[k].floats
        return found

    def _around(self, X: Any) -> np.ndarray:
        return self._means.around(self._cells(X), self._groups(X))

    def _extended(self, X: Any) -> Any:
        """The table without the columns of groups, and with the means."""
        return self._joined(X, self._around(X))

    def _joined(self, X: Any, means: np.ndarray) -> Any:
        keys = self._keys(X)
        if not hasattr(X, "columns"):
            rest = np.delete(X, keys, 1)
            kind = rest.dtype if rest.dtype.kind == "f" else means.dtype
            return np.column_stack([rest, means.astype(kind)])
        names = list(X.columns)
        kept = [name for k, name in enumerate(names) if k not in keys]
        added = [f"mean of {names[k]}" for k in self._columns]
        while set(added) & set(names):
            added = [f"{name} in the group" for name in added]
        columns = dict(zip(added, means.T, strict=True))
        if hasattr(X, "iloc"):
            return X[kept].assign(**columns)
        return X.select(kept).hstack(type(X)(columns))

    def _restored(self, X: Any, completed: Any) -> Any:
        """The completed columns, and those of groups, in the order of the table."""
        keys = self._keys(X)
        if not hasattr(X, "columns"):
            rest = [k for k in range(X.shape[1]) if k not in keys]
            names = self.completer_.get_feature_names_out()  # "x0", "x1", ...
            own = [int(name[1:]) for name in names][: -len(self._columns) or None]
            raws = raw_columns(X)
            columns = {rest[k]: completed[:, place] for place, k in enumerate(own)}
            for k in keys:
                columns[k] = raws[k].floats if raws[k].numeric else raws[k].values
            numbers = all(raws[k].numeric for k in keys)
            result = np.empty(
                (len(X), len(columns)), completed.dtype if numbers else object
            )
            for place, k in enumerate(sorted(columns)):
                result[:, place] = columns[k]
            return result
        names = list(X.columns)
        if not hasattr(completed, "columns"):
            own = list(self.completer_.get_feature_names_out())
            if hasattr(X, "iloc"):
                completed = type(X)(completed, index=X.index, columns=own)
            else:
                completed = type(X)(completed, schema=own)
        groups = [names[k] for k in keys]
        kept = [n for n in names if n in groups or n in completed.columns]
        if hasattr(X, "iloc"):
            return completed.assign(**{n: X[n] for n in groups})[kept]
        return completed.hstack(X.select(groups)).select(kept)

    def __sklearn_tags__(self) -> Any:
        return with_tables(super().__sklearn_tags__())


@dataclass(frozen=True, eq=False)
class _GroupMeans:
    r"""Means of the columns in each group, shrunken towards those of all rows.

    With :math:`n` cells of a group, whose mean is :math:`m_g`, and the mean :math:`m`
    of all, it is :math:`m + (m_g - m) n / (n + v)`. The ratio v of the variances within
    and between groups is that of the analysis of variance.

    Parameters
    ----------
    sums, counts : dict of group to ndarray of shape (n_columns,)
        Sums of the deviations from ``mean``, and numbers of observed cells.
    mean, ratio : ndarray of shape (n_columns,)
        Means of all rows, and variances within groups over those between them.
    rows : set of (group, bytes)
        Rows of the fit, whose own cells do not count in their means.
    """

    sums: dict[Hashable, np.ndarray]
    counts: dict[Hashable, np.ndarray]
    mean: np.ndarray
    ratio: np.ndarray
    rows: set[tuple[Hashable, bytes]]

    @classmethod
    def of(cls, cells: np.ndarray, groups: list[Hashable]) -> _GroupMeans:
        """Find the means of cells, (n_rows, n_columns), NaN where missing."""
        seen = ~np.isnan(cells)
        mean = np.where(seen, cells, 0).sum(0) / seen.sum(0)
        away = np.where(seen, cells - mean, 0.0)
        names = list(dict.fromkeys(g for g in groups if g is not None))
        number = {name: k for k, name in enumerate(names)}
        own = np.array([number.get(g, -1) for g in groups])
        known, shape = own >= 0, (len(names), cells.shape[1])
        sums, counts, squares = (np.zeros(shape) for _ in range(3))
        np.add.at(sums, own[known], away[known])
        np.add.at(counts, own[known], seen[known])
        np.add.at(squares, own[known], np.square(away[known]))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = _variance_ratio(sums, counts, squares)
        return cls(
            dict(zip(names, sums, strict=True)),
            dict(zip(names, counts, strict=True)),
            mean,
            ratio,
            set(zip(groups, _keys(cells), strict=True)),
        )

    def around(self, cells: np.ndarray, groups: list[Hashable]) -> np.ndarray:
        """The means of the other rows of the group of each row, (n_rows, n_columns).

        Rows of an unknown group, and of none, have the means of all rows.
        """
        none = np.zeros(len(self.mean))
        sums = np.array([self.sums.get(g, none) for g in groups])
        counts = np.array([self.counts.get(g, none) for g in groups])
        keys = zip(groups, _keys(cells), strict=True)
        fitted = np.array([key in self.rows for key in keys])[:, None]
        own = fitted & ~np.isnan(cells)
        sums = sums - np.where(own, cells - self.mean, 0)
        total = np.maximum(counts - own, 0) + self.ratio
        return self.mean + sums / np.where(total > 0, total, 1)
