"""The iteration loop of the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Observed, SparseObserved
from skmc.loop.scope import Work
from skmc.loop.solution import Callback, Progress, Solution, Status, StopRule
from skmc.solvers import Solver, State

# An iterate this many times further from the observed cells than zero is, is lost.
DIVERGED_AT = 1e3
# Members that ended leave a batch when they are this share of it.
SPARSE = 0.25
# What a run has come to, but for its stop rules.
WORK = (
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
    """A solve under way: `solve` says what the parameters are.

    With ``compact=True``, which is for a single batch axis, members that ended leave
    the batch once they are more than a quarter of it, so that the cost follows the
    living; the solver and the stop rules must know `select`.

    Parameters
    ----------
    solver : Solver
        What one step is.
    data : Observed or SparseObserved
        The observed cells.
    tol : float, default=0.0
        As of `solve`.
    stop : sequence of StopRule, default=()
        As of `solve`.
    callbacks : sequence of Callback, default=()
        As of `solve`.
    check_every : int, default=25
        As of `solve`.
    compact : bool, default=False
        Whether members that have ended leave the batch.
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
        self.limit = DIVERGED_AT**2 * torch.maximum(data.energy, data.n_observed)
        self.members = torch.arange(self.running.numel(), device=device)
        self.gone: list[dict[str, Any]] = []

    def work(self) -> Work:
        """What has to be kept to go on from here.

        Returns
        -------
        Work
        """
        return Work({name: getattr(self, name) for name in WORK}, self._memory())

    def resume(self, work: Work) -> None:
        """Be where another run of the same solve was.

        Parameters
        ----------
        work : Work
            What the other run kept.
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
        """Take steps up to the ``until``-th; the last one is followed by a check.

        ``offer`` is called before every step with what gives the work so far.

        Parameters
        ----------
        until : int
            Steps in all.
        offer : callable, None] or None, default=None
            Called before every step with what makes the `Work`.

        Raises
        ------
        torch.linalg.LinAlgError
            A decomposition failed, and which of several members it was is not known.
        """
        if not self.running.any():
            return
        try:
            for n_iter in range(self.iteration + 1, until + 1):
                if offer is not None:
                    offer(self.work)
                previous = self.state  # lets go of the one before
                self.iteration = n_iter
                self.state = self.solver.step(self.data, previous)
                if n_iter % self.check_every and n_iter != until:
                    continue
                progress = self.check(previous)
                for callback in self.callbacks:
                    callback(progress)
                if not self.running.any():
                    break
                if self.compact:
                    self.leave()
        except torch.linalg.LinAlgError:  # of what is not finite any more
            if self.running.sum() > 1:
                raise
            self.lose()
        except KeyboardInterrupt:
            self.interrupt()

    def check(self, previous: State) -> Progress:
        """Look at the iterate: residuals, stop rules, callbacks, history.

        Parameters
        ----------
        previous : State
            The state before the last step.

        Returns
        -------
        Progress
        """
        running, state, n_iter = self.running, self.state, self.iteration
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
        self.end(self.running & (residual <= self.tol), Status.CONVERGED)
        for rule in self.stop:
            wish = rule(progress)
            if progress.pinned is not None:
                chosen = progress.pinned & progress.running
                self.answer = _where(chosen, outputs, self.answer)
                self.pinned = self.pinned | chosen
                progress.pinned = None
            self.end(self.running & wish, Status.STOPPED)
        self.history.append((self.members, record))
        return progress

    def sound(self, state: State, X: Any) -> Tensor:
        """Members whose iterate is finite and not lost far from the data.

        Parameters
        ----------
        state : State
            The iterate.
        X : object
            Its completion.

        Returns
        -------
        bool Tensor of shape (\\*batch,)
        """
        misfit = self.data.misfit(X)
        return torch.isfinite(state.objective) & (misfit <= self.limit)

    def lose(self) -> None:
        """All who are running have diverged."""
        self.n_iter = torch.where(self.running, self.iteration, self.n_iter)
        self.answer = _where(self.running & ~self.pinned, self.best, self.answer)
        self.end(self.running, Status.DIVERGED)

    def interrupt(self) -> None:
        """End all members, whose answers are what there is."""
        free = self.running & ~self.pinned
        outputs = self.solver.outputs(self.state)
        sound = self.sound(self.state, outputs["X"])
        self.answer = _where(free & sound, outputs, self.answer)
        self.answer = _where(free & ~sound, self.best, self.answer)
        self.end(self.running, Status.INTERRUPTED)

    def end(self, members: Tensor, status: Status) -> None:
        """Let members end.

        Parameters
        ----------
        members : bool Tensor of shape (\\*batch,)
            Who ends.
        status : Status
            How they end.
        """
        self.status = torch.where(members, list(Status).index(status), self.status)
        self.running = self.running & ~members

    def leave(self) -> None:
        """Let the members that ended go, if they are many."""
        alive, gone = (m.nonzero()[:, 0] for m in (self.running, ~self.running))
        if len(gone) < SPARSE * len(self.running):
            return
        self.gone.append(self._ends(gone))
        vars(self).update(self._ends(alive))
        self.best = _take(self.best, alive)
        for name in ("best_objective", "limit", "running", "pinned"):
            setattr(self, name, getattr(self, name)[alive])
        assert isinstance(self.data, Observed)  # has a batch axis
        self.data = self.data.select(alive)
        self.state = self.solver.select(self.state, alive)
        for rule in self.stop:
            rule.select(alive)  # type: ignore[attr-defined]

    def _ends(self, members: Tensor) -> dict[str, Any]:
        names = ("members", "status", "n_iter", "residual")
        ends: dict[str, Any] = {name: getattr(self, name)[members] for name in names}
        return {"answer": _take(self.answer, members), **ends}

    def solution(self) -> Solution:
        """What there is by now; members still running end by ``MAX_ITER``.

        Returns
        -------
        Solution
        """
        last = list(Status).index(Status.MAX_ITER)
        status = torch.where(self.running, last, self.status)
        whole = {"status": status, "n_iter": self.n_iter, "residual": self.residual}
        answer = self.answer
        if self.gone:
            here = {"members": self.members, "answer": answer, **whole}
            parts = [*self.gone, here]
            order = torch.cat([part["members"] for part in parts]).argsort()
            whole = {k: torch.cat([p[k] for p in parts])[order] for k in whole}
            answer = {
                k: torch.cat([p["answer"][k] for p in parts])[order] for k in answer
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
    return {name: value[members] for name, value in outputs.items()}


def _spread(members: Tensor, record: dict[str, Tensor], all_members: Tensor) -> dict:
    """A row of the history, NaN for the members that had gone."""
    if len(members) == all_members.numel():
        return record
    spread = dict(record)
    for name, value in record.items():
        if value.ndim:
            spread[name] = value.new_full(all_members.shape, torch.nan)
            spread[name][members] = value
    return spread


def _where(members: Tensor, new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """``new`` for the chosen members, ``old`` for the others."""
    if members.ndim == 0:
        return new if members else old
    return {
        name: torch.where(members[..., None, None], new[name], old[name])
        for name in old
    }
