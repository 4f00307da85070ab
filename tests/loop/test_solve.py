"""The loop: statuses, stop rules, history, and members that do not interact."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from conftest import low_rank
from torch import nn

from skmc import Observed, Status
from skmc.linalg import Randomness
from skmc.loop import HeldOut, solve
from skmc.models import FactorProduct
from skmc.solvers import Descent, HardRank, Solver, State
from skmc.terms import AdaptiveDirichletEnergy, SquaredError


def observed(*batch, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(*batch, 6, 5, generator=generator, dtype=torch.float64)
    return Observed(values, torch.rand(*batch, 6, 5, generator=generator) > 0.3)


@dataclass(frozen=True, kw_only=True)
class Point(State):
    X: torch.Tensor


@dataclass
class Shrink(Solver):
    """X moves towards the data at a rate of its own in each member."""

    rate: torch.Tensor  # (*batch,)

    def init(self, data):
        X = torch.zeros_like(data.values)
        return Point(X=X, objective=SquaredError(data)(X))

    def step(self, data, state):
        X = state.X - self.rate[..., None, None] * data.residual(state.X)
        return Point(X=X, objective=SquaredError(data)(X))

    def residual(self, data, previous, current):
        return data.residual(current.X).square().sum((-2, -1)).sqrt()


def test_statuses_and_the_iterate_a_member_stopped_at():
    """A member that ends keeps its iterate while the others go on."""
    data = observed(4)
    rate = torch.tensor([0.5, 0.9, 1e-4, 25.0], dtype=torch.float64)
    solution = solve(Shrink(rate), data, max_iter=40, tol=1e-3, check_every=2)
    assert solution.status == [
        Status.CONVERGED,
        Status.CONVERGED,
        Status.MAX_ITER,
        Status.DIVERGED,
    ]
    assert solution.n_iter[1] < solution.n_iter[0] < solution.n_iter[2] == 40
    for k, (values, mask) in enumerate(zip(data.values, data.mask, strict=True)):
        alone = solve(
            Shrink(rate[k]),
            Observed(values, mask),
            max_iter=40,
            tol=1e-3,
            check_every=2,
        )
        assert alone.status == [solution.status[k]]
        assert alone.n_iter == solution.n_iter[k]
        torch.testing.assert_close(alone.X, solution.X[k])
    assert torch.isfinite(solution.X).all()


def test_history_is_data():
    solution = solve(Shrink(torch.tensor(0.1)), observed(), max_iter=25, check_every=10)
    assert solution.history["n_iter"].tolist() == [10, 20, 25]
    assert solution.history["objective"].diff().lt(0).all()
    torch.testing.assert_close(solution.history["residual"][-1], solution.residual)


def test_stop_rules_decide_and_callbacks_observe():
    seen = []
    solution = solve(
        Shrink(torch.full((2,), 0.01)),
        observed(2),
        max_iter=100,
        check_every=5,
        stop=[lambda p: torch.tensor([p.n_iter >= 10, p.n_iter >= 20])],
        callbacks=[lambda p: seen.append((p.n_iter, p.running.tolist())) or True],
    )
    assert solution.status == [Status.STOPPED, Status.STOPPED]
    assert solution.n_iter.tolist() == [10, 20]
    assert [n for n, _ in seen] == [5, 10, 15, 20]
    assert seen[2][1] == [False, True]


def test_held_out_cells_keep_the_best_iterate():
    """The error on held-out cells is lowest half way, by construction."""
    full = Observed(torch.ones(4, 4), torch.ones(4, 4, dtype=torch.bool))
    corner = torch.zeros(4, 4, dtype=torch.bool)
    corner[0] = True
    train = replace(full, values=3 * full.values).hide(corner)

    class Overshoot(Shrink):
        def step(self, data, state):
            X = state.X + 0.1
            return Point(X=X, objective=SquaredError(data)(X))

    rule = HeldOut(Observed(full.values, corner), patience=5)
    solution = solve(
        Overshoot(torch.tensor(0.0)), train, max_iter=29, check_every=1, stop=[rule]
    )
    assert solution.status == [Status.STOPPED]
    assert solution.n_iter == 15
    torch.testing.assert_close(solution.X, torch.ones(4, 4))
    assert solution.history["validation"].argmin() == 9


def test_interrupting_returns_the_current_iterate():
    class Interrupted(Shrink):
        n_steps = 0

        def step(self, data, state):
            self.n_steps += 1
            if self.n_steps == 8:
                raise KeyboardInterrupt
            return super().step(data, state)

    data = observed()
    solution = solve(Interrupted(torch.tensor(0.1)), data, max_iter=50, check_every=5)
    assert solution.status == [Status.INTERRUPTED]
    expected = solve(Shrink(torch.tensor(0.1)), data, max_iter=7)
    torch.testing.assert_close(solution.X, expected.X)


def descent(data, **params):
    draw = Randomness.of([0], dtype=data.values.dtype)
    model = FactorProduct.random(data.shape, 2, 3, 0.1, draw)
    settings = {"lr": 0.05, "horizon": 3000, **params}
    return Descent(model, [SquaredError(data)], **settings)


def full_rank_two():
    truth = torch.tensor(low_rank(20, 15))
    return Observed(truth, torch.ones_like(truth, dtype=torch.bool))


def test_solvers_do_not_store_iterates():
    data = full_rank_two()
    solver = descent(data)
    first, second = (solve(solver, data, max_iter=30).X for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@pytest.mark.parametrize("make", [descent, lambda data: HardRank(2)])
def test_residuals_fall_to_zero_at_a_solution_and_not_at_the_start(make):
    """No solver may call its start, or a saddle next to it, optimal."""
    data = full_rank_two()
    hidden = torch.rand(20, 15, generator=torch.Generator().manual_seed(0)) < 0.3
    data = data.hide(hidden)
    early = solve(make(data), data, max_iter=1)
    late = solve(make(data), data, max_iter=3000, tol=1e-6)
    assert early.residual > 1e-3
    assert late.residual < 1e-5
    assert data.residual(late.X).norm() < 1e-3 * data.values.norm()


def test_tiny_factors_are_not_mistaken_for_a_solution():
    """At 1e-6 every gradient is nearly zero; the residual is not."""
    data = full_rank_two()
    draw = Randomness.of([0], dtype=torch.float64)
    model = FactorProduct.random(data.shape, 3, 15, 1e-6, draw)
    solver = Descent(model, [SquaredError(data)], lr=1e-8, horizon=10)
    solution = solve(solver, data, max_iter=1, tol=1e-2)
    assert solution.status == [Status.MAX_ITER]


def test_any_module_is_a_model():
    """A model is a plain module: autograd pulls the closed-form slope back."""

    class Free(nn.Module):
        def __init__(self):
            super().__init__()
            self.X = nn.Parameter(torch.zeros(20, 15, dtype=torch.float64))

        def forward(self):
            return 2 * self.X

    data = full_rank_two()
    solver = Descent(Free(), [SquaredError(data)], lr=0.1, horizon=400)
    solution = solve(solver, data, max_iter=400)
    torch.testing.assert_close(solution.X, data.values, atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("values", "mask", "error"),
    [
        (torch.ones(2, 2), torch.ones(2, 3, dtype=torch.bool), "must share a shape"),
        (torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.bool), "no observed cell"),
        (
            torch.ones(2, 2, dtype=torch.long),
            torch.ones(2, 2, dtype=torch.bool),
            "float",
        ),
        (torch.ones(2, 2), torch.ones(2, 2), "mask must be boolean"),
        (
            torch.tensor([[1.0, torch.inf]]),
            torch.ones(1, 2, dtype=torch.bool),
            r"not finite at observed cell \(0, 1\)",
        ),
    ],
)
def test_observed_refuses(values, mask, error):
    with pytest.raises((ValueError, TypeError), match=error):
        Observed(values, mask)


def test_observed_ignores_masked_values():
    data = Observed(torch.tensor([[1.0, torch.nan]]), torch.tensor([[True, False]]))
    assert data.values.tolist() == [[1.0, 0.0]]
    assert data.residual(torch.tensor([[3.0, 5.0]])).tolist() == [[2.0, 0.0]]
    assert data.fill(torch.tensor([[3.0, 5.0]])).tolist() == [[1.0, 5.0]]


def test_interrupting_keeps_the_iterate_that_a_rule_chose():
    calls = []

    def rule(progress):
        calls.append(progress.n_iter)
        progress.keep(torch.tensor(progress.n_iter == 2))
        if progress.n_iter == 6:
            raise KeyboardInterrupt
        return torch.tensor(False)

    data = observed()
    shrink = Shrink(torch.tensor(0.1))
    kept = solve(shrink, data, max_iter=50, check_every=1, stop=[rule])
    assert kept.status == [Status.INTERRUPTED]
    torch.testing.assert_close(kept.X, solve(shrink, data, max_iter=2).X)


def test_interrupting_a_diverging_solve_returns_a_finite_answer():
    class Explode(Shrink):
        n_steps = 0

        def step(self, data, state):
            self.n_steps += 1
            if self.n_steps == 9:
                raise KeyboardInterrupt
            X = state.X + 1e300 * self.n_steps**9
            return Point(X=X * X, objective=SquaredError(data)(X))

    solution = solve(Explode(torch.tensor(0.0)), observed(), max_iter=50)
    assert solution.status == [Status.INTERRUPTED]
    assert torch.isfinite(solution.X).all()


def test_terms_may_learn_less_often_than_the_model():
    """Every third evaluation learns; between them W and L are constant."""
    X = torch.randn(
        5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    W = torch.zeros(5, 5, dtype=torch.float64)
    term = AdaptiveDirichletEnergy(W, weight=0.5, every=3)
    slopes = []
    for k in range(6):
        term.W.grad = None
        slopes.append(term.value_and_grad(X)[1])
        assert (term.W.grad is None) == (k % 3 != 0)
        with torch.no_grad():
            term.W[0, 1] += 1.0
    torch.testing.assert_close(slopes[0], slopes[2])
    assert not torch.allclose(slopes[2], slopes[3])
    torch.testing.assert_close(slopes[3], slopes[5])
