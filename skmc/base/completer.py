"""The base class of all completers."""

from __future__ import annotations

import inspect
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skmc.base.estimator import CompleterTags, Estimator
from skmc.base.fit_methods import fit
from skmc.base.fitted import Fitted, Outcome, common_attributes
from skmc.base.predicting import predict_entries, score
from skmc.base.reading import read, read_rows
from skmc.base.reporting import warn_of_empty, warn_of_empty_rows, warn_user
from skmc.blocks import is_lazy, lazy_transform
from skmc.cells import Container, Given, LikeObserved, Observed, Priors
from skmc.compatibility import Interval, InvalidParameterError
from skmc.linalg import threads_for, threads_for_rows
from skmc.loop import fit_scope

# Parameters that every completer has.
READING = "missing_values", "add_indicator", "keep_empty_features", "keep_observed"
HOOKS = ("_skl_callbacks", "_callback")  # attributes of scikit-learn's callbacks


class BaseCompleter(Estimator):
    """Base class that reads any container, completes new rows and computes scores.

    Subclasses define `_fit_cells`, and annotate their further parameters, see
    `Estimator`. The arguments of ``fit`` other than the matrix follow from the function
    that is assigned to it: `fit`, `fit_weighted`, `fit_informed` or `fit_with_sides`.

    Parameters
    ----------
    {reading}
    """

    completer_tags: ClassVar[CompleterTags]
    # Possible storages of the cells. If there are several, the completer declares the
    # solver for each.
    storages: ClassVar[Mapping[type, Any]] = {Observed: None}

    _fitted: Fitted = field(init=False)
    _priors: Priors = field(init=False)
    _shape: tuple[int, int] = field(init=False)
    _like = cast("LikeObserved | None", None)  # restricts the values of missing cells
    _bounds = cast("LikeObserved | None", None)  # the bounds that the user has set
    # Bounds of the columns of a matrix that represents a table.
    _table_bounds = cast("LikeObserved | None", None)
    _first_columns = cast("np.ndarray | None", None)  # set for a matrix of a table

    _: KW_ONLY
    missing_values: float = np.nan
    add_indicator: bool = False
    keep_empty_features: bool = True
    keep_observed: bool = True

    _declared: ClassVar[tuple[str, ...]] = READING  # set by each constructor

    fit = fit
    score = score
    predict_entries = predict_entries
    _given = read
    _read_rows = read_rows

    def _validate_params(self) -> None:
        own, class_ = vars(self), type(self)
        left_out = [
            name
            for name in self._declared
            if name not in own and (name in READING or not hasattr(class_, name))
        ]
        if left_out:
            raise TypeError(
                f"{type(self).__name__}.__init__ does not set {', '.join(left_out)}, "
                "which every completer of its kind has. Declare parameters by "
                "annotations and write no __init__, or take these as parameters of "
                "__init__ and store them (self.tol = tol), or call super().__init__."
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

    def _first_of_cells(self, n_cols: int) -> np.ndarray:
        """For each column, the first one that represents the same cell of a table.

        Several columns represent a category. They are missing together, so none of
        them can be told from the others.
        """
        first = self._first_columns
        if first is None or len(first) != n_cols:
            return np.arange(n_cols)
        return first

    def _bounds_of(self, n_cols: int) -> LikeObserved | None:
        """Bounds of the completed cells of each column, in which draws are truncated.

        Those of a matrix that represents a table were set with it.
        """
        bounds = self._table_bounds
        return bounds if bounds is not None and len(bounds.low) == n_cols else None

    def _run_fit(self, X: Container, y: object, **known: Any) -> Self:
        """Run `fit` for a matrix and its side information."""
        before, start = dict(vars(self)), time.perf_counter()
        try:
            present = {name: x for name, x in known.items() if x is not None}
            with threads_for(0):
                given = self._given(X, present)
            if given.statistics.any_empty:
                warn_of_empty(self, given.statistics)
            with fit_scope(self, given.identity), threads_for(given.data.work):
                outcome = self._fit_cells(given, y)
        except Exception as error:
            # A failed fit changes nothing; only callbacks, torn down later, are kept.
            hooks = {k: v for k, v in vars(self).items() if k.startswith(HOOKS)}
            self.__dict__.clear()
            self.__dict__.update(before | hooks)
            if _needs_memory(error):
                raise _out_of_memory(self) from error
            raise
        self._set_fitted(given.statistics, outcome)
        self._seconds = time.perf_counter() - start
        if "_reads" in vars(self):
            self._reads.append(given)
        if outcome.advice:
            warn_user(f"{type(self).__name__} {outcome.advice}", ConvergenceWarning)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return self

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
        self._reads: list[Given] = []  # input as read by `fit`
        try:
            self.fit(X, y, **fit_params)
            reads = self._reads
        finally:
            del self._reads
        if not reads or reads[-1].read is None:
            return self.transform(X)
        given = reads[-1]
        values = self._values_of_fit(given, not self.keep_observed)
        return self._answer(given.source, given.matrix, values)

    def _set_fitted(self, statistics: Priors, outcome: Outcome) -> None:
        """Set the fitted attributes; this happens nowhere else."""
        for name in getattr(self, "_fitted_names", ()):
            delattr(self, name)  # remove all attributes of an earlier fit
        common = common_attributes(self, statistics)
        found = {**common, **outcome.attributes, "_fitted": outcome.fitted}
        if "_bounds" not in found:
            found["_bounds"] = found["_like"] = self._bounds_of(statistics.shape[1])
        for name, value in found.items():
            setattr(self, name, value)
        self._fitted_names = sorted(found)

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
            The completion in the float dtype of ``X``; a DataFrame under
            ``set_output``. Observed cells are unchanged unless
            ``keep_observed=False``. Rows equal to a row of the fitted matrix (values
            and mask) get that row's completion; every other row is completed by itself.
            Rows without an observed cell are filled with the column means, columns
            without one with the row means. In the fitted matrix, completers of pictures
            complete them like other holes.
        """
        check_is_fitted(self)
        if is_lazy(X):
            later: np.ndarray = lazy_transform(self, X)
            return later
        cells, source = self._read_rows(X, reset=False)
        if not self._fitted.knows_empty_rows(cells):
            empty = ~self._priors.informative(cells).any(1)
            warn_of_empty_rows(np.flatnonzero(empty))
        values = self._model_values(cells, not self.keep_observed)
        return self._answer(source, cells, values)

    def _read(self, X: Container, *, reset: bool) -> np.ndarray:
        """Read rows as floats with NaN where a cell is missing."""
        return self._read_rows(X, reset=reset)[0]

    def _written(self, source: Any, completed: np.ndarray) -> Any:
        """Return a completion in the container of the result."""
        return completed

    def _answer(self, source: Any, cells: np.ndarray, values: np.ndarray) -> Any:
        """Make the result of rows from the model's values."""
        completed = self._completed(cells, values)
        if self.add_indicator:
            flags = self.indicator_.transform(cells)
            completed = np.hstack([completed, flags.astype(completed.dtype)])
        return self._written(source, completed)

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


def _converted(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert numbers; those beyond a smaller range become its largest."""
    if values.dtype != dtype:
        limits = np.finfo(dtype)
        values = values.clip(limits.min, limits.max)
    return values.astype(dtype, copy=False)


def _needs_memory(error: Exception) -> bool:
    """Whether the memory of the host or of the device was too small."""
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)


def _out_of_memory(completer: BaseCompleter) -> MemoryError:
    return MemoryError(
        f"{type(completer).__name__} needs more memory than there is. Lower the sizes "
        "among its parameters, or fit to fewer rows and columns."
    )
