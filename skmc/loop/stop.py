"""Rules that stop members of a solve early."""

from __future__ import annotations

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.loop.solution import Progress


class HeldOut:
    """Early stopping on held-out cells.

    The error is the root mean square over the held-out cells. The answer is the iterate
    with the lowest error. A member stops after ``patience`` iterations without a better
    iterate. Checkpoints store ``memory``, which holds the lowest errors so far.

    Parameters
    ----------
    truth : Observed
        Held-out cells.
    patience : int
        Iterations without a better iterate after which a member stops.
    """

    def __init__(self, truth: Observed, patience: int):
        self.truth = truth
        self.patience = patience
        best = torch.full_like(truth.n_observed, torch.inf)
        self.memory = {"best": best, "since": torch.zeros_like(best)}

    def __call__(self, progress: Progress) -> Tensor:
        misfit = self.truth.misfit(progress.result.X)
        error = (misfit / self.truth.n_observed).sqrt()
        better = error < self.memory["best"]
        since = torch.where(better, progress.n_iter, self.memory["since"])
        best = torch.where(better, error, self.memory["best"])
        self.memory.update(best=best, since=since)
        progress.record["validation"] = error
        progress.keep(better)
        return progress.n_iter - since >= self.patience

    def select(self, members: Tensor) -> None:
        """Keep some members of the single batch axis."""
        self.truth = self.truth.select(members)
        self.memory.update({k: v[members] for k, v in self.memory.items()})
