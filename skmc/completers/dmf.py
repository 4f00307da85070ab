"""Deep matrix factorization, plain or with a fixed regularizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from typing import Any, Literal

import torch
from torch import Tensor

from skmc.base import CompleterTags, IterativeCompleter, TakesGraphs, laplacian_of
from skmc.cells import Container, Given, Observed
from skmc.completers._laplacians import laplacians, refuse_large_laplacian
from skmc.linalg import Randomness, squared_distances
from skmc.models import FactorProduct
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Share
from skmc.solvers import Descent, Result, Solver
from skmc.terms import (
    Columns,
    DirichletEnergy,
    Rows,
    SquaredError,
    Term,
    TotalVariation,
    graph_laplacian,
)


class DMFCompleter(TakesGraphs, IterativeCompleter):
    r"""Fit a product of several matrices (DMF), also with total variation or graphs.

    For matrices of low rank, pictures (``"tv"``) and known graphs (``"dirichlet"``);
    not for noisy cells without ``early_stopping``, and not for large holes.

    .. math::

        \min_W \tfrac{1}{2} \|P(X - M)\|_F^2 + R(X)
        \quad\text{over } X = W_{L-1} \cdots W_0

    The first term is half a *sum* over the observed cells of the scaled data, which
    :math:`P` selects. Low rank is implicit: it results from small random factors,
    gradient descent and early stopping. If the scaling subtracts the means of columns,
    ``X`` is the product plus the means of its residuals, which are free.

    Parameters
    ----------
    regularizer : {"tv", "dirichlet"} or None, default=None
        Regularizer :math:`R`, a *sum* over neighboring cells or over edges:

        - None: zero (DMF).
        - "tv" (RDMF): ``lambda_row sum |X[i+1,j] - X[i,j]| + lambda_col
          sum |X[i,j+1] - X[i,j]|``. The paper leaves exponent and weights open.
        - "dirichlet" (DMF+DE): ``lambda_row tr(X' L_r X) + lambda_col tr(X L_c X')``
          with the Laplacians of graphs. `fit` takes them; without one, the
          ``n_neighbors`` nearest rows (columns) by `KNNCompleter`'s distance of the
          scaled data are connected. Graphs are divided by their mean degree, so that
          the weights mean the same for all graphs.
    lambda_row, lambda_col : float >= 0, default=0.1
        Weights of the regularizer between rows and between columns. Values to try: .01,
        .03, .1, .3, 1 (relative to data of variance 1, and to a mean degree of 1).
    n_neighbors : int >= 1, default=10
        Number of neighbors in graphs that are not given.
    depth : int >= 1, default=3
        Number of factors :math:`L`.
    width : int >= 1 or None, default=None
        Inner dimension of the factors. None is ``min(n_samples, n_features)``.
    lr : float > 0, default=0.003
        Learning rate of Adam, decayed to zero by a cosine over ``max_iter`` steps.
    init_scale : float > 0, default=0.01
        Standard deviation of the factors' initial entries, whose mean is zero.
    max_iter : int >= 1, default=2000
        Number of steps of Adam.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-6
        Stop when ``|dF/dW| |W| / (|X| |P(M)|)`` is at most ``tol``, for the objective
        ``F`` and all factors ``W``.
    early_stopping : bool, default=True
        Whether to hold out ``validation_fraction`` of the observed cells, keep the
        iterate that completes them best, and stop after ``n_iter_no_change`` iterations
        without a better one. Each row and column keeps a cell to train on.
        Without it the factorization eventually fits noise.
    validation_fraction : float in (0, 1), default=0.05
        Share of the observed cells that ``early_stopping`` holds out.
    n_iter_no_change : int >= 1, default=250
        Iterations without a better iterate after which ``early_stopping`` stops. The
        held-out error is computed every 25 iterations.
    warm_start : bool, default=False
        Whether to start from the solution of the last `fit`, whose matrix must have had
        the same shape.
        The last fit must also have had ``warm_start=True``. Learning rates restart.
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
    random_state : int, RandomState instance or None, default=None
        Seed of the initial factors and the held-out cells.
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
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.
    laplacians_ : dict of ndarray
        With "dirichlet", the Laplacians that were used: "rows" (n_samples, n_samples),
        "columns" (n_features, n_features). Otherwise empty.
    history_ : dict of ndarray
        "n_iter", "objective", "residual" (and "validation", the root mean square over
        held-out cells of the scaled data) at every 25th iteration.
    n_iter_ : int
        Number of iterations.
    status_ : str
        Reason why the fit ended: "converged", "stopped", "max_iter", "max_time",
        "diverged" or "interrupted".
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    See Also
    --------
    AIRCompleter : Learns the graphs.
    SNNCompleter : Activations act on singular values.

    Notes
    -----
    Memory grows with ``n_samples n_features`` and ``(n_samples + n_features) width``.
    "dirichlet" has a Laplacian of all pairs of rows, and of columns: ``n_samples**2``
    and ``n_features**2`` numbers. `fit` raises a `MemoryError` at once if they do
    not fit.

    References
    ----------
    Arora, Cohen, Hu, Luo. Implicit regularization in deep matrix factorization.
    NeurIPS 2019. -- Li, Xu, Luo, Wang. A regularised deep matrix factorised model of
    matrix completion for image restoration. 2020. -- Boyarski, Vedula, Bronstein.
    Spectral geometric matrix completion. 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import DMFCompleter
    >>> X = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    >>> X[11, 9] = np.nan
    >>> DMFCompleter(scaling=None, random_state=0).fit_transform(X)[11, 9].round()
    np.float64(120.0)
    """

    completer_tags = CompleterTags(
        recovers=0.01, batched=("lambda_row", "lambda_col", "random_state")
    )
    step_parameter = "lr"
    may_underfit = True
    warn_at_max_iter = False  # the learning rate's schedule ends there

    regularizer: Literal["dirichlet", "tv"] | None = None
    lambda_row: NonNegative = 0.1
    lambda_col: NonNegative = 0.1
    _: KW_ONLY
    n_neighbors: Count = 10
    depth: Count = 3
    width: Count | None = None
    lr: Positive = 0.003
    init_scale: Positive = 0.01
    max_iter: Count = 2000
    max_time: Positive | None = None
    tol: NonNegative = 1e-6
    early_stopping: bool = True
    validation_fraction: Share = 0.05
    n_iter_no_change: Count = 250
    warm_start: bool = False
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    laplacians_: dict[str, Any] = field(init=False)

    def _given(self, X: Container, known: Mapping[str, Any]) -> Given:
        graphs = [name for name in known if name.endswith("graph")]
        if graphs and self.regularizer != "dirichlet":
            raise ValueError(
                f"{graphs[0]} has no effect with regularizer={self.regularizer!r}; set "
                "regularizer='dirichlet', or leave it out."
            )
        return super()._given(X, known)

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        terms: list[Term] = [SquaredError(data)]
        if params.regularizer == "tv":
            terms.append(TotalVariation(params.lambda_row, params.lambda_col))
        elif params.regularizer == "dirichlet":
            for name, transform, weight in (
                ("row_graph", Rows(), params.lambda_row),
                ("col_graph", Columns(), params.lambda_col),
            ):
                if isinstance(weight, torch.Tensor) or weight > 0:
                    refuse_large_laplacian(
                        data,
                        transform,
                        "use AIRCompleter, which compares neighbors, or set its weight "
                        "(lambda_row or lambda_col) to 0",
                    )
                    items, seen = transform(data.values), transform(data.mask)
                    if name in params.known:
                        dense = laplacian_of(params.known[name]).toarray()
                        L = torch.as_tensor(dense).to(data.values)
                    else:
                        L = _nearest_laplacian(items, seen, params.n_neighbors)
                    terms.append(DirichletEnergy(L, transform, weight))
        width = params.width or min(data.shape)
        model = FactorProduct.random(
            data.shape, params.depth, width, params.init_scale, rng
        )
        return Descent(
            model,
            terms,
            lr=params.lr,
            horizon=params.max_iter,
            free_means=data.free_means,
        )

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        chosen = laplacians(result, self.lambda_row, self.lambda_col)
        return {**super()._attributes(given, result), "laplacians_": chosen}


def _nearest_laplacian(values: Tensor, mask: Tensor, n_neighbors: int) -> Tensor:
    """The Laplacian of the graph of nearest rows, scaled to a mean degree of 1."""
    k = values.shape[-2]
    A = _knn_graph(values, mask, n_neighbors)
    degree = A.sum((-2, -1), keepdim=True) / k
    return graph_laplacian(A / torch.where(degree > 0, degree, 1.0))


def _knn_graph(values: Tensor, seen: Tensor, n_neighbors: int) -> Tensor:
    """Symmetric 0/1 adjacency of each row and its nearest neighbors."""
    distances = squared_distances(values, seen, values, seen)
    n_rows = values.shape[-2]
    diagonal = torch.eye(n_rows, dtype=torch.bool, device=values.device)
    distances.masked_fill_(diagonal, torch.inf)
    k = min(n_neighbors, n_rows - 1)
    near, index = distances.topk(k, largest=False)
    A = torch.zeros_like(distances)
    A.scatter_(-1, index, torch.isfinite(near).to(A.dtype))
    return torch.maximum(A, A.mT)
