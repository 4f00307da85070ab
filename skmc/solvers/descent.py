"""First-order descent on the parameters of a model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from skmc.cells import Observed
from skmc.linalg import CosineSchedule, NeighborGraph
from skmc.models import FactorProduct
from skmc.solvers.parametric import (
    Adam,
    ParametricResult,
    ParametricSolver,
    RelativeAdam,
)
from skmc.solvers.relative import relative_slope
from skmc.solvers.solver import State
from skmc.terms import Sum, Term

TINY = 1e-30


class _WhenRead:
    """The objective of a `DescentState`, evaluated when it is first read."""

    def __get__(self, state: DescentState | None, owner: type) -> Tensor | None:
        if state is None:
            return None  # the default of the field
        objective = vars(state)["objective"]
        if objective is None:
            objective = vars(state)["objective"] = state.terms.value(state.X)
        return objective

    def __set__(self, state: DescentState, objective: Tensor | None) -> None:
        vars(state)["objective"] = objective


@dataclass(frozen=True, kw_only=True)
class DescentState(State):
    """An iterate of `Descent`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        Objective at this iterate. Unless it is given, it is evaluated when it is first
        read. If terms learn, this must happen before the next step.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    live : Tensor or list of Tensor
        ``X`` with its graph back to the model's parameters, or the products that
        closed-form gradients need.
    grad : Tensor of shape (\\*batch, n_rows, n_cols)
        ``dF/dX``.
    iteration : int
        Number of steps done.
    model : nn.Module
        Model that is trained.
    terms : Sum
        Sum of the terms of the objective.
    optimizers : list of Adam
        Optimizers of the model's parameters and of the parameters of each term.
    """

    objective: Tensor = _WhenRead()  # type: ignore[assignment]
    X: Tensor  # (*batch, n_rows, n_cols), detached
    live: Any
    grad: Tensor  # dF/dX at X
    iteration: int
    model: nn.Module
    terms: Sum
    optimizers: list[Adam]

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Parameters of the model and of the terms."""
        return [*self.model.parameters(), *self.terms.parameters()]

    def __getstate__(self) -> dict:
        # Graphs cannot be pickled, and pickling drops gradients.
        grads = [p.grad for p in self.parameters]
        return {**vars(self), "live": None, "grads": grads}

    def __setstate__(self, state: dict) -> None:
        grads = state.pop("grads")
        vars(self).update(state)
        for p, grad in zip(self.parameters, grads, strict=True):
            p.grad = grad
        vars(self)["live"] = _evaluated(self.model)


@dataclass(frozen=True, eq=False, kw_only=True)
class DescentResult(ParametricResult):
    """A completion, and the Laplacians of the terms, by the names of their items."""

    laplacians: dict[str, Tensor | NeighborGraph]


@dataclass(eq=False)
class Descent(ParametricSolver[Observed, DescentState]):
    r"""Adam on a sum of terms of the completion and penalties of parameters.

    .. math::

        \min_\theta \sum_k F_k(X(\theta)) + \sum_j R_j(\theta_j)

    Terms give ``F_k`` and ``dF_k/dX``, in closed form where it is known. Autograd
    propagates the sum of these gradients to the parameters of the model. For a product
    of factors, `FactorProduct.pull` does this by the same matrix products.

    Parameters
    ----------
    model : nn.Module
        Model whose ``forward()`` is the completion, shape (\*batch, n_rows, n_cols).
        Parameters have the batch axes in front. The solver works on a copy.
    terms : sequence of Term
        Terms whose sum is the objective; their own parameters are learned too.
    lr : float
        Learning rate at the start.
    horizon : int
        Number of steps of the schedule: the model's learning rate at step t is
        ``lr (1 + cos(pi t / horizon)) / 2``. The terms' parameters keep ``lr``, because
        a learned regularizer must continue to fade while the model settles.
    penalties : mapping of str to Term
        Penalties ``R_j`` by the names of the model's parameters.
    flow : bool, default=False
        Whether the model follows the gradient, by `RelativeAdam`, instead of `Adam`.
    free_means : bool, default=False
        Whether the completion is the model's plus the mean residual of each column,
        which costs the model no rank.
    haste : float, default=1.0
        Factor of the learning rate of the terms' parameters.

    See Also
    --------
    ParametricSolver : Its base class.
    skmc.terms.Term : Terms of the objective.
    """

    model: nn.Module
    terms: Sequence[Term]
    _: KW_ONLY
    lr: float
    horizon: int
    penalties: Mapping[str, Term] = field(default_factory=dict)
    flow: bool = False
    free_means: bool = False
    haste: float = 1.0

    @torch.no_grad()
    def init(self, data: Observed) -> DescentState:
        model = copy.deepcopy(self.model).to(data.values.device)
        # Terms share the data's tensors, which no step changes. The memo prevents
        # deepcopy from duplicating them.
        memo = {id(t): t for t in (data, data.values, data.mask)}
        X = data.values
        terms = copy.deepcopy(Sum(self.terms), memo).to(X.device, X.dtype)
        self.begin([*model.parameters(), *terms.parameters()])
        kind = RelativeAdam if self.flow else Adam
        optimizers = [kind.of(model.parameters(), self.lr)]
        for term in terms:
            if learned := list(term.parameters()):
                optimizers.append(Adam.of(learned, self.haste * self.lr * term.every))
        return self._evaluate(data, model, terms, optimizers, 0)

    def _evaluate(
        self,
        data: Observed,
        model: nn.Module,
        terms: Sum,
        optimizers: list[Adam],
        iteration: int,
    ) -> DescentState:
        live = _evaluated(model)
        X = _product(live)
        # The next step changes parameters in place.
        X = X.detach().clone() if isinstance(X, nn.Parameter) else X.detach()
        if self.free_means:
            # Columns without a cell have no residual.
            share = data.times / data.column_weights.clamp_min(TINY)
            X = X - (share * data.residual(X)).sum(-2, keepdim=True)
        objective: Any = None
        if self.penalties:
            objective, grad = terms.value_and_grad(X)
            for name, term in self.penalties.items():
                parameter = model.get_parameter(name)
                value, parameter.grad = term.value_and_grad(parameter.detach())
                objective = objective + value
        else:
            grad = terms.grad(X)
        if self.free_means:  # which depend on the model
            grad = grad - share * grad.sum(-2, keepdim=True)
        return DescentState(
            X=X,
            objective=objective,
            live=live,
            grad=grad,
            iteration=iteration,
            model=model,
            terms=terms,
            optimizers=optimizers,
        )

    @torch.no_grad()
    def step(self, data: Observed, state: DescentState) -> DescentState:
        for p, grad in zip(state.optimizers[0].parameters, _pulled(state), strict=True):
            p.grad = grad if p.grad is None else p.grad.add_(grad)
        model, *terms = state.optimizers
        model.step(CosineSchedule(1.0, 0.0, self.horizon)(state.iteration))
        for optimizer in terms:
            optimizer.step()
        iteration = state.iteration + 1
        return self._evaluate(
            data, state.model, state.terms, state.optimizers, iteration
        )

    def resume(self, data: Observed | None, state: DescentState) -> DescentState:
        objective: Any = state.objective if self.penalties else None
        return replace(state, live=_evaluated(state.model), objective=objective)

    def residual(
        self, data: Observed, previous: DescentState, current: DescentState
    ) -> Tensor:
        """``|dF/dtheta| |theta| / (|X| |P(M)|)``.

        A plain gradient norm also vanishes at the start, where all factors are small.
        Division by ``|X|`` makes the measure independent of the scale of the factors;
        free means are not a part of this ``X``.
        Division by ``|P(M)|``, the gradient of the data fit at X = 0, makes it
        independent of the scale of the data.

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
        parameters = current.optimizers[0].parameters
        # Penalties have added their gradients to those of the parameters.
        grads = [
            grad if p.grad is None else grad + p.grad
            for grad, p in zip(_pulled(current, True), parameters, strict=True)
        ]
        X = _product(current.live).detach()
        return relative_slope(grads, parameters, [X], data)

    def select(self, state: DescentState, members: Tensor) -> DescentState:
        return self.resume(None, super().select(state, members))

    def result(self, state: DescentState) -> DescentResult:
        return DescentResult(
            X=state.X,
            parameters=self.remembered(state.parameters),
            laplacians=state.terms.laplacians(),
        )


def _pulled(state: DescentState, retain_graph: bool = False) -> Sequence[Tensor]:
    """Derivatives of the terms with respect to the parameters of the model."""
    if isinstance(state.live, list):
        return cast(FactorProduct, state.model).pull(state.grad, state.live)
    parameters = state.optimizers[0].parameters
    return torch.autograd.grad(state.live, parameters, state.grad, retain_graph)


def _product(live: Any) -> Tensor:
    """The model's completion."""
    return live[-1] if isinstance(live, list) else live


def _evaluated(model: nn.Module) -> Any:
    """Make `DescentState.live`."""
    if type(model) is FactorProduct:
        with torch.no_grad():
            return model.products()
    with torch.enable_grad():
        return model()
