"""`TreesCompleter`: the trees' own reference values, rounds, threads, interruption."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import low_rank
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from skmc import MeanCompleter, TreesCompleter, patterns
from skmc.completers.trees import FOLDS, _Forest
from skmc.metrics import rmse
from skmc.persistence import load, save


@pytest.fixture
def steps():
    """Columns that depend on each other in steps, and a noise column; 20 % hidden."""
    rng = np.random.RandomState(0)
    t = rng.rand(150)
    columns = [t, np.floor(4 * t), (t > 0.5) - 2.0 * (t > 0.8), rng.randn(150)]
    truth = np.stack(columns, 1)
    return truth, patterns.random(truth, 0.2, spare=True, random_state=1)


def fitted(X, **params):
    return TreesCompleter(**{"n_estimators": 20, "random_state": 0, **params}).fit(X)


def test_trees_predict_like_those_of_scikit_learn(steps):
    """They are equal to the last bit, also for rows with missing values."""
    truth, hidden = steps
    X = np.where(hidden, np.nan, truth).astype(np.float32)
    y = truth[:, 0].copy()
    y[::7] = np.nan
    cols = np.array([1, 3])
    rng = np.random.RandomState(3)
    forest = _Forest.grown(
        X, y[:, None], None, np.arange(len(X)), np.array([0]), cols, 8, rng
    )
    rng = np.random.RandomState(3)
    rows = rng.permutation(np.flatnonzero(~np.isnan(y)))
    expected, seen = [], np.zeros((8, len(y)), bool)
    for number in range(8):
        kept = rows[np.arange(len(rows)) % FOLDS != number % FOLDS]
        tree = ExtraTreeRegressor(random_state=rng.randint(2**31))
        tree.fit(X[kept][:, cols], y[kept])
        expected.append(tree.predict(X[:, cols]))
        seen[number, kept] = True
    new = forest.predict(X, np.full(len(X), -1))[:, 0]
    np.testing.assert_allclose(new, np.mean(expected, 0), atol=1e-10)
    own = forest.predict(X, np.arange(len(X)))[:, 0]
    np.testing.assert_allclose(own, np.average(expected, 0, ~seen), atol=1e-10)
    np.testing.assert_array_equal(own[::7], new[::7])  # no tree has seen these
    assert (seen.sum(0)[~np.isnan(y)] < 8).all()


def test_one_tree_has_seen_every_row():
    X = np.random.RandomState(0).randn(30, 3).astype(np.float32)
    cols = np.array([0]), np.array([1, 2])
    forest = _Forest.grown(
        X, X[:, :1], None, np.arange(30), *cols, 1, np.random.RandomState(0)
    )
    np.testing.assert_allclose(forest.predict(X, np.arange(30)), X[:, :1])


@pytest.mark.parametrize("estimator", ["extra_trees", "boosting"])
def test_steps_are_learned(estimator, steps):
    truth, hidden = steps
    X = np.ma.masked_array(truth, hidden)
    completed = fitted(X, estimator=estimator, n_estimators=50).transform(X)
    means = MeanCompleter().fit_transform(X)
    for col in range(3):
        part = np.arange(4) == col
        assert rmse(completed, truth, hidden & part) < 0.6 * rmse(
            means, truth, hidden & part
        )


def test_values_of_observed_cells_are_out_of_bag():
    """Noise is not predictable, and in-sample predictions would be perfect."""
    noise = np.random.RandomState(0).randn(120, 5)
    completer = fitted(noise)
    assert ((completer.reconstruction_ - noise) ** 2).mean() > 0.9 * noise.var()
    own = fitted(noise, keep_observed=False)
    np.testing.assert_array_equal(own.transform(noise), completer.reconstruction_)


@pytest.mark.parametrize("max_iter", [1, 3])
@pytest.mark.parametrize("estimator", ["extra_trees", "boosting"])
def test_the_number_of_jobs_does_not_matter(estimator, max_iter, steps):
    X = np.ma.masked_array(*steps)
    params = {"estimator": estimator, "max_iter": max_iter}
    alone, together = fitted(X, **params), fitted(X, n_jobs=2, **params)
    np.testing.assert_array_equal(alone.reconstruction_, together.reconstruction_)
    np.testing.assert_array_equal(
        alone.transform(X[:9] + 1), together.transform(X[:9] + 1)
    )


def test_rounds(steps):
    """They end before the change grows; new rows go through the same ones."""
    X = np.ma.masked_array(*steps)
    assert fitted(X).n_iter_ == 1
    chained = fitted(X, max_iter=20)
    assert 1 < chained.n_iter_ < 20
    shorter = fitted(X, max_iter=chained.n_iter_)
    np.testing.assert_array_equal(chained.reconstruction_, shorter.reconstruction_)
    rounds = chained._fitted.row_map(X.filled(np.nan), everywhere=False)
    np.testing.assert_allclose(rounds[X.mask], chained.transform(X)[X.mask])


@pytest.mark.parametrize("estimator", ["extra_trees", "boosting"])
def test_residuals_of_a_linear_model_extrapolate(estimator, tmp_path):
    """The largest values of a column are missing, and depend on the others."""
    t = np.linspace(-1, 1, 300)
    order = np.random.RandomState(0).permutation(300)
    truth = np.stack([t, 3 * t + 0.3 * (t > 0), np.sin(9 * t)], 1)[order]
    X = truth.copy()
    X[truth[:, 0] > 0.5, 1] = np.nan
    hidden = np.isnan(X)
    params = {"estimator": estimator, "n_estimators": 50}
    alone, linear = fitted(X, **params), fitted(X, linear=True, **params)
    assert alone.transform(X)[hidden].max() <= np.nanmax(X[:, 1]) + 1e-6
    errors = [rmse(c.transform(X), truth, hidden) for c in (alone, linear)]
    assert errors[1] < 0.3 * errors[0]
    np.testing.assert_array_equal(linear.transform(X[7:8])[0], linear.transform(X)[7])
    if estimator == "extra_trees":
        save(linear, tmp_path / "linear")
        again = load(tmp_path / "linear")
        np.testing.assert_array_equal(again.transform(X), linear.transform(X))


@pytest.mark.parametrize("params", [{}, {"linear": True}, {"max_iter": 3}])
def test_draws_have_the_moments_of_the_data(params):
    """Also jointly: two missing cells of a row are correlated given the third."""
    rng = np.random.RandomState(0)
    common, x = rng.randn(2, 2000)
    truth = np.stack([x, x + common, common + 0.3 * rng.randn(2000)], 1)
    hidden = rng.rand(2000, 3) < [0, 0.3, 0.3]
    X = np.where(hidden, np.nan, truth)
    draws = fitted(X, **params).sample(X, 4, random_state=1)
    np.testing.assert_array_equal(draws[:, ~hidden], np.tile(X[~hidden], (4, 1)))
    both = draws[:, hidden[:, 1] & hidden[:, 2]]
    drawn = np.cov((both[..., 1] - both[..., 0]).ravel(), both[..., 2].ravel())
    np.testing.assert_allclose(drawn, [[1, 1], [1, 1.09]], atol=0.3)
    with pytest.raises(ValueError, match="n_samples must be at least 1, got 0"):
        fitted(X).sample(X, 0)
    assert not hasattr(TreesCompleter("boosting"), "sample")


def test_a_complete_matrix_needs_one_round():
    X = low_rank(30, 4)
    np.testing.assert_array_equal(fitted(X, max_iter=5).transform(X), X)


def test_user_defined_regressors(steps):
    truth, hidden = steps
    X = np.ma.masked_array(truth, hidden)
    for own in (
        DecisionTreeRegressor(max_features=1),
        HistGradientBoostingRegressor(max_iter=10),
        make_pipeline(SimpleImputer(), DecisionTreeRegressor(max_features=1)),
    ):
        a, b = fitted(X, estimator=own), fitted(X, estimator=own)
        np.testing.assert_array_equal(a.transform(X), b.transform(X))
        assert not hasattr(own, "tree_")
    other = fitted(X, estimator=DecisionTreeRegressor(max_features=1), random_state=1)
    first = fitted(X, estimator=DecisionTreeRegressor(max_features=1))
    assert np.abs(other.transform(X) - first.transform(X)).max() > 0
    for own in (Ridge(), KNeighborsRegressor()):
        with pytest.raises(ValueError, match=r"does not accept missing values"):
            fitted(X, estimator=own)
    with pytest.raises(ValueError, match="'estimator' parameter of TreesCompleter"):
        fitted(X, estimator="random_forest")


class Strict(DecisionTreeRegressor):
    """Refuses constant inputs, as CatBoost does."""

    def fit(self, X, y):
        assert X.shape[1]
        assert all(len(np.unique(col)) > 1 for col in X.T)
        return super().fit(X, y)


@pytest.mark.parametrize("estimator", ["extra_trees", "boosting", Strict()])
def test_inputs_that_do_not_vary_where_a_column_is_observed(estimator):
    steps = np.arange(6.0)
    empty = np.full(6, np.nan)
    ones = np.ones(6)
    for X in (
        np.stack([np.r_[steps, empty], np.r_[empty, steps]], 1),
        np.stack([np.r_[steps, empty], np.r_[ones, steps]], 1),
    ):
        completed = fitted(X, estimator=estimator).transform(X)
        np.testing.assert_allclose(completed[6:, 0], steps.mean())
    third = np.r_[steps, steps]
    X = np.stack([np.r_[steps, empty], np.r_[empty, steps], third], 1)
    assert np.isfinite(fitted(X, estimator=estimator).transform(X)).all()


def test_regressors_of_scikit_learn_are_saved(steps, tmp_path):
    X = np.ma.masked_array(*steps)
    completer = fitted(X, estimator="boosting", n_estimators=2)
    save(completer, tmp_path / "c")
    again = load(tmp_path / "c")
    np.testing.assert_array_equal(again.transform(-X), completer.transform(-X))


def test_huge_forests_are_refused_at_once():
    X = np.random.RandomState(0).randn(12, 300)
    with pytest.raises(MemoryError, match=r"of 300 columns take .*'boosting'"):
        fitted(X, n_estimators=10**9)


@pytest.mark.parametrize("at", [2, 6])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_interrupting_leaves_a_usable_completer(at, steps, monkeypatch):
    """In the first round, and in the second, which is then left out."""
    truth, hidden = steps
    X = np.ma.masked_array(truth, hidden)
    grown, calls = _Forest.grown, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return grown(*args)

    monkeypatch.setattr(_Forest, "grown", interrupted)
    completer = TreesCompleter(n_estimators=5, max_iter=5, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        completer.fit(X)
    monkeypatch.undo()
    completed = completer.transform(X)
    assert completer.n_iter_ == 1
    assert np.isfinite(completed).all()
    np.testing.assert_array_equal(completed[~hidden], truth[~hidden])
    if at == 6:
        expected = fitted(X, n_estimators=5)
        np.testing.assert_array_equal(completed, expected.transform(X))


def test_uninformative_columns_get_their_mean(steps):
    """Constant columns and columns with one observed cell get their mean."""
    truth, hidden = steps
    X = np.where(hidden, np.nan, truth)
    X = np.column_stack([X, np.full(150, 0.1), np.full(150, np.nan)])
    X[3, 4], X[5, 5] = np.nan, 7.0
    completer = fitted(X)
    completed = completer.transform(X)
    np.testing.assert_allclose(completed[:, 4], 0.1)
    np.testing.assert_allclose(completed[:, 5], 7.0)
    np.testing.assert_array_equal(completed[:, :4], fitted(X).transform(X)[:, :4])
    # A single column that varies has no others to learn from.
    lonely = X[:, [0, 4, 5]]
    np.testing.assert_allclose(
        fitted(lonely).transform(lonely)[:, 0],
        np.where(np.isnan(X[:, 0]), np.nanmean(X[:, 0]), X[:, 0]),
    )


def test_new_rows_far_away_and_in_single_precision(steps):
    X = np.ma.masked_array(*steps).astype(np.float32)
    completer = fitted(X)
    rows = np.array([[1e18, np.nan, -1e18, 0.0], [np.nan, np.nan, np.nan, 1e-30]])
    completed = completer.transform(rows.astype(np.float32))
    assert completed.dtype == np.float32
    low, high = X.min(0).data, X.max(0).data
    missing = np.isnan(rows)
    assert ((completed >= low) & (completed <= high))[missing].all()
