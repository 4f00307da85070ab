"""The tests of this folder can fail: each of these faults is seen by one of them.

Not reached by any test here: a wrong order of operations in two streams, and rounding
that only CUDA's kernels have. The device has no streams, and the CPU's arithmetic.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import make
from second_device import DEVICE, backend
from test_budgets import steps_of
from test_fits import answers, fit, matrix, sample

from skmc import (
    AIRCompleter,
    BayesianFactorizationCompleter,
    DMFCompleter,
    GaussianCompleter,
    KNNCompleter,
    SVDCompleter,
)
from skmc.linalg import Randomness
from skmc.solvers import HardRank

pytestmark = [
    pytest.mark.second_device,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
MIXED = "Expected all tensors to be on the same device"


@pytest.fixture(autouse=True)
def on_the_device():
    backend()


@pytest.mark.parametrize("cls", [AIRCompleter, DMFCompleter, GaussianCompleter])
def test_a_factory_that_forgets_the_device(cls, monkeypatch):
    like = torch.zeros_like
    monkeypatch.setattr(torch, "zeros_like", lambda x, **k: like(x, **k).cpu())
    with pytest.raises(RuntimeError, match=MIXED):
        answers(fit, cls, {}, matrix(), DEVICE)


def test_a_tensor_on_the_current_device_instead_of_that_of_the_data(monkeypatch):
    like = torch.zeros_like
    monkeypatch.setattr(torch, "zeros_like", lambda x, **k: like(x, **k).to("second"))
    with pytest.raises(RuntimeError, match="second:1 and second:0"):
        answers(fit, GaussianCompleter, {}, matrix(), DEVICE)


def test_a_buffer_that_stays_behind(monkeypatch):
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, *args, **kwargs: self)
    with pytest.raises(RuntimeError, match=MIXED):
        answers(fit, DMFCompleter, {"regularizer": "dirichlet"}, matrix(), DEVICE)


def test_a_generator_of_another_device(monkeypatch):
    def on_the_device(self, *shape, std):
        (generator, *_) = self.generators
        return torch.randn(*shape, generator=generator, device=DEVICE).double() * std

    monkeypatch.setattr(Randomness, "normal", on_the_device)
    with pytest.raises(RuntimeError, match="device type for generator"):
        answers(sample, BayesianFactorizationCompleter, {}, matrix(), DEVICE)


def test_an_index_made_on_the_host(monkeypatch):
    """A GPU accepts it, and copies it in each step."""
    step = HardRank.step

    def with_index(self, data, state):
        data.values[torch.tensor([0, 1])]
        return step(self, data, state)

    monkeypatch.setattr(HardRank, "step", with_index)
    completer = make(SVDCompleter, rank=2, tol=0.0, device=DEVICE)
    (found,) = steps_of([lambda: completer.fit(matrix())]).values()
    assert found["from host"] >= 1


def test_a_number_read_in_each_step(monkeypatch):
    step = HardRank.step

    def with_number(self, data, state):
        float(state.objective)
        return step(self, data, state)

    monkeypatch.setattr(HardRank, "step", with_number)
    completer = make(SVDCompleter, rank=2, tol=0.0, device=DEVICE)
    (found,) = steps_of([lambda: completer.fit(matrix())]).values()
    assert found["waits"] >= 1


def test_double_precision_where_the_data_are_single(monkeypatch):
    step = HardRank.step

    def with_double(self, data, state):
        one = torch.ones(1, 1, dtype=torch.float64, device=data.device)
        data.values * one
        return step(self, data, state)

    monkeypatch.setattr(HardRank, "step", with_double)
    with pytest.raises(AssertionError, match="double"):
        assert_single(SVDCompleter)


@pytest.mark.parametrize("cls", [AIRCompleter, DMFCompleter, SVDCompleter])
def test_single_precision_stays_single(cls):
    assert_single(cls)


def assert_single(cls):
    """No large tensor of a step is in double precision if the data are not."""
    completer = make(cls, max_iter=10, device=DEVICE)
    (*_, found) = steps_of(
        [lambda: completer.fit(matrix().astype(np.float32))]
    ).values()
    assert not found.get("double"), found


def test_memory_that_is_not_returned():
    device = backend()
    completer = make(KNNCompleter, device=DEVICE)
    completer.fit_transform(matrix())
    before = device.in_use()
    completer.fit_transform(matrix())
    assert device.in_use() == before
    kept = torch.zeros(1000, device=DEVICE)
    assert device.in_use() >= before + kept.nbytes
