"""Descent on networks of rows: gradients, mini-batches, missing inputs."""

from __future__ import annotations

import pytest
import torch
from conftest import low_rank

from skmc import Observed
from skmc.linalg import Randomness
from skmc.loop import solve
from skmc.models import Autoencoder
from skmc.solvers import RowDescent
from skmc.terms import L1Norm, SquaredNorm

SHAPE = 20, 6


def draw():
    return Randomness.of([0], dtype=torch.float64)


@pytest.fixture
def data():
    values = torch.from_numpy(low_rank(*SHAPE))
    return Observed(values, draw().uniform(*SHAPE, 1.0) > -0.4)


def solver(**params):
    network = Autoencoder.random([6, 4, 6], draw())
    penalties = {"weights.0": SquaredNorm(0.3), "weights.1": L1Norm(0.2)}
    fixed = {"lr": 0.01, "horizon": 100, "batch_size": 20, "rng": draw()}
    return RowDescent(network, penalties, **{**fixed, **params})


@pytest.mark.parametrize("batch_size", [20, 7])
def test_gradients_are_derivatives_of_the_objective(data, batch_size):
    """Over an epoch the gradients of the mini-batches sum to autograd's."""
    ours = solver(batch_size=batch_size)
    state = ours.init(data)
    value = sum(ours._backward(data, state.network, b) for b in state.batches)
    network = Autoencoder.random([6, 4, 6], draw())
    first, second = network.weights
    expected = (
        0.5 * (data.residual(network(data.values))).square().sum()
        + 0.15 * first.square().sum()
        + 0.2 * second.abs().sum()
    )
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    for p, q in zip(state.network.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)


@pytest.mark.parametrize("batch_size", [20, 7])
def test_outputs_are_the_forward_pass(data, batch_size):
    ours = solver(batch_size=batch_size)
    with torch.no_grad():
        state = ours.step(data, ours.init(data))
        result = ours.result(state)
        torch.testing.assert_close(result.X, result.network(data.values))
        before = [p.clone() for p in state.network.parameters()]
        assert ours.residual(data, None, state) > 0
    # Looking at the residual moves nothing.
    for p, q in zip(before, state.network.parameters(), strict=True):
        torch.testing.assert_close(p, q.detach())
        assert q.grad is None


def test_missing_inputs_are_learned_and_observed_ones_stay(data):
    ours = solver(free=True, inputs=torch.full(SHAPE, 0.5, dtype=torch.float64))
    with torch.no_grad():
        state = ours.init(data)
        torch.testing.assert_close(
            state.batches[0].inputs.detach(), data.fill(torch.tensor(0.5).double())
        )
        for _ in range(3):
            state = ours.step(data, state)
    inputs = state.batches[0].inputs.detach()
    torch.testing.assert_close(inputs[data.mask], data.values[data.mask])
    assert (inputs[~data.mask] != 0.5).all()


def test_mini_batches_fit_as_well_as_full_batches(data):
    fits = [
        solve(
            solver(batch_size=size, lr=0.05, horizon=300, free=free), data, max_iter=300
        ).X
        for size in (20, 7)
        for free in (True, False)
    ]
    for X in fits:
        assert data.misfit(X) < 0.2 * data.energy
