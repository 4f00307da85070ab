"""``partial_fit``: its cost, exact cases, and use of all cells."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from skmc import (
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    MeanCompleter,
    Observed,
    SVDCompleter,
)
from skmc.cells import Given, Scaling, SparseObserved
from skmc.completers.gaussian.em import EM, FactorEM
from skmc.linalg import RowModel
from skmc.new_rows import RowStream
from skmc.persistence import load, save

RNG = np.random.RandomState(0)
SHAPE = (120, 15)
WHOLE = RNG.randn(120, 2) @ RNG.randn(2, 15) * np.linspace(1, 5, 15) + np.arange(15)
WHOLE += 0.3 * RNG.randn(*SHAPE)
X = np.where(RNG.rand(*SHAPE) < 0.3, np.nan, WHOLE)
BLOCKS = np.array_split(np.arange(120), 4)


def cells_of(rows, matrix=X):
    """The cells of some rows, as entries of the whole matrix."""
    i, j = np.nonzero(~np.isnan(matrix[rows]))
    return Entries.from_triplets(rows[i], j, matrix[rows][i, j], matrix.shape)


def streamed(completer, passes):
    """All blocks as new rows, and then as rows with numbers."""
    for k in range(passes):
        for rows in BLOCKS:
            completer.partial_fit(cells_of(rows) if k else X[rows])
    return completer


def squared_error(completer, scaling=None):
    data = Observed(torch.from_numpy(X), ~torch.isnan(torch.from_numpy(X)))
    scaling = scaling or Scaling.of(data, completer.scaling)
    z = scaling.standardise(torch.from_numpy(completer.reconstruction_))
    return float((z - data.scaled(scaling).values)[data.mask].square().sum() / 2)


def penalized(completer, scaling=None):
    """The objective of a factorization, from its definition."""
    k, weight = completer.rank_, completer.lambda_ridge_
    rows, cols = completer.row_factors_, completer.col_factors_
    seen, own = ~np.isnan(X), np.hstack([cols[:, :k], cols[:, -1:]])
    penalty = seen.sum(1) @ np.square(rows[:, :-1]).sum(1)
    penalty += seen.sum(0) @ np.square(own).sum(1)
    return squared_error(completer, scaling) + weight * penalty / 2


def likelihood(completer):
    given = completer._scaled(Given.of_matrix(X))
    start = completer._fitted.rescaled(given.scaling, X.shape[1])
    ridge, rank = completer.lambda_ridge_, completer.rank_
    solver = EM(ridge, start) if rank is None else FactorEM(ridge, rank, start)
    return float(solver.init(given.data).objective)


CASES = {
    "factorization": (
        lambda **more: FactorizationCompleter(
            2, lambda_ridge=0.05, random_state=0, **more
        ),
        penalized,
    ),
    "factorization, columns": (
        lambda **more: FactorizationCompleter(
            2,
            lambda_ridge=0.05,
            random_state=0,
            scaling="columns",
            biases="columns",
            **more,
        ),
        penalized,
    ),
    "SVD": (lambda **more: SVDCompleter(2, **more), squared_error),
    "Gaussian": (lambda **more: GaussianCompleter(2.0, **more), likelihood),
    "Gaussian, factors": (
        lambda **more: GaussianCompleter(2.0, rank=2, **more),
        likelihood,
    ),
    "Gaussian, copula": (
        lambda **more: GaussianCompleter(2.0, marginals="copula", **more),
        likelihood,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_blocks_reach_the_objective_of_a_fit_to_all(name):
    make, objective = CASES[name]
    best = objective(make(tol=1e-6, max_iter=2000).fit(X))
    found = objective(streamed(make(), passes=3))
    assert found <= best + 0.01 * abs(best)


def test_the_objective_of_a_factorization_never_rises():
    completer = streamed(CASES["factorization"][0](), passes=1)
    scaling = completer._fitted.scaling
    values = [penalized(completer, scaling)]
    for rows in BLOCKS:
        values.append(penalized(completer.partial_fit(cells_of(rows)), scaling))
    assert np.all(np.diff(values) <= 1e-12 * values[0])


def test_complete_rows_are_learned_exactly():
    found, best = GaussianCompleter(2.0), GaussianCompleter(2.0).fit(WHOLE)
    for rows in BLOCKS:
        found.partial_fit(WHOLE[rows])
    np.testing.assert_allclose(found.location_, best.location_, rtol=1e-9)
    np.testing.assert_allclose(found.covariance_, best.covariance_, rtol=1e-9)


def test_means_are_exact():
    """New rows, a cell that is replaced, one that is added, and a new column."""
    found = MeanCompleter()
    for rows in BLOCKS:
        found.partial_fit(X[rows, :14])
    (i, k), j = np.flatnonzero(~np.isnan(X[:, 3]))[:2], 3
    hole = np.flatnonzero(np.isnan(X[:, 4]))[0]
    changed = np.where(np.arange(15) < 14, X, np.nan)
    changed[[i, hole, k], [j, 4, 14]] = [9.0, 8.0, 7.0]
    found.partial_fit(Entries.from_triplets([i, hole, k], [j, 4, 14], [9.0, 8.0, 7.0]))
    best = MeanCompleter().fit(changed)
    np.testing.assert_allclose(found.reconstruction_, best.reconstruction_)
    np.testing.assert_allclose(found.transform(X[:5]), best.transform(X[:5]))
    assert found.data_range_ == best.data_range_ and found.n_features_in_ == 15


def test_a_new_row_costs_one_ridge_system(monkeypatch):
    completer = CASES["factorization"][0]().fit(X[:-2]).partial_fit(X[-2:-1])
    before = completer.row_factors_, completer.col_factors_
    solved, solve = [], RowModel.solve

    def counting(self, starts, *args, **kwargs):
        solved.append(len(starts) - 1)
        return solve(self, starts, *args, **kwargs)

    def not_again(*args):
        raise AssertionError("all cells are visited again")

    monkeypatch.setattr(RowModel, "solve", counting)
    monkeypatch.setattr(RowStream, "of", not_again)
    new = np.where(np.arange(15) < 6, X[-1], np.nan)
    completer.partial_fit(new[None])
    assert solved == [1]
    np.testing.assert_array_equal(completer.row_factors_[:-1], before[0])
    unseen = np.isnan(new)
    np.testing.assert_array_equal(completer.col_factors_[unseen], before[1][unseen])
    assert (completer.col_factors_[~unseen] != before[1][~unseen]).any()


def test_sums_are_those_of_all_cells():
    """After new rows, new cells, replaced cells and a new column."""
    completer = CASES["factorization"][0]().fit(X[:50, :14]).partial_fit(X[50:90])
    completer.partial_fit(cells_of(np.arange(40, 60), 2 * X[:90]))
    fitted = completer._fitted
    factors = fitted.factors()
    found = RowStream(factors.left, factors.right, *fitted.sums)
    changed = X[:90].copy()
    changed[:50, 14:] = np.nan
    changed[40:60] = 2 * X[40:60]
    i, j = np.nonzero(~np.isnan(changed))
    cells = SparseObserved.of(i, j, torch.from_numpy(changed[i, j]), (90, 15))
    best = RowStream.of(found.rows, found.cols, cells)
    torch.testing.assert_close(found.gram, best.gram)
    right = best.right + (best.origin - found.origin)[:, None] * best.gram[:, :, -1]
    torch.testing.assert_close(found.right, right)
    assert completer._n_observed == len(i)


@pytest.mark.parametrize("name", ["factorization", "SVD", "Gaussian"])
def test_new_columns(name):
    make = CASES[name][0]
    found = make().fit(X[:60, :13]).partial_fit(X[60:])
    assert found.n_features_in_ == 15 and found.reconstruction_.shape == SHAPE
    expected = np.nan_to_num(make().fit(X).transform(X[60:]))
    error = np.abs(found.transform(X[60:]) - expected)[np.isnan(X[60:])].mean()
    assert error < 0.5 * np.abs(expected - np.nanmean(X, 0))[np.isnan(X[60:])].mean()


def test_names_of_new_columns():
    names = [f"c{k}" for k in range(15)]
    frame = pd.DataFrame(X, columns=names)
    completer = SVDCompleter(2).fit(frame.iloc[:60, :13])
    state = dict(vars(completer))
    with pytest.raises(ValueError, match="the first ones must be those of the fit"):
        completer.partial_fit(frame.iloc[60:, ::-1])
    with pytest.raises(ValueError, match="pass a data frame"):
        completer.partial_fit(cells_of(np.arange(3)))
    assert dict(vars(completer)) == state
    completer.partial_fit(frame.iloc[60:])
    assert list(completer.feature_names_in_) == names
    assert list(completer.get_feature_names_out()) == names


def test_fits_that_cannot_be_continued(tmp_path):
    counts = np.nan_to_num(np.abs(X)).round()
    completer = FactorizationCompleter(2, lambda_ridge=0.1, alpha=1.0, tol=1)
    completer.fit(counts)
    assert not hasattr(completer, "partial_fit")
    with pytest.raises(ValueError, match="fit with alpha; call fit"):
        completer.set_params(alpha=None).partial_fit(counts)
    completer = FactorizationCompleter(2, lambda_ridge=0.1, lambda_side=1.0)
    completer.fit(X, row_features=WHOLE[:, :2])
    with pytest.raises(ValueError, match="features, graphs or weights"):
        completer.partial_fit(X)
    stored = Entries.from_memmap(sp.csr_array(counts))
    for kind in (completer, MeanCompleter().fit(X)):
        with pytest.raises(TypeError, match="needs cells in memory"):
            kind.partial_fit(stored)
    with pytest.raises(AttributeError, match="were not in memory"):
        MeanCompleter().fit(stored).partial_fit(X)


def test_recommendations_and_files_include_new_rows(tmp_path):
    completer = CASES["factorization"][0]().fit(X[:60]).partial_fit(X[60:61])
    items, _ = completer.recommend([60], 15)
    assert set(items.compressed()) == set(np.flatnonzero(np.isnan(X[60])))
    save(completer, tmp_path / "als.skmc")
    again = load(tmp_path / "als.skmc").partial_fit(X[61:])
    completer.partial_fit(X[61:])
    np.testing.assert_array_equal(again.col_factors_, completer.col_factors_)


def test_sparse_rows_and_single_precision():
    completer = CASES["factorization"][0]().fit(X[:60].astype(np.float32))
    i, j = np.nonzero(~np.isnan(X[60:]))
    more = sp.csr_array((X[60:][i, j], (i, j)), (60, 15))
    completer.partial_fit(more)
    assert completer.row_factors_.shape == (120, 4)
    assert completer.row_factors_.dtype == completer.col_factors_.dtype == np.float32
    with pytest.warns(UserWarning, match="rows? of X ha(s|ve) no observed cell"):
        completer.partial_fit(np.full((1, 15), np.nan))
    np.testing.assert_allclose(completer.reconstruction_[120], np.nanmean(X, 0), 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_later_changes_of_the_data_have_no_effect(name):
    """Changing them after a call changes nothing."""
    first, more = X[:60].copy(), X[60:].copy()
    completer = CASES[name][0]().fit(first)
    first[:] = 0
    completer.partial_fit(more)
    more[:] = 0
    expected = CASES[name][0]().fit(X[:60]).partial_fit(X[60:])
    np.testing.assert_array_equal(completer.reconstruction_, expected.reconstruction_)


@pytest.mark.parametrize("cuts", [[1], [2, 30, 60], [70, 100, 119]])
@pytest.mark.parametrize(
    "kind, seeds, most",
    [
        (SVDCompleter, 1, 1.1),
        pytest.param(GaussianCompleter, 1, 1.1, marks=pytest.mark.long),
        # A choice on a hundred held-out cells changes the error by a tenth.
        pytest.param(FactorizationCompleter, 3, 1.15, marks=pytest.mark.long),
    ],
)
def test_choices_and_units_are_those_of_all_rows(kind, seeds, most, cuts):
    """Also if the first batch has a single row, or lacks a column."""
    cells, squares = X.copy(), []
    cells[: cuts[0], 3] = np.nan
    gone = np.isnan(cells)
    for seed in range(seeds):
        found, best = kind(random_state=seed), kind(random_state=seed).fit(cells)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about empty columns of the first batch
            for rows in np.split(cells, [*cuts, *range(max(cuts) + 12, 120, 12)]):
                found.partial_fit(rows)
        off = [(c.transform(cells) - WHOLE) / WHOLE.std(0) for c in (found, best)]
        squares.append([np.square(x[gone]).mean() for x in off])
    error, least = np.sqrt(np.mean(squares, 0))
    assert error < most * least


@pytest.mark.parametrize("kind", [SVDCompleter, FactorizationCompleter])
def test_rows_of_an_exact_matrix_stay_exact(kind):
    rng = np.random.RandomState(1)
    truth = rng.randn(100, 3) @ rng.randn(3, 20)
    cells = np.where(rng.rand(100, 20) < 0.3, np.nan, truth)
    completer = kind(3).fit(cells[:80])
    for _ in range(3):
        completer.partial_fit(cells[80:])
    error = np.abs(completer.transform(cells) - truth).max()
    assert error < 0.02 * truth.std()
