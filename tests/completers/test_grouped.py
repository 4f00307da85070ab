"""Rows of groups: means of the others, shrunken, as further columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skmc import ChainedCompleter, GaussianCompleter, GroupedCompleter, MixedCompleter
from skmc.completers.grouped import _GroupMeans
from skmc.metrics import rmse


def table(n_groups, size, spread, seed=0):
    """A table of groups whose means have a deviation, its truth and hidden cells."""
    rng = np.random.RandomState(seed)
    group = np.repeat(np.arange(n_groups), size)
    level = spread * rng.randn(n_groups, 3)[group]
    common = rng.randn(len(group), 1) * [1, 1, 0]
    values = common + level + 0.5 * rng.randn(len(group), 3)
    truth = pd.DataFrame(values, columns=list("abc"))
    truth.insert(1, "house", [f"h{k}" for k in group])
    hidden = rng.rand(*truth.shape) < 0.25
    hidden[:, :2] = False
    return truth.mask(hidden), truth, hidden


def grouped(completer=None, by="house"):
    return GroupedCompleter(completer or GaussianCompleter(random_state=0), by=by)


def relative(X, truth, hidden, completed):
    names = ["b", "c"]
    found = completed[names].to_numpy()
    return (
        rmse(found, truth[names].to_numpy(), hidden[:, 2:])
        / truth[names].to_numpy().std()
    )


@pytest.mark.parametrize(("size", "spread"), [(15, 3.0), (3, 1.0), (3, 0.0)])
def test_better_than_no_groups_and_than_means_of_groups(size, spread):
    X, truth, hidden = table(360 // size, size, spread)
    found = relative(X, truth, hidden, grouped().fit_transform(X))
    plain = GaussianCompleter(random_state=0).set_output(transform="pandas")
    without = relative(X, truth, hidden, plain.fit_transform(X.drop(columns="house")))
    own = X.groupby("house")[["b", "c"]].transform("mean")
    means = relative(X, truth, hidden, X.fillna(own).fillna(X[["b", "c"]].mean()))
    assert found < (0.95 * without if spread else 1.05 * without)
    assert found < means


def test_means_are_shrunken_by_the_variances():
    """Of variances 1 between and 4 within groups, v is 4; without groups, infinite."""
    rng = np.random.RandomState(0)
    groups = np.repeat(np.arange(2000), 5).tolist()
    cells = rng.randn(2000, 2).repeat(5, 0) * [1, 0] + 2 * rng.randn(10_000, 2)
    cells[rng.rand(*cells.shape) < 0.3] = np.nan
    means = _GroupMeans.of(cells, groups)
    assert 3.5 < means.ratio[0] < 4.5 and means.ratio[1] > 40
    around = means.around(cells, groups)
    others = [k for k in range(1, 5) if not np.isnan(cells[k, 0])]
    expected = means.mean[0] + (cells[others, 0] - means.mean[0]).sum() / (
        len(others) + means.ratio[0]
    )
    np.testing.assert_allclose(around[0, 0], expected)
    np.testing.assert_allclose(means.around(cells[:1], ["new"])[0], means.mean)
    # A new row has the cells of all rows of its group.
    new = means.around(np.full((1, 2), np.nan), [0])[0, 0]
    seen = cells[:5, 0][~np.isnan(cells[:5, 0])] - means.mean[0]
    np.testing.assert_allclose(
        new, means.mean[0] + seen.sum() / (len(seen) + means.ratio[0])
    )


def test_rows_are_completed_one_by_one():
    X, _, _ = table(30, 6, 1.0)
    completer = grouped().fit(X)
    whole = completer.transform(X)
    assert list(whole) == list(X) and whole["house"].equals(X["house"])
    seen = X.notna()
    pd.testing.assert_frame_equal(whole[seen], X[seen])
    order = np.random.RandomState(0).permutation(len(X))
    pd.testing.assert_frame_equal(completer.transform(X.iloc[order]), whole.iloc[order])
    new = X.assign(house=np.where(np.arange(len(X)) % 2, "new", None))
    assert not completer.transform(new)[["b", "c"]].isna().any(axis=None)


def test_units_of_columns_do_not_matter():
    X, _, _ = table(30, 6, 1.0)
    expected = grouped().fit_transform(X)["b"]
    scaled = X.assign(b=1e-3 * X["b"] + 7, c=1e6 * X["c"])
    found = (grouped().fit_transform(scaled)["b"] - 7) / 1e-3
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_containers_and_wrappers():
    X, _, _ = table(30, 6, 1.0)
    expected = grouped().fit_transform(X)[["a", "b", "c"]].to_numpy(float)
    codes = X.assign(house=pd.factorize(X["house"])[0]).to_numpy(float)
    found = grouped(by=1).fit_transform(codes)
    np.testing.assert_array_equal(found[:, [0, 2, 3]], expected)
    np.testing.assert_array_equal(found[:, 1], codes[:, 1])
    frame = grouped().fit_transform(pl.from_pandas(X))
    assert frame.columns == list(X)
    np.testing.assert_array_equal(frame.select("a", "b", "c").to_numpy(), expected)
    words = grouped(by=1).fit_transform(X.to_numpy(object))
    np.testing.assert_array_equal(words[:, [0, 2, 3]].astype(float), expected)
    assert words[:, 1].tolist() == X["house"].tolist()
    codes[:, 2] = np.nan
    with pytest.warns(UserWarning, match="no observed cell"):
        without = grouped(GaussianCompleter(keep_empty_features=False), by=1).fit(codes)
        assert without.transform(codes).shape == (len(X), 3)
    halves = X.assign(half=np.arange(len(X)) % 2)
    assert list(grouped(by=["house", "half"]).fit_transform(halves)) == list(halves)
    words = X.assign(kind=np.where(X["a"] > 0, "high", "low"))
    words.loc[::7, "kind"] = None
    mixed = grouped(MixedCompleter(GaussianCompleter(random_state=0))).fit(words)
    assert not mixed.transform(words).isna().any(axis=None)
    assert mixed.score(words) < 0
    draws = grouped(ChainedCompleter(random_state=0)).fit(X).sample(X, 2)
    assert len(draws) == 2 and list(draws[0]) == list(X)
    numbers = FunctionTransformer(lambda frame: frame[["a", "b", "c"]])
    model = make_pipeline(grouped(), numbers, LinearRegression())
    search = GridSearchCV(
        model, {"groupedcompleter__completer__lambda_ridge": [1.0, 10.0]}, cv=3
    )
    y = X["a"] + np.random.RandomState(0).randn(len(X))
    assert 0 < search.fit(X, y).best_score_ < 1


def test_indicators_of_means_are_refused():
    X, _, _ = table(5, 4, 1.0)
    with pytest.raises(ValueError, match="add_indicator of GaussianCompleter"):
        grouped(GaussianCompleter(add_indicator=True)).fit(X)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("home", "by names column 'home'"),
        (["a", "b", "c", "house"], "has 4 feature.s., all of"),
    ],
)
def test_bad_names(by, message):
    X, _, _ = table(5, 4, 1.0)
    with pytest.raises(ValueError, match=message):
        grouped(by=by).fit(X)
