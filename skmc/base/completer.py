"""The estimator contract that every completer keeps."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.callback import with_callbacks
from sklearn.impute import MissingIndicator
from sklearn.utils.validation import check_is_fitted

from skmc import patterns
from skmc.base.reading import ReadsCells
from skmc.base.summary import ShowsFit
from skmc.cells import Entries, check_positions, to_cells
from skmc.loop import fit_scope
from skmc.metrics import nmae

HIDDEN_TO_SCORE = 0.2
HOOKS = ("_skl_callbacks", "_callback")  # scikit-learn's own attributes


@dataclass(frozen=True)
class CompleterTags:
    """What a completer promises; the common tests hold it to that.

    Parameters
    ----------
    recovers : float
        Relative error on the hidden cells of the shared problem of rank 2 that is not
        exceeded.
    monotone : bool, default=False
        Whether the objective never rises.
    equivariant : bool, default=False
        Whether permuting rows permutes the answer.
    batched : tuple of str, default=()
        Parameters that may differ within one batch.
    """

    recovers: float  # relative error on the hidden cells of the shared rank-2 problem
    monotone: bool = False  # the objective never rises
    equivariant: bool = False  # permuting rows permutes the answer
    batched: tuple[str, ...] = ()  # parameters that may differ within one batch


class BaseCompleter(
    ReadsCells, ShowsFit, TransformerMixin, OneToOneFeatureMixin, BaseEstimator
):
    """Reads every container, keeps masks, completes rows, scores.

    Subclasses define `_fit_cells` (and, if they have a map of their own for new rows,
    `_complete_rows`) and the parameters ``missing_values``, ``add_indicator``,
    ``keep_empty_features`` and ``keep_observed``.
    """

    completer_tags: ClassVar[CompleterTags]

    _parameter_constraints: ClassVar[dict] = {
        "missing_values": [Real],
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
        "keep_observed": ["boolean"],
    }

    @abstractmethod
    def _fit_cells(self, cells: np.ndarray, y=None) -> None:
        """Complete ``cells`` (NaN where missing) and set the fitted attributes.

        ``y`` is for scikit-learn's callbacks alone.
        """

    @abstractmethod
    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        """The model's value for every cell of some rows, each on its own."""

    def _complete_hidden(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """`_complete_rows` of ``cells`` without those that ``hidden`` marks."""
        return self._complete_rows(np.where(hidden, cells.dtype.type(np.nan), cells))

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Complete ``X`` and remember how to complete other rows.

        Parameters
        ----------
        X : masked array, array or list with NaN, DataFrame, SciPy sparse matrix, \
        tensor or `Entries`, of shape (n_samples, n_features)
            What is missing is described at `skmc.cells.to_cells`.
        y : Ignored
            Present for pipelines. Handed to scikit-learn's callbacks: with the truth as
            ``y``, `sklearn.callback.ScoringMonitor` draws a learning curve.

        Returns
        -------
        self
            Fitted.
        """
        before, start = dict(vars(self)), time.perf_counter()
        try:
            cells = self._begin(X)
            with fit_scope(self, cells):
                self._fit_cells(cells, y)
        except Exception:
            # A fit that failed leaves the completer as it was, but for the callbacks,
            # which are torn down after this.
            hooks = {k: v for k, v in vars(self).items() if k.startswith(HOOKS)}
            vars(self).clear()
            vars(self).update(before | hooks)
            raise
        self._seconds = time.perf_counter() - start
        return self

    def _begin(self, X) -> np.ndarray:
        """Read ``X`` and set what does not depend on the method."""
        cells = self._read(X, reset=True)
        rows, cols = np.nonzero(~np.isnan(cells))
        self._describe(rows, cols, cells[rows, cols], cells.shape)
        return cells

    def _describe(self, rows, cols, values, shape) -> None:
        """Set what is known of the observed cells before anything is learned."""
        if not len(values):
            raise ValueError("X has no observed cell; at least one is needed.")
        self._shape, self._n_observed = tuple(shape), len(values)
        self._seconds = None  # until the fit has ended
        self.data_range_ = float(values.min()), float(values.max())
        self._mean = values.mean(dtype=float)
        count = np.bincount(cols, minlength=shape[1])
        self._empty = count == 0
        low, high = np.full(shape[1], np.inf), np.full(shape[1], -np.inf)
        np.minimum.at(low, cols, values)
        np.maximum.at(high, cols, values)
        self._varies = low < high
        self._constant = np.where(self._varies, np.nan, low)
        means = np.bincount(cols, values, shape[1]) / np.maximum(count, 1)
        self._column_means = np.where(self._empty, self._mean, means)
        if self._empty.any():
            answer = (
                "answered by the row means" if self.keep_empty_features else "dropped"
            )
            self._warn(
                f"{self._empty.sum()} columns of X have no observed cell", answer
            )
        self._warn_empty_rows(shape[0] - len(np.unique(rows)))
        if self.add_indicator:
            holes = np.where(count < shape[0], np.nan, 0.0)
            self._indicator = MissingIndicator(error_on_new=False).fit(holes[None])

    def transform(self, X):
        """Complete rows, whether they were there in `fit` or not.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows to complete.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Observed cells unchanged (unless ``keep_observed=False``), in the float
            dtype of ``X``; a DataFrame under ``set_output``. Rows equal to a row of
            the fitted matrix (values and mask) get that row's completion; others are
            completed each on its own. A row without an observed cell gets the column
            means, a column without one the row means.
        """
        check_is_fitted(self)
        cells = self._read(X, reset=False)
        self._warn_empty_rows(np.isnan(cells).all(1).sum())
        completed = self._with_priors(cells, self._complete_rows(cells))
        completed = completed.astype(cells.dtype, copy=False)
        if self.keep_observed:
            completed = np.where(np.isnan(cells), completed, cells)
        if not self.keep_empty_features:
            completed = completed[:, ~self._empty]
        if self.add_indicator:
            flags = self._indicator.transform(cells)
            completed = np.hstack([completed, flags.astype(completed.dtype)])
        return completed

    def score(self, X, y=None) -> float:
        """Negative normalised mean absolute error; higher is better, 0 is perfect.

        Parameters
        ----------
        X : container as in `fit`
            `Entries` are compared with ``reconstruction_`` at exactly their cells.
        y : container of X's shape, optional
            The truth: compared are the cells missing in ``X`` and known in ``y``.
            Without it, a fifth of each row's observed cells is hidden (the same ones
            each time), completed and compared; for rows of the fitted matrix this
            flatters, because what was learned there has seen those cells. A
            one-dimensional ``y`` is the target of a pipeline and ignored.

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
            completed = self._complete_hidden(cells, hidden)
            cells = np.where(hidden, cells.dtype.type(np.nan), cells)
        else:
            truth = to_cells(y, name="y", missing_values=self.missing_values)
            if truth.shape != cells.shape:
                raise ValueError(f"y has shape {truth.shape}, X has {cells.shape}.")
            hidden = np.isnan(cells) & ~np.isnan(truth)
            if not hidden.any():
                raise ValueError("X has no missing cell that y knows.")
            completed = self._complete_rows(cells)
        return -nmae(self._with_priors(cells, completed), truth, hidden)

    def predict_entries(self, rows, cols) -> np.ndarray:
        """The model's value at single cells of the fitted matrix.

        Parameters
        ----------
        rows, cols : array-like of int, shape (n_cells,)
            Zero-based positions. One of them may be a number: ``predict_entries(3,
            range(120))`` is a user and all films.

        Returns
        -------
        ndarray of shape (n_cells,)
            ``reconstruction_[rows, cols]``; at observed cells too this is the model's
            own value.
        """
        check_is_fitted(self)
        if np.ndim(rows) == 0:
            rows = np.full(np.shape(cols), rows)
        if np.ndim(cols) == 0:
            cols = np.full(np.shape(rows), cols)
        return self._values_at(*check_positions(rows, cols, self._shape))

    def _values_at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return self.reconstruction_[rows, cols]

    def get_feature_names_out(self, input_features=None):
        """Name the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of ``X``; None is those seen in `fit`, or ``x0``,
            ``x1`` ...

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = super().get_feature_names_out(input_features)
        kept = names if self.keep_empty_features else names[~self._empty]
        if not self.add_indicator:
            return kept
        return np.concatenate([kept, self._indicator.get_feature_names_out(names)])

    def _with_priors(self, cells: np.ndarray, completed: np.ndarray) -> np.ndarray:
        """Rows and columns of which nothing is known, answered by means."""
        observed = ~np.isnan(cells)
        empty_rows = ~observed.any(1)
        if not (empty_rows.any() or self._empty.any()):
            return completed
        completed = np.array(completed, float)
        completed[empty_rows] = self._column_means
        count = np.maximum(observed.sum(1), 1)
        means = np.where(observed, cells, 0).sum(1, dtype=float) / count
        means[empty_rows] = self._mean
        completed[:, self._empty] = means[:, None]
        return completed

    def _warn_empty_rows(self, n_empty: int) -> None:
        if n_empty:
            self._warn(
                f"{n_empty} rows of X have no observed cell", "answered by column means"
            )

    def _warn(self, what: str, answer: str) -> None:
        warnings.warn(f"{what}; they are {answer}.", category=UserWarning, stacklevel=6)
