"""The choice of a hyper-parameter on held-out observed cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from skmc.linalg import Randomness
from skmc.loop import OutOfTime, Solution, seconds_left, solve_part
from skmc.solvers import Solver

HELD_OUT_SHARE = 0.1  # of the observed cells, for comparing candidates
NEGLIGIBLE = 1e-9  # share of the squares of held-out cells
EXACT = 1e-4  # share of those squares within which a trial recovers the matrix
CHOICE_SHARE = 0.5  # of max_time, for the choice of hyper-parameters

T = TypeVar("T")


@dataclass(eq=False)
class Trials:
    """Fits to nine tenths of the observed cells, compared on the other tenth.

    The cells are split before the first trial. A ``KeyboardInterrupt`` ends the choice
    with the best candidate so far, see `interrupted`.

    Parameters
    ----------
    split : callable
        Function that returns the cells to train on and the held-out cells. The latter
        are None if there are too few cells to hold any out.
    rng : Randomness
        Random numbers of the fit.
    tol : float, default=0.0
        Tolerance of a trial, see `skmc.solve`.
    check_every : int, default=25
        Iterations between checks of a trial, see `skmc.solve`.
    known : mapping of str to array, default={}
        Graphs that `fit` was given.
    scaling : Scaling or None, default=None
        Scaling of the cells.
    first_columns : int ndarray of shape (n_cols,) or None, default=None
        For each column of a matrix that represents a table, the first column that
        represents the same cell.

    Attributes
    ----------
    interrupted : bool
        Whether the user has interrupted a trial, so that the fit ends as well.
    lowest : float
        Lowest error in the last search; infinite if nothing was tried.
    solution : Solution or None
        Solution of the best candidate in the last search.

    See Also
    --------
    Choice : What a search on held-out cells returns.
    """

    split: Callable[[], tuple[Any, Any]]
    rng: Randomness
    tol: float = 0.0
    check_every: int = 25
    known: Mapping[str, Any] = field(default_factory=dict)
    scaling: Any = None
    first_columns: Any = None
    interrupted: bool = field(default=False, init=False)
    lowest: float = field(default=math.inf, init=False)
    solution: Solution | None = field(default=None, init=False)
    n_solutions: int = field(default=0, init=False)

    @cached_property
    def cells(self) -> tuple[Any, Any]:
        """The cells to train on, and the held-out cells or None."""
        try:
            return self.split()
        except KeyboardInterrupt:
            self.interrupted = True
            return None, None

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """End this block at a ``KeyboardInterrupt``, or if there is no time left.

        A ``KeyboardInterrupt`` sets `interrupted`.

        Yields
        ------
        None
        """
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True
        except OutOfTime:
            pass  # the best candidate so far is used

    def run(self, solver: Solver, train: Any = None, **params: Any) -> Solution:
        """Fit one candidate to the cells to train on.

        Parameters
        ----------
        solver : Solver
            Solver of the candidate.
        train : Observed or None, default=None
            Cells to train on. None is those of `cells`.
        **params : dict
            Parameters of `skmc.solve` that differ from those of this object.

        Returns
        -------
        Solution

        Raises
        ------
        OutOfTime
            Time has passed, and this is not the first trial.
        """
        train = self.cells[0] if train is None else train
        if self.interrupted:
            raise KeyboardInterrupt
        if self.n_solutions and seconds_left() <= 0:
            raise OutOfTime
        self.n_solutions += 1
        limits = {"tol": self.tol, "check_every": self.check_every, **params}
        return solve_part(solver, train, **limits)

    def error(self, solution: Solution) -> float:
        """Return the sum of squared errors over the held-out cells.

        Parameters
        ----------
        solution : Solution
            Solution of a trial.

        Returns
        -------
        float
        """
        return float(self.cells[1].misfit(solution.X))

    def best(
        self,
        candidates: Iterable[T],
        solver_of: Callable[[T, Any], Solver],
        *,
        max_iter: int,
        patience: int = 2,
        penalized: Callable[[T, Solution], float] | None = None,
    ) -> T:
        """Choose the candidate that completes the held-out cells best.

        Parameters
        ----------
        candidates : iterable
            Candidates in the order in which they are tried. The first one is returned
            if there are too few cells to hold any out.
        solver_of : callable
            Function that makes a solver from a candidate and the cells to train on.
        max_iter : int
            Maximum number of iterations of a trial.
        patience : int, default=2
            Number of consecutive candidates without a lower error that end the search.
        penalized : callable or None, default=None
            Function of a candidate and its solution that returns the share of the
            completed matrix that is penalized. It decides between candidates that
            recover the held-out cells exactly.

        Returns
        -------
        candidate
        """
        candidates = iter(candidates)
        best = next(candidates)
        self.lowest, self.solution, failures = math.inf, None, 0
        if self.interrupted or self.cells[1] is None:
            return best
        with self.interruptible():
            for candidate in itertools.chain([best], candidates):
                solver = solver_of(candidate, self.cells[0])
                solution = self.run(solver, max_iter=max_iter)
                error, energy = self.error(solution), float(self.cells[1].energy)
                if penalized and error < EXACT * energy:
                    error = EXACT * energy * penalized(candidate, solution)
                # Below this, a smaller error is a matter of rounding.
                least = NEGLIGIBLE * energy
                if error < self.lowest - least:
                    best, self.lowest, failures = candidate, error, 0
                    self.solution = solution
                else:
                    failures += 1
                if failures == patience:
                    break
        return best


@dataclass(frozen=True)
class Choice:
    """Hyper-parameters chosen on held-out cells.

    Parameters
    ----------
    params : dict of str to object, default={}
        Values that replace those of the constructor.
    start : object, default=None
        Where the solver of the fit starts, as the solution of the best trial does.
    noise : tuple of float or None, default=None
        Variance of the cells of rows, and of columns, around a low-rank completion.
        The missing cells are then their posterior means given the others in their row
        (or column, if there are fewer rows). For factors, None leaves out the columns.
    hurried : bool, default=False
        Whether the time was too short to try all candidates.
    interrupted : bool, default=False
        Whether the user has interrupted the choice.

    See Also
    --------
    Trials : Compares candidates on held-out cells.
    """

    params: dict[str, Any] = field(default_factory=dict)
    start: Any = None
    noise: tuple[float, float | None] | None = None
    hurried: bool = False
    interrupted: bool = False
