"""First-order descent on networks that map rows to rows, in mini-batches of rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skmc.observed import Observed
from skmc.randomness import Randomness
from skmc.solvers.descent import norm
from skmc.solvers.solver import Solver, State
from skmc.terms.term import Term


@dataclass(frozen=True, kw_only=True)
class RowState(State):
    """The objective is that of the last epoch's passes, each before its step."""

    network: nn.Module
    weights: torch.optim.Optimizer
    batches: list[Batch]
    iteration: int


@dataclass(frozen=True)
class Batch:
    """Some rows, and what the network is shown where they are missing."""

    rows: Any  # which: their numbers, or a slice of all
    inputs: Tensor  # (k, n_cols), a parameter where missing inputs are free
    optimizer: torch.optim.Optimizer | None  # of the free inputs


class RowDescent(Solver):
    r"""Adam on ``1/2 |P(f(X~) - M)|_F^2 + sum_j R_j(theta_j)``, a *sum* over cells.

    ``X~`` holds the observed cells and ``inputs`` elsewhere. A step is an epoch: one
    step of Adam for each mini-batch, whose loss has its share of the penalties.

    Parameters
    ----------
    network : nn.Module
        Maps rows (k, n_cols) to rows (k, n_cols). The solver works on a copy.
    penalties : mapping of str to Term
        ``R_j`` by the names of the network's parameters.
    lr : float
        At epoch t it is ``lr min(1, (t + 1) / warm_up) (1 + cos(pi t / horizon)) / 2``.
    horizon : int
    batch_size : int
        Rows; they are shared out at random, once.
    draw : Randomness
        Shares them out.
    inputs : Tensor of shape (n_rows, n_cols), optional
        What stands in for missing cells at the start, zero without.
    warm_up : int
        Epochs.
    free : bool
        Learn the missing inputs along with the network. They are no targets: their
        gradient comes through the network alone.
    """

    def __init__(
        self,
        network: nn.Module,
        penalties: Mapping[str, Term],
        *,
        lr: float,
        horizon: int,
        batch_size: int,
        draw: Randomness,
        inputs: Tensor | None = None,
        free: bool = False,
        warm_up: int = 1,
    ):
        self.network = network
        self.penalties = penalties
        self.lr = lr
        self.horizon = horizon
        self.batch_size = batch_size
        self.draw = draw
        self.inputs = inputs
        self.free = free
        self.warm_up = warm_up

    def init(self, data: Observed) -> RowState:
        network = copy.deepcopy(self.network).to(data.values.device)
        return RowState(
            objective=torch.full_like(data.n_observed, torch.inf),
            network=network,
            weights=torch.optim.Adam(network.parameters(), lr=self.lr, fused=True),
            batches=[self._batch(data, rows) for rows in self._parts(data)],
            iteration=0,
        )

    def _parts(self, data: Observed) -> list[Any]:
        n_rows = data.shape[0]
        if n_rows <= self.batch_size:
            return [slice(None)]
        order = torch.randperm(n_rows, generator=self.draw.generators[0])
        return list(order.to(data.values.device).split(self.batch_size))

    def _batch(self, data: Observed, rows: Any) -> Batch:
        inputs = data.values[rows]
        if self.inputs is not None:
            inputs = torch.where(data.mask[rows], inputs, self.inputs[rows])
        if not self.free:
            return Batch(rows, inputs, None)
        free = nn.Parameter(inputs.clone())
        return Batch(rows, free, torch.optim.Adam([free], lr=self.lr, fused=True))

    def step(self, data: Observed, state: RowState) -> RowState:
        decay = (1 + math.cos(math.pi * min(state.iteration / self.horizon, 1))) / 2
        decay *= min(1, (state.iteration + 1) / self.warm_up)
        objective = torch.zeros_like(state.objective)
        for batch in state.batches:
            objective += self._backward(data, state.network, batch)
            for optimizer in (state.weights, batch.optimizer):
                if optimizer is not None:
                    optimizer.param_groups[0]["lr"] = self.lr * decay
                    optimizer.step()
                    optimizer.zero_grad()
        return RowState(
            objective=objective,
            network=state.network,
            weights=state.weights,
            batches=state.batches,
            iteration=state.iteration + 1,
        )

    def _backward(self, data: Observed, network: nn.Module, batch: Batch) -> Tensor:
        """Adds a mini-batch's gradients; its share of the objective."""
        seen = data.indicator[batch.rows]
        with torch.enable_grad():
            outputs = network(batch.inputs)
        residual = (outputs.detach() - data.values[batch.rows]).mul_(seen)
        outputs.backward(residual)
        if batch.inputs.grad is not None:
            batch.inputs.grad.mul_(1 - seen)
        share = len(residual) / data.shape[0]
        objective = 0.5 * residual.square().sum()
        for name, term in self.penalties.items():
            parameter = network.get_parameter(name)
            value, slope = term.value_and_grad(parameter.detach())
            grad = parameter.grad  # None where the data fit does not depend on it
            parameter.grad = share * slope if grad is None else grad.add_(share * slope)
            objective += share * value
        return objective

    def residual(self, data: Observed, previous, current: RowState) -> Tensor:
        """``|dF/dtheta| |theta| / (|X| |P(M)|)``, as in `Descent`."""
        for batch in current.batches:
            self._backward(data, current.network, batch)
            batch.inputs.grad = None
        parameters = list(current.network.parameters())
        slopes = [p.grad for p in parameters if p.grad is not None]
        scale = norm([self._forward(current)], data) * norm([data.values], data)
        residual = norm(slopes, data) * norm(parameters, data)
        current.weights.zero_grad()
        return residual / scale.clamp_min(torch.finfo(scale.dtype).tiny)

    def _forward(self, state: RowState) -> Tensor:
        parts = [state.network(batch.inputs) for batch in state.batches]
        if len(parts) == 1:
            return parts[0]
        X = torch.cat(parts)
        rows = torch.cat([batch.rows for batch in state.batches])
        return torch.empty_like(X).index_copy_(0, rows, X)

    def outputs(self, state: RowState) -> dict[str, Any]:
        return {
            "X": self._forward(state),
            "network": copy.deepcopy(state.network),
        }
