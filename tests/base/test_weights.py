"""Weights of cells: 2 counts the cell twice, 0 hides it."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import torch
from conftest import COMPLETERS, KINDS, low_rank, make
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from skmc import (
    AutoencoderCompleter,
    Entries,
    MeanCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    TNNRCompleter,
)
from skmc.cells import Observed
from skmc.linalg import Randomness
from skmc.models import Autoencoder
from skmc.solvers import RowDescent
from skmc.terms import SquaredError

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.* no observed cell:UserWarning"),
]

TAKES = [
    cls for cls in COMPLETERS if "cell_weight" in inspect.signature(cls.fit).parameters
]
REFUSES = [cls for cls in COMPLETERS if cls not in TAKES]
PARAMS = {TNNRCompleter: {"solver": "apgl"}}  # the default matches cells exactly


def quick(cls, **params):
    return make(cls, **PARAMS.get(cls, {}), **params)


def completed(cls, X, w=None, **params):
    given = {} if w is None else {"cell_weight": w}
    return quick(cls, **params).fit(X, **given).reconstruction_


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.RandomState(0)
    X = low_rank(20, 12) + 0.5 * rng.randn(20, 12)
    X[rng.rand(20, 12) < 0.2] = np.nan
    return X, rng.randint(0, 3, X.shape).astype(float)


@pytest.mark.parametrize("cls", TAKES)
def test_zero_hides_and_one_changes_nothing(cls, noisy):
    X, w = noisy
    ones = completed(cls, X, np.ones_like(X))
    np.testing.assert_allclose(ones, completed(cls, X), rtol=1e-6, atol=1e-9)
    hidden = completed(cls, np.where(w > 0, X, np.nan), w)
    completer = quick(cls).fit(X, cell_weight=w)
    np.testing.assert_allclose(completer.reconstruction_, hidden, rtol=1e-6, atol=1e-9)
    missing = np.isnan(X)
    filled = completer.transform(X)
    assert np.array_equal(filled[~missing], X[~missing])


@pytest.mark.parametrize("cls", TAKES)
def test_rows_of_the_fit_keep_their_weights(cls, noisy):
    """Cells that hardly count in the fit do not count in its rows, either."""
    X, _ = noisy
    bad = np.random.RandomState(3).rand(*X.shape) < 0.2
    spoiled = np.where(bad, X + 5, X)
    weights = np.where(bad, 1e-6, 1.0)
    completer = quick(cls).fit(spoiled, cell_weight=weights)
    hidden = np.isnan(X)
    found = completer.transform(spoiled)[hidden]
    np.testing.assert_allclose(found, completer.reconstruction_[hidden], rtol=1e-6)


@pytest.mark.parametrize("cls", TAKES)
def test_heavy_cells_are_fitted_better(cls, noisy):
    X, _ = noisy
    heavy = np.random.RandomState(1).rand(*X.shape) < 0.5
    # The same rank for both, not one that was chosen.
    off = [
        np.abs(completed(cls, X, np.where(cells, 9.0, 1.0), rank=2) - X)
        for cells in (heavy, ~heavy)
    ]
    first, second = (np.nanmean(error[heavy]) for error in off)
    assert first < second
    first, second = (np.nanmean(error[~heavy]) for error in off)
    assert first > second


@pytest.mark.parametrize("cls", [cls for cls in TAKES if cls in KINDS])
def test_containers_of_weights_agree(cls, noisy):
    X, w = noisy
    cells = Entries(X)
    expected = completed(cls, cells, w[cells.rows, cells.cols])
    np.testing.assert_array_equal(completed(cls, X, w), expected)
    np.testing.assert_array_equal(completed(cls, X, sp.csr_array(w)), expected)


@pytest.mark.parametrize("cls", TAKES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[:3], r"shape \(3, 12\); it must have the shape of X, \(20, 12\)"),
        (lambda w: w - 5, "weights of observed cells must be finite and at least 0"),
        (lambda w: w * np.nan, "cell_weight is nan at row 0"),
        (lambda w: w * 0, "no observed cell"),
    ],
)
def test_bad_weights(cls, change, message, noisy):
    X, w = noisy
    with pytest.raises(ValueError, match=message):
        quick(cls).fit(X, cell_weight=change(w))


@pytest.mark.repository
def test_the_page_names_the_completers_without_weights():
    page = (Path(__file__).parents[2] / "docs/guide/tasks.md").read_text("utf-8")
    section = page.split("## Weights of cells")[1].split("\n## ")[0]
    named = section.split("The others raise")[1]
    for cls in COMPLETERS:
        assert (f"`{cls.__name__}`" in named) == (cls in REFUSES), cls


@pytest.mark.parametrize("cls", REFUSES)
def test_completers_without_weights_give_a_reason(cls, noisy):
    with pytest.raises(TypeError, match=r"no cell_weight: .*(Leave it|Pass sample_w)"):
        quick(cls).fit(noisy[0], cell_weight=noisy[1])
    assert cls.completer_tags.unweighted


def test_exact_solvers_refuse_weights(noisy):
    for params in ({}, {"weighted": True}):
        with pytest.raises(ValueError, match="use solver='apgl' with weighted=False"):
            make(TNNRCompleter, **params).fit(noisy[0], cell_weight=noisy[1])


def test_means_count_cells_twice(noisy):
    X, w = noisy
    w = np.where(np.isnan(X), 0, w).astype(int)
    w[4], w[:, 5] = 0, 0  # an empty row and an empty column
    mean = MeanCompleter().fit(X, cell_weight=w)
    for j in range(12):
        column = np.repeat(X[:, j], w[:, j])
        if j != 5:
            np.testing.assert_allclose(mean.reconstruction_[:, j], column.mean())
    assert (mean.predict_entries(np.arange(20), np.full(20, 5)) == 0).all()
    cells = Entries.of_matrix(X, one_unit=True)  # rows have means, too
    mean.fit(cells, cell_weight=w[cells.rows, cells.cols])
    rows = [np.repeat(x, k).mean() for x, k in zip(X, w, strict=True) if k.any()]
    found = mean.predict_entries(np.arange(20), np.full(20, 5))
    np.testing.assert_allclose(np.delete(found, 4), rows)
    np.testing.assert_array_equal(mean.reconstruction_[:, 5], found)


@pytest.mark.parametrize("scaling", ["columns", None])
def test_a_row_of_weight_two_is_the_row_twice(scaling, noisy):
    X, _ = noisy
    times = np.random.RandomState(2).randint(1, 4, 20)
    twice = np.repeat(np.arange(20), times)
    completer = SVDCompleter(2, tol=1e-7, max_iter=20000, scaling=scaling)
    expected = completer.fit(X[twice]).reconstruction_
    w = times[:, None] * np.ones(12)
    found = completer.fit(X, cell_weight=w).reconstruction_[twice]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_soft_impute_solves_the_weighted_problem(noisy):
    """``W P(M - X) / lambda`` is a subgradient of the nuclear norm at ``X``."""
    X, w = noisy
    completer = SoftImputeCompleter(
        0.3, fixed_effects=None, tol=1e-10, max_iter=5000, scaling=None
    )
    Z = completer.fit(X, cell_weight=w).reconstruction_
    pull = w * np.nan_to_num(X - Z)
    weight = 0.3 * np.linalg.norm(w * np.nan_to_num(X), 2)
    assert np.linalg.norm(pull, 2) == pytest.approx(weight, rel=1e-3)
    nuclear = np.linalg.svd(Z, compute_uv=False).sum()
    assert (pull * Z).sum() == pytest.approx(weight * nuclear, rel=1e-3)


def test_apgl_solves_the_weighted_problem(noisy):
    X, w = noisy
    completer = TNNRCompleter(
        1, solver="apgl", lambda_fit=1.0, tol=1e-7, max_iter=5000, scaling=None
    )
    Z = completer.fit(X, cell_weight=w).reconstruction_
    unit = np.linalg.svd(np.where(w > 0, np.nan_to_num(X), 0), compute_uv=False).mean()
    pull = w * np.nan_to_num(X - Z) / unit
    assert np.linalg.norm(pull, 2) == pytest.approx(1, rel=1e-3)


def test_term_counts_cells():
    rng = np.random.RandomState(0)
    M, X, w = rng.randn(6, 5), rng.randn(6, 5), rng.randint(0, 4, (6, 5))
    seen = rng.rand(6, 5) < 0.7
    data = Observed(torch.tensor(M), torch.tensor(seen), weights=torch.tensor(w * 1.0))
    value, grad = SquaredError(data).value_and_grad(torch.tensor(X))
    error = np.repeat((X - M)[seen], w[seen])
    assert float(value) == pytest.approx(0.5 * (error**2).sum())
    np.testing.assert_allclose(grad, np.where(seen, w * (X - M), 0))
    assert float(data.n_observed) == w[seen].sum()
    assert float(data.hide(torch.tensor(M > 0)).n_observed) == w[seen & (M <= 0)].sum()


def test_networks_of_rows_descend_the_weighted_loss(noisy):
    X, w = noisy
    values, seen = torch.tensor(np.nan_to_num(X)), torch.tensor(~np.isnan(X))
    data = Observed(values, seen, weights=torch.tensor(w))
    rng = Randomness.of([0], dtype=torch.float64)
    network = Autoencoder.random([12, 3, 12], rng)
    solver = RowDescent(network, {}, lr=0.1, horizon=9, batch_size=7, rng=rng)
    state = solver.init(data)
    total = sum(solver._backward(data, state.network, b) for b in state.batches)
    loss = 0.5 * (torch.tensor(w) * seen * (network(values) - values) ** 2).sum()
    expected = torch.autograd.grad(loss, list(network.parameters()))
    assert float(total) == pytest.approx(float(loss.detach()))
    for found, grad in zip(state.network.parameters(), expected, strict=True):
        torch.testing.assert_close(found.grad, grad)


def test_held_out_cells_count_by_weight(noisy):
    """The history of early stopping is a weighted root mean square."""
    X, _ = noisy
    rng = np.random.RandomState(3)
    w = rng.randint(1, 5, X.shape) * 1.0
    completer = make(AutoencoderCompleter, scaling=None, max_iter=1)
    data = Observed(
        torch.tensor(np.nan_to_num(X)),
        torch.tensor(~np.isnan(X)),
        weights=torch.tensor(w),
    )
    _, (rule,) = completer._hold_out(data, [0])
    held = rule.truth.mask.numpy()
    assert held.any() and float(rule.truth.n_observed) == w[held].sum()
    misfit = rule.truth.misfit(torch.zeros_like(data.values))
    assert float(misfit) == pytest.approx((w * np.nan_to_num(X) ** 2)[held].sum())


@pytest.mark.parametrize("cls", [SVDCompleter, MeanCompleter])
def test_searches_split_weights_with_the_cells(cls, noisy):
    X, w = noisy
    cells, w = Entries(X), w + 1
    weights = w[cells.rows, cells.cols]
    folds = KFold(3, shuffle=True, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        completer = make(cls).set_fit_request(cell_weight=True)
        search = GridSearchCV(completer, {"keep_observed": [True]}, cv=folds)
        search.fit(cells, cell_weight=weights)
        piped = make_pipeline(completer).fit(X, cell_weight=w)
    expected = completed(cls, cells, weights)
    np.testing.assert_allclose(search.best_estimator_.reconstruction_, expected)
    np.testing.assert_allclose(piped[0].reconstruction_, expected)
    train, test = next(folds.split(cells))
    part = make(cls).fit(cells[train], cell_weight=weights[train])
    first = search.cv_results_["split0_test_score"][0]
    assert first == pytest.approx(part.score(cells[test]))


@pytest.mark.parametrize("cls", [SVDCompleter, MeanCompleter])
def test_more_rows_need_cells_without_weights(cls, noisy):
    X, w = noisy
    completer = make(cls).fit(X, cell_weight=w)
    with pytest.raises(ValueError, match="cannot continue a fit with weights"):
        completer.partial_fit(X[:2])
