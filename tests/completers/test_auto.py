"""The candidates of the automatic completer, and their stack."""

from __future__ import annotations

import functools
import pickle
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import low_rank
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

import skmc
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
    patterns,
)
from skmc.completers.auto import _candidates, _comparison
from skmc.completers.auto import auto as completer_module
from skmc.completers.auto._candidates import NAMED, plan
from skmc.datasets import load_photo
from skmc.loop import scope
from skmc.metrics import rmse
from skmc.persistence import checkpoint

pytestmark = pytest.mark.filterwarnings("error")


class Broken(BaseEstimator):
    def fit_transform(self, X, y=None):
        raise np.linalg.LinAlgError("singular")


@pytest.fixture
def matrix():
    """Low rank and noise; the truth and the masked array."""
    truth = low_rank(60, 30) + 0.1 * np.random.RandomState(1).randn(60, 30)
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    return truth, np.ma.masked_array(np.where(hidden, 1e9, truth), hidden)


EXCHANGEABLE = ["mean", "knn", "ialm", "gaussian"]


def sides():
    one = FactorizationCompleter(3, lambda_ridge=0.1, lambda_side=0.3, random_state=0)
    return {"mean": MeanCompleter(), "factorization": one}


def board(auto):
    return auto.leaderboard_.set_index("candidate")


def test_nonlinear_columns_get_trees_and_linear_ones_regression():
    """The weights differ between columns."""
    rng = np.random.RandomState(0)
    t = rng.rand(250, 2)
    table = np.column_stack(
        [t, np.sin(9 * t[:, 0]), np.sin(9 * t[:, 1]), t @ [1, 2], t @ [2, -1]]
    )
    table += 0.02 * rng.randn(*table.shape)
    truth = table * [1, 10, 100, 1, 1000, 1]
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    X = np.ma.masked_array(truth, hidden)
    candidates = {
        "lines": GaussianCompleter(0, random_state=0),
        "trees": TreesCompleter(n_estimators=10, random_state=0),
    }
    auto = AutoCompleter(candidates, random_state=0).fit(X)
    trees = auto.column_weights_["trees"]
    assert trees[2:4].min() > 0.6 > 0.4 > trees[4:].max()
    assert re.match(r"\d\d % below the best single method, ", auto.verdict_)
    z = auto._fitted.row_map.scaling.standardise(torch.from_numpy(truth)).numpy()
    singles = [
        rmse(c.transform(np.ma.masked_array(z, hidden)), z, hidden)
        for c in auto.completers_.values()
    ]
    scale = auto._fitted.row_map.scaling.scale.numpy()
    assert rmse(auto.transform(X) / scale, truth / scale, hidden) < 0.95 * min(singles)


@pytest.fixture
def table():
    """Five columns, of which one depends on others nonlinearly; some cells missing."""
    rng = np.random.RandomState(0)
    t = rng.rand(60, 3)
    X = np.column_stack([t, np.sin(6 * t[:, 0]), t @ [1, 2, 0]])
    X[rng.rand(60, 5) < 0.2] = np.nan
    return X


def test_rows_are_exchangeable(table):
    """To the last bit, for fitted and other rows, deviations and errors."""
    lot = np.random.RandomState(1).permutation(60)
    auto = AutoCompleter(EXCHANGEABLE, random_state=0)
    a, b = clone(auto).fit(table), clone(auto).fit(table[lot])
    np.testing.assert_array_equal(b.reconstruction_, a.reconstruction_[lot])
    np.testing.assert_array_equal(b.transform(table), a.transform(table))
    np.testing.assert_array_equal(b.predict_std(table), a.predict_std(table))
    np.testing.assert_array_equal(b.transform(table + 0.1), a.transform(table + 0.1))
    i, j = np.argwhere(np.isnan(table))[0]
    assert b.explain(table, i, j).contributions == a.explain(table, i, j).contributions
    pd.testing.assert_series_equal(board(a)["error"], board(b)["error"])


def test_ratings_and_samples_of_rows_are_exchangeable(described, monkeypatch):
    _, X, known = described
    monkeypatch.setattr(completer_module, "MAX_ROWS", 25)
    lot = np.random.RandomState(1).permutation(40)
    auto = AutoCompleter(sides(), random_state=0)
    with pytest.warns(UserWarning, match="no observed cell"):
        cells = clone(auto).fit(Entries.of_matrix(X)).reconstruction_
        again = clone(auto).fit(Entries.of_matrix(X[lot])).reconstruction_
    np.testing.assert_allclose(again, cells[lot], atol=1e-12)
    whole = clone(auto).fit(X, **known).reconstruction_
    moved = {**known, "row_features": known["row_features"][lot]}
    again = clone(auto).fit(X[lot], **moved).reconstruction_
    np.testing.assert_allclose(again, whole[lot], atol=1e-8)


def test_methods_for_pictures_are_for_those_who_name_them():
    pictures = {
        n for n, (t, *_) in NAMED.items() if getattr(skmc, t).completer_tags.pictures
    }
    assert pictures >= {"nonlocal", "biharmonic", "patch-cnn"}
    for shape in ((30, 4, 100), (500, 10, 4000), (64, 64, 3000), (900, 900, 9000)):
        assert "mean" in (tried := set(plan(*shape)))
        assert tried <= set(NAMED) - pictures
    X = picture()[0]
    X[20:24, 20:24] = np.nan
    auto = AutoCompleter(["biharmonic"], scaling="global", random_state=0).fit(X)
    alone = skmc.BiharmonicCompleter().fit_transform(X)
    np.testing.assert_allclose(auto.transform(X), alone)


BUSY = "while True: sum(range(1000))"


def test_busy_processes_change_no_bit(table):
    auto = AutoCompleter(EXCHANGEABLE, random_state=0)
    quiet = clone(auto).fit(table)
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    try:
        again = clone(auto).fit(table)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    np.testing.assert_array_equal(again.reconstruction_, quiet.reconstruction_)
    assert again.verdict_ == quiet.verdict_


def test_jobs_change_no_bit(table):
    auto = AutoCompleter(["mean", "knn", "ialm"], random_state=0)
    alone, several = clone(auto).fit(table), clone(auto).set_params(n_jobs=2).fit(table)
    np.testing.assert_array_equal(several.reconstruction_, alone.reconstruction_)
    columns = ["error", "cells", "weight", "warnings", "status"]
    pd.testing.assert_frame_equal(board(alone)[columns], board(several)[columns])


class Counted(SVDCompleter):
    """Counts the fits, and lets time pass after one of them."""

    fits, wait, clock = 0, 0, (0,)

    def _fit_cells(self, given, y=None):
        Counted.fits += 1
        outcome = super()._fit_cells(given, y)
        if Counted.fits == Counted.wait:
            self.clock[0] += 100
        return outcome


@pytest.mark.parametrize("wait", [1, 3])
def test_the_time_limit_keeps_the_best_that_has_been_fitted(matrix, monkeypatch, wait):
    """It ends the comparison, or the last fits; nothing falls back to the means."""
    truth, X = matrix
    monkeypatch.setattr(_comparison, "ENOUGH", 100)
    monkeypatch.setattr(_comparison, "MOST_PARTS", 2)
    monkeypatch.setattr(_comparison, "WORTHWHILE", -1.0)
    monkeypatch.setattr(Counted, "fits", 0)
    monkeypatch.setattr(Counted, "wait", wait)
    monkeypatch.setattr(Counted, "clock", clock := [0.0])
    now = SimpleNamespace(perf_counter=lambda: clock[0])
    monkeypatch.setattr(scope, "time", now)
    found = {"mean": MeanCompleter(), "svd": Counted(2), "knn": KNNCompleter()}
    auto = AutoCompleter(found, max_time=99, random_state=0).fit(X)
    assert Counted.fits == wait
    assert rmse(auto.reconstruction_, truth, X.mask) < 0.3
    status = board(auto).loc["knn", "status"]
    assert (status == "not tried: max_time had passed") == (wait == 1)


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_an_exact_candidate_ends_the_comparison(n_jobs):
    X = low_rank(60, 30)[:, :12].repeat(2, 1)
    X[np.random.RandomState(0).rand(60, 24) < 0.1] = np.nan
    found = {"mean": MeanCompleter(), "svd": SVDCompleter(2), "knn": KNNCompleter()}
    auto = AutoCompleter(found, n_jobs=n_jobs, random_state=0).fit(X)
    assert board(auto)["status"]["knn"] == "not tried: another one is exact"
    assert auto.weights_ == {"svd": 1.0}


def test_named_candidates_are_tried(matrix):
    _, X = matrix
    candidates = {"mean": MeanCompleter(), "svd": SVDCompleter()}
    auto = AutoCompleter(candidates, random_state=0).fit(X)
    assert board(auto)["error"].notna().all()


def test_comparisons_take_fewer_draws_than_the_last_fit(table):
    auto = AutoCompleter(["chained"], random_state=0).fit(table)
    assert auto.completers_["chained"].n_draws == ChainedCompleter().n_draws
    for name in NAMED:
        _candidates.named(name, 0, "cpu").clone(comparing=True)


def test_many_rows_are_compared_on_a_sample(matrix, monkeypatch):
    truth, X = matrix
    monkeypatch.setattr(completer_module, "MAX_ROWS", 25)
    fits = []

    class Watched(SVDCompleter):
        def _fit_cells(self, given, y=None):
            fits.append(len(given.matrix))
            if len(given.matrix) > 25 and self.rank == 3:
                raise MemoryError("too many rows")
            return super()._fit_cells(given, y)

    for rank in (2, 3):  # the second one keeps a fit to the sample
        candidates = {"svd": Watched(rank, random_state=0)}
        auto = AutoCompleter(candidates, random_state=0).fit(X)
        assert set(fits[:-1]) == {25} and fits[-1] == 60
        assert rmse(auto.reconstruction_, truth, X.mask) < 0.5
        np.testing.assert_allclose(
            auto.transform(X)[X.mask], auto.reconstruction_[X.mask]
        )
        fits.clear()


def on_a_curve(n_rows):
    rng = np.random.RandomState(0)
    place = rng.uniform(-3, 3, (n_rows, 1))
    truth = np.sin(place * rng.uniform(1, 3, 15) + rng.uniform(0, 6, 15))
    return truth, np.where(rng.rand(*truth.shape) < 0.1, np.nan, truth)


def error_of_neighbors(X):
    stack = AutoCompleter(["mean", "knn"], scaling=None, random_state=0).fit(X)
    return stack.leaderboard_.set_index("candidate")["error"]["knn"]


def test_neighbors_are_compared_with_all_rows():
    """Their error among a sample of the rows would be far larger than the true one."""
    truth, X = on_a_curve(3000)
    error, found = error_of_neighbors(X), KNNCompleter().fit_transform(X)
    assert error == pytest.approx(rmse(found, truth, np.isnan(X)), rel=0.2)
    of_sample = KNNCompleter().fit_transform(X[:1500])
    assert error < 0.7 * rmse(of_sample, truth[:1500], np.isnan(X[:1500]))


def test_copies_of_rows_do_not_tell_their_held_out_cells():
    truth, X = (np.tile(part, (8, 1)) for part in on_a_curve(400))
    found = KNNCompleter().fit_transform(X)
    assert error_of_neighbors(X) > 0.7 * rmse(found, truth, np.isnan(X))


def test_noise_gives_no_better_error_than_means():
    noise = np.random.RandomState(0).randn(150, 8)
    X = np.ma.masked_array(noise, np.random.RandomState(1).rand(150, 8) < 0.2)
    names = ("mean", "knn", "svd", "ialm")
    auto = AutoCompleter(names, random_state=0).fit(X)
    said = re.search(
        r"As good as|(\d+) % (?:above|below) the column means", auto.verdict_
    )
    assert int(said[1] or 0) < 8
    assert rmse(auto.reconstruction_, noise, X.mask) < 1.03 * rmse(
        MeanCompleter().fit(X).reconstruction_, noise, X.mask
    )


def test_one_candidate_is_enough_if_it_is_best(matrix):
    _, X = matrix
    names = ("mean", "knn", "svd")
    auto = AutoCompleter(names, random_state=0).fit(X)
    table = board(auto)
    assert table["error"].is_monotonic_increasing
    assert table.index[0] == "svd"
    assert auto.weights_["svd"] > 0.8
    assert table.loc["svd", "status"] == "in the stack"
    alone = AutoCompleter(["knn"], random_state=0).fit(X)
    assert alone.weights_ == {"knn": 1.0}
    assert alone.verdict_ == "knn alone. `leaderboard_` has the details."
    np.testing.assert_allclose(alone.transform(X), KNNCompleter().fit(X).transform(X))


class Half(SVDCompleter):
    """Its noise is its own."""

    def __init__(self, start=0, rank=2, random_state=0):
        super().__init__(rank, random_state=random_state)
        self.start = start

    def _fit_cells(self, given, y=None):
        outcome = super()._fit_cells(given, y)
        noise = np.random.RandomState(self.start).randn(*given.matrix.shape)
        outcome.fitted.completion += 0.5 * noise
        return outcome


def test_stacking_averages_independent_errors(matrix):
    """Independent errors average out."""
    truth, X = matrix
    candidates = {"a": Half(0), "b": Half(1)}
    stack = AutoCompleter(candidates, scaling="global", random_state=0).fit(X)
    assert sum(stack.weights_.values()) == pytest.approx(1)
    assert min(stack.weights_[name] for name in "ab") > 0.3
    combined = sum(
        stack.column_weights_[k] * stack.completers_[k].transform(X)
        for k in stack.weights_
    )
    np.testing.assert_allclose(stack.transform(X), combined)
    single = rmse(stack.completers_["a"].transform(X), truth, X.mask)
    assert rmse(stack.reconstruction_, truth, X.mask) < 0.85 * single
    assert re.match(r"\d\d % below the best single method, [ab]\. `", stack.verdict_)
    spread = np.sqrt(np.square(stack.predict_std(X)[X.mask]).mean())
    error = rmse(stack.reconstruction_, truth, X.mask)
    assert 0.7 < spread / np.hypot(error, 0.1) < 1.5  # the cells have noise too


BY_ROWS = ["mean", "gaussian", "trees-linear", "trees-rounds", "chained"]


@pytest.mark.long
@pytest.mark.parametrize("shape", [(100, 5), (30, 36)])
def test_noise_stays_as_unpredictable_as_it_is(shape, monkeypatch):
    """Whatever a candidate has learned from a held-out cell would look like a skill."""
    monkeypatch.setattr(_comparison, "MOST_PARTS", 1)
    noise = np.random.RandomState(0).randn(*shape)
    noise[np.random.RandomState(1).rand(*shape) < 0.2] = np.nan
    auto = AutoCompleter(BY_ROWS, random_state=0).fit(noise)
    errors = board(auto)["error"]
    assert (errors > 0.97 * errors["mean"]).all()


def copies():
    """A cell is known if one of its copies is observed."""
    rng = np.random.RandomState(0)
    return np.repeat(rng.randn(200, 5), 2, 1), rng.rand(200, 10) < 0.4


def picture():
    truth = load_photo("china")[140:188, 60:108].astype(float)
    return truth, patterns.random(truth, 0.5, random_state=0)


@pytest.mark.parametrize("problem", [copies, picture])
@pytest.mark.parametrize("name", ["mean", "trees-linear", "chained"])
def test_held_out_errors_are_true_errors(problem, name, monkeypatch):
    monkeypatch.setattr(_comparison, "MOST_PARTS", 1)
    truth, hidden = problem()
    X = np.where(hidden, np.nan, truth)
    auto = AutoCompleter([name], scaling="global", random_state=0)
    error = rmse(auto.fit(X).reconstruction_, truth, hidden)
    # Trees of a picture vary by an eighth with the seed.
    rel = 0.35 if problem is picture and name == "trees-linear" else 0.15
    assert board(auto).loc[name, "error"] == pytest.approx(error, rel=rel)


def test_new_rows_are_completed_independently(matrix):
    truth, X = matrix
    candidates = {
        "chained": IterativeImputer(max_iter=2, tol=1e3, random_state=0),
        "svd": SVDCompleter(random_state=0),
    }
    auto = AutoCompleter(candidates, scaling=None, random_state=0).fit(X[:50])
    whole = auto.transform(X)
    np.testing.assert_array_equal(whole[:50], auto.transform(X[:50]))
    for i in range(45, 60):
        np.testing.assert_allclose(auto.transform(X[i : i + 1])[0], whole[i])
    new = rmse(whole[50:], truth[50:], X.mask[50:])
    assert new < 0.3 * rmse(np.zeros((10, 30)), truth[50:], X.mask[50:])
    parts = sum(
        auto.column_weights_[k] * c.transform(X[50:].filled(np.nan))
        for k, c in auto.completers_.items()
    )
    np.testing.assert_allclose(whole[50:][X.mask[50:]], parts[X.mask[50:]])
    assert auto.score(X) < 0


@pytest.mark.parametrize("fits_before", [0, 1])
def test_an_interruption_keeps_the_best_result_so_far(matrix, fits_before):
    _, X = matrix
    left = [fits_before]

    class Impatient(SVDCompleter):
        def _fit_cells(self, given, y=None):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return super()._fit_cells(given, y)

    candidates = {"mean": MeanCompleter(), "knn": KNNCompleter(), "i": Impatient()}
    auto = AutoCompleter(candidates, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        auto.fit(X)
    assert auto.weights_
    assert np.isfinite(auto.transform(X)).all()
    assert len(board(auto)) == 3
    with pytest.raises(KeyboardInterrupt):
        left[0] = 0
        AutoCompleter({"i": Impatient()}).fit(X)


def test_parts_are_distributed_like_the_missing_cells():
    rng = np.random.RandomState(0)
    X = rng.randn(80, 6)
    X[rng.rand(80, 6) < 0.3] = np.nan
    X[:, 4:] = 1.0
    parts = patterns.parts_like_missing(X, 5, random_state=0)
    assert (parts[np.isnan(X)] == -1).all()
    assert (parts[:, 4:] == -1).all()
    for column in range(4):
        count = np.bincount(parts[:, column][parts[:, column] >= 0], minlength=5)
        assert np.ptp(count) <= 1
    counts = (parts >= 0).sum(1)
    observed = np.isfinite(X).sum(1)
    assert (counts == np.isfinite(X[:, :4]).sum(1))[observed > 1].all()
    np.testing.assert_array_equal(
        parts, patterns.parts_like_missing(X, 5, random_state=0)
    )
    # A hole, at other places.
    X = rng.randn(60, 40)
    X[10:20, 5:15] = np.nan
    parts = patterns.parts_like_missing(X, 4, random_state=0)
    assert (parts[np.isnan(X)] == -1).all()
    for k in range(4):
        hidden = parts == k
        assert (hidden[1:] & hidden[:-1]).sum() > 0.7 * hidden.sum() > 0
    assert (patterns.parts_like_missing([[1.0, np.nan]]) == -1).all()
    with pytest.raises(ValueError, match="n_parts must be at least 2"):
        patterns.parts_like_missing(X, 1)


def test_columns_that_are_missing_together_are_held_out_together():
    rng = np.random.RandomState(0)
    X = rng.randn(300, 6)
    X[:, 5] = X[:, 4] + 0.1 * rng.randn(300)
    pairs = rng.rand(300) < 0.3
    X[rng.rand(300) < 0.2, 0] = np.nan
    truth = X.copy()
    X[np.ix_(pairs, [4, 5])] = np.nan
    parts = patterns.parts_like_missing(X, 5, random_state=0)
    np.testing.assert_array_equal(parts[~pairs, 4], parts[~pairs, 5])
    assert (parts[:, [4, 5, 0]] >= 0).sum() == np.isfinite(X[:, [4, 5, 0]]).sum()
    hidden = patterns.like_missing(X, 0.1, random_state=0)
    assert 0.07 < hidden.sum() / np.isfinite(X).sum() < 0.11
    # Of five observed cells of a row, one is always spared.
    assert (hidden[:, 4] & hidden[:, 5]).sum() > 0.7 * hidden[:, 4:].any(1).sum()
    # Each of the two would be known almost exactly if only the other one were missing.
    candidates = {"svd": SVDCompleter(1), "mean": MeanCompleter()}
    stack = AutoCompleter(candidates, random_state=0).fit(X)
    std = np.sqrt(np.square(stack.predict_std(X)[pairs, 4:]).mean())
    error = np.sqrt(np.square((stack.transform(X) - truth)[pairs, 4:]).mean())
    assert 0.8 < std / error < 1.25
    # A block of the last columns is hidden in the other rows, at any size.
    X = rng.randn(39, 31)
    X[3, 19:] = np.nan
    parts = patterns.parts_like_missing(X, 8, random_state=0)
    assert (parts[:, :19] == -1).all() and (parts[3] == -1).all()
    assert (np.delete(parts, 3, 0)[:, 19:].std(1) == 0).all()
    # As an outage of one sensor, it is moved along its own times, and to others' last.
    parts = patterns.parts_like_missing(X.T, 8, random_state=0)
    assert (parts[19:] >= 0).mean() > 0.8
    others = np.delete(parts, 3, 1)
    assert (others[19:] == others[19]).all() and (others[:19] == -1).all()


def test_too_few_cells_for_a_comparison():
    auto = AutoCompleter(random_state=0).fit([[1.0, 2.0]])
    assert auto.weights_ == {"mean": 1.0}
    assert auto.verdict_.startswith("mean alone, as no cells")
    assert np.isnan(auto.leaderboard_["error"]).all()
    np.testing.assert_array_equal(auto.transform([[np.nan, 2.0]]), [[1.0, 2.0]])


def test_failures_are_rows_of_the_leaderboard(matrix):
    _, X = matrix
    candidates = {
        "broken": Broken(),
        "refuses": SVDCompleter(rank=99),
        "mean": MeanCompleter(),
    }
    auto = AutoCompleter(candidates, random_state=0).fit(X)
    table = board(auto)
    assert "LinAlgError('singular')" in table.loc["broken", "status"]
    assert "rank=99 is above" in table.loc["refuses", "status"]
    assert auto.weights_ == {"mean": 1.0}
    with pytest.raises(ValueError, match="None of the candidates could be fitted: bro"):
        AutoCompleter({"broken": Broken()}).fit(X)


def test_units_of_columns_do_not_matter(matrix):
    _, X = matrix
    units = 10.0 ** np.arange(-3, 3).repeat(5)
    auto = AutoCompleter(("mean", "knn", "svd"), random_state=0)
    a = clone(auto).fit(X * units)
    b = clone(auto).fit(X * units * 7 + 100 * units)
    np.testing.assert_allclose(board(a)["error"], board(b)["error"], rtol=1e-6)
    np.testing.assert_allclose(
        b.transform(X * units * 7 + 100 * units),
        a.transform(X * units) * 7 + 100 * units,
    )
    # Without scaling, KNN would look at the columns of large units only.
    assert board(a).loc["knn", "error"] < 0.9


def test_imputers_of_scikit_learn(matrix):
    truth, X = matrix
    candidates = {"mean": SimpleImputer(), "knn": KNNImputer(n_neighbors=3)}
    auto = AutoCompleter(candidates, scaling=None, random_state=0)
    completed = auto.fit_transform(X)
    assert auto.weights_.keys() == {"knn"}
    np.testing.assert_allclose(
        completed, KNNImputer(n_neighbors=3).fit_transform(X.filled(np.nan))
    )
    assert rmse(completed, truth, X.mask) < 1
    again = pickle.loads(pickle.dumps(auto))
    np.testing.assert_array_equal(again.transform(X), completed)
    assert again.verdict_ == auto.verdict_


def test_invalid_candidates_are_refused(matrix):
    _, X = matrix
    with pytest.raises(
        ValueError, match=r"candidates contains 'kNN'; .* names are \['air'"
    ):
        AutoCompleter(("mean", "kNN")).fit(X)
    with pytest.raises(ValueError, match="candidates is empty"):
        AutoCompleter({}).fit(X)


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


def test_data_frames_as_output_of_imputers(matrix):
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

    def _fit_cells(self, given, y=None):
        if np.isnan(given.matrix).mean() < 0.25:
            raise MemoryError("all are too many")
        return super()._fit_cells(given, y)


def test_a_failed_final_fit_keeps_the_first_fit(matrix):
    _, X = matrix
    auto = AutoCompleter({"f": FailsOnAll(rank=3)}, random_state=0).fit(X)
    assert np.isfinite(auto.transform(X)).all()


class Wider(SimpleImputer):
    """An imputer that appends a column."""

    def transform(self, X):
        return np.column_stack([super().transform(X), np.zeros(len(X))])


def test_with_too_few_cells_the_first_successful_candidate_is_used():
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    wide = Wider()
    auto = AutoCompleter({"wide": wide, "m": MeanCompleter()}, random_state=0).fit(X)
    assert auto.weights_ == {"m": 1.0}
    assert "matrix of shape (2, 3)" in board(auto).loc["wide", "status"]
    with pytest.raises(
        ValueError, match="None of the candidates could be fitted: wide"
    ):
        AutoCompleter({"wide": wide}).fit(X)


def test_empty_columns_do_not_prevent_a_comparison():
    rng = np.random.RandomState(0)
    X = np.c_[rng.randn(40, 2) @ rng.randn(2, 6), np.full(40, np.nan)]
    hidden = patterns.like_missing(X, 0.1, random_state=0)
    assert 15 < hidden.sum() < 35 and not hidden[:, 6].any()
    assert not patterns.like_missing(np.full((3, 3), np.nan)).any()


def test_foreign_estimators_in_a_checkpoint(matrix, tmp_path):
    _, X = matrix
    imputer = SimpleImputer(keep_empty_features=True)
    with checkpoint(tmp_path / "fit"):
        AutoCompleter({"s": imputer}, random_state=0).fit(X)


def test_intervals_contain_hidden_cells():
    """This holds in different units, for fitted and new rows, and for tables."""
    rng = np.random.RandomState(0)
    truth = low_rank(240, 8) + 0.3 * rng.randn(240, 8)
    truth = 50 + truth * np.array([1, 1, 10, 10, 100, 100, 1, 1])
    hidden = rng.rand(240, 8) < 0.25
    X = np.where(hidden, np.nan, truth)
    auto = AutoCompleter(["mean", "svd", "gaussian"], random_state=0).fit(X[:200])
    for rows, least in ((slice(200), 0.84), (slice(200, 240), 0.78)):
        low, high = auto.predict_interval(X[rows], 0.9)
        std, missing = auto.predict_std(X[rows]), hidden[rows]
        assert (std[~missing] == 0).all() and (std[missing] > 0).all()
        assert (low[~missing] == X[rows][~missing]).all()
        inside = (low <= truth[rows]) & (truth[rows] <= high)
        assert least < inside[missing].mean() < 0.97
    wide, narrow = (np.subtract(*auto.predict_interval(X, q)) for q in (0.9, 0.5))
    assert (wide <= narrow).all() and (wide < narrow)[hidden].all()
    frame = pd.DataFrame(X[:200], columns=list("abcdefgh"))
    frame["sign"] = np.where(truth[:200, 0] > 50, "up", "down")
    frame.loc[::7, "sign"] = None
    inner = AutoCompleter(["mean", "svd"], random_state=0)
    table = MixedCompleter(inner).fit(frame)
    low, high = (end.iloc[:, :8].to_numpy() for end in table.predict_interval(frame))
    assert np.isnan(table.predict_std(frame)["sign"]).all()
    inside = (low <= truth[:200]) & (high >= low)
    assert inside[hidden[:200]].mean() > 0.9
    with pytest.raises(ValueError, match="level must lie in"):
        auto.predict_interval(X, 1.0)
    draws = auto.sample(X, 40, random_state=0)
    np.testing.assert_array_equal(draws[:, ~hidden], np.tile(X[~hidden], (40, 1)))
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    assert 0.78 < ((low <= truth) & (truth <= high))[hidden].mean() < 0.97
    draws = table.sample(frame, 2, random_state=0)
    for draw in draws:
        assert draw.notna().all().all() and set(draw["sign"]) == {"up", "down"}
    assert not draws[0].equals(draws[1])
    nothing = AutoCompleter(["mean"], random_state=0).fit(np.ones((2, 1)))
    with pytest.raises(ValueError, match="too few cells to hold any out"):
        nothing.sample([[np.nan]])


@pytest.fixture(scope="module")
def described():
    """Rows and columns whose factors follow from their features; some have no cell."""
    rng = np.random.RandomState(0)
    R, F = rng.randn(40, 3), rng.randn(30, 3)
    F /= np.linalg.norm(F, axis=1, keepdims=True)  # columns of one unit
    truth = R @ F.T + 0.1 * rng.randn(40, 30)
    X = np.where(rng.rand(40, 30) < 0.3, np.nan, truth)
    X[:, :4], X[5:8] = np.nan, np.nan
    return truth, X, {"row_features": R, "col_features": F}


@pytest.mark.long
def test_candidates_are_tried_with_and_without_features(described):
    truth, X, known = described
    completer = AutoCompleter(sides(), random_state=0)
    with pytest.warns(UserWarning, match="no observed cell"):
        plain = completer.fit(X).reconstruction_
    whole = completer.fit(X, **known).reconstruction_
    tried = set(completer.leaderboard_["candidate"])
    assert tried == {"mean", "factorization", "factorization-informed"}
    assert completer.weights_["factorization-informed"] > 0.5

    def off(found, *cells):
        return np.abs(found - truth)[cells].mean()

    warm, cold = slice(8, None), slice(None, 4)
    assert off(whole, warm, cold) < 0.5 * off(plain, warm, cold)
    assert off(whole, slice(5, 8), cold) < 0.5 * off(plain, slice(5, 8), cold)
    assert off(whole, slice(5, 8), warm) < 0.5 * off(plain, slice(5, 8), warm)
    missing = np.isnan(X)
    np.testing.assert_array_equal(completer.transform(X)[missing], whole[missing])
    found = completer.predict_entries([5, 6, 20], [9, 9, 0])
    np.testing.assert_array_equal(found, whole[[5, 6, 20], [9, 9, 0]])
    again = pickle.loads(pickle.dumps(completer))
    np.testing.assert_array_equal(again.transform(X), completer.transform(X))
    # Other matrices hold rows of which nothing is known.
    empty = completer.transform(np.full((1, 30), np.nan))[0, 4:]
    np.testing.assert_allclose(empty, np.nanmean(X[:, 4:], 0))


def test_candidates_without_features_are_tried_once(described):
    _, X, known = described
    completer = AutoCompleter(["mean", "knn"], random_state=0)
    with pytest.warns(UserWarning, match="no observed cell"):
        expected = completer.fit(X).reconstruction_
    own = {"mine": SimpleImputer(keep_empty_features=True)}
    for chosen in (completer, AutoCompleter(own, random_state=0)):
        with pytest.warns(UserWarning, match="None of the candidates takes row_feat"):
            chosen.fit(X, **known)
    # Described columns are completed by the candidates, empty ones are 0.
    seen = ~np.isnan(X).all(0)
    np.testing.assert_allclose(completer.reconstruction_[:, seen], expected[:, seen])


@pytest.mark.long
def test_samples_of_rows_have_their_own_features(described, monkeypatch):
    _, X, known = described
    seen = []
    fit = FactorizationCompleter.fit

    @functools.wraps(fit)
    def spied(self, cells, *args, **given):
        if "row_features" in given:
            seen.append((cells, given["row_features"], given["row_graph"]))
        return fit(self, cells, *args, **given)

    monkeypatch.setattr(FactorizationCompleter, "fit", spied)
    monkeypatch.setattr(completer_module, "MAX_ROWS", 25)
    graph = np.add.outer(np.arange(40.0), np.arange(40.0))
    one = FactorizationCompleter(3, lambda_ridge=0.1, lambda_side=0.3)
    completer = AutoCompleter({"one": one}, random_state=0)
    completer.fit(X, **known, row_graph=graph)
    assert {len(features) for _, features, _ in seen} == {25, 40}
    for _, features, part in seen:
        rows = [
            int(np.flatnonzero((known["row_features"] == f).all(1))[0])
            for f in features
        ]
        own = graph[rows][:, rows] * (1 - np.eye(len(rows)))
        np.testing.assert_array_equal(part.toarray(), own)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"row_features": np.ones((3, 2))},
            "row_features has 3 lines, but there are 40",
        ),
        ({"col_graph": np.triu(np.ones((30, 30)))}, "col_graph is not symmetric"),
        ({"row_graph": -np.ones((40, 40))}, "weights must be finite and at least 0"),
        ({"col_features": [[np.nan]] * 30}, "col_features has missing values"),
    ],
)
def test_bad_features(given, message, described):
    with pytest.raises(ValueError, match=message):
        AutoCompleter(["mean"], random_state=0).fit(described[1], **given)


class OnlyFitted(BaseEstimator):
    """Completes the matrix of its fit, and no other rows."""

    def fit_transform(self, X, y=None):
        return np.where(np.isnan(X), np.nanmean(X, 0), X)


def test_candidates_that_complete_no_other_rows_fail_alone(monkeypatch):
    monkeypatch.setattr(completer_module, "MAX_ROWS", 60)
    X = low_rank(600, 8)
    X[np.random.RandomState(1).rand(600, 8) < 0.2] = np.nan
    found = {"only": OnlyFitted(), "mean": MeanCompleter()}
    auto = AutoCompleter(found, random_state=0).fit(X)
    assert "failed" in board(auto)["status"]["only"]
    assert auto.completers_.keys() == {"mean"}


def test_later_parts_keep_the_prior_that_the_first_one_chose(table, monkeypatch):
    searches = []
    choose = GaussianCompleter._choose

    def counted(self, data, trials):
        searches.append(self.lambda_ridge)
        return choose(self, data, trials)

    monkeypatch.setattr(GaussianCompleter, "_choose", counted)
    AutoCompleter(["gaussian"], random_state=0).fit(table)
    n_parts = len(searches) - 1
    assert n_parts > 1
    assert [k for k, prior in enumerate(searches) if prior == "auto"] == [0, n_parts]


def test_observed_cells_are_predicted_when_they_are_used(table):
    """Those of new rows and of rows of weight 0, too."""
    auto = AutoCompleter(["gaussian", "trees-rounds"], random_state=0)
    weights = np.ones(len(table))
    weights[0] = 0
    auto.fit(table, sample_weight=weights)
    missing = np.isnan(table)
    assert "_whole" not in vars(auto._fitted)
    whole = auto.reconstruction_
    assert np.array_equal(whole[missing], auto.transform(table)[missing])
    assert (whole != table)[~missing].mean() > 0.9
    auto.set_params(keep_observed=False)
    assert np.array_equal(auto.transform(table[:3]), whole[:3])
    new = auto.transform(np.where(missing, np.nan, table + 1))
    assert (new != table + 1)[~missing].mean() > 0.9
    again = pickle.loads(pickle.dumps(auto))
    assert "_whole" not in vars(again._fitted)
    assert np.array_equal(again.reconstruction_, whole)
