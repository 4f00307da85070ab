"""The base class of all completers."""

from __future__ import annotations

import functools
import inspect
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skmc import patterns
from skmc.base.estimator import Estimator
from skmc.base.lazy import is_lazy, lazy_transform
from skmc.base.priors import Priors
from skmc.base.reading import ReadsCells
from skmc.base.summary import ShowsFit
from skmc.base.warning import listed, warn_user
from skmc.blocks import BlockObserved, ChunkedRows
from skmc.cells import Entries, LikeObserved, check_positions, to_cells
from skmc.linalg import threads_for, work_of
from skmc.loop import fit_scope
from skmc.metrics import nmae
from skmc.new_rows import RowIndex

HIDDEN_TO_SCORE = 0.2  # share of each row's observed cells
HOOKS = ("_skl_callbacks", "_callback")  # attributes of scikit-learn's callbacks

Fit = TypeVar("Fit", bound=Callable[..., Any])


@dataclass(frozen=True)
class CompleterTags:
    """Properties of a completer that the common tests verify.

    Parameters
    ----------
    recovers : float
        Largest relative error on the hidden cells of the common rank-2 test problem.
    monotone : bool, default=False
        Whether the objective never increases.
    equivariant : bool, default=False
        Whether permuting the rows of ``X`` permutes the rows of the completion.
    batched : tuple of str, default=()
        Parameters that may differ within one batch.
    pictures : bool, default=False
        Whether a fit completes rows and columns without an observed cell from the rows
        and columns around them. Other completers fill them with means.
    interpolates : bool, default=False
        Whether the model's values at observed cells are those cells.
    unweighted : str, default="it has no weights of cells"
        Why `fit` takes no ``cell_weight``, if it does not.
    """

    recovers: float
    monotone: bool = False
    equivariant: bool = False
    batched: tuple[str, ...] = ()
    pictures: bool = False
    interpolates: bool = False
    unweighted: str = "it has no weights of cells"


@dataclass
class Outcome:
    """Result of a fit.

    Parameters
    ----------
    attributes : dict
        Fitted attributes by name.
    advice : str or None, default=None
        Warning about a fit that did not succeed, with the parameters to change.
    interrupted : bool, default=False
        Whether a `KeyboardInterrupt` ended the fit.
    """

    attributes: dict[str, Any] = field(default_factory=dict)
    advice: str | None = None
    interrupted: bool = False


def validated(fit: Fit) -> Fit:
    """Add scikit-learn's callbacks and parameter validation to ``fit``.

    Messages about unknown keywords name the estimator's own class.

    Parameters
    ----------
    fit : function
        The method ``fit`` of a completer.

    Returns
    -------
    function
    """
    checked = with_callbacks(_fit_context(prefer_skip_nested_validation=True)(fit))
    known = inspect.signature(fit).parameters

    @functools.wraps(checked)
    def wrapper(self: BaseCompleter, X: Any, y: Any = None, **given: Any) -> Any:
        for name in given:
            if name not in known:
                if name == "cell_weight":
                    raise TypeError(
                        f"{type(self).__name__}.fit() takes no cell_weight: "
                        f"{self.completer_tags.unweighted}. Leave it out, or use "
                        "SVDCompleter or another completer of weighted cells."
                    )
                raise TypeError(
                    f"{type(self).__name__}.fit() got an unexpected keyword argument "
                    f"{name!r}."
                )
        return checked(self, X, y, **given)

    return cast(Fit, wrapper)


class FittedAttributes:
    """What a fit sets, which is declared outside of the parameters."""

    data_range_: tuple[float, float]
    reconstruction_: Any
    row_ids_: np.ndarray
    col_ids_: np.ndarray
    _indicator: Any
    _rows: RowIndex
    _priors: Priors
    _shape: tuple[int, int]
    _like: LikeObserved | None = None  # restricts the values of missing cells


class BaseCompleter(ReadsCells, ShowsFit, FittedAttributes, Estimator):
    """Base class that reads any container, completes new rows and computes scores.

    Subclasses define `_fit_cells` and `_complete_rows`, and annotate their further
    parameters, see `Estimator`.

    Parameters
    ----------
    {reading}
    """

    completer_tags: ClassVar[CompleterTags]

    _: KW_ONLY
    missing_values: float = np.nan
    add_indicator: bool = False
    keep_empty_features: bool = True
    keep_observed: bool = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "missing_values": [Real],
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
        "keep_observed": ["boolean"],
    }

    def __dir__(self) -> list[str]:
        # scikit-learn's __dir__ evaluates every name: ``reconstruction_`` may
        # be computed at each access.
        return list(object.__dir__(self))

    @abstractmethod
    def _fit_cells(self, cells: Any, priors: Priors, y: Any = None) -> Outcome:
        """Complete ``cells`` (NaN where missing) without changing ``self``.

        Only scikit-learn's callbacks use ``y``.
        """

    @abstractmethod
    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        """Predict every cell of the given rows; each row is completed on its own."""

    def _complete_hidden(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """Apply `_complete_rows` to ``cells`` with the ``hidden`` cells removed."""
        return self._complete_rows(np.where(hidden, cells.dtype.type(np.nan), cells))

    @validated
    def fit(self, X: Any, y: Any = None) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Parameters
        ----------
        X : masked array, array or list with NaN, DataFrame, SciPy sparse matrix, \
tensor or `Entries`, of shape (n_samples, n_features)
            Matrix to complete. `skmc.cells.to_cells` defines which cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks. With the
            truth as ``y``, `sklearn.callback.ScoringMonitor` draws a learning curve.

        Returns
        -------
        self
            The fitted completer.
        """
        return self._run_fit(X, y)

    def _run_fit(self, X: Any, y: Any, **given: Any) -> Self:
        """`fit` to a matrix and to what else is given to `_read_to_fit`."""
        before, start = dict(vars(self)), time.perf_counter()
        try:
            cells, priors = self._read_to_fit(X, **given)
            self._warn_of_empty(priors)
            scope = fit_scope(self, getattr(cells, "identity", cells))
            with scope, _threads(cells):
                outcome = self._fit_cells(cells, priors, y)
        except Exception:
            # A failed fit leaves the completer unchanged. Callbacks are kept: they are
            # torn down later.
            hooks = {k: v for k, v in vars(self).items() if k.startswith(HOOKS)}
            self.__dict__.clear()
            self.__dict__.update(before | hooks)
            raise
        self._set_fitted(priors, outcome)
        self._seconds = time.perf_counter() - start
        if outcome.advice:
            warn_user(f"{type(self).__name__} {outcome.advice}", ConvergenceWarning)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit to ``X`` and return its completion.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Matrix to complete.
        y : Ignored
            As in `fit`.
        **fit_params : dict
            Passed on to `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The same as ``fit(X).transform(X)``.
        """
        self.fit(X, y, **fit_params)
        if is_lazy(X):
            return self.transform(X)
        return self._written(X, self._completed(self._read(X, reset=False)))

    def _read_to_fit(self, X: Any) -> tuple[Any, Priors]:
        """Return the observed cells of ``X`` and their statistics."""
        cells = self._read(X, reset=True)
        rows, cols = np.nonzero(~np.isnan(cells))
        return cells, Priors.of(rows, cols, cells[rows, cols], cells.shape)

    def _set_fitted(self, priors: Priors, outcome: Outcome) -> None:
        """Set the fitted attributes; no other function sets any."""
        for name in getattr(self, "_fitted_names", ()):
            delattr(self, name)  # remove all attributes of an earlier fit
        found = {**self._common(priors), **outcome.attributes}
        for name, value in found.items():
            setattr(self, name, value)
        self._fitted_names = sorted(found)

    def _common(self, priors: Priors) -> dict[str, Any]:
        """Fitted attributes that every completer has."""
        common = {
            "_priors": priors,
            "_shape": priors.shape,
            "_n_observed": priors.n_observed,
            "_seconds": None,  # until the fit has ended
            "data_range_": priors.data_range,
        }
        if priors.ids is not None:
            common["row_ids_"], common["col_ids_"] = priors.ids
        if self.add_indicator:
            from sklearn.impute import MissingIndicator

            holes = np.where(priors.full_cols, 0.0, np.nan)
            common["_indicator"] = MissingIndicator(error_on_new=False).fit(holes[None])
        return common

    def transform(self, X: Any) -> np.ndarray:
        """Complete rows of the fitted matrix or new rows.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows to complete. A Dask Array or DataFrame gives another one, whose
            partitions are completed when it is computed.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The completion in the float dtype of ``X``; a DataFrame under
            ``set_output``. Observed cells are unchanged unless
            ``keep_observed=False``. Rows equal to a row of the fitted matrix (values
            and mask) get that row's completion; every other row is completed on its
            own. Rows without an observed cell are filled with the column means,
            columns without one with the row means; in the fitted matrix, completers of
            pictures complete them like other holes.
        """
        check_is_fitted(self)
        if is_lazy(X):
            return lazy_transform(self, X)  # type: ignore[no-any-return]
        cells = self._read(X, reset=False)
        if not (self._priors.informed_rows or self._is_fitted_picture(cells)):
            self._warn_of_empty_rows(np.flatnonzero(np.isnan(cells).all(1)))
        return self._written(X, self._completed(cells))

    def _written(self, X: Any, completed: np.ndarray) -> Any:
        """Return the completion of ``X`` in the container of the result."""
        return completed

    def _is_fitted_picture(self, cells: np.ndarray) -> bool:
        """Whether ``cells`` is the fitted matrix, completed as a picture."""
        if not self.completer_tags.pictures:
            return False
        fitted: np.ndarray = self._rows.cells
        same = cells.dtype == fitted.dtype and cells.shape == fitted.shape
        return same and np.array_equal(cells, fitted, equal_nan=True)

    def _model_values(self, cells: np.ndarray) -> np.ndarray:
        if self._is_fitted_picture(cells):
            return self.reconstruction_
        with _threads(cells):
            return self._priors.fill(cells, self._complete_rows(cells))

    def _completed(
        self, cells: np.ndarray, values: np.ndarray | None = None
    ) -> np.ndarray:
        completed = self._model_values(cells) if values is None else values
        completed = completed.astype(cells.dtype, copy=False)
        if self._like is not None:
            completed = self._like.apply(completed)
        if self.keep_observed:
            completed = np.where(np.isnan(cells), completed, cells)
        if not self.keep_empty_features:
            completed = completed[:, ~self._priors.empty_cols]
        if self.add_indicator:
            flags = self._indicator.transform(cells)
            completed = np.hstack([completed, flags.astype(completed.dtype)])
        return completed

    def score(self, X: Any, y: Any = None) -> float:
        """Negative normalized mean absolute error; higher is better, 0 is perfect.

        Parameters
        ----------
        X : container as in `fit`
            Rows to complete. `Entries` are compared with ``reconstruction_`` at
            exactly their cells.
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
        if isinstance(X, Entries):
            X = X[X.values != self.missing_values]
            if not len(X) or X.matrix_shape != self._shape:
                raise ValueError(
                    f"X is {X!r}; score needs cells of the fitted matrix, which has "
                    f"shape {self._shape}."
                )
            guess = self.predict_entries(X.rows, X.cols)
            low, high = self.data_range_
            low, high = min(low, X.values.min()), max(high, X.values.max())
            return -float(np.abs(guess - X.values).mean() / ((high - low) or 1.0))
        cells = self._read(X, reset=False)
        if y is None or np.ndim(y) == 1:
            truth = cells
            hidden = patterns.per_row(cells, HIDDEN_TO_SCORE, random_state=0)
            if not hidden.any():
                raise ValueError(
                    "X has no row with two observed cells, so score cannot hide any; "
                    "pass the truth as y."
                )
            with _threads(cells):
                completed = self._complete_hidden(cells, hidden)
            cells = np.where(hidden, cells.dtype.type(np.nan), cells)
            completed = self._priors.fill(cells, completed)
        else:
            truth = to_cells(y, name="y", missing_values=self.missing_values)
            if truth.shape != cells.shape:
                raise ValueError(f"y has shape {truth.shape}, X has {cells.shape}.")
            hidden = np.isnan(cells) & ~np.isnan(truth)
            if not hidden.any():
                raise ValueError("X has no missing cell that is observed in y.")
            completed = self._model_values(cells)
        return -nmae(completed, truth, hidden)

    def predict_entries(self, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        """Predict single cells of the fitted matrix.

        Parameters
        ----------
        rows, cols : array-like of int, shape (n_cells,)
            Zero-based positions. One of them may be a number:
            ``predict_entries(3, range(120))`` predicts 120 cells of row 3.

        Returns
        -------
        ndarray of shape (n_cells,)
            ``reconstruction_[rows, cols]``: the model's values, at observed cells too.
        """
        check_is_fitted(self)
        if np.ndim(rows) == 0:
            rows = np.full(np.shape(cols), rows)
        if np.ndim(cols) == 0:
            cols = np.full(np.shape(rows), cols)
        return self._values_at(*check_positions(rows, cols, self._shape))

    def _values_at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        values: np.ndarray = self.reconstruction_[rows, cols]
        return values

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
        if not self.add_indicator:
            return kept
        return np.concatenate([kept, self._indicator.get_feature_names_out(names)])

    def _warn_of_empty(self, priors: Priors) -> None:
        if self.completer_tags.pictures and self.keep_empty_features:
            return
        empty = np.flatnonzero(priors.empty_cols)
        names = getattr(self, "feature_names_in_", None)
        action = "dropped"
        if self.keep_empty_features:
            action = "filled with the row means"
            if not priors.one_unit:
                action = "left empty, because the columns have different units"
        _warn_of("column", empty, action, names)
        if not self.completer_tags.pictures:
            self._warn_of_empty_rows(np.flatnonzero(priors.empty_rows))

    def _warn_of_empty_rows(self, empty: np.ndarray) -> None:
        _warn_of("row", empty, "filled with the column means")


def _threads(cells: Any) -> AbstractContextManager[None]:
    """Return the context for computations outside of solves, which have their own."""
    if isinstance(cells, Entries):
        return threads_for(work_of(len(cells)))
    if isinstance(cells, (BlockObserved, ChunkedRows)):
        return threads_for(cells.work)
    return threads_for(work_of(cells.size, min(cells.shape)))


def _warn_of(axis: str, empty: np.ndarray, action: str, names: Any = None) -> None:
    if len(empty):
        have, are = ("has", "is") if len(empty) == 1 else ("have", "are")
        place = listed(axis, empty, names)
        warn_user(f"{place} of X {have} no observed cell and {are} {action}.")
