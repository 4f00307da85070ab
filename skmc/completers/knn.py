"""Nearest neighbors."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

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
from skmc.completers.costs import Cost, Variant
from skmc.linalg import threads_for, work_of
from skmc.new_rows import Clusters, RowIndex, knn_values

# Between two steps of a progress bar: at least so many rows, at most so many steps.
ROWS_AT_ONCE, PARTS = 1000, 20
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
    recall : float in (0, 1], default=1.0
        Share of the nearest rows that are found. 1 compares each row with all others.
        Below 1, a row is compared with the rows of the nearest clusters only, as many
        as find this share on 256 rows of ``X``, drawn at random. The fewer clusters
        this takes, the more time it saves: much where rows form groups or depend on few
        quantities, little where columns are independent.
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
    recall_ : float
        Share of the nearest rows that are found, measured on 256 rows of ``X``.
    {input}

    Notes
    -----
    `fit` only stores the rows, and finds clusters if ``recall < 1``. Callbacks
    therefore see `transform`, in at most 20 parts of at least 1000 rows. Memory grows
    with ``n_samples n_features``; distances are computed in blocks. Time grows with
    ``n_samples**2 n_features``: for hundreds of thousands of rows, set ``recall``, or
    use `GaussianCompleter` or `TreesCompleter("boosting")`. With ``recall < 1``, there
    are ``sqrt(n_samples)`` clusters (k-means). A row that needs a column which
    too few rows of the nearest clusters have is compared with all rows that have it.

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
    advice = "many similar rows"
    cost = Cost(0.009, rows_compared=6e-10, lookups=5e-8)
    stacked = (
        Variant("KNN"),
        Variant("KNN, weighted", {"n_neighbors": 10, "weights": "distance"}),
    )
    _parameter_constraints: ClassVar[dict] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"})],
        "recall": [Interval(Real, 0, 1, closed="right")],
        "device": [str, torch.device],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Literal["distance", "uniform"] = "uniform",
        recall: float = 1.0,
        device: str | torch.device = "auto",
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        keep_observed: bool = True,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.recall = recall
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
        if self.recall == 1 or len(cells) < 2:
            return Outcome({"_cells": cells.copy(), "_clusters": None, "recall_": 1.0})
        donors = self._tensors(cells, np.nanmax(np.abs(cells)))
        clusters = Clusters.of(*donors, self.n_neighbors, self.recall).to("cpu")
        fitted = {"_clusters": clusters, "recall_": clusters.recall}
        return Outcome({"_cells": cells.copy(), **fitted})

    def _tensors(self, cells: np.ndarray, unit: float) -> tuple[Tensor, Tensor]:
        # Squares of very large or small numbers overflow or underflow.
        seen = ~np.isnan(cells)
        values = np.where(seen, cells, 0).astype(float) / (unit or 1.0)
        device = resolve_device(self.device)
        return torch.from_numpy(values).to(device), torch.from_numpy(seen).to(device)

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
        parts = np.array_split(cells, min(PARTS, -(-len(cells) // ROWS_AT_ONCE)))
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
        unit = max(map(abs, self.data_range_)) or 1.0
        queries, seen = self._tensors(cells, unit)
        donors, donors_seen = self._tensors(self._cells, unit)
        values = knn_values
        if self._clusters is not None:
            values = self._clusters.to(queries.device).values
        if leave_out is None:
            leave_out = np.full(len(cells), -1)
        with threads_for(work_of(len(queries) * len(donors), queries.shape[1])):
            answer = values(
                queries,
                seen,
                donors,
                donors_seen,
                self.n_neighbors,
                by_distance=self.weights == "distance",
                needed=torch.ones_like(seen) if everywhere else ~seen,
                leave_out=torch.from_numpy(leave_out).to(queries.device),
            )
        return answer.cpu().numpy() * unit
