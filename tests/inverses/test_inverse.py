"""Inverse by products, steps on the Stiefel manifold, and the SVD from both."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from skmc.inverses import DSVD, LDMinv, cayley_step, d_minv, minimize_on_stiefel
from skmc.inverses.dsvd_steps import lengths, objective
from skmc.inverses.stiefel import Skew
from skmc.inverses.unrolled import polynomial


def normal(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def orthonormal(*shape, seed=0):
    return torch.linalg.qr(normal(*shape, seed=seed))[0]


def with_values(s, m, n, seed=0):
    """``(*batch, m, n)`` with the singular values ``s`` of shape ``(*batch, rank)``."""
    s = torch.as_tensor(s, dtype=torch.float64)
    *batch, rank = s.shape
    U = orthonormal(*batch, m, rank, seed=seed)
    V = orthonormal(*batch, n, rank, seed=seed + 1)
    return (U * s[..., None, :]) @ V.mT


def with_condition(condition, n=50, size=20, seed=0):
    """``n`` matrices, singular values uniform in ``[1 / condition, 1]``."""
    generator = torch.Generator().manual_seed(seed)
    uniform = torch.rand(n, size, generator=generator, dtype=torch.float64)
    s = 1 / condition + (1 - 1 / condition) * uniform
    return with_values(s, size, size, seed=seed)


def error(A, X):
    return (A @ X @ A - A).square().sum((-2, -1)).mean()


SHAPES = {
    "square": lambda: normal(8, 8),
    "long": lambda: normal(12, 5),
    "wide": lambda: normal(5, 12),
    "batch": lambda: normal(2, 3, 6, 4),
    "rank 3 of 6": lambda: with_values([3.0, 2.0, 1.0], 9, 6),
    "zero": lambda: torch.zeros(4, 3).double(),
    "one row": lambda: normal(1, 7),
    "one cell": lambda: torch.full((1, 1), -3.0).double(),
    "tiny": lambda: normal(6, 4) * 1e-200,
    "huge": lambda: normal(6, 4) * 1e200,
}


@pytest.mark.parametrize("name", SHAPES)
def test_limit_is_the_pseudo_inverse(name):
    A = SHAPES[name]()
    expected = torch.linalg.pinv(A, rtol=1e-10)
    X = d_minv(A, order=4, depth=9)
    assert X.shape == expected.shape
    scale = expected.abs().max().clamp_min(torch.finfo(A.dtype).tiny)
    torch.testing.assert_close(X / scale, expected / scale, rtol=0, atol=1e-8)


@pytest.mark.parametrize("order", [2, 3, 4, 7, 10])
@pytest.mark.parametrize("c0", [0.55, 1.0, 3.0, None])
@pytest.mark.parametrize("shape", [(9, 6), (6, 9)])
def test_error_law(order, c0, shape):
    s = torch.tensor([1.0, 0.8, 0.5, 0.3]).double()
    A = with_values(s, *shape)
    projector = A @ torch.linalg.pinv(A, rtol=1e-10)
    e0 = (1 - s**2 / c0).abs().max() if c0 is not None else None
    for depth in (1, 2, 3):
        X = d_minv(A, order, depth, c0=c0)
        left = torch.linalg.matrix_norm(projector - A @ X, 2)
        if e0 is None:  # of the first depth
            e0 = left ** (1 / order)
            assert e0 < 1
        torch.testing.assert_close(left, e0 ** (order**depth), rtol=1e-6, atol=1e-10)


def test_a_bound_below_half_the_square_diverges():
    A = with_values([1.0, 0.5], 4, 4)
    assert error(A, d_minv(A, 4, 3, c0=0.52)) < 1e-3
    assert error(A, d_minv(A, 4, 3, c0=0.45)) > 1e3


@pytest.mark.parametrize("trained", [False, True])
def test_spaces_are_exact_at_every_depth(trained):
    A = with_values(1 + torch.rand(20, 4).double(), 7, 6)
    pinv = torch.linalg.pinv(A, rtol=1e-10)
    for depth in (1, 2, 3):
        inverse = LDMinv(4, depth)
        if trained:
            inverse.fit(A)
        X = inverse(A)
        size = X.abs().max()
        for other in (X @ A @ pinv, pinv @ A @ X):
            torch.testing.assert_close(X / size, other / size, rtol=0, atol=1e-11)
        assert (torch.linalg.matrix_rank(X, rtol=1e-9) == 4).all()


@pytest.mark.parametrize("order", range(2, 14))
def test_polynomial_in_few_products(order):
    c, E, eye = normal(order), normal(5, 5, seed=1) / 3, torch.eye(5).double()
    direct = sum(c[k] * torch.linalg.matrix_power(E, k) for k in range(order))
    products = []

    class Counted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if "matmul" in function.__name__:
                products.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    result = polynomial(c, E.as_subclass(Counted), eye)
    torch.testing.assert_close(torch.as_tensor(result), direct)
    assert len(products) <= 2 * math.sqrt(order) - 1


def test_derivatives():
    A = normal(2, 4, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda A: d_minv(A, 4, 2), A)
    inverse = LDMinv(3, 2)
    assert torch.autograd.gradcheck(
        lambda C: torch.func.functional_call(inverse, {"coefficients": C}, (A,)),
        inverse.coefficients,
    )
    B = normal(4, 4).requires_grad_()
    (ours,) = torch.autograd.grad(d_minv(B, 4, 9).sin().sum(), B)
    (exact,) = torch.autograd.grad(torch.linalg.inv(B).sin().sum(), B)
    torch.testing.assert_close(ours, exact)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_untrained_layers_equal_d_minv_and_batches_equal_loops(dtype):
    A = normal(5, 6, 8).to(dtype)
    inverse = LDMinv(order=5, depth=3)
    X = inverse(A)
    assert X.dtype == dtype
    torch.testing.assert_close(X, d_minv(A, 5, 3))
    torch.testing.assert_close(X, torch.stack([inverse(a) for a in A]))
    torch.testing.assert_close(inverse(A.mT), X.mT)
    torch.testing.assert_close(inverse(4 * A), X / 4)


@pytest.mark.parametrize("condition", [2, 5, 30, 1000])
@pytest.mark.parametrize(("order", "depth"), [(4, 3), (10, 1)])
def test_learning_helps_on_unseen_matrices(condition, order, depth):
    seen, unseen = (with_condition(condition, seed=seed) for seed in (0, 7))
    inverse = LDMinv(order, depth).fit(seen)
    fixed = error(unseen, d_minv(unseen, order, depth))
    assert error(unseen, inverse(unseen)) < fixed / 5
    single = unseen.float()
    assert error(single, inverse(single)) < fixed / 5
    assert inverse.history_[-1] < inverse.history_[0]


@pytest.mark.parametrize("seed", [0, 2])
def test_few_training_matrices_are_enough(seed):
    """The error stays bounded between and beyond their few singular values."""
    seen, unseen = normal(3, 20, 30, seed=seed), normal(50, 20, 30, seed=100)
    inverse = LDMinv(4, 3).fit(seen)
    assert error(unseen, inverse(unseen)) < 0.01 * error(unseen, d_minv(unseen, 4, 3))


@pytest.mark.parametrize(("order", "depth"), [(4, 8), (10, 3), (20, 2)])
@pytest.mark.parametrize("condition", [1, 2])
def test_coefficients_suit_single_precision(condition, order, depth):
    """This includes coefficients that the error does not determine."""
    A = with_condition(condition)
    inverse = LDMinv(order, depth).fit(A)
    assert inverse.coefficients.detach().abs().max() < 1e4
    assert error(A.float(), inverse(A.float())) < 1e-10


def test_training_on_singular_values_equals_training_on_matrices():
    A = with_condition(10, n=20, size=12)
    trained = LDMinv(4, 3).fit(A, solver="sgd", max_iter=3, lr=1e-2)
    by_hand = LDMinv(4, 3)
    for step in range(3):
        C = by_hand.coefficients
        layers = [
            torch.func.functional_call(
                LDMinv(4, k + 1), {"coefficients": C[: k + 1]}, (A,)
            )
            for k in range(3)
        ]
        loss = sum(error(A, X) for X in layers) / 6
        torch.testing.assert_close(float(loss.detach()), trained.history_[step])
        (gradient,) = torch.autograd.grad(loss, C)
        with torch.no_grad():
            C -= 1e-2 * gradient
    torch.testing.assert_close(by_hand.coefficients, trained.coefficients)


def test_the_papers_training_descends_and_is_reproducible():
    A = with_condition(10, n=150)
    one, two = (LDMinv(4, 2).fit(A, solver="sgd", max_iter=400) for _ in range(2))
    assert one.history_[-1] < one.history_[0]
    assert torch.equal(one.coefficients, two.coefficients)


def test_diverging_training_keeps_the_best_coefficients():
    A = with_condition(10)
    inverse = LDMinv(4, 4)
    with pytest.warns(RuntimeWarning, match="Lower lr"):
        inverse.fit(A, solver="sgd", lr=1e6)
    assert error(A, inverse(A)) <= error(A, d_minv(A, 4, 4))


def test_nothing_to_learn_from_zeros():
    inverse = LDMinv().fit(torch.zeros(3, 4, 5))
    assert torch.equal(inverse(torch.zeros(4, 5)), torch.zeros(5, 4))


BAD = {
    "complex": (torch.eye(2, dtype=torch.complex64), {}, TypeError, "complex"),
    "integers": (torch.eye(2).long(), {}, TypeError, r"A.double\(\)"),
    "an array": (torch.eye(2).numpy(), {}, TypeError, "torch.Tensor"),
    "a vector": (torch.ones(3), {}, ValueError, "shape"),
    "no cell": (torch.ones(3, 0), {}, ValueError, "shape"),
    "NaN": (torch.tensor([[1.0, torch.nan]]), {}, ValueError, r"nan at \(0, 1\)"),
    "infinite": (torch.tensor([[torch.inf]]), {}, ValueError, "inf at"),
    "order": (torch.eye(2), {"order": 1}, ValueError, "order=1.*at least 2"),
    "depth": (torch.eye(2), {"depth": 0}, ValueError, "depth=0.*at least 1"),
    "not an integer": (torch.eye(2), {"depth": 2.0}, ValueError, "integer"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    A, params, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        d_minv(A, **params)
    with pytest.raises(kind, match=message):
        LDMinv(**params)(A)
    if not params:
        with pytest.raises(kind, match="matrices"):
            LDMinv().fit(A)


BAD_TRAINING = (
    {"max_iter": -1},
    {"max_iter": 1.5},
    {"lr": -1.0},
    {"lr": math.nan},
    {"lr": "1"},
    {"batch_size": 0},
    {"batch_size": 2.0},
)


@pytest.mark.parametrize("network", [LDMinv(), DSVD(2)])
@pytest.mark.parametrize("params", BAD_TRAINING)
def test_bad_parameters_of_training(network, params):
    ((name, value),) = params.items()
    with pytest.raises(ValueError, match=f"{name}={value!r}: it must be"):
        network.fit(torch.eye(3), **params)


def test_unknown_solver():
    with pytest.raises(ValueError, match="gauss-newton"):
        LDMinv().fit(torch.eye(2), solver="adam")


def test_counts_may_be_numpy_integers():
    A, three = normal(4, 3), np.int64(3)
    assert torch.equal(d_minv(A, three, three), d_minv(A, 3, 3))
    network = DSVD(three, inverse_order=three, inverse_depth=np.int32(3))
    network.fit(A, max_iter=three, batch_size=three)
    assert len(network.history_) == 3


@pytest.mark.parametrize("params", [{"solver": "sgd"}, {"solver": "gauss-newton"}])
def test_training_without_gradient_mode(params):
    A = with_condition(10)
    expected = LDMinv(4, 2).fit(A, max_iter=3, **params)
    with torch.no_grad():
        found = LDMinv(4, 2).fit(A, max_iter=3, **params)
    assert torch.equal(found.coefficients, expected.coefficients)


@pytest.mark.parametrize(
    "c0",
    [0, -1.0, math.nan, math.inf, torch.tensor([2.0, 0.0]), torch.ones(2, 1)],
    ids=str,
)
def test_bad_c0(c0):
    A = normal(2, 3, 4)
    match = "c0 has shape.*a number" if torch.is_tensor(c0) and c0.ndim > 1 else "posit"
    with pytest.raises(ValueError, match=match):
        d_minv(A, c0=c0)
    with pytest.raises(ValueError, match=r"c0 has shape \(3,\).* of shape \(2,\)"):
        d_minv(A, c0=torch.ones(3))


def test_c0_of_each_matrix():
    A, c0 = normal(2, 3, 4), torch.tensor([40.0, 50.0]).double()
    for depth, B in ((2, A), (3, A.mT)):
        looped = [d_minv(b, 4, depth, c0=float(c)) for b, c in zip(B, c0, strict=True)]
        torch.testing.assert_close(d_minv(B, 4, depth, c0=c0), torch.stack(looped))


def departure(U):
    """From orthonormal columns."""
    eye = torch.eye(U.shape[-1], dtype=U.dtype)
    return float((U.mT @ U - eye).abs().max())


@pytest.mark.parametrize(("m", "r"), [(6, 6), (9, 5), (11, 5), (30, 4), (3, 1), (1, 1)])
def test_cayley_step_is_its_formula(m, r):
    U, G = orthonormal(2, m, r), normal(2, m, r, seed=1)
    step = torch.tensor([0.3, -1.0]).double()
    half = step[:, None, None] / 2 * (G @ U.mT - U @ G.mT)
    eye = torch.eye(m).double()
    expected = torch.linalg.solve(eye + half, (eye - half) @ U)
    torch.testing.assert_close(cayley_step(U, G, step), expected)
    by_products = cayley_step(U, G, step, lambda A: d_minv(A, 4, 9))
    torch.testing.assert_close(by_products, expected)
    looped = [cayley_step(*one) for one in zip(U, G, step, strict=True)]
    torch.testing.assert_close(torch.stack(looped), expected)


@pytest.mark.parametrize(("m", "r"), [(7, 5), (12, 3)])
def test_cayley_step_derivatives(m, r):
    U, G = orthonormal(m, r).requires_grad_(), normal(m, r, seed=1).requires_grad_()
    step = torch.tensor(0.3).double().requires_grad_()
    assert torch.autograd.gradcheck(cayley_step, (U, G, step))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("m", "r", "step"), [(12, 9, 0.2), (30, 4, 0.13)])
def test_a_thousand_steps_keep_columns_orthonormal(dtype, m, r, step):
    U = orthonormal(m, r).to(dtype)
    generator = torch.Generator().manual_seed(0)

    def departs(U, inverse, n=1000):
        with torch.no_grad():
            for _ in range(n):
                G = torch.randn(U.shape, generator=generator).to(dtype)
                U = cayley_step(U, G, step, inverse)
        return departure(U)

    assert departs(U, None) < 1e-5
    inverse, systems = LDMinv(4, 2), []
    assert departs(U, inverse) > 3e-4
    departs(U.expand(50, m, r), lambda A: systems.append(A) or A.inverse(), n=1)
    assert departs(U, inverse.fit(systems[0])) < 1e-4


def test_cayley_step_of_wrong_shapes():
    with pytest.raises(ValueError, match="G has shape"):
        cayley_step(torch.eye(3), torch.ones(3, 2), 0.1)
    with pytest.raises(ValueError, match="cannot be orthonormal"):
        cayley_step(torch.ones(2, 3), torch.ones(2, 3), 0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_minimum_leading_eigenvectors(dtype):
    A = with_values(torch.arange(1.0, 21), 20, 20) - 3
    A = ((A + A.mT) / 2).to(dtype)
    values, vectors = torch.linalg.eigh(A)
    result = minimize_on_stiefel(
        lambda U: -(U * (A @ U)).sum(), orthonormal(20, 3).to(dtype)
    )
    assert result.converged
    assert result.value == pytest.approx(-float(values[-3:].sum()), rel=1e-5)
    overlap = torch.linalg.svdvals(vectors[:, -3:].mT @ result.U)
    torch.testing.assert_close(overlap, torch.ones_like(overlap), rtol=0, atol=1e-4)
    assert departure(result.U) < 1e-5
    assert result.history[0] > result.value == min(result.history)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_minimum_procrustes(batch):
    X, noise = normal(*batch, 30, 6), normal(*batch, 30, 6, seed=1)
    Y = X @ orthonormal(*batch, 6, 6, seed=2) + 0.1 * noise
    W, _, Zh = torch.linalg.svd(X.mT @ Y)
    closed = W @ Zh
    # The other half of the orthogonal matrices is out of reach.
    start = orthonormal(*batch, 6, 6, seed=3)
    flip = (torch.det(start) * torch.det(closed)).sign()
    start = torch.cat([start[..., :1] * flip[..., None, None], start[..., 1:]], -1)
    result = minimize_on_stiefel(lambda U: (X @ U - Y).square().sum(), start)
    assert result.converged
    torch.testing.assert_close(result.U, closed, rtol=0, atol=1e-4)


def test_minimum_of_trivial_problems():
    U = torch.eye(4).double()[:, :2]
    still = minimize_on_stiefel(lambda U: (U * 0).sum(), U)
    assert still.converged
    assert still.n_iter == 0
    stopped = minimize_on_stiefel(lambda U: U[2, 0] + U[3, 1], U, max_iter=2)
    assert not stopped.converged
    assert stopped.n_iter == 2
    with pytest.raises(ValueError, match=r"U0 are not orthonormal; torch.linalg.qr"):
        minimize_on_stiefel(lambda U: U.sum(), 2 * U)
    with pytest.raises(ValueError, match=r"U0 has shape .* cannot be orthonormal"):
        minimize_on_stiefel(lambda U: U.sum(), U.mT)
    with pytest.raises(ValueError, match="tol=-1"):
        minimize_on_stiefel(lambda U: U.sum(), U, tol=-1)
    with pytest.raises(ValueError, match="not finite"):
        minimize_on_stiefel(lambda U: U.sum() / 0, U)


def test_a_step_into_the_undefined_is_shortened():
    U = orthonormal(6, 2)
    result = minimize_on_stiefel(lambda U: -(U[0, 0] - U[0, 0].detach() + 0.1).log(), U)
    assert math.isfinite(result.value)


MATRICES = {
    "wide": lambda: normal(4, 7),
    "long": lambda: normal(12, 3),
    "square": lambda: normal(5, 5),
    "batch": lambda: with_values([[4.0, 3, 2, 1], [5.0, 3, 1, 0]], 5, 4),
    "repeated": lambda: with_values([3.0, 3.0, 3.0, 1.0, 1.0], 6, 5),
    "low rank": lambda: with_values([2.0, 1.0], 6, 5),
    "zero": lambda: torch.zeros(3, 4).double(),
    "one column": lambda: normal(5, 1),
    "negative": lambda: torch.full((1, 1), -2.0).double(),
    "tiny": lambda: normal(4, 3) * 1e-150,
}


@pytest.mark.parametrize("name", MATRICES)
def test_dsvd_tends_to_the_svd(name):
    M = MATRICES[name]()
    with torch.no_grad():
        found = DSVD(250)(M)
    size = M.abs().max().clamp_min(1e-300)
    exact = torch.linalg.svdvals(M)
    torch.testing.assert_close(found.s / size, exact / size, rtol=0, atol=1e-2)
    torch.testing.assert_close(found.dense() / size, M / size, rtol=0, atol=5e-2)
    assert departure(found.U) < 1e-9
    assert departure(found.V) < 1e-9


def test_dsvd_of_a_batch_scale_and_start():
    M = normal(3, 6, 4)
    U0, V0 = orthonormal(3, 6, 4, seed=1), orthonormal(3, 4, 4, seed=2)
    network = DSVD(5)
    found = network(M, U0, V0)
    looped = [network(*one).s for one in zip(M, U0, V0, strict=True)]
    torch.testing.assert_close(found.s, torch.stack(looped))
    torch.testing.assert_close(network(1000 * M, U0, V0).s, 1000 * found.s)
    assert torch.equal(network(M).s, network(M).s)
    other = network(M, generator=torch.Generator().manual_seed(1))
    assert not torch.equal(network(M).s, other.s)
    single = network(M.float(), U0.float(), V0.float())
    torch.testing.assert_close(single.s, found.s.float(), rtol=0, atol=1e-3)


@pytest.mark.parametrize("m", [5, 14])
def test_lengths_are_those_of_the_parabola(m):
    M, U, V = normal(m, 7), orthonormal(m, 5, seed=1), orthonormal(7, 5, seed=2)
    M = M * (5**0.5 / M.norm())
    U = minimize_on_stiefel(lambda U: objective(M, U, V), U, max_iter=8).U
    W = U.clone().requires_grad_()
    (G,) = torch.autograd.grad(objective(M, W, V), W)
    t = torch.tensor(0.0).double().requires_grad_()
    (slope,) = torch.autograd.grad(
        objective(M, cayley_step(U, G, t), V), t, create_graph=True
    )
    (bend,) = torch.autograd.grad(slope, t)
    assert bend > 0
    expected = -slope / bend
    ours, longest = lengths(Skew.of(U, G), U, M @ V)
    assert ours < longest <= 2 / torch.linalg.matrix_norm(G @ U.mT - U @ G.mT, 2)
    torch.testing.assert_close(ours, expected.detach())


# A function of the singular vectors that has a derivative, though they have none: the
# vectors of a repeated singular value may turn, their projector does not.
W5 = normal(5, 5, seed=9)


def leading_projector(U, s, V):
    return ((U[:, :2] @ U[:, :2].mT) * W5).sum()


def polar_factor(U, s, V):
    return ((U @ V.mT) * W5).sum()


@pytest.mark.parametrize("function", [leading_projector, polar_factor])
def test_gradient_at_repeated_singular_values(function):
    M = torch.diag(torch.tensor([3.0, 3.0, 1.0, 1.0, 1.0])).double().requires_grad_()
    network = DSVD(60)

    def ours(M):
        found = network(M)
        return function(found.U, found.s, found.V)

    def exact(M):
        U, s, Vh = torch.linalg.svd(M)
        return function(U, s, Vh.mT)

    (gradient,) = torch.autograd.grad(ours(M), M)
    assert gradient.isfinite().all()
    (lapack,) = torch.autograd.grad(exact(M), M)
    assert not lapack.isfinite().all()
    step = 1e-5
    for seed in range(3):
        D = normal(5, 5, seed=seed)
        with torch.no_grad():
            mine = (ours(M + step * D) - ours(M - step * D)) / (2 * step)
            truth = (exact(M + step * D) - exact(M - step * D)) / (2 * step)
        # Right for the network as it is, and right for the SVD.
        torch.testing.assert_close((gradient * D).sum(), mine, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close((gradient * D).sum(), truth, rtol=1e-2, atol=1e-2)


def test_gradient_at_a_stationary_point():
    M = torch.zeros(3, 4).double().requires_grad_()
    DSVD(3)(M).s.sum().backward()
    assert M.grad.isfinite().all()
    M = torch.eye(3).double().requires_grad_()
    DSVD(3)(M, torch.eye(3).double(), torch.eye(3).double()).s.sum().backward()
    torch.testing.assert_close(M.grad, torch.eye(3).double())


@pytest.mark.long
def test_training_lowers_the_objective_on_unseen_matrices():
    seen, unseen = normal(40, 6, 8), normal(40, 6, 8, seed=1)
    network, again = (DSVD(3, inverse_depth=2) for _ in range(2))

    def mean_objective():
        return network.fit(unseen, max_iter=1, lr=0).history_[0]

    before = mean_objective()
    network.fit(seen, max_iter=40)
    assert network.history_[-1] < network.history_[0]
    assert mean_objective() < before - 0.01 * abs(before)
    assert any(inverse.history_ for inverse in network.inverses)
    with torch.no_grad():
        found = network(unseen)
    assert departure(found.U) < 1e-3
    with torch.no_grad():  # which training does not mind
        again.fit(unseen, max_iter=1, lr=0)
        again.fit(seen, max_iter=40)
    assert torch.equal(network.steps, again.steps)


def test_divergent_training_keeps_the_best_lengths():
    M = normal(20, 5, 4)
    network = DSVD(3)
    for length in (1e3, -1e3):
        with torch.no_grad():
            network.steps.fill_(length)
            found = network(M)
        assert found.s.isfinite().all()
        assert max(departure(found.U), departure(found.V)) < 1e-6
    network = DSVD(3).fit(M, lr=1e6, max_iter=20)
    assert network(M).s.isfinite().all()


@pytest.mark.parametrize("name", [name for name in BAD if not BAD[name][1]])
def test_dsvd_of_bad_input(name):
    A, _, kind, message = BAD[name]
    with pytest.raises(kind, match=message.replace("A.", "M.")):
        DSVD(2)(A)
    with pytest.raises(kind, match="matrices"):
        DSVD(2).fit(A)


def test_dsvd_of_bad_parameters():
    with pytest.raises(ValueError, match="depth=0"):
        DSVD(0)
    with pytest.raises(ValueError, match="order=1"):
        DSVD(inverse_order=1)
    M = torch.ones(3, 2)
    with pytest.raises(ValueError, match=r"U0 has shape \(3, 3\).*M needs \(3, 2\)"):
        DSVD(2)(M, torch.eye(3))
    with pytest.raises(ValueError, match=r"dtype torch.float64; M needs.*float32"):
        DSVD(2)(M, V0=torch.eye(2).double())
    with pytest.raises(ValueError, match="columns of V0 are not orthonormal"):
        DSVD(2)(M, V0=2 * torch.eye(2))
