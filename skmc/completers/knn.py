"""Nearest neighbors."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skmc.base import (
    BaseCompleter,
    CompleterTags,
    FitTasks,
    Outcome,
    Priors,
    is_lazy,
    read_chunks,
    resolve_device,
    warn_user,
)
from skmc.linalg import threads_for, work_of
from skmc.new_rows import RowIndex, knn_values

ROWS_AT_ONCE = 1000  # between two steps of a progress bar
DONORS = 10_000  # of a Dask collection


class KNNCompleter(BaseCompleter):
    r"""Average each missing cell over the nearest rows that have its column.

    The distance of two rows is computed over the columns that both have observed:

    .. math::

        d(x, y)^2 = \frac{n_{\text{features}}}{n_{\text{common}}} \sum_j (x_j - y_j)^2

    The data are not scaled: standardize columns of different scales first. The result
    is that of `sklearn.impute.KNNImputer`, computed by a few matrix products in bounded
    memory, also on CUDA.

    Parameters
    ----------
    n_neighbors : int >= 1, default=5
        Number of rows averaged, chosen for each cell among those that have the column.
    weights : {"uniform", "distance"}, default="uniform"
        Equal weights, or the inverse distance. With "distance", only rows at distance
        zero count if there are any.
    {device}
    {missing_values}
    {add_indicator}
    {keep_empty_features}
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the neighbors' mean,
        which for rows of the fitted matrix may include the row itself.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        Each cell predicted from the *other* rows; computed at each access.
    {input}

    Notes
    -----
    `fit` only stores the rows. Callbacks therefore see `transform`, 1000 rows at a
    time. Memory grows with ``n_samples n_features``; distances are computed in blocks.
    Time grows with ``n_samples**2 n_features``: for hundreds of thousands of rows, use
    `GaussianCompleter` or `TreesCompleter("boosting")`.

    Of a Dask Array or DataFrame with more than 10 000 rows, `fit` draws 10 000 rows as
    donors, always the same ones, with a warning. To choose donors, fit to them alone:
    `transform` completes any rows, and those of a Dask collection when it is computed.

    References
    ----------
    Troyanskaya et al. Missing value estimation methods for DNA microarrays.
    Bioinformatics 17 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import KNNCompleter
    >>> X = [[1.0, 2.0], [1.1, 2.2], [9.0, 9.0], [1.2, np.nan]]
    >>> KNNCompleter(n_neighbors=2).fit_transform(X)[-1]
    array([1.2, 2.1])
    """

    completer_tags = CompleterTags(
        recovers=0.6,
        equivariant=True,
        unweighted="it averages neighbors and has no loss",
    )
    _parameter_constraints: ClassVar[dict] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"})],
        "device": [str, torch.device],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Literal["distance", "uniform"] = "uniform",
        device: str | torch.device = "auto",
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        keep_observed: bool = True,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.device = device
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _read_to_fit(self, X: Any) -> tuple[np.ndarray, Priors]:
        if not is_lazy(X):
            return super()._read_to_fit(X)
        chunks = read_chunks(self, X)
        n_rows = chunks.shape[0]
        cells = chunks.sample(DONORS, seed=0)
        if n_rows > len(cells):
            warn_user(
                f"KNNCompleter uses {len(cells)} of the {n_rows} rows of X as donors; "
                "to choose other ones, fit to an array of donors."
            )
        rows, cols = np.nonzero(~np.isnan(cells))
        return cells, Priors.of(rows, cols, cells[rows, cols], cells.shape)

    def _fit_cells(self, cells: np.ndarray, priors: Priors, y: Any = None) -> Outcome:
        resolve_device(self.device)
        return Outcome({"_cells": cells.copy()})

    @property
    def reconstruction_(self) -> np.ndarray:
        """The model's value of every cell, computed at each access."""
        check_is_fitted(self)
        own = np.arange(len(self._cells))
        completed = self._average(self._cells, leave_out=own, everywhere=True)
        return self._priors.fill(self._cells, completed).astype(self._cells.dtype)

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        everywhere = not self.keep_observed
        if len(cells) and getattr(self, "_skl_callbacks", None):
            return self._watched(cells, everywhere)
        return self._average(cells, everywhere=everywhere)

    @with_callbacks  # type: ignore[untyped-decorator]
    def _watched(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        """Complete some rows after the others, so that progress can be shown."""
        parts = np.array_split(cells, -(-len(cells) // ROWS_AT_ONCE))
        done = []
        with FitTasks(self, cells, None, len(parts), name="transform") as tasks:
            for part in parts:
                done.append(self._average(part, everywhere=everywhere))
                tasks.done("rows")
        return np.concatenate(done)

    def _complete_hidden(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        # The fitted rows still contain the cells that are hidden here.
        own = RowIndex(self._cells).find(cells)
        return self._average(np.where(hidden, np.nan, cells), leave_out=own)

    def _average(
        self, cells: np.ndarray, leave_out: Any = None, everywhere: bool = False
    ) -> np.ndarray:
        device = resolve_device(self.device)
        # Squares of very large or small numbers overflow or underflow.
        unit = max(map(abs, self.data_range_)) or 1.0

        def split(cells: np.ndarray) -> Any:
            seen = ~np.isnan(cells)
            values = np.where(seen, cells, 0).astype(float) / unit
            pair = torch.from_numpy(values), torch.from_numpy(seen)
            return tuple(tensor.to(device) for tensor in pair)

        queries, seen = split(cells)
        donors, donors_seen = split(self._cells)
        with threads_for(work_of(len(queries) * len(donors), queries.shape[1])):
            answer = knn_values(
                queries,
                seen,
                donors,
                donors_seen,
                self.n_neighbors,
                by_distance=self.weights == "distance",
                needed=None if everywhere else ~seen,
                leave_out=None
                if leave_out is None
                else torch.from_numpy(leave_out).to(device),
            )
        return answer.cpu().numpy() * unit
