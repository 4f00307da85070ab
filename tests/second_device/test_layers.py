"""Sensing regressors, inverses and singular values on another device."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import make
from second_device import DEVICE, backend

from skmc import sensing
from skmc.inverses import DSVD, LDMinv, d_minv, minimize_on_stiefel

pytestmark = [
    pytest.mark.second_device,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
REGRESSORS = [
    (getattr(sensing, name), params)
    for name in sensing.__all__
    if name.endswith("Regressor")
    for params in ([{}, {"lambda_nuclear": 0}] if "Nuclear" in name else [{}])
]


@pytest.fixture(autouse=True)
def on_the_device():
    if DEVICE.startswith("second"):
        backend()


@pytest.mark.parametrize(("cls", "params"), REGRESSORS)
def test_regressors(cls, params):
    rng = np.random.RandomState(0)
    A = rng.randn(30, 6, 5)
    y = np.tensordot(A, rng.randn(6, 1) @ rng.randn(1, 5))
    found = [
        make(cls, max_iter=60, device=device, **params).fit(A, y)
        for device in ("cpu", DEVICE)
    ]
    here, there = (regressor.matrix_ for regressor in found)
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)
    here, there = (regressor.predict(A[:4]) for regressor in found)
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)


LAYERS = {
    "D-SVD": (lambda: DSVD(depth=10), lambda layer, A: layer(A).s),
    "LD-Minv": (lambda: LDMinv(order=4, depth=3), lambda layer, A: layer(A)),
    "D-Minv": (torch.nn.Identity, lambda layer, A: d_minv(layer(A), 4, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_forward_and_backward(name):
    make_layer, values_of = LAYERS[name]
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(3, 6, 4, generator=generator, dtype=torch.float64)
    answers = []
    for device in ("cpu", DEVICE):
        layer = make_layer().double().to(device)
        given = A.clone().to(device).requires_grad_()
        values = values_of(layer, given)
        values.square().sum().backward()
        grads = [p.grad.cpu() for p in (given, *layer.parameters())]
        answers.append([values.detach().cpu(), *grads])
    for here, there in zip(*answers, strict=True):
        torch.testing.assert_close(there, here, rtol=1e-9, atol=1e-9)


def test_descent_on_orthonormal_matrices():
    values = torch.diag(torch.tensor([1.0, 5.0, 2.0, 4.0], dtype=torch.float64))
    start = torch.linalg.qr(torch.arange(8.0).double().reshape(4, 2) % 3).Q
    found = []
    for device in ("cpu", DEVICE):
        A = values.to(device)
        result = minimize_on_stiefel(
            lambda U, A=A: -(U * (A @ U)).sum(), start.to(device)
        )
        found.append(result.value)
    assert found[1] == pytest.approx(found[0], rel=1e-9)
