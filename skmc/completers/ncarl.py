"""Nuclear norm with an adaptive graph (NCARL)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.base import Choice, CompleterTags, IterativeCompleter, Trials
from skmc.cells import Given, Observed
from skmc.linalg import Randomness
from skmc.loop import HeldOut
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import Result, Solver, State, relative_norm
from skmc.terms import graph_laplacian, inner

ALPHAS = (10.0, 100.0, 1e3, 1e4)
NEIGHBORS = (5, 10, 20)
TRIAL_STEPS = 15  # with fewer, the choice depends on the seed
RIDGE = 1e-6  # makes the quadratic form definite and breaks ties of distances
NO_ENERGY = 1e-5  # share of the nuclear norm below which a direction is free
# Largest number of elements of systems that are solved together. Outside of the cache,
# they are slower to gather than to solve.
BLOCK = {"cpu": 2**18, "cuda": 2**26}


class NCARLCompleter(IterativeCompleter):
    r"""Minimize the nuclear norm with a learned graph of similar columns (NCARL).

    For pictures with scattered holes, and columns in groups; not for dissimilar
    columns.

    .. math::

        \min_X \|X\|_*^2 + \alpha \operatorname{tr}(X L(X) X^\top)
        \quad\text{subject to } X = M \text{ on the observed cells}

    or, with ``lambda_noise``,

    .. math::

        \min_X \|P(X - M)\|_F^2 + \lambda_{\text{noise}} \|X\|_*^2
        + \alpha \operatorname{tr}(X L(X) X^\top)

    where :math:`P` selects the observed cells. The norms, squared, and the trace are
    *sums*. :math:`L(X)` is the Laplacian of the graph of the ``n_neighbors`` nearest
    columns, whose weights decrease linearly with squared distance, see
    `skmc.completers.ncarl.adaptive_laplacian`. Each of a few iterations takes ``L`` and
    the weights of the nuclear norm from the last X. It then completes every row exactly
    by one linear system of its observed or its hidden cells, whichever are fewer. A
    matrix with fewer rows than columns is transposed, and the graph connects rows.

    Parameters
    ----------
    alpha : float >= 0 or "auto", default="auto"
        Weight of the graph's energy. Values to try: 1, 10, 100, 1e3, 1e4 (relative to
        the squared nuclear norm, which has the same unit). "auto" tries 10, 100, 1e3
        and 1e4 (times ``lambda_noise`` if given) with 5 neighbors on a held-out tenth
        of the observed cells, 15 iterations each. Small values fail if few cells are
        observed.
    n_neighbors : int >= 1 or "auto", default="auto"
        Number of neighbors of each column (row) in the graph, at most the number of
        columns (rows) minus one. "auto" then tries 5, 10 and 20 in the same way.
    lambda_noise : float > 0 or None, default=None
        Weight of the squared nuclear norm in the second form, which does not keep the
        observed cells; ``keep_observed=False`` returns its values there. Values to try:
        1e-5, 1e-4, 1e-3, 1e-2 (relative to the misfit, which has the same unit). 1e-3
        suits noise of a tenth of a picture's range. None is the first form.
    max_iter : int >= 1, default=60
        Maximum number of iterations; the paper's number is 15. If ``alpha`` or
        ``n_neighbors`` is "auto", the held-out cells also limit the number: noise needs
        few iterations, and exact low rank many. The fit may end there, without a
        warning.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-4
        Stop when an iteration moves X by at most ``tol |X|_F``. See
        `skmc.completers.ncarl.NCARL.residual` for the measure.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
        The paper does not standardize (None).
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
        Computations are always in double precision.
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells of "auto". With given numbers, nothing is random.
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
    alpha_ : float
        The weight that was used.
    n_neighbors_ : int
        The number of neighbors that was used.
    max_iter_ : int
        Largest number of iterations of the fit.
    laplacian_ : ndarray of shape (k, k), k = min(n_samples, n_features)
        :math:`L(X)` of the scaled completion.
    laplacian_axis_ : {"columns", "rows"}
        Axis whose items the graph connects.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every iteration.
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
    TNNRCompleter : Truncated nuclear norm without a graph.
    AIRCompleter : Learns graphs of rows and columns, with a product of factors.

    Notes
    -----
    Memory grows with ``n_samples n_features`` and with the square of the smaller of
    both; systems of rows are solved in blocks of bounded size.

    References
    ----------
    Li, Zhang, Zhang. Matrix completion via non-convex relaxation and adaptive
    correlation learning. IEEE Trans. Pattern Anal. Mach. Intell. 45 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import NCARLCompleter
    >>> X = np.outer(np.arange(1.0, 7), [1.0, 1.1, 1.2, 4.0, 4.1])
    >>> X[4, 1] = np.nan
    >>> completer = NCARLCompleter(alpha=10, n_neighbors=2, scaling=None)
    >>> completer.fit_transform(X)[4].round(1)
    array([ 5. ,  5.5,  6. , 20. , 20.5])
    >>> completer.laplacian_axis_, completer.laplacian_.shape
    ('columns', (5, 5))
    """

    completer_tags = CompleterTags(
        recovers=0.005,
        equivariant=True,
        unweighted="it keeps the observed cells, whatever they weigh",
    )
    check_every = 1  # a step costs far more than a check
    warn_at_max_iter = False  # the method takes few steps by design

    alpha: NonNegative | Literal["auto"] = "auto"
    n_neighbors: Count | Literal["auto"] = "auto"
    _: KW_ONLY
    lambda_noise: Positive | None = None
    max_iter: Count = 60
    max_time: Positive | None = None
    tol: NonNegative = 1e-4
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    alpha_: float = field(init=False)
    n_neighbors_: int = field(init=False)
    max_iter_: int = field(init=False)
    laplacian_: np.ndarray = field(init=False)
    laplacian_axis_: str = field(init=False)

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        most = max(1, min(data.shape) - 1)
        unit = self.lambda_noise or 1.0
        alpha: Any = self.alpha
        k: Any = self.n_neighbors
        if alpha == "auto":
            first = min(most, NEIGHBORS[0] if k == "auto" else k)
            alpha = trials.best(
                [unit * alpha for alpha in ALPHAS],
                lambda alpha, _: NCARL(alpha, first, self.lambda_noise),
                max_iter=TRIAL_STEPS,
            )
        if k == "auto":
            k = trials.best(
                sorted({min(most, k) for k in NEIGHBORS}),
                lambda k, _: NCARL(alpha, k, self.lambda_noise),
                max_iter=TRIAL_STEPS,
            )
        k = min(most, k)
        choice = {"alpha": alpha, "n_neighbors": k, "max_iter": self.max_iter}
        if "auto" in (self.alpha, self.n_neighbors) and trials.cells[1] is not None:
            with trials.interruptible():
                trial = trials.run(
                    NCARL(alpha, k, self.lambda_noise),
                    max_iter=self.max_iter,
                    stop=[HeldOut(trials.cells[1], TRIAL_STEPS)],
                )
                best = trial.history["validation"].argmin()
                choice["max_iter"] = int(trial.history["n_iter"][best])
        return Choice(choice)

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        return NCARL(params.alpha, params.n_neighbors, params.lambda_noise)

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        fitted = super()._attributes(given, result)
        n_rows, n_cols = given.data.shape
        fitted["laplacian_axis_"] = "rows" if n_rows < n_cols else "columns"
        if isinstance(result, NCARLResult):  # not if interrupted before the first one
            fitted["laplacian_"] = result.laplacian.cpu().numpy()
        return fitted


@dataclass(frozen=True, kw_only=True)
class NCARLState(State):
    """An iterate of `NCARL`.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    X : Tensor of shape (n_rows, n_cols)
        A completion.
    D : Tensor of shape (n, n)
        Weight matrix of the nuclear norm at ``X``, where ``n = min(shape)``.
    laplacian : Tensor of shape (n, n)
        Laplacian of the graph along the shorter axis of ``X``.
    means : Tensor of shape (1, n_cols), its transpose, or zeros
        Free means of the columns, in the unit of ``problem``.
    problem : Problem
        Linear systems, which do not change.
    """

    X: Tensor  # (n_rows, n_cols)
    D: Tensor  # (n, n), weight of the nuclear norm at X; n = min(shape)
    laplacian: Tensor  # (n, n), of the shorter axis of X
    means: Tensor  # free means of the columns, in the unit of the problem
    problem: Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class NCARLResult(Result):
    """A completion and the Laplacian of the longer side."""

    laplacian: Tensor


@dataclass(eq=False)
class NCARL(Solver[Observed, NCARLState]):
    r"""Nuclear norm and Dirichlet energy, both reweighted at every step.

    .. math::

        \min_X \|X\|_*^2 + \alpha \operatorname{tr}(X L(X) X^\top)
        \quad\text{subject to } X = M \text{ on the observed cells}

    or, with noise,

    .. math::

        \min_X \|P(X - M)\|_F^2 + \lambda_{noise} \|X\|_*^2
        + \alpha \operatorname{tr}(X L(X) X^\top)

    all of which are *sums*. A step fixes ``D(X)``, for which ``tr(X D X') = |X|_*^2``,
    and the Laplacian ``L(X)`` of `adaptive_laplacian`, and minimizes the quadratic form
    ``Q = D + alpha L + 1e-6 I`` over each row ``x`` exactly::

        x_O = m_O,  x_H = -inv(Q_HH) Q_HO m_O      without noise,
        x = (m p) inv(diag p + Q)                  with, D times lambda_noise in Q,

    where ``O`` and ``H`` are the observed and the hidden cells of the row and ``p`` is
    its mask. A matrix with more columns than rows is solved transposed, so that the
    systems are small.

    Parameters
    ----------
    alpha : float >= 0
        Weight of the Dirichlet energy.
    n_neighbors : int >= 1
        Number of neighbors of a column (of a row, if transposed) in the graph, < n.
    lambda_noise : float > 0 or None
        Weight of the nuclear norm in the noisy form; None keeps the observed cells.

    Notes
    -----
    Everything is computed in double precision. The first X is the zero-filled matrix.
    The unit of the 1e-6 in the graph is the square of the largest observed cell. This
    is our interpretation: the paper's data lie in [0, 1], and our completion scales
    with the data. ``objective`` is that of X with ``D(X)`` and ``L(X)``. It may rise,
    since the graph of a step is not optimal for its X. Free means of the columns are
    those of the last X: they are subtracted from the cells before a step and from X
    before ``D`` and ``L`` are computed.

    A row needs one Cholesky factor, of whichever is smaller: the system of its hidden
    cells (as above) or that of its observed ones, ``x = v H`` with ``H = inv(Q)`` and
    ``v_O = inv(H_OO) m_O``, the form of the paper; they agree by block inversion. With
    noise these are ``x = y + z G``, ``z_H = inv((Q G)_HH) y_H`` with
    ``G = inv(I + Q)``, ``y = m G``, and ``x = v H`` with ``v_O = inv((I + H)_OO) m_O``.
    Rows with equal masks share a factor.

    References
    ----------
    Li, Zhang, Zhang. Matrix completion via non-convex relaxation and adaptive
    correlation learning. IEEE Trans. Pattern Anal. Mach. Intell. 45 (2023).
    """

    alpha: float
    n_neighbors: int
    lambda_noise: float | None = None

    def init(self, data: Observed) -> NCARLState:
        problem = Problem.of(data)
        return self._reweigh(data, problem, problem.values)

    def step(self, data: Observed, state: NCARLState) -> NCARLState:
        problem = state.problem
        rest = problem.less(state.means)
        Q = self.quadratic_form(state)
        Z = rest.interpolate(Q) if self.lambda_noise is None else rest.approximate(Q)
        return self._reweigh(data, problem, state.means + Z)

    def quadratic_form(self, state: NCARLState) -> Tensor:  # (n, n)
        """``D + alpha L + 1e-6 I``, with ``D`` times ``lambda_noise`` where given."""
        Q = self.alpha * state.laplacian
        Q += state.D if self.lambda_noise is None else self.lambda_noise * state.D
        diagonal = torch.diagonal(Q, dim1=-2, dim2=-1)
        # The ridge is larger only where a huge alpha would round it away.
        rounding = Q.shape[-1] * torch.finfo(Q.dtype).eps * diagonal.amax(-1)
        diagonal += rounding.clamp_min(RIDGE)[..., None]
        return Q

    def _reweigh(self, data: Observed, problem: Problem, Z: Tensor) -> NCARLState:
        means, rest = torch.zeros_like(problem.unit), Z
        if data.free_means:
            means = Z.mean(-1 if problem.transposed else -2, keepdim=True)
            rest = Z - means
        gram = rest.mT @ rest
        D, nuclear = nuclear_weight(gram)
        L = adaptive_laplacian(gram, self.n_neighbors)
        energy = self.alpha * inner(gram, L)
        if self.lambda_noise is None:
            objective = nuclear.square() + energy
        else:
            misfit = ((Z - problem.values) * problem.seen).square().sum((-2, -1))
            objective = misfit + self.lambda_noise * nuclear.square() + energy
        X = Z * problem.unit
        return NCARLState(
            X=(X.mT if problem.transposed else X).to(data.values.dtype),
            objective=objective * problem.unit[..., 0, 0].square(),
            D=D,
            laplacian=L,
            means=means,
            problem=problem,
        )

    def residual(
        self, data: Observed, previous: NCARLState, current: NCARLState
    ) -> Tensor:
        """``|X - previous X|_F / |X|_F``.

        A step goes to the minimum for its ``D`` and ``L``, so its length measures how
        far the previous iterate was from a fixed point. The paper's measure, ``|dX|_F /
        (mn)``, depends on units and size; its 1e-6 is 5e-4 of this one on a picture of
        240 x 240 with values in [0, 1].
        """
        moved = current.X - previous.X
        return relative_norm(moved.double(), current.X.double())

    def result(self, state: NCARLState) -> NCARLResult:
        return NCARLResult(X=state.X, laplacian=state.laplacian)


def nuclear_weight(
    gram: Tensor,  # (n, n)
) -> tuple[Tensor, Tensor]:
    r"""``D = |X|_* (X'X)^(-1/2)`` and ``|X|_*`` of ``gram = X'X``.

    Directions whose singular value is at most 1e-5 of the sum of all get weight zero
    instead of a large weight, as in the paper.
    """
    energy, basis = torch.linalg.eigh(gram)
    values = energy.clamp_min(0).sqrt()
    nuclear = values.sum(-1)
    inverse = nuclear[..., None] / values
    weight = torch.where(values > NO_ENERGY * nuclear[..., None], inverse, 0.0)
    return (basis * weight[..., None, :]) @ basis.mT, nuclear


def adaptive_laplacian(
    gram: Tensor,  # (n, n)
    n_neighbors: int,
) -> Tensor:  # (n, n)
    r"""Laplacian of the adaptive k-nearest-neighbor graph of columns.

    ``d_ij = |x_i - x_j|^2`` from ``gram = X'X``, ``d_i(l)`` its l-th smallest
    with the column itself first, ``kappa_i = d_i(k + 1) + 1e-6``::

        S_ij = max(kappa_i - d_ij, 0) / (k kappa_i - sum_(l <= k) d_i(l)),

    and the adjacency is ``(S + S') / 2``. A column's weights, its own included, sum to
    1 but for the 1e-6; ``k`` is at most n - 1.
    """
    k = min(n_neighbors, gram.shape[-1] - 1)
    if k == 0:
        return torch.zeros_like(gram)
    norms = torch.diagonal(gram, dim1=-2, dim2=-1)
    d = (norms[..., :, None] + norms[..., None, :] - 2 * gram).clamp_min_(0)
    torch.diagonal(d, dim1=-2, dim2=-1).zero_()
    nearest = d.topk(k + 1, largest=False).values
    kappa = nearest[..., -1:] + RIDGE
    mass = k * kappa - nearest[..., :-1].sum(-1, keepdim=True)
    S = (kappa - d).clamp_min_(0).div_(mass)
    return graph_laplacian((S + S.mT) / 2)


@dataclass(frozen=True)
class Problem:
    """The data of `NCARL`, transposed if wide, and the linear systems of its rows.

    Parameters
    ----------
    values : Tensor of shape (m, n)
        Observed values divided by the largest one, zero where hidden; ``m >= n``.
    seen : Tensor of shape (m, n)
        Mask as zeros and ones.
    unit : Tensor of shape (1, 1)
        Largest absolute value.
    transposed : bool
        Whether the matrix was transposed.
    observed : _CellSystems
        Systems of the rows with more hidden than observed cells.
    hidden : _CellSystems
        Systems of the other rows.
    """

    values: Tensor  # (m, n), double, zero where hidden
    seen: Tensor  # (m, n), double 0/1
    unit: Tensor  # (1, 1), double
    transposed: bool
    observed: _CellSystems  # of rows with more hidden than observed cells
    hidden: _CellSystems  # of the others

    @classmethod
    def of(cls, data: Observed) -> Problem:
        """Make it from the observed cells."""
        transposed = data.shape[0] < data.shape[1]
        values, mask = data.values.double(), data.mask
        if transposed:
            values, mask = values.mT, mask.mT
        unit = values.abs().amax((-2, -1), keepdim=True)
        unit = torch.where(unit > 0, unit, 1.0)
        few = 2 * mask.sum(-1, keepdim=True) < mask.shape[-1]
        return cls(
            values=(values / unit).contiguous(),
            seen=mask.double(),
            unit=unit,
            transposed=transposed,
            observed=_CellSystems.of(mask & few),
            hidden=_CellSystems.of(~mask & ~few),
        )

    def less(
        self,
        means: Tensor,  # (1, n)
    ) -> Problem:
        """Subtract numbers from the observed cells."""
        return replace(self, values=self.values - means * self.seen)

    def interpolate(
        self,
        Q: Tensor,  # (n, n)
    ) -> Tensor:  # (m, n)
        """``argmin x Q x'`` of each row with ``x = m`` on its observed cells."""
        Z = self.values
        if self.hidden.blocks:
            Z = Z - self.hidden.solve(Q, Z @ Q)
        if self.observed.blocks:
            H = _inverse(Q)
            Z = self._merge(Z, self.observed.solve(H, self.values) @ H)
        return Z

    def approximate(
        self,
        Q: Tensor,  # (n, n)
    ) -> Tensor:  # (m, n)
        """``argmin |(x - m) p|^2 + x Q x'`` of each row."""
        eye = torch.eye(Q.shape[-1], dtype=Q.dtype, device=Q.device)
        G = _inverse(eye + Q)
        Y = self.values @ G
        Z = Y
        if self.hidden.blocks:
            Z = Y + self.hidden.solve(Q @ G, Y) @ G
        if self.observed.blocks:
            H = _inverse(Q)
            Z = self._merge(Z, self.observed.solve(eye + H, self.values) @ H)
        return Z

    def _merge(self, Z: Tensor, own: Tensor) -> Tensor:
        """Replace the rows of ``own`` that have no observed cell by those of ``Z``."""
        others = self.observed.others
        own[others] = Z[others]
        return own


def _inverse(A: Tensor) -> Tensor:
    """Invert positive definite matrices; the results are positive definite, too."""
    return torch.cholesky_inverse(torch.linalg.cholesky(A))


@dataclass(frozen=True)
class _Block:
    """Systems solved together: padded principal submatrices of similar size."""

    cells: Tensor  # (s, k) int, columns, n where padded
    system: Tensor  # (r,) int, system of each row
    column: Tensor  # (r,) int, its right-hand side in the system
    places: Tensor  # (r, k) int, positions in the flattened right-hand sides
    padding: Tensor  # (s, k) double 0/1
    width: int  # number of right-hand sides of each system

    def solve(self, A: Tensor, b: Tensor, out: Tensor) -> None:
        """Add the solutions to ``out``, flat like ``b``; ``A`` is padded."""
        n, k = A.shape[-1], self.cells.shape[1]
        # 32-bit integers are added and read twice as fast.
        dtype = torch.int32 if A.numel() < 2**31 else torch.int64
        column = self.cells.to(dtype)
        entries = (column[:, :, None] * n + column[:, None, :]).flatten()
        submatrices = A.flatten().index_select(0, entries).view(-1, k, k)
        torch.diagonal(submatrices, dim1=-2, dim2=-1).add_(self.padding)
        sides = b.new_zeros((len(self.cells), self.width, k))
        sides[self.system, self.column] = b[self.places]
        # The upper factor avoids a transposed copy.
        U = torch.linalg.cholesky(submatrices, upper=True)
        half = torch.linalg.solve_triangular(U.mT, sides.mT, upper=False)
        solved = torch.linalg.solve_triangular(U, half, upper=True).mT
        solved = solved * (1 - self.padding)[:, None]
        of_rows = solved[self.system, self.column]
        out.scatter_add_(0, self.places.flatten(), of_rows.flatten())


@dataclass(frozen=True)
class _CellSystems:
    """Systems ``A_SS v_S = b_S`` of the rows, where S is the cells of a mask."""

    others: Tensor  # (q,) int, rows without a system
    blocks: list[_Block]

    @classmethod
    def of(cls, mask: Tensor) -> _CellSystems:
        """Group the rows of ``mask (m, n)``; empty rows have no system."""
        n_cols = mask.shape[1]
        some = mask.any(-1)
        rows = some.nonzero()[:, 0]
        # Rows with equal masks share a system.
        distinct, system, counts = torch.unique(
            mask[rows].long(), dim=0, return_inverse=True, return_counts=True
        )
        # Systems with equally many right-hand sides and similar sizes form a block.
        sizes = distinct.sum(1)
        order = (counts * (n_cols + 1) + sizes).argsort(descending=True)
        masks = distinct[order].bool()
        sizes, counts = sizes[order], counts[order]
        ends = counts.cumsum(0)
        system, turn = order.argsort()[system].sort(stable=True)
        rows = rows[turn]
        column = torch.arange(len(rows), device=rows.device) - (ends - counts)[system]
        # Selected cells first, in their original order.
        cells = (~masks).long().argsort(dim=1, stable=True)
        cells = torch.where(masks.gather(1, cells), cells, n_cols)

        limit = BLOCK["cpu" if mask.device.type == "cpu" else "cuda"]
        table = list(zip(sizes.tolist(), counts.tolist(), ends.tolist(), strict=True))
        blocks, start = [], 0
        while start < len(table):
            size, width, end = table[start]
            stop = min(start + max(1, limit // (size * (size + width))), len(table))
            while table[stop - 1][1] != width:
                stop -= 1
            span = slice(end - width, table[stop - 1][2])
            columns, which = cells[start:stop, :size], system[span] - start
            padding = columns == n_cols
            # Padded positions may read any cell; they write zero.
            cols = torch.where(padding, 0, columns)[which]
            blocks.append(
                _Block(
                    cells=columns,
                    system=which,
                    column=column[span],
                    places=rows[span, None] * n_cols + cols,
                    padding=padding.double(),
                    width=width,
                )
            )
            start = stop
        return cls((~some).nonzero()[:, 0], blocks)

    def solve(self, A: Tensor, b: Tensor) -> Tensor:
        """``v (m, n)``: ``inv(A_SS) b_S`` on each row's S, zero elsewhere.

        ``A (n, n)`` is positive definite, ``b`` has shape ``(m, n)``.
        """
        padded, v = pad(A, (0, 1, 0, 1)), torch.zeros_like(b)
        solve = partial(_Block.solve, A=padded, b=b.flatten(), out=v.view(-1))
        n_threads = torch.get_num_threads()
        if n_threads == 1:
            list(map(solve, self.blocks))
            return v
        # Torch factorizes a batch in one thread; each block writes to its own rows.
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(solve, self.blocks))
        return v
