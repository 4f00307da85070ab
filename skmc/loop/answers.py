"""The results of a run for each member of its batch."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Observed, SparseObserved
from skmc.loop.solution import Solution, Status, tensorwise
from skmc.solvers import Result

# An iterate has diverged if its distance from the observed cells is this many times
# that of zero.
DIVERGENCE_FACTOR = 1e3
# Finished members are dropped once they are this share of the batch.
DROP_SHARE = 0.25
# A checkpoint stores the other attributes.
NOT_STORED = ("limit", "members", "dropped")


class Answers:
    """The running members of a batch, and the result of each member.

    Parameters
    ----------
    result : Result
        Result of the solver at its start.
    data : Observed or SparseObserved
        Observed cells.
    """

    def __init__(self, result: Result, data: Observed | SparseObserved):
        batch, device = data.batch_shape, data.device
        self.answer = self.best = _copied(result)
        self.best_objective = torch.full_like(data.n_observed, torch.inf)
        self.running = torch.ones(batch, dtype=torch.bool, device=device)
        self.pinned = torch.zeros_like(self.running)
        self.status = torch.zeros(batch, dtype=torch.long, device=device)
        self.n_iter = torch.zeros_like(self.status)
        self.residual = torch.full_like(self.best_objective, torch.inf)
        self.limit = DIVERGENCE_FACTOR**2 * torch.maximum(data.energy, data.n_observed)
        self.members = torch.arange(self.running.numel(), device=device)
        self.dropped: list[dict[str, Any]] = []

    def stored(self) -> dict[str, Any]:
        """Return what a checkpoint stores."""
        return {k: v for k, v in vars(self).items() if k not in NOT_STORED}

    def restore(self, stored: dict[str, Any]) -> None:
        """Continue from what a checkpoint has stored."""
        vars(self).update(stored)

    def update(
        self,
        result: Result,
        objective: Tensor,  # (*batch,)
        residual: Tensor,  # (*batch,)
        n_iter: int,
        valid: Tensor,  # (*batch,)
    ) -> None:
        """Record the current iterates, and end the members that have diverged."""
        running, diverged = self.running, self.running & ~valid
        self.residual = torch.where(running, residual, self.residual)
        self.n_iter = torch.where(running, n_iter, self.n_iter)
        better = running & ~diverged & (objective < self.best_objective)
        self.best = _where(better, result, self.best)
        self.best_objective = torch.where(better, objective, self.best_objective)
        self.answer = _where(running & ~diverged & ~self.pinned, result, self.answer)
        self.answer = _where(diverged & ~self.pinned, self.best, self.answer)
        self.end(diverged, Status.DIVERGED)

    def pin(
        self,
        members: Tensor,  # (*batch,)
        result: Result,
    ) -> None:
        """Fix the results of some members, whatever happens later."""
        self.answer = _where(members, result, self.answer)
        self.pinned = self.pinned | members

    def mark_diverged(self, n_iter: int) -> None:
        """End all running members as diverged."""
        self.n_iter = torch.where(self.running, n_iter, self.n_iter)
        self.answer = _where(self.running & ~self.pinned, self.best, self.answer)
        self.end(self.running, Status.DIVERGED)

    def interrupt(
        self,
        result: Result,
        valid: Tensor,  # (*batch,)
    ) -> None:
        """End all running members; valid ones have the current result."""
        free = self.running & ~self.pinned
        self.answer = _where(free & valid, result, self.answer)
        self.answer = _where(free & ~valid, self.best, self.answer)
        self.end(self.running, Status.INTERRUPTED)

    def end(
        self,
        members: Tensor,  # (*batch,)
        status: Status,
    ) -> None:
        """End some members."""
        self.status = torch.where(members, list(Status).index(status), self.status)
        self.running = self.running & ~members

    def drop_finished(self) -> Tensor | None:
        """Remove the finished members if they are a quarter of the batch."""
        kept, finished = (m.nonzero()[:, 0] for m in (self.running, ~self.running))
        if len(finished) < DROP_SHARE * len(self.running):
            return None
        self.dropped.append(self._results(finished))
        vars(self).update(self._results(kept))
        self.best = _take(self.best, kept)
        for name in ("best_objective", "limit", "running", "pinned"):
            setattr(self, name, getattr(self, name)[kept])
        return kept

    def _results(self, members: Tensor) -> dict[str, Any]:
        names = ("members", "status", "n_iter", "residual")
        results = {name: getattr(self, name)[members] for name in names}
        return {"answer": _take(self.answer, members), **results}

    def solution(self, history: list[tuple[Tensor, dict[str, Tensor]]]) -> Solution:
        """Return the current solution; running members have status ``MAX_ITER``."""
        last = list(Status).index(Status.MAX_ITER)
        status = torch.where(self.running, last, self.status)
        of_members = {
            "status": status,
            "n_iter": self.n_iter,
            "residual": self.residual,
        }
        answer = self.answer
        if self.dropped:
            present = {"members": self.members, "answer": answer, **of_members}
            results = [*self.dropped, present]
            order = torch.cat([part["members"] for part in results]).argsort()
            of_members = {
                k: torch.cat([p[k] for p in results])[order] for k in of_members
            }
            answer = tensorwise(
                lambda *each: torch.cat(each)[order],
                *(part["answer"] for part in results),
            )
        names = history[0][1] if history else {}
        rows = [_spread(*row, of_members["status"]) for row in history]
        return Solution(
            result=answer,
            status=[
                list(Status)[code] for code in of_members["status"].flatten().tolist()
            ],
            n_iter=of_members["n_iter"],
            residual=of_members["residual"],
            history={name: torch.stack([row[name] for row in rows]) for name in names},
        )


def _copied(result: Result) -> Result:
    tensors = {k: v.clone() for k, v in vars(result).items() if isinstance(v, Tensor)}
    return replace(result, **tensors)


def _take(result: Result, members: Tensor) -> Result:
    taken: Result = tensorwise(lambda value: value[members], result)
    return taken


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


def _where(members: Tensor, new: Result, old: Result) -> Result:
    """Return ``new`` for the chosen members and ``old`` for the others."""
    if members.ndim == 0:
        return new if members else old
    chosen: Result = tensorwise(
        partial(torch.where, members[..., None, None]), new, old
    )
    return chosen
