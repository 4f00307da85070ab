"""The mixin for completers that fit the chunks of Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base.iterative import Prepared
from skmc.base.lazy import is_lazy
from skmc.base.priors import Priors
from skmc.base.reading import check_names
from skmc.blocks import ChunkedRows
from skmc.cells import Observed, Scaling

ROWS_TRIED = 1000  # for choices on held-out cells


def read_chunks(completer: Any, X: Any) -> ChunkedRows:
    """Read a Dask Array or DataFrame for a fit, without computing it.

    Parameters
    ----------
    completer : completer
        Learns number and names of the columns.
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows.

    Returns
    -------
    ChunkedRows
    """
    check_names(X)
    small = getattr(X, "_meta", None)
    if not hasattr(X, "columns"):
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D array instead: X must be a matrix."
            )
        small = np.empty((0, X.shape[1]))
    validate_data(completer, small, skip_check_array=True)
    return ChunkedRows(X, completer.missing_values)


def rows_in_memory(completer: Any) -> np.ndarray:
    """Return the fitted rows.

    Parameters
    ----------
    completer : completer
        Fitted.

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Raises
    ------
    AttributeError
        They were not in memory in the fit.
    """
    check_is_fitted(completer)
    found: np.ndarray | None = getattr(completer, "_cells", None)
    if found is None:
        raise AttributeError(
            "The cells of the fit were not in memory, so there is no reconstruction_ "
            "and no partial_fit; use transform, or fit to an array."
        )
    return found


class ReadsChunks:
    """Mixin that reads Dask collections as `ChunkedRows`.

    List it before the base class. ``_make_solver`` is then called with `ChunkedRows`.
    """

    scaling: str | None
    centre: bool

    def _read_to_fit(self, X: Any, **given: Any) -> tuple[Any, Priors]:
        if not is_lazy(X):
            return super()._read_to_fit(X, **given)  # type: ignore[misc]
        for name in given:
            raise ValueError(
                f"{name} needs cells in memory, but X is a Dask collection; pass "
                "X.compute()."
            )
        cells = read_chunks(self, X)
        found = cells.statistics
        one_unit = bool(found["col"]["count"].all()) or not bool(
            Scaling.unlike_moments(cells.moments)
        )
        return cells, Priors.of_statistics(
            found["row"], found["col"], one_unit=one_unit
        )

    def _prepare(self, cells: Any, priors: Priors) -> Prepared:
        if not isinstance(cells, ChunkedRows):
            return super()._prepare(cells, priors)  # type: ignore[misc, no-any-return]
        one = torch.ones(1, 1, dtype=torch.float64)
        scaling = Scaling(torch.zeros_like(one), one)
        if self.scaling is not None:
            scaling = Scaling.of_moments(
                cells.moments, self.scaling, centre=self.centre
            )
        return Prepared(cells, priors, cells.scaled(scaling), scaling)

    def _values_at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        if not hasattr(self, "_rows"):
            rows_in_memory(self)  # raises an error if they were not
        return super()._values_at(rows, cols)  # type: ignore[misc, no-any-return]

    def _split(self, data: Any, seed: int) -> tuple[Any, Any]:
        if isinstance(data, ChunkedRows):
            data = first_rows(data)
        return super()._split(data, seed)  # type: ignore[misc, no-any-return]


def first_rows(data: ChunkedRows, n: int = ROWS_TRIED) -> Observed:
    """The first rows, scaled.

    Parameters
    ----------
    data : ChunkedRows
        Rows.
    n : int, default=1000
        How many.

    Returns
    -------
    Observed
    """
    values = torch.from_numpy(data.head(n)).double()
    if data.scaling is not None:
        values = data.scaling.standardise(values)
    return Observed(values, ~torch.isnan(values))
