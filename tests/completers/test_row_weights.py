"""Weights of rows: a row of weight 2 is two rows, and one of weight 0 is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

from skmc import (
    AutoCompleter,
    ChainedCompleter,
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SVDCompleter,
    TreesCompleter,
)

GAUSSIAN = [
    GaussianCompleter(3.0, tol=1e-9, max_iter=3000),
    GaussianCompleter(3.0, tol=1e-9, max_iter=3000, rank=2),
    GaussianCompleter(3.0, tol=1e-9, max_iter=3000, rank=4),
    GaussianCompleter(3.0, tol=1e-9, max_iter=3000, marginals="copula"),
]
OTHERS = [
    GaussianCompleter(random_state=0),
    GaussianCompleter(random_state=0, rank=2),
    TreesCompleter(n_estimators=6, random_state=0),
    TreesCompleter(n_estimators=6, linear=True, max_iter=2, random_state=0),
    TreesCompleter("boosting", n_estimators=5, random_state=0),
    ChainedCompleter(n_draws=8, max_iter=2, random_state=0),
    ChainedCompleter(n_draws=8, max_iter=2, match=None, random_state=0),
]


@pytest.fixture
def table():
    """Rows with equal and unequal values, and their weights."""
    rng = np.random.RandomState(0)
    X = rng.randn(40, 2) @ rng.randn(2, 6) + 0.3 * rng.randn(40, 6)
    X[:, 2] = X[:, 2].round()
    X[rng.rand(*X.shape) < 0.2] = np.nan
    return X, rng.permutation(np.arange(40) % 4)


@pytest.mark.parametrize("completer", GAUSSIAN, ids=repr)
def test_weights_are_numbers_of_equal_rows(completer, table):
    X, weights = table
    found = completer.fit(X, sample_weight=weights)
    mean, covariance, completed = (
        found.location_,
        found.covariance_,
        found.transform(X),
    )
    std = found.predict_std(X)
    same = completer.fit(np.repeat(X, weights, 0))
    np.testing.assert_allclose(mean, same.location_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(covariance, same.covariance_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(completed, same.transform(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(std, same.predict_std(X), rtol=1e-7, atol=1e-9)


def test_a_tree_of_weighted_rows_is_that_of_equal_rows(table):
    X, weights = table
    completer = TreesCompleter(DecisionTreeRegressor(max_leaf_nodes=4, random_state=0))
    found = completer.fit(X, sample_weight=weights).transform(X)
    same = completer.fit(np.repeat(X, weights, 0)).transform(X)
    np.testing.assert_allclose(found, same, rtol=1e-6)


@pytest.mark.parametrize("completer", [*GAUSSIAN, *OTHERS], ids=repr)
def test_rows_of_weight_zero_are_absent_and_completed(completer, table):
    X, weights = table
    found = completer.fit_transform(X, sample_weight=weights)
    whole = completer.reconstruction_
    draws = None
    if hasattr(completer, "sample"):
        draws = completer.sample(X, 3, random_state=0)
    used = weights > 0
    same = completer.fit(X[used], sample_weight=weights[used])
    np.testing.assert_array_equal(found, same.transform(X))
    np.testing.assert_allclose(whole[used], same.reconstruction_, rtol=1e-12)
    assert np.isfinite(whole).all()
    if draws is not None:
        np.testing.assert_array_equal(draws, same.sample(X, 3, random_state=0))


@pytest.mark.parametrize("completer", [*GAUSSIAN, *OTHERS], ids=repr)
def test_weights_of_one_change_nothing(completer, table):
    X, _ = table
    found = completer.fit_transform(X)
    same = completer.fit_transform(X, sample_weight=np.ones(len(X)))
    np.testing.assert_allclose(found, same, rtol=1e-9)


@pytest.mark.parametrize(
    "completer",
    [
        ChainedCompleter(n_draws=40, random_state=0),
        TreesCompleter(n_estimators=100, random_state=0),
        TreesCompleter("boosting", random_state=0),
        TreesCompleter(RandomForestRegressor(), random_state=0),
        GaussianCompleter(0.0),
    ],
    ids=repr,
)
def test_completions_are_weighted_means(completer):
    """Of the two values of a column, the second one has nine tenths of the weight."""
    rng = np.random.RandomState(0)
    X = np.column_stack([np.tile([0.0, 1.0], 500), np.repeat([2.0, 5.0], 500)])
    weights = np.where(X[:, 0] == 1, 9.0, 1.0)
    X = np.vstack([X, [[np.nan, 2.0], [np.nan, 5.0]]])
    weights = np.append(weights, [1.0, 1.0])
    order = rng.permutation(len(X))
    completer.fit(X[order], sample_weight=weights[order])
    np.testing.assert_allclose(completer.transform(X)[-2:, 0], 0.9, atol=0.05)
    if isinstance(completer, ChainedCompleter):
        draws = completer.sample(X, 200, random_state=0)[:, -2:, 0]
        assert set(np.unique(draws)) == {0.0, 1.0}
        assert draws.mean() == pytest.approx(0.9, abs=0.06)


def test_draws_of_the_model_count_rows_by_weight(table):
    """Deviations of draws of means fall as with ten times as many rows."""
    X, _ = table
    X = np.vstack([X, np.full((1, 6), np.nan)])
    X[-1, 0] = 0.3

    def spread(weight):
        weights = np.full(len(X), weight)
        completer = GaussianCompleter(1.0).fit(X, sample_weight=weights)
        models = completer._fitted._posterior(1.0, np.random.RandomState(0), None)
        return np.std([next(models).mean.numpy() for _ in range(200)], 0)

    np.testing.assert_allclose(spread(1.0) / spread(10.0), 10**0.5, rtol=0.25)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.ones(39), r"sample_weight has shape \(39,\)"),
        (np.ones((40, 6)), "one number for each row of X"),
        (np.r_[np.ones(39), -1], "sample_weight is -1.0 at row 39"),
        (np.r_[np.nan, np.ones(39)], "sample_weight is nan at row 0"),
        (["much"] * 40, "sample_weight must be numbers"),
        (np.zeros(40), "sample_weight is zero in all rows"),
    ],
)
@pytest.mark.parametrize(
    "completer", [GaussianCompleter(), TreesCompleter(), ChainedCompleter()]
)
def test_wrong_weights_are_named(completer, weights, said, table):
    with pytest.raises(ValueError, match=said):
        completer.fit(table[0], sample_weight=weights)


def test_completers_without_weights_of_rows_say_what_to_do(table):
    X, weights = table
    with pytest.raises(TypeError, match="pass cell_weight, a matrix of the shape of X"):
        SVDCompleter().fit(X, sample_weight=weights)
    with pytest.raises(TypeError, match="use GaussianCompleter, TreesCompleter"):
        KNNCompleter().fit(X, sample_weight=weights)
    with pytest.raises(TypeError, match="Pass sample_weight, a number for each row"):
        GaussianCompleter().fit(X, cell_weight=np.ones(X.shape))
    completer = TreesCompleter(KNeighborsRegressor(1))
    with pytest.raises(ValueError, match="takes no sample_weight in its fit"):
        completer.fit(np.nan_to_num(X), sample_weight=weights)


def test_partial_fit_does_not_continue_a_weighted_fit(table):
    X, weights = table
    completer = GaussianCompleter(1.0).fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match="cannot continue a fit with weights"):
        completer.partial_fit(X[:3])


def test_empty_rows_and_indicators_do_not_depend_on_weights(table):
    """A column that is full in the rows that count has no indicator."""
    X, weights = table
    X[:, 0] = 1.0 + np.arange(40)
    X[weights == 0, 0] = np.nan
    completer = GaussianCompleter(1.0, add_indicator=True)
    found = completer.fit_transform(X, sample_weight=weights)
    assert found.shape[1] == 6 + len(completer.indicator_.features_)
    assert 0 not in completer.indicator_.features_
    X[np.flatnonzero(weights == 0)[0]] = np.nan
    with pytest.warns(UserWarning, match="no observed"):
        GaussianCompleter(1.0).fit(X, sample_weight=weights)


STACK = {"means": MeanCompleter(), "Gaussian": GaussianCompleter(1.0)}


def words(X):
    """The table with a column of words."""
    kinds = np.array(["oak", "elm", "ash"], object)[np.arange(len(X)) % 3]
    kinds[::7] = None
    table = pd.DataFrame(X, columns=list("abcdef"))
    return table.assign(kind=kinds)


@pytest.mark.parametrize(
    "completer",
    [
        MixedCompleter(TreesCompleter(n_estimators=6, random_state=0)),
        MixedCompleter(GaussianCompleter(1.0)),
        MixedCompleter(AutoCompleter(STACK, random_state=0)),
    ],
    ids=repr,
)
def test_tables_with_weights(completer, table):
    X, weights = table
    X, used = words(X), weights > 0
    found = completer.fit(X, sample_weight=weights).transform(X)
    same = completer.fit(X[used], sample_weight=weights[used]).transform(X)
    pd.testing.assert_frame_equal(found, same, rtol=1e-9)
    assert not found.isna().any(axis=None)
    other = completer.fit(X[used]).transform(X)
    assert not found.equals(other)


def test_a_stack_of_weighted_completers(table):
    """Rows that a candidate fits badly and that have no weight do not count."""
    X, _ = table
    rng = np.random.RandomState(1)
    X = np.vstack([np.outer(rng.randn(60), rng.randn(6)), 9 * rng.randn(60, 6)])
    X[rng.rand(*X.shape) < 0.1] = np.nan
    weights = np.repeat([1.0, 1e-9], 60)
    completer = AutoCompleter(["mean", "gaussian", "knn"], random_state=0)
    completer.fit(X, sample_weight=weights)
    assert completer.weights_["gaussian"] > 0.95
    board = completer.leaderboard_.set_index("candidate")
    assert board.status["knn"] == "not tried: its fit takes no weights"
    assert board.error["gaussian"] < 0.2 < board.error["mean"]
    with pytest.raises(ValueError, match="knn not tried: its fit takes no weights"):
        AutoCompleter(["knn"]).fit(X, sample_weight=weights)


@pytest.mark.long
def test_features_are_used_with_weights(table):
    X, weights = table
    features = np.nan_to_num(X[:, :2])
    X[3] = np.nan
    candidates = {
        "mean": MeanCompleter(),
        "factorization": FactorizationCompleter(2, lambda_ridge=0.1, random_state=0),
    }
    completer = AutoCompleter(candidates, random_state=0)
    known = {"row_features": features}
    completer.fit(X, sample_weight=weights, **known)
    used = weights > 0
    known["row_features"] = features[used]
    same = completer.reconstruction_[used]
    completer.fit(X[used], sample_weight=weights[used], **known)
    np.testing.assert_allclose(completer.reconstruction_, same, rtol=1e-6)


def test_weights_of_cells_and_of_rows_exclude_each_other(table):
    X, weights = table
    completer = MixedCompleter(GaussianCompleter(1.0))
    with pytest.raises(ValueError, match="cell_weight or sample_weight, not both"):
        completer.fit(X, cell_weight=np.ones(X.shape), sample_weight=weights)


def test_weights_are_routed():
    """By scikit-learn's name, through a pipeline and a search."""
    rng = np.random.RandomState(0)
    X, y = rng.randn(60, 4), rng.randn(60)
    X[rng.rand(*X.shape) < 0.1] = np.nan
    weights = rng.rand(60)
    with config_context(enable_metadata_routing=True):
        completer = GaussianCompleter(1.0).set_fit_request(sample_weight=True)
        ridge = Ridge().set_fit_request(sample_weight=True)
        model = make_pipeline(completer, ridge).fit(X, y, sample_weight=weights)
        alone = GaussianCompleter(1.0).fit(X, sample_weight=weights)
        np.testing.assert_array_equal(model[0].covariance_, alone.covariance_)
        search = GridSearchCV(completer, {"lambda_ridge": [1.0, 3.0]}, cv=2)
        search.fit(X, sample_weight=weights)
        best = GaussianCompleter(**search.best_params_).fit(X, sample_weight=weights)
        np.testing.assert_allclose(search.best_estimator_.covariance_, best.covariance_)


def test_identifiers_find_weights():
    """A Series is aligned with the identifiers of `Entries`."""
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "who": np.repeat(list("dacb"), 3),
            "what": np.tile(list("xyz"), 4),
            "value": rng.randn(12),
        }
    )[:-1]
    X = Entries.from_frame(frame, "who", "what", "value")
    weights = pd.Series({"b": 2.0, "a": 0.5, "d": 1.0, "c": 3.0})
    found = GaussianCompleter(1.0).fit(X, sample_weight=weights).covariance_
    same = GaussianCompleter(1.0).fit(X, sample_weight=[0.5, 2.0, 3.0, 1.0])
    np.testing.assert_array_equal(found, same.covariance_)
