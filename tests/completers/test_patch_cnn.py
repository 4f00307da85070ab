"""The patch network: its input, its filling order, its training."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from conftest import make
from sklearn.exceptions import ConvergenceWarning

from skmc import MeanCompleter, Observed, patterns
from skmc.base import Trials, trials
from skmc.completers import PatchCNNCompleter, patch_cnn
from skmc.completers.patch_cnn import BATCH, PatchTraining
from skmc.linalg import Randomness, relu_layer
from skmc.loop import Solution, Status
from skmc.metrics import relative_error
from skmc.models import PatchCNN, Patches, filling_order
from skmc.solvers import Result

SHAPES = [(9, 8), (4, 3), (1, 6), (6, 1), (1, 1), (2, 2)]


def smooth(n_rows=48, n_cols=40, shift=0.0):
    """Two sinusoids; the truth, standardised by nobody."""
    i, j = np.arange(n_rows)[:, None] + shift, np.arange(n_cols)
    return np.sin(i / 4 + j / 7) + np.cos(j / 3 - i / 9)


def observed(shape, rate=0.3, seed=0, dtype=torch.float64):
    rng = np.random.RandomState(seed)
    mask = rng.random_sample(shape) >= rate
    mask[0, 0] = True
    return Observed(torch.tensor(rng.randn(*shape), dtype=dtype), torch.tensor(mask))


def trained_at_random(side=5, seed=0):
    """A network whose last layer is not zero."""
    network = PatchCNN(side, 2.0, Randomness.of([seed]))
    last = network.weights[-1]
    with torch.no_grad():
        last.copy_(Randomness.of([seed + 1]).normal(*last.shape, 0.3))
    return network.requires_grad_(False)


def everywhere(shape):
    return torch.nonzero(torch.ones(shape), as_tuple=True)


@pytest.mark.parametrize("side", [3, 7])
@pytest.mark.parametrize("shape", SHAPES)
def test_patches_equal_those_of_numpys_padding(shape, side):
    picture = torch.randn(*shape, 2, generator=torch.Generator().manual_seed(0))
    p = side // 2
    padded = np.pad(picture.numpy(), ((p, p), (p, p), (0, 0)), mode="reflect")
    rows, cols = everywhere(shape)
    cut = Patches(picture, side).around(rows, cols)
    for patch, i, j in zip(cut, rows, cols, strict=True):
        np.testing.assert_array_equal(patch, padded[i : i + side, j : j + side])


@pytest.mark.parametrize("side", [3, 7])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_patch_hides_only_its_own_cell(shape, side):
    number = torch.arange(shape[0] * shape[1]).view(shape)
    rows, cols = everywhere(shape)
    patches = Patches(number, side)
    shown, where = patches.elsewhere(rows, cols), patches.around(rows, cols)
    assert torch.equal(shown, where != number[rows, cols][:, None, None])


def test_holes_are_filled_from_the_boundary_inwards():
    mask = torch.ones(20, 20, dtype=torch.bool)
    mask[5:14, 4:13] = False
    order = filling_order(mask)
    distance = torch.zeros_like(order)
    for ring in range(5):
        distance[5 + ring : 14 - ring, 4 + ring : 13 - ring] = ring + 1
    assert torch.equal(order, distance)


@pytest.mark.parametrize("rate", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("shape", [*SHAPES, (40, 30)])
def test_every_cell_waits_for_a_known_neighbor(shape, rate):
    mask = observed(shape, rate).mask
    order = filling_order(mask).numpy()
    assert ((order == 0) == mask.numpy()).all()
    padded = np.pad(order, 1, constant_values=order.max() + 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    earlier = (windows < order[..., None, None]).sum((2, 3))
    assert (earlier[order > 0] >= 1).all()
    # Those with three known neighbours at the start do not wait.
    at_start = np.lib.stride_tricks.sliding_window_view(padded == 0, (3, 3)).sum((2, 3))
    assert (order[(at_start >= 3) & (order > 0)] == 1).all()


@pytest.mark.parametrize("shape", [(9, 8), (4, 3), (1, 6)])
def test_no_cell_is_predicted_from_itself(shape):
    data, network = observed(shape), trained_at_random(7)
    order = filling_order(data.mask)
    before = network.complete(data, order)
    for i, j in torch.nonzero(data.mask).tolist():
        values = data.values.clone()
        values[i, j] += 1
        after = network.complete(Observed(values, data.mask), order)
        assert after[i, j] == before[i, j]
        if data.mask.sum() > 1:
            assert (after != before).any()


def test_predicted_cells_count_as_known():
    data, network = observed((7, 6), rate=0.6), trained_at_random(5)
    order = filling_order(data.mask)
    assert order.max() > 1
    X, known = data.values.clone(), data.mask.clone()
    for n_round in range(1, int(order.max()) + 1):
        now = order == n_round
        X[now] = network.complete(Observed(X, known), torch.where(now, 1, 0))[now]
        known |= now
    torch.testing.assert_close(network.fill(data, order), X)
    assert torch.equal(network.fill(data, order)[data.mask], data.values[data.mask])


def test_the_first_prediction_is_the_mean_around():
    data = observed((30, 20))
    network = PatchCNN(5, 2.0, Randomness.of([0])).requires_grad_(False)
    X = network.complete(data, filling_order(data.mask))
    around = data.values[8:13, 5:10], data.indicator[8:13, 5:10].clone()
    around[1][2, 2] = 0
    expected = (around[0] * around[1]).sum() / around[1].sum()
    assert X[10, 7] == pytest.approx(float(expected), abs=1e-6)
    assert filling_order(data.mask)[10, 7] <= 1


def test_a_shift_of_the_data_shifts_the_completion():
    data, network = observed((9, 8)), trained_at_random()
    order = filling_order(data.mask)
    moved = Observed(data.values + 3, data.mask)
    torch.testing.assert_close(
        network.complete(moved, order),
        network.complete(data, order) + 3,
        rtol=1e-5,
        atol=1e-5,
    )


def test_a_step_of_training_descends_and_draws_no_global_numbers():
    data = observed((9, 8))
    solver = PatchTraining(5, lr=0.003, horizon=100, rng=Randomness.of([0]))
    before = torch.get_rng_state()
    state = solver.init(data)
    start = data.energy / data.n_observed / 2
    for _ in range(100):
        state = solver.step(data, state)
    assert torch.equal(torch.get_rng_state(), before)
    assert state.objective < 0.8 * start
    # Starting again is starting the same.
    again = solver.init(data)
    for _ in range(100):
        again = solver.step(data, again)
    X, again_X = (solver.result(s).X for s in (state, again))
    assert torch.equal(again_X, X)


def test_an_epoch_draws_every_cell_once():
    data = observed((30, 20))
    solver = PatchTraining(3, lr=0.003, horizon=100, rng=Randomness.of([0]))
    state = solver.init(data)
    n_cells = int(data.n_observed)
    n_steps = -(-n_cells // BATCH)
    for k in range(n_steps):
        assert (k == 0) == (not len(state.queue))
        state = solver.step(data, state)
    assert not len(state.queue)
    assert torch.equal(state.seen != 0, data.mask)


def test_dropped_cells_are_those_unknown_in_holes():
    mask = torch.ones(12, 11, dtype=torch.bool)
    mask[3:8, 2:9] = False
    data = Observed(torch.zeros(12, 11), mask)
    solver = PatchTraining(5, lr=0.01, horizon=10, rng=Randomness.of([0]))
    state = replace(solver.init(data), dropped_share=torch.ones(()))
    order = np.pad(state.order.numpy(), 2, mode="reflect")
    expected = {
        (order[i : i + 5, j : j + 5] < order[i + 2, j + 2]).tobytes()
        for i, j in torch.nonzero(~mask).tolist()
    }
    drawn = {k.numpy().tobytes() for k in solver._known_in_holes(state, 500)}
    assert drawn == expected


def shown(side, mask):
    """Mean numbers of known cells of a patch: in training, and in filling."""
    n_cells = 20_000
    data = Observed(torch.zeros(mask.shape), mask)
    solver = PatchTraining(side, lr=0.01, horizon=10, rng=Randomness.of([0]))
    state = solver.init(data)
    lot = torch.randint(len(state.cells[0]), (n_cells,), generator=state.generator)
    rows, cols = (index[lot] for index in state.cells)
    own = (state.rounds.around(rows, cols) == 0) & state.picture.elsewhere(rows, cols)
    kept = solver._known_in_holes(state, n_cells)
    rows, cols = state.holes
    filling = state.rounds.around(rows, cols) < state.order[rows, cols][:, None, None]
    counts = (own & kept), filling
    return *(float(c.sum((1, 2)).double().mean()) for c in counts), state.dropped_share


@pytest.mark.parametrize(
    "holes", [[(10, 35, 12, 40)], [(5, 15, 5, 15), (30, 31, 0, 50)]]
)
def test_training_shows_as_many_cells_as_filling(holes):
    mask = torch.ones(50, 50, dtype=torch.bool)
    for top, bottom, left, right in holes:
        mask[top:bottom, left:right] = False
    training, filling, share = shown(7, mask)
    assert 0.5 < share <= 1
    assert training == pytest.approx(filling, rel=0.03)


def test_patches_of_scattered_holes_drop_no_cells():
    mask = torch.ones(60, 60, dtype=torch.bool)
    mask[::3, ::3] = False  # around a hole, more is known than around other cells
    assert shown(5, mask)[2] == 0


HOLES = {
    "random": lambda X: patterns.random(X, 0.3, random_state=0),
    "block": lambda X: patterns.patch(X, [(20, 27, 15, 22)]),
}


@pytest.fixture(scope="module")
def completed():
    """Completers of the smooth picture, by what is hidden."""
    truth, result = smooth(), {}
    for name, hide in HOLES.items():
        hidden = hide(truth)
        X = np.ma.masked_array(truth, hidden)
        result[name] = X, PatchCNNCompleter(5, random_state=0, device="cpu").fit(X)
    return result


@pytest.mark.parametrize(("name", "bound"), [("random", 0.1), ("block", 0.35)])
def test_recovers_a_smooth_picture(name, bound, completed):
    X, completer = completed[name]
    assert relative_error(completer.transform(X), smooth(), X.mask) < bound
    # What it says of observed cells, not having seen them, is good, too.
    assert relative_error(completer.reconstruction_, smooth(), ~X.mask) < 0.1


@pytest.mark.parametrize("name", HOLES)
def test_complete_picture_of_the_fitted_one_is_transform(name, completed):
    X, completer = completed[name]
    np.testing.assert_allclose(
        completer.complete_picture(X), completer.transform(X), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_complete_picture_completes_other_pictures(dtype, completed):
    _, completer = completed["random"]
    truth = smooth(n_rows=25, shift=300.0).astype(dtype)
    hidden = patterns.random(truth, 0.3, random_state=7)
    other = np.ma.masked_array(truth, hidden)
    answer = completer.complete_picture(other)
    assert answer.dtype == dtype
    np.testing.assert_array_equal(answer[~hidden], truth[~hidden])
    means = relative_error(MeanCompleter().fit_transform(other), truth, hidden)
    assert relative_error(answer, truth, hidden) < 0.3 * means
    with pytest.raises(ValueError, match="X has 39 features"):
        completer.complete_picture(other[:, 1:])


def test_complete_picture_can_return_the_networks_values(completed):
    X, completer = completed["random"]
    completer = PatchCNNCompleter(**completer.get_params()).set_params(
        keep_observed=False, max_iter=25
    )
    completer.fit(X)
    own = completer.complete_picture(X)
    assert (own[~X.mask] != X.data[~X.mask]).all()


@pytest.mark.filterwarnings("ignore:.*no observed cell:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("patch_size", [3, 9])
@pytest.mark.parametrize("shape", [(1, 30), (30, 1), (4, 3), (2, 25)])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.99])
def test_extreme_shapes(shape, patch_size, rate):
    data = observed(shape, rate)
    X = np.ma.masked_array(data.values.numpy(), ~data.mask.numpy())
    completer = make(PatchCNNCompleter, patch_size=patch_size, max_iter=5)
    answer = completer.fit_transform(X)
    assert np.isfinite(answer).all()
    assert np.isfinite(completer.complete_picture(X)).all()
    assert completer.patch_size_ == patch_size


def chosen(completer, shape, seed):
    data = observed(shape)
    attempts = Trials(partial(completer._split, data, seed), Randomness.of([seed]))
    return completer._choose(data, attempts).params["patch_size"]


def test_the_search_walks_to_the_best_side(monkeypatch):
    """Errors grow with the distance from 9, which is always reached."""
    tried = []

    def solve(solver, data, **kwargs):
        tried.append(solver.side)
        X = torch.full_like(data.values, 10.0 + abs(solver.side - 9))
        return Solution(Result(X=X), [Status.MAX_ITER], data.n_observed, X, {})

    monkeypatch.setattr(trials, "solve_part", solve)
    for seed in range(6):
        tried.clear()
        completer = make(PatchCNNCompleter, random_state=seed)
        assert chosen(completer, (50, 40), seed) == 9
        assert tried[0] == 7
        assert len(set(tried)) == len(tried) <= patch_cnn.N_SIDES
    tried.clear()
    small = make(PatchCNNCompleter)
    chosen(small, (400, 4), 0)
    assert tried[0] == 3


def test_of_sides_with_equal_errors_the_smallest_is_used(monkeypatch):
    tried = []

    def solve(solver, data, **kwargs):
        tried.append(solver.side)
        X = torch.full_like(data.values, 10.0)
        return Solution(Result(X=X), [Status.MAX_ITER], data.n_observed, X, {})

    monkeypatch.setattr(trials, "solve_part", solve)
    for seed in range(4):
        tried.clear()
        completer = make(PatchCNNCompleter, random_state=seed)
        assert chosen(completer, (50, 40), seed) == min(tried) < 7


def test_few_cells_or_iterations_allow_no_search(monkeypatch):
    monkeypatch.setattr(trials, "solve_part", None)
    for shape, params in (((30, 20), {}), ((50, 40), {"max_iter": 5})):
        completer = make(PatchCNNCompleter, **params)
        assert chosen(completer, shape, 0) == 7


def test_even_sides_are_refused():
    with pytest.raises(ValueError, match=r"patch_size=6 is even.* use 7 or 'auto'"):
        PatchCNNCompleter(6).fit(smooth())


def test_sides_beyond_the_matrix_are_refused():
    with pytest.raises(ValueError, match=r"patch_size=1001 is above \d+.* lower it"):
        PatchCNNCompleter(1001).fit(smooth())


def test_held_out_cells_are_used_for_the_completion():
    """The completion of a hidden cell depends on a held-out cell next to it."""
    X = np.ma.masked_array(smooth(), HOLES["random"](smooth()))
    completer = make(PatchCNNCompleter, patch_size=5, max_iter=25).fit(X)
    held_out = patterns.random(X, 0.05, spare=True, random_state=0)
    without = np.ma.masked_array(X.data, X.mask | held_out)
    shown = completer.complete_picture(X)
    assert (shown != completer.complete_picture(without))[X.mask].mean() > 0.3
    np.testing.assert_allclose(
        completer.reconstruction_[X.mask], shown[X.mask], rtol=1e-4, atol=1e-5
    )


def test_an_interrupted_search_leaves_no_network(monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(trials, "solve_part", interrupt)
    completer = make(PatchCNNCompleter)
    with pytest.raises(KeyboardInterrupt):
        completer.fit(smooth())
    with pytest.raises(ValueError, match="interrupted before there was a network"):
        completer.complete_picture(smooth())


def test_noise_warns_of_uninformative_neighbors():
    noise = np.random.RandomState(0).randn(30, 20)
    with pytest.warns(ConvergenceWarning, match="Neighboring cells may say little"):
        make(PatchCNNCompleter, patch_size=5, early_stopping=False).fit(noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(PatchCNNCompleter, patch_size=5, max_iter=100).fit(smooth())


def test_a_picture_needs_an_observed_cell(completed):
    _, completer = completed["random"]
    with pytest.raises(ValueError, match="X has no observed cell"):
        completer.complete_picture(np.full((4, 40), np.nan))


@pytest.mark.parametrize("scale", [1e20, 1e150])
def test_a_picture_beyond_single_precision_gets_a_finite_answer(scale, completed):
    X, completer = completed["random"]
    answer = completer.complete_picture(scale * X)
    assert np.isfinite(answer).all()
    np.testing.assert_array_equal(answer[~X.mask], scale * X.data[~X.mask])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_layer_equals_torchs_with_its_gradients(dtype):
    generator = torch.Generator().manual_seed(0)
    shapes = (300, 18), (32, 18), (32,)
    inputs = [torch.randn(*s, generator=generator, dtype=dtype) for s in shapes]
    inputs = [t.requires_grad_() for t in inputs]
    pair = relu_layer(*inputs), torch.relu(torch.nn.functional.linear(*inputs))
    grad = torch.randn(300, 32, generator=generator, dtype=dtype)
    torch.testing.assert_close(*pair)
    mine, theirs = (torch.autograd.grad(Y, inputs, grad) for Y in pair)
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_the_first_layer_is_a_convolution():
    network, generator = trained_at_random(7), torch.Generator().manual_seed(0)
    patches = torch.randn(4, 7, 7, 2, generator=generator)
    patches[..., 1] = 1
    windows, _ = network.windows(patches, torch.ones(4, 7, 7, dtype=torch.bool))
    centered = patches.clone()
    centered[..., 0] -= patches[..., 0].mean((1, 2), keepdim=True)
    kernel = network.weights[0].view(-1, 3, 3, 2).permute(0, 3, 1, 2)
    expected = torch.nn.functional.conv2d(centered.permute(0, 3, 1, 2), kernel)
    found = (windows @ network.weights[0].mT).mT.view(4, -1, 5, 5)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
