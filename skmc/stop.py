"""Rules that decide when a member of a solve has had enough."""

from __future__ import annotations

import torch
from torch import Tensor

from skmc.observed import Observed
from skmc.solve import Progress


class HeldOut:
    """Early stopping on cells that the solver does not see.

    The error is the root mean square over the held-out cells. The best iterate is
    kept, and a member stops after ``patience`` iterations without a better one.

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
        self.best = torch.full_like(truth.n_observed, torch.inf)
        self.since = torch.zeros_like(self.best)

    def __call__(self, progress: Progress) -> Tensor:
        misfit = self.truth.misfit(progress.outputs["X"])
        error = (misfit / self.truth.n_observed).sqrt()
        better = error < self.best
        self.best = torch.where(better, error, self.best)
        self.since = torch.where(better, progress.n_iter, self.since)
        progress.record["validation"] = error
        progress.keep(better)
        return progress.n_iter - self.since >= self.patience

    def select(self, members: Tensor) -> None:
        """Keep some members of the (one) batch axis."""
        self.truth = self.truth.select(members)
        self.best, self.since = self.best[members], self.since[members]
