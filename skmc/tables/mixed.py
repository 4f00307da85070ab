"""Tables of numbers, ordered levels and categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc import patterns
from skmc.base import HIDDEN_TO_SCORE, BaseCompleter, ShowsFit
from skmc.cells import to_cells
from skmc.completers import SoftImputeCompleter
from skmc.tables.columns import (
    Categorical,
    Column,
    Numeric,
    Ordinal,
    as_table,
    codes,
    filled,
    is_missing,
    is_numeric,
    label,
    position_of,
    sorted_levels,
    to_list,
)


class MixedCompleter(ShowsFit, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Completes tables of numbers, ordered levels and categories.

    A completer works on the table as a matrix, in which every column counts alike:

    - a number less its column's mean, over its deviation;
    - of ordered levels their number, 0, 1, 2 ..., standardised likewise; the answer is
      the nearest level;
    - of categories one column each, one where a row has it and zero where it has
      another, less their shares and over one number, so that the variances of these
      columns have the sum one. A missing category is missing in all of them, none of
      its own. The answer is the category of the largest score.

    Statistics are those of the observed cells in `fit`. A completer that standardises
    columns itself (``scaling="columns"``) lets each category count as a column, rare
    ones as much as others.

    Parameters
    ----------
    completer : completer or None, default=None
        What completes the matrix; `fit` works on a clone. None is
        ``SoftImputeCompleter(scaling=None, random_state=0)``.
    categorical : sequence of column names or positions, or None, default=None
        Columns of categories besides those that are so by their dtype: text, booleans,
        and categories of pandas and polars that have no order. In an array of objects
        these are the columns that hold anything but numbers.
    ordinal : dict of column to sequence of levels, lowest first, or None, default=None
        Columns of ordered levels besides pandas' ordered categories.

    Attributes
    ----------
    completer_ : completer
        Fitted to the matrix.
    kinds_ : list of {"numeric", "ordinal", "categorical", None}
        Of each column; None has no observed cell, and is left as it is.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the input has names

    Notes
    -----
    Columns that are not numeric come back with their dtype; whole numbers come back as
    floating-point ones, if any is missing. A category that was not there in `fit` says
    nothing to the completer and is returned as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> from skmc.tables import MixedCompleter
    >>> table = pd.DataFrame(
    ...     {
    ...         "length": [1.0, 1.1, 0.9, 5.0, 5.2, 4.8, None],
    ...         "width": [2.1, 2.0, 1.8, 9.9, 10.1, 10.0, 10.0],
    ...         "kind": ["cat", "cat", "cat", "dog", None, "dog", "dog"],
    ...     }
    ... )
    >>> completer = MixedCompleter().fit(table)
    >>> completer.kinds_
    ['numeric', 'numeric', 'categorical']
    >>> completer.transform(table).round(1).tail(3)
       length  width kind
    4     5.2   10.1  dog
    5     4.8   10.0  dog
    6     4.7   10.0  dog
    """

    _parameter_constraints: ClassVar[dict] = {
        "completer": [BaseCompleter, None],
        "categorical": ["array-like", None],
        "ordinal": [Mapping, None],
    }

    def __init__(self, completer=None, *, categorical=None, ordinal=None):
        self.completer = completer
        self.categorical = categorical
        self.ordinal = ordinal

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn how the columns go together.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or container as for completers, of shape \
        (n_samples, n_features)
            Missing are NaN, None and pandas' NA.
        y : Ignored
            For pipelines.

        Returns
        -------
        self
        """
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        self._columns = self._describe(X)
        self.kinds_ = [column and column.kind for column in self._columns]
        if not any(self.kinds_):
            raise ValueError("X has no observed cell; at least one is needed.")
        completer = self.completer
        if completer is None:
            completer = SoftImputeCompleter(scaling=None, random_state=0)
        numbers, _ = self._read(X)
        self.completer_ = clone(completer).fit(self._encode(numbers))
        return self

    def transform(self, X):
        """Complete rows, whether they were there in `fit` or not.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            The table.

        Returns
        -------
        DataFrame of the same kind, or ndarray, of shape (n_samples, n_features)
            Observed cells unchanged. An array is one of objects, unless all columns
            are numeric.
        """
        check_is_fitted(self)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        numbers, missing = self._read(X)
        completed = self._decode(self.completer_.transform(self._encode(numbers)))
        new = {}
        for k, column in enumerate(self._columns):
            if column is not None and missing[:, k].any():
                values = completed[missing[:, k], k]
                if not isinstance(column, Numeric):
                    values = [column.levels[int(code)] for code in values]
                new[k] = values
        return filled(X, new, missing, self.kinds_)

    def score(self, X, y=None) -> float:
        """Less the mean error of cells, each between 0 and 1; higher is better.

        Parameters
        ----------
        X : container as in `fit`
            As for `error_by_type`.
        y : container of X's shape, optional
            As for `error_by_type`.

        Returns
        -------
        float
            Minus the mean over all compared cells, whatever their type.
        """
        errors = self._errors(X, y)
        return -float(np.nanmean(errors))

    def error_by_type(self, X, y=None) -> dict[str, float]:
        """Mean errors of the numeric, the ordinal and the categorical cells.

        Of a number the absolute error over the range of its column in `fit`; of a
        level the number of levels between, over the largest there can be; of a
        category 1 if it is wrong.

        Parameters
        ----------
        X : container as in `fit`
            The table.
        y : container of X's shape, optional
            The truth: compared are the cells missing in ``X`` and known in ``y``.
            Without it, a fifth of each row's observed cells is hidden (the same ones
            each time), completed and compared; rows that were there in `fit` flatter.
            A one-dimensional ``y`` is the target of a pipeline and ignored.

        Returns
        -------
        dict
            By the types that are there: "numeric", "ordinal", "categorical"; NaN where
            no cell of a type can be compared.
        """
        errors = self._errors(X, y)
        kinds = np.array(self.kinds_, object)
        found = {}
        for cls in (Numeric, Ordinal, Categorical):
            chosen = errors[:, kinds == cls.kind]
            if chosen.size:
                some = not np.isnan(chosen).all()
                found[cls.kind] = float(np.nanmean(chosen)) if some else np.nan
        return found

    def _errors(self, X, y) -> np.ndarray:
        """Of each cell that is compared; NaN elsewhere."""
        check_is_fitted(self)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        numbers, missing = self._read(X)
        if y is None or np.ndim(y) == 1:
            truth = numbers
            hidden = patterns.per_row(truth, HIDDEN_TO_SCORE, random_state=0)
            remedy = "no row with two observed cells to hide some of; pass the truth"
        else:
            y = as_table(y)
            if y.shape != X.shape:
                raise ValueError(f"y has shape {y.shape}, X has {X.shape}.")
            truth, _ = self._read(y)
            hidden = missing & ~np.isnan(truth)
            remedy = "no missing cell that y knows"
        if not hidden.any():
            raise ValueError(f"X has {remedy}.")
        given = self._encode(np.where(hidden, np.nan, numbers))
        guess = self._decode(self.completer_.transform(given))
        errors = np.full(truth.shape, np.nan)
        for k, column in enumerate(self._columns):
            if column is not None:
                errors[:, k] = column.error(guess[:, k], truth[:, k])
        return np.where(hidden, errors, np.nan)

    def _fit_summary(self) -> dict[str, str]:
        count = Counter(kind or "empty" for kind in self.kinds_)
        columns = ", ".join(f"{n} {kind}" for kind, n in count.items())
        return {"columns": columns, **self.completer_._fit_summary()}

    def _describe(self, X) -> list[Column | None]:
        categorical = {position_of(X, c, "categorical") for c in self._listed()}
        ordinal = {
            position_of(X, c, "ordinal"): tuple(levels)
            for c, levels in (self.ordinal or {}).items()
        }
        if both := categorical & ordinal.keys():
            raise ValueError(
                f"column {min(both)} is in categorical and in ordinal; it can be one."
            )
        found: list[Column | None] = []
        for k in range(X.shape[1]):
            column = _safe_indexing(X, k, axis=1)
            values = to_list(column)
            seen = [value for value in values if not is_missing(value)]
            levels = ordinal.get(k)
            if levels is None and getattr(column.dtype, "ordered", False):
                levels = tuple(column.dtype.categories)
            if not seen:
                found.append(None)
            elif levels is not None:
                unknown = set(seen) - set(levels)
                if unknown:
                    raise ValueError(
                        f"X holds {min(unknown, key=str)!r} in {label(X, k)}, which "
                        f"is not among its levels {list(levels)}; add it to ordinal."
                    )
                found.append(Ordinal.of(codes(seen, levels), levels))
            elif k in categorical or not is_numeric(column.dtype, seen):
                levels = sorted_levels(column, seen, label(X, k))
                found.append(Categorical.of(codes(seen, levels), levels))
            else:
                numbers = to_cells(_safe_indexing(X, [k], axis=1))[:, 0]
                numbers = numbers[~np.isnan(numbers)].astype(float)
                found.append(Numeric.of(numbers))
        return found

    def _listed(self) -> Iterable:
        return () if self.categorical is None else list(self.categorical)

    def _read(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and codes of levels, NaN where unknown; and what is missing."""
        numbers = np.full(X.shape, np.nan)
        missing = np.zeros(X.shape, bool)
        plain = [k for k, c in enumerate(self._columns) if isinstance(c, Numeric)]
        if plain:
            numbers[:, plain] = to_cells(_safe_indexing(X, plain, axis=1))
            missing[:, plain] = np.isnan(numbers[:, plain])
        for k, column in enumerate(self._columns):
            if isinstance(column, (Ordinal, Categorical)):
                values = to_list(_safe_indexing(X, k, axis=1))
                missing[:, k] = [is_missing(value) for value in values]
                numbers[:, k] = codes(values, column.levels)
        return numbers, missing

    def _encode(self, numbers: np.ndarray) -> np.ndarray:
        blocks = [
            column.encode(numbers[:, k])
            for k, column in enumerate(self._columns)
            if column is not None
        ]
        return np.hstack(blocks)

    def _decode(self, matrix: np.ndarray) -> np.ndarray:
        """Numbers and codes; a completer's columns behind those are left out."""
        numbers = np.full((len(matrix), len(self._columns)), np.nan)
        start = 0
        for k, column in enumerate(self._columns):
            if column is not None:
                block = matrix[:, start : start + column.width]
                numbers[:, k] = column.decode(block)
                start += column.width
        return numbers

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
