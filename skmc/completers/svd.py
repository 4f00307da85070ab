"""Low-rank completion by an iterated truncated SVD."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from skmc.base import (
    Choice,
    CompleterTags,
    Completion,
    Fitted,
    IterativeCompleter,
    MoreCells,
    PartialFit,
    RowsOnly,
    ScaledRows,
    TakesWeights,
    Trials,
)
from skmc.blocks import ChunkedRows
from skmc.cells import Cells, Given, Observed, SparseObserved
from skmc.completers._rank import (
    RANKS,
    WITH_MEAN,
    choose_rank,
    held_out_by_content,
    noise_of,
)
from skmc.linalg import (
    SVD,
    LowRank,
    Randomness,
    RowModel,
    normal_equations,
    partial_svd,
    threads_for,
    work_of,
)
from skmc.loop import Solution, Status
from skmc.new_rows import FoldIn, RowIndex, RowStream
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import HardRank, Result, Solver, State
from skmc.solvers.alternating import EXACT

RIDGE = 1e-4  # for rows and columns with fewer cells than the rank


class SVDCompleter(TakesWeights, PartialFit, IterativeCompleter):
    r"""Refill the missing cells from a truncated SVD until they no longer change.

    For a quick low-rank baseline, and noisy matrices of low rank; not for large holes.

    .. math::

        \min_X \tfrac{1}{2} \|P(X - M)\|_F^2
        \quad\text{subject to } \operatorname{rank}(X) \le r

    This is half a *sum* over the observed cells of the scaled data, which :math:`P`
    selects; :math:`r` is ``rank``. Each iteration refills the missing cells from the
    truncated SVD.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or "auto", default="auto"
        Largest rank :math:`r`, without the means of the columns if these are
        standardized. "auto" chooses from 0 (the means alone) to 100 on a held-out tenth
        of the observed cells; it stops after four ranks without a lower error.
    max_iter : int >= 1, default=2000
        Maximum number of iterations, each of which updates rows and columns in turn.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=0.01
        Stop when the gradient along the matrices of this rank is at most ``tol`` times
        the misfit at the observed cells, both as Frobenius norms, and then an exact fit
        ends at 1e-5 of the cells: a misfit below .001 of them counts as this.
    warm_start : bool, default=False
        Whether to start from the solution of the last `fit`, whose matrix must have had
        the same shape.
        ``rank="auto"`` is chosen again.
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
        Seed of the held-out cells of ``rank="auto"``. With a given rank, nothing is
        random.
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
    rank_ : int
        The rank that was used.
    max_iter_ : int
        Largest number of iterations: that of the best trial, if more of them were not
        better on held-out cells, else ``max_iter``.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every 25th iteration.
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
    SoftImputeCompleter : Shrinks singular values instead of truncating them.
    FactorizationCompleter : Large and sparse matrices.

    Notes
    -----
    Memory grows with ``n_samples n_features``, and with the square of the smaller of
    both where the decomposition is that of a Gram matrix.

    With ``rank="auto"``, the missing cells of a row are their posterior means given
    its other cells: its scores are normal with the covariance of all rows, and the
    noise is the one under which the held-out cells are most likely. So rows with few
    cells are not far away. If there are fewer rows than columns, this holds for
    columns. New rows are completed in the same way.

    `fit` also takes Dask Arrays and DataFrames, whose chunks are rows. The objective is
    the same. Each iteration is one pass over the chunks, whose sums of :math:`u u^T`
    and :math:`u x` for each column are added. The chunks are computed once per
    iteration: persist them if they fit in the memory of the cluster.
    ``rank="auto"`` uses the first 1000 rows. There is no ``reconstruction_``;
    `transform` the collection instead, which completes each row by itself.

    `partial_fit` solves the least-squares problem of each row of ``X``, given the
    columns' factors, and then that of each column in which ``X`` has cells, given the
    factors of all rows so far. Its sufficient statistics are the sums of :math:`u u^T`
    and :math:`u x` over the cells of the column, so earlier rows are not visited. Both
    steps minimize the objective of all cells exactly, with a ridge of 1e-4 as rows may
    have fewer cells than the rank; the scaling is that of the last fit. The result is
    approximate because other rows keep their factors, and the rank does not change,
    until the cells are twice those of the last fit. Repeated blocks of `Entries`
    approach a fit to all cells. ``reconstruction_`` is
    recomputed, which costs ``n_samples n_features rank``.

    References
    ----------
    Troyanskaya et al. Missing value estimation methods for DNA microarrays.
    Bioinformatics 17 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import SVDCompleter
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0])
    >>> X[1, 2] = np.nan
    >>> SVDCompleter(rank=1, scaling=None).fit_transform(X)[1].round(1)
    array([2., 4., 8.])
    """

    completer_tags = CompleterTags(recovers=0.01, monotone=True, equivariant=True)
    accepts = (Observed, ChunkedRows)

    rank: Count | Literal["auto"] = "auto"
    _: KW_ONLY
    max_iter: Count = 2000
    max_time: Positive | None = None
    tol: NonNegative = 0.01
    warm_start: bool = False
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    rank_: int = field(init=False)
    max_iter_: int = field(init=False)

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        ranks = WITH_MEAN if isinstance(data, Observed) else RANKS
        choice = choose_rank(self.rank, data, trials, ranks=ranks, patience=5)
        n_iter, best = self.max_iter, trials.solution
        if best is not None and best.status[0] is Status.MAX_ITER:
            with trials.interruptible():
                solver = HardRank(choice.params["rank"])
                fit = trials.run(solver, max_iter=self.max_iter)
                if trials.error(fit) >= trials.lowest:
                    n_iter = min(n_iter, int(best.n_iter))
                elif choice.noise is not None:
                    choice = replace(choice, noise=noise_of(fit.X, trials))
        return replace(choice, params={**choice.params, "max_iter": n_iter})

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        chosen = int(solution.n_iter) < self.max_iter
        reached = solution.status[0] is Status.MAX_ITER
        if chosen and reached:
            return None
        advice = super()._advice(solution, misfit)
        if advice and reached and self.rank != "auto":
            advice += (
                " A rank above that of the matrix converges slowly; try rank='auto'."
            )
        return advice

    def _drawn_distinct(self, cells: np.ndarray, share: float, seed: int) -> np.ndarray:
        return held_out_by_content(cells, share, seed)

    def _make_solver(self, data: Cells, params: Params, rng: Randomness) -> Solver:
        if isinstance(data, ChunkedRows):
            first_rows = data.first_rows().values
            return ChunkedSVD(partial_svd(first_rows, params.rank).V)
        if params.last is None:
            return HardRank(params.rank)
        start = torch.from_numpy(params.last.whole())
        start = params.last.row_map.scaling.standardise(start)
        return HardRank(params.rank, start.to(data.device, data.dtype))

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        if given.read is not None:
            return super()._attributes(given, result)
        statistics = given.statistics
        folded = _folded(given.data.first_rows(), result)
        row_map = ScaledRows(given.scaling, statistics.varies, folded)
        return {"_fitted": RowsOnly(statistics, row_map)}

    def _all_cells(self, more: MoreCells) -> Given:
        fitted: Any = self._fitted
        fitted.whole()  # raises an error if the cells were not in memory
        one_unit = fitted.statistics.one_unit
        return Given.of_matrix(more.into(fitted.index.cells), one_unit=one_unit)

    def _fit_more(self, more: MoreCells) -> tuple[Fitted, dict[str, Any]]:
        fitted: Any = self._fitted
        given, old = self._all_cells(more), fitted.index.cells
        cells, statistics = given.matrix, given.statistics
        later = given.scaling_of(self.scaling, centre=self.centre)
        scaling = fitted.row_map.scaling.kept(later.to(torch.float64))
        touched = np.unique(more.rows)
        before = np.full((len(touched), cells.shape[1]), np.nan, cells.dtype)
        in_fit = touched < len(old)
        before[in_fit, : old.shape[1]] = old[touched[in_fit]]
        with threads_for(work_of(cells.size, self.rank_)):
            stream = _stream(fitted, self.rank_)
            stream = stream.extended(len(cells), cells.shape[1], False)
            zero = stream.cols.new_zeros
            ridge = RIDGE * torch.eye(stream.cols.shape[1] - 1, dtype=torch.float64)
            stream = stream.replaced(
                torch.from_numpy(touched),
                _sparse(before),
                _sparse(cells[touched]),
                scaling.to(torch.float64),
                RowModel(zero(0, 0), zero(0), ridge, zero(len(ridge))),
                row_biases=False,
                col_biases=scaling.shift.shape[-1] > 1,  # free means
            )
            completion = stream.rows @ stream.cols.mT
            unscaled = scaling.to(torch.float64).undo(completion).numpy()
            folded = FoldIn.later(completion, given.data.scaled(scaling))
        answers = StreamedCompletion(
            statistics,
            statistics.fill(cells, unscaled).astype(cells.dtype),
            RowIndex(cells),
            ScaledRows(scaling.to(torch.float64), statistics.varies, folded),
            stream=stream,
        )
        return answers, {}


@dataclass(eq=False, kw_only=True)
class StreamedCompletion(Completion):
    """A completion that goes on with the sums of its rows."""

    stream: RowStream


@dataclass(frozen=True, kw_only=True)
class ChunkedSVDState(State):
    """An iterate of `ChunkedSVD`.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    X : LowRank
        Zero, because the completion is not formed.
    V : Tensor of shape (n, rank)
        Factors of the columns, orthogonal.
    means : Tensor of shape (n, 1) or (n, 0)
        Free means of the columns.
    gram : Tensor of shape (n, k, k)
        Sum of ``u u'`` over the cells of each column, where ``u`` ends with a one if
        there are means.
    right : Tensor of shape (n, k)
        Sum of ``u x`` over the cells of each column.
    scores : tuple of Tensor
        Number of rows with cells, and the sums of ``u`` and of ``u u'`` over them.
    """

    X: LowRank
    V: Tensor
    means: Tensor
    gram: Tensor
    right: Tensor
    scores: tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class ChunkedSVDResult(Result):
    """Factors and means of the columns, and the sums over the rows."""

    V: Tensor
    means: Tensor
    scores: tuple[Tensor, Tensor, Tensor]


class ChunkedSVD(Solver):
    r"""Least squares over the matrices of bounded rank, by sums over chunks of rows.

    The objective is that of `HardRank`, as a function of the row space:

    .. math::

        \min_{V, m} \tfrac12 \sum_i \min_{u_i} \|P(x_i - m - V u_i)\|^2

    A step solves for the factors of each column from the sums of ``u u'`` and ``u x``
    over its cells, and then passes over the rows once to find new ones. Systems have a
    ridge of 1e-4, as rows may have fewer cells than the rank. The means ``m`` are zero
    unless they are free, see `skmc.Observed`.

    Parameters
    ----------
    start : Tensor of shape (n, rank)
        Initial factors of the columns.
    """

    def __init__(self, start: Tensor):
        self.start = start

    def init(self, data: ChunkedRows) -> ChunkedSVDState:
        scaling = data.scaling
        free = scaling is not None and scaling.shift.shape[-1] > 1
        return self._pass(data, self.start, self.start.new_zeros(len(self.start), free))

    def step(self, data: ChunkedRows, state: ChunkedSVDState) -> ChunkedSVDState:
        gram = state.gram + RIDGE * torch.eye(state.gram.shape[-1]).to(state.V)
        W = torch.cholesky_solve(state.right[..., None], torch.linalg.cholesky(gram))
        rank = state.V.shape[1]
        return self._pass(data, W[:, :rank, 0], W[:, rank:, 0])

    def _pass(self, data: ChunkedRows, V: Tensor, means: Tensor) -> ChunkedSVDState:
        V = torch.linalg.qr(V)[0] * len(V) ** 0.5
        misfit, gram, right, *scores = data.total(_row_space, V, means)
        return ChunkedSVDState(
            objective=misfit / 2,
            X=data.zero(),
            V=V,
            means=means,
            gram=gram,
            right=right,
            scores=(scores[0], scores[1], scores[2]),
        )

    def residual(
        self, data: ChunkedRows, previous: State, current: ChunkedSVDState
    ) -> Tensor:
        """``|dF/dV| |V| / (|P(M)| |P(X - M)|)``; the misfit counts as in `HardRank`."""
        W = torch.cat([current.V, current.means], 1)
        grad = (current.gram @ W[..., None])[..., 0] - current.right
        cells = data.energy.sqrt().clamp_min(1e-150)
        misfit = torch.maximum((2 * current.objective).sqrt(), EXACT * cells)
        return grad.norm() * W.norm() / (cells * misfit)

    def result(self, state: ChunkedSVDState) -> ChunkedSVDResult:
        return ChunkedSVDResult(
            X=state.X, V=state.V, means=state.means, scores=state.scores
        )


def _row_space(
    values: Tensor, seen: Tensor, V: Tensor, means: Tensor
) -> tuple[Tensor, ...]:
    place, cols = seen.nonzero(as_tuple=True)
    cells = SparseObserved(place, cols, values[seen], (seen.shape[0], seen.shape[1]))
    ridge = RIDGE * torch.eye(V.shape[1]).to(V)
    model = RowModel(V, means.sum(1), ridge, V.new_zeros(len(ridge)))
    U = model.solve(cells.starts, cells.cols, cells.values)
    rows = torch.cat([U, U.new_ones(len(U), means.shape[1])], 1)
    W = torch.cat([V, means], 1)
    T = cells.T
    gram, right = V.new_zeros(*W.shape, W.shape[1]), torch.zeros_like(W)
    for block in normal_equations(T.starts, T.cols, T.values, rows):
        gram[block.rows], right[block.rows] = block.gram, block.right
    some = seen.any(1)
    return (
        cells.misfit(LowRank(rows, W)),
        gram,
        right,
        some.sum().to(V),
        U[some].sum(0),
        U[some].mT @ U[some],
    )


def _stream(fitted: Any, rank: int) -> RowStream:
    if isinstance(fitted, StreamedCompletion):
        return fitted.stream
    scaled = torch.from_numpy(fitted.completion).double()
    scaled = fitted.row_map.scaling.standardise(scaled)
    # Cells that are filled with means do not have low rank.
    scaled[torch.from_numpy(fitted.statistics.empty_rows)] = 0
    scaled[:, torch.from_numpy(fitted.statistics.empty_cols)] = 0
    means = torch.zeros_like(scaled[0])
    if fitted.row_map.scaling.shift.shape[-1] > 1:  # they are free
        means = scaled.mean(0)
    svd = partial_svd(scaled - means, rank) if rank else SVD.zero(scaled)
    unit = len(scaled) ** 0.5
    rows = torch.cat([unit * svd.U, torch.ones_like(svd.U[:, :1])], 1)
    cols = torch.cat([svd.V * svd.s / unit, means[:, None]], 1)
    return RowStream.of(rows, cols, _sparse(fitted.index.cells))


def _folded(head: Observed, result: Result) -> FoldIn:
    """Make the map of rows after a fit to chunks, from sums over the rows."""
    zero = head.values.new_zeros(head.shape[1])
    if not isinstance(result, ChunkedSVDResult):  # interrupted before the first step
        return FoldIn(zero, zero[:, None][:, :0], 0.0)
    V, means = result.V, result.means.sum(1)
    count, first, second = result.scores
    mean = first / count
    energy, basis = torch.linalg.eigh(second / count - torch.outer(mean, mean))
    loadings = V @ basis * energy.clamp_min(0).sqrt()
    row_map = FoldIn(means + V @ mean, loadings, RIDGE)
    # The noise is chosen on the first rows.
    completion = row_map(head.values, head.mask)
    return replace(row_map, noise=FoldIn.of(completion, head.values, head.mask).noise)


def _sparse(cells: np.ndarray) -> SparseObserved:
    rows, cols = np.nonzero(~np.isnan(cells))
    values = torch.from_numpy(cells[rows, cols].astype(float))
    return SparseObserved.of(rows, cols, values, cells.shape)
