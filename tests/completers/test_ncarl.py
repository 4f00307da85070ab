"""NCARL: each formula, and the whole algorithm."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import low_rank, make

from skmc import Observed, patterns
from skmc.completers import NCARLCompleter
from skmc.completers.ncarl import BLOCK, NCARL, adaptive_laplacian
from skmc.datasets import load_photo


def laplacian_by_loops(X, k):
    n = X.shape[1]
    S = np.zeros((n, n))
    for i in range(n):
        d = np.array([((X[:, i] - X[:, j]) ** 2).sum() for j in range(n)])
        near = np.sort(d)
        kappa = near[k] + 1e-6
        for j in range(n):
            S[i, j] = max(kappa - d[j], 0) / (k * kappa - near[:k].sum())
    S = (S + S.T) / 2
    return np.diag(S.sum(1)) - S


def weight_by_svd(X):
    _, s, Vh = np.linalg.svd(X)
    share = s / s.sum()
    inverse = np.zeros_like(s)
    inverse[share > 1e-5] = 1 / share[share > 1e-5]
    return (Vh.T * inverse) @ Vh


def transcription(M, seen, alpha, k, n_iter, noise=None):
    """The paper in NumPy, row after row, no wider than tall."""
    X = np.where(seen, M, 0.0)
    for _ in range(n_iter):
        Q = weight_by_svd(X) * (noise or 1) + alpha * laplacian_by_loops(X, k)
        Q += 1e-6 * np.eye(len(Q))
        H = np.linalg.inv(Q)
        X = np.zeros_like(X)
        for i, p in enumerate(seen):
            if noise is None:
                X[i] = np.linalg.solve(H[np.ix_(p, p)], M[i, p]) @ H[p]
            else:
                X[i] = np.linalg.solve(np.diag(p * 1.0) + Q, np.where(p, M[i], 0))
    return X


def observed(m=40, n=30, rate=0.3, dtype=torch.float64, seed=0):
    """Noise on a matrix of rank 3, the largest observed cell 1."""
    rng = np.random.RandomState(seed)
    M = low_rank(m, n, rank=3) + 0.1 * rng.randn(m, n)
    seen = rng.random_sample((m, n)) >= rate
    M /= np.abs(M[seen]).max()
    return Observed(torch.tensor(M, dtype=dtype), torch.tensor(seen))


def one_step(data, alpha=1e3, k=5, noise=None):
    solver = NCARL(alpha, k, noise)
    before = solver.init(data)
    return solver.quadratic_form(before), solver.step(data, before)


@pytest.mark.parametrize("block", [2**18, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_rows_satisfy_the_formula(rate, dtype, block, monkeypatch):
    """``v_O = inv(H_OO) m_O, x = v H``; and the observed cells stay."""
    monkeypatch.setitem(BLOCK, "cpu", block)
    data = observed(rate=rate, dtype=dtype)
    Q, state = one_step(data, alpha=1e4)
    H = torch.linalg.inv(Q).numpy()
    close = {"rtol": 1e-4, "atol": 1e-6} if dtype is torch.float32 else {"atol": 1e-9}
    assert state.X.dtype is dtype
    for x, m, p in zip(state.X, data.values.double(), data.mask, strict=True):
        p, m = p.numpy(), m.numpy()
        expected = np.linalg.solve(H[np.ix_(p, p)], m[p]) @ H[p]
        np.testing.assert_allclose(x.numpy(), expected, **close)
    torch.testing.assert_close(data.fill(state.X), state.X, **{"rtol": 0, **close})


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_the_noisy_form_is_stationary(rate):
    data = observed(rate=rate)
    Q, state = one_step(data, alpha=0.5, noise=0.01)
    slope = data.residual(state.X) + state.X @ Q
    assert slope.abs().max() < 1e-10


@pytest.mark.parametrize("rate", [0.2, 0.8])
def test_a_step_minimises_over_the_hidden_cells(rate):
    data = observed(rate=rate)
    Q, state = one_step(data)
    slope = (state.X @ Q)[~data.mask]
    assert slope.abs().max() < 1e-9 * Q.abs().max()


def test_rows_of_equal_masks_share_their_system():
    """Bands and stripes: full rows, empty rows, rows alike and unlike."""
    data = observed(m=60)
    mask = data.mask.clone()
    mask[:10] = True
    mask[10:30] = torch.arange(30) < 12
    mask[30:35] = mask[35]
    mask[50] = False
    data = Observed(data.values.nan_to_num(), mask)
    problem = NCARL(1.0, 3).init(data).problem
    systems = [len(b.cells) for b in problem.observed.blocks + problem.hidden.blocks]
    assert sum(systems) == 60 - 10 - 19 - 5 - 1
    for noise in (None, 0.1):
        ours = one_step(data, 10.0, 5, noise)[1].X.numpy()
        theirs = transcription(data.values.numpy(), mask.numpy(), 10.0, 5, 1, noise)
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("k", [1, 3, 11])
def test_the_graph_satisfies_the_formula(k):
    X = low_rank(9, 12, rank=3)
    X[:, 4] = X[:, 5]
    gram = torch.tensor(X.T @ X)
    expected = laplacian_by_loops(X, k)
    np.testing.assert_allclose(adaptive_laplacian(gram, k), expected, atol=1e-8)
    if k == 11:
        np.testing.assert_allclose(adaptive_laplacian(gram, 50), expected, atol=1e-8)


@pytest.mark.parametrize("noise", [None, 1e-2])
def test_ncarl_equals_the_papers_algorithm(noise):
    """Four iterations on a patch of a flower, against NumPy row after row."""
    truth = load_photo("flower")[80:120, 110:140]
    seen = ~patterns.random(truth, 0.4, random_state=0)
    unit = truth[seen].max()
    params = {"alpha": 100.0 * (noise or 1), "n_neighbors": 5, "lambda_noise": noise}
    completer = make(
        NCARLCompleter, scaling=None, max_iter=4, tol=0.0, keep_observed=False, **params
    )
    ours = completer.fit_transform(np.where(seen, truth, np.nan))
    theirs = transcription(truth / unit, seen, params["alpha"], 5, 4, noise) * unit
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(
        completer.laplacian_, laplacian_by_loops(theirs / unit, 5), atol=1e-4
    )
    # The squared nuclear norm, and the energy of the graph.
    nuclear = np.linalg.norm(theirs, "nuc")
    energy = np.trace(theirs @ laplacian_by_loops(theirs / unit, 5) @ theirs.T)
    objective = (noise or 1) * nuclear**2 + params["alpha"] * energy
    objective += ((theirs - truth)[seen] ** 2).sum() if noise else 0.0
    assert completer.history_["objective"][-1] == pytest.approx(objective, rel=1e-5)


def test_a_wide_matrix_is_solved_transposed():
    truth = low_rank(30, 20, rank=3)
    X = np.where(patterns.random(truth, 0.3, random_state=0), np.nan, truth)
    tall = make(NCARLCompleter, alpha=10, scaling="global").fit(X)
    wide = make(NCARLCompleter, alpha=10, scaling="global").fit(X.T)
    assert (tall.laplacian_axis_, wide.laplacian_axis_) == ("columns", "rows")
    assert tall.laplacian_.shape == wide.laplacian_.shape == (20, 20)
    given = {"alpha": 10, "n_neighbors": 5, "scaling": "global"}
    tall, wide = (make(NCARLCompleter, **given).fit(Z) for Z in (X, X.T))
    np.testing.assert_allclose(wide.reconstruction_, tall.reconstruction_.T, atol=1e-6)
    np.testing.assert_allclose(wide.laplacian_, tall.laplacian_, atol=1e-9)


def test_numbers_are_chosen_on_observed_cells():
    """At rank 2 the graph is harmful, so the smallest weight is chosen."""
    truth = low_rank()
    hidden = patterns.random(truth, 0.3, random_state=1)
    X = np.ma.masked_array(truth, hidden)
    completer = make(NCARLCompleter, scaling="global").fit(X)
    assert completer.alpha_ == 10
    assert completer.n_neighbors_ in (5, 10, 20)
    given = make(
        NCARLCompleter,
        alpha=10,
        n_neighbors=completer.n_neighbors_,
        max_iter=completer.max_iter_,
        scaling="global",
    )
    np.testing.assert_array_equal(
        given.fit(X).reconstruction_, completer.reconstruction_
    )
    noisy = make(NCARLCompleter, lambda_noise=0.01).fit(X)
    assert noisy.alpha_ in (0.1, 1.0, 10.0, 100.0)


def test_the_noisy_form_smooths():
    truth = low_rank(60, 40)
    rng = np.random.RandomState(0)
    noisy = truth + 0.5 * rng.randn(*truth.shape)
    X = np.ma.masked_array(noisy, rng.random_sample(truth.shape) < 0.2)
    exact = make(NCARLCompleter, keep_observed=False).fit_transform(X)
    smooth = make(NCARLCompleter, lambda_noise=0.01, keep_observed=False)
    smooth = smooth.fit_transform(X)
    seen = ~X.mask
    np.testing.assert_allclose(exact[seen], noisy[seen], atol=1e-9)
    error = np.abs(smooth - truth)[seen].mean()
    assert error < 0.8 * np.abs(noisy - truth)[seen].mean()
