"""Implicit feedback, rankings, and weights of cells."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.metrics import ndcg_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold

from skmc import (
    BayesianFactorizationCompleter,
    Entries,
    FactorizationCompleter,
    KNNCompleter,
    metrics,
)
from skmc.model_selection import LeaveLastOut, RankingScorer

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.* no observed cell:UserWarning"),
]


@pytest.fixture
def counts():
    rng = np.random.RandomState(0)
    likes = rng.rand(30, 2) @ rng.rand(2, 20)
    return np.where(likes > rng.rand(30, 20), rng.randint(1, 4, (30, 20)), np.nan)


def implicit(rank=2, **params):
    given = {"alpha": 3.0, "lambda_ridge": 0.02, "random_state": 0}
    return FactorizationCompleter(rank, **{**given, **params})


def test_metrics_agree_with_scikit_learn():
    rng = np.random.RandomState(0)
    X, M = rng.randn(7, 12), (rng.rand(7, 12) < 0.4) * rng.randint(1, 4, (7, 12))
    assert metrics.ndcg_at_k(X, M, 5) == pytest.approx(ndcg_score(M, X, k=5))
    each = [roc_auc_score(m > 0, x) for m, x in zip(M, X, strict=True)]
    assert metrics.auc(X, M) == pytest.approx(np.mean(each))


def test_recall_and_map_of_a_known_ranking():
    X, M = [[9.0, 8, 7, 6, 5], [5, 4, 3, 2, 1]], [[1, 0, 1, 0, 1], [0, 0, 0, 0, 0]]
    assert metrics.recall_at_k(X, M, 3) == pytest.approx(2 / 3)
    assert metrics.map_at_k(X, M, 3) == pytest.approx((1 + 2 / 3) / 3)
    # The first cell is not a candidate.
    cells = np.arange(5) * np.ones((2, 1)) > 0
    assert metrics.recall_at_k(X, M, 3, cells) == pytest.approx(1 / 2)
    assert metrics.map_at_k(X, M, 10, cells) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert metrics.auc(X, M, cells) == pytest.approx(1 / 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"M": [[-1.0, 0.0]]}, "negative gain"),
        ({"M": [[0.0, 0.0]]}, "no row has a ranked cell with a gain"),
        ({"M": [[1.0]]}, "share a shape"),
        ({"X": [[np.nan, 1.0]]}, "X is missing at a ranked cell"),
        ({"k": 0}, "k must be at least 1"),
    ],
)
def test_metrics_refuse(change, message):
    with pytest.raises(ValueError, match=message):
        metrics.ndcg_at_k(**{"X": [[1.0, 2.0]], "M": [[1.0, 0.0]], **change})


@pytest.mark.parametrize("per_cell", [0.0, 0.7])
def test_alpha_minimizes_the_loss_over_all_cells(per_cell, counts):
    params = {"per_cell": per_cell, "lambda_ridge": 0.5 / 20**per_cell}
    params |= {"tol": 1e-9, "max_iter": 3000}
    completer = implicit(**params).fit(counts)
    U, V = completer.row_factors_[:, :2], completer.col_factors_[:, :2]
    R = np.nan_to_num(counts)
    off = (1 + 3 * R) * (U @ V.T - (R > 0))
    for W, others, error, weights in (
        (U, V, off, (1 + 3 * R).sum(1)),
        (V, U, off.T, (1 + 3 * R).sum(0)),
    ):
        penalty = params["lambda_ridge"] * weights[:, None] ** per_cell * W
        assert np.abs(error @ others + penalty).max() < 1e-5
    some = R.any(1)  # other rows have the shares of rows with a count
    assert not some.all()
    expected = np.where(some[:, None], U @ V.T, (R > 0).mean(0))
    np.testing.assert_allclose(completer.reconstruction_, expected, atol=1e-12)
    objective = completer.history_["objective"]
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()
    # A count of zero is no evidence, and new users are folded in.
    zeros = np.where(np.isnan(counts) & (np.arange(20) < 5), 0.0, counts)
    again = implicit(**params).fit(zeros)
    np.testing.assert_allclose(again.reconstruction_, completer.reconstruction_)
    hidden = np.isnan(counts[3])
    folded = completer.transform(counts[[3]])[0]
    np.testing.assert_allclose(folded[hidden], (U @ V.T)[3, hidden], atol=1e-6)


def test_alpha_refuses(counts):
    with pytest.raises(ValueError, match="rank and lambda_ridge must be numbers"):
        FactorizationCompleter(alpha=1.0).fit(counts)
    counts[np.isnan(counts)] = -1
    with pytest.raises(ValueError, match="counts >= 0"):
        implicit().fit(counts)


@pytest.mark.parametrize("metric", metrics.RANKING)
def test_searches_rank_held_out_cells(metric, counts):
    search = GridSearchCV(
        implicit(),
        {"rank": [1, 2]},
        scoring=RankingScorer(metric, k=5),
        cv=KFold(3, shuffle=True, random_state=0),
    )
    search.fit(Entries(counts))
    scores = search.cv_results_["mean_test_score"]
    assert ((scores > 0) & (scores < 1)).all()


def test_scorer_ranks_unseen_columns_only(counts):
    cells = Entries(counts)
    train, test = cells[np.arange(len(cells)) % 4 > 0], cells[::4]
    completer = implicit().fit(train)
    R, seen = completer.reconstruction_, ~np.isnan(train.to_cells())
    M = np.where(np.isnan(test.to_cells()), 0, 1.0)
    users = np.unique(test.rows)
    for metric, function in (
        ("recall", metrics.recall_at_k),
        ("map", metrics.map_at_k),
    ):
        expected = function(R[users], M[users], 3, ~seen[users])
        assert RankingScorer(metric, 3)(completer, test) == pytest.approx(expected)
    bayesian = BayesianFactorizationCompleter(2, n_draws=4, random_state=0).fit(train)
    assert 0 < RankingScorer("auc")(bayesian, test) < 1
    with pytest.raises(ValueError, match="no held-out cell reaches threshold=9"):
        RankingScorer(threshold=9)(completer, test)
    with pytest.raises(TypeError, match="cannot rank"):
        RankingScorer()(KNNCompleter().fit(counts), test)
    with pytest.raises(ValueError, match="metric must be among"):
        RankingScorer("hits")(completer, test)


def test_the_latest_cells_are_held_out():
    rng = np.random.RandomState(0)
    cells = Entries(np.where(rng.rand(9, 8) < 0.5, 1.0, np.nan))
    times = rng.permutation(len(cells))
    splits = list(LeaveLastOut(2, 2).split(cells, groups=times))
    for train, test in splits:
        assert not set(train) & set(test)
        for row in np.unique(cells.rows[test]):
            before, after = (
                times[part[cells.rows[part] == row]] for part in (train, test)
            )
            assert len(before) and before.max() < after.min()
            assert len(after) <= 2
    assert len(splits[0][0]) + len(splits[0][1]) == len(cells)
    assert not set(splits[0][1]) & set(splits[1][1])
    for groups, message in (
        (None, "got None"),
        (times[:3], r"got shape \(3,\)"),
        (np.where(times == 4, np.nan, times), "no time at position"),
    ):
        with pytest.raises(ValueError, match=message):
            list(LeaveLastOut().split(cells, groups=groups))
    with pytest.raises(ValueError, match="no row has"):
        list(LeaveLastOut(9, 2).split(cells, groups=times))


@pytest.fixture
def weighted():
    rng = np.random.RandomState(0)
    X = rng.rand(20, 2) @ rng.rand(2, 12) + 0.1 * rng.randn(20, 12)
    X[rng.rand(20, 12) < 0.3] = np.nan
    return X, rng.randint(0, 3, X.shape).astype(float)


@pytest.mark.parametrize("per_cell", [1.0, 0.5, 0.0])
def test_weights_count_cells(per_cell, weighted):
    """The gradient is that of a loss in which a cell of weight 2 occurs twice."""
    X, w = weighted
    completer = FactorizationCompleter(
        2, lambda_ridge=0.1, biases=None, per_cell=per_cell, tol=1e-10, max_iter=5000
    ).set_params(random_state=0, scaling="global")
    completer.fit(X, cell_weight=w)
    w = np.where(np.isnan(X), 0, w).astype(int)
    twice = np.repeat(X.ravel(), w.ravel())
    Z = (np.nan_to_num(X) - twice.mean()) / twice.std()
    U, V = completer.row_factors_[:, :2], completer.col_factors_[:, :2]
    off = w * (U @ V.T - Z)
    for side, other, error, count in ((U, V, off, w.sum(1)), (V, U, off.T, w.sum(0))):
        grad = error @ other + 0.1 * count[:, None] ** per_cell * side
        assert np.abs(grad).max() < 1e-5


MAKES = {
    "als": lambda: FactorizationCompleter(2, lambda_ridge=0.1, random_state=0),
    "bayesian": lambda: BayesianFactorizationCompleter(2, n_draws=8, random_state=0),
}


@pytest.mark.parametrize("scaling", ["columns", "global"])
def test_only_ratios_of_weights_matter(scaling, weighted):
    """Also if the weights of a column, or of all cells, add up to less than 1."""
    X, w = weighted
    completer = FactorizationCompleter(
        2, lambda_ridge=0.1, scaling=scaling, random_state=0
    )
    expected = completer.fit(X, cell_weight=w).reconstruction_
    found = completer.fit(X, cell_weight=w / 2**12).reconstruction_
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", MAKES)
def test_weight_zero_hides_and_one_changes_nothing(name, weighted):
    X, w = weighted
    make = MAKES[name]
    hidden = make().fit(np.where(w > 0, X, np.nan), cell_weight=w).reconstruction_
    completer = make().fit(X, cell_weight=w)
    np.testing.assert_allclose(completer.reconstruction_, hidden)
    completed = completer.transform(X)
    missing = np.isnan(X)
    np.testing.assert_allclose(completed[missing], hidden[missing])
    ones = make().fit(X, cell_weight=np.ones_like(X)).reconstruction_
    np.testing.assert_allclose(ones, make().fit(X).reconstruction_, rtol=1e-6)
    cells = Entries(X)
    triplets = make().fit(cells, cell_weight=w[cells.rows, cells.cols])
    np.testing.assert_allclose(triplets.reconstruction_, hidden)
    sparse = make().fit(X, cell_weight=sp.csr_array(w)).reconstruction_
    np.testing.assert_allclose(sparse, hidden)


def test_weights_of_bayesian_factors_move_towards_heavy_cells():
    X = np.array([[1.0, 1, 1, 1], [2, 2, 2, 2]]).repeat(10, 0)
    X[0] = [1, 2, 1, 2]
    w = np.ones_like(X)
    w[0] = [50, 0.02, 50, 0.02]
    completer = MAKES["bayesian"]()
    light = completer.fit(X).reconstruction_[0]
    heavy = completer.fit(X, cell_weight=w).reconstruction_[0]
    assert heavy.mean() < light.mean()


def test_a_search_splits_weights_with_the_cells(weighted):
    X, w = weighted
    cells = Entries(X)
    weights = w[cells.rows, cells.cols] + 1
    with sklearn.config_context(enable_metadata_routing=True):
        completer = MAKES["als"]().set_fit_request(cell_weight=True)
        folds = KFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(completer, {"rank": [2]}, cv=folds)
        search.fit(cells, cell_weight=weights)
    expected = MAKES["als"]().fit(cells, cell_weight=weights)
    np.testing.assert_allclose(
        search.best_estimator_.reconstruction_, expected.reconstruction_
    )
    train, test = next(folds.split(cells))
    part = MAKES["als"]().fit(cells[train], cell_weight=weights[train])
    first = search.cv_results_["split0_test_score"][0]
    assert first == pytest.approx(part.score(cells[test]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[:3], r"shape \(3, 12\); it must have the shape of X, \(20, 12\)"),
        (lambda w: w - 5, "weights of observed cells must be finite and at least 0"),
        (lambda w: w * np.nan, "cell_weight is nan at row 0"),
    ],
)
def test_bad_weights(change, message, weighted):
    X, w = weighted
    with pytest.raises(ValueError, match=message):
        MAKES["als"]().fit(X, cell_weight=change(w))
