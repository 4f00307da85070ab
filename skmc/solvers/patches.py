"""Mini-batches of patches: training a network that predicts cells one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import CosineSchedule, Randomness
from skmc.models import PatchCNN, Patches, filling_order
from skmc.solvers.norms import parameter_norm
from skmc.solvers.parametric import Adam
from skmc.solvers.solver import Solver, State

BATCH = 128
BLOCK = 2**16  # cells of patches held at once
STEPS = 25  # per epoch, at most
WARM = 0.08  # share of the horizon in which the learning rate grows
SAMPLE = 4096  # cells whose patches are counted


@dataclass(frozen=True, kw_only=True)
class PatchState(State):
    """An iterate of `PatchTraining`, whose objective is that of `seen`.

    The completion is computed only when it is needed.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    data : Observed
        The observed cells.
    network : PatchCNN
        What is trained.
    optimizer : Adam
        Of the network's parameters.
    generator : Generator
        Where random numbers come from.
    iteration : int
        Steps done.
    cells : tuple of Tensor
        Rows and columns observed.
    holes : tuple of Tensor
        Rows and columns hidden.
    queue : int64 Tensor
        Those of ``cells`` that are left in this epoch.
    picture : Patches
        Of the observed cells, (n_rows, n_cols, 2).
    order : int64 Tensor of shape (n_rows, n_cols)
        Of filling.
    rounds : Patches
        Of ``order``.
    dropped_share : Tensor of shape ()
        Share of the patches that lose cells.
    seen : Tensor of shape (n_rows, n_cols)
        Each cell as last predicted in training.
    """

    data: Observed
    network: PatchCNN
    optimizer: Adam
    generator: torch.Generator
    iteration: int
    cells: tuple[Tensor, ...]  # rows and columns observed
    holes: tuple[Tensor, ...]  # and hidden
    queue: Tensor  # what is left of the epoch, of `cells`
    picture: Patches  # (n_rows, n_cols, 2)
    order: Tensor  # (n_rows, n_cols), of filling
    rounds: Patches  # of `order`
    dropped_share: Tensor  # of the patches
    seen: Tensor  # (n_rows, n_cols), each cell as last predicted in training


class PatchTraining(Solver[Observed, PatchState]):
    r"""Adam on the squared error of cells predicted from the patches around them.

    .. math::

        \min_\theta \frac{1}{2 |\Omega|} \sum_{ij \in \Omega}
        (f_\theta(\text{patch}_{ij}) - M_{ij})^2

    half a *mean* over observed cells, weighted if they have weights. A step is a
    twenty-fifth of an epoch, but at least one mini-batch of 128 cells (of a quarter of
    all cells, where that is fewer). The objective is that of the predictions made when
    each cell was last drawn.

    Less is known around a cell inside a hole than around an observed one. So a share of
    the patches loses further cells: those that will not be known around a random hidden
    cell in the round in which it is filled. The share is such that patches show as many
    cells in training as in filling, on average. It is nearly 1 for one large hole, and
    0 for scattered cells, around which as much is known as around observed cells.

    Parameters
    ----------
    side : int >= 3, odd
        Of the patches.
    lr : float > 0
        Adam's learning rate (its second beta is .99). At step t it is
        ``lr (1 + cos(pi t / horizon)) / 2``, times ``(t + 1) / (.08 horizon)`` where
        that is below 1.
    horizon : int
        Steps.
    rng : Randomness
        The network's start, the order of the cells and what is dropped.
    """

    eager = "mini-batches are drawn on the host"

    def __init__(self, side: int, *, lr: float, horizon: int, rng: Randomness):
        self.side = side
        self.lr = lr
        self.horizon = horizon
        self.rng = rng

    def init(self, data: Observed) -> PatchState:
        values, device = data.values, data.values.device
        peak = float(values.abs().max())
        squares = (values / (peak or 1.0)).square()
        mean = data.weighted(squares).sum() / data.n_observed
        unit = peak * float(mean) ** 0.5 or 1.0
        network = PatchCNN(self.side, unit, self.rng.stream(1)).to(device)
        order = filling_order(data.mask)
        cells = torch.nonzero(data.mask, as_tuple=True)
        holes = torch.nonzero(~data.mask, as_tuple=True)
        rounds = Patches(order.int(), self.side)
        generator = self.rng.stream(2).generators[0]
        return PatchState(
            objective=data.energy / (2 * data.n_observed),
            data=data,
            network=network,
            optimizer=Adam.of(network.parameters(), self.lr, beta2=0.99),
            generator=generator,
            iteration=0,
            order=order,
            cells=cells,
            holes=holes,
            queue=values.new_zeros(0, dtype=torch.long),
            picture=Patches(network.picture(values, data.mask), self.side),
            rounds=rounds,
            dropped_share=dropped_share(rounds, order, cells, holes, generator),
            seen=data.zero(),
        )

    def step(self, data: Observed, state: PatchState) -> PatchState:
        n_cells = len(state.cells[0])
        batch = min(BATCH, math.ceil(n_cells / 4))
        size = batch * math.ceil(n_cells / (batch * STEPS))
        queue = state.queue
        if not len(queue):
            queue = torch.randperm(n_cells, generator=state.generator)
            queue = queue.to(data.values.device)
        at_once = batch * max(1, BLOCK // (batch * self.side**2))
        for cells in queue[:size].split(at_once):
            self._descend(data, state, batch, *(index[cells] for index in state.cells))
        return replace(
            state,
            objective=data.misfit(state.seen) / (2 * data.n_observed),
            queue=queue[size:],
            iteration=state.iteration + 1,
        )

    def _descend(
        self, data: Observed, state: PatchState, batch: int, rows: Tensor, cols: Tensor
    ) -> None:
        """A step of Adam on each mini-batch of some cells, cut out together."""
        network, picture = state.network, state.picture
        shown = picture.elsewhere(rows, cols)
        if len(state.holes[0]):
            shown &= self._known_in_holes(state, len(rows))
        targets = (data.values[rows, cols] / network.unit).float()
        examples = [targets, *network.windows(picture.around(rows, cols), shown)]
        if data.weights is not None:
            share = data.times[rows, cols] * (len(state.cells[0]) / data.n_observed)
            examples.append(share.float())
        decay = CosineSchedule(1.0, 0.0, self.horizon)(state.iteration)
        decay *= min(1.0, (state.iteration + 1) / (WARM * self.horizon))
        answers = []
        parameters = list(network.parameters())
        batches = zip(*(example.split(batch) for example in examples), strict=True)
        for target, windows, mean, *shares in batches:
            with torch.enable_grad():
                predicted = network(windows, mean)
                errors = (predicted - target).square()
                loss = (errors * shares[0] if shares else errors).mean() / 2
                grads = torch.autograd.grad(loss, parameters)
            _set_grads(parameters, grads)
            state.optimizer.step(decay)
            answers.append(predicted.detach())
        _set_grads(parameters, grads)  # the step removed them; `residual` reads them
        new = torch.cat(answers).to(data.values.dtype) * network.unit
        state.seen[rows, cols] = new

    def _known_in_holes(self, state: PatchState, n_cells: int) -> Tensor:
        """What is known around random hidden cells when their turn comes."""
        n_holes = len(state.holes[0])
        lot = torch.randint(n_holes, (n_cells,), generator=state.generator)
        lot_of_drops = torch.rand(n_cells, generator=state.generator)
        rows, cols = (index[lot.to(index.device)] for index in state.holes)
        own = state.order[rows, cols][:, None, None]
        known = state.rounds.around(rows, cols) < own
        spared = lot_of_drops.to(known.device) >= state.dropped_share
        return known | spared[:, None, None]

    def residual(
        self, data: Observed, previous: PatchState, current: PatchState
    ) -> Tensor:
        """``|dF/dtheta| |theta| / mean M^2`` of the last mini-batch.

        It stays above any usual ``tol`` as long as mini-batches differ: training ends
        at its horizon or by a stop rule.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : PatchState
            The state after it.

        Returns
        -------
        Tensor of shape ()
        """
        parameters = list(current.network.parameters())
        grads = [p.grad for p in parameters if p.grad is not None]
        product = parameter_norm(grads, data) * parameter_norm(parameters, data)
        return product.to(data.values.dtype)

    def outputs(self, state: PatchState) -> dict[str, Any]:
        """Hidden cells as filled now, observed cells as last predicted in training.

        Before the first step, all are zero.

        Parameters
        ----------
        state : State
            Where the solver is.

        Returns
        -------
        dict
        """
        filled = state.seen  # zero before the first step, when nothing is learned
        if state.iteration:
            filled = state.network.fill(state.data, state.order)
        return {
            "X": torch.where(state.data.mask, state.seen, filled),
            "network": state.network,  # goes on learning, unlike its weights here
            "weights": {k: v.clone() for k, v in state.network.state_dict().items()},
            "trained_on": state.data.mask,
        }


def _set_grads(parameters: Sequence[Tensor], grads: Sequence[Tensor]) -> None:
    for p, grad in zip(parameters, grads, strict=True):
        p.grad = grad


def dropped_share(
    rounds: Patches,
    order: Tensor,
    cells: tuple[Tensor, ...],
    holes: tuple[Tensor, ...],
    generator: torch.Generator,
) -> Tensor:
    r"""Share of patches to mask so that training shows as many cells as filling does.

    If each cell around an observed cell is known with probability :math:`p`, and around
    a hidden one, when it is filled, with :math:`q`, the share is
    :math:`\sum (p - q) / \sum (p - p q)` over the cells of a patch, but at least zero.
    Probabilities are counted on a sample of cells.

    Parameters
    ----------
    rounds : Patches
        Of ``order``.
    order : int64 Tensor of shape (n_rows, n_cols)
        Of filling.
    cells : tuple of Tensor
        Rows and columns observed.
    holes : tuple of Tensor
        Rows and columns hidden.
    generator : Generator
        Draws the sample.

    Returns
    -------
    Tensor of shape ()
    """

    def drawn(positions: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        lot = torch.randint(len(positions[0]), (SAMPLE,), generator=generator)
        return tuple(index[lot.to(index.device)] for index in positions)

    if not len(holes[0]):
        return torch.zeros((), device=order.device)
    rows, cols = drawn(cells)
    p = (rounds.around(rows, cols) == 0) & rounds.elsewhere(rows, cols)
    rows, cols = drawn(holes)
    q = rounds.around(rows, cols) < order[rows, cols][:, None, None]
    p, q = (known.double().mean(0) for known in (p, q))
    return ((p - q).sum() / (p - p * q).sum().clamp_min(1e-12)).clamp(0, 1)
