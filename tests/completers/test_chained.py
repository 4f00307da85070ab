"""`ChainedCompleter`: moments of draws, agreement with a Gaussian, odd columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest import make

from skmc import (
    ChainedCompleter,
    GaussianCompleter,
    MixedCompleter,
    TreesCompleter,
    patterns,
)
from skmc.completers._trees import most_correlated
from skmc.metrics import crps, rmse


def test_draws_have_the_moments_of_a_mixture():
    """Conditional means would shrink the variance of the second column by a third."""
    rng = np.random.RandomState(0)
    group = rng.rand(2000) < 0.3
    x = rng.randn(2000) + 3 * group
    truth = np.column_stack([x, np.where(group, -x, x) + 0.3 * rng.randn(2000)])
    hidden = np.zeros(truth.shape, bool)
    hidden[:, 1] = rng.rand(2000) < 0.5
    X = np.where(hidden, np.nan, truth)
    draws = ChainedCompleter(random_state=0).fit(X).sample(X, 20, random_state=1)
    assert (draws[:, ~hidden] == truth[~hidden]).all()
    moments = np.array([[*np.cov(draw.T).ravel(), draw[:, 1].mean()] for draw in draws])
    expected = np.array([*np.cov(truth.T).ravel(), truth[:, 1].mean()])
    assert np.allclose(moments.mean(0), expected, rtol=0.1, atol=0.15)
    below = draws[:, hidden[:, 1], 1] < -1.5  # the second mode
    assert below.mean() == pytest.approx(
        (truth[hidden[:, 1], 1] < -1.5).mean(), abs=0.05
    )


@pytest.mark.long
def test_a_linear_gaussian_table_agrees_with_the_gaussian():
    rng = np.random.RandomState(0)
    truth = rng.randn(1500, 2) @ rng.randn(2, 5) + 0.5 * rng.randn(1500, 5)
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    X = np.where(hidden, np.nan, truth)
    chained, gaussian = (
        ChainedCompleter(random_state=0).fit(X),
        GaussianCompleter(random_state=0).fit(X),
    )
    means, expected = chained.transform(X), gaussian.transform(X)
    assert rmse(means, expected, hidden) < 0.4 * rmse(expected, truth, hidden)
    ratio = chained.predict_std(X)[hidden] / gaussian.predict_std(X)[hidden]
    assert np.median(ratio) == pytest.approx(1, abs=0.15)
    low, high = chained.predict_interval(X, 0.9)
    inside = ((low <= truth) & (truth <= high))[hidden]
    assert 0.84 < inside.mean() < 0.96
    draws = [model.sample(X, 20, random_state=0) for model in (chained, gaussian)]
    scores = [crps(draw, truth, hidden) for draw in draws]
    assert scores[0] == pytest.approx(scores[1], rel=0.08)


@pytest.mark.parametrize("n_draws", [2, 5, 20])
def test_values_of_observed_cells_come_from_models_of_other_rows(n_draws):
    """Each row is left out by some of the draws, so noise is not fitted."""
    X = np.random.RandomState(0).standard_normal((150, 6))
    hidden = patterns.random(X, 0.2, random_state=1)
    completer = ChainedCompleter(n_draws=n_draws, random_state=0)
    completer.fit(np.where(hidden, np.nan, X))
    found = completer.reconstruction_[~hidden]
    assert np.corrcoef(found, X[~hidden])[0, 1] < 0.2


def test_draws_of_means_vary_as_means_of_other_rows():
    """Models of equal rows would give a third of the variance."""
    rng, found = np.random.RandomState(0), []
    for seed in range(6):
        X = rng.randn(60, 2)
        X[:40, 1] = np.nan
        completer = ChainedCompleter(n_draws=40, max_iter=1, random_state=seed).fit(X)
        means = completer.sample(X, 40, random_state=seed)[:, :40, 1].mean(1)
        # The mean of 40 cells varies around its expectation, which 20 others estimate.
        found.append(means.var(ddof=1) / (1 / 40 + 1 / 20) / np.nanvar(X[:, 1], ddof=1))
    assert 0.65 < np.mean(found) < 1.2


def test_draws_are_observed_values_or_not():
    rng = np.random.RandomState(0)
    x = rng.randn(300)
    truth = np.column_stack(
        [x, np.round(3 * x), np.maximum(x + 0.3 * rng.randn(300), 0)]
    )
    hidden = patterns.random(truth, 0.3, spare=True, random_state=0)
    X = np.where(hidden, np.nan, truth)
    draw = ChainedCompleter(random_state=0).fit(X).sample(X, random_state=0)[0]
    for col in range(3):
        assert np.isin(draw[:, col], X[~hidden[:, col], col]).all()
    assert (draw[:, 2] == 0).mean() == pytest.approx(
        (truth[:, 2] == 0).mean(), abs=0.08
    )
    free = ChainedCompleter(match=None, random_state=0).fit(X)
    assert not np.isin(free.sample(X, random_state=0)[0], X).all()


def test_new_rows_are_drawn_by_themselves():
    rng = np.random.RandomState(0)
    truth = rng.randn(400, 1) * [1, 2, -1] + 0.2 * rng.randn(400, 3)
    X, new = truth.copy(), truth[:5].copy()
    X[::3, 1] = new[:, 2] = np.nan  # the third column has no missing cell in the fit
    completer = ChainedCompleter(n_draws=8, random_state=0).fit(X)
    whole = completer.transform(new)
    assert np.array_equal(completer.transform(new[2:3]), whole[2:3])
    assert np.array_equal(
        completer.predict_std(new[2:3]), completer.predict_std(new)[2:3]
    )
    assert np.abs(whole[:, 2] - truth[:5, 2]).max() < 1
    assert len(np.unique(completer.sample(new, 12, 0)[:, 0, 2])) > 4


def odd_tables():
    rng = np.random.RandomState(0)
    X = np.where(rng.rand(60, 4) < 0.3, np.nan, rng.randn(60, 4))
    few, constant, same, empty = (X.copy() for _ in range(4))
    few[3:, 2] = np.nan
    constant[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, 7.0)
    same[:, 3] = same[:, 0]
    empty[:, 2] = np.nan
    yield "few observed cells", few
    yield "a constant column", constant
    yield "two equal columns", same
    yield "more columns than rows", X.T[:, :50]
    yield "missing rows", np.vstack([X, np.full((3, 4), np.nan)])
    yield "an empty column", empty
    yield "one column", X[:, :1]
    yield "two rows", X[:2]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in odd_tables()])
def test_odd_tables_have_draws(X):
    completer = ChainedCompleter(n_draws=5, random_state=0).fit(X)
    draws = completer.sample(X, 7, random_state=0)
    assert draws.shape == (7, *X.shape)
    low, high = completer.predict_interval(X)
    full = ~np.isnan(X).all(0)
    for found in (draws, completer.transform(X), low, high):
        assert np.isfinite(found[..., full]).all()


def test_categories_are_drawn_by_their_frequencies():
    rng = np.random.RandomState(0)
    kind = rng.choice(["a", "b", "c"], 1500, p=[0.6, 0.3, 0.1])
    x = rng.randn(1500) + 2 * (kind == "b")
    hidden = rng.rand(1500) < 0.3
    table = pd.DataFrame({"kind": np.where(hidden, None, kind), "x": x})
    completer = MixedCompleter(ChainedCompleter(random_state=0)).fit(table)
    drawn = np.array([draw["kind"] for draw in completer.sample(table, 10, 0)])
    for value in "abc":
        share = (kind[~hidden] == value).mean()
        assert (drawn[:, hidden] == value).mean() == pytest.approx(share, abs=0.03)
    # A mode would hide the rare category, which x does not tell from the first one.
    assert (completer.transform(table)["kind"][hidden] == "c").mean() < 0.07


def test_inputs_of_wide_tables_are_the_most_correlated_columns():
    """Of few rows, a high correlation is chance; narrow tables use all columns."""
    rng = np.random.RandomState(0)
    X = rng.randn(300, 90)
    X[:, 40:] = X[:, [0]] + 2 * rng.randn(300, 50)  # like column 0
    X[3:, 5], X[:3, 5] = np.nan, X[:3, 0]  # three equal cells
    predicted = [np.array([0]), np.array([0, 1])]
    others = [np.arange(1, 90), np.arange(2, 90)]
    for own in most_correlated(X, predicted, others, np.ones(300)):
        np.testing.assert_array_equal(own, np.arange(40, 90))
    moved = X * 10.0 ** rng.uniform(-3, 3, 90)
    for a, b in zip(
        most_correlated(X, predicted, others, np.ones(300)),
        most_correlated(moved, predicted, others, np.ones(300)),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    few = [np.arange(1, 40)]
    assert most_correlated(X, predicted[:1], few, np.ones(300)) is few


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Row 0 .* no observed cell")
@pytest.mark.parametrize("cls", [ChainedCompleter, TreesCompleter])
def test_wide_tables(cls):
    rng = np.random.RandomState(0)
    truth = np.repeat(rng.randn(60, 20), 6, 1) + 0.3 * rng.randn(60, 120)
    X = np.where(rng.rand(60, 120) < 0.2, np.nan, truth)
    completer = make(cls, max_iter=1, n_estimators=10, n_draws=4).fit(X)
    off = (completer.transform(X) - truth)[np.isnan(X)]
    assert np.sqrt(np.square(off).mean()) < 0.7 * truth.std()
    assert np.isfinite(completer.transform(np.full((1, 120), np.nan))).all()


def test_leaves_are_as_large_as_the_noise_demands():
    """The mean of noise has the error of many donors, and exact columns have one."""
    rng = np.random.RandomState(0)
    x = rng.uniform(-3, 3, 400)
    noise = rng.randn(400)
    truth = np.column_stack([x, np.sin(2 * x), np.sign(x) + noise])
    hidden = (rng.rand(*truth.shape) < 0.3) & (np.arange(3) > 0)
    chained = ChainedCompleter(random_state=0, n_draws=8, max_iter=4)
    chained.fit(np.where(hidden, np.nan, truth))
    sizes = {
        int(column.predicted[0]): column.count.mean()
        for column in chained._fitted.row_map.sweeps[-1]
    }
    assert sizes[1] < 3
    assert sizes[2] > 10
