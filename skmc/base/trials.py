"""Choosing a hyper-parameter on held-out observed cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from skmc.linalg import Randomness
from skmc.loop import Solution, solve_part
from skmc.solvers import Solver

T = TypeVar("T")


class Trials:
    """Fits to nine tenths of the observed cells, compared on the others.

    The cells are split when the first trial asks for them. A ``KeyboardInterrupt``
    ends the choice with the best candidate so far, see `interrupted`.

    Parameters
    ----------
    split : callable
        Returns the cells to train on and the held-out ones, or None if there are too
        few to hold any out.
    rng : Randomness
        Random numbers of the fit.
    tol : float
        Tolerance of a trial, as of `skmc.solve`.
    check_every : int
        As of `skmc.solve`.

    Attributes
    ----------
    interrupted : bool
        Whether the user has interrupted a trial: the fit is to end, too.
    """

    def __init__(
        self,
        split: Callable[[], tuple[Any, Any]],
        rng: Randomness,
        tol: float = 0.0,
        check_every: int = 25,
    ):
        self.split, self.rng, self.tol, self.check_every = split, rng, tol, check_every
        self.interrupted = False

    @cached_property
    def cells(self) -> tuple[Any, Any]:
        """The cells to train on, and those held out or None."""
        return self.split()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """End this block at a ``KeyboardInterrupt``, and remember that there was one.

        Yields
        ------
        None
        """
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    def run(self, solver: Solver, **params: Any) -> Solution:
        """Fit the cells to train on.

        Parameters
        ----------
        solver : Solver
            One candidate's.
        **params : dict
            As of `skmc.solve`, if other than those of the fit.

        Returns
        -------
        Solution
        """
        limits = {"tol": self.tol, "check_every": self.check_every, **params}
        return solve_part(solver, self.cells[0], **limits)

    def error(self, solution: Solution) -> float:
        """Sum of squared errors over the held-out cells.

        Parameters
        ----------
        solution : Solution
            Of a trial.

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
    ) -> T:
        """The candidate that completes the held-out cells best.

        Parameters
        ----------
        candidates : iterable
            Tried in order, until the error has risen ``patience`` times in a row. With
            too few cells to hold any out, the first one is taken.
        solver_of : callable
            Makes a solver from a candidate and the cells to train on.
        max_iter : int
            Iterations of a trial.
        patience : int, default=2
            Failures in a row that end the search.

        Returns
        -------
        candidate
        """
        candidates = iter(candidates)
        best = next(candidates)
        if self.interrupted or self.cells[1] is None:
            return best
        lowest, risen = math.inf, 0
        with self.interruptible():
            for candidate in itertools.chain([best], candidates):
                solver = solver_of(candidate, self.cells[0])
                error = self.error(self.run(solver, max_iter=max_iter))
                if error < lowest:
                    best, lowest, risen = candidate, error, 0
                else:
                    risen += 1
                if risen == patience:
                    break
        return best
