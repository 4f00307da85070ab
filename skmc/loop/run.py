"""The iteration loop of the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from skmc.cells import Observed, SparseObserved
from skmc.linalg import threads_for
from skmc.loop.answers import Answers
from skmc.loop.scope import STORE, Work, seconds_left
from skmc.loop.solution import Callback, Progress, Solution, Status, StopRule
from skmc.solvers import Result, Solver, State

# Attributes that a checkpoint stores.


class Run:
    """The state of a solve, which can be advanced, stored and resumed; see `solve`.

    Parameters
    ----------
    solver : Solver
        Defines one step.
    data : Observed or SparseObserved
        Observed cells.
    tol : float, default=0.0
        Largest residual of a converged member.
    stop : sequence of StopRule, default=()
        Rules that end members early.
    callbacks : sequence of Callback, default=()
        Functions that are called with the `Progress` at every check.
    check_every : int, default=25
        Number of steps between checks.
    compact : bool, default=False
        Whether to drop finished members from the batch once they are a quarter of it,
        so that the cost is that of the running members. It needs a single batch axis,
        and a solver and stop rules with a method ``select``.
    """

    @torch.no_grad()
    def __init__(
        self,
        solver: Solver,
        data: Observed | SparseObserved,
        *,
        tol: float = 0.0,
        stop: Sequence[StopRule] = (),
        callbacks: Sequence[Callback] = (),
        check_every: int = 25,
        compact: bool = False,
    ):
        self.solver, self.data, self.tol = solver, data, tol
        self.stop, self.callbacks = list(stop), callbacks
        self.check_every, self.compact = check_every, compact
        with threads_for(data.work, solver.workload):
            self.state = solver.init(data)
        self.iteration = 0
        self.answers = Answers(solver.result(self.state), data)
        self.history: list[tuple[Tensor, dict[str, Tensor]]] = []

    def work(self) -> Work:
        """Return the data needed to resume the solve at this iteration."""
        answers = self.answers.stored()
        return Work(self.iteration, self.state, self.history, answers, self._memory())

    def resume(self, work: Work) -> None:
        """Continue from the work of another run of the same solve."""
        self.iteration, self.history = work.iteration, work.history
        self.answers.restore(work.answers)
        self.state = self.solver.resume(self.data, work.state)
        for memory, old in zip(self._memory(), work.memory, strict=True):
            memory.update(old)

    def _memory(self) -> list[dict[str, Any]]:
        return [rule.memory for rule in self.stop if hasattr(rule, "memory")]

    @torch.no_grad()
    def advance(
        self, until: int, offer: Callable[[Callable[[], Work]], None] | None = None
    ) -> None:
        """Run up to iteration ``until``, which is followed by a check."""
        if not self.answers.running.any():
            return
        try:
            with threads_for(self.data.work, self.solver.workload):
                self._steps(until, offer)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            # The decomposed matrix is no longer finite.
            if self.answers.running.sum() > 1:
                raise
            self.answers.mark_diverged(self.iteration)
        except KeyboardInterrupt:
            result = self.solver.result(self.state)
            self.answers.interrupt(result, self._valid(result))

    def _steps(
        self, until: int, offer: Callable[[Callable[[], Work]], None] | None
    ) -> None:
        while self.iteration < until:
            if offer is not None:
                offer(self.work)
            previous = progress = None  # frees the state before the last step
            previous = self.state
            self.state = self.solver.step(self.data, previous)
            self.iteration = n_iter = self.iteration + 1
            late = n_iter != until and seconds_left() <= 0
            if n_iter % self.check_every and n_iter != until and not late:
                continue
            progress = self.check(previous)
            for callback in self.callbacks:
                callback(progress)
            if late:
                self.answers.end(self.answers.running, Status.MAX_TIME)
            if not self.answers.running.any():
                break
            if self.compact:
                self.drop_finished()

    def check(self, previous: State) -> Progress:
        """Evaluate residuals, stop rules and history of the current iterate."""
        answers, state, n_iter = self.answers, self.state, self.iteration
        result = self.solver.result(state)
        valid = self._valid(result)
        residual = self.solver.residual(self.data, previous, state)
        answers.update(result, state.objective, residual, n_iter, valid)

        record = {
            "n_iter": torch.tensor(n_iter),
            "objective": state.objective,
            "residual": residual,
            **self.solver.record(state),
        }
        progress = Progress(
            n_iter=n_iter,
            state=state,
            result=result,
            running=answers.running,
            record=record,
        )
        answers.end(answers.running & (residual <= self.tol), Status.CONVERGED)
        for rule in self.stop:
            stopped = rule(progress)
            if progress.pinned is not None:
                answers.pin(progress.pinned & progress.running, result)
                progress.pinned = None
            answers.end(answers.running & stopped, Status.STOPPED)
        self.history.append((answers.members, record))
        return progress

    def _valid(self, result: Result) -> Tensor:
        """Find the members whose iterate is finite and not too far from the data."""
        misfit = self.solver.misfit(self.data, self.state, result.X)
        return torch.isfinite(self.state.objective) & (misfit <= self.answers.limit)

    def drop_finished(self) -> None:
        """Remove the finished members from the batch if they are a quarter of it."""
        kept = self.answers.drop_finished()
        if kept is None:
            return
        self.data = cast(Observed, self.data).select(kept)  # it has a batch axis
        self.state = self.solver.select(self.state, kept)
        for rule in self.stop:
            rule.select(kept)  # type: ignore[attr-defined]

    def solution(self) -> Solution:
        """Return the current solution; running members have status ``MAX_ITER``."""
        return self.answers.solution(self.history)


def solve(
    solver: Solver,
    data: Observed | SparseObserved,
    *,
    max_iter: int,
    tol: float = 0.0,
    stop: Sequence[StopRule] = (),
    callbacks: Sequence[Callback] = (),
    check_every: int = 25,
) -> Solution:
    """Run a solver until every batch member has finished.

    Parameters
    ----------
    solver : Solver
        Defines one step.
    data : Observed of shape (\\*batch, n_rows, n_cols), or SparseObserved
        Observed cells.
    max_iter : int
        Maximum number of steps.
    tol : float, default=0.0
        Largest residual of a converged member, which ends with ``CONVERGED``.
    stop : sequence of stop rules, default=()
        Functions that map a `Progress` to the members to end with ``STOPPED``.
    callbacks : sequence of callables, default=()
        Functions that are called with the `Progress`; return values are ignored.
    check_every : int, default=25
        Number of steps between checks. A check evaluates residuals, stop rules,
        callbacks and history. The last step is followed by a check. Between checks,
        nothing waits for the device.

    Returns
    -------
    Solution
        A stopped member keeps its last iterate. A diverged member (not finite, or 1000
        times further from the observed cells than zero is) gets its finite iterate
        with the lowest objective. A ``KeyboardInterrupt`` ends the loop with the
        current iterates (``INTERRUPTED``) and is not raised again. Members that run
        when the time of `time_limit` has passed end with ``MAX_TIME``.

    Raises
    ------
    torch.linalg.LinAlgError
        A decomposition failed, and it is unknown for which of several members. If there
        is a single member, it has diverged instead.

    See Also
    --------
    skmc.loop.Solution : What it returns.
    skmc.solvers.Solver : What it runs.
    """
    run = Run(
        solver, data, tol=tol, stop=stop, callbacks=callbacks, check_every=check_every
    )
    store = STORE.get()
    if store is None:
        run.advance(max_iter)
        return run.solution()
    # This comes after init, which may advance a random generator that is shared.
    stored = store.begin(solver, data)
    if isinstance(stored, Solution):
        return stored
    if stored is not None:
        run.resume(stored)
    run.advance(max_iter, store.offer)
    solution = run.solution()
    if Status.INTERRUPTED not in solution.status:
        store.finish(solution)
    return solution


def solve_part(
    solver: Solver, data: Observed | SparseObserved, **params: Any
) -> Solution:
    """Call `solve`, and raise ``KeyboardInterrupt`` if it was interrupted.

    This is for solves that are part of a longer computation.
    """
    solution = solve(solver, data, **params)
    if Status.INTERRUPTED in solution.status:
        raise KeyboardInterrupt
    return solution
