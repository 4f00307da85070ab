"""First-order descent on the parameters of a model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from skmc.cells import Observed
from skmc.linalg import CosineSchedule
from skmc.solvers.norms import parameter_norm
from skmc.solvers.parametric import ParametricSolver
from skmc.solvers.solver import State
from skmc.terms import Sum, Term


@dataclass(frozen=True, kw_only=True)
class DescentState(State):
    """An iterate of `Descent`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    live : Tensor of shape (\\*batch, n_rows, n_cols)
        ``X`` with its graph back to the model's parameters.
    grad : Tensor of shape (\\*batch, n_rows, n_cols)
        ``dF/dX``.
    iteration : int
        Steps done.
    model : nn.Module
        What is trained.
    terms : Sum
        The objective.
    optimizer : optim.Optimizer
        Of the model's and the terms' parameters.
    """

    X: Tensor  # (*batch, n_rows, n_cols), detached
    live: Tensor  # X with its graph back to the model's parameters
    grad: Tensor  # dF/dX at X
    iteration: int
    model: nn.Module
    terms: Sum
    optimizer: torch.optim.Optimizer

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Of the model and of the terms."""
        return [*self.model.parameters(), *self.terms.parameters()]

    def __getstate__(self) -> dict:
        # Graphs cannot be pickled, and gradients are not.
        grads = [p.grad for p in self.parameters]
        return {**vars(self), "live": None, "grads": grads}

    def __setstate__(self, state: dict) -> None:
        grads = state.pop("grads")
        vars(self).update(state)
        for p, grad in zip(self.parameters, grads, strict=True):
            p.grad = grad
        with torch.enable_grad():
            vars(self)["live"] = self.model()


class Descent(ParametricSolver):
    r"""Adam on a sum of terms of the completion and penalties of parameters.

    .. math::

        \min_\theta \sum_k F_k(X(\theta)) + \sum_j R_j(\theta_j)

    Terms give ``F_k`` and ``dF_k/dX``, in closed form where it is known. Autograd pulls
    the sum of these gradients back to the parameters of the model.

    Parameters
    ----------
    model : nn.Module
        ``forward()`` is the completion, shape (\*batch, n_rows, n_cols). Parameters
        have the batch axes in front. The solver works on a copy.
    terms : sequence of Term
        Their sum is the objective; their own parameters are learned alongside.
    lr : float
        Learning rate at the start.
    horizon : int
        The model's learning rate at step t is ``lr (1 + cos(pi t / horizon)) / 2``. The
        terms' parameters keep ``lr``: a learned regularizer has to go on fading while
        the model settles.
    penalties : mapping of str to Term
        ``R_j`` by the names of the model's parameters.
    """

    def __init__(
        self,
        model: nn.Module,
        terms: Sequence[Term],
        *,
        lr: float,
        horizon: int,
        penalties: Mapping[str, Term] | None = None,
    ):
        self.model = model
        self.terms = terms
        self.penalties = penalties or {}
        self.lr = lr
        self.horizon = horizon

    def init(self, data: Observed) -> DescentState:
        model = copy.deepcopy(self.model).to(data.values.device)
        # Terms share the data's tensors, which no step changes; a memo that holds them
        # keeps deepcopy from duplicating them.
        memo = {id(t): t for t in (data, data.values, data.mask)}
        X = data.values
        terms = copy.deepcopy(Sum(self.terms), memo).to(X.device, X.dtype)
        self.begin([*model.parameters(), *terms.parameters()])
        paces: dict[int, list[nn.Parameter]] = {}
        for term in terms:
            if own := list(term.parameters()):
                paces.setdefault(term.every, []).extend(own)
        groups = [{"params": list(model.parameters()), "lr": self.lr}]
        groups += [{"params": p, "lr": self.lr * every} for every, p in paces.items()]
        optimizer = torch.optim.Adam(groups, fused=True)
        return self._evaluate(data, model, terms, optimizer, 0)

    def _evaluate(self, data, model, terms, optimizer, iteration) -> DescentState:
        with torch.enable_grad():
            live: Tensor = model()
        # A leaf is changed in place by the next step.
        X = live.detach().clone() if live.is_leaf else live.detach()
        objective, grad = terms.value_and_grad(X)
        for name, term in self.penalties.items():
            parameter = model.get_parameter(name)
            value, parameter.grad = term.value_and_grad(parameter.detach())
            objective = objective + value
        return DescentState(
            X=X,
            objective=objective,
            live=live,
            grad=grad,
            iteration=iteration,
            model=model,
            terms=terms,
            optimizer=optimizer,
        )

    def step(self, data: Observed, state: DescentState) -> DescentState:
        state.live.backward(state.grad)
        lr = CosineSchedule(self.lr, 0.0, self.horizon)(state.iteration)
        state.optimizer.param_groups[0]["lr"] = lr
        state.optimizer.step()
        state.optimizer.zero_grad()
        return self._evaluate(
            data, state.model, state.terms, state.optimizer, state.iteration + 1
        )

    def resume(self, data: Observed | None, state: DescentState) -> DescentState:
        with torch.enable_grad():
            return replace(state, live=state.model())

    def residual(self, data: Observed, previous, current: DescentState) -> Tensor:
        """``|dF/dtheta| |theta| / (|X| |P(M)|)``.

        A plain gradient norm vanishes at the start as well, where all factors are
        small; dividing by ``|X|`` makes the measure blind to the scale of the factors,
        and ``|P(M)|``, the gradient of the data fit at X = 0, to that of the data.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : DescentState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        parameters = list(current.model.parameters())
        grads = torch.autograd.grad(
            current.live, parameters, current.grad, retain_graph=True
        )
        grads = tuple(
            s if p.grad is None else s + p.grad
            for s, p in zip(grads, parameters, strict=True)
        )
        tiny = torch.finfo(current.X.dtype).tiny
        scale = parameter_norm([current.X], data) * parameter_norm([data.values], data)
        return (
            parameter_norm(grads, data)
            * parameter_norm(parameters, data)
            / scale.clamp_min(tiny)
        )

    def select(self, state: DescentState, members: Tensor) -> DescentState:
        return self.resume(None, super().select(state, members))

    def outputs(self, state: DescentState) -> dict[str, Any]:
        learned = self.learned(state.parameters)
        return {"X": state.X, **learned, **state.terms.outputs()}
