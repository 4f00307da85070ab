"""Members can be removed from the batch of any solver, including user-defined ones."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

import pytest
import torch
from torch import Tensor, nn

from skmc import Observed
from skmc.completers.ialm import InexactALM
from skmc.linalg import Randomness
from skmc.loop import Run, solve, tensorwise
from skmc.models import FactorProduct
from skmc.sensing.nuclear import ProximalGradient
from skmc.solvers import (
    Descent,
    GradientFlow,
    HardRank,
    Momentum,
    Result,
    Solver,
    State,
)
from skmc.terms import L1Norm, NuclearNorm, SquaredError, SquaredNorm

WEIGHTS = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)


def observed() -> Observed:
    rng = torch.Generator().manual_seed(0)
    values = torch.randn(3, 9, 2, generator=rng, dtype=torch.float64)
    values = values @ torch.randn(3, 2, 7, generator=rng, dtype=torch.float64)
    return Observed(values, torch.rand(3, 9, 7, generator=rng) > 0.3)


def model(k=None):
    seeds, batch = (range(3), (3,)) if k is None else ([k], ())
    rng = Randomness.of(seeds, batch, torch.float64)
    return FactorProduct.random((9, 7), 2, 4, 0.3, rng)


@dataclass(frozen=True)
class Memory:
    """A part of a state, with a list in it."""

    moves: list[Tensor]
    momentum: Momentum


@dataclass(frozen=True, kw_only=True)
class OwnState(State):
    X: Tensor
    model: nn.Module
    memory: Memory
    optimizer: torch.optim.Optimizer
    iteration: int


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnResult(Result):
    memory: torch.Tensor


class Own(Solver):
    """From outside the package, and without a `select`: descent with a shrinkage.

    It has a weight of each member, a term with another, matrices of each member, a
    model with an optimizer, and a state within the state.
    """

    def __init__(self, data, model, weight, offset):
        self.model, self.weight, self.offset = model, weight, offset
        self.fit, self.penalty = SquaredError(data), L1Norm(weight)
        self.label, self.scale = "own", torch.tensor(0.5)

    def init(self, data):
        moments = torch.optim.Adam(self.model.parameters(), lr=0.05)
        memory = Memory([data.zero()], Momentum(torch.ones_like(data.n_observed)))
        return self.state(self.model, moments, memory, 0)

    def state(self, model, optimizer, memory, iteration):
        with torch.enable_grad():
            X = model() + self.offset
            fit, penalty = self.fit(X), self.penalty(X)
            objective = fit + penalty * self.weight * self.scale
            objective.sum().backward()
        return OwnState(
            X=X.detach(),
            objective=objective.detach(),
            model=model,
            memory=memory,
            optimizer=optimizer,
            iteration=iteration,
        )

    def step(self, data, state):
        state.optimizer.step()
        state.optimizer.zero_grad()
        momentum = state.memory.momentum
        new = self.state(
            state.model,
            state.optimizer,
            Memory([momentum.extrapolate(state.X, state.memory.moves[0])], momentum),
            state.iteration + 1,
        )
        memory = Memory([new.memory.moves[0] + new.X], momentum.next)
        return OwnState(**{**vars(new), "memory": memory})

    def residual(self, data, previous, current):
        return (current.X - previous.X).square().sum((-2, -1))

    def result(self, state):
        return OwnResult(X=state.X, memory=state.memory.moves[0])


SOLVERS = {
    "own": lambda data, k: Own(data, model(k), of(k), data.values / 10),
    "ALM": lambda data, k: InexactALM(),
    "hard rank": lambda data, k: HardRank(2, data.values),
    "FISTA": lambda data, k: ProximalGradient(
        SquaredError(data), NuclearNorm(of(k)), torch.ones_like(of(k))
    ),
    "flow": lambda data, k: GradientFlow(
        model(k), [SquaredError(data), SquaredNorm(of(k))]
    ),
    "descent": lambda data, k: Descent(
        model(k),
        [SquaredError(data), SquaredNorm(of(k))],
        lr=0.02,
        horizon=60,
        penalties={"factors.0": L1Norm(of(k))},
    ),
}


def of(k):
    return WEIGHTS.clone() if k is None else WEIGHTS[k].clone()


class Leave:
    """Members end at their own iterations."""

    def __init__(self, ends):
        self.ends = torch.tensor(ends)

    def __call__(self, progress):
        return progress.n_iter >= self.ends

    def select(self, members):
        self.ends = self.ends[members]


@pytest.mark.parametrize("name", SOLVERS)
def test_members_that_are_removed_do_not_change_the_others(name):
    data = observed()
    run = Run(
        SOLVERS[name](data, None),
        data,
        stop=[Leave([4, 24, 14])],
        check_every=2,
        compact=True,
    )
    run.advance(30)
    together = run.solution()
    assert run.answers.members.tolist() == [1]
    assert together.n_iter.tolist() == [4, 24, 14]
    for k, n_iter in enumerate([4, 24, 14]):
        one = Observed(data.values[k], data.mask[k])
        alone = solve(SOLVERS[name](one, k), one, max_iter=n_iter, check_every=2)
        member = tensorwise(itemgetter(k), together.result)
        pairs = zip(vars(member).values(), vars(alone.result).values(), strict=True)
        for value, expected in pairs:
            torch.testing.assert_close(value, expected, rtol=1e-8, atol=1e-8)


def test_shared_parameters_stay_shared():
    data, shared = observed(), model()
    solver = Own(data, shared, of(None), data.values / 10)
    state = solver.init(data)
    state = solver.select(state, torch.tensor([0, 2]))
    assert state.model is solver.model is shared
    (group,) = state.optimizer.param_groups
    for mine, its in zip(group["params"], shared.parameters(), strict=True):
        assert mine is its
    assert solver.weight.tolist() == [0.5, 2.0]
    assert solver.label == "own" and float(solver.scale) == 0.5
