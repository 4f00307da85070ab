"""PyTorch's private names are in one file, and no result depends on them."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import low_rank

import skmc
from skmc import AIRCompleter, KNNCompleter
from skmc.linalg import adam_update, linear, relu_layer, softmax_derivative

ROOT = Path(skmc.__file__).parent
# "torch.__version__" and "torch.__config__" are public.
PRIVATE = re.compile(r"\btorch(\.\w+)*(\.ops\b|\._(?!_))|\"_fused_adam_\"")


def test_private_names_are_in_one_file():
    paths = ROOT.rglob("*.py")
    found = {path.name for path in paths if PRIVATE.search(path.read_text("utf-8"))}
    assert found == {"fused.py"}


class AtenWithout:
    """Torch itself needs the other names."""

    def __init__(self, removed):
        self.removed, self.aten = removed, torch.ops.aten

    def __getattr__(self, name):
        if name == self.removed:
            raise AttributeError(name)
        return getattr(self.aten, name)


def remove_private_names(monkeypatch):
    for name in ("_fused_adam_", "_softmax_backward_data"):
        monkeypatch.delattr(torch, name)
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())
    monkeypatch.setattr(torch.ops, "aten", AtenWithout("threshold_backward"))


def numbers(dtype):
    """What each function computes from the same random numbers."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    found = [linear(draw(300, 40), draw(30, 40))]
    found.append(linear(draw(3, 0), draw(2, 0), torch.ones(2, dtype=dtype)))
    found.append(softmax_derivative(draw(2, 7, 5), draw(2, 7, 5).softmax(-1)))
    inputs = [draw(*shape).requires_grad_() for shape in [(200, 18), (32, 18), (32,)]]
    found.append(relu_layer(*inputs))
    found += torch.autograd.grad(found[-1], inputs, draw(200, 32))
    parameters, first, second = ([draw(4, 3).abs()] for _ in range(3))
    for step in range(1, 4):
        count, rate = torch.tensor(float(step)), torch.tensor(0.1)
        adam_update(parameters, [draw(4, 3)], first, second, count, rate, 0.99)
    return [t.detach() for t in [*found, *parameters, *first, *second]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions_without_private_names(dtype, monkeypatch):
    expected = numbers(dtype)
    remove_private_names(monkeypatch)
    torch.testing.assert_close(numbers(dtype), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "completer",
    [AIRCompleter(max_iter=20, random_state=0), KNNCompleter()],
    ids=lambda completer: type(completer).__name__,
)
def test_fits_without_private_names(completer, monkeypatch):
    X = low_rank(40, 30)
    X[np.random.RandomState(0).uniform(size=X.shape) < 0.3] = np.nan
    expected = completer.fit_transform(X)
    remove_private_names(monkeypatch)
    np.testing.assert_allclose(completer.fit_transform(X), expected, rtol=1e-6)
