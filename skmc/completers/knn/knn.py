"""Nearest neighbors: each cell is an average of the most similar rows that have it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from skmc.base import (
    CompleterTags,
    Contribution,
    Explains,
    Fitted,
    Outcome,
    TakesBounds,
    by_weight,
    row_names,
    warn_user,
)
from skmc.blocks import ChunkedRows
from skmc.cells import Container, Given, Observed, Scaling
from skmc.compatibility import Interval, with_callbacks
from skmc.completers.knn.donors import Clusters, donors_of_cell, knn_values
from skmc.linalg import resolve_device, threads_for, work_of
from skmc.loop import FitTasks
from skmc.new_rows import RowIndex
from skmc.parameters import Count

# Smallest number of rows per step of a progress bar, and largest number of steps.
ROWS_AT_ONCE, PARTS = 1000, 20
DONORS = 10_000  # number of donors from a Dask collection


@dataclass(eq=False)
class Neighbors(Fitted):
    """Donors, from which any row is completed.

    Parameters
    ----------
    statistics : Priors
        Statistics as in `skmc.base.Fitted`.
    cells : ndarray of shape (n_donors, n_cols)
        Donors, NaN where a cell is missing.
    scaling : Scaling
        Scaling of the cells whose distances are compared.
    n_neighbors : int
        Number of donors averaged for each cell.
    by_distance : bool
        Whether donors are weighted by inverse distance.
    device : str or torch.device
        Device of the computation.
    clusters : Clusters or None
        Clusters of nearby donors, unless all donors are searched.
    """

    cells: np.ndarray
    scaling: Scaling
    n_neighbors: int
    by_distance: bool
    device: str | torch.device
    clusters: Clusters | None = None

    def predict(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        return self._average(cells, np.full(len(cells), -1), everywhere)

    def whole(self) -> np.ndarray:
        return self._of_fit(np.arange(len(self.cells)), everywhere=True)

    def missing(self) -> np.ndarray:
        return self._of_fit(np.arange(len(self.cells)), everywhere=False)

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        some, place = np.unique(rows, return_inverse=True)
        everywhere = not np.isnan(self.cells[rows, cols]).all()
        values: np.ndarray = self._of_fit(some, everywhere)[place, cols]
        return values

    def _of_fit(self, rows: np.ndarray, everywhere: bool) -> np.ndarray:
        cells = self.cells[rows]
        completed = self._average(cells, rows, everywhere)
        return self.statistics.fill(cells, completed).astype(cells.dtype)

    def without(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        # The fitted rows still contain the cells that are hidden here.
        positions = RowIndex(self.cells).find(cells)
        rest = np.where(hidden, np.nan, cells)
        return self.statistics.fill(rest, self._average(rest, positions))

    def _average(
        self, cells: np.ndarray, leave_out: np.ndarray, everywhere: bool = False
    ) -> np.ndarray:
        queries, seen = _tensors(cells, self.scaling, self.device)
        donors, donors_seen = _tensors(self.cells, self.scaling, self.device)
        values: Callable[..., Tensor] = knn_values
        if self.clusters is not None:
            values = self.clusters.to(queries.device).values
        with threads_for(work_of(len(queries) * len(donors), queries.shape[1])):
            answer = values(
                queries,
                seen,
                donors,
                donors_seen,
                self.n_neighbors,
                by_distance=self.by_distance,
                needed=torch.ones_like(seen) if everywhere else ~seen,
                leave_out=torch.from_numpy(leave_out).to(queries.device),
            )
        return self.scaling.undo(answer.cpu()).numpy()

    def donors(
        self,
        row: np.ndarray,  # (1, n_cols)
        j: int,
        everywhere: bool,
    ) -> list[Contribution]:
        """Find the donors of a missing cell."""
        (query,), (seen,) = _tensors(row, self.scaling, self.device)
        donors, donors_seen = _tensors(self.cells, self.scaling, self.device)
        searched = torch.arange(len(donors), device=donors.device)
        if self.clusters is not None:
            clusters = self.clusters.to(donors.device)
            needed = torch.ones_like(seen) if everywhere else ~seen
            parts = query, seen, donors_seen, self.n_neighbors, needed
            searched = clusters.donors_for(*parts)
        found = donors_of_cell(
            query,
            seen,
            donors[searched],
            donors_seen[searched],
            j,
            self.n_neighbors,
            by_distance=self.by_distance,
        )
        rows_of_donors = searched[found[0]].tolist()
        squares, weights = (part.tolist() for part in found[1:])
        mean, n_cols = float(self.statistics.col_means[j]), row.shape[1]
        return [
            Contribution(k, k, w * (cell - mean), cell, w, math.sqrt(n_cols * square))
            for k, w, square in zip(rows_of_donors, weights, squares, strict=True)
            for cell in (float(self.cells[k, j]),)
        ]


def _tensors(
    cells: np.ndarray, scaling: Scaling, device: str | torch.device
) -> tuple[Tensor, Tensor]:
    """Scaled values, zero where missing or constant, and the mask of the others."""
    values = torch.from_numpy(cells.astype(float, order="C"))
    seen = ~values.isnan() & (scaling.scale > 0)
    values = torch.where(seen, scaling.standardise(values), 0.0)
    try:
        on = resolve_device(device)
    except ValueError:  # the fit was loaded on another machine
        on = torch.device("cpu")
    return values.to(on), seen.to(on)


class KNNCompleter(Explains, TakesBounds):
    r"""Average each missing cell over the nearest rows that have its column.

    For tables of many similar rows; not for few rows, and not for rows that have few
    observed columns in common.

    The distance of two rows is computed over the columns that both have observed:

    .. math::

        d(x, y)^2 = \frac{n_{\text{features}}}{n_{\text{common}}} \sum_j (x_j - y_j)^2

    The distances are between scaled cells. With ``scaling=None``, the result is that of
    `sklearn.impute.KNNImputer` if no distances are equal, computed by a few matrix
    products in bounded memory, also on CUDA.

    Parameters
    ----------
    n_neighbors : int >= 1, default=5
        Number of rows averaged, chosen for each cell among those that have the column.
        Rows at the same distance as the last one share its place.
    weights : {"uniform", "distance"}, default="uniform"
        "uniform" weights, or the inverse distance. With "distance", rows at distance
        zero exclude all others.
    recall : float in (0, 1], default=1.0
        Share of the nearest rows that is found. 1 compares each row with all others.
        Below 1, a row is compared only with the rows of the nearest clusters. Their
        number is chosen to find this share for 256 random rows of ``X``. The fewer
        clusters this takes, the more time it saves: much if rows form groups or depend
        on few quantities, little if columns are independent.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
    min_value : float, array-like, dict or None, default=None
        Smallest value of completed cells and of draws: one for all columns, one for
        each, or by name or position. None, NaN and columns that a dict does not list
        have no bound. Try 0 for amounts and counts. Completions are clipped, and draws
        are from the distribution between the bounds.
    max_value : as min_value, default=None
        Largest value, at least ``min_value``.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the neighbors' mean,
        which for rows of the fitted matrix may include the row itself.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        Prediction of each cell from the *other* rows; computed at each access.
    recall_ : float
        Share of the nearest rows that is found, measured on 256 rows of ``X``.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    See Also
    --------
    skmc.AutoCompleter : Compares methods and combines the best ones.
    sklearn.impute.KNNImputer : Without masked arrays and scaling; slower for many rows.

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

    `explain` lists the donors of a cell. The base is the mean :math:`m` of the observed
    cells of the column, and a donor with the value :math:`x_k` and the weight
    :math:`w_k` contributes :math:`w_k (x_k - m)`. Distances are those of the formula
    above, between scaled cells.

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
    accepts = (Observed, ChunkedRows)

    n_neighbors: Count = 5
    _: KW_ONLY
    weights: Literal["distance", "uniform"] = "uniform"
    recall: Annotated[float, Interval(Real, 0, 1, closed="right")] = 1.0
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"

    recall_: float = field(init=False)
    _fitted: Neighbors = field(init=False)
    _kind = "rows"

    def _given(self, X: Container, known: Mapping[str, Any]) -> Given:
        given = super()._given(X, known)
        if given.read is not None:
            return replace(given, row_names=row_names(X))
        n_rows = given.data.shape[0]
        cells = given.data.sample(DONORS, seed=0)
        if n_rows > len(cells):
            warn_user(
                f"KNNCompleter uses {len(cells)} of the {n_rows} rows of X as donors; "
                "to choose other ones, fit to an array of donors."
            )
        return Given.of_matrix(cells)

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        resolve_device(self.device)
        cells, clusters, recall = given.matrix.copy(), None, 1.0
        scaling = given.scaling_of(self.scaling).to("cpu", torch.float64)
        if self.scaling is None:
            # Squares of very large or small numbers overflow or underflow.
            unit = max(map(abs, given.statistics.data_range)) or 1.0
            scaling = replace(scaling, scale=scaling.scale * unit)
        if self.recall < 1 and len(cells) > 1:
            donors = _tensors(cells, scaling, self.device)
            clusters = Clusters.of(*donors, self.n_neighbors, self.recall).to("cpu")
            recall = clusters.recall
        by_distance = self.weights == "distance"
        parts = cells, scaling, self.n_neighbors, by_distance, self.device, clusters
        attributes = {"recall_": recall, "_row_names": given.row_names}
        return Outcome(Neighbors(given.statistics, *parts), attributes)

    def _contributions(
        self, cells: np.ndarray, i: int, j: int
    ) -> tuple[float, list[Contribution]]:
        donors = self._fitted.donors(cells[[i]], j, not self.keep_observed)
        if self.scaling is None:
            # Where it only prevents an overflow.
            unit = float(self._fitted.scaling.scale)
            donors = [d._replace(distance=d.distance * unit) for d in donors]
        return float(self._priors.col_means[j]), by_weight(donors)

    def _values_of_fit(self, given: Given, everywhere: bool) -> np.ndarray:
        return self._model_values(given.matrix, everywhere)

    def _model_values(self, cells: np.ndarray, everywhere: bool = False) -> np.ndarray:
        if len(cells) and getattr(self, "_skl_callbacks", None):
            return self._watched(cells, everywhere)
        return super()._model_values(cells, everywhere)

    @with_callbacks
    def _watched(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        """Complete rows in parts, so that progress can be shown."""
        batches = np.array_split(cells, min(PARTS, -(-len(cells) // ROWS_AT_ONCE)))
        done = []
        with FitTasks(self, cells, None, len(batches), name="transform") as tasks:
            for part in batches:
                done.append(super()._model_values(part, everywhere))
                tasks.done("rows")
        return np.concatenate(done)
