"""AEMC and DLMC: recovery, nesting of layers, new rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import make

from skmc import Observed, SVDCompleter, patterns
from skmc.completers import AutoencoderCompleter
from skmc.completers.autoencoder import nested
from skmc.linalg import Randomness
from skmc.loop import solve
from skmc.metrics import relative_error
from skmc.models import Autoencoder
from skmc.new_rows import ForwardPass, LearnedInputs, forward_pass
from skmc.solvers import RowDescent
from skmc.terms import SquaredNorm

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
DEEP = {"hidden": (40, 2), "lambda_weights": 0.003, "max_iter": 300, "random_state": 0}


def draw():
    return Randomness.of([0], dtype=torch.float64)


def network(*widths, **params):
    return Autoencoder.random(widths, draw(), **params)


def ring(n_rows, seed):
    """Points on a closed curve in ten dimensions, far from any plane."""
    t = np.random.RandomState(seed).uniform(0, 2 * np.pi, (n_rows, 1))
    return np.tanh(3 * np.cos(t - 2 * np.pi * np.arange(10) / 10))


@pytest.fixture(scope="module")
def points():
    truth = ring(250, 0)
    hidden = patterns.random(truth, 0.2, spare=True, random_state=1)
    return truth, hidden, np.ma.masked_array(truth, hidden)


@pytest.fixture(scope="module")
def deep(points):
    return AutoencoderCompleter(**DEEP).fit(points[2])


@pytest.mark.long
def test_a_curve_is_recovered_better_than_by_a_linear_model(points, deep):
    truth, hidden, X = points
    planes = [SVDCompleter(rank).fit_transform(X) for rank in range(1, 7)]
    best = min(relative_error(plane, truth, hidden) for plane in planes)
    assert relative_error(deep.reconstruction_, truth, hidden) < 0.65 * best


def test_new_rows_are_completed_nearly_as_well_as_fitted_rows(points, deep):
    """The new rows are on the same curve and were not in the fit."""
    truth, hidden, _ = points
    fitted = relative_error(deep.reconstruction_, truth, hidden)
    new = ring(100, 1)
    holes = patterns.random(new, 0.2, spare=True, random_state=2)
    completed = deep.transform(np.ma.masked_array(new, holes))
    assert relative_error(completed, new, holes) < 2.5 * fitted
    # One pass from zeros, which the network never saw, would not do.
    rows = deep._fitted.row_map
    learned = rows.folded
    try:
        rows.folded = ForwardPass(learned.network)
        plain = deep.transform(np.ma.masked_array(new, holes))
    finally:
        rows.folded = learned
    assert relative_error(completed, new, holes) < 0.8 * relative_error(
        plain, new, holes
    )


def test_missing_inputs_of_new_rows_minimize_the_stated_objective():
    rows, inner = draw().uniform(7, 5, 1.0), network(5, 4, 5, gain=1.0)
    seen = rows > -0.3
    rows = torch.where(seen, rows, 0.0)
    fold_in = LearnedInputs(inner)
    answer = fold_in(rows, seen)
    start = inner(rows).detach()

    def loss(z):
        answer = inner(torch.where(seen, rows, z))
        fit = 0.5 * ((answer - rows)[seen]).square().sum()
        return fit + LearnedInputs.weight / 2 * (z - start)[~seen].square().sum()

    z = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([z], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = loss(z)
        value.backward()
        return value

    optimizer.step(closure)
    best = inner(torch.where(seen, rows, z)).detach()
    torch.testing.assert_close(answer, best, atol=5e-3, rtol=0)
    assert (answer - start).abs().max() > 0.2


def test_layers_are_nested():
    """If the inner part is the identity, the result is the first autoencoder."""
    rows = draw().uniform(8, 6, 1.0)
    first = network(6, 4, 6, gain=1.0)
    codes = first.hidden(rows)[0]
    inner = network(4, 3, 4, gain=1.0, bent_output=True)
    whole = nested([first, inner])
    torch.testing.assert_close(whole.hidden(rows)[0], codes)
    torch.testing.assert_close(whole.hidden(rows)[1], inner.hidden(codes)[0])
    torch.testing.assert_close(whole.hidden(rows)[2], inner(codes))
    out = torch.addmm(first.biases[1], inner(codes), first.weights[1])
    torch.testing.assert_close(whole(rows), out)


def test_a_deep_network_starts_from_the_codes_of_the_first(points):
    truth, hidden, _ = points
    data = Observed(torch.tensor(truth), torch.tensor(~hidden))
    completer = AutoencoderCompleter(
        (12, 6), 0.0, max_iter=300, batch_size=250, random_state=0
    )
    solver = completer._make_solver(data, completer._params({}), draw())
    codes = solver.network.hidden(solver.inputs)
    error = (codes[2] - codes[0]).square().mean() / codes[0].var()
    assert error < 0.1
    torch.testing.assert_close(data.fill(solver.inputs), solver.inputs)
    assert [tuple(W.shape) for W in solver.network.weights] == [
        (10, 12),
        (12, 6),
        (6, 12),
        (12, 10),
    ]


def test_small_weights_are_a_linear_map():
    """``1.7159 tanh(2a/3)`` is ``1.1439 a`` near zero."""
    rows, small = draw().uniform(5, 6, 1.0), network(6, 6, 6)
    small.weights[0].data = 1e-4 * torch.eye(6, dtype=torch.float64)
    small.weights[1].data = 1e4 / (1.7159 * 2 / 3) * torch.eye(6, dtype=torch.float64)
    torch.testing.assert_close(small(rows), rows, rtol=1e-6, atol=1e-8)


def test_gradient_of_missing_inputs_comes_through_the_network(points):
    truth, hidden, _ = points
    data = Observed(torch.tensor(truth), torch.tensor(~hidden))
    start, penalty = torch.full_like(data.values, 0.3), SquaredNorm(0.5)
    solver = RowDescent(
        network(10, 4, 10),
        {"weights.0": penalty},
        lr=0.01,
        horizon=10,
        batch_size=250,
        rng=draw(),
        inputs=start,
        free=True,
    )
    state = solver.init(data)
    value = solver._backward(data, state.network, state.batches[0])
    inputs = data.fill(start).requires_grad_()
    other = network(10, 4, 10)
    loss = 0.5 * data.residual(other(inputs)).square().sum()
    loss = loss + 0.25 * other.weights[0].square().sum()
    loss.backward()
    torch.testing.assert_close(value, loss.detach())
    slope = torch.where(data.mask, 0.0, inputs.grad)
    torch.testing.assert_close(state.batches[0].inputs.grad, slope)


def test_mini_batches_are_as_accurate_as_full_batches(points):
    truth, hidden, X = points
    errors = [
        relative_error(
            AutoencoderCompleter(
                lambda_weights=0.03, batch_size=size, max_iter=150, random_state=0
            ).fit_transform(X),
            truth,
            hidden,
        )
        for size in (50, 250)
    ]
    assert max(errors) < 1.3 * min(errors)


def test_stopping_early_is_better_than_overfitting(recovery):
    truth, hidden = recovery
    noisy = truth + np.random.RandomState(0).randn(*truth.shape)
    X = np.ma.masked_array(noisy, hidden)
    errors = [
        relative_error(
            AutoencoderCompleter(
                lambda_weights=1e-3, early_stopping=early, random_state=0
            ).fit_transform(X),
            truth,
            hidden,
        )
        for early in (True, False)
    ]
    assert errors[0] < 0.95 * errors[1]


def shapes():
    rng = np.random.RandomState(0)
    X = rng.randn(30, 8)
    thin = np.where(rng.random_sample((60, 50)) < 0.99, np.nan, rng.randn(60, 50))
    thin[np.arange(60), np.arange(60) % 50] = 1.0
    constant = X.copy()
    constant[:, ::2] = 3.0
    holes = np.where(rng.random_sample(X.shape) < 0.3, np.nan, X)
    return {
        "one row": X[:1],
        "one column": X[:, :1],
        "one cell": X[:1, :1],
        "constant columns": constant,
        "all constant": np.full((6, 4), 2.0),
        "all observed": X,
        "99 % hidden": thin,
        "single": holes.astype(np.float32),
        "double": holes,
    }


@pytest.mark.filterwarnings("ignore:.*no observed cell")
@pytest.mark.parametrize("hidden", [(9,), (9, 3), (9, 4, 2)])
@pytest.mark.parametrize("shape", shapes())
def test_odd_shapes(shape, hidden):
    X = shapes()[shape]
    completer = make(AutoencoderCompleter, hidden=hidden, max_iter=25, batch_size=13)
    completed = completer.fit_transform(X)
    assert np.isfinite(completed).all()
    assert completed.dtype == X.dtype
    np.testing.assert_array_equal(completed[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(completer.transform(X * 1.01)).all()


def test_interrupting_the_first_layers_leaves_a_usable_completer(points, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    completer = make(AutoencoderCompleter, hidden=(5, 2))
    monkeypatch.setattr(RowDescent, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        completer.fit(points[2])
    assert completer.status_ == "interrupted"
    assert np.isfinite(completer.transform(points[2])).all()
    assert np.isfinite(completer.transform(points[2] + 1)).all()


def test_the_order_of_rows_in_batches_is_undone(points):
    truth, hidden, _ = points
    data = Observed(torch.tensor(truth), torch.tensor(~hidden))
    solver = RowDescent(
        network(10, 4, 10),
        {},
        lr=0.01,
        horizon=10,
        batch_size=60,
        rng=draw(),
        free=True,
    )
    solution = solve(solver, data, max_iter=1)
    shown = solution.result.network(data.values)
    torch.testing.assert_close(
        shown[data.mask.all(1)], solution.X[data.mask.all(1)], rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("cls", [ForwardPass, LearnedInputs])
def test_new_rows_use_bounded_memory(cls, monkeypatch):
    """The bound includes the widest layer, which may be wider than the rows."""
    rows, held = draw().uniform(60, 5, 1.0), []
    seen = rows > -0.3
    rows = torch.where(seen, rows, 0.0)
    complete = cls(network(5, 30, 5))
    expected = complete(rows, seen)
    monkeypatch.setattr(forward_pass, "BLOCK", 300)
    complete.network.register_forward_hook(lambda _, args, __: held.append(args[0]))
    torch.testing.assert_close(complete(rows, seen), expected)
    assert max(len(part) for part in held) * 30 <= 300
