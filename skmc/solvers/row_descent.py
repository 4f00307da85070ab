"""First-order descent on networks that map rows to rows, with mini-batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from skmc.cells import Observed
from skmc.linalg import CosineSchedule, Randomness
from skmc.solvers.parametric import Adam
from skmc.solvers.relative import parameter_norm, relative_slope
from skmc.solvers.solver import Result, Solver, State
from skmc.terms import Term, inner


@dataclass(frozen=True, kw_only=True)
class RowState(State):
    """An iterate of `RowDescent`.

    The objective sums the passes of the last epoch, each before its step.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    network : nn.Module
        Model that is trained.
    weights : Adam
        Optimizer of the network's parameters.
    batches : list of Batch
        Mini-batches of the rows.
    iteration : int
        Number of steps done.
    """

    network: nn.Module
    weights: Adam
    batches: list[Batch]
    iteration: int


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkResult(Result):
    """A completion and the network that made it."""

    network: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class CodeResult(NetworkResult):
    """The same with the codes of the rows."""

    codes: Tensor


@dataclass(frozen=True)
class Batch:
    """Some rows, and the inputs of the network at their missing cells.

    Parameters
    ----------
    rows : int64 Tensor of shape (\\*batch, k, 1) or None
        Positions of the rows in the matrix; None for all rows in order.
    seen : bool Tensor of shape (\\*batch, k, n_cols)
        True where the rows are observed.
    inputs : Tensor of shape (\\*batch, k, n_cols)
        Inputs of the network; a parameter if missing inputs are learned.
    optimizer : Adam or None
        Optimizer of the learned inputs.
    times : Tensor of shape (\\*batch, k, n_cols) or None, default=None
        Weight of each cell; None means 1.
    """

    rows: Tensor | None  # (*batch, k, 1)
    seen: Tensor  # (*batch, k, n_cols), bool
    inputs: Tensor  # (*batch, k, n_cols), a parameter if learned
    optimizer: Adam | None  # of the learned inputs
    times: Tensor | None = None  # (*batch, k, n_cols)


@dataclass(eq=False)
class RowDescent(Solver[Observed, RowState]):
    r"""Adam on the misfit of a network that maps rows to rows, in mini-batches.

    .. math::

        \min_\theta \tfrac12 \|P(f_\theta(\tilde X) - M)\|_F^2
        + \sum_j R_j(\theta_j)

    a *sum* over observed cells, weighted if they have weights, where
    :math:`\tilde X` holds the observed cells and ``inputs`` elsewhere. A step is an
    epoch: one step of Adam for each mini-batch. The loss of a mini-batch includes its
    share of the penalties.

    Parameters
    ----------
    network : nn.Module
        Network that maps rows (\*batch, k, n_cols) to rows of the same shape. The
        solver works on a copy.
    penalties : mapping of str to Term
        Penalties ``R_j`` by the names of the network's parameters.
    lr : float
        Learning rate; ``lr min(1, (t + 1) / warm_up) (1 + cos(pi t / horizon)) / 2`` at
        t.
    horizon : int
        Steps until the learning rate is zero.
    batch_size : int
        Number of rows of a mini-batch. Rows are assigned at random, once.
    rng : Randomness
        Source of the random assignment.
    inputs : Tensor of shape (\*batch, n_rows, n_cols), optional
        Initial values of missing inputs; zero by default.
    free : bool
        Whether missing inputs are learned together with the network. They are not
        targets: their gradient comes only through the network.
    warm_up : int
        Number of epochs during which the learning rate rises to its full value.
    """

    network: nn.Module
    penalties: Mapping[str, Term]
    _: KW_ONLY
    lr: float
    horizon: int
    batch_size: int
    rng: Randomness
    inputs: Tensor | None = None
    free: bool = False
    warm_up: int = 1

    def init(self, data: Observed) -> RowState:
        network = copy.deepcopy(self.network).to(data.values.device)
        return RowState(
            objective=torch.full_like(data.n_observed, torch.inf),
            network=network,
            weights=Adam.of(network.parameters(), self.lr),
            batches=self._batches(data),
            iteration=0,
        )

    def _batches(self, data: Observed) -> list[Batch]:
        """Make mini-batches: views of one matrix, as small pieces fragment memory."""
        n_rows, size = data.shape[0], self.batch_size
        inputs, seen = data.values, data.mask
        if self.inputs is not None:
            inputs = data.fill(self.inputs)
        positions: Sequence[Tensor | None] = [None]
        if n_rows > size:
            orders = [torch.randperm(n_rows, generator=g) for g in self.rng.generators]
            order = torch.stack(orders).view(*data.batch_shape, n_rows, 1)
            order = order.to(inputs.device)
            inputs, seen = _rows(inputs, order), _rows(seen, order)
            positions = order.split(size, -2)
        elif self.free:
            inputs = inputs.clone()
        tensors = [seen, inputs]
        if self.free:
            tensors += [torch.zeros_like(inputs), torch.zeros_like(inputs)]
        # In a batch the views have gaps, which Adam's call for all cells would miss.
        pieces = (
            [t.contiguous() for t in tensor.split(size, -2)] for tensor in tensors
        )
        batches, optimizer = [], None
        for rows, seen, inputs, *moments in zip(positions, *pieces, strict=True):
            if self.free:
                inputs = nn.Parameter(inputs)
                count = torch.zeros((), dtype=torch.float32, device=inputs.device)
                optimizer = Adam([inputs], moments[:1], moments[1:], count, self.lr)
            times = None if data.weights is None else _rows(data.times, rows)
            batches.append(Batch(rows, seen, inputs, optimizer, times))
        return batches

    def step(self, data: Observed, state: RowState) -> RowState:
        decay = CosineSchedule(1.0, 0.0, self.horizon)(state.iteration)
        warmth = (state.iteration + 1) / self.warm_up
        decay *= warmth.clamp(max=1) if isinstance(warmth, Tensor) else min(1, warmth)
        objective = torch.zeros_like(state.objective)
        for batch in state.batches:
            objective += self._backward(data, state.network, batch)
            for optimizer in (state.weights, batch.optimizer):
                if optimizer is not None:
                    optimizer.step(decay)
        return replace(state, objective=objective, iteration=state.iteration + 1)

    def _backward(self, data: Observed, network: nn.Module, batch: Batch) -> Tensor:
        """Add a mini-batch's gradients; return its share of the objective."""
        with torch.enable_grad():
            outputs = network(batch.inputs)
        seen = batch.seen.to(outputs.dtype)
        # Observed inputs are the data. Work is in place: allocation costs more than
        # sums.
        residual = outputs.detach().sub_(batch.inputs.detach()).mul_(seen)
        weighted = residual if batch.times is None else residual * batch.times
        outputs.backward(weighted)
        if (inputs_grad := batch.inputs.grad) is not None:
            inputs_grad.addcmul_(inputs_grad, seen, value=-1)
        share = residual.shape[-2] / data.shape[0]
        objective = 0.5 * inner(residual, weighted)
        for name, term in self.penalties.items():
            parameter = network.get_parameter(name)
            value, grad = term.value_and_grad(parameter.detach())
            if parameter.grad is None:  # the data fit does not depend on it
                parameter.grad = share * grad
            else:
                parameter.grad.add_(grad, alpha=share)
            objective += share * value
        return objective

    def residual(self, data: Observed, previous: RowState, current: RowState) -> Tensor:
        """``|dF/dtheta| |theta| / (|X| |P(M)|)``, as in `Descent`."""
        X = []
        for batch in current.batches:
            self._backward(data, current.network, batch)
            batch.inputs.grad = None
            X.append(parameter_norm([current.network(batch.inputs)], data)[..., None])
        parameters = list(current.network.parameters())
        grads = [p.grad for p in parameters if p.grad is not None]
        residual = relative_slope(grads, parameters, X, data)
        for parameter in parameters:
            parameter.grad = None
        return residual

    def result(self, state: RowState) -> NetworkResult:
        X = _assembled(state, state.network)
        return NetworkResult(X=X, network=copy.deepcopy(state.network))


class CodeDescent(RowDescent):
    """Descent that keeps the codes of the rows, in order, to complete new rows."""

    def result(self, state: RowState) -> CodeResult:
        network_result = super().result(state)
        codes = _assembled(state, lambda rows: rows @ network_result.network.encoder)
        return CodeResult(
            X=network_result.X, network=network_result.network, codes=codes
        )


def _assembled(state: RowState, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a function to the inputs of all mini-batches, and order the rows."""
    ordered: Any = None
    n_rows = sum(batch.inputs.shape[-2] for batch in state.batches)
    for batch in state.batches:
        part = function(batch.inputs)
        if batch.rows is None:
            return part
        if ordered is None:
            ordered = part.new_empty(*part.shape[:-2], n_rows, part.shape[-1])
        ordered.scatter_(-2, batch.rows.expand_as(part), part)
    return ordered


def _rows(whole: Tensor, rows: Tensor | None) -> Tensor:
    """Rows of a matrix at some positions."""
    return whole if rows is None else torch.take_along_dim(whole, rows, -2)
