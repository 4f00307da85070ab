"""Trying the family on held-out cells."""

from __future__ import annotations

import pickle
import re
import time

import numpy as np
import pandas as pd
import pytest
from conftest import low_rank
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from skmc import AutoCompleter, KNNCompleter, MeanCompleter, SVDCompleter, patterns
from skmc.cells import Entries
from skmc.completers._candidates import Search, Trial, family, smooth, stack_weights
from skmc.metrics import rmse
from skmc.persistence import checkpoint

pytestmark = pytest.mark.filterwarnings("error")


class Broken(BaseEstimator):
    def fit_transform(self, X, y=None):
        raise np.linalg.LinAlgError("singular")


class Slow(SVDCompleter):
    n_fits = 0

    def _fit_cells(self, cells, priors, y=None):
        Slow.n_fits += 1
        time.sleep(0.3)
        return super()._fit_cells(cells, priors, y)


@pytest.fixture
def matrix():
    """Low rank and noise; the truth and the masked array."""
    truth = low_rank(60, 30) + 0.1 * np.random.RandomState(1).randn(60, 30)
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    return truth, np.ma.masked_array(np.where(hidden, 1e9, truth), hidden)


def board(auto):
    return auto.leaderboard_.set_index("candidate")


def test_trees_win_where_columns_bend():
    rng = np.random.RandomState(0)
    t = rng.rand(250, 2)
    table = np.column_stack(
        [t, np.sign(t[:, 0] - 0.5), np.sin(9 * t[:, 1]), (t[:, 0] - 0.5) ** 2]
    )
    truth = table * [1, 10, 100, 1, 1000]
    hidden = patterns.random(truth, 0.15, spare=True, random_state=0)
    names = ("means", "KNN", "SVD", "chained, linear", "chained, few trees")
    auto = AutoCompleter(names, metric="rmse", random_state=0)
    completed = auto.fit_transform(np.ma.masked_array(truth, hidden))
    assert auto.weights_["chained, few trees"] > 0.5
    means = MeanCompleter().fit_transform(np.ma.masked_array(truth, hidden))
    scale = truth.std(0)
    assert rmse(completed / scale, truth / scale, hidden) < 0.85 * rmse(
        means / scale, truth / scale, hidden
    )


def test_noise_is_left_to_the_means():
    noise = np.random.RandomState(0).randn(120, 8)
    noise[::7, 3] = np.nan
    auto = AutoCompleter(random_state=0, max_time=40).fit(noise)
    assert auto.weights_ == {"means": 1.0}
    assert re.match(
        "No candidate is (significantly )?better than column means", auto.verdict_
    )
    assert np.isfinite(auto.leaderboard_["error"]).sum() > 4


def test_the_best_on_held_out_cells_is_best_on_hidden_ones(matrix):
    truth, X = matrix
    names = ("means", "KNN", "SVD")
    auto = AutoCompleter(names, max_members=1, random_state=0)
    error = rmse(auto.fit_transform(X), truth, X.mask)
    assert auto.weights_ == {"SVD": 1.0}
    alone = SVDCompleter(random_state=0).fit_transform(X)
    assert error == pytest.approx(rmse(alone, truth, X.mask))
    table = board(auto)
    assert list(table.index) == ["SVD", "KNN", "means"]
    assert table["error"].is_monotonic_increasing
    assert table["behind"].iloc[0] == 0 < table["behind"].iloc[1]
    assert table.loc["SVD", "status"] == "chosen"
    assert "SVD is the best of 3" in auto.verdict_


def test_what_a_stack_is(matrix):
    """Two completers, each good in one half of the columns only."""
    truth, X = matrix

    class Half(SVDCompleter):
        def __init__(self, start=0, rank=2, random_state=0):
            super().__init__(rank, random_state=random_state)
            self.start = start

        def _fit_cells(self, cells, priors, y=None):
            outcome = super()._fit_cells(cells, priors, y)
            noise = np.random.RandomState(self.start).randn(*cells.shape)
            outcome.attributes["reconstruction_"] += 0.5 * noise
            return outcome

    candidates = {"a": Half(0), "b": Half(1), "means": MeanCompleter()}
    stack = AutoCompleter(candidates, metric="rmse", random_state=0).fit(X)
    single = clone(stack).set_params(max_members=1).fit(X)
    assert stack.weights_.keys() == {"a", "b"}
    assert sum(stack.weights_.values()) == pytest.approx(1)
    assert min(stack.weights_.values()) > 0.3
    combined = sum(
        w * stack.completers_[k].reconstruction_ for k, w in stack.weights_.items()
    )
    np.testing.assert_allclose(stack.reconstruction_, combined)
    errors = [rmse(auto.reconstruction_, truth, X.mask) for auto in (stack, single)]
    assert errors[0] < 0.85 * errors[1]
    assert stack.verdict_.startswith("A stack of ")


def test_weights_are_the_best_of_those_that_sum_to_one():
    rng = np.random.RandomState(0)
    P, y = rng.randn(200, 3) + 5, rng.randn(200)
    weights = stack_weights(P, y, 3)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    best = np.square(P @ weights - y).sum()
    for _ in range(300):
        other = rng.dirichlet(np.ones(3))
        assert np.square(P @ other - y).sum() >= best - 1e-6
    np.testing.assert_allclose(stack_weights(P, P[:, 1], 3), [0, 1, 0], atol=1e-6)
    few = stack_weights(P, y, 2)
    assert np.count_nonzero(few) == 2
    assert few[weights.argmin()] == 0


def test_what_fails_is_a_row(matrix):
    _, X = matrix
    candidates = {
        "broken": Broken(),
        "refuses": SVDCompleter(rank=99),
        "means": MeanCompleter(),
    }
    auto = AutoCompleter(candidates, random_state=0).fit(X)
    table = board(auto)
    assert "LinAlgError('singular')" in table.loc["broken", "status"]
    assert "rank=99 is above" in table.loc["refuses", "status"]
    assert auto.weights_ == {"means": 1.0}
    assert "2 failed" in auto.verdict_
    with pytest.raises(ValueError, match="none of the candidates could be fitted: bro"):
        AutoCompleter({"broken": Broken()}).fit(X)


def test_the_budget_is_kept(matrix, monkeypatch):
    monkeypatch.setattr("skmc.completers.auto.MAX_PARTS", 1)
    _, X = matrix
    candidates = {"means": MeanCompleter(), "slow": Slow(), "svd": SVDCompleter()}
    before = Slow.n_fits
    auto = AutoCompleter(candidates, max_time=0.2, random_state=0).fit(X)
    assert Slow.n_fits == before + 1
    table = board(auto)
    assert table.loc["svd", "status"].startswith("not tried: ")
    assert np.isnan(table.loc["svd", "error"])
    assert "1 not tried to save time" in auto.verdict_
    # It was chosen, and could not be fitted again.
    assert auto.weights_ == {"slow": 1.0}
    whole = AutoCompleter(candidates, max_time=None, random_state=0).fit(X)
    assert board(whole)["error"].notna().all()


def test_dear_ones_have_to_be_worth_it():
    """A candidate that would take far longer than the best one is not tried."""

    def against(costs, errors, cost, max_time=24.0):
        cells = Entries(np.arange(40.0).reshape(8, 5))
        search = Search([(cells[:20], cells[20:])], "mae", max_time)
        for k, (seconds, error) in enumerate(zip(costs, errors, strict=True)):
            trial = Trial(f"c{k}", None, seconds, seconds=seconds, fitted=object())
            trial.losses = np.full(20, error)
            search.trials.append(trial)
        return search._against(Trial("next", None, cost))

    assert against([0.1], [1.0], 0.2) is None  # a twentieth of max_time is free
    assert "too long compared with c0, which takes 0.1 s" in against([0.1], [1.0], 4.0)
    assert against([0.1], [1.0], 4.0, max_time=None) is None
    assert against([0.1, 5.0], [1.0, 0.9], 4.5) is None
    assert "too long compared with c1" in against([0.1, 5.0], [1.0, 0.9], 17.0)
    assert "about 50 s, but only " in against([0.1], [1.0], 50.0)


def test_scouts_tell_whether_the_dear_are_worth_it():
    cells = Entries(np.arange(40.0).reshape(8, 5))

    def against(name, errors):
        search = Search([(cells[:20], cells[20:])], "mae", 24.0)
        for scout, error in errors.items():
            trial = Trial(scout, None, 0.1, seconds=0.1, fitted=object())
            trial.losses = np.full(20, error)
            search.trials.append(trial)
        return search._against(Trial(name, None, 5.0))

    few = "chained, few trees"
    assert against("chained, trees", {"means": 1.0, few: 0.9}) is None
    assert against("chained, trees", {"means": 1.0, few: 1.1}) is None
    assert few in against("chained, trees", {"means": 1.0, few: 1.2})
    assert few in against("chained, trees", {"means": 1.0})
    assert against("patch CNN", {"AIR": 1.0, "KNN": 1.9}) is None
    assert "KNN" in against("patch CNN", {"AIR": 1.0, "KNN": 2.1})
    assert "low-rank" in against("TNNR", {"AIR": 1.0, "SVD": 1.5})


def test_what_suits_the_shape():
    waves = np.sin(np.arange(40) / 5)[:, None] + np.cos(np.arange(70) / 6)
    noise = np.random.RandomState(0).randn(40, 70)
    assert smooth(waves + 0.1 * noise)
    assert not smooth(noise)
    assert not smooth(np.full((40, 70), 3.0))
    assert smooth(np.where(noise > 1, np.nan, waves))
    assert not smooth(np.where(noise > -9, np.nan, waves))
    names = {c.name for c in family(waves, 0, "cpu")}
    assert "patch CNN" in names
    assert not any("chained" in name for name in names)
    names = {c.name for c in family(noise[:, :8], 0, "cpu")}
    assert {"chained, trees", "means"} < names
    assert "patch CNN" not in names
    sparse = np.where(noise > 1.5, noise, np.nan)
    assert "Factorization" in {c.name for c in family(sparse, 0, "cpu")}


def test_new_rows_each_on_its_own(matrix):
    truth, X = matrix
    candidates = {
        "chained": IterativeImputer(max_iter=2, tol=1e3, random_state=0),
        "svd": SVDCompleter(random_state=0),
    }
    auto = AutoCompleter(candidates, random_state=0).fit(X[:50])
    whole = auto.transform(X)
    np.testing.assert_array_equal(whole[:50], auto.transform(X[:50]))
    for i in range(45, 60):
        np.testing.assert_allclose(auto.transform(X[i : i + 1])[0], whole[i])
    new = rmse(whole[50:], truth[50:], X.mask[50:])
    assert new < 0.3 * rmse(np.zeros((10, 30)), truth[50:], X.mask[50:])
    # Every member and the stack of them, whatever was chosen.
    auto.weights_ = {"chained": 0.5, "svd": 0.5}
    auto.completers_ = {
        k: clone(c).fit(X[:50].filled(np.nan)) for k, c in candidates.items()
    }
    parts = [c.transform(X[50:].filled(np.nan)) for c in auto.completers_.values()]
    np.testing.assert_allclose(
        auto.transform(X[50:])[X.mask[50:]], np.mean(parts, 0)[X.mask[50:]]
    )
    assert auto.score(X) < 0


def test_units_of_columns_do_not_matter(matrix):
    _, X = matrix
    units = 10.0 ** np.arange(-3, 3).repeat(5)
    auto = AutoCompleter(("means", "KNN", "SVD"), random_state=0)
    a = clone(auto).fit(X * units)
    b = clone(auto).fit(X * units * 7 + 100 * units)
    np.testing.assert_allclose(board(a)["error"], board(b)["error"], rtol=1e-6)
    np.testing.assert_allclose(
        b.transform(X * units * 7 + 100 * units),
        a.transform(X * units) * 7 + 100 * units,
    )
    # KNN alone looks at the columns of large units only.
    assert board(a).loc["KNN", "error"] < 0.9


def test_imputers_of_scikit_learn(matrix):
    truth, X = matrix
    candidates = {"mean": SimpleImputer(), "knn": KNNImputer(n_neighbors=3)}
    auto = AutoCompleter(candidates, random_state=0)
    completed = auto.fit_transform(X)
    assert auto.weights_.keys() == {"knn"}
    np.testing.assert_allclose(
        completed, KNNImputer(n_neighbors=3).fit_transform(X.filled(np.nan))
    )
    assert rmse(completed, truth, X.mask) < 1
    again = pickle.loads(pickle.dumps(auto))
    np.testing.assert_array_equal(again.transform(X), completed)
    assert again.verdict_ == auto.verdict_


def test_candidates_that_are_none(matrix):
    _, X = matrix
    with pytest.raises(
        ValueError, match=r"candidates contains 'kNN'; .* names are \['means'"
    ):
        AutoCompleter(("means", "kNN")).fit(X)
    with pytest.raises(ValueError, match="candidates is empty"):
        AutoCompleter({}).fit(X)


def test_an_interruption_keeps_the_best_so_far(matrix):
    _, X = matrix

    class Impatient(SVDCompleter):
        def _fit_cells(self, cells, priors, y=None):
            raise KeyboardInterrupt

    candidates = {"means": MeanCompleter(), "KNN": KNNCompleter(), "i": Impatient()}
    auto = AutoCompleter(candidates, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        auto.fit(X)
    assert auto.weights_ == {"KNN": 1.0}
    assert np.isfinite(auto.transform(X)).all()
    assert list(auto.leaderboard_["candidate"]) == ["KNN", "means"]


def test_cells_are_held_out_as_they_are_missing():
    rng = np.random.RandomState(0)
    X = rng.randn(60, 40)
    X[10:20, 5:15] = np.nan
    X[40:44, 20:38] = np.nan
    hidden = patterns.like_missing(X, 0.1, random_state=0)
    assert not (hidden & np.isnan(X)).any()
    assert 0.05 < hidden.sum() / (~np.isnan(X)).sum() < 0.2
    beside = hidden[1:] & hidden[:-1]
    assert beside.sum() > 0.7 * hidden.sum()
    # Where most is missing, in pieces, a piece of it.
    most = np.full((60, 40), np.nan)
    most[10:30, 5:25] = 1
    most[40:50, 30:] = 1
    hidden = patterns.like_missing(most, 0.1, random_state=0)
    assert 0 < hidden.sum() <= 0.2 * np.isfinite(most).sum()
    # At random: from columns as much as they miss.
    X = rng.randn(300, 4)
    X[rng.rand(300) < 0.4, 1] = np.nan
    X[rng.rand(300) < 0.1, 2] = np.nan
    count = patterns.like_missing(X, 0.1, random_state=0).sum(0)
    assert count[0] == count[3] == 0
    assert count[1] > 1.5 * count[2] > 0
    # No row and no column loses all.
    X = rng.randn(30, 3)
    X[rng.rand(30, 3) < 0.6] = np.nan
    left = np.isfinite(X) & ~patterns.like_missing(X, 1.0, random_state=0)
    assert (left.any(1) == np.isfinite(X).any(1)).all()
    assert left.any(0).all()
    np.testing.assert_array_equal(
        patterns.like_missing(X, random_state=3),
        patterns.like_missing(X, random_state=3),
    )


def test_too_few_cells_to_judge():
    auto = AutoCompleter(random_state=0).fit([[1.0, 2.0]])
    assert auto.weights_ == {"means": 1.0}
    assert auto.verdict_.startswith("Too few cells")
    assert np.isnan(auto.leaderboard_["error"]).all()
    np.testing.assert_array_equal(auto.transform([[np.nan, 2.0]]), [[1.0, 2.0]])


def test_tables_of_others_output(matrix):
    """An imputer may be set to answer with data frames."""
    _, X = matrix
    filled = X.filled(np.nan)
    imputers = {"s": SimpleImputer(keep_empty_features=True)}
    plain = AutoCompleter(imputers, random_state=0).fit(filled)
    with config_context(transform_output="pandas"):
        framed = AutoCompleter(imputers, random_state=0).fit(filled)
        assert isinstance(framed.transform(filled), pd.DataFrame)
        assert framed.score(filled) == plain.score(filled)
    assert np.array_equal(framed.reconstruction_, plain.reconstruction_)


class FailsOnAll(SVDCompleter):
    """Fits a part of the cells, but not all of them."""

    def _fit_cells(self, cells, priors, y=None):
        if np.isnan(cells).mean() < 0.25:
            raise MemoryError("all are too many")
        return super()._fit_cells(cells, priors, y)


def test_a_fit_that_fails_in_the_end_keeps_the_first(matrix):
    _, X = matrix
    auto = AutoCompleter({"f": FailsOnAll(rank=3)}, random_state=0).fit(X)
    assert np.isfinite(auto.transform(X)).all()


def test_too_few_cells_to_judge_take_what_fits():
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    wide = SimpleImputer(add_indicator=True)
    auto = AutoCompleter({"wide": wide, "m": MeanCompleter()}, random_state=0).fit(X)
    assert auto.weights_ == {"m": 1.0}
    assert "another shape" in board(auto).loc["wide", "status"]
    with pytest.raises(
        ValueError, match="None of the candidates could be fitted: wide"
    ):
        AutoCompleter({"wide": wide}).fit(X)


def test_empty_columns_do_not_forbid_judging():
    rng = np.random.RandomState(0)
    X = np.c_[rng.randn(40, 2) @ rng.randn(2, 6), np.full(40, np.nan)]
    hidden = patterns.like_missing(X, 0.1, random_state=0)
    assert 15 < hidden.sum() < 35 and not hidden[:, 6].any()
    assert not patterns.like_missing(np.full((3, 3), np.nan)).any()


def test_an_interruption_between_trials_loses_none(matrix, monkeypatch):
    _, X = matrix
    original = Search._next
    calls = []

    def interrupted(self, waiting):
        calls.append(None)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, waiting)

    monkeypatch.setattr(Search, "_next", interrupted)
    auto = AutoCompleter(["means", "SVD", "KNN"], random_state=0)
    with pytest.raises(KeyboardInterrupt):
        auto.fit(X)
    assert len(board(auto)) == 2


def test_others_estimators_in_a_checkpoint(matrix, tmp_path):
    _, X = matrix
    imputer = SimpleImputer(keep_empty_features=True)
    with checkpoint(tmp_path / "fit"):
        AutoCompleter({"s": imputer}, random_state=0).fit(X)
