"""The iteration loop of the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from skmc.observed import Observed
from skmc.solvers.solver import Solver, State
from skmc.sparse_observed import SparseObserved

# An iterate this many times further from the observed cells than zero is, is lost.
DIVERGED_AT = 1e3


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"
    STOPPED = "stopped"
    MAX_ITER = "max_iter"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"


@dataclass
class Progress:
    """What stop rules and callbacks see at every check."""

    n_iter: int
    data: Observed | SparseObserved
    solver: Solver
    state: State
    outputs: dict[str, Any]  # of the solver for this state
    residual: Tensor  # (*batch,)
    running: Tensor  # (*batch,) bool
    record: dict[str, Tensor]  # this check's row of the history
    pinned: Tensor | None = None

    def keep(self, members: Tensor) -> None:
        """Make this iterate the answer of ``members``, whatever comes after."""
        self.pinned = members


StopRule = Callable[[Progress], Tensor]  # -> (*batch,) bool, who should stop
Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Solution:
    """The answer, and how it was come by. Every array has the batch axes in front."""

    outputs: dict[str, Any]
    status: list[Status]  # one per member, in row-major order of the batch axes
    n_iter: Tensor  # (*batch,)
    residual: Tensor  # (*batch,), at the last check
    history: dict[str, Tensor] = field(repr=False)  # name -> (n_checks, *batch)

    @property
    def X(self) -> Any:
        return self.outputs["X"]

    @classmethod
    def before(cls, data: Observed | SparseObserved) -> Solution:
        """Interrupted before the first step: zero everywhere."""
        count = torch.zeros_like(data.n_observed)
        status = [Status.INTERRUPTED] * count.numel()
        return cls({"X": data.zero()}, status, count, count + torch.inf, {})


@dataclass
class Work:
    """A solve between two steps, and all that it takes to go on."""

    n_iter: int
    state: Any
    run: _Run
    memory: list[dict[str, Any]]  # of the stop rules that have any


class Keeper(Protocol):
    """Keeps solves, so that they can be taken up again after a crash."""

    def begin(self, solver: Solver, data: Any) -> Work | Solution | None:
        """What is known of the solve that begins now."""

    def offer(self, work: Callable[[], Work]) -> None:
        """Called before every step."""

    def finish(self, solution: Solution) -> None: ...


KEEPER: ContextVar[Keeper | None] = ContextVar("skmc_keeper", default=None)


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
    """Iterate until every member of the batch has ended.

    Parameters
    ----------
    solver : Solver
        What one step is.
    data : Observed of shape (\\*batch, n_rows, n_cols), or SparseObserved
        The observed cells.
    max_iter : int
        Steps at most.
    tol : float
        A member ends as ``CONVERGED`` once its residual is at most ``tol``.
    stop : sequence of stop rules
        Each maps a `Progress` to the members that should end (``STOPPED``).
    callbacks : sequence of callables
        Each is shown the `Progress`; what it returns is ignored.
    check_every : int
        Residuals, stop rules, callbacks and history are evaluated every so many
        steps and after the last: in between, nothing waits for the device.

    Returns
    -------
    Solution
        A member which stopped keeps the iterate it stopped at. One which diverged
        (not finite, or 1000 times further from the observed cells than zero is) gets
        its finite iterate of lowest objective. A ``KeyboardInterrupt`` ends the loop
        with the iterates so far (``INTERRUPTED``); it is not raised again.
    """
    keeper = KEEPER.get()
    memory = [rule.memory for rule in stop if hasattr(rule, "memory")]
    with torch.no_grad():
        state = solver.init(data)
        run = _Run(solver, data, state)
        done = n_iter = 0
        if keeper is not None:
            # After init, which may draw from a generator that others draw from, too.
            kept = keeper.begin(solver, data)
            if isinstance(kept, Solution):
                return kept
            if kept is not None:
                done, run = kept.n_iter, kept.run
                state = solver.resume(data, kept.state)
                for own, old in zip(memory, kept.memory, strict=True):
                    own.update(old)
        try:
            for n_iter in range(done + 1, max_iter + 1):
                if keeper is not None:
                    keeper.offer(partial(Work, n_iter - 1, state, run, memory))
                previous = state  # lets go of the one before
                state = solver.step(data, previous)
                if n_iter % check_every and n_iter != max_iter:
                    continue
                progress = run.check(n_iter, previous, state, tol, stop)
                for callback in callbacks:
                    callback(progress)
                if not run.running.any():
                    break
            run.end(run.running, Status.MAX_ITER)
        except torch.linalg.LinAlgError:  # of what is not finite any more
            run.lose(n_iter)
        except KeyboardInterrupt:
            run.interrupt(state)
    solution = run.solution()
    if keeper is not None and Status.INTERRUPTED not in solution.status:
        keeper.finish(solution)
    return solution


def solve_part(
    solver: Solver, data: Observed | SparseObserved, **params: Any
) -> Solution:
    """`solve` as a part of something longer, which an interruption ends as well."""
    solution = solve(solver, data, **params)
    if Status.INTERRUPTED in solution.status:
        raise KeyboardInterrupt
    return solution


class _Run:
    """The answers, statuses and history of the members of one solve."""

    def __init__(self, solver: Solver, data: Observed | SparseObserved, state: State):
        self.solver, self.data = solver, data
        batch, device = data.batch_shape, data.values.device
        self.answer = self.best = {
            name: value.clone() if isinstance(value, Tensor) else value
            for name, value in solver.outputs(state).items()
        }
        self.best_objective = torch.full_like(data.n_observed, torch.inf)
        self.running = torch.ones(batch, dtype=torch.bool, device=device)
        self.pinned = torch.zeros_like(self.running)
        self.status = torch.zeros(batch, dtype=torch.long, device=device)
        self.n_iter = torch.zeros_like(self.status)
        self.residual = torch.full_like(self.best_objective, torch.inf)
        self.history: list[dict[str, Tensor]] = []
        self.limit = DIVERGED_AT**2 * torch.maximum(data.energy, data.n_observed)

    def check(self, n_iter, previous, state, tol, stop) -> Progress:
        running = self.running
        outputs = self.solver.outputs(state)
        lost = running & ~self.sound(state, outputs["X"])
        residual = self.solver.residual(self.data, previous, state)
        self.residual = torch.where(running, residual, self.residual)
        self.n_iter = torch.where(running, n_iter, self.n_iter)

        better = running & ~lost & (state.objective < self.best_objective)
        self.best = _where(better, outputs, self.best)
        self.best_objective = torch.where(better, state.objective, self.best_objective)
        self.answer = _where(running & ~lost & ~self.pinned, outputs, self.answer)
        self.answer = _where(lost & ~self.pinned, self.best, self.answer)
        self.end(lost, Status.DIVERGED)

        record = {
            "n_iter": torch.tensor(n_iter),
            "objective": state.objective,
            "residual": residual,
        }
        progress = Progress(
            n_iter=n_iter,
            data=self.data,
            solver=self.solver,
            state=state,
            outputs=outputs,
            residual=residual,
            running=self.running,
            record=record,
        )
        self.end(self.running & (residual <= tol), Status.CONVERGED)
        for rule in stop:
            wish = rule(progress)
            if progress.pinned is not None:
                chosen = progress.pinned & progress.running
                self.answer = _where(chosen, outputs, self.answer)
                self.pinned = self.pinned | chosen
                progress.pinned = None
            self.end(self.running & wish, Status.STOPPED)
        self.history.append(record)
        return progress

    def sound(self, state: State, X: Any) -> Tensor:
        """Members whose iterate is finite and not lost far from the data."""
        misfit = self.data.misfit(X)
        return torch.isfinite(state.objective) & (misfit <= self.limit)

    def lose(self, n_iter: int) -> None:
        """All who are running have diverged."""
        self.n_iter = torch.where(self.running, n_iter, self.n_iter)
        self.answer = _where(self.running & ~self.pinned, self.best, self.answer)
        self.end(self.running, Status.DIVERGED)

    def interrupt(self, state: State) -> None:
        free = self.running & ~self.pinned
        outputs = self.solver.outputs(state)
        sound = self.sound(state, outputs["X"])
        self.answer = _where(free & sound, outputs, self.answer)
        self.answer = _where(free & ~sound, self.best, self.answer)
        self.end(self.running, Status.INTERRUPTED)

    def end(self, members: Tensor, status: Status) -> None:
        self.status = torch.where(members, list(Status).index(status), self.status)
        self.running = self.running & ~members

    def solution(self) -> Solution:
        names = self.history[0] if self.history else {}
        return Solution(
            outputs=self.answer,
            status=[list(Status)[code] for code in self.status.flatten().tolist()],
            n_iter=self.n_iter,
            residual=self.residual,
            history={
                name: torch.stack([row[name] for row in self.history]) for name in names
            },
        )


def _where(members: Tensor, new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """``new`` for the chosen members, ``old`` for the others."""
    if members.ndim == 0:
        return new if members else old
    return {
        name: torch.where(members[..., None, None], new[name], old[name])
        for name in old
    }
