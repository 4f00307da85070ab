"""Recovery from few cells, and its certificate."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from skmc import (
    AutoCompleter,
    Entries,
    FactorizationCompleter,
    LogDetCompleter,
    patterns,
    solve,
)
from skmc.cells import SparseObserved
from skmc.completers.logdet import VariableProjection, certificate
from skmc.linalg import LowRank

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
far_from_low_rank = pytest.mark.filterwarnings("ignore:.*not close to low rank")


def problem(shape, rank, oversampling, condition=1.0, seed=0):
    """A matrix of a rank, and cells that are so many times its degrees of freedom."""
    rng = np.random.RandomState(seed)
    U, V = (np.linalg.qr(rng.randn(size, rank))[0] for size in shape)
    truth = U * np.logspace(0, -np.log10(condition), rank) @ V.T
    truth /= np.sqrt(np.mean(truth**2))
    count = int(oversampling * rank * (sum(shape) - rank))
    hidden = np.ones(truth.size, bool)
    hidden[rng.permutation(truth.size)[:count]] = False
    hidden = hidden.reshape(shape)
    for mask in (hidden, hidden.T):
        for row in mask:
            short = rank - (~row).sum()
            if short > 0:
                row[rng.permutation(np.flatnonzero(row))[:short]] = False
    return truth, np.where(hidden, np.nan, truth)


def error(completed, truth):
    return np.linalg.norm(completed - truth) / np.linalg.norm(truth)


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
@pytest.mark.parametrize(
    ("shape", "rank", "oversampling"), [((100, 80), 3, 2.5), ((60, 150), 4, 1.8)]
)
def test_an_unknown_rank_is_recovered(shape, rank, oversampling, condition):
    truth, X = problem(shape, rank, oversampling, condition)
    completer = LogDetCompleter(device="cpu")
    assert error(completer.fit_transform(X), truth) < 1e-8
    assert completer.rank_ == rank
    assert completer.exact_.mean() > 0.95
    np.testing.assert_allclose(
        completer.singular_values_[-1] * condition,
        completer.singular_values_[0],
        rtol=1e-5,
    )


@pytest.mark.parametrize("size", [8, 12])
@pytest.mark.parametrize("oversampling", [1.1, 1.25])
def test_an_exact_fit_with_hardly_more_cells_than_freedom(size, oversampling):
    """Which is not certain, and still what is returned."""
    truth, X = problem((size, size), 1, oversampling)
    seen = ~np.isnan(X)
    completer = LogDetCompleter(device="cpu").fit(X)
    assert completer.rank_ == 1
    assert error(completer.reconstruction_[seen], truth[seen]) < 1e-8


def test_means_and_units_do_not_matter():
    truth, X = problem((120, 90), 3, 2.5)
    rng = np.random.RandomState(0)
    units = 10 ** rng.uniform(-3, 3, 90)
    for shift, scale in [(100.0, 1.0), (0.0, units)]:
        completer = LogDetCompleter(random_state=0, device="cpu")
        found = completer.fit_transform((X + shift) * scale) / scale - shift
        assert completer.exact_.mean() > 0.95
        sure = completer.exact_[:, None] & completer.exact_columns_
        np.testing.assert_allclose(found[sure], truth[sure], atol=1e-8 * (1 + shift))


def test_noise_is_that_of_least_squares_from_the_truth():
    truth, X = problem((150, 120), 4, 2.5)
    X = X + 1e-3 * np.random.RandomState(1).randn(*X.shape)
    completer = LogDetCompleter(random_state=0, device="cpu").fit(X)
    assert completer.rank_ == 4
    assert not completer.exact_.any()
    seen, U = ~np.isnan(X), np.linalg.svd(truth)[0][:, :4]
    for _ in range(60):  # alternating least squares
        V = np.stack(
            [np.linalg.lstsq(U[s], x[s])[0] for s, x in zip(seen.T, X.T, strict=True)]
        )
        U = np.stack(
            [np.linalg.lstsq(V[s], x[s])[0] for s, x in zip(seen, X, strict=True)]
        )
    best = error(U @ V.T, truth)
    assert error(completer.reconstruction_, truth) < 1.05 * best


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_table_is_not_completed_in_silence(seed, repeats):
    rng = np.random.RandomState(seed)
    table = rng.permutation(load_wine().data)[:120]
    X = np.where(patterns.random(table, 0.2, random_state=seed), np.nan, table)
    table, X = np.repeat(table, repeats, 0), np.repeat(X, repeats, 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = LogDetCompleter(random_state=0, device="cpu").fit_transform(X)
    off = [(x - table) / np.nanstd(X, 0) for x in (found, np.nanmean(X, 0))]
    far, of_means = (np.square(x[np.isnan(X)]).mean() ** 0.5 for x in off)
    assert far < 1.1 * of_means or "not close to low rank" in str(caught[0].message)


@pytest.mark.parametrize("seed", range(4))
def test_noise_is_not_amplified(seed):
    """Least squares of rows with hardly more cells than the rank would be far away."""
    truth, X = problem((60, 50), 3, 1.4, seed=seed)
    X += 0.1 * np.random.RandomState(seed).randn(*X.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = LogDetCompleter(random_state=0, device="cpu").fit_transform(X)
    assert error(found, truth) < 1.2


@pytest.mark.parametrize(
    "seeds",
    [range(4), pytest.param(range(4, 40), marks=pytest.mark.long)],
    ids=["few", "many"],
)
@pytest.mark.parametrize("rank", [1, 2, 3])
@far_from_low_rank
def test_the_certificate_is_never_wrong(rank, seeds):
    """From too few cells, wrong matrices fit exactly; none of them is certified."""
    wrong = 0
    for seed in seeds:
        shape = (12 + seed % 7, 10 + seed % 5)
        truth, X = problem(shape, rank, 0.8 + 0.05 * (seed % 9), seed=seed)
        completer = LogDetCompleter(max_iter=60, random_state=0, device="cpu")
        found = completer.fit_transform(X)
        sure = completer.exact_[:, None] & completer.exact_columns_
        far = np.abs(found - truth) > 1e-3
        wrong += far.any()
        assert not (far & sure).any()
        assert patterns.is_determined(~np.isnan(X), completer.rank_)[sure].all()
    assert wrong > len(seeds) / 4


@pytest.mark.long
def test_small_components_do_not_mislead_the_certificate():
    """A wrong matrix can be as close to the cells as a small component is small."""
    truth, X = problem((60, 50), 3, 1.1, 1e6, seed=6)
    completer = LogDetCompleter(random_state=0, device="cpu")
    found = completer.fit_transform(X)
    sure = completer.exact_[:, None] & completer.exact_columns_
    np.testing.assert_allclose(found[sure], truth[sure], atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_equal_singular_values_near_the_limit(seed):
    """Where a path of ranks sees no gap, and a search at the right rank finds it."""
    truth, X = problem((60, 60), 3, 1.4, 1.0, seed)
    completer = LogDetCompleter(random_state=0, device="cpu")
    assert error(completer.fit_transform(X), truth) < 1e-8
    assert completer.rank_ == 3
    assert completer.exact_.all() and completer.exact_columns_.all()


@pytest.mark.parametrize(
    "seeds",
    [range(8), pytest.param(range(8, 100), marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_wrong_fits_of_the_true_rank_are_not_certified(seeds):
    """Least squares from random factors end at one of several exact fits."""
    wrong, certified = 0, 0
    for seed in seeds:
        rng = np.random.RandomState(seed)
        shape, rank = rng.randint(8, 16, 2), rng.randint(1, 4)
        truth, X = problem(shape, rank, rng.uniform(0.85, 1.1), seed=seed)
        rows, cols = np.nonzero(~np.isnan(X))
        cells = SparseObserved.of(rows, cols, X[rows, cols], tuple(shape))
        start = LowRank(*(torch.from_numpy(rng.randn(size, rank)) for size in shape))
        fit = solve(
            VariableProjection(start, 1e-2),
            cells,
            max_iter=60,
            tol=1e-12,
            check_every=1,
        )
        sure = torch.outer(*certificate(cells, fit.X)).numpy()
        found = (fit.X.left @ fit.X.right.mT).numpy()
        far = np.abs(found - truth) > 1e-3
        assert not (far & sure).any()
        wrong += far.any() and error(found[rows, cols], truth[rows, cols]) < 1e-9
        certified += sure.any()
    assert wrong > len(seeds) / 20
    assert certified > len(seeds) / 20


def test_short_rows_are_not_certified():
    truth, X = problem((80, 60), 3, 3.0)
    X[0, np.flatnonzero(~np.isnan(X[0]))[2:]] = np.nan  # two cells for a rank of 3
    completer = LogDetCompleter(device="cpu").fit(X)
    assert not completer.exact_[0]
    assert completer.exact_[1:].mean() > 0.9
    sure = completer.exact_[:, None] & completer.exact_columns_
    np.testing.assert_allclose(completer.reconstruction_[sure], truth[sure], atol=1e-6)


def test_entries_stay_sparse_and_new_rows_are_completed():
    truth, X = problem((200, 100), 2, 3.0)
    rows, cols = np.nonzero(~np.isnan(X[:150]))
    cells = Entries.from_triplets(rows, cols, X[rows, cols], (150, 100))
    completer = LogDetCompleter(device="cpu").fit(cells)
    assert error(completer.reconstruction_, truth[:150]) < 1e-8
    enough = (~np.isnan(X[150:])).sum(1) > 3
    found = completer.transform(X[150:])[enough]
    assert error(found, truth[150:][enough]) < 1e-6


def test_a_rank_above_the_shape_is_an_error():
    with pytest.raises(ValueError, match="rank=9 is above"):
        LogDetCompleter(9, device="cpu").fit(np.ones((8, 8)))


@pytest.mark.parametrize(
    ("condition", "how"), [(1.0, "array"), (1e4, "entries"), (10.0, "units")]
)
def test_factorization_adopts_what_the_cells_determine(condition, how):
    truth, X = problem((60, 40), 3, 2.5, condition)
    if how == "units":
        units = np.random.RandomState(0).uniform(1, 30, 40)
        truth, X = truth * units + 10 * units, X * units + 10 * units
    rows = np.linalg.lstsq(truth[:4].T, truth[4:24].T)[0].T @ truth[:4]
    new = np.where(np.isnan(X[4:24]), np.nan, rows)
    completer = FactorizationCompleter(random_state=0, device="cpu")
    completer.fit(Entries(X) if how == "entries" else X)
    assert completer.rank_ == 3 + (how == "units")  # a mean is one component
    assert error(completer.reconstruction_, truth) < 1e-8
    assert error(completer.transform(new), rows) < 1e-6
    completer.set_params(warm_start=True)
    assert error(completer.fit(X).reconstruction_, truth) < 1e-8


def test_factorization_adopts_least_squares_where_they_predict_better():
    truth, X = problem((80, 60), 3, 3.0)
    X = X + 1e-3 * np.random.RandomState(1).randn(*X.shape)
    completer = FactorizationCompleter(random_state=0, device="cpu").fit(X)
    assert completer.rank_ == 3
    assert error(completer.reconstruction_, truth) < 5e-3


def test_a_small_weight_is_reached_by_a_path():
    truth, X = problem((80, 60), 3, 2.5)
    completer = FactorizationCompleter(3, lambda_ridge=1e-8, random_state=0)
    assert error(completer.fit_transform(X), truth) < 1e-3


@pytest.mark.parametrize("shape", [(60, 40), (100, 80)], ids=["wide", "ratings"])
def test_a_stack_ends_where_few_cells_determine_the_matrix(shape):
    truth, X = problem(shape, 3, 2.5, 1e3)
    auto = AutoCompleter(random_state=0, device="cpu")
    assert error(auto.fit_transform(X), truth) < 1e-8
    assert auto.weights_ == {"factorization": 1.0}


def test_a_search_that_time_ends_is_not_overfitted():
    rng = np.random.RandomState(1)
    truth = rng.randn(100, 4) @ rng.randn(4, 80) + 0.3 * rng.randn(100, 80)
    X = np.where(rng.uniform(size=truth.shape) < 0.3, truth, np.nan)
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        found = LogDetCompleter(max_time=0.05, device="cpu").fit_transform(X)
    assert error(found, truth) < 1.1
