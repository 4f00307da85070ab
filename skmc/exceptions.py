"""Warnings, by names that one line can filter.

All are `CompletionWarning`, a `UserWarning`. A fit issues them for its data, and not
for the folds of a cross-validation. A fit that ends too early warns by scikit-learn's
`sklearn.exceptions.ConvergenceWarning`. One line silences a kind::

    import warnings
    from skmc.exceptions import EmptyRowsWarning

    warnings.simplefilter("ignore", EmptyRowsWarning)
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ColumnsLeftWarning",
    "CompletionWarning",
    "DoubtfulCellsWarning",
    "EmptyColumnsWarning",
    "EmptyRowsWarning",
    "LimitsWarning",
    "LongFormWarning",
    "UnitsWarning",
    "UnknownCategoriesWarning",
    "UnknownIdentifiersWarning",
]


class CompletionWarning(UserWarning):
    """What the data or the arguments of a completion make doubtful.

    Base class of the warnings of skmc.

    Parameters
    ----------
    *args : object
        Text of the warning.
    places : sequence, default=()
        Rows, columns or identifiers that the warning is about. ``len(places)`` is their
        number.

    See Also
    --------
    sklearn.exceptions.ConvergenceWarning : Fits that end too early.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skmc import KNNCompleter
    >>> from skmc.exceptions import CompletionWarning
    >>> X = np.outer(np.arange(1.0, 7), np.arange(1.0, 6))
    >>> X[[2, 4]] = np.nan
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", CompletionWarning)
    ...     completer = KNNCompleter().fit(X)
    >>> print(caught[0].message)
    2 rows of X have no observed cell; the column means fill such rows.
    >>> caught[0].message.places
    [2, 4]
    """

    def __init__(self, *args: object, places: Any = ()) -> None:
        super().__init__(*args)
        self.places = list(places)


class EmptyRowsWarning(CompletionWarning):
    """Rows of the fit have no observed cell and are filled with the column means."""


class EmptyColumnsWarning(CompletionWarning):
    """Columns of the fit have no observed cell; the text names them."""


class UnitsWarning(CompletionWarning):
    """Columns are treated as having one unit, but their deviations differ much."""


class ColumnsLeftWarning(CompletionWarning):
    """Columns of a table cannot be inferred and are returned unchanged."""


class DoubtfulCellsWarning(CompletionWarning):
    """Cells of a table may mark missing ones, such as -999 or "unknown"."""


class LongFormWarning(CompletionWarning):
    """A table looks like ratings or a panel in long form."""


class LimitsWarning(CompletionWarning):
    """Columns with limits of detection do not look like a normal distribution."""


class UnknownCategoriesWarning(CompletionWarning):
    """Categories were not in the fit; other cells are completed without them."""


class UnknownIdentifiersWarning(CompletionWarning):
    """Identifiers were not in the fit and are predicted by means."""
