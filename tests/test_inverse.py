"""Inverse by products, steps on the Stiefel manifold, and the SVD made of both."""

from __future__ import annotations

import math

import pytest
import torch

from skmc.linalg import LDMinv, d_minv
from skmc.linalg.inverse import polynomial


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
def test_untrained_is_fixed_and_batched_is_looped(dtype):
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


def test_training_on_singular_values_is_training_on_matrices():
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


def test_unknown_solver():
    with pytest.raises(ValueError, match="gauss-newton"):
        LDMinv().fit(torch.eye(2), solver="adam")
