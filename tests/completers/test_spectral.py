"""Spectral activations, networks of them, and the flow that trains these."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import low_rank
from sklearn.exceptions import ConvergenceWarning

from skmc import Observed, SNNCompleter, patterns
from skmc.linalg import (
    ACTIVATIONS,
    Randomness,
    SpectralActivation,
    activations,
    apply_to_singular_values,
)
from skmc.loop import solve
from skmc.models import FactorProduct, SpectralNetwork
from skmc.models.spectral_network import SMALL
from skmc.sensing import DiagonalMeasurements, Measured, NuclearSensingRegressor
from skmc.solvers import GradientFlow
from skmc.terms import MeasurementError, SquaredError

DOUBLE = torch.float64
SHAPES = [(6, 6), (7, 4), (4, 7)]
GAMMA = {
    "tanh": np.tanh,
    "sigmoid": lambda s: 2 / (1 + np.exp(-s)) - 1,
    "truncated_relu": lambda s: np.minimum(s, 1),
}


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=DOUBLE)


def with_singular_values(shape, s):
    U, V = (torch.linalg.qr(draw(n, len(s), seed=n))[0] for n in shape)
    return (U * s) @ V.mT


SPECTRA = {
    "apart": lambda r: torch.linspace(0.1, 2.9, r, dtype=DOUBLE),
    "all equal": lambda r: torch.full((r,), 0.7, dtype=DOUBLE),
    "two pairs": lambda r: torch.tensor([0.9, 0.9, 0.3, 0.3], dtype=DOUBLE),
    "rank one": lambda r: torch.tensor([0.8] + [0.0] * (r - 1), dtype=DOUBLE),
    "zero": lambda r: torch.zeros(r, dtype=DOUBLE),
    "near zero": lambda r: 1e-8 * (1 + 0.01 * draw(r)),
    "far apart": lambda r: torch.tensor([2e3, 0.9, 0.5, 0.1], dtype=DOUBLE),
    "large and small": lambda r: torch.tensor([30.0, 1.5, 1e-4, 2e-6], dtype=DOUBLE),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_derivative_is_correct_where_that_of_the_svd_is_not(name, spectrum, shape):
    activation = ACTIVATIONS[name]
    Z = with_singular_values(shape, SPECTRA[spectrum](min(shape)))
    U, s, V = np.linalg.svd(Z.numpy(), full_matrices=False)
    ours = apply_to_singular_values(Z, activation)
    np.testing.assert_allclose(ours, (U * GAMMA[name](s)) @ V, atol=2e-12)
    assert torch.autograd.gradcheck(
        lambda Z: apply_to_singular_values(Z, activation),
        Z.requires_grad_(),
        atol=1e-6,
        rtol=1e-5,
    )


def test_batches_and_single_precision():
    activation = ACTIVATIONS["tanh"]
    cases = [SPECTRA[name](4) for name in ("apart", "rank one", "zero", "two pairs")]
    Z = torch.stack([with_singular_values((4, 7), s) for s in cases]).requires_grad_()
    G = draw(*Z.shape, seed=5)
    together = apply_to_singular_values(Z, activation)
    (slope,) = torch.autograd.grad(together, Z, G)
    for i in range(len(Z)):
        alone = Z[i].detach().requires_grad_()
        X = apply_to_singular_values(alone, activation)
        torch.testing.assert_close(X, together[i])
        torch.testing.assert_close(torch.autograd.grad(X, alone, G[i])[0], slope[i])
    single = Z.detach().float().requires_grad_()
    X = apply_to_singular_values(single, activation)
    (rough,) = torch.autograd.grad(X, single, G.float())
    torch.testing.assert_close(X, together.float(), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(rough, slope.float(), atol=1e-4, rtol=1e-4)
    far = with_singular_values((4, 7), SPECTRA["far apart"](4))
    X, single = (apply_to_singular_values(x, activation) for x in (far, far.float()))
    torch.testing.assert_close(single, X.float(), atol=1e-3, rtol=0)


def test_tracked_spectra_equal_the_full_decomposition(monkeypatch):
    """This holds for X and its gradients in slowly changing large matrices."""
    calls = []
    original = activations.partial_svd
    monkeypatch.setattr(
        activations, "partial_svd", lambda *a, **k: calls.append(1) or original(*a, **k)
    )
    activation = ACTIVATIONS["tanh"]
    follow = SpectralActivation(activation)
    s = torch.cat([torch.linspace(1.5, 0.1, 12), torch.logspace(-2.1, -6, 108)])
    Z = torch.stack(
        [with_singular_values(shape, s.to(DOUBLE)) for shape in [(150, 120)] * 2]
    )
    G, drift = draw(2, 150, 120, seed=1), 2e-3 * draw(2, 150, 120, seed=2)
    for _ in range(5):
        Z = (Z + drift / 150).detach().requires_grad_()
        X, exact = follow(Z), apply_to_singular_values(Z, activation)
        torch.testing.assert_close(X, exact, atol=2e-6, rtol=0)
        slope, expected = (torch.autograd.grad(Y, Z, G)[0] for Y in (X, exact))
        assert (slope - expected).norm() < 1e-3 * expected.norm()
    assert len(calls) == 8
    assert follow(1e-3 * Z / 150).allclose(1e-3 * Z / 150)  # too small to bend
    turned = Z[:, :120, :].mT.detach()
    assert follow(turned).allclose(
        apply_to_singular_values(turned, activation), atol=2e-6
    )
    assert follow(turned.float()).dtype == torch.float32
    with pytest.raises(TypeError, match="Z must be of float32 or float64"):
        apply_to_singular_values(torch.ones(3, 3, dtype=torch.int64), activation)
    small = Z[0, :60, :40]
    assert torch.equal(follow(small), apply_to_singular_values(small, activation))


def test_below_its_kink_the_truncated_relu_gives_a_factorization():
    rng = Randomness.of([0], dtype=DOUBLE)
    model = SpectralNetwork.near_zero(
        draw(5, 7), (2,), ACTIVATIONS["truncated_relu"], rng, width=3, scale=4.0
    )
    U, V, (alpha,) = model.U, model.V, model.alphas
    plain = FactorProduct([V[0].mT, 4 * alpha[0, 0] * U[0]])()
    plain = plain + FactorProduct([V[1].mT, 4 * alpha[0, 1] * U[1]])()
    torch.testing.assert_close(model(), plain, atol=0, rtol=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("layers", [(1,), (3,), (2, 3)])
def test_spectral_start(name, layers):
    """Assumption 2: the given singular vectors, and no larger singular values."""
    rng = Randomness.of([0], dtype=DOUBLE)
    near = torch.linalg.svd(draw(6, 4), full_matrices=False)
    model = SpectralNetwork.spectral(
        draw(6, 4) / SMALL, layers, ACTIVATIONS[name], rng, scale=2.0
    )
    inside = near.U.mT @ model() @ near.Vh.mT
    diagonal = inside.diagonal()
    torch.testing.assert_close(inside, diagonal.diag(), atol=1e-12, rtol=0)
    assert (diagonal > 0.05 * near.S).all()
    assert (diagonal <= near.S + 1e-12).all()


def problem(seed=0):
    truth = low_rank(20, 15, rank=2, seed=seed)
    hidden = patterns.random(truth, 0.3, spare=True, random_state=seed)
    return truth, hidden, Observed(torch.from_numpy(truth), torch.from_numpy(~hidden))


def test_flow_descends_to_a_stationary_point():
    truth, hidden, data = problem()
    model = FactorProduct.random(
        data.shape, 2, 15, 1e-3, Randomness.of([0], dtype=DOUBLE)
    )
    flow = GradientFlow(model, [SquaredError(data)])
    found = solve(flow, data, max_iter=1000, tol=1e-4, check_every=1)
    assert found.status == ["converged"]
    assert (found.history["objective"].diff() < 1e-3).all()
    error = np.linalg.norm((found.X.numpy() - truth)[hidden])
    assert error < 0.02 * np.linalg.norm(truth[hidden])


def test_flow_with_a_constant_step_is_gradient_descent():
    _, _, data = problem()
    factors = [draw(2, 15, seed=1), draw(20, 2, seed=2)]
    flow = GradientFlow(FactorProduct(factors), [SquaredError(data)], lr=1e-3)
    found = solve(flow, data, max_iter=3)
    V, U = (f.clone() for f in factors)
    for _ in range(3):
        R = data.residual(U @ V)
        U, V = U - 1e-3 * R @ V.mT, V - 1e-3 * U.mT @ R
    torch.testing.assert_close(found.X, U @ V)


@pytest.mark.parametrize(
    "params",
    [
        {},
        pytest.param({"layers": (3, 2)}, marks=pytest.mark.long),
        pytest.param({"activation": "sigmoid"}, marks=pytest.mark.long),
        {"activation": "truncated_relu"},
        pytest.param({"init": "spectral"}, marks=pytest.mark.long),
        pytest.param({"width": 10}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_recovers_four_factors_of_three_fifths_of_the_cells(params):
    truth = low_rank(50, 40, rank=4, seed=3)
    hidden = patterns.random(truth, 0.4, random_state=0)
    X = np.where(hidden, np.nan, truth)
    completer = SNNCompleter(random_state=0, max_iter=800, device="cpu", **params)
    error = np.linalg.norm((completer.fit_transform(X) - truth)[hidden])
    assert error < 0.05 * np.linalg.norm(truth[hidden])


def test_a_fit_with_too_few_steps_warns():
    truth, hidden, _ = problem()
    X = np.ma.masked_array(truth, hidden)
    with pytest.warns(ConvergenceWarning, match=r"Raise max_iter, or let scaling"):
        SNNCompleter(max_iter=1, random_state=0).fit(X)


def test_bad_layers():
    X = low_rank(6, 5)
    X[0, 0] = np.nan
    for layers in ((), (0,), (2, 1.5)):
        with pytest.raises(ValueError, match=r"layers=.* integers of at least 1"):
            SNNCompleter(layers=layers).fit(X)


# The theory, where all measurements share their singular vectors.

DERIVATIVE = {
    "tanh": lambda z: 1 - torch.tanh(z) ** 2,
    "sigmoid": lambda z: 2 * torch.sigmoid(z) * (1 - torch.sigmoid(z)),
    "truncated_relu": lambda z: (z < 1).to(z),
}


def commuting(name="tanh", seed=0):
    """Assumptions 1 and 2 for a 5 x 7 matrix: model, measurements, and their parts."""
    rng = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(*shape, generator=rng, dtype=DOUBLE)

    Phi, Psi = (torch.linalg.qr(draw(n, 5, seed=n))[0] for n in (5, 7))
    G = torch.linalg.qr(draw(7, 7, seed=3))[0]
    sigma = 3 + uniform(5)
    spectra = uniform(9, 5)
    alpha, u, v = uniform(2), uniform(2, 5), uniform(2, 5)
    U = Phi @ torch.nn.functional.pad(u.diag_embed(), (0, 2)) @ G
    V = Psi @ torch.nn.functional.pad(v.diag_embed(), (0, 2)) @ G
    model = SpectralNetwork(U, V, [alpha[None]], ACTIVATIONS[name])
    A = DiagonalMeasurements(Phi, spectra, Psi)
    X = (Phi * sigma) @ Psi.mT
    return model, A, X, (Phi, Psi, sigma, spectra.mT, u * v)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_theorem_1(name):
    """The paper's right-hand sides are minus the slopes that autograd finds."""
    model, A, X, (Phi, Psi, sigma, B, z) = commuting(name)
    MeasurementError(A, A.forward(X))(model()).backward()
    H = torch.from_numpy(GAMMA[name](z.numpy())).mT  # (5, K)
    alpha = model.alphas[0][0].detach()
    missed = B @ B.mT @ (sigma - H @ alpha)
    torch.testing.assert_close(-model.alphas[0].grad[0], H.mT @ missed)
    for k in range(2):
        L = (Phi * (alpha[k] * DERIVATIVE[name](z[k]) * missed)) @ Psi.mT
        torch.testing.assert_close(-model.U.grad[k], L @ model.V[k].detach())
        torch.testing.assert_close(-model.V.grad[k], L.mT @ model.U[k].detach())


@pytest.mark.long
def test_theorems_2_and_3():
    """Exponentially fast to X, which has the least nuclear norm.

    That no singular value overshoots, the paper's other half of Theorem 2, does not
    hold: one that has arrived is driven on by what others still miss.
    """
    model, A, X, (Phi, Psi, sigma, *_) = commuting()
    y = A.forward(X)
    flow = GradientFlow(model, [MeasurementError(A, y)], lr=0.002)
    data, distances = Measured.of(A, y), []

    def watch(progress):
        inside = Phi.mT @ progress.state.X @ Psi
        distances.append(sigma - inside.diagonal())

    solution = solve(flow, data, max_iter=6000, callbacks=[watch], check_every=200)
    gaps = torch.stack(distances).norm(dim=1)
    rates = -gaps.log().diff() / (200 * 0.002)
    assert (rates > 0.2).all()
    assert gaps[-1] < 1e-3
    convex = NuclearSensingRegressor(0).fit(A, y.numpy()).matrix_
    assert np.linalg.norm(solution.X.numpy() - convex) < 0.01 * np.linalg.norm(convex)
