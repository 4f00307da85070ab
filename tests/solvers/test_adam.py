"""The steps of Adam, and closed-form gradients."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

from skmc import Observed
from skmc.linalg import Randomness
from skmc.models import FactorProduct
from skmc.solvers import Adam, Descent
from skmc.terms import AdaptiveDirichletEnergy, L1Norm, SquaredError


def test_steps_equal_those_of_torch():
    """This holds with a decay, other strides, and a gradient that is always missing."""
    rng = torch.Generator().manual_seed(0)

    def draw():
        return torch.randn(4, 3, generator=rng, dtype=torch.float64)

    theirs = [nn.Parameter(draw()) for _ in range(3)]
    ours = [p.detach().clone() for p in theirs]
    reference = torch.optim.Adam(theirs, lr=0.1)
    adam = Adam.of(ours, 0.1)
    adam.step()  # without gradients: not a step
    for step in range(12):
        decay = 1 - step / 12
        reference.param_groups[0]["lr"] = 0.1 * decay
        for a, b in zip(theirs[:2], ours, strict=False):
            a.grad = draw()
            b.grad = a.grad.T.contiguous().T if step % 3 else a.grad.clone()
        reference.step()
        adam.step(torch.tensor(decay) if step % 2 else decay)
        assert all(p.grad is None for p in ours)
    for a, b in zip(theirs, ours, strict=True):
        torch.testing.assert_close(b, a.detach(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_closed_form_gradients_equal_autograd(batch, depth):
    rng = Randomness.of(range((len(batch) and 2) or 1), batch, torch.float64)
    model = FactorProduct.random((5, 4), depth, 3 if depth > 1 else 4, 1.0, rng)
    grad = rng.normal(5, 4, 1.0)
    model().backward(grad)
    with torch.no_grad():
        grads = model.pull(grad, model.products())
    for p, found in zip(model.parameters(), grads, strict=True):
        torch.testing.assert_close(found, p.grad)


class Plain(nn.Module):
    """The same product as an ordinary module."""

    def __init__(self, product):
        super().__init__()
        self.factors = nn.ParameterList(product.factors)

    def forward(self):
        return self.factors[1] @ self.factors[0]


def problem():
    rng = Randomness.of([0], dtype=torch.float64)
    data = Observed(rng.normal(6, 5, 1.0), rng.normal(6, 5, 1.0) > -0.5)
    product = FactorProduct.random((6, 5), 2, 3, 0.5, rng)
    terms = [SquaredError(data), AdaptiveDirichletEnergy(rng.uniform(6, 6, 0.1))]
    return data, product, terms


def descent(model, terms):
    return Descent(
        model, terms, lr=0.1, horizon=30, penalties={"factors.0": L1Norm(0.1)}
    )


def test_an_ordinary_module_makes_the_same_steps():
    data, product, terms = problem()
    states = []
    for model in (product, Plain(product)):
        solver = descent(model, copy.deepcopy(terms))
        state = solver.init(data)
        for _ in range(5):
            state = solver.step(data, state)
        states.append((state, solver.residual(data, None, state)))
    (one, first), (other, second) = states
    torch.testing.assert_close(one.X, other.X)
    torch.testing.assert_close(one.objective, other.objective)
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("penalties", [{}, {"factors.0": L1Norm(0.1)}])
def test_the_objective_belongs_to_its_iterate(penalties):
    """It is evaluated when it is read, also in a copy and in a pickle."""
    data, product, terms = problem()
    solver = Descent(product, terms, lr=0.1, horizon=30, penalties=penalties)
    state = solver.init(data)
    for _ in range(3):
        expected = state.terms(state.X)
        for name, term in penalties.items():
            expected = expected + term(state.model.get_parameter(name))
        read = [state, copy.deepcopy(state), pickle.loads(pickle.dumps(state))]
        for each in reversed(read):
            torch.testing.assert_close(each.objective, expected.detach())
        state = solver.step(data, state)
