"""A method as a user writes one: every part of it is defined outside of the package."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from skmc.base import CompleterTags, IterativeCompleter
from skmc.persistence import register
from skmc.solvers import Result, Solver, State
from skmc.terms import SquaredError, Term


class Ridge(Term):
    def __init__(self, weight: float):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight, dtype=torch.float64), False)

    def forward(self, X: Tensor) -> Tensor:
        return self.weight.to(X) / 2 * X.square().sum((-2, -1))


class Product(nn.Module):
    def __init__(self, A: Tensor, B: Tensor):
        super().__init__()
        self.A, self.B = nn.Parameter(A), nn.Parameter(B)

    def forward(self) -> Tensor:
        return self.A @ self.B


@dataclass(frozen=True, kw_only=True)
class NoisyState(State):
    X: Tensor
    model: Product
    terms: list[Term]
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    record: dict[str, list[int]]


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledResult(Result):
    scale: Tensor


class NoisyDescent(Solver):
    """Descent with momentum, in a new place each time by a generator of its own."""

    def __init__(self, model: Product, terms: list[Term]):
        self.model, self.terms = model, terms

    def init(self, data):
        model, terms = copy.deepcopy(self.model), copy.deepcopy(self.terms)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.8)
        generator = torch.Generator().manual_seed(5)
        record: dict[str, list[int]] = {"steps": [0]}
        return self._state(model, terms, optimizer, generator, record)

    def _state(self, model, terms, *others) -> NoisyState:
        with torch.enable_grad():
            X = model()
            objective = sum(term(X) for term in terms)
            torch.autograd.backward(objective, inputs=list(model.parameters()))
        names = ("optimizer", "generator", "record")
        return NoisyState(
            X=X.detach(),
            objective=objective.detach(),
            model=model,
            terms=terms,
            **dict(zip(names, others, strict=True)),
        )

    def step(self, data, state):
        assert state.optimizer.param_groups[0]["params"][0] is state.model.A
        state.optimizer.step()
        state.optimizer.zero_grad()
        noise = torch.randn(state.model.A.shape, generator=state.generator)
        state.model.A.detach().add_(noise.to(state.X), alpha=1e-3)
        state.record["steps"].append(state.record["steps"][-1] + 1)
        return self._state(
            state.model, state.terms, state.optimizer, state.generator, state.record
        )

    def residual(self, data, previous, current):
        return (current.X - previous.X).norm() / current.X.norm()

    def result(self, state):
        return ScaledResult(X=state.X, scale=state.X.abs().mean())


@register
@dataclass
class Shrunk:
    """How new rows are completed: all their missing cells get one number."""

    scale: Tensor

    def __call__(self, values, mask):
        return torch.where(mask, values, self.scale)


class OwnCompleter(IterativeCompleter):
    completer_tags = CompleterTags(recovers=1.0)

    def __init__(
        self,
        weight=0.1,
        *,
        max_iter=40,
        tol=0.0,
        scaling="global",
        device="cpu",
        random_state=0,
        missing_values=np.nan,
        add_indicator=False,
        keep_empty_features=True,
        keep_observed=True,
    ):
        self.weight = weight
        self.max_iter = max_iter
        self.tol = tol
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    warn_at_max_iter = False

    def _make_solver(self, data, params, rng):
        n_rows, n_cols = data.shape
        model = Product(rng.normal(n_rows, 2, 0.5), rng.normal(2, n_cols, 0.5))
        self_made = [SquaredError(data), Ridge(params.weight)]
        return NoisyDescent(model.to(data.values), self_made)

    def _row_map(self, result, data):
        return Shrunk(result.scale.cpu())


def problem() -> np.ndarray:
    rng = np.random.RandomState(0)
    X = rng.randn(20, 2) @ rng.randn(2, 10)
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    return X
