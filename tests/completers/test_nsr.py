"""DNN-NSR: block updates, gradual learning, extrapolation, stopping, recovery."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import low_rank

from skmc import Observed, patterns
from skmc.completers import GradualNSRCompleter, NSRCompleter
from skmc.completers.gradual_nsr import (
    DELTA_MAX,
    DELTA_MIN,
    NonsmoothDescent,
    Theta,
    inner,
)
from skmc.linalg import Randomness, shrink_dense
from skmc.loop import solve
from skmc.metrics import relative_error
from skmc.models import Autoencoder, bent, slope_at
from skmc.new_rows import ForwardPass
from skmc.solvers import CosineSchedule
from skmc.terms import Box, L1Norm, NuclearNorm, SquaredNorm

SHAPE, WIDTHS = (20, 6), [6, 5, 4, 6]
ALPHA, BETA, LAMBDA = 0.3, 0.4, 0.05


def draw(seed=0):
    return Randomness.of([seed], dtype=torch.float64)


@pytest.fixture
def data():
    values = torch.from_numpy(low_rank(*SHAPE))
    return Observed(values, draw().uniform(*SHAPE, 1.0) > -0.4)


def solver(mu_max=100.0, mu_min=1.0, horizon=200, **params):
    fixed = {
        "activity": L1Norm(ALPHA),
        "rank": NuclearNorm(BETA),
        "decay": SquaredNorm(2 * LAMBDA),
        "box": Box(10.0),
        "schedule": CosineSchedule(mu_max, mu_min, horizon),
        "gamma": 3.0,
        "grace": 0,
    }
    network = Autoencoder.random(WIDTHS, draw())
    return NonsmoothDescent(network, **{**fixed, **params})


def states(ours, data, n_epochs):
    """The state before every epoch and after the last."""
    with torch.no_grad():
        found = [ours.init(data)]
        for _ in range(n_epochs):
            found.append(ours.step(data, found[-1]))
    return found


def parts(theta):
    return [*theta.weights, *theta.biases]


def smooth(data, theta, h, V, mu):
    """The smooth part of Q, written down from the paper."""
    network = Autoencoder([*theta.weights], [*theta.biases])
    for p, q in zip(network.parameters(), parts(theta), strict=True):
        p.data = q.clone()
    hidden = network.hidden(data.values)
    error = data.residual(network(data.values))
    value = error.square().sum()
    value = value + LAMBDA * sum(W.square().sum() for W in network.weights)
    gaps = [a - b for a, b in zip(hidden, h, strict=True)]
    gaps += [a - b for a, b in zip(network.weights, theta.layers(V), strict=True)]
    value = value + sum(gap.square().sum() for gap in gaps) / (2 * mu)
    return network, value


def penalised(data, theta, h, V, mu):
    """Q."""
    _, value = smooth(data, theta, h, V, mu)
    l1 = sum(part.abs().sum() for part in h)
    nuclear = sum(torch.linalg.svdvals(part).sum() for part in theta.layers(V))
    return float(value.detach() + ALPHA * l1 + BETA * nuclear)


def test_slope_at_is_the_derivative_of_the_activation():
    a = torch.linspace(-3, 3, 13, dtype=torch.float64, requires_grad=True)
    z = bent(a)
    (slope,) = torch.autograd.grad(z.sum(), a)
    torch.testing.assert_close(slope_at(z.detach()), slope)


def test_gradient_is_the_derivative_of_the_smooth_part(data):
    ours = solver()
    state = states(ours, data, 5)[-1]
    theta, blocks, mu = state.theta, state.blocks, 0.7
    with torch.no_grad():
        forward = ours.forward(data, theta)
        ours_value = ours.smooth(forward, blocks, mu)
        grad = ours.gradient(data, forward, blocks, mu)
    network, value = smooth(data, theta, blocks.h, blocks.V, mu)
    assert ours_value == pytest.approx(float(value.detach()))
    value.backward()
    for p, g in zip(network.parameters(), parts(theta.moved(grad)), strict=True):
        torch.testing.assert_close(g, p.grad)


def test_the_objective_equals_the_papers(data):
    state = states(solver(), data, 5)[-1]
    blocks = state.blocks
    for value, mu in (
        (state.found.end + blocks.penalty, state.mu),
        (float(state.objective), 1.0),
    ):
        expected = penalised(data, state.theta, blocks.h, blocks.V, mu)
        assert value == pytest.approx(expected)


@pytest.mark.parametrize("mu", [0.1, 1.0, 20.0])
def test_slack_variables_minimize_the_objective(data, mu):
    """No nearby h or V is better; at mu = 20 some of them are zero."""
    ours = solver()
    state = states(ours, data, 20)[-1]
    blocks = ours.blocks(state.found.forward, mu)
    least = penalised(data, state.theta, blocks.h, blocks.V, mu)
    for seed, size in enumerate([1e-4, 1e-2, 1.0] * 3):
        h = [a + draw(seed).uniform(*a.shape, size) for a in blocks.h]
        V = blocks.V + draw(seed).uniform(*blocks.V.shape, size)
        assert penalised(data, state.theta, h, blocks.V, mu) > least
        assert penalised(data, state.theta, blocks.h, V, mu) > least


def test_a_step_is_a_proximal_gradient_step_from_the_extrapolated_point(data):
    ours = solver(box=Box(0.4))
    before, after = states(ours, data, 9)[-2:]
    theta, blocks = before.theta, after.blocks
    now = theta.vector
    hat = theta.moved(now + after.found.omega * (now - before.before))
    network, value = smooth(data, hat, blocks.h, blocks.V, after.mu)
    value.backward()
    step = 1 / (ours.gamma * after.found.lipschitz)
    for a, p in zip(parts(after.theta), network.parameters(), strict=True):
        torch.testing.assert_close(a, (p.data - step * p.grad).clamp(-0.4, 0.4))
    # omega is the formula's, and the upper bound holds with this L.
    ratio = after.delta * before.found.lipschitz / after.found.lipschitz
    formula = (ours.gamma - 1) / (2 * (ours.gamma + 1)) * math.sqrt(ratio)
    assert after.found.omega == pytest.approx(
        formula, rel=0.06
    )  # delta grew by a tenth
    way = after.theta.vector - hat.vector
    grads = ([p.grad for p in each] for each in (network.weights, network.biases))
    grad = Theta.of(*grads).vector
    _, end = smooth(data, after.theta, blocks.h, blocks.V, after.mu)
    bound = value + inner(grad, way) + after.found.lipschitz / 2 * inner(way, way)
    assert end <= bound * (1 + 1e-9)


@pytest.mark.parametrize("grace", [0, 50])
def test_the_objective_does_not_rise_after_the_first_epochs(data, grace):
    """Both sides at the epoch's mu: the schedule's own part is left out."""
    run = states(solver(gamma=50.0, grace=grace, horizon=150), data, 150)
    for k, (before, after) in enumerate(itertools.pairwise(run), start=1):
        if k > max(grace, 1):
            blocks = before.blocks
            old = penalised(data, before.theta, blocks.h, blocks.V, after.mu)
            assert after.found.end + blocks.penalty - old <= 1e-9 * old
        assert DELTA_MIN <= after.delta <= DELTA_MAX


def test_an_epoch_that_raises_the_objective_is_redone(data):
    """A huge extrapolation raises it: delta shrinks, and finally omega is zero."""
    ours = solver(omega=50.0)
    run = states(ours, data, 4)
    moving = replace(run[-1], delta=0.5)
    with torch.no_grad():
        after = ours.step(data, moving)
    assert after.found.omega == 0.0
    assert after.delta == pytest.approx(1.1 * DELTA_MIN)
    # In the first epochs it may.
    with torch.no_grad():
        assert solver(omega=50.0, grace=200).step(data, moving).found.omega == 50.0


class Blind(NonsmoothDescent):
    """Sees no gradient: it goes where the extrapolation leads, for any L."""

    def gradient(self, *args):
        return torch.zeros_like(super().gradient(*args))


def test_failing_the_descent_test_lowers_mu_max(data):
    """With a far too small L, an uphill extrapolation fails the test."""
    ours = solver(omega=1.0, grace=200)
    *_, before, state = states(ours, data, 30)
    uphill = replace(state, before=state.theta.vector, found=before.found)
    blind = Blind(**vars(ours))
    for L, top in ((1e6, 100.0), (1e-9, 80.0)):
        with torch.no_grad():
            after = blind.step(
                data, replace(uphill, found=replace(uphill.found, lipschitz=L))
            )
        assert after.schedule.start == pytest.approx(top)
    assert CosineSchedule(5.0, 1.0, 10).lowered(0.1).start == 1.0
    # With L by backtracking it holds.
    assert states(solver(), data, 30)[-1].schedule.start == 100.0


def test_slack_variables_converge_to_the_variables_they_replace(data):
    """mu to 1e-4: soft thresholds, and with them the gaps, vanish."""
    ours = solver(mu_max=10.0, mu_min=1e-4, horizon=150)
    run = states(ours, data, 150)
    for start, end in zip(pairs(run[1]), pairs(run[-1]), strict=True):
        assert gap(*start) > 0.1
        assert gap(*end) < 1e-3


def pairs(state):
    return [
        *zip(state.found.forward.hidden, state.blocks.h, strict=True),
        *zip(state.theta.weights, state.theta.layers(state.blocks.V), strict=True),
    ]


def gap(a, b):
    return float((a - b).norm() / a.norm())


def test_schedule():
    schedule = CosineSchedule(1e5, 1.0, 40)
    values = [schedule(k) for k in range(50)]
    assert values[0] == 1e5
    assert values[20] == pytest.approx((1e5 + 1) / 2)
    assert values[40:] == [1.0] * 10
    assert (np.diff(values[:41]) < 0).all()
    assert {CosineSchedule(2.0, 2.0, 40)(k) for k in range(50)} == {2.0}


def test_the_schedule_is_followed_and_equal_ends_keep_mu(data):
    run = states(solver(horizon=20), data, 20)
    assert [s.mu for s in run] == [CosineSchedule(100.0, 1.0, 20)(k) for k in range(21)]
    assert {s.mu for s in states(solver(mu_max=1.0), data, 20)} == {1.0}


@pytest.mark.parametrize("bound", [0.05, 0.3])
def test_parameters_stay_in_the_box(data, bound):
    for state in states(solver(box=Box(bound)), data, 30):
        largest = float(state.theta.vector.abs().max())
        assert largest <= bound
    assert largest == pytest.approx(bound)  # it is felt


def test_the_residual_requires_more_than_equal_slack_variables(data):
    """Without penalties h = z and V = W from the start, and nothing is learned yet."""
    tol = 0.3
    ours = solver(activity=L1Norm(0.0), rank=NuclearNorm(0.0), mu_max=1.0)
    solution = solve(ours, data, max_iter=600, tol=tol, check_every=1)
    assert solution.status[0].value == "converged"
    assert solution.n_iter > 50
    assert solution.residual <= tol
    assert data.misfit(solution.X) < 0.3 * data.energy


def test_outputs_are_the_forward_pass_of_the_network(data):
    ours = solver()
    result = ours.result(states(ours, data, 3)[-1])
    torch.testing.assert_close(result.X, result.network(data.values).detach())
    rows = ForwardPass(result.network)(data.values, data.mask)
    torch.testing.assert_close(rows, result.X)


def test_no_decomposition_where_nothing_exceeds_the_threshold(monkeypatch):
    A = torch.from_numpy(low_rank(8, 5))
    bound = float(torch.linalg.matrix_norm(A))
    monkeypatch.setattr("torch.linalg.eigh", None)
    V, norm = shrink_dense(A, bound)
    assert torch.equal(V, torch.zeros_like(A))
    assert norm == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("share", [0.0, 1e-9, 1e-3, 0.02, 0.5])
@pytest.mark.parametrize("shape", [(9, 6), (6, 9), (3, 7, 4)])
def test_shrinking_without_singular_vectors(shape, share, dtype):
    """The result equals LAPACK's, and the norm is that of the result."""
    A = draw().normal(math.prod(shape[:-1]), shape[-1], 1.0).to(dtype).view(shape)
    A[..., 0] = A[..., 1]  # a singular value of zero
    U, s, Vh = torch.linalg.svd(A.double(), full_matrices=False)
    less = (s - share * s[..., :1]).clamp_min(0)
    X, norm = shrink_dense(A, share * s[..., 0])
    accuracy = 1e-5 if dtype is torch.float32 else 1e-9
    expected = (U * less[..., None, :]) @ Vh
    assert X.dtype == dtype
    torch.testing.assert_close(X.double(), expected, rtol=0, atol=10 * accuracy)
    torch.testing.assert_close(
        norm.double(), less.sum(-1), rtol=accuracy, atol=10 * accuracy
    )


@pytest.fixture
def problem():
    truth = low_rank(40, 20, rank=2)
    return truth, patterns.random(truth, 0.3, random_state=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_completes_better_than_means(problem, dtype):
    truth, hidden = problem
    X = np.ma.masked_array(truth.astype(dtype), hidden)
    completer = GradualNSRCompleter(hidden=(30, 4, 30), max_iter=300, random_state=0)
    completed = completer.fit_transform(X)
    assert completed.dtype == dtype
    means = np.broadcast_to(X.mean(0).data, X.shape)
    ours, theirs = (relative_error(Y, truth, hidden) for Y in (completed, means))
    assert ours < 0.3 * theirs


def test_new_rows_get_the_networks_answer(problem):
    truth, hidden = problem
    X = np.where(hidden, np.nan, truth)
    completer = GradualNSRCompleter(
        hidden=(10,), max_iter=50, scaling=None, random_state=0
    )
    completer.fit(X[:30])
    assert isinstance(completer._fitted.row_map.folded, ForwardPass)
    rows = torch.from_numpy(np.where(hidden, 0.0, truth)[30:])
    expected = completer._fitted.row_map.folded.network(rows).detach().numpy()
    np.testing.assert_allclose(
        completer.transform(X[30:])[hidden[30:]], expected[hidden[30:]]
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mu_max": 0.5}, "mu_max=0.5 is below mu_min=1.0"),
        ({"gamma": 1.0}, "'gamma' parameter"),
    ],
)
def test_bad_parameters_are_named(problem, params, message):
    with pytest.raises(ValueError, match=message):
        GradualNSRCompleter(**params).fit(problem[0])


@pytest.mark.parametrize("scaling", ["columns", None])
def test_an_encoder_without_penalty_is_handled(problem, scaling):
    """A column without an observed cell, or a constant one, is a column of zeros."""
    truth, hidden = problem
    X = np.where(hidden, np.nan, truth)
    X[:, 3] = np.nan
    X[:, 5] = 0.0
    completer = NSRCompleter(
        rank=2, lambda_encoder=0.0, lambda_decoder=8.0, scaling=scaling, max_iter=50
    )
    with pytest.warns(UserWarning, match="no observed cell"):
        completed = completer.set_params(random_state=0).fit_transform(X)
    rest = np.delete(np.arange(20), [3, 5])
    assert relative_error(completed[:, rest], truth[:, rest], hidden[:, rest]) < 0.2
