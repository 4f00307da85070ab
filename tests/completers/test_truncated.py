"""Truncated nuclear norm: optimality, and the paper's loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from conftest import low_rank

from skmc import Observed, patterns
from skmc.completers import TNNRCompleter
from skmc.completers.truncated import TruncatedADMM, TruncatedAPGL, WeightedTruncated
from skmc.loop import solve

# solver of a rank, whether observed cells are met exactly, steps to an exact answer
SOLVERS = {
    "admm": (TruncatedADMM, True, 300),
    "apgl": (TruncatedAPGL, False, 300),
    "wre": (WeightedTruncated, True, 100),
}
every_solver = pytest.mark.parametrize("name", SOLVERS)
VARIANTS = [{}, {"solver": "apgl"}, {"weighted": True}]
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)


def problem(n_rows=24, n_cols=18, rank=2, noise=0.0, hidden=0.25, seed=0):
    rng = np.random.RandomState(seed)
    truth = low_rank(n_rows, n_cols, rank, seed)
    truth = truth + noise * rng.randn(n_rows, n_cols)
    mask = ~patterns.random(truth, hidden, spare=True, random_state=seed)
    truth = torch.tensor(truth)
    return truth, Observed(truth, torch.tensor(mask))


def states(solver, data, n_iter):
    state = solver.init(data)
    yield state
    for _ in range(n_iter):
        state = solver.step(data, state)
        yield state


def last(solver, data, n_iter):
    *_, state = states(solver, data, n_iter)
    return state


def relative(A, B):
    return float((A - B).norm() / B.norm())


@every_solver
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_a_matrix_of_that_rank_is_recovered(name, rank):
    solver, exact, n_iter = SOLVERS[name]
    truth, data = problem(40, 30, rank)
    X = solve(solver(rank), data, max_iter=n_iter, tol=1e-7).X
    assert relative(X, truth) < 1e-3
    if exact:
        assert torch.equal(X[data.mask], truth[data.mask])


@every_solver
def test_the_objective_of_the_state_is_that_of_its_matrix(name):
    _, data = problem(noise=0.3)
    solver = SOLVERS[name][0](3)
    state = last(solver, data, 20)  # where an inner problem ends
    s = torch.linalg.svdvals(state.X)
    objective = s[3:].sum()
    if name == "apgl":
        objective += state.weight / 2 * data.residual(state.X).square().sum()
    torch.testing.assert_close(state.objective, objective)


@pytest.mark.long
@pytest.mark.parametrize("cls", [TruncatedADMM, TruncatedAPGL])
def test_no_inner_problem_raises_the_objective(cls):
    """Each one lowers a bound that is tight at its start."""
    _, data = problem(noise=0.3)
    solver = cls(3, inner_iter=1500, inner_tol=1e-9)
    ends = [float(s.objective) for s in states(solver, data, 6000) if s.n_inner == 0]
    assert len(ends) > 4
    assert (np.diff(ends) <= 1e-6 * ends[0]).all()
    assert ends[-1] < 0.9 * ends[0]


def test_the_single_loop_ends_near_the_admm():
    """This holds for two values above the noise; otherwise the minima differ."""
    _, data = problem(noise=0.3)
    wre = [float(s.objective) for s in states(WeightedTruncated(2), data, 100)]
    best = float(last(TruncatedADMM(2), data, 300).objective)
    assert 0.9999 * best <= wre[-1] <= 1.005 * best < wre[0]


@pytest.mark.parametrize("rank", [0, 2])
def test_admm_has_a_certificate(rank):
    """``A'B`` plus what acts on observed cells is a subgradient of ``|X|_*``."""
    _, data = problem(noise=0.3)
    state = last(TruncatedADMM(rank), data, 600)
    U, s, Vh = np.linalg.svd(state.X.numpy())
    A = U[:, :rank] @ Vh[:rank]
    kept = s > 1e-6 * s[0]
    assert 2 < kept.sum() < 18
    C = np.where(data.mask, -state.dual, A)
    assert np.linalg.norm(C, 2) < 1 + 1e-6
    inside = U[:, : len(s)][:, kept].T @ C @ Vh[kept].T
    np.testing.assert_allclose(inside, np.eye(kept.sum()), atol=1e-6)


def test_the_gradient_of_apgl_is_a_derivative():
    _, data = problem()
    generator = torch.Generator().manual_seed(0)
    X, T, D = (
        torch.randn(data.shape, generator=generator, dtype=torch.float64)
        for _ in range(3)
    )
    weight = torch.tensor(0.7, dtype=torch.float64)

    def value(h):
        misfit = data.residual(X + h * D).square().sum()
        return float(weight / 2 * misfit - (T * (X + h * D)).sum())

    grad = TruncatedAPGL(2).grad(data, X, T, weight)
    assert (value(0.1) - value(-0.1)) / 0.2 == pytest.approx(float((grad * D).sum()))


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 2])
def test_apgl_with_a_large_weight_equals_admm(rank):
    _, data = problem(noise=0.1)
    exact = solve(TruncatedADMM(rank), data, max_iter=400, tol=1e-6).X
    solver = TruncatedAPGL(rank, weight=1000.0, inner_iter=300)
    assert relative(solve(solver, data, max_iter=3000, tol=1e-5).X, exact) < 2e-3


def nested_loops(M, mask, rank, rho, inner=400, outer=40):
    """Hu et al., algorithms 1 and 2, in NumPy, with their own restarts."""
    X = M * mask
    for _ in range(outer):
        U, _, Vh = np.linalg.svd(X)
        AB = U[:, :rank] @ Vh[:rank]
        start = W = Y = X
        for _ in range(inner):
            before = X
            U, s, Vh = np.linalg.svd(W - Y / rho, full_matrices=False)
            X = (U * np.maximum(s - 1 / rho, 0)) @ Vh
            W = np.where(mask, M, X + (AB + Y) / rho)
            Y = Y + rho * (X - W)
            if np.linalg.norm(X - before) < 1e-8 * np.linalg.norm(M):
                break
        if np.linalg.norm(X - start) < 1e-7 * np.linalg.norm(M):
            break
    return W


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_admm_equals_the_nested_loops_of_the_paper(noise):
    truth, data = problem(20, 15, 2, noise)
    theirs = nested_loops(truth.numpy(), data.mask.numpy(), 2, rho=0.5)
    ours = solve(TruncatedADMM(2), data, max_iter=1000, tol=1e-8).X
    assert relative(ours, torch.tensor(theirs)) < 1e-4


def test_rows_with_fewer_cells_have_larger_weights():
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.bool)
    weights = WeightedTruncated(1).weights(Observed(mask.double(), mask))
    expected = torch.tensor([1.0, 1.5, 1.75], dtype=torch.float64)
    torch.testing.assert_close(weights[:, 0], expected / expected.mean())


@every_solver
@pytest.mark.parametrize("unit", [255.0, 1e-3])
def test_units_do_not_matter(name, unit):
    _, data = problem(noise=0.3)
    solver = SOLVERS[name][0](2)
    scaled = last(solver, Observed(unit * data.values, data.mask), 40).X
    torch.testing.assert_close(scaled, unit * last(solver, data, 40).X)


@every_solver
def test_the_order_of_rows_and_columns_does_not_matter(name):
    _, data = problem(noise=0.3)
    solver = SOLVERS[name][0](2)
    i, j = torch.arange(24).flip(0)[:, None], torch.arange(18).roll(5)
    other = last(solver, Observed(data.values[i, j], data.mask[i, j]), 40).X
    torch.testing.assert_close(other, last(solver, data, 40).X[i, j])


@pytest.mark.parametrize("cls", [TruncatedADMM, TruncatedAPGL])
def test_the_residual_vanishes_at_a_solution_only(cls):
    _, data = problem(noise=0.3)
    *_, previous, current = states(cls(2), data, 600)
    assert cls(2).residual(data, previous, current) < 1e-6
    # The inner problem of other A, B may be solved; the outer one is not.
    held = cls(2, inner_iter=1000, inner_tol=0.0)
    *_, previous, current = states(held, data, 600)
    assert held.residual(data, previous, current) > 1e-2


def test_the_residual_of_the_single_loop_bounds_later_changes():
    _, data = problem(noise=0.3)
    solver = WeightedTruncated(2)
    every = list(states(solver, data, 100))
    for state in every[:60:10]:
        reach = float(solver.residual(data, state, state))
        assert (every[-1].X - state.X).norm() <= reach * data.values.norm()


def rows(*shape):
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)


HARD = {
    "constant": np.where(np.eye(5, 4) > 0, np.nan, 7.0),
    "one row": np.where(rows(1, 6) == 3, np.nan, rows(1, 6)),
    "one column": np.where(rows(6, 1) == 3, np.nan, rows(6, 1)),
    "2 x 2": np.array([[1.0, 2.0], [3.0, np.nan]]),
    "all seen": low_rank(7, 5),
    "zeros": np.where(np.eye(4) > 0, np.nan, 0.0),
    "99 % hidden": np.where(
        patterns.random(low_rank(30, 40), 0.99, random_state=0),
        np.nan,
        low_rank(30, 40),
    ),
    "one cell": np.where(rows(3, 4) == 5, 2.0, np.nan),
    "single precision": np.where(np.eye(6) > 0, np.nan, low_rank(6, 6)).astype("f4"),
}


@every_variant
@pytest.mark.parametrize("scaling", ["global", "columns", None])
@pytest.mark.parametrize("matrix", HARD)
def test_hard_matrices(matrix, scaling, variant):
    X = HARD[matrix]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rank in ("auto", 1):
            completer = TNNRCompleter(
                rank, scaling=scaling, random_state=0, device="cpu", **variant
            )
            completed = completer.fit_transform(X)
            assert np.isfinite(completed).all()
            assert completer.status_ != "diverged"


@every_variant
def test_variants_recover_with_their_own_rank(variant, recovery):
    truth, hidden = recovery
    completer = TNNRCompleter(random_state=0, scaling=None, device="cpu", **variant)
    completed = completer.fit_transform(np.ma.masked_array(truth, hidden))
    np.testing.assert_allclose(completed, truth, atol=0.01)
    assert completer.status_ == "converged"
    assert completer.rank_ <= 3


@pytest.mark.parametrize("seed", range(3))
def test_the_rank_of_a_matrix_without_a_block_is_found(seed):
    """The nuclear norm meets scattered cells, but not the block."""
    truth = low_rank(80, 40, 3, seed)
    X = truth.copy()
    X[:40, :20] = np.nan
    completer = TNNRCompleter(random_state=0, device="cpu")
    completed = completer.fit_transform(X)
    assert completer.rank_ == 3
    np.testing.assert_allclose(completed, truth, atol=0.02)


def test_contradictory_parameters():
    X = low_rank(6, 5)
    with pytest.raises(ValueError, match=r"weighted=True .* solver='apgl'"):
        TNNRCompleter(1, solver="apgl", weighted=True).fit(X)
    with pytest.raises(ValueError, match=r"rank=6 is above .*=5; lower it"):
        TNNRCompleter(6).fit(X)
