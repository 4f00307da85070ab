"""The models of the network family, and properties of their completers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import low_rank, make
from sklearn.exceptions import ConvergenceWarning

from skmc import (
    AutoencoderCompleter,
    BiBNNCompleter,
    GradualNSRCompleter,
    LinkedFactorizationCompleter,
    NSRCompleter,
    Observed,
    SVDCompleter,
    models,
    patterns,
)
from skmc.linalg import Randomness, full_svd
from skmc.metrics import relative_error
from skmc.models import (
    BiBranch,
    Branch,
    FactorProduct,
    LinkedFactorization,
    SkipNetwork,
)
from skmc.new_rows import embedding
from skmc.solvers import HardRank


def bent(x):
    return 1.71 * np.tanh(2 / 3 * x)


def through(c):
    """The link in equation (64) of the DNN-NSR paper."""
    return bent(1.2 * (0.5 * bent(c) ** 2 - bent(c) - 1)) + c


@pytest.fixture(scope="module")
def linked():
    """160 x 90 of rank 4 behind that link, 40 % hidden; and what is behind."""
    rng = np.random.RandomState(0)
    latent = rng.randn(160, 4) @ rng.randn(4, 90)
    truth = through(latent)
    X = np.ma.masked_array(truth.astype(np.float32), rng.rand(*truth.shape) < 0.4)
    return X, truth, latent


def lost(completed, truth, hidden):
    """Percent of the hidden energy."""
    return 100 * relative_error(completed, truth, hidden) ** 2


def draw(seed=0, batch=()):
    n = 1 if not batch else batch[0]
    return Randomness.of(range(seed, seed + n), batch, torch.float64)


def link_model(batch=()):
    d = draw(batch=batch)
    units = [d.normal(1, 3, 1.0) for _ in range(3)]
    return LinkedFactorization(d.normal(6, 2, 1.0), d.normal(5, 2, 1.0), *units)


def test_gradients_of_the_link_are_derivatives():
    model = link_model()
    C = draw(1).normal(4, 3, 1.0).requires_grad_()
    parameters = [C, model.slope, model.offset, model.heights, model.steeps]

    def link(*_):
        return model.link(C)

    assert torch.autograd.gradcheck(link, [*parameters, model.shifts])
    X, slope = model.link_and_slope(C)
    torch.testing.assert_close(X, model.link(C))
    torch.testing.assert_close(slope, torch.autograd.grad(model.link(C).sum(), C)[0])


def test_recomputed_link_values_give_the_same_gradients(monkeypatch):
    first, second = link_model(), link_model()
    first().square().sum().backward()
    monkeypatch.setattr(models.link, "KEPT", 0)
    monkeypatch.setattr(models.link, "BLOCK", 7)
    second().square().sum().backward()
    for p, q in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)


@pytest.mark.parametrize("make", [link_model])
def test_batched_models_equal_separate_ones(make):
    together = make((3,))
    together().square().sum().backward()
    for k in range(3):
        alone = make()
        with torch.no_grad():
            for p, q in zip(alone.parameters(), together.parameters(), strict=True):
                p.copy_(q[k])
        torch.testing.assert_close(alone(), together()[k])
        alone().square().sum().backward()
        for p, q in zip(alone.parameters(), together.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad[k])


def test_branches_without_hidden_layers_are_factors():
    rows = Branch.random([6, 2], 1.0, draw())
    cols = Branch.random([5, 2], 1.0, draw(1))
    factors = FactorProduct([cols.weights[0].mT, rows.weights[0]])
    torch.testing.assert_close(BiBranch(rows, cols)(), factors())


@pytest.mark.long
def test_a_hidden_link_is_recovered(linked):
    X, truth, latent = linked
    completer = make(
        LinkedFactorizationCompleter, rank=4, max_iter=400, scaling="global"
    ).fit(X[:120])
    hidden = X.mask[:120]
    assert lost(completer.reconstruction_, truth[:120], hidden) < 0.1
    svd = make(SVDCompleter, max_iter=500).fit(X[:120])
    assert lost(svd.reconstruction_, truth[:120], hidden) > 5
    # New rows are completed as well as the fitted ones.
    assert lost(completer.transform(X[120:]), truth[120:], X.mask[120:]) < 0.3
    # The latent matrix is the true one up to an affine map, which the link undoes.
    assert (
        abs(np.corrcoef(completer.latent_.ravel(), latent[:120].ravel())[0, 1]) > 0.98
    )
    np.testing.assert_allclose(
        completer.link(completer.latent_), completer.reconstruction_, atol=1e-4
    )
    assert completer.link(0.0).shape == ()


@pytest.mark.long
def test_without_a_link_the_error_is_at_most_that_of_the_svd():
    rng = np.random.RandomState(1)
    truth = rng.randn(120, 3) @ rng.randn(3, 60)
    noisy = truth + 0.5 * rng.randn(*truth.shape)
    X = np.ma.masked_array(noisy, rng.rand(*truth.shape) < 0.3)
    linked = make(LinkedFactorizationCompleter, max_iter=400, scaling="global")
    ours = linked.fit_transform(X)
    assert linked.rank_ == 3
    svd = make(SVDCompleter, max_iter=500, scaling="global").fit_transform(X)
    assert lost(ours, truth, X.mask) < 1.1 * lost(svd, truth, X.mask)


def test_the_l1_decoder_recovers_a_nonlinear_matrix(linked):
    X, truth, _ = linked
    known = {"rank": 4, "max_iter": 400, "random_state": 0, "device": "cpu"}
    completer = NSRCompleter(lambda_decoder=2.0, **known).fit(X[:120])
    fitted = lost(completer.reconstruction_, truth[:120], X.mask[:120])
    assert fitted < 2.5  # a linear model loses more than 5
    new = lost(completer.transform(X[120:]), truth[120:], X.mask[120:])
    assert new < 1.5 * fitted + 0.5
    # ... and few of the decoder's weights are used: Adam leaves them near zero.
    D = completer._fitted.row_map.folded.decoder.decoder
    assert (D.abs() > 0.01 * D.abs().max()).double().mean() < 0.5


@pytest.mark.long
def test_the_l1_decoder_recovers_the_matrix_of_the_paper_by_default():
    """A trial that is too short prefers a weight with five times the loss."""
    rng = np.random.RandomState(0)
    truth = through(rng.randn(300, 10) @ rng.randn(10, 200))
    X = np.ma.masked_array(truth.astype(np.float32), rng.rand(300, 200) < 0.1)
    completed = NSRCompleter(random_state=0, device="cpu").fit_transform(X)
    assert lost(completed, truth, X.mask) < 0.3


def test_the_l1_decoder_chooses_its_weight(linked):
    X, _, _ = linked
    completer = make(NSRCompleter, rank=4, max_iter=5).fit(X[:60, :40])
    assert completer.lambda_decoder_ in (2.0, 8.0, 32.0)
    assert completer.rank_ == 4


def test_networks_without_hidden_layers_factorize(recovery):
    truth, hidden = recovery
    X = np.ma.masked_array(truth, hidden)
    own = make(
        BiBNNCompleter, rank=2, hidden=(), max_iter=1000, lr=0.03, scaling="global"
    ).fit(X)
    assert np.linalg.matrix_rank(own.reconstruction_ - own.reconstruction_.mean()) <= 3
    assert relative_error(own.reconstruction_, truth, hidden) < 0.05


@pytest.mark.parametrize("hidden", [(), (3, 0), (3.5,), ("8",), (True,)])
@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (AutoencoderCompleter, {}),
        (BiBNNCompleter, {}),
        (GradualNSRCompleter, {}),
    ],
)
def test_widths_are_checked(hidden, cls, params, small):
    if cls is BiBNNCompleter and hidden == ():
        return  # plain factorization
    with pytest.raises(ValueError, match=r"hidden=.* integers of at least 1"):
        make(cls, hidden=hidden, **params).fit(small[1])


@pytest.fixture(scope="module")
def holes():
    truth = low_rank(20, 8)
    return np.where(patterns.random(truth, 0.2, random_state=0), np.nan, truth)


@pytest.fixture(scope="module")
def of_rank_two(holes):
    completer = make(
        LinkedFactorizationCompleter, rank=2, lambda_ridge=1.0, scaling="global"
    )
    return completer.fit(holes)


CONTAINERS = {
    "transposed": np.transpose,
    "fortran": np.asfortranarray,
    "reversed": lambda latent: latent[::-1],
    "DataFrame": pd.DataFrame,
    "list": np.ndarray.tolist,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_link_accepts_any_memory_layout(container, of_rank_two):
    change = CONTAINERS[container]
    expected = np.asarray(change(of_rank_two.reconstruction_))
    found = of_rank_two.link(change(of_rank_two.latent_))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert of_rank_two.link(0.5).shape == ()


def test_a_link_of_columns_requires_all_columns(holes):
    completer = make(
        LinkedFactorizationCompleter, rank=2, lambda_ridge=1.0, scaling="columns"
    ).fit(holes)
    np.testing.assert_allclose(
        completer.link(completer.latent_), completer.reconstruction_
    )
    for shape in ((7,), (7, 1), ()):
        with pytest.raises(ValueError, match=r"latent has shape .* must be \(n, 8\)"):
            completer.link(np.zeros(shape))


@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (LinkedFactorizationCompleter, {"rank": 2, "lambda_ridge": 1.0}),
        (NSRCompleter, {"rank": 2, "lambda_decoder": 2.0}),
    ],
)
def test_interrupting_the_svd_at_the_start_ends_the_fit(
    cls, params, holes, monkeypatch
):
    def interrupt(*args):
        raise KeyboardInterrupt

    completer = make(cls, **params)
    monkeypatch.setattr(HardRank, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        completer.fit(holes)
    assert completer.status_ == "interrupted"
    assert np.isfinite(completer.transform(holes + 1)).all()
    if cls is LinkedFactorizationCompleter:  # there is no link yet
        np.testing.assert_allclose(
            completer.link(completer.latent_), completer.reconstruction_
        )


def test_advice_names_existing_parameters(holes):
    completer = make(BiBNNCompleter, scaling=None, max_iter=5)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter or lr, or let scaling"):
        completer.fit(1e6 * holes)


def test_parameters_are_contiguous(holes):
    """Adam's fused steps require gradients with the strides of the parameters."""
    data = Observed(torch.tensor(holes), ~torch.isnan(torch.tensor(holes)))
    svd = full_svd(data.values).first(2)
    skip = SkipNetwork.from_svd(svd, data.values, 1.0, 5, draw())
    linked = LinkedFactorizationCompleter(2, 1.0, random_state=0)
    solver = linked._make_solver(data, linked._params({}), draw())
    for model in (skip, solver.model):
        assert all(p.is_contiguous() for p in model.parameters())


def test_embedded_rows_use_bounded_memory(monkeypatch, of_rank_two):
    sizes, decoder = [], of_rank_two._fitted.row_map.folded.decoder

    def decode(u):
        sizes.append(len(u) * decoder.n_held)
        return LinkedFactorization.decode(decoder, u)

    rows = low_rank(50, 8, seed=1)
    expected = of_rank_two.transform(rows + 1)
    monkeypatch.setattr(embedding, "BLOCK", 200)
    monkeypatch.setattr(decoder, "decode", decode)
    np.testing.assert_allclose(of_rank_two.transform(rows + 1), expected)
    assert max(sizes) <= 200
    skip = SkipNetwork.from_svd(
        full_svd(torch.eye(6)).first(2), torch.eye(6), 1.0, 90, draw()
    )
    assert skip.n_held == 2 * 90  # the wide layer's slopes


@pytest.mark.parametrize(
    "cls", [BiBNNCompleter, LinkedFactorizationCompleter, NSRCompleter]
)
def test_independent_columns_are_completed_by_their_means(cls):
    rng = np.random.RandomState(5)
    truth = rng.randn(120, 10) * np.arange(1, 11) + rng.randn(10)
    X = np.where(rng.rand(*truth.shape) < 0.3, np.nan, truth)
    hidden = np.isnan(X)
    means = np.broadcast_to(np.nanmean(X, 0), X.shape)
    found = cls(random_state=0).fit_transform(X)
    errors = [np.square((Y - truth)[hidden]).sum() for Y in (found, means)]
    assert errors[0] < 1.05**2 * errors[1]


@pytest.mark.long
def test_a_shared_link_is_found_in_columns_of_one_unit(linked):
    X, truth, _ = linked
    completer = LinkedFactorizationCompleter(4, 0.1, random_state=0).fit(X)
    assert lost(completer.reconstruction_, truth, X.mask) < 1
    units = 10.0 ** np.random.RandomState(0).uniform(-2, 2, truth.shape[1])
    scaled = LinkedFactorizationCompleter(4, 0.1, random_state=0).fit(X * units)
    assert scaled._fitted.row_map.scaling.scale.shape[-1] == truth.shape[1]
