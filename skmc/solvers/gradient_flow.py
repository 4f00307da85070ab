"""Gradient descent whose step length follows the curvature."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from skmc.cells import Observed
from skmc.solvers.parametric import ParametricResult, ParametricSolver
from skmc.solvers.relative import parameter_norm, ratio, relative_slope
from skmc.solvers.solver import State
from skmc.terms import Sum, Term

START = 0.1  # largest change of a parameter in the first step, relative to its norm
GROWTH = 1.05  # largest ratio of successive steps


@dataclass(frozen=True, kw_only=True)
class FlowState(State):
    """An iterate of `GradientFlow`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    model : nn.Module
        Model that is trained.
    grads : list of Tensor
        Gradient ``dF/dtheta`` of each parameter.
    lr : Tensor of shape (\\*batch,)
        Length of the next step.
    """

    X: Tensor  # (*batch, n_rows, n_cols), detached
    model: nn.Module
    grads: list[Tensor]  # dF/dtheta
    lr: Tensor  # (*batch,), of the next step


class GradientFlow(ParametricSolver[Observed, FlowState]):
    r"""Euler's method for the gradient flow of a sum of terms.

    .. math::

        \frac{d\theta}{dt} = -\frac{\partial F}{\partial\theta}, \qquad
        F(\theta) = \sum_k F_k(X(\theta))

    Adam makes all directions grow at the same rate. The flow lets the large singular
    values of a factorization grow first, and implicit low rank depends on this. The
    length of a step is ``|theta - theta before| / |grad - grad before|``, the inverse
    curvature along the previous step, and at most ``5 %`` more than the previous
    length. The first step moves no parameter by more than a tenth of its norm.

    Parameters
    ----------
    model : nn.Module
        Model whose ``forward()`` is the completion, shape (\*batch, n_rows, n_cols).
        Parameters have the batch axes in front. The solver works on a copy.
    terms : sequence of Term
        Terms whose sum is the objective, without parameters of their own.
    lr : float, optional
        Constant step length; the default follows the curvature.

    References
    ----------
    Malitsky, Mishchenko. Adaptive gradient descent without descent. ICML 2020, whose
    rule has half of this length, and other bounds on its growth.
    """

    def __init__(
        self, model: nn.Module, terms: Sequence[Term], *, lr: float | None = None
    ):
        self.model, self.terms, self.lr = model, Sum(terms), lr

    def init(self, data: Observed) -> FlowState:
        model = copy.deepcopy(self.model).to(data.values.device)
        parameters = list(model.parameters())
        lr = torch.zeros_like(data.n_observed)
        self.begin([*parameters, lr])
        X, objective, grads = self._evaluate(model)
        if self.lr is not None:
            lr.fill_(self.lr)
        else:
            reach = [
                ratio(parameter_norm([p], data), parameter_norm([grad], data))
                for p, grad in zip(parameters, grads, strict=True)
            ]
            safe = START * torch.stack(reach).amin(0)
            # The scale of the data may differ from that in the previous step.
            lr = safe if self.start is None else torch.minimum(lr, safe)
        return FlowState(X=X, objective=objective, model=model, grads=grads, lr=lr)

    def _evaluate(self, model: nn.Module) -> tuple[Tensor, Tensor, list[Tensor]]:
        with torch.enable_grad():
            live = model()
        X = live.detach()
        objective, grad = self.terms.value_and_grad(X)
        grads = torch.autograd.grad(live, list(model.parameters()), grad)
        return X, objective, list(grads)

    def result(self, state: FlowState) -> ParametricResult:
        parameters = self.remembered([*state.model.parameters(), state.lr])
        return ParametricResult(X=state.X, parameters=parameters)

    def step(self, data: Observed, state: FlowState) -> FlowState:
        for p, grad in zip(state.model.parameters(), state.grads, strict=True):
            missing = (1,) * (p.ndim - state.lr.ndim)
            p.sub_(state.lr.view(state.lr.shape + missing) * grad)
        X, objective, grads = self._evaluate(state.model)
        lr = state.lr
        if self.lr is None:
            pairs = zip(grads, state.grads, strict=True)
            turn = parameter_norm([new - old for new, old in pairs], data)
            reach = ratio(state.lr * parameter_norm(state.grads, data), turn)
            lr = torch.minimum(GROWTH * state.lr, reach)
        return replace(state, X=X, objective=objective, grads=grads, lr=lr)

    def residual(
        self, data: Observed, previous: FlowState, current: FlowState
    ) -> Tensor:
        """``|dF/dtheta| |theta| / (|X| |P(M)|)``, as in `Descent`."""
        parameters = list(current.model.parameters())
        return relative_slope(current.grads, parameters, [current.X], data)
