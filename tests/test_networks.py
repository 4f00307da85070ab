"""The models of the network family, and what their completers promise."""

from __future__ import annotations

import pytest
import torch

from skmc import models
from skmc.models import BiBranch, Branch, FactorProduct, LinkedFactorization
from skmc.randomness import Randomness


def draw(seed=0, batch=()):
    n = 1 if not batch else batch[0]
    return Randomness.of(range(seed, seed + n), batch, torch.float64)


def link_model(batch=()):
    d = draw(batch=batch)
    units = [d.normal(1, 3, 1.0) for _ in range(3)]
    return LinkedFactorization(d.normal(6, 2, 1.0), d.normal(5, 2, 1.0), *units)


def test_the_links_gradient_is_the_derivative():
    model = link_model()
    C = draw(1).normal(4, 3, 1.0).requires_grad_()
    parameters = [C, model.slope, model.offset, model.heights, model.steeps]

    def link(*_):
        return model.link(C)

    assert torch.autograd.gradcheck(link, [*parameters, model.shifts])
    X, slope = model.link_and_slope(C)
    torch.testing.assert_close(X, model.link(C))
    torch.testing.assert_close(slope, torch.autograd.grad(model.link(C).sum(), C)[0])


def test_a_link_too_large_to_be_remembered_is_the_same(monkeypatch):
    first, second = link_model(), link_model()
    first().square().sum().backward()
    monkeypatch.setattr(models.link, "KEPT", 0)
    monkeypatch.setattr(models.link, "BLOCK", 7)
    second().square().sum().backward()
    for p, q in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)


@pytest.mark.parametrize("make", [link_model])
def test_batched_models_are_looped_ones(make):
    together = make((3,))
    together().square().sum().backward()
    for k in range(3):
        alone = make()
        with torch.no_grad():
            for p, q in zip(alone.parameters(), together.parameters(), strict=True):
                p.copy_(q[k])
        torch.testing.assert_close(alone(), together()[k])
        alone().square().sum().backward()
        for p, q in zip(alone.parameters(), together.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad[k])


def test_branches_without_hidden_layers_are_factors():
    rows = Branch.random([6, 2], 1.0, draw())
    cols = Branch.random([5, 2], 1.0, draw(1))
    factors = FactorProduct([cols.weights[0].mT, rows.weights[0]])
    torch.testing.assert_close(BiBranch(rows, cols)(), factors())
