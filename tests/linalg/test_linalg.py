"""Kernels: singular values, shrinkage, and the ridge systems of rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import truncnorm
from sklearn.linear_model import Ridge

from skmc.cells import SparseObserved
from skmc.linalg import (
    OVER,
    SVD,
    LowRank,
    RowModel,
    SparsePlusLowRank,
    full_svd,
    matmul,
    partial_svd,
    row_equations,
    shrink,
    spectral_norm,
    truncated_normal,
)


def normal(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def sparse_plus(m, n, rank, seed=0, share=0.1):
    rng = np.random.RandomState(seed)
    rows, cols = np.nonzero(rng.rand(m, n) < share)
    data = SparseObserved.of(rows, cols, torch.tensor(rng.randn(len(rows))), (m, n))
    low = LowRank(normal(m, rank, seed=1), normal(n, rank, seed=2))
    return data.plus(data.values, low)


MATRICES = {
    "noise": lambda: normal(90, 60),
    "low rank": lambda: normal(90, 3) @ normal(3, 60, seed=1),
    "wide": lambda: normal(40, 130) * torch.logspace(0, -6, 130),
    "equal singular values": lambda: torch.eye(70, dtype=torch.float64),
    "zero": lambda: torch.zeros(30, 20, dtype=torch.float64),
    "one cell": lambda: torch.full((1, 1), 3.0, dtype=torch.float64),
    "few rows": lambda: torch.cat([normal(9, 60), torch.zeros(81, 60).double()]),
    "diagonal": lambda: torch.diag(torch.arange(1.0, 101).double()),
    "sparse plus low rank": lambda: sparse_plus(90, 60, 3),
}


def dense(A):
    return A.dense() if isinstance(A, SparsePlusLowRank) else A


@pytest.mark.parametrize("name", MATRICES)
def test_partial_svd_equals_the_first_part_of_the_svd(name):
    A = MATRICES[name]()
    whole = full_svd(dense(A))
    rank = min(5, *A.shape)
    part = partial_svd(A, rank, tol=1e-9)
    scale = whole.s[0].clamp_min(1e-300)
    torch.testing.assert_close(part.s, whole.s[:rank], atol=1e-9 * float(scale), rtol=0)
    misfit = dense(A) @ part.V - part.U * part.s
    assert float(misfit.norm()) <= 1e-7 * float(scale)
    for basis in (part.U, part.V):
        known = basis[:, part.s > 1e-8 * scale]
        torch.testing.assert_close(
            known.mT @ known, torch.eye(known.shape[1], dtype=known.dtype)
        )


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("share", [0.9, 0.3, 1e-9])
@pytest.mark.parametrize("near", ["nothing", "right", "wrong"])
def test_shrinkage_equals_that_of_lapack(name, share, near):
    """This holds for all algorithms, and for wrong predictions of the rank."""
    A = MATRICES[name]()
    whole = full_svd(dense(A))
    tau = share * float(whole.s[0])
    expected = (whole.U * (whole.s - tau).clamp_min(0)) @ whole.V.mT
    guess = {
        "nothing": None,
        "right": shrink(dense(A), tau),
        "wrong": whole.first(1),
    }[near]
    found = shrink(A, tau, warm_start=guess, tol=1e-9)
    scale = max(float(whole.s[0]), 1e-300)
    torch.testing.assert_close(found.dense(), expected, atol=1e-6 * scale, rtol=0)
    assert (found.s > 0).all()
    assert shrink(A, tau, warm_start=guess, max_rank=1).rank <= 1


@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (230, 225)])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_spectral_norm_is_the_largest_singular_value(shape, share):
    A = sparse_plus(*shape, 1, share=share)
    expected = torch.linalg.matrix_norm(A.dense(), 2)
    torch.testing.assert_close(spectral_norm(A), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("rank", [1, 12])
def test_partial_svd_stays_orthogonal(name, rank):
    """This includes a start at singular vectors, whose residuals are zero."""
    A = MATRICES[name]()
    rank = min(rank, *A.shape)
    exact = full_svd(dense(A))
    for start in (None, exact.V[:, :rank], exact.V[:, -rank:]):
        part = partial_svd(A, rank, start=start, tol=1e-9)
        for basis in (part.U, part.V):
            torch.testing.assert_close(
                basis.mT @ basis, torch.eye(rank).double(), atol=1e-6, rtol=0
            )
        assert (part.s <= exact.s[0] * (1 + 1e-9)).all()


def test_shrinkage_is_the_argmin():
    """``tau |X|_* + 1/2 |X - A|^2`` is higher anywhere else."""
    A = normal(12, 9)

    def objective(X):
        return 2.0 * torch.linalg.matrix_norm(X, "nuc") + (X - A).square().sum() / 2

    X = shrink(A, 2.0).dense()
    least = objective(X)
    for seed in range(20):
        for step in (1e-1, 1e-3):
            assert objective(X + step * normal(12, 9, seed=seed)) > least


def test_shrinkage_in_single_precision_and_in_batches():
    A = normal(4, 50, 30)
    tau = torch.tensor([1.0, 3.0, 5.0, 20.0], dtype=torch.float64)
    together = shrink(A, tau).dense()
    for k in range(4):
        torch.testing.assert_close(together[k], shrink(A[k], tau[k]).dense())
    single = shrink(A.float(), tau.float()).dense()
    torch.testing.assert_close(single.double(), together, atol=1e-4, rtol=1e-4)
    assert together[3].abs().max() == 0


def test_few_steps_with_a_warm_start_reduce_the_error():
    A = sparse_plus(300, 200, 4, share=0.05)
    exact = shrink(A, 12.0, tol=1e-9)
    near, errors = SVD(A.low.left[:, :0], A.low.left[0, :0], A.low.right[:, :0]), []
    for _ in range(6):
        near = shrink(A, 12.0, warm_start=near, max_steps=1)
        errors.append(float((near.dense() - exact.dense()).norm()))
    assert errors[-1] < 1e-3 * errors[0]


def test_low_rank_arithmetic():
    A = LowRank(normal(7, 2), normal(5, 2, seed=1))
    B = LowRank(normal(7, 3, seed=2), normal(5, 3, seed=3))
    torch.testing.assert_close((A + B * 2.0).dense(), A.dense() + 2 * B.dense())
    torch.testing.assert_close(A.squared_norm(), A.dense().square().sum())
    torch.testing.assert_close(A.mT.dense(), A.dense().mT)
    rows, cols = torch.tensor([0, 6, 3]), torch.tensor([4, 0, 2])
    torch.testing.assert_close(A.at(rows, cols), A.dense()[rows, cols])
    C = sparse_plus(7, 5, 2, share=0.5)
    X = normal(5, 3)
    torch.testing.assert_close(C @ X, C.dense() @ X)
    torch.testing.assert_close(C.mT @ normal(7, 3), C.dense().mT @ normal(7, 3))


@pytest.fixture
def ragged():
    """Rows of 0 to 40 cells, in some order."""
    rng = np.random.RandomState(0)
    mask = rng.rand(60, 40) < np.linspace(0, 1, 60)[rng.permutation(60), None]
    rows, cols = np.nonzero(mask)
    data = SparseObserved.of(rows, cols, torch.tensor(rng.randn(len(rows))), (60, 40))
    return mask, data, normal(40, 3, seed=4)


@pytest.mark.parametrize("per_cell", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("block", [2**23, 40])
def test_ridge_rows_are_scikit_learns(per_cell, block, ragged, monkeypatch):
    monkeypatch.setattr(row_equations, "BLOCK", block)
    mask, data, F = ragged
    zero = torch.zeros(3, dtype=F.dtype)
    model = RowModel(F, normal(40, seed=5), 0.3 * torch.eye(3).double(), zero, per_cell)
    W = model.solve(data.starts, data.cols, data.values)
    for i in range(60):
        seen = mask[i]
        if not seen.any():
            assert W[i].abs().max() == 0
            continue
        weight = 0.3 * seen.sum() ** per_cell
        y = data.values[data.rows == i] - model.offset[seen]
        theirs = Ridge(weight, fit_intercept=False).fit(F[seen], y)
        np.testing.assert_allclose(W[i], theirs.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("over", [0.0, OVER])
def test_posterior_draws_have_the_posterior_moments(over, ragged):
    """Mean and covariance over many draws of each row, with a prior and links."""
    mask, data, F = ragged
    prior = torch.tensor([[2.0, 0.5, 0], [0.5, 1, 0], [0, 0, 3]], dtype=F.dtype)
    link = 0.3 * normal(40, 3, seed=7)
    model = RowModel(
        F, torch.zeros(40).double(), prior / 4, normal(3, seed=6), link=link
    )
    generator = torch.Generator().manual_seed(0)

    def draw(previous=None):
        normal = torch.randn(60, 3, generator=generator, dtype=F.dtype)
        noise = normal * 4**-0.5  # the noise has precision 4
        cells = data.starts, data.cols, data.values
        return model.solve(*cells, noise, previous=previous)

    drawn = [draw()]
    for _ in range(4000):
        drawn.append(draw(drawn[-1] if over else None))
    draws = torch.stack(drawn)
    mean = model.solve(data.starts, data.cols, data.values)
    variance = model.variance(data.starts, data.cols)
    for i in (0, 7, 31):
        seen = torch.from_numpy(mask[i])
        precision = 4 * F[seen].mT @ F[seen] + prior
        centre = model.mean + link[seen].sum(0) / max(int(seen.sum()), 1) ** 0.5
        right = 4 * F[seen].mT @ data.values[data.rows == i] + prior @ centre
        expected = torch.linalg.solve(precision, right)
        torch.testing.assert_close(mean[i], expected)
        covariance = torch.linalg.inv(precision)
        # `variance` is in units of the noise, whose variance is 1 / 4.
        of_cells = (F @ covariance * F).sum(1)
        torch.testing.assert_close(variance[i] / 4, of_cells)
        spread = covariance.diagonal().sqrt()
        assert ((draws[:, i].mean(0) - expected).abs() < 0.08 * spread).all()
        error = (draws[:, i].T.cov() - covariance).abs()
        assert (error < 0.08 * torch.outer(spread, spread)).all()
        off = (draws[:, i] - expected) / spread
        next_one = (off[1:] * off[:-1]).mean(0)
        assert ((next_one + over).abs() < 0.08).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_of_every_size_layout_and_batch(dtype):
    def normal(*shape):
        return torch.randn(*shape, dtype=dtype, generator=generator)

    generator = torch.Generator().manual_seed(0)
    A, B = normal(150, 160), normal(160, 130)
    pairs = [(A, B), (A.mT.contiguous().mT, B), (A, B.mT.contiguous().mT)]
    pairs += [(A[:, ::2], B[::2]), (A[:3], B), (normal(2, 3, 4), normal(2, 4, 5))]
    for left, right in pairs:
        expected = left.double() @ right.double()
        bound = 1e3 * torch.finfo(dtype).eps
        assert (matmul(left, right) - expected).abs().max() <= bound
    graph = matmul(A.requires_grad_(), B)
    assert graph.requires_grad
    with torch.no_grad():
        assert not matmul(A, B).requires_grad


@pytest.mark.parametrize(
    ("low", "high"),
    [(-np.inf, np.inf), (-1, 2), (1, np.inf), (-np.inf, -30), (30, 30.01), (1e9, 2e9)],
)
def test_draws_between_ends_are_quantiles(low, high):
    mean, std = np.linspace(-1, 1, 50), 0.7
    found = truncated_normal(mean, std, low, high, np.random.RandomState(0))
    uniform = np.random.RandomState(0).random_sample(50)
    ends = (low - mean) / std, (high - mean) / std
    expected = mean + std * truncnorm.ppf(uniform, *ends)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_draws_where_no_logarithm_is_finite_are_the_nearer_end():
    for ends, nearer in [((1e170, np.inf), 1e170), ((-1e170, -1e160), -1e160)]:
        found = truncated_normal(np.zeros(3), 1.0, *ends, np.random.RandomState(0))
        np.testing.assert_allclose(found, nearer)
