"""Adaptive and implicit regularization (AIR)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import KW_ONLY, field
from functools import cache, partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from skmc import patterns
from skmc.base import (
    Choice,
    CompleterTags,
    IterativeCompleter,
    TakesGraphs,
    Trials,
    laplacian_of,
)
from skmc.cells import Given, Observed
from skmc.completers._laplacians import laplacians, refuse_large_laplacian
from skmc.linalg import Randomness, directions_of, nearest
from skmc.loop import HeldOut
from skmc.models import FactorProduct
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Share
from skmc.solvers import LARGEST_STEP, Descent, Result, Solver
from skmc.solvers.descent import DescentState
from skmc.terms import (
    AdaptiveDirichletEnergy,
    Blocks,
    Columns,
    DirichletEnergy,
    NeighborDirichletEnergy,
    Rows,
    SparseDirichletEnergy,
    SquaredError,
    Term,
    Transform,
)

MAX_WIDTH = 1000  # largest default of width
LAMBDA = 0.25  # weight of the energies, unless implicit regularization is chosen
INIT_SCALE, SMALL = 0.01, 1e-6  # initial entries with energies, and without
BRIEF, HASTE = (
    120,
    1.5,
)  # steps of the trial of energies, which fade further than in all
PATIENCE = 50  # steps without a lower error that end the trial without energies
TRIALS = 100  # stream of the random numbers of trials
CHOSEN = ("lambda_row", "lambda_col", "max_iter")
MANY = 2000  # largest number of items of which "auto" compares all pairs
N_NEIGHBORS = 10  # of neighbors="auto"
RANK = 10  # largest rank of the fill in which the first neighbors are found
FILL_SWEEPS = 10


class _AdaptiveDescent(Descent):
    """Descent that records the energies."""

    def record(self, state: DescentState) -> dict[str, Tensor]:
        energies: list[Any] = list(state.terms)[1:]
        return {f"energy_{e.transform.name}": e(state.X) for e in energies}


class AIRCompleter(TakesGraphs, IterativeCompleter):
    r"""Complete a matrix while learning which rows and columns are similar (AIR).

    For pictures, drug-target matrices, ratings with groups and small tables; not for
    100 000 rows in seconds, and not for counts with few large values. The model is a
    deep matrix factorization with learned similarities:

    .. math::

        \min_{W, A} \tfrac{1}{2} \|P(X - M)\|_F^2
        + \lambda_{\text{row}} \operatorname{tr}(X^\top L_r X)
        + \lambda_{\text{col}} \operatorname{tr}(X L_c X^\top)
        \quad\text{over } X = W_{L-1} \cdots W_0

    All three terms are *sums*, over the observed cells (which :math:`P` selects), over
    all pairs of rows and over all pairs of columns, in units of the scaled data.
    :math:`L = \operatorname{diag}(A 1) - A`, and the adjacency matrix :math:`A` is a
    softmax of free parameters, see `skmc.terms.AdaptiveDirichletEnergy`. The model
    learns which rows are similar while it completes. The energy fades because only
    truly similar rows keep their weight. Adam takes ``max_iter`` steps. The learning
    rate of the factors follows a cosine to zero; that of the Laplacians is constant.

    Energies help where rows or columns resemble each other: in pictures, ratings,
    drug-target matrices and tables. Matrices of low rank need none, and there they
    leave large errors. By default, both are tried on held-out observed cells.

    Parameters
    ----------
    lambda_row, lambda_col : float >= 0 or "auto", default="auto"
        Weights of the energies of rows and of columns; 0 drops the term. Values to try:
        .025, .08, .25, .8, 2.5 (relative to data of variance 1). The paper's
        weight is ``(max - min) / (mn)`` for ``adjacency="global"`` and its own units.
        "auto" for both tries .25 and 0 on a held-out tenth of the observed cells, see
        Notes. It is .25 if the other weight or ``lr`` is a number, if `fit` gets a
        graph, and with ``blocks`` or ``fixed_laplacians``.
    blocks : dict of {int: float} or None, default=None
        Further energies between disjoint blocks, as a dict from block size to weight
        >= 0, on the scale of ``lambda_row``. Blocks of ``b x b`` are compared as
        vectors; cells outside of whole blocks are ignored.
    adjacency : {"row", "global"}, default="row"
        Softmin over each row, symmetrized (the authors' code), or softmax over all
        cells (the paper).
    laplacian_every : int >= 1, default=5
        Steps of the factors per step of the Laplacians. The steps of the Laplacians are
        longer in proportion. Larger values take less time, and complete pictures and
        ratings better, tables slightly worse. Try 1, the papers' value, or 5.
    depth : int >= 1, default=2
        Number of factors :math:`L`; the paper uses 3.
    width : int >= 1 or None, default=None
        Inner dimension of the factors. None is ``min(n_samples, n_features, 1000)``,
        which does not bound the rank of a matrix with a side of up to 1000.
    lr : float > 0 or "auto", default="auto"
        Learning rate of Adam for factors and Laplacians. Together with
        ``max_iter`` it limits how far the Laplacians can move. "auto" is ``0.6 /
        sqrt(width)``: the entries of a product of factors move ``sqrt(width)`` times
        as fast as those of the factors.
    init_scale : float > 0 or "auto", default="auto"
        Standard deviation of the factors' initial entries, whose mean is zero. "auto"
        is .01 with energies, and 1e-6 without, or as much as ``max_iter`` needs. The
        Laplacians' parameters start uniform in ``+-1 / sqrt(k)`` for ``k`` items.
    neighbors : int >= 1, "auto" or None, default="auto"
        Number of neighbors of each item for which similarities are learned; None
        compares all pairs. "auto" is 10 for more than 2000 items (rows,
        columns or blocks), None for fewer. The first neighbors are the
        nearest in a low-rank fill of the matrix. After a quarter and after half of
        ``max_iter`` they are recomputed from the completion, and their similarities
        start equal.
    fixed_laplacians : dict of {str: array or sparse matrix} or None, default=None
        Fixed Laplacians by the names in ``laplacians_``, for example those of another
        fit; they are not learned. Graphs of rows and columns are arguments of `fit`. A
        sparse Laplacian must be diagonally dominant, like the Laplacians of graphs.
    max_iter : int >= 1, default=400
        Number of steps of Adam.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-6
        Stop when ``|dF/dW| |W| / (|X| |P(M)|)`` is at most ``tol``, for the objective
        ``F`` and all factors ``W``.
    early_stopping : bool, default=False
        Whether to hold out ``validation_fraction`` of the observed cells, keep the
        iterate that completes them best, and stop after ``n_iter_no_change`` iterations
        without a better one. Each row and column keeps a cell to train on.
    validation_fraction : float in (0, 1), default=0.1
        Share of the observed cells that ``early_stopping`` holds out.
    n_iter_no_change : int >= 1, default=100
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
        Seed of the initial parameters and the held-out cells.
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
    lambda_row_, lambda_col_ : float
        Weights that were used.
    max_iter_ : int
        Number of steps, which the choice of implicit regularization limits.
    laplacians_ : dict of ndarray or SciPy sparse array
        "rows" (n_samples, n_samples), "columns" (n_features, n_features), "blocks8"...
        Sparse if only neighbors are compared.
    history_ : dict of ndarray
        "n_iter", "objective", "residual", "energy_rows", "energy_columns" and those of
        blocks, times their weights (and "validation", the root mean square over
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

    Raises
    ------
    MemoryError
        ``neighbors`` is None, or there are fewer than 2000 items, and memory is too
        small: a Laplacian of ``k`` items takes eight times ``k**2`` numbers.

    See Also
    --------
    DMFCompleter : The same factors with fixed graphs, total variation or no
        regularizer.
    SNNCompleter : Low rank by activations of singular values; nothing to tune.
    NonlocalCompleter : More accurate for most pictures.

    Notes
    -----
    Memory grows with ``(n_samples + n_features) width`` for the factors,
    ``n_samples n_features`` for the completion, and ``n_samples neighbors`` for the
    learned similarities of rows, a dozen numbers each; likewise for columns. The time
    of an iteration grows with ``n_samples n_features (width + neighbors)``. Both are
    linear in the number of rows.

    With both weights zero, regularization is implicit: from a small start, all entries
    of a factor move at a rate in proportion to their gradient, so that singular values
    grow one after the other (`DMFCompleter`). If the scaling subtracts the means of
    columns, the means of the completion are free. "auto" compares on held-out cells a
    fit with energies that fade in at most 120 steps, and one without energies, which
    ends 50 steps after its lowest error. If the second is better by more than one
    standard error than the first and than a fit with energies in ``max_iter`` steps, it
    is chosen, with its number of steps; also if energies are not better than the column
    means. This takes about .6 of the time of a fit with energies, up to twice that time
    where implicit regularization is chosen. ``early_stopping`` holds out further cells
    and sets the number of steps itself. With ``warm_start``, the first fit chooses.
    Fits whose weights are both "auto" do not share a batch; those whose weights are
    numbers do.

    This implementation differs from the paper in the defaults of ``lambda_row``,
    ``lambda_col``, ``depth``, ``lr``, ``init_scale`` and ``max_iter``, which were
    chosen on a dozen pictures, ratings and tables, and in the similarities of
    ``neighbors`` for matrices with many rows.

    References
    ----------
    Li, Sun, Wang, Wang. Adaptive and implicit regularization for matrix completion.
    SIAM J. Imaging Sci. 15 (2022).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import AIRCompleter, patterns
    >>> from skmc.metrics import nmae
    >>> truth = np.cos(np.add.outer(np.arange(30), np.arange(30)) / 10)
    >>> hidden = patterns.random(truth, 0.3, random_state=0)
    >>> X = np.ma.masked_array(truth, hidden)
    >>> completer = AIRCompleter(random_state=0)
    >>> nmae(completer.fit_transform(X), truth, hidden) < 0.03
    True
    >>> completer.lambda_row_  # the matrix has rank two
    0.0
    >>> AIRCompleter(0.25, 0.25, random_state=0).fit(X).laplacians_["rows"].shape
    (30, 30)
    """

    completer_tags = CompleterTags(
        recovers=0.001, batched=("lambda_row", "lambda_col", "random_state")
    )
    chosen = ("lambda_row", "lambda_col")
    step_parameter = "lr"
    may_underfit = True
    warn_at_max_iter = False  # the learning rate's schedule ends there

    lambda_row: NonNegative | Literal["auto"] = "auto"
    lambda_col: NonNegative | Literal["auto"] = "auto"
    _: KW_ONLY
    blocks: Mapping[Any, Any] | None = None
    adjacency: Literal["global", "row"] = "row"
    laplacian_every: Count = 5
    depth: Count = 2
    width: Count | None = None
    lr: Positive | Literal["auto"] = "auto"
    init_scale: Positive | Literal["auto"] = "auto"
    neighbors: Count | Literal["auto"] | None = "auto"
    fixed_laplacians: Mapping[Any, Any] | None = None
    max_iter: Count = 400
    max_time: Positive | None = None
    tol: NonNegative = 1e-6
    early_stopping: bool = False
    validation_fraction: Share = 0.1
    n_iter_no_change: Count = 100
    warm_start: bool = False
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    lambda_row_: float = field(init=False)
    lambda_col_: float = field(init=False)
    max_iter_: int = field(init=False)
    laplacians_: dict[str, Any] = field(init=False)

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        blocks = _checked_blocks(params.blocks, data) if params.blocks else []
        weighted: list[tuple[Transform, float | Tensor]] = [
            (Rows(), params.lambda_row),
            (Columns(), params.lambda_col),
            *((Blocks(size), weight) for size, weight in blocks),
        ]
        fixed = self._fixed(params.known)
        unknown = set(fixed) - {transform.name for transform, _ in weighted}
        if unknown:
            raise ValueError(
                f"fixed_laplacians names {sorted(unknown)}, but the transforms are "
                f"{[transform.name for transform, _ in weighted]}."
            )
        fill = cache(partial(_first_fill, data))
        terms: list[Term] = [SquaredError(data)]
        for number, (transform, weight) in enumerate(weighted, start=1):
            if torch.as_tensor(weight).any():
                L, stream = fixed.get(transform.name), rng.stream(number)
                if L is None:
                    term = _learned_energy(
                        params, data, transform, weight, stream, fill
                    )
                else:
                    term = _fixed_energy(L, data, transform, weight)
                terms.append(term)
        width = params.width or min(*data.shape, MAX_WIDTH)
        lr = 0.6 / width**0.5 if params.lr == "auto" else params.lr
        implicit = len(terms) == 1
        std = params.init_scale
        if std == "auto":
            std = _small_enough(self.max_iter) if implicit else INIT_SCALE
        return _AdaptiveDescent(
            FactorProduct.random(data.shape, params.depth, width, std, rng),
            terms,
            lr=lr,
            horizon=self.max_iter,
            flow=implicit,
            free_means=implicit and data.free_means,
        )

    def _for_trials(self, data: Observed) -> Observed:
        return data.first_rows(MANY)

    def _drawn(self, cells: np.ndarray, share: float, seed: int) -> np.ndarray:
        # Equal rows of a picture are no copies.
        return patterns.random(cells, share, spare=True, random_state=seed)

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        """Compare energies and implicit regularization alone on held-out cells.

        Energies must fade while the factors grow. If they fade within fewer steps, the
        result is nearly as good, so that their trial is a brief one. Only if this loses
        do they get a whole one. By the rule of one standard error, they must have a
        lower error than the column means, and lose if that of implicit regularization
        is lower than theirs.
        """
        if self.warm_start and hasattr(self, "_fitted"):
            return Choice({name: getattr(self, f"{name}_") for name in CHOSEN})
        chosen = {name: getattr(self, name) for name in CHOSEN}
        energies = {
            k: LAMBDA if value == "auto" else value for k, value in chosen.items()
        }
        if trials.known or not self._searched() or trials.cells[1] is None:
            return Choice(energies)
        train, held_out = trials.cells
        rng = trials.rng.stream(TRIALS)

        def trial(weights: dict[str, Any], haste: float = 1.0, **params: Any) -> Any:
            solver: Any = self._make_solver(train, self._params(weights), rng)
            solver.haste, solver.horizon = haste, weights["max_iter"]
            solution = trials.run(solver, max_iter=weights["max_iter"], **params)
            return solution, held_out.residual(solution.X).square()[held_out.mask]

        brief = {**energies, "max_iter": min(BRIEF, self.max_iter)}
        implicit = {**chosen, "lambda_row": 0.0, "lambda_col": 0.0}
        with trials.interruptible():
            _, errors = trial(brief, HASTE * self.max_iter / brief["max_iter"])
            solution, alone = trial(implicit, stop=[HeldOut(held_out, PATIENCE)])
            of_means = held_out.values[held_out.mask].square()
            if _clear(errors - alone):
                _, errors = trial({**energies, "max_iter": self.max_iter})
            useless = errors.isfinite().all() and not _clear(of_means - errors)
            if _clear(errors - alone) or useless:
                best = solution.history["validation"].argmin()
                if not self.early_stopping:
                    implicit["max_iter"] = int(solution.history["n_iter"][best])
                return Choice(implicit)
        return Choice(energies)

    def _searched(self) -> list[str]:
        names = super()._searched()
        set_by_user = self.blocks or self.fixed_laplacians or self.lr != "auto"
        return names if len(names) == len(self.chosen) and not set_by_user else []

    def batch_key(self) -> Hashable:
        weights = [self.lambda_row, self.lambda_col, *(self.blocks or {}).values()]
        return super().batch_key(), any(weights)

    def _fixed(self, graphs: Mapping[str, Any]) -> dict[str, Any]:
        """Fixed Laplacians, by the names of their transforms."""
        fixed = dict(self.fixed_laplacians or {})
        for name, key in (("rows", "row_graph"), ("columns", "col_graph")):
            if key not in graphs:
                continue
            if name in fixed:
                raise ValueError(
                    f"{key} and fixed_laplacians[{name!r}] are two Laplacians of the "
                    f"{name}; give one of them."
                )
            fixed[name] = laplacian_of(graphs[key])
        return fixed

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        learned = laplacians(result, self.lambda_row, self.lambda_col)
        weights = {"rows": self.lambda_row, "columns": self.lambda_col}
        for name, L in self._fixed(given.known).items():
            if sp.issparse(L) and weights.get(name, 1):
                learned[name] = L
        return {**super()._attributes(given, result), "laplacians_": learned}


def _clear(gain: Tensor) -> bool:
    """Whether the mean is above its standard error."""
    return bool(gain.mean() > gain.std(correction=0) / len(gain) ** 0.5)


def _small_enough(max_iter: int) -> float:
    """Initial entries that factors can outgrow in the given number of steps."""
    return max(SMALL, 0.06 * (1 + LARGEST_STEP) ** (-max_iter / 6))


def _checked_blocks(
    blocks: Mapping[int, float], data: Observed
) -> list[tuple[int, float]]:
    """Validated sizes and weights of the parameter ``blocks``."""
    for size, weight in blocks.items():
        is_size = isinstance(size, Integral) and 1 <= int(size) <= min(data.shape)
        if not (is_size and isinstance(weight, Real) and 0 <= float(weight) < np.inf):
            raise ValueError(
                "blocks maps sizes in [1, min(n_samples, n_features)="
                f"{min(data.shape)}] to weights >= 0, got {size!r}: {weight!r}."
            )
    return list(blocks.items())


def _learned_energy(
    params: Params,
    data: Observed,
    transform: Transform,
    weight: float | Tensor,
    rng: Randomness,
    fill: Callable[[], Tensor],
) -> Term:
    """The energy of items with a learned Laplacian.

    A warm start resumes the graph of the last fit. Without one, the first neighbors
    are the nearest in ``fill()``.
    """
    k = transform.n_items(*data.shape)
    shared = transform, weight, params.adjacency, params.laplacian_every
    n_neighbors = _n_neighbors(params.neighbors, k)
    if n_neighbors is None:
        refuse_large_laplacian(
            data,
            transform,
            "set neighbors='auto', or its weight (lambda_row, lambda_col or blocks) "
            "to 0",
        )
        return AdaptiveDirichletEnergy(rng.uniform(k, k, k**-0.5), *shared)
    n_edges = n_neighbors + 1
    W = rng.uniform(k, n_edges, n_edges**-0.5)
    last = params.last.warm.edges if params.last else {}
    if transform.name in last:
        resumed = last[transform.name].to(data.values.device)
        return NeighborDirichletEnergy(W, resumed, *shared)
    items = transform(fill())
    n_directions = directions_of(k, n_neighbors)
    directions = rng.normal(n_directions, items.shape[-1], 1.0).to(items.device)
    edges = nearest(items, n_neighbors, directions)
    refresh = params.max_iter // 4, params.max_iter // 2
    return NeighborDirichletEnergy(W, edges, *shared, directions, refresh)


def _fixed_energy(
    L: Any,
    data: Observed,
    transform: Transform,
    weight: float | Tensor,
) -> Term:
    """The energy of items with a given Laplacian."""
    k, sparse = transform.n_items(*data.shape), sp.issparse(L)
    L = sp.csr_array(L, dtype=float) if sparse else np.asarray(L, dtype=float)
    valid = L.shape == (k, k)
    if valid and sparse:
        # It must be symmetric and diagonally dominant, like all graph Laplacians.
        most = abs(L).max()
        outside = abs(L).sum(1) - 2 * L.diagonal()
        valid = abs(L - L.T).max() <= 1e-6 and outside.max() <= 1e-5 * most
    elif valid:
        valid = np.allclose(L, L.T, atol=1e-6)
        valid = valid and np.linalg.eigvalsh(L)[0] >= -1e-5 * np.abs(L).max()
    if not valid:
        kind = "diagonally dominant" if sparse else "positive semi-definite"
        raise ValueError(
            f"fixed_laplacians[{transform.name!r}] must be symmetric {kind} of shape "
            f"{(k, k)}, got shape {L.shape}."
        )
    values = data.values
    if not sparse:
        return DirichletEnergy(torch.as_tensor(L).to(values), transform, weight)
    starts, cols = (
        torch.as_tensor(part, dtype=torch.int64).to(values.device)
        for part in (L.indptr, L.indices)
    )
    cells = torch.as_tensor(L.data).to(values)
    return SparseDirichletEnergy(starts, cols, cells, transform, weight)


def _n_neighbors(neighbors: int | Literal["auto"] | None, n_items: int) -> int | None:
    """Number of neighbors of each item; None if all pairs are compared."""
    if neighbors == "auto":
        neighbors = N_NEIGHBORS if n_items > MANY else None
    return None if neighbors is None or neighbors >= n_items - 1 else int(neighbors)


def _first_fill(data: Observed) -> Tensor:
    """Matrix in which the first neighbors are found."""
    rank = min(RANK, min(data.shape) // 2)
    return fill_low_rank(data.values, data.mask, rank) if rank else data.values


def fill_low_rank(
    values: Tensor,  # (*batch, m, n)
    mask: Tensor,  # (*batch, m, n)
    rank: int,
) -> Tensor:  # (*batch, m, n)
    r"""Fill missing cells by ``rank`` principal components in ten sweeps.

    A sweep replaces the missing cells by the projection of the matrix on its first
    right singular vectors, each component multiplied by ``1 - noise / s^2`` (Josse and
    Husson 2016, regularized iterative PCA): ``s`` is its singular value, and ``noise``
    the mean of the other squared singular values. Missing cells start at zero. The cost
    of a sweep is that of a Gram matrix of the shorter side.
    """
    if values.shape[-2] < values.shape[-1]:
        return fill_low_rank(values.mT, mask.mT, rank).mT
    X = values
    for _ in range(FILL_SWEEPS):
        squares, V = torch.linalg.eigh(X.mT @ X)
        noise = squares[..., :-rank].mean(-1, keepdim=True)
        top, V = squares[..., -rank:], V[..., -rank:]
        kept = (1 - noise / top.clamp_min(torch.finfo(X.dtype).tiny)).clamp_min(0.0)
        X = torch.where(mask, values, X @ (V * kept[..., None, :]) @ V.mT)
    return X
