"""The iteration loop of the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Observed, SparseObserved
from skmc.linalg import threads_for
from skmc.loop.graphed import Graphed, capture_for
from skmc.loop.scope import Work
from skmc.loop.solution import (
    Callback,
    Progress,
    Solution,
    Status,
    StopRule,
    tensorwise,
)
from skmc.loop.time_limit import seconds_left
from skmc.solvers import Solver, State

# An iterate has diverged if its distance from the observed cells is this many times
# that of zero.
DIVERGENCE_FACTOR = 1e3
# Finished members are dropped from a batch once they are this share of it.
DROP_SHARE = 0.25
# Attributes of a run that a checkpoint stores.
STORED = (
    "iteration",
    "state",
    "answer",
    "best",
    "best_objective",
    "running",
    "pinned",
    "status",
    "n_iter",
    "residual",
    "history",
)


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
        with self.threads():
            self.state = solver.init(data)
        self.iteration = 0
        batch, device = data.batch_shape, data.values.device
        self.answer = self.best = {
            name: value.clone() if isinstance(value, Tensor) else value
            for name, value in solver.outputs(self.state).items()
        }
        self.best_objective = torch.full_like(data.n_observed, torch.inf)
        self.running = torch.ones(batch, dtype=torch.bool, device=device)
        self.pinned = torch.zeros_like(self.running)
        self.status = torch.zeros(batch, dtype=torch.long, device=device)
        self.n_iter = torch.zeros_like(self.status)
        self.residual = torch.full_like(self.best_objective, torch.inf)
        self.history: list[tuple[Tensor, dict[str, Tensor]]] = []
        self.limit = DIVERGENCE_FACTOR**2 * torch.maximum(data.energy, data.n_observed)
        self.members = torch.arange(self.running.numel(), device=device)
        self.dropped: list[dict[str, Any]] = []
        self.graphed = self._graphed()

    def _graphed(self) -> Graphed | None:
        if (capture := capture_for(self.data)) is None:
            return None
        return Graphed(self.solver, self.data, self.check_every, capture)

    def work(self) -> Work:
        """Return what is needed to resume the solve at this iteration.

        Returns
        -------
        Work
        """
        return Work({name: getattr(self, name) for name in STORED}, self._memory())

    def resume(self, work: Work) -> None:
        """Continue from the work of another run of the same solve.

        Parameters
        ----------
        work : Work
            Result of `work` of the other run.
        """
        vars(self).update(work.run)
        self.state = self.solver.resume(self.data, self.state)
        for own, old in zip(self._memory(), work.memory, strict=True):
            own.update(old)

    def _memory(self) -> list[dict[str, Any]]:
        return [rule.memory for rule in self.stop if hasattr(rule, "memory")]

    @torch.no_grad()
    def advance(
        self, until: int, offer: Callable[[Callable[[], Work]], None] | None = None
    ) -> None:
        """Run up to iteration ``until``, which is followed by a check.

        Parameters
        ----------
        until : int
            Number of the last iteration.
        offer : callable or None, default=None
            Function that is called before every step with the method `work`.

        Raises
        ------
        torch.linalg.LinAlgError
            A decomposition failed, and it is unknown for which of several members.
        """
        if not self.running.any():
            return
        try:
            with self.threads():
                self._steps(until, offer)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            # The decomposed matrix is no longer finite.
            if self.running.sum() > 1:
                raise
            self.mark_diverged()
        except KeyboardInterrupt:
            self.interrupt()

    def _steps(
        self, until: int, offer: Callable[[Callable[[], Work]], None] | None
    ) -> None:
        while self.iteration < until:
            if offer is not None:
                offer(self.work)
            previous = self._move(until)  # frees the state before it
            n_iter = self.iteration
            late = n_iter != until and seconds_left() <= 0
            if n_iter % self.check_every and n_iter != until and not late:
                continue
            progress = self.check(previous)
            for callback in self.callbacks:
                callback(progress)
            if late:
                self.end(self.running, Status.MAX_TIME)
            if not self.running.any():
                break
            if self.compact:
                self.drop_finished()

    def _move(self, until: int) -> State:
        """Take one step, or inside of `cuda_graphs` all steps up to the next check.

        Returns the state before the last step.
        """
        ahead = self.check_every
        whole = self.iteration % ahead == 0 and self.iteration + ahead <= until
        if self.graphed is not None and whole:
            moved = self.graphed(self.state)
            if moved is not None:
                self.iteration += ahead
                previous, self.state = moved
                return previous
        previous = self.state
        self.iteration += 1
        self.state = self.solver.step(self.data, previous)
        return previous

    def threads(self) -> AbstractContextManager[None]:
        """Return the context with as many threads as steps on the data pay for.

        Returns
        -------
        context manager
        """
        return threads_for(self.data.work, self.solver.workload)

    def check(self, previous: State) -> Progress:
        """Evaluate residuals, stop rules and history of the current iterate.

        Parameters
        ----------
        previous : State
            State before the last step.

        Returns
        -------
        Progress
        """
        running, state, n_iter = self.running, self.state, self.iteration
        kept = dict if self.graphed is None else self.graphed.kept
        outputs = kept(self.solver.outputs(state))
        diverged = running & ~self.valid(state, outputs["X"])
        residual = self.solver.residual(self.data, previous, state)
        self.residual = torch.where(running, residual, self.residual)
        self.n_iter = torch.where(running, n_iter, self.n_iter)

        better = running & ~diverged & (state.objective < self.best_objective)
        self.best = _where(better, outputs, self.best)
        self.best_objective = torch.where(better, state.objective, self.best_objective)
        self.answer = _where(running & ~diverged & ~self.pinned, outputs, self.answer)
        self.answer = _where(diverged & ~self.pinned, self.best, self.answer)
        self.end(diverged, Status.DIVERGED)

        record = {
            "n_iter": torch.tensor(n_iter),
            **kept({"objective": state.objective}),
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
        self.end(self.running & (residual <= self.tol), Status.CONVERGED)
        for rule in self.stop:
            stopped = rule(progress)
            if progress.pinned is not None:
                chosen = progress.pinned & progress.running
                self.answer = _where(chosen, outputs, self.answer)
                self.pinned = self.pinned | chosen
                progress.pinned = None
            self.end(self.running & stopped, Status.STOPPED)
        self.history.append((self.members, record))
        return progress

    def valid(self, state: State, X: Any) -> Tensor:
        """Find the members whose iterate is finite and not too far from the data.

        Parameters
        ----------
        state : State
            Current state.
        X : object
            Completion in this state.

        Returns
        -------
        bool Tensor of shape (\\*batch,)
        """
        misfit = self.solver.misfit(self.data, state, X)
        return torch.isfinite(state.objective) & (misfit <= self.limit)

    def mark_diverged(self) -> None:
        """End all running members as diverged."""
        self.n_iter = torch.where(self.running, self.iteration, self.n_iter)
        self.answer = _where(self.running & ~self.pinned, self.best, self.answer)
        self.end(self.running, Status.DIVERGED)

    def interrupt(self) -> None:
        """End all running members; their answers are the current iterates."""
        free = self.running & ~self.pinned
        outputs = self.solver.outputs(self.state)
        valid = self.valid(self.state, outputs["X"])
        self.answer = _where(free & valid, outputs, self.answer)
        self.answer = _where(free & ~valid, self.best, self.answer)
        self.end(self.running, Status.INTERRUPTED)

    def end(self, members: Tensor, status: Status) -> None:
        """End some members.

        Parameters
        ----------
        members : bool Tensor of shape (\\*batch,)
            Members to end.
        status : Status
            Their final status.
        """
        self.status = torch.where(members, list(Status).index(status), self.status)
        self.running = self.running & ~members

    def drop_finished(self) -> None:
        """Remove the finished members from the batch if they are a quarter of it."""
        kept, finished = (m.nonzero()[:, 0] for m in (self.running, ~self.running))
        if len(finished) < DROP_SHARE * len(self.running):
            return
        self.dropped.append(self._results(finished))
        vars(self).update(self._results(kept))
        self.best = _take(self.best, kept)
        for name in ("best_objective", "limit", "running", "pinned"):
            setattr(self, name, getattr(self, name)[kept])
        assert isinstance(self.data, Observed)  # has a batch axis
        self.data = self.data.select(kept)
        self.state = self.solver.select(self.state, kept)
        self.graphed = self._graphed()
        for rule in self.stop:
            rule.select(kept)  # type: ignore[attr-defined]

    def _results(self, members: Tensor) -> dict[str, Any]:
        names = ("members", "status", "n_iter", "residual")
        results = {name: getattr(self, name)[members] for name in names}
        return {"answer": _take(self.answer, members), **results}

    def solution(self) -> Solution:
        """Return the current solution; running members have status ``MAX_ITER``.

        Returns
        -------
        Solution
        """
        last = list(Status).index(Status.MAX_ITER)
        status = torch.where(self.running, last, self.status)
        whole = {"status": status, "n_iter": self.n_iter, "residual": self.residual}
        answer = self.answer
        if self.dropped:
            present = {"members": self.members, "answer": answer, **whole}
            parts = [*self.dropped, present]
            order = torch.cat([part["members"] for part in parts]).argsort()
            whole = {k: torch.cat([p[k] for p in parts])[order] for k in whole}
            answer = {
                k: tensorwise(
                    lambda *each: torch.cat(each)[order],
                    *(part["answer"][k] for part in parts),
                )
                for k in answer
            }
        names = self.history[0][1] if self.history else {}
        rows = [_spread(*row, whole["status"]) for row in self.history]
        return Solution(
            outputs=answer,
            status=[list(Status)[code] for code in whole["status"].flatten().tolist()],
            n_iter=whole["n_iter"],
            residual=whole["residual"],
            history={name: torch.stack([row[name] for row in rows]) for name in names},
        )


def _take(outputs: dict[str, Any], members: Tensor) -> dict[str, Any]:
    return {k: tensorwise(lambda v: v[members], v) for k, v in outputs.items()}


def _spread(
    members: Tensor, record: dict[str, Tensor], all_members: Tensor
) -> dict[str, Tensor]:
    """Return a row of the history for all members, NaN for dropped ones."""
    if len(members) == all_members.numel():
        return record
    spread = dict(record)
    for name, value in record.items():
        if value.ndim:
            spread[name] = value.new_full(all_members.shape, torch.nan)
            spread[name][members] = value
    return spread


def _where(members: Tensor, new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """Return ``new`` for the chosen members and ``old`` for the others."""
    if members.ndim == 0:
        return new if members else old
    chosen = partial(torch.where, members[..., None, None])
    return {name: tensorwise(chosen, new[name], old[name]) for name in old}
