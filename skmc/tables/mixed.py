"""Tables of numbers, ordered levels and categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc import patterns
from skmc.base import HIDDEN_TO_SCORE, BaseCompleter, ShowsFit
from skmc.completers import SoftImputeCompleter
from skmc.tables.categories import Categorical, categories_of
from skmc.tables.column import Column
from skmc.tables.frames import (
    as_table,
    column_of,
    filled,
    is_missing,
    is_numeric,
    label,
    numbers_of,
    position_of,
    to_list,
)
from skmc.tables.levels import Ordinal, codes
from skmc.tables.numbers import Numeric


class MixedCompleter(
    ShowsFit,
    OneToOneFeatureMixin,  # type: ignore[misc]  # scikit-learn has no types
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Completes tables of numbers, ordered levels and categories.

    A completer works on a matrix that represents the table, in which every column of
    the table has the same weight:

    - A number is standardized: less its column's mean, divided by its standard
      deviation.
    - An ordered level is represented by its position 0, 1, 2, ..., standardized
      likewise. The answer is the nearest level.
    - Categories get one column each, which is one in the rows of that category and zero
      in the others. The shares of the categories are subtracted, and all these columns
      are divided by one number, so that their variances have the sum one. A missing
      category is missing in all of its columns and does not get a column of its own.
      The answer is the category with the largest score.

    The statistics are those of the observed cells in `fit`. A completer that
    standardizes columns itself (``scaling="columns"``) gives each category the weight
    of a column, rare categories included.

    Parameters
    ----------
    completer : completer or None, default=None
        Completes the matrix; `fit` works on a clone. None is
        ``SoftImputeCompleter(scaling=None, random_state=0)``.
    categorical : sequence of column names or positions, or None, default=None
        Additional columns of categories. Columns of text, of booleans, and of pandas'
        and polars' unordered categories are categorical by their dtype. In an array of
        objects, columns that hold anything but numbers are categorical.
    ordinal : dict of column to sequence of levels, lowest first, or None, default=None
        Columns of ordered levels, in addition to pandas' ordered categories.

    Attributes
    ----------
    completer_ : completer
        The clone, fitted to the matrix.
    kinds_ : list of {"numeric", "ordinal", "categorical", None}
        The kind of each column. None means that the column has no observed cell; it is
        left as it is.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the input has names

    Notes
    -----
    Columns that are not numeric keep their dtype. Integers become floating-point
    numbers if any of them is missing. A category that did not occur in `fit` counts as
    missing for the completer and is returned as it is.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "completer": [BaseCompleter, None],
        "categorical": ["array-like", None],
        "ordinal": [Mapping, None],
    }

    def __init__(
        self,
        completer: BaseCompleter | None = None,
        *,
        categorical: Sequence[str | int] | None = None,
        ordinal: Mapping[Any, Sequence[Any]] | None = None,
    ) -> None:
        self.completer = completer
        self.categorical = categorical
        self.ordinal = ordinal

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> MixedCompleter:
        """Learn how the columns are related.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or container as for completers, of shape \
        (n_samples, n_features)
            NaN, None and pandas' NA mark missing cells.
        y : Ignored
            Present for pipelines.

        Returns
        -------
        self
        """
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        self._columns = self._describe(X)
        self.kinds_ = [None if c is None else c.kind for c in self._columns]
        if not any(self.kinds_):
            raise ValueError("X has no observed cell; at least one is needed.")
        completer = self.completer
        if completer is None:
            completer = SoftImputeCompleter(scaling=None, random_state=0)
        numbers, _ = self._read(X)
        self.completer_ = clone(completer).fit(self._encode(numbers))
        return self

    def transform(self, X: Any) -> Any:
        """Complete rows, those seen in `fit` as well as new ones.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            The table.

        Returns
        -------
        DataFrame of the same kind, or ndarray, of shape (n_samples, n_features)
            Observed cells are unchanged. An array holds objects unless all columns are
            numeric.
        """
        check_is_fitted(self)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        numbers, missing = self._read(X)
        completed = self._decode(self.completer_.transform(self._encode(numbers)))
        new = {}
        for k, column in enumerate(self._columns):
            if column is not None and missing[:, k].any():
                new[k] = column.restore(completed[missing[:, k], k])
        return filled(X, new, missing, self.kinds_)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the negative mean error of cells; higher is better.

        Parameters
        ----------
        X : container as in `fit`
            As for `error_by_type`.
        y : container of X's shape, optional
            As for `error_by_type`.

        Returns
        -------
        float
            The mean is over all compared cells, whatever their kind.
        """
        errors = self._errors(X, y)
        return -float(np.nanmean(errors))

    def error_by_type(self, X: Any, y: Any = None) -> dict[str, float]:
        """Return the mean errors of numeric, ordinal and categorical cells.

        The error of a number is absolute, relative to the range of its column in `fit`.
        The error of a level is the distance in levels, relative to the largest possible
        distance. The error of a category is 1 if it is wrong.

        Parameters
        ----------
        X : container as in `fit`
            The table.
        y : container of X's shape, optional
            The truth. Cells that are missing in ``X`` and known in ``y`` are compared.
            Without ``y``, a fifth of each row's observed cells is hidden (the same
            cells each time), completed and compared; this is optimistic for rows seen
            in `fit`. A one-dimensional ``y`` is the target of a pipeline and ignored.

        Returns
        -------
        dict
            For each of "numeric", "ordinal" and "categorical" that occurs in the table.
            NaN if no cell of that kind can be compared.
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

    def _errors(self, X: Any, y: Any) -> np.ndarray:
        """Errors of the compared cells; NaN elsewhere."""
        check_is_fitted(self)
        X = as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        numbers, missing = self._read(X)
        if y is None or np.ndim(y) == 1:
            truth = numbers
            hidden = patterns.per_row(truth, HIDDEN_TO_SCORE, random_state=0)
            problem = (
                "no row with two observed cells, one of which to hide; pass the truth"
            )
        else:
            y = as_table(y)
            if y.shape != X.shape:
                raise ValueError(f"y has shape {y.shape}, X has {X.shape}.")
            truth, _ = self._read(y)
            hidden = missing & ~np.isnan(truth)
            problem = "no missing cell that y knows"
        if not hidden.any():
            raise ValueError(f"X has {problem}.")
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

    def _describe(self, X: Any) -> list[Column | None]:
        """Describe each column by its observed cells; None if it has none."""
        categorical = {
            position_of(X, c, "categorical")
            for c in (() if self.categorical is None else self.categorical)
        }
        ordinal = {
            position_of(X, c, "ordinal"): tuple(levels)
            for c, levels in (self.ordinal or {}).items()
        }
        if both := categorical & ordinal.keys():
            raise ValueError(
                f"column {min(both)} is in categorical and in ordinal; list it in one "
                "of them."
            )
        found: list[Column | None] = []
        for k in range(X.shape[1]):
            column = column_of(X, k)
            seen = [value for value in to_list(column) if not is_missing(value)]
            levels = ordinal.get(k)
            if levels is None and getattr(column.dtype, "ordered", False):
                levels = tuple(column.dtype.categories)
            if not seen:
                found.append(None)
            elif levels is not None:
                if unknown := set(seen) - set(levels):
                    raise ValueError(
                        f"X holds {min(unknown, key=str)!r} in {label(X, k)}, which "
                        f"is not among its levels {list(levels)}; add it to ordinal."
                    )
                found.append(Ordinal.of(codes(seen, levels), levels))
            elif k in categorical or not is_numeric(column.dtype, seen):
                levels = categories_of(column.dtype, seen, label(X, k))
                found.append(Categorical.of(codes(seen, levels), levels))
            else:
                numbers = numbers_of(X, [k])[:, 0]
                numbers = numbers[~np.isnan(numbers)].astype(float)
                found.append(Numeric.of(numbers))
        return found

    def _read(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and positions of levels, NaN where unknown; and the missing cells."""
        numbers = np.full(X.shape, np.nan)
        missing = np.zeros(X.shape, bool)
        plain = [k for k, c in enumerate(self._columns) if isinstance(c, Numeric)]
        if plain:
            numbers[:, plain] = numbers_of(X, plain)
            missing[:, plain] = np.isnan(numbers[:, plain])
        for k, column in enumerate(self._columns):
            if isinstance(column, (Ordinal, Categorical)):
                values = to_list(column_of(X, k))
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
        """Numbers and positions; columns that the completer appends are left out."""
        numbers = np.full((len(matrix), len(self._columns)), np.nan)
        start = 0
        for k, column in enumerate(self._columns):
            if column is not None:
                block = matrix[:, start : start + column.width]
                numbers[:, k] = column.decode(block)
                start += column.width
        return numbers

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
