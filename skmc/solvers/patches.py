"""Training on mini-batches of patches of a network that predicts single cells."""

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
BLOCK = 2**16  # largest number of cells of patches in memory
STEPS = 25  # largest number of steps per epoch
WARM = 0.08  # share of the horizon in which the learning rate grows
SAMPLE = 4096  # number of cells whose patches are counted


@dataclass(frozen=True, kw_only=True)
class PatchState(State):
    """An iterate of `PatchTraining`; its objective is the error of `seen`.

    The completion is computed only on demand.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    data : Observed
        The observed cells.
    network : PatchCNN
        Model that is trained.
    optimizer : Adam
        Optimizer of the network's parameters.
    generator : Generator
        Source of random numbers.
    iteration : int
        Number of steps done.
    cells : tuple of Tensor
        Rows and columns of the observed cells.
    holes : tuple of Tensor
        Rows and columns of the hidden cells.
    queue : int64 Tensor
        Positions in ``cells`` that are left in this epoch.
    picture : Patches
        Patches of the observed cells, (n_rows, n_cols, 2).
    order : int64 Tensor of shape (n_rows, n_cols)
        Round in which each cell is filled.
    rounds : Patches
        Patches of ``order``.
    dropped_share : Tensor of shape ()
        Share of the patches in which further cells are masked.
    seen : Tensor of shape (n_rows, n_cols)
        Last prediction of each cell in training.
    """

    data: Observed
    network: PatchCNN
    optimizer: Adam
    generator: torch.Generator
    iteration: int
    cells: tuple[Tensor, ...]  # rows and columns of the observed cells
    holes: tuple[Tensor, ...]  # and of the hidden cells
    queue: Tensor  # positions in `cells` that are left in the epoch
    picture: Patches  # (n_rows, n_cols, 2)
    order: Tensor  # (n_rows, n_cols), rounds of filling
    rounds: Patches  # patches of `order`
    dropped_share: Tensor  # of patches with further masked cells
    seen: Tensor  # (n_rows, n_cols), last predictions in training


class PatchTraining(Solver[Observed, PatchState]):
    r"""Adam on the squared error of cells predicted from the patches around them.

    .. math::

        \min_\theta \frac{1}{2 |\Omega|} \sum_{ij \in \Omega}
        (f_\theta(\text{patch}_{ij}) - M_{ij})^2

    half a *mean* over observed cells, weighted if they have weights. A step is a
    twenty-fifth of an epoch, but at least one mini-batch of 128 cells (of a quarter of
    all cells, if that is fewer). The objective uses the last prediction of each cell
    in training.

    Fewer cells are known around a cell inside a hole than around an observed one. So a
    share of the patches loses further cells: those that will not be known around a
    random hidden cell in the round in which it is filled. The share equates the average
    number of cells that patches show in training and in filling. It is nearly 1 for one
    large hole, and 0 for scattered cells, whose surroundings are known as well as those
    of observed cells.

    Parameters
    ----------
    side : int >= 3, odd
        Side of the patches.
    lr : float > 0
        Adam's learning rate (its second beta is .99). At step t it is
        ``lr (1 + cos(pi t / horizon)) / 2``, times ``(t + 1) / (.08 horizon)`` where
        that is below 1.
    horizon : int
        Number of steps.
    rng : Randomness
        Source of the initial network, the order of the cells and the masked cells.
    """

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
        # Next to zero, the product underflows; such a picture is constant.
        unit = float(values.new_tensor(peak * float(mean) ** 0.5)) or 1.0
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
        """Take a step of Adam on each mini-batch of some cells, cut out together."""
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
        _set_grads(parameters, grads)  # removed by the step, and read by `residual`
        new = torch.cat(answers).to(data.values.dtype) * network.unit
        state.seen[rows, cols] = new

    def _known_in_holes(self, state: PatchState, n_cells: int) -> Tensor:
        """Masks of the cells known around random hidden cells when these are filled."""
        n_holes = len(state.holes[0])
        device = state.order.device
        lot = torch.randint(n_holes, (n_cells,), generator=state.generator).to(device)
        lot_of_drops = torch.rand(n_cells, generator=state.generator).to(device)
        rows, cols = (index[lot] for index in state.holes)
        own = state.order[rows, cols][:, None, None]
        known = state.rounds.around(rows, cols) < own
        spared = lot_of_drops >= state.dropped_share
        return known | spared[:, None, None]

    def residual(
        self, data: Observed, previous: PatchState, current: PatchState
    ) -> Tensor:
        """``|dF/dtheta| |theta| / mean M^2`` of the last mini-batch.

        It stays above any usual ``tol`` as long as mini-batches differ. So training
        ends at its horizon or by a stop rule.

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
        """Hidden cells as filled now, and the last predictions of observed cells.

        All are zero before the first step.

        Parameters
        ----------
        state : State
            Current state.

        Returns
        -------
        dict
        """
        filled = state.seen  # zero before the first step
        if state.iteration:
            filled = state.network.fill(state.data, state.order)
        return {
            "X": torch.where(state.data.mask, state.seen, filled),
            "network": state.network,  # training continues, unlike for the copies
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

    The share is :math:`\sum (p - q) / \sum (p - p q)` over the cells of a patch, but at
    least zero. Here each cell around an observed cell is known with probability
    :math:`p`, and around a hidden one, when it is filled, with :math:`q`. Probabilities
    are estimated from a sample of cells.

    Parameters
    ----------
    rounds : Patches
        Patches of ``order``.
    order : int64 Tensor of shape (n_rows, n_cols)
        Round in which each cell is filled.
    cells : tuple of Tensor
        Rows and columns of the observed cells.
    holes : tuple of Tensor
        Rows and columns of the hidden cells.
    generator : Generator
        Source of the random sample.

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
