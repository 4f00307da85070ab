"""The base class of all completers."""

from __future__ import annotations

import functools
import inspect
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skmc import patterns
from skmc.base.estimator import CompleterTags, Estimator
from skmc.base.fitted import Fitted, Outcome, missing_indicator
from skmc.base.identifiers import positions
from skmc.base.reading import given_of, read_rows
from skmc.base.reporting import warn_of_empty_columns, warn_of_empty_rows, warn_user
from skmc.blocks import is_lazy, lazy_entries, lazy_transform, tables_of
from skmc.cells import (
    FIT_AGAIN,
    Container,
    Entries,
    Given,
    Layout,
    LikeObserved,
    Observed,
    Priors,
    StoredEntries,
    check_positions,
    in_order_of,
    to_cells,
)
from skmc.compatibility import (
    Interval,
    InvalidParameterError,
    fit_context,
    with_callbacks,
)
from skmc.linalg import threads_for, threads_for_rows
from skmc.loop import fit_scope
from skmc.metrics import nmae

Fit = TypeVar("Fit", bound=Callable[..., Any])
HIDDEN_TO_SCORE = 0.2  # share of each row's observed cells
# Parameters that every completer has.
READING = "missing_values", "add_indicator", "keep_empty_features", "keep_observed"
HOOKS = ("_skl_callbacks", "_callback")  # attributes of scikit-learn's callbacks


def validated(fit: Fit) -> Fit:
    """Add scikit-learn's callbacks and parameter validation to ``fit``.

    Messages about unknown keywords name the estimator's own class.
    """
    checked = with_callbacks(fit_context(prefer_skip_nested_validation=True)(fit))
    declared = inspect.signature(fit).parameters

    @functools.wraps(checked)
    def wrapper(
        self: BaseCompleter, X: Container, y: object = None, **given: Any
    ) -> Any:
        known = type(self).takes() if "fit_params" in declared else declared
        for name in given:
            if name not in known:
                if name == "cell_weight":
                    remedy = "Leave it out"
                    if "sample_weight" in known:
                        remedy = "Pass sample_weight, a number for each row"
                    raise TypeError(
                        f"{type(self).__name__}.fit() takes no cell_weight: "
                        f"{self.completer_tags.unweighted}. {remedy}, or use "
                        "SVDCompleter or another completer of weighted cells."
                    )
                if name == "sample_weight":
                    remedy = (
                        "use GaussianCompleter, TreesCompleter or another completer of "
                        "weighted rows"
                    )
                    if "cell_weight" in known:
                        remedy = (
                            "pass cell_weight, a matrix of the shape of X with the "
                            f"weight of each row in all of its cells, or {remedy}"
                        )
                    raise TypeError(
                        f"{type(self).__name__}.fit() got an unexpected keyword "
                        f"argument 'sample_weight': {remedy}."
                    )
                raise TypeError(
                    f"{type(self).__name__}.fit() got an unexpected keyword argument "
                    f"{name!r}."
                )
        return checked(self, X, y, **given)

    vars(wrapper)["only_declares"] = True
    return cast(Fit, wrapper)


MUST_DEFINE = {
    "_make_solver": "a skmc.solvers.Solver",
    "_fit_cells": "a skmc.base.Outcome",
}


class BaseCompleter(Estimator):
    """Base class that reads any container, completes new rows and computes scores.

    Subclasses define `_fit_cells`, and annotate their further parameters, see
    `Estimator`. If ``fit`` takes more than the matrix, the class also inherits from
    `TakesWeights`, `TakesRowWeights`, `TakesGraphs` or `TakesFeatures`.

    Parameters
    ----------
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    See Also
    --------
    IterativeCompleter : Adds the steps of an iterative fit.
    """

    completer_tags: ClassVar[CompleterTags]
    # Storages of the cells that the method can take, besides those in memory those of
    # files and of Dask.
    accepts: ClassVar[tuple[type, ...]] = (Observed,)

    data_range_: tuple[float, float] = field(init=False)
    row_ids_: np.ndarray = field(init=False)
    col_ids_: np.ndarray = field(init=False)
    _fitted: Fitted = field(init=False)
    _priors: Priors = field(init=False)
    _shape: tuple[int, int] = field(init=False)
    _like = cast("LikeObserved | None", None)  # restricts the values of missing cells
    _bounds = cast("LikeObserved | None", None)  # the bounds that the user has set

    _: KW_ONLY
    missing_values: float = np.nan
    add_indicator: bool = False
    keep_empty_features: bool = True
    keep_observed: bool = True

    _declared: ClassVar[tuple[str, ...]] = READING  # set by each constructor

    def _validate_params(self) -> None:
        set_so_far, class_ = vars(self), type(self)
        left_out = [
            name
            for name in self._declared
            if name not in set_so_far and (name in READING or not hasattr(class_, name))
        ]
        if left_out:
            raise TypeError(
                f"{type(self).__name__}.__init__ does not set {', '.join(left_out)}, "
                "which every completer of its kind has. Declare parameters by "
                "annotations and write no __init__, or take these as parameters of "
                "__init__ and store them (self.tol = tol), or call super().__init__."
            )
        if not hasattr(class_, "completer_tags"):
            raise TypeError(
                f"{class_.__name__} has no completer_tags; write completer_tags = "
                "skmc.base.CompleterTags(recovers=0.1) in its body, with the largest "
                "relative error that it may have on a small matrix of rank 2."
            )
        for name, what in MUST_DEFINE.items():
            if getattr(getattr(class_, name, None), "__isabstractmethod__", False):
                raise TypeError(
                    f"{class_.__name__} must define {name}, which returns {what}."
                )
        super()._validate_params()
        for name, value in self.get_params(deep=False).items():
            allowed = self._parameter_constraints.get(name, [])
            number = any(isinstance(kind, Interval) for kind in allowed)
            if isinstance(value, bool) and number and "boolean" not in allowed:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be a "
                    f"number. Got {value!r} instead."
                )

    def __setattr__(self, name: str, value: object) -> None:
        # PyTorch rejects the NumPy numbers of which grids consist.
        if isinstance(value, np.generic) and name in self._parameter_constraints:
            value = value.item()
        super().__setattr__(name, value)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Names of the arguments that ``fit`` takes in addition to the matrix.

        Returns
        -------
        tuple of str
        """
        return tuple(inspect.signature(cls.fit).parameters)[3:]

    @abstractmethod
    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        """Complete the cells that are given, without changing ``self``.

        Only scikit-learn's callbacks use ``y``.
        """

    def _bounds_of(self, n_cols: int) -> LikeObserved | None:
        """Bounds of the completed cells of each column, in which draws are truncated.

        Those of a matrix that represents a table replace them.
        """
        return None

    @validated
    def fit(self, X: Container, y: object = None) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            Matrix to complete: masked array, array or list with NaN, DataFrame, Arrow
            table, DataArray of xarray, AnnData, SciPy sparse matrix, tensor or
            `Entries`. `skmc.cells.to_cells` defines which cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks.
            With the truth as ``y``, `sklearn.callback.ScoringMonitor` draws a learning
            curve.

        Returns
        -------
        self
            The fitted completer.
        """
        self._run_fit(X, y)
        return self

    def _run_fit(self, X: Container, y: object, **known: Any) -> Given:
        """Run `fit` for a matrix and its side information, and return what was read."""
        start = time.perf_counter()
        with unchanged_by_failure(self):
            present = {name: x for name, x in known.items() if x is not None}
            with threads_for(0):
                given = self._given(X, present)
            if self.add_indicator:  # before the fit takes its time
                names = getattr(self, "feature_names_in_", ())
                missing_indicator(~given.statistics.full_cols, names)
            if given.statistics.any_empty:
                self._warn_of_empty(given.statistics)
            with fit_scope(self, given.identity), threads_for(given.data.work):
                outcome = self._fit_cells(given, y)
            if not isinstance(outcome, Outcome):
                raise TypeError(
                    f"{type(self).__name__}._fit_cells must return a "
                    f"skmc.base.Outcome, got {type(outcome).__name__}."
                )
        self._set_fitted(given.statistics, outcome, given.layout)
        self._seconds = time.perf_counter() - start
        if outcome.advice:
            warn_user(f"{type(self).__name__} {outcome.advice}", ConvergenceWarning)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return given

    @validated
    def fit_transform(
        self, X: Container, y: object = None, **fit_params: Any
    ) -> np.ndarray:
        """Fit to ``X`` and return its completion.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Matrix to complete.
        y : Ignored
            Targets as in `fit`.
        **fit_params : dict
            Further arguments of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The same as ``fit(X).transform(X)``.
        """
        if not hasattr(type(self).fit, "only_declares"):  # a subclass does more
            return self.fit(X, y, **fit_params).transform(X)
        given = self._run_fit(X, y, **fit_params)
        if given.read is None:
            return self.transform(X)
        values = self._values_of_fit(given, not self.keep_observed)
        return self._answer(given.matrix, values)

    def _set_fitted(
        self, statistics: Priors, outcome: Outcome, layout: Layout | None = None
    ) -> None:
        """Set the fitted attributes; this happens nowhere else."""
        for name in getattr(self, "_fitted_names", ()):
            delattr(self, name)  # remove all attributes of an earlier fit
        common = self._common_attributes(statistics)
        attributes = {**common, **outcome.attributes, "_fitted": outcome.fitted}
        if "_bounds" not in attributes:
            bounds = layout.bounds if layout else self._bounds_of(statistics.shape[1])
            attributes["_bounds"] = attributes["_like"] = bounds
        for name, value in attributes.items():
            setattr(self, name, value)
        self._fitted_names = sorted(attributes)

    def _common_attributes(self, statistics: Priors) -> dict[str, Any]:
        """Make the fitted attributes that every completer has."""
        common = {
            "_priors": statistics,
            "_shape": statistics.shape,
            "_n_observed": statistics.n_observed,
            "_seconds": None,  # until the fit has ended
            "data_range_": statistics.data_range,
        }
        if statistics.ids is not None:
            common["row_ids_"], common["col_ids_"] = statistics.ids
        common["indicator_"] = None
        if self.add_indicator:
            common["indicator_"] = missing_indicator(~statistics.full_cols)
        return common

    def _warn_of_empty(self, statistics: Priors) -> None:
        """Warn about empty rows and columns, and say how they are filled."""
        if self.completer_tags.pictures and self.keep_empty_features:
            return
        names = getattr(self, "feature_names_in_", None)
        empty = np.flatnonzero(statistics.empty_cols)
        kept = "filled with the row means"
        if not statistics.one_unit:
            kept = (
                "filled with 0, because columns may have different units; set "
                "keep_empty_features=False to drop them"
            )
        warn_of_empty_columns(self, empty, names, kept)
        if not self.completer_tags.pictures:
            warn_of_empty_rows(np.flatnonzero(statistics.empty_rows))

    @property
    def reconstruction_(self) -> np.ndarray:
        """The model's value of every cell."""
        check_is_fitted(self)
        return self._fitted.whole()

    def transform(self, X: Container) -> np.ndarray:
        """Complete rows of the fitted matrix or new rows.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows to complete. For a Dask Array or DataFrame the result is one as well,
            whose partitions are completed when it is computed.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The completion in the float dtype of ``X``; a DataArray with the labels of
            ``X`` for a DataArray, and a DataFrame under ``set_output``. Observed cells
            are unchanged unless ``keep_observed=False``. Rows equal to a row of the
            fitted matrix (values and mask) get that row's completion; every other row
            is completed by itself. Rows without an observed cell are filled with the
            column means, columns without one with the row means. In the fitted matrix,
            completers of pictures complete them like other holes.
        """
        check_is_fitted(self)
        if is_lazy(X):
            later: np.ndarray = lazy_transform(self, X)
            return later
        cells = read_rows(self, X)
        values = self._model_values(cells, not self.keep_observed)
        return self._answer(cells, values)

    def _given(self, X: Container, known: Mapping[str, Any]) -> Given:
        """Read all arguments of ``fit``, once."""
        return given_of(self, X, known)

    def _answer(self, cells: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Make the result of rows from the model's values."""
        completed = self._completed(cells, values)
        if self.add_indicator:
            flags = self._indicator_of_fit().transform(cells)
            completed = np.hstack([completed, flags.astype(completed.dtype)])
        return completed

    def _model_values(self, cells: np.ndarray, everywhere: bool = False) -> np.ndarray:
        with threads_for_rows(cells):
            return self._fitted.rows(cells, everywhere)

    def _values_of_fit(self, given: Given, everywhere: bool) -> np.ndarray:
        with threads_for_rows(given.matrix):
            return self._fitted.of_fitted_rows(given, everywhere)

    def _completed(self, cells: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Make the completion of rows from the model's values."""
        completed = _converted(values, cells.dtype)
        if self._like is not None:
            completed = self._like.apply(completed)
        if self.keep_observed:
            completed = np.where(np.isnan(cells), completed, cells)
        if not self.keep_empty_features:
            completed = completed[:, ~self._priors.empty_cols]
        return completed

    def score(self, X: Container, y: object = None) -> float:
        """Negative normalized mean absolute error; higher is better, 0 is perfect.

        Parameters
        ----------
        X : container as in `fit`
            Rows to complete. Cells, `Entries` in memory or in files, are compared with
            the model's values of exactly these cells.
        y : container of X's shape, optional
            True values. The score compares the cells that are missing in ``X`` and
            known in ``y``. Without ``y``, a fifth of each row's observed cells (the
            same ones each time) are hidden, completed and compared. For rows of the
            fitted matrix this score is optimistic, because the fit has used those
            cells. A one-dimensional ``y`` is the target of a pipeline and is ignored.

        Returns
        -------
        float
            ``-mean |X - M| / (max M - min M)``.
        """
        check_is_fitted(self)
        if isinstance(X, (Entries, StoredEntries)):
            return self._score_of_cells(X)
        cells = read_rows(self, X)
        if y is None or np.ndim(cast(ArrayLike, y)) == 1:
            truth = cells
            hidden = patterns.per_row(cells, HIDDEN_TO_SCORE, random_state=0)
            if not hidden.any():
                raise ValueError(
                    "X has no row with two observed cells, so score cannot hide any; "
                    "pass the truth as y."
                )
            with threads_for_rows(cells):
                completed = self._fitted.without(cells, hidden)
        else:
            y = in_order_of(y, X, "y")
            truth = to_cells(y, name="y", missing_values=self.missing_values)
            if truth.shape != cells.shape:
                raise ValueError(f"y has shape {truth.shape}, X has {cells.shape}.")
            hidden = np.isnan(cells) & ~np.isnan(truth)
            if not hidden.any():
                raise ValueError("X has no missing cell that is observed in y.")
            completed = self._model_values(cells)
        if self._like is not None:
            completed = self._like.apply(completed)
        return -nmae(completed, truth, hidden)

    def _score_of_cells(self, X: Entries | StoredEntries) -> float:
        """Compare cells with the model's values; those not in memory are read once."""
        batches: Any
        if not isinstance(X, Entries):
            tables = tables_of(X.source, X.columns[:3])
            batches = (
                [table[name].to_numpy() for name in table.column_names]
                for table in tables
                if len(table)
            )
        else:
            cells: Entries = X[X.values != self.missing_values]
            ids = self._priors.ids
            named = cells.ids is not None and ids is not None
            if not len(cells) or not (named or cells.matrix_shape == self._shape):
                raise ValueError(
                    f"X is {cells!r}; score needs cells of the fitted matrix, which "
                    f"has shape {self._shape}."
                )
            rows, cols = cells.labels if named else (cells.rows, cells.cols)
            if ids is not None and not named:
                rows, cols = ids[0][rows], ids[1][cols]
            batches = [(rows, cols, cells.values)]
        low, high = self.data_range_
        total, count = 0.0, 0
        for rows, cols, values in batches:
            guess = self.predict_entries(rows, cols)
            total += float(np.abs(guess - values).sum())
            count += len(values)
            low, high = min(low, values.min()), max(high, values.max())
        if not count:
            raise ValueError(f"{X!r} has no cells.")
        return -total / count / ((high - low) or 1.0)

    def predict_entries(self, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        """Predict single cells of the fitted matrix.

        Parameters
        ----------
        rows, cols : array-like of shape (n_cells,)
            Zero-based positions, or identifiers if the fit had any, as from
            `Entries.from_frame` and `Entries.from_parquet`. One of them may be a
            scalar: ``predict_entries(3, range(120))`` predicts 120 cells of row 3. For
            two Dask Series or Arrays the result is one as well, which predicts its
            partitions when it is computed.

        Returns
        -------
        ndarray of shape (n_cells,)
            ``reconstruction_[rows, cols]``: the model's values, at observed cells too.
            Rows that the fit has not seen are predicted by the means of the columns,
            and such columns by the means of the rows, with a warning.
        """
        check_is_fitted(self)
        if is_lazy(rows):
            later: np.ndarray = lazy_entries(self, rows, cols)
            return later
        priors, fitted = self._priors, self._fitted
        i, j = self._positions_of_cells(rows, cols)
        in_fit = (i >= 0) & (j >= 0)
        if in_fit.all():
            return fitted.at(i, j)
        values = np.where(i < 0, priors.col_means[j], priors.row_means[i])
        values[(i < 0) & (j < 0)] = priors.mean
        values[in_fit] = fitted.at(i[in_fit], j[in_fit])
        return values

    def _positions_of_cells(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        otherwise: str = "are predicted by means",
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions of single cells; -1 for unknown identifiers, with a warning."""
        if np.ndim(rows) == 0:
            rows = np.full(np.shape(cols), rows)
        if np.ndim(cols) == 0:
            cols = np.full(np.shape(rows), cols)
        priors = self._priors
        if priors.ids is None:
            return check_positions(rows, cols, priors.shape, FIT_AGAIN)
        if np.shape(rows) != np.shape(cols) or np.ndim(rows) != 1:
            raise ValueError(
                "rows and cols must be one-dimensional and of equal length, got "
                f"shapes {np.shape(rows)} and {np.shape(cols)}."
            )
        return (
            positions(priors.ids[0], rows, "rows", otherwise),
            positions(priors.ids[1], cols, "cols", otherwise),
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
        kept: np.ndarray = (
            names if self.keep_empty_features else names[~self._priors.empty_cols]
        )
        return self._with_flags(names, kept)


@contextmanager
def unchanged_by_failure(completer: BaseCompleter) -> Iterator[None]:
    """Undo what this block has changed if it fails.

    Only callbacks, torn down later, are kept.
    """
    before = dict(vars(completer))
    try:
        yield
    except BaseException as error:
        hooks = {k: v for k, v in vars(completer).items() if k.startswith(HOOKS)}
        vars(completer).clear()
        vars(completer).update(before | hooks)
        if _needs_memory(error):
            raise _out_of_memory(completer) from error
        raise


def _converted(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert numbers; those beyond a smaller range become its largest."""
    if values.dtype != dtype:
        limits = np.finfo(dtype)
        values = values.clip(limits.min, limits.max)
    return values.astype(dtype, copy=False)


def _needs_memory(error: BaseException) -> bool:
    """Whether the memory of the host or of the device was too small."""
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)


def _out_of_memory(completer: BaseCompleter) -> MemoryError:
    return MemoryError(
        f"{type(completer).__name__} needs more memory than there is. Lower the sizes "
        "among its parameters, or fit to fewer rows and columns."
    )
