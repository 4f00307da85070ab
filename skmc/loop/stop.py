"""Rules that decide when a member of a solve has had enough."""

from __future__ import annotations

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.loop.solution import Progress


class HeldOut:
    """Early stopping on cells that the solver does not see.

    The error is the root mean square over the held-out cells. The best iterate is
    kept, and a member stops after ``patience`` iterations without a better one. What
    it has seen so far is in ``memory``, which a checkpoint keeps.

    Parameters
    ----------
    truth : Observed
        The held-out cells.
    patience : int
        Iterations.
    """

    def __init__(self, truth: Observed, patience: int):
        self.truth = truth
        self.patience = patience
        best = torch.full_like(truth.n_observed, torch.inf)
        self.memory = {"best": best, "since": torch.zeros_like(best)}

    def __call__(self, progress: Progress) -> Tensor:
        misfit = self.truth.misfit(progress.outputs["X"])
        error = (misfit / self.truth.n_observed).sqrt()
        better = error < self.memory["best"]
        since = torch.where(better, progress.n_iter, self.memory["since"])
        best = torch.where(better, error, self.memory["best"])
        self.memory.update(best=best, since=since)
        progress.record["validation"] = error
        progress.keep(better)
        return progress.n_iter - since >= self.patience

    def select(self, members: Tensor) -> None:
        """Keep some members of the (one) batch axis.

        Parameters
        ----------
        members : bool or int Tensor
            Those to keep, along the batch axis.
        """
        self.truth = self.truth.select(members)
        self.memory.update({k: v[members] for k, v in self.memory.items()})
