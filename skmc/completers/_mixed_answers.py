"""Uncertainty and errors of the cells that `MixedCompleter` completes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from skmc.cells import Container
from skmc.completers.auto import AutoCompleter
from skmc.parameters import Seed
from skmc.tables import Source, errors

if TYPE_CHECKING:
    from skmc.completers.mixed import MixedCompleter

KINDS = ("numeric", "ordinal", "categorical", "date")


def inner_has(name: str) -> Callable[[MixedCompleter], bool]:
    """Make a check whether the completer of a `MixedCompleter` has a method."""

    def check(self: MixedCompleter) -> bool:
        inner = getattr(self, "completer_", self.completer)
        getattr(AutoCompleter if inner is None else inner, name)  # or AttributeError
        return True

    return check


def has_categories(self: MixedCompleter) -> bool:
    """Check that the table of the fit has columns of categories, if it was a table."""
    return getattr(self, "categories_", None) != {}


def predict_std(self: MixedCompleter, X: Container) -> Any:
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


def predict_interval(
    self: MixedCompleter, X: Container, level: float = 0.9
) -> tuple[Any, Any]:
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
        The interval of an observed cell is its value. Missing categories stay missing.
        Bounds are rounded and clipped like the completion.
    """
    source = self._source(X)
    bounds = self.completer_.predict_interval(source.matrix, level)
    low, high = (_written(source, bound) for bound in bounds)
    return low, high


def sample(
    self: MixedCompleter,
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
        Observed cells are unchanged. Draws are rounded and clipped like the completion.
        A missing category is the one with the largest drawn score;
        `skmc.ChainedCompleter` and `skmc.TreesCompleter` draw it from the observed
        categories of similar rows, and `skmc.AutoCompleter` by its probabilities.
    """
    source = self._source(X)
    draws = self.completer_.sample(source.matrix, n_samples, random_state)
    return [source.completed(source.table.decode(draw)) for draw in draws]


def predict_proba(self: MixedCompleter, X: Container) -> dict[Any, np.ndarray]:
    """Estimate the probabilities of the categories.

    This method is available if the table of the fit has columns of categories. The
    completer estimates the expectations of the columns that represent a category. The
    nearest numbers that are at least 0 and sum to one are calibrated: their ratios to
    the shares of the categories are raised to a power, and the result is mixed with the
    shares. For each column, the power and the weight of the shares maximize the log
    score on held-out cells: where nothing explains a category, its probabilities are
    near the shares.

    Parameters
    ----------
    X : container as in `fit`, of shape (n_samples, n_features)
        Rows, which need not be rows of the fit.

    Returns
    -------
    dict of column to ndarray of shape (n_samples, n_categories)
        Probabilities for each column of categories, by name, or by position if ``X``
        has no names, in the order of ``categories_``. The largest probability is that
        of the category that `transform` returns. An observed category has the
        probability 1; the row of an observed value that is not a category is NaN.
    """
    source = self._source(X)
    return source.probabilities(self._completed(source.matrix))


def score(self: MixedCompleter, X: Container, y: object = None) -> float:
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
    return -float(np.nanmean(_errors(self, X, y)))


def error_by_type(
    self: MixedCompleter, X: Container, y: object = None
) -> dict[str, float]:
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
    errors = _errors(self, X, y)
    kinds = np.array(self.kinds_, object)
    found = {}
    for kind in KINDS:
        chosen = errors[:, kinds == kind]
        if chosen.size:
            some = not np.isnan(chosen).all()
            found[kind] = float(np.nanmean(chosen)) if some else np.nan
    return found


def _errors(completer: MixedCompleter, X: Container, y: object) -> np.ndarray:
    """Errors of the compared cells; NaN elsewhere."""
    return errors(completer._source(X), y, completer._completed)


def _written(source: Source, matrix: np.ndarray) -> Any:
    """The table of a matrix, in which missing categories stay missing."""
    return source.completed(source.table.decode(matrix), only_measured=True)
