"""New rows are completed independently of each other."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from skmc import IALMCompleter, Observed
from skmc.linalg import GaussNewton, NormalEquations
from skmc.new_rows import EmbeddedRows, FoldIn


class Bend(torch.nn.Module):
    """Rows ``tanh(u A) B``, with misfits that no embedding removes."""

    def __init__(self, rank, n_cols):
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.A = torch.nn.Parameter(torch.randn(rank, 6, generator=rng).double())
        self.B = torch.nn.Parameter(torch.randn(6, n_cols, generator=rng).double())

    @property
    def n_held(self):
        return self.A.shape[0] * 6

    def decode(self, u):
        bent = torch.tanh(u @ self.A)
        slope = (1 - bent.square())[:, None] * self.A  # (k, rank, 6)
        return bent @ self.B, (slope @ self.B).mT


@pytest.fixture(scope="module")
def embedded():
    rng = torch.Generator().manual_seed(1)
    decoder, U = Bend(3, 9), torch.randn(60, 3, generator=rng).double()
    X = decoder.decode(U)[0].detach()
    noisy = X + 0.5 * torch.randn(X.shape, generator=rng).double()
    seen = torch.rand(X.shape, generator=rng) > 0.4
    return EmbeddedRows.of(decoder, U, X, Observed(noisy, seen)), noisy, seen


def test_a_row_does_not_depend_on_the_others(embedded):
    rows, values, seen = embedded
    whole = rows(values, seen)
    for part in (*(slice(k, k + 1) for k in range(60)), slice(20, 27)):
        torch.testing.assert_close(
            rows(values[part], seen[part]), whole[part], rtol=0, atol=1e-11
        )


def test_embeddings_are_stationary(embedded):
    """They are so up to rounding; the loss alone would determine half of the digits."""
    rows, values, seen = embedded
    w = torch.zeros(60, 3, dtype=torch.float64)

    def loss(w):
        X = rows._decode(w)[0]
        fit = ((values - X) * seen).square().sum() / 2
        return fit + rows.noise / 2 * w.square().sum()

    answer = rows(values, seen)
    # The embeddings, from the completed rows.
    w = torch.linalg.lstsq(rows.decoder.B.T, answer.T).solution.T
    u = torch.linalg.lstsq(rows.decoder.A.T, torch.atanh(w).T).solution.T
    w = torch.linalg.solve(rows.root, (u - rows.mean).T).T
    w = w.detach().requires_grad_()
    (grad,) = torch.autograd.grad(loss(w), w)
    assert grad.abs().max() < 1e-9


def test_gauss_newton_converges_past_the_rounding_of_the_loss():
    """``(x - 1)^2 + 1``: the loss is flat to rounding where x is off by 1e-8."""

    def equations_at(x):
        loss = ((x - 1).square().sum(-1) + 1) / 2
        return NormalEquations(loss, torch.full((1, 1, 1), 1.5, dtype=x.dtype), 1 - x)

    x = torch.zeros(1, 1, dtype=torch.float64)
    fit = GaussNewton.start(x, equations_at(x), damping=1.0)
    for _ in range(60):
        fit = fit.step(equations_at)
    assert abs(float(fit.x) - 1) < 1e-14


def test_units_of_rows_do_not_matter():
    """This holds even if squares underflow."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(12, 5, dtype=torch.float64, generator=generator)
    F = torch.randn(5, 3, dtype=torch.float64, generator=generator)
    mask = torch.rand(12, 5, generator=generator) < 0.6
    expected = FoldIn(X[0], F, 0.0)(X, mask)
    for unit in (2.0**-950, 2.0**-500, 2.0**400):
        found = FoldIn(unit * X[0], unit * F, 0.0)(unit * X, mask) / unit
        torch.testing.assert_close(found, expected)


def test_the_map_of_new_rows_is_computed_on_demand(monkeypatch):
    calls, of = [], FoldIn.of
    monkeypatch.setattr(FoldIn, "of", lambda *args: calls.append(args) or of(*args))
    rng = np.random.RandomState(0)
    X = rng.randn(30, 3) @ rng.randn(3, 8)
    X[rng.random_sample(X.shape) < 0.3] = np.nan
    completer = IALMCompleter().fit(X[:20])
    completer.transform(X[:20])
    assert not calls
    copied = pickle.loads(pickle.dumps(completer))
    assert isinstance(copied._fitted.row_map.folded, FoldIn)
    np.testing.assert_array_equal(completer.transform(X[20:]), copied.transform(X[20:]))
    assert len(calls) == 1


def test_new_rows_of_the_smallest_numbers_are_completed():
    """The loadings are zeros after an underflow."""
    X = torch.zeros(8, 2, dtype=torch.float64)
    X[1:, 0] = 5e-324
    seen = torch.tensor([[True, False]])
    space = FoldIn.of(X, X, seen.expand_as(X))
    assert torch.isfinite(space(X[:1], seen)).all()
