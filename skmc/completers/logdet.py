"""Recovery from few cells: the log-determinant, rank by rank, and least squares."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.base import (
    Choice,
    CompleterTags,
    FittedFactors,
    IterativeCompleter,
    Trials,
    warn_user,
)
from skmc.cells import Given, Scaling, SparseObserved
from skmc.completers._rank import checked_rank
from skmc.linalg import (
    SVD,
    Elimination,
    LowRank,
    Randomness,
    RowModel,
    conjugate_gradients,
    grams,
    partial_svd,
    svd_of,
)
from skmc.loop import OutOfTime, Solution, Status, seconds_left, solve_part
from skmc.parameters import Count, NonNegative, Params, Positive, Seed
from skmc.solvers import (
    Result,
    RowModelResult,
    Solver,
    State,
    solved,
    with_uncertain_prior,
)

NEARLY_ZERO = 1e-13  # precision of the prior of rows
EXACT = 1e-12  # relative distance from the cells of a matrix that fits exactly
SPARE = 1.05  # fewest cells for each degree of freedom
WORSE = 4  # ranks that do not predict better than one before, and end the path
CLOSER = 0.5  # ratio of the misfits of two such matrices on the path
UNITS = 1e3  # ratio of the columns' units above which they are scaled
PATIENCE = 2, 8  # fewest steps at a rank, in the first path and later
SURE = 1.4  # cells for each degree of freedom at which one path is enough
SURE_OF_NOISE = 1.8  # the same for a matrix that fits up to noise
SMALL_NOISE = 0.1  # relative deviation of the noise for which the same holds
EXTRA = 5  # singular values that are computed beyond the rank
AHEAD = 3  # most components beyond the rank that a step has
ACCURACY, STEPS = 0.01, 150  # of the least squares of a step
GAP, CLOSE = 0.03, 0.1  # ratio of singular values, and misfit, of a matrix to refine
RESTARTS, NEAR_ZERO = 4, 0.06  # random starts, and their size relative to the cells
STUCK = 0.97  # ratio of successive values that no longer fall
ROUNDING = 1e-13  # relative distance from the cells of the most accurate fits
FLAT = 1e-3  # least weight in units of epsilon squared
PRECISE, MOST_STEPS = 1e-12, 3000  # of conjugate gradients for a certificate
STILL = 1e-4  # a number that is zero up to rounding errors
REDUNDANT = 1e-6  # the same for numbers of widely different size
RIGID = 10_000_000  # cells of all stresses, up to which other solutions are excluded
TRIAL_STEPS, REFINING_STEPS, TRIES = 4, 15, 8
REFINING_ACCURACY = 0.01, 1e-3  # of steps, and of those to a matrix that nearly fits
NEARLY_EXACT = 1e-6
EM_STEPS = 10  # for the priors of rows and columns
JUDGING_STEPS = 100  # of a path whose prediction says how far a matrix is from low rank


class LogDetCompleter(IterativeCompleter):
    r"""Recover a low-rank matrix exactly from very few cells, with a certificate.

    For matrices of low rank with little or no noise; says which cells are certain. Not
    for tables, ratings and other matrices that are not close to low rank: these are
    overfitted, other methods are far better, and a warning says so.

    .. math::

        \min_X \operatorname{rank}(X) \quad\text{subject to } X = M
        \text{ on the observed cells}

    The rank need not be known, and singular values may differ by factors of a million.
    From noisy cells, the result is the least-squares fit of the rank that is best on
    held-out cells. See `skmc.completers.logdet.LogDet` for the search and
    `skmc.completers.logdet.VariableProjection` for the fit.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or "auto", default="auto"
        Largest rank to try. A smaller rank is used if it fits exactly, or if it is
        better on held-out cells. "auto" tries all ranks whose degrees of freedom,
        ``rank (n_samples + n_features - rank)``, are fewer than the observed cells.
    max_iter : int >= 1, default=1000
        Maximum number of steps of the search, and of the fit after it.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-10
        Stop when a step of the fit changes its values at the observed cells by at most
        ``tol`` times their norm. Steps converge quadratically to an exact fit.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Divides the data by the root mean square of the observed cells, of each column
        or of all; undone on output. "auto" is "global", except where the columns' root
        mean squares differ by a factor of more than 1000. A mean is only subtracted
        where it is above 100 standard deviations, because this can change the rank.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells, which noisy data need. Otherwise nothing is random.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers; in tables with columns that are not numbers, those of words and dates
        stay missing. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    rank_ : int
        The rank of the completion.
    exact_ : bool ndarray of shape (n_samples,)
        The certificate: True for rows whose missing cells are determined by the
        observed ones, see Notes. All are False if the cells are noisy.
    exact_columns_ : bool ndarray of shape (n_features,)
        The same for columns. A cell is certified if its row and its column are.
    singular_values_ : ndarray of shape (n_values,)
        Singular values of the scaled completion.
    row_factors_, col_factors_ : ndarray of shape (n_samples, k), (n_features, k)
        Their product is the scaled completion.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every step of the fit.
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
    FactorizationCompleter : For noisy cells and ratings; tries this method first.
    IALMCompleter : A convex problem, which needs more cells.
    skmc.patterns.is_determined : Whether observed cells can determine a matrix.

    Notes
    -----
    The search fits a matrix of rank 1, and increases the rank where the largest
    singular value beyond it stops falling. Large components settle first, so small ones
    are found at any condition number. Where the singular values have a gap, least
    squares over the matrices of this rank are tried. If they fit all cells to a
    relative accuracy of 1e-12, or to the precision of the data, the search ends. If
    they nearly fit, the same rank is searched from the beginning. Near the limit of
    what is possible, a second and slower search follows, and searches at each rank that
    leaves few cells to spare, from several first matrices. If no matrix fits exactly, a
    tenth of the cells is held out, and the rank is the lowest one that no other
    predicts better by more than chance.

    An exact fit is certified where no other matrix of this rank, near or far, fits as
    well. Rows and columns with more cells than the rank form a core. Its cells must fix
    the matrix: no small change of its factors may leave them all unchanged. Each cell
    must follow from the others. In matrices of up to some million cells, the
    dependencies between the cells must determine the row and column spaces, which
    excludes other solutions for generic matrices. Further rows and columns are
    certified if they have at least as many cells as the rank in certified columns and
    rows, in general position.

    All rows, including new ones, are completed by least squares on the columns'
    factors. If no matrix fits exactly, this would amplify noise without a bound in rows
    with hardly more cells than the rank. Factors of rows and columns then have normal
    priors, the most likely ones for the cells, and are posterior means; the variance of
    the noise is that of the cells around the matrix, over its remaining degrees of
    freedom.

    Memory grows with the observed cells and with ``(n_samples + n_features) rank``, and
    with the square of ``min(n_samples, n_features) rank`` where this is at most 3100.
    ``reconstruction_`` and `transform` are dense.

    References
    ----------
    Kuemmerle, Mayrink Verdun. A scalable second order method for ill-conditioned matrix
    completion from few samples. ICML (2021), for the weighted least squares. Golub,
    Pereyra. The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate. SIAM Journal on Numerical Analysis 10 (1973). Singer,
    Cucuringu. Uniqueness of low-rank matrix completion by rigidity theory. SIAM Journal
    on Matrix Analysis and Applications 31 (2010), for the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import LogDetCompleter, patterns
    >>> rng = np.random.RandomState(0)
    >>> truth = rng.randn(40, 2) @ rng.randn(2, 30)
    >>> X = np.where(patterns.random(truth, 0.7, random_state=0), np.nan, truth)
    >>> completer = LogDetCompleter()
    >>> bool(np.abs(completer.fit_transform(X) - truth)[completer.exact_].max() < 1e-8)
    True
    >>> completer.rank_, round(float(completer.exact_.mean()), 2)
    (2, 1.0)
    """

    completer_tags = CompleterTags(
        recovers=1e-6,
        unweighted="it looks for a matrix that matches the observed cells exactly",
    )
    accepts = (SparseObserved,)  # a list of cells, never dense
    check_every = 1

    rank: Count | Literal["auto"] = "auto"
    _: KW_ONLY
    max_iter: Count = 1000
    max_time: Positive | None = None
    tol: NonNegative = 1e-10
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    rank_: int = field(init=False)
    exact_: np.ndarray = field(init=False)
    exact_columns_: np.ndarray = field(init=False)
    singular_values_: np.ndarray = field(init=False)
    row_factors_: np.ndarray = field(init=False)
    col_factors_: np.ndarray = field(init=False)

    def _scaled(self, given: Given) -> Given:
        if given.scaling is None:
            units = units_of(given.data, self.scaling)
            given = replace(given, data=given.data.scaled(units), scaling=units)
        return super()._scaled(given)

    def _choose(self, data: SparseObserved, trials: Trials) -> Choice:
        rank = None if self.rank == "auto" else checked_rank(self.rank, data.shape)
        recovery = Recovery(data, trials, self.max_iter, rank)
        ended = False
        with trials.interruptible():
            recovery.search()
            ended = True
            if not recovery.best.exact and (far := recovery.distance()) > 1:
                warn_user(
                    f"{type(self).__name__}: held-out cells are {far:.2f} times as far "
                    "from the completion as from the column means; the matrix is not "
                    "close to low rank. FactorizationCompleter and AutoCompleter "
                    "choose what such cells support."
                )
        best = recovery.best
        hurried = not (ended or best.exact)
        if hurried:
            best = recovery.near or recovery.first or best
        hurried &= not trials.interrupted
        noise = None if best.exact else (noise_around(data, best.X),) * 2
        return Choice({"rank": best.rank}, best.X, noise, hurried=hurried)

    def _make_solver(
        self, data: SparseObserved, params: Params, rng: Randomness
    ) -> Solver:
        return VariableProjection(params.start)

    def _with_posteriors(
        self, data: Any, solution: Solution, noise: tuple[float, float | None]
    ) -> Solution:
        # The fit can be much closer to the cells than a search that ended early.
        found = with_posteriors(data, solution.X, noise_around(data, solution.X))
        return replace(solution, result=found)

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        fitted = FittedFactors.of(given, result)
        sizes = svd_of(result.X).s.cpu().numpy()
        tolerance = _exactness(given.data, given.scaling)
        rows, cols = certificate(given.data, result.X, tolerance)
        return {
            "_fitted": fitted,
            "row_factors_": fitted.left,
            "col_factors_": fitted.right,
            "singular_values_": sizes,
            "exact_": rows.cpu().numpy(),
            "exact_columns_": cols.cpu().numpy(),
        }


@dataclass
class LowRankCandidate:
    """A matrix of low rank that may be the answer."""

    X: LowRank
    misfit: float  # relative to the norm of the cells
    exact: bool = False
    certified: float = 0.0  # share of rows and columns; 1 with cells to spare

    @property
    def rank(self) -> int:
        return self.X.left.shape[1]


@dataclass(eq=False)
class Recovery:
    """A search for the matrix of lowest rank that fits the cells, or fits them best."""

    data: SparseObserved
    trials: Trials
    max_iter: int
    rank: int | None = None  # the largest one
    most_work: float = math.inf
    n_steps: int = field(default=0, init=False)
    work: int = field(default=0, init=False)  # steps times cells times components
    tolerance: float = field(init=False)
    best: LowRankCandidate = field(init=False)
    near: LowRankCandidate | None = field(
        default=None, init=False
    )  # fits up to little noise
    first: LowRankCandidate | None = field(default=None, init=False)  # of rank 1
    alone: set[int] = field(default_factory=set, init=False)  # ranks tried alone
    leader: tuple[LowRank, Tensor] | None = field(
        default=None, init=False
    )  # best prediction of held-out cells, and its errors

    def __post_init__(self) -> None:
        self.tolerance = _exactness(self.data, self.trials.scaling)
        self.data = _in_double(self.data)
        zero = LowRank(*(self.data.values.new_zeros(n, 1) for n in self.data.shape))
        self.best = LowRankCandidate(
            zero, math.inf, exact=not bool(self.data.energy > 0)
        )

    def freedom(self, rank: int) -> int:
        m, n = self.data.shape
        return rank * (m + n - rank)

    @property
    def largest(self) -> int:
        """The largest rank with fewer degrees of freedom than cells."""
        if self.rank is not None:
            return self.rank
        size, n_cells = min(self.data.shape), len(self.data.values)
        possible = [r for r in range(1, size - 1) if SPARE * self.freedom(r) < n_cells]
        return max(possible, default=1)

    def search(self) -> None:
        """Follow the path of ranks twice, and then ranks with few cells to spare."""
        if self.best.exact:  # all cells are zero
            return
        for patience in PATIENCE:
            settled = self.follow(range(1, self.largest + 1), patience)
            if self.best.exact or self.is_sure or self.is_over:
                break
        self.restart()
        if not self.best.exact:
            self.offer(self.most_likely(settled))

    def restart(self) -> None:
        """Search at each rank with few cells to spare, from zero and from near it."""
        n_cells, generator = len(self.data.values), torch.Generator().manual_seed(0)
        size = NEAR_ZERO * (self.data.energy / n_cells).sqrt()
        for attempt in range(1 + RESTARTS):
            if attempt and self.best.certified > 0:
                return
            for rank in range(1, self.largest + 1):
                if self.is_sure or self.is_over:
                    return
                if n_cells > SURE_OF_NOISE * self.freedom(rank):
                    continue
                start = None
                if attempt:
                    left, right = (
                        torch.randn(n, rank, generator=generator, dtype=size.dtype)
                        for n in self.data.shape
                    )
                    start = LowRank(left.to(size) * size / rank**0.5, right.to(size))
                self.follow_one(rank, start)

    def follow_one(self, rank: int, start: LowRank | None = None) -> None:
        """Search at a rank alone if something is left; from zero, only once."""
        if start is None and rank in self.alone:
            return
        most = self.best.rank - 1 if self.best.exact else self.largest
        if 1 <= rank <= most and not self.is_over:
            self.alone.add(rank)
            self.follow([rank], PATIENCE[-1], start)

    @property
    def is_over(self) -> bool:
        return self.n_steps >= self.max_iter or self.work >= self.most_work

    @property
    def is_sure(self) -> bool:
        """Whether the answer is certain, or fits many cells up to little noise."""
        n_cells = len(self.data.values)
        if self.best.exact or self.near is None:
            return self.best.certified == 1
        freedom = self.freedom(self.near.rank)
        noise = self.near.misfit / (1 - min(0.9, freedom / n_cells)) ** 0.5
        return n_cells >= SURE_OF_NOISE * freedom and noise < SMALL_NOISE

    def follow(
        self, ranks: Iterable[int], patience: int, start: LowRank | None = None
    ) -> list[LowRank]:
        """Raise the rank where the path has settled; refine it where it has a gap."""
        ranks, n_cells = list(ranks), len(self.data.values)
        state: Any = None
        settled: list[LowRank] = []
        closest, n_worse = np.inf, 0
        for rank in ranks:
            last = rank == ranks[-1]
            solver = LogDet(rank, patience, state or start)
            while True:
                if state is not None and seconds_left() <= 0:
                    raise OutOfTime
                left = max(1, self.max_iter - self.n_steps)
                solution = solve_part(solver, self.data, max_iter=left, check_every=1)
                state = solution.result.state
                if rank == 1:
                    self.first = LowRankCandidate(state.candidate(1), state.distance)
                self.n_steps += int(solution.n_iter)
                self.work += int(solution.n_iter) * n_cells * (rank + AHEAD)
                failed = solution.status[0] is Status.DIVERGED
                given = state.has_settled and last and self.rank is not None
                spare = n_cells > SURE * self.freedom(rank)
                if state.has_gap or given:
                    refined = self.refine(state.candidate(rank))
                    if refined.exact:
                        self.offer(refined)
                        return settled
                    if refined.misfit < min(SMALL_NOISE, CLOSER * closest):
                        if spare:
                            self.near, n_worse = refined, 0
                            self.leads(refined.X)
                        if not self.is_sure:
                            self.follow_one(rank)
                        if self.best.exact and self.best.rank == rank:
                            return settled
                    closest = min(closest, refined.misfit)
                solver = replace(solver, start=state.after_refining())
                over = failed or self.is_over
                if state.has_settled or over:
                    break
            settled.append(state.candidate(rank))
            if self.near is not None and rank > self.near.rank:
                n_worse = 0 if self.leads(settled[-1]) else n_worse + 1
            if over or n_worse == WORSE:
                break
        return settled

    def offer(self, found: LowRankCandidate) -> None:
        """Keep the exact one of lowest rank, or else that of the least noise."""

        def order(candidate: LowRankCandidate) -> tuple[bool, float]:
            if candidate.exact:
                return False, candidate.rank
            spare = len(self.data.values) - self.freedom(candidate.rank)
            return True, candidate.misfit**2 / max(1, spare)

        if order(found) < order(self.best):
            self.best = found
            if found.exact:
                found.certified = 1.0
                if len(self.data.values) < SURE * self.freedom(found.rank):
                    certain = torch.cat(certificate(self.data, found.X, self.tolerance))
                    found.certified = float(certain.double().mean())

    def refine(self, X: LowRank) -> LowRankCandidate:
        """Least squares from a matrix, and its distance from the cells.

        Steps are accurate only where the matrix nearly fits.
        """
        energy = self.data.energy.clamp_min(torch.finfo(self.data.dtype).tiny)
        best, misfit = X, math.inf
        for accuracy in REFINING_ACCURACY:
            solution = solve_part(
                VariableProjection(best, 1e-4, 0.1, accuracy),
                self.data,
                max_iter=REFINING_STEPS,
                tol=1e-10,
                check_every=1,
            )
            best = solution.X
            misfit = float((self.data.misfit(best) / energy).sqrt())
            if not self.tolerance < misfit < NEARLY_EXACT:
                break
        return LowRankCandidate(best, misfit, misfit < self.tolerance)

    def most_likely(self, settled: list[LowRank]) -> LowRankCandidate:
        """The rank that predicts held-out cells best, refined on all cells."""
        best = settled[0]
        if self.near is not None:
            best = self.near.X
        else:
            self.leader, n_worse = None, 0
            for X in settled:
                n_worse = 0 if self.leads(X) else n_worse + 1
                if n_worse == WORSE:
                    break
        return self.refine(best if self.leader is None else self.leader[0])

    def leads(self, X: LowRank) -> bool:
        """Whether a rank predicts held-out cells better than those before.

        It has to be closer to more of them than chance allows. Single cells of rows
        with too few cells for the rank, which may be far away, count as others do.
        """
        _, held_out = self.trials.cells
        if held_out is None:
            return False
        X = self.refit(X).X
        errors = held_out.residual(X).abs()
        if self.leader is not None:
            n, n_closer = len(errors), int((errors < self.leader[1]).sum())
            if n_closer <= (n + n**0.5) / 2:  # one standard deviation
                return False
        self.leader = X, errors
        return True

    def refit(self, X: LowRank) -> Solution:
        """Least squares from a matrix, on the cells to train on."""
        solver = VariableProjection(X, 1e-3, 1e-3, 0.03)
        return self.trials.run(solver, max_iter=TRIAL_STEPS, tol=1e-4, check_every=1)

    def distance(self) -> float:
        """Distance of held-out cells from a fit of the best rank, over that of means.

        It is in units of columns. The fit starts from zero: the best one has seen these
        cells.
        """
        train, held_out = self.trials.cells
        if held_out is None:
            return 0.0
        path = self.trials.run(
            LogDet(self.best.rank, PATIENCE[-1]),
            _in_double(train),
            max_iter=JUDGING_STEPS,
            check_every=1,
        )
        X = self.refit(path.result.state.candidate(self.best.rank)).X
        X = with_posteriors(train, X, noise_around(self.data, self.best.X)).X
        means = held_out.spread(train.scaling_of("columns").shift)
        deviations = held_out.spread(self.data.scaling_of("columns").scale)
        errors = torch.stack([held_out.residual(X), held_out.values - means])
        errors = torch.where(deviations > 0, errors / deviations, 0.0)
        far, far_from_means = errors.norm(dim=1).tolist()
        return far / far_from_means if far_from_means else 0.0


@dataclass(frozen=True, kw_only=True)
class LogDetState(State):
    """An iterate of `LogDet`.

    Parameters
    ----------
    objective : Tensor of shape ()
        Half the squared distance from the observed cells.
    X : LowRank
        The completion.
    misfit : Tensor of shape (n_cells,)
        ``M - X`` at the observed cells.
    spectrum : SVD
        Largest singular values of ``X + P(M - X)``.
    eps : Tensor of shape ()
        Singular values below this are penalized as squares.
    distance : float
        ``|P(M - X)| / |P(M)|``.
    age : int
        Number of steps at this rank.
    slow : int
        Number of last steps in which neither ``eps`` nor the distance fell.
    refined : float
        Distance at the last gap.
    has_gap : bool
        Whether the singular values have a gap at the rank.
    has_settled : bool
        Whether the iterates have stopped falling.
    """

    X: LowRank
    misfit: Tensor
    spectrum: SVD
    eps: Tensor
    distance: float
    age: int = 0
    slow: int = 0
    refined: float = 1.0
    has_gap: bool = False
    has_settled: bool = False

    def candidate(self, rank: int) -> LowRank:
        return self.spectrum.first(rank).low_rank()

    def after_refining(self) -> LogDetState:
        return replace(self, refined=self.distance, has_gap=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class LogDetResult(Result):
    """A completion and its iterate, from which the search goes on."""

    state: LogDetState


@dataclass(eq=False)
class LogDet(Solver):
    r"""Continuation of the log-determinant at one rank, until its iterates settle.

    .. math::

        \min_X \sum_i \log \max(\sigma_i(X), \epsilon)
        \quad\text{subject to } X = M \text{ on the observed cells}

    a *sum* over all singular values; below :math:`\epsilon`, squares continue the
    logarithm. The limit :math:`\epsilon` follows the singular value after the
    rank. A step is a weighted least-squares problem in the tangent space of the
    components above :math:`\epsilon`, solved to 1 % by at most 150 steps of conjugate
    gradients. The residual is zero where the next singular value is below .03 of the
    last one of the rank, or where it and the misfit fall by less than 3 %.

    Parameters
    ----------
    rank : int
        Rank of the matrix.
    patience : int, default=2
        Smallest number of steps before the iterates can settle.
    start : LogDetState or LowRank, optional
        Last iterate, at this rank or at a smaller one, or the first; zero by default.

    References
    ----------
    Kuemmerle, Mayrink Verdun. A scalable second order method for ill-conditioned matrix
    completion from few samples. ICML (2021).
    """

    rank: int
    patience: int = PATIENCE[0]
    start: LogDetState | LowRank | None = None

    def init(self, data: SparseObserved) -> LogDetState:
        if isinstance(self.start, LogDetState):
            same = self.start.spectrum.rank >= min(self.rank + EXTRA, *data.shape)
            if same:
                return replace(self.start, has_settled=False)
            spectrum = self._spectrum(
                data, self.start.X, self.start.misfit, self.start.spectrum.V
            )
            return replace(
                self.start,
                spectrum=spectrum,
                age=0,
                slow=0,
                refined=1.0,
                has_gap=False,
                has_settled=False,
            )
        X = self.start or data.zero()
        misfit = -data.residual(X)
        return LogDetState(
            objective=data.energy / 2,
            X=X,
            misfit=misfit,
            spectrum=self._spectrum(data, X, misfit),
            eps=torch.full_like(data.energy, torch.inf),
            distance=1.0,
        )

    def _spectrum(
        self,
        data: SparseObserved,
        X: LowRank,
        misfit: Tensor,
        start: Tensor | None = None,
    ) -> SVD:
        """The largest singular values of ``X + P(M - X)``."""
        rank = min(self.rank + EXTRA, *data.shape)
        A = data.plus(misfit, X)
        return partial_svd(
            A, rank, start=start, max_steps=3 if start is not None else 200
        )

    def step(self, data: SparseObserved, state: LogDetState) -> LogDetState:
        r, s = self.rank, state.spectrum.s
        following = s[r] if r < len(s) else s.new_zeros(())
        eps = torch.minimum(state.eps, following)
        eps = eps.clamp_min(1e-14 * s[0])
        q = int((s > eps * (1 + 1e-9)).sum())
        q = max(1, min(q, r + AHEAD))
        tangent = _Tangent(data, state.spectrum.first(q), eps)
        X = tangent.solve(state.X, state.misfit)
        misfit = -data.residual(X)
        energy = data.weighted(misfit.square()).sum()
        spectrum = self._spectrum(data, X, misfit, state.spectrum.V)
        s = spectrum.s
        following = s[r] if r < len(s) else s.new_zeros(())
        size, ratio, gap, previous = torch.stack(
            [
                (energy / data.energy).sqrt(),
                following / eps,
                following / s[r - 1],
                eps / s[0],
            ]
        ).tolist()
        is_slow = ratio > STUCK and size > STUCK * state.distance
        slow = state.slow + 1 if is_slow else 0
        age = state.age + 1
        settled = (slow >= 3 and age >= self.patience) or previous < 1e-13
        ready = gap < GAP and size < min(CLOSE, 0.3 * state.refined)
        return LogDetState(
            objective=energy / 2,
            X=X,
            misfit=misfit,
            spectrum=spectrum,
            eps=eps,
            distance=size,
            age=age,
            slow=slow,
            refined=state.refined,
            has_gap=ready and (ratio < 0.5 or is_slow or age % 10 == 0),
            has_settled=settled,
        )

    def residual(
        self, data: SparseObserved, previous: LogDetState, current: LogDetState
    ) -> Tensor:
        """Zero if there is a gap or the iterates have settled, else 1."""
        waits = current.has_gap or current.has_settled
        return current.objective.new_tensor(0.0 if waits else 1.0)

    def misfit(self, data: SparseObserved, state: LogDetState, X: LowRank) -> Tensor:
        return 2 * state.objective

    def result(self, state: LogDetState) -> LogDetResult:
        return LogDetResult(X=state.X, state=state)


@dataclass(frozen=True, eq=False)
class _Tangent:
    """Weighted least squares over ``U G V' + U A' + B V'``, with ``A' V = B' U = 0``.

    The squares of each part are weighted by those of epsilon over the products of the
    singular values of its rows and columns, less the smallest of these weights.
    """

    data: SparseObserved
    spectrum: SVD
    eps: Tensor

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (m, n), q = self.data.shape, self.spectrum.rank
        G, A, B = x.view(-1).split([q * q, n * q, m * q])
        return G.view(q, q), A.view(n, q), B.view(m, q)

    def joined(self, products: tuple[Tensor, Tensor]) -> Tensor:
        """The part in the tangent space of a matrix with given ``(Z' U, Z V)``."""
        (A, B), (U, V) = products, (self.spectrum.U, self.spectrum.V)
        G = U.mT @ B
        return torch.cat([G.reshape(-1), (A - V @ G.mT).view(-1), (B - U @ G).view(-1)])

    def matrix(self, x: Tensor) -> LowRank:
        G, A, B = self.split(x)
        U, V = self.spectrum.U, self.spectrum.V
        return LowRank(torch.cat([U, B + U @ G], 1), torch.cat([A, V], 1))

    def products(self, z: Tensor) -> tuple[Tensor, Tensor]:
        data = self.data
        left = data.T.matrix(z[data.by_column]) @ self.spectrum.U
        return left, data.matrix(z) @ self.spectrum.V

    def solve(self, X: LowRank, misfit: Tensor) -> LowRank:
        """Approximate solution, from the part of ``X + P(M - X)`` in the space."""
        data, s, eps = self.data, self.spectrum.s, self.eps
        m, n = data.shape

        def weights(product: Tensor) -> Tensor:
            return eps**2 / (product - eps**2).clamp_min(FLAT * eps**2)

        side = weights(s * eps)
        weight = torch.cat(
            [weights(s[:, None] * s).reshape(-1), side.repeat(n), side.repeat(m)]
        )
        share = len(data.values) / (m * n)
        near = (1 / (share + weight))[:, None]

        def system(x: Tensor) -> Tensor:
            z = data.at(self.matrix(x))
            return (self.joined(self.products(z)) + weight * x[:, 0])[:, None]

        left, right = self.products(misfit)
        left = left + X.mT @ self.spectrum.U
        right = right + X @ self.spectrum.V
        start = self.joined((left, right))[:, None]
        target = self.joined(self.products(data.values))[:, None]
        residual = target - system(start)
        size, least = ((x * near * x).sum(0) for x in (residual, target))
        accuracy = ACCURACY**2 * torch.maximum(size, ROUNDING**2 * least)
        change, _ = conjugate_gradients(
            system, residual, None, STEPS, accuracy, lambda x: near * x
        )
        return self.matrix(start + change)


@dataclass(frozen=True, kw_only=True)
class ProjectedState(State):
    """An iterate of `VariableProjection`, in double precision.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    cells : SparseObserved
        The observed cells of the matrix, or of its transpose if it is wide.
    rows : Tensor of shape (m, r)
        Factors of its rows, the best ones for the columns.
    elimination : Elimination
        Equations of small changes.
    rest : Tensor of shape (n_cells,)
        Iterate minus data at the cells.
    moved : Tensor of shape ()
        Norm of the change of the cells in the last step.
    damping : float
        Damping of the next step.
    calm : int
        Number of last steps that hardly lowered the objective.
    """

    cells: SparseObserved
    rows: Tensor
    elimination: Elimination
    rest: Tensor
    moved: Tensor
    damping: float
    calm: int = 0


@dataclass(eq=False)
class VariableProjection(Solver):
    r"""Least squares over the matrices of a given rank, near a first one.

    .. math::

        \min_V \min_U \tfrac12 \|P(U V^\top - M)\|_F^2

    a *sum* over observed cells. The inner problem has a closed form. A step is one of
    the Levenberg-Marquardt method for the factors ``V`` of the shorter side. Damping is
    divided by five after a step that lowers the objective well, and multiplied by
    four until it does. Factors are normalized to ``U' U = m I`` first. The system of a
    step is factored if it has at most 3100 unknowns, and else solved by conjugate
    gradients.

    Parameters
    ----------
    start : LowRank
        The first matrix, whose number of factors is the rank.
    damping : float, default=1e-4
        First damping, relative to the diagonal of the system.
    gain : float, default=1e-6
        Two steps that lower the objective by less than this share end the solve.
    accuracy : float, default=1e-3
        Relative accuracy of conjugate gradients. They are also used for small systems
        if it is at least .01.

    References
    ----------
    Golub, Pereyra. The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate. SIAM Journal on Numerical Analysis 10 (1973).
    """

    start: LowRank
    damping: float = 1e-4
    gain: float = 1e-6
    accuracy: float = 1e-3

    def init(self, data: SparseObserved) -> ProjectedState:
        self.dtype, self.is_wide = data.dtype, _is_wide(data)
        cells = _in_double(data)
        start = LowRank(
            *(F.to(cells.values) for F in (self.start.left, self.start.right))
        )
        if _is_wide(data):
            cells, start = cells.T, start.mT
        svd, rank = svd_of(start), start.left.shape[1]
        V = pad(svd.V * svd.s, (0, rank - svd.rank))
        infinite = torch.full_like(cells.energy, torch.inf)
        return self._at(cells, V, infinite, self.damping)

    def _at(
        self,
        cells: SparseObserved,
        V: Tensor,
        moved: Tensor,
        damping: float,
        calm: int = 0,
    ) -> ProjectedState:
        """The best rows for the columns ``V``."""
        scale = V.norm(dim=0) / len(V) ** 0.5
        scale = scale.clamp_min(torch.finfo(V.dtype).tiny ** 0.5)
        elimination = Elimination.of(cells, V / scale)
        rows = elimination.rows(cells.values)
        # Refined once: rows with few cells have nearly singular systems.
        rest = cells.residual(LowRank(rows, elimination.W))
        rows = rows - elimination.rows(rest)
        elimination = elimination.with_rows(rows / scale)
        rest = cells.residual(LowRank(rows, elimination.W))
        return ProjectedState(
            objective=rest.square().sum() / 2,
            cells=cells,
            rows=rows,
            elimination=elimination,
            rest=rest,
            moved=moved,
            damping=damping,
            calm=calm,
        )

    def step(self, data: SparseObserved, state: ProjectedState) -> ProjectedState:
        cells, damping = state.cells, state.damping
        V = _normalized(state)
        state = self._at(cells, V, state.moved, damping, state.calm)
        system = state.elimination
        right = -system.pull(state.rest)
        for _ in range(TRIES):
            solve = system.inverse(damping, self.accuracy)
            if solve is not None:
                new = self._at(cells, V + solve(right), state.moved, damping)
                if new.objective < state.objective:
                    break
            damping = max(4 * damping, 1e-8)
        else:
            return replace(state, moved=torch.zeros_like(state.moved))
        drop = 1 - float(new.objective / state.objective)
        if drop > 1e-3 or damping < 1e-6:
            damping = max(damping / 5, 1e-14)
        calm = state.calm + 1 if drop < self.gain else 0
        moved = (new.rest - state.rest).norm()
        return replace(new, moved=moved, damping=damping, calm=calm)

    def residual(
        self, data: SparseObserved, previous: ProjectedState, current: ProjectedState
    ) -> Tensor:
        """Change of the cells by the last step, relative to their norm.

        It is zero where 13 digits of the cells fit, or after two steps without gain.
        """
        energy = current.cells.energy.clamp_min(torch.finfo(torch.float64).tiny)
        fitted = 2 * current.objective <= ROUNDING**2 * energy
        ended = fitted | (current.calm >= 2)
        return torch.where(ended, 0.0, current.moved / energy.sqrt())

    def misfit(self, data: SparseObserved, state: ProjectedState, X: LowRank) -> Tensor:
        return 2 * state.objective

    def result(self, state: ProjectedState) -> RowModelResult:
        X, wide = LowRank(state.rows, state.elimination.W), self.is_wide
        left, F = (X.right, X.left) if wide else (X.left, X.right)
        scale = F.norm(dim=0) / len(F) ** 0.5
        scale = scale.clamp_min(torch.finfo(F.dtype).tiny ** 0.5)
        left, F = (left * scale).to(self.dtype), (F / scale).to(self.dtype)
        zero = F.new_zeros(F.shape[1])
        precision = NEARLY_ZERO * torch.eye(len(zero)).to(F)
        model = RowModel(F, F.new_zeros(len(F)), precision, zero)
        return RowModelResult(X=LowRank(left, F), models=[model])


def noise_around(data: SparseObserved, X: LowRank) -> float:
    """Variance of the cells around a matrix, over the remaining degrees of freedom."""
    rank = X.left.shape[1]
    spare = len(data.values) - rank * (sum(X.shape) - rank)
    return float(data.misfit(X)) / max(1, spare)


def with_posteriors(data: SparseObserved, X: LowRank, noise: float) -> RowModelResult:
    """Posterior means of the rows, then of the columns, and then of the rows again.

    Their priors are normal and the most likely ones for the cells.
    """
    cells, factors = _in_double(data), X.right.double()
    for side in (cells, cells.T, cells):
        model = _most_likely(side, factors, noise)
        factors = solved(side, model)
    model, rows = model.to(data.dtype), factors.to(data.dtype)
    return RowModelResult(X=LowRank(rows, model.F), models=[model])


def _most_likely(data: SparseObserved, F: Tensor, noise: float) -> RowModel:
    """The model of rows with the prior under which their cells are most likely, by EM.

    It starts from equal variances in all directions, because least squares of rows with
    few cells can be arbitrarily large.
    """
    F, rank = torch.linalg.qr(F).Q * len(F) ** 0.5, F.shape[1]
    variance = float(data.energy / data.n_observed) / rank
    eye, zero = torch.eye(rank).to(F), F.new_zeros(rank)
    model = RowModel(F, F.new_zeros(len(F)), noise / variance * eye, zero)
    for _ in range(EM_STEPS):
        model = with_uncertain_prior(data, model, noise)
    return model


def _exactness(data: SparseObserved, scaling: Scaling | None = None) -> float:
    """Relative distance from the cells of a matrix that fits them exactly.

    Cells of a large mean have been rounded in its units.
    """
    units = 1.0
    if scaling is not None:
        sizes = (scaling.shift.abs() / scaling.scale).nan_to_num(0.0, 0.0)
        units += float(sizes.max())
    return max(EXACT, 4 * units * torch.finfo(data.dtype).eps)


def _in_double(data: SparseObserved) -> SparseObserved:
    """The cells in double precision."""
    return data if data.dtype is torch.float64 else data.to(torch.float64)


def _is_wide(data: SparseObserved) -> bool:
    """Whether there are more columns than rows."""
    return data.shape[0] < data.shape[1]


def _normalized(state: ProjectedState) -> Tensor:
    """Factors of the columns for which those of the rows are orthogonal."""
    rows, W = state.rows, state.elimination.W
    R, (P, S) = torch.linalg.qr(rows, mode="r")[1], torch.linalg.qr(W)
    _, s, right = torch.linalg.svd(R @ S.mT)
    return P @ right.mT * s / len(rows) ** 0.5


def units_of(data: SparseObserved, how: str | None) -> Scaling:
    """One unit for all cells, or one for each column if these differ widely."""
    if how == "auto":
        scale = Scaling.of(data, "columns", centre=False).scale
        scale = scale[scale > 0]
        how = "global"
        if len(scale) and scale.quantile(0.95) > UNITS * scale.quantile(0.05):
            how = "columns"
    return Scaling.of(data, how, centre=False)


def certificate(
    data: SparseObserved, X: LowRank, tolerance: float | None = None
) -> tuple[Tensor, Tensor]:
    """The rows and the columns of which an exact fit determines all cells."""
    tolerance = _exactness(data) if tolerance is None else tolerance
    if _is_wide(data):
        cols, rows = certificate(data.T, X.mT, tolerance)
        return rows, cols
    data = _in_double(data)
    X, rank = LowRank(X.left.double(), X.right.double()), X.left.shape[1]
    none = [data.rows.new_zeros(size, dtype=torch.bool) for size in data.shape]
    misfit = data.residual(X)
    far = misfit.norm() > tolerance * data.energy.sqrt()
    if far or not bool(data.energy > 0) or rank >= min(data.shape):
        return none[0], none[1]
    rows, cols = _core(data, rank + 1)
    if not rows.any():
        return none[0], none[1]
    cells = data.only(rows[data.rows] & cols[data.cols])
    svd = svd_of(X)
    if svd.rank < rank:
        return none[0], none[1]
    U, W = (F * len(F) ** 0.5 for F in (svd.U, svd.V))
    system = Elimination.of(cells, W, U)
    solve = system.inverse(0.0, PRECISE, MOST_STEPS)
    if solve is None:
        return none[0], none[1]
    rng = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=W.dtype).to(W.device)

    # A change that leaves the cells as they are is left over by the solution.
    D = drawn(*W.shape)
    change = system.change(D - solve(system.system(D)))
    scaled = change.left @ (change.right[cols].mT @ change.right[cols])
    moved = (scaled * change.left).sum(1).clamp_min(0).sqrt()
    if bool((moved[rows] > STILL * len(W) ** 0.5).any()):
        return none[0], none[1]
    sizes = int(rows.sum()), int(cols.sum())
    stresses = []
    for _ in range(1 + -(-max(sizes) // min(sizes))):
        z = system.rest(drawn(len(cells.values)))
        stresses.append(z - system.rest(system.at(solve(system.pull(z)))))
    if bool((torch.stack(stresses).abs().amax(0) < REDUNDANT).any()):
        return none[0], none[1]
    if sizes[0] * sizes[1] * len(stresses) <= RIGID:
        place = rows.cumsum(0)[cells.rows] - 1, cols.cumsum(0)[cells.cols] - 1
        dense = [z.new_zeros(sizes).index_put_(place, z) for z in stresses]
        for axis in (0, 1):
            spectrum = torch.linalg.svdvals(torch.cat(dense, axis))
            if bool(spectrum[sizes[1 - axis] - rank - 1] <= REDUNDANT * spectrum[0]):
                return none[0], none[1]
    return _extended(data, U, W, rows, cols)


def _core(data: SparseObserved, count: int) -> tuple[Tensor, Tensor]:
    """Rows and columns with at least ``count`` cells in each other."""
    rows, cols = (
        torch.ones(size, dtype=torch.bool, device=data.device) for size in data.shape
    )
    while True:
        inside = (rows[data.rows] & cols[data.cols]).to(data.dtype)
        few = rows & (data.row_sums(inside) < count)
        rest = cols & (data.sums(inside, by_column=True)[0] < count)
        if not few.any() and not rest.any():
            return rows, cols
        rows, cols = rows & ~few, cols & ~rest


def _extended(
    data: SparseObserved, U: Tensor, W: Tensor, rows: Tensor, cols: Tensor
) -> tuple[Tensor, Tensor]:
    """Add the rows that their cells in these columns determine, and the reverse."""

    def more(cells: SparseObserved, F: Tensor, own: Tensor, other: Tensor) -> Tensor:
        sizes = torch.linalg.eigvalsh(grams(cells, F * other[:, None]))
        return own | (sizes[:, 0] > STILL**2 * sizes[:, -1].clamp_min(1.0))

    while True:
        before = int(rows.sum() + cols.sum())
        rows = more(data, W, rows, cols)
        cols = more(data.T, U, cols, rows)
        if int(rows.sum() + cols.sum()) == before:
            return rows, cols
