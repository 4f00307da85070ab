"""Properties that LightFM tests: inputs, features, weights, ranks, errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, RandomizedSearchCV

from skmc import BayesianFactorizationCompleter, Entries, FactorizationCompleter
from skmc.metrics import auc, recall_at_k
from skmc.model_selection import CellSplit, RankingScorer

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*no observed cell"
    ),
]
SHAPE = 60, 40
FORMATS = [sp.coo_array, sp.csr_array, sp.csc_array, sp.lil_array, sp.coo_matrix]


def counts(seed=0):
    """Likes of users with four traits of items with the same traits."""
    rng = np.random.RandomState(seed)
    users, items = rng.randint(0, 2, (SHAPE[0], 4)), rng.randint(0, 2, (SHAPE[1], 4))
    odds = 0.02 + 0.5 * (users @ items.T >= 2)
    return (rng.rand(*SHAPE) < odds).astype(float), users, items


def als(rank=4, **params):
    params = {"alpha": 5.0, "lambda_ridge": 0.01, "random_state": 0} | params
    return FactorizationCompleter(rank, **params)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_formats_and_types_of_counts_and_features(kind, dtype):
    likes, users, items = counts()
    known = {"row_features": users, "col_features": items}
    known = {name: kind(x.astype(dtype)) for name, x in known.items()}
    completer = als(max_iter=3, lambda_side=1.0)
    assert completer.fit(kind(likes.astype(dtype)), **known) is completer
    # Sparse features are not centered, so the expected ones are sparse, too.
    precision = "float32" if dtype == "float32" else "float64"
    known = {name: x.tocsr().astype(precision) for name, x in known.items()}
    expected = als(max_iter=3, lambda_side=1.0).fit(
        sp.csr_array(likes.astype(precision)), **known
    )
    found = completer.reconstruction_
    np.testing.assert_allclose(found, expected.reconstruction_, atol=1e-6)


def test_duplicates_of_a_sparse_matrix_are_an_error():
    X = sp.coo_array((np.ones(3), ([0, 0, 1], [1, 1, 2])), shape=(3, 4))
    with pytest.raises(ValueError, match="more than once"):
        als(1).fit(X)


def test_one_user_is_many_cells():
    likes, *_ = counts()
    completer = als().fit(sp.csr_array(likes))
    one = completer.predict_entries(3, np.arange(SHAPE[1]))
    each = completer.predict_entries(np.full(SHAPE[1], 3), np.arange(SHAPE[1]))
    np.testing.assert_array_equal(one, each)
    for wrong in ("foo", 1.5):
        with pytest.raises(TypeError, match="rows must be integers"):
            completer.predict_entries(wrong, np.arange(SHAPE[1]))
    for wrong in (SHAPE[0], 1231241241231241414, -1):
        with pytest.raises(ValueError, match=r"rows contains .* outside"):
            completer.predict_entries(wrong, np.arange(SHAPE[1]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"row_features": np.ones((59, 2))},
            "row_features has 59 lines, but .* 60 rows",
        ),
        (
            {"col_features": np.ones((41, 2))},
            "col_features has 41 lines, but .* 40 col",
        ),
        ({"row_features": np.full((60, 2), np.nan)}, "row_features has missing values"),
        ({"cell_weight": np.ones((2, 2))}, "cell_weight has shape"),
        ({"cell_weight": np.ones(3)}, "cell_weight has shape"),
        ({"X": sp.csr_array(np.full((3, 3), -1.0))}, "counts >= 0"),
        ({"X": sp.csr_array((5, 5))}, "no observed cell"),
        ({"X": np.full((3, 3), np.inf)}, "infinity"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        als(1).fit(**{"X": sp.csr_array(counts()[0]), **change})


@pytest.mark.parametrize(
    "params",
    [{"rank": -1}, {"lambda_ridge": -1.0}, {"alpha": -1.0}, {"lambda_side": -1.0}],
)
def test_bad_parameters(params):
    (name,) = params
    with pytest.raises(ValueError, match=f"The '{name}' parameter of Factorization"):
        als(**params).fit(np.eye(3))
    with pytest.raises(ValueError, match="Invalid parameter 'invalid'"):
        als().set_params(invalid=6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.predict_entries([0], [0]),
        lambda c: c.recommend([0]),
        lambda c: c.similar_items([0]),
        lambda c: c.similar_users([0]),
        lambda c: c.explain(None, 0, 0),
    ],
)
def test_no_answer_before_a_fit(ask):
    with pytest.raises(NotFittedError):
        ask(als())


def test_features_of_other_numbers_are_refused():
    likes, users, _ = counts()
    completer = als(max_iter=5).fit(sp.csr_array(likes), row_features=users)
    with pytest.raises(ValueError, match="row_features has 3 columns, but 4 in fit"):
        completer.transform(sp.csr_array(likes), row_features=users[:, :3])
    with pytest.raises(ValueError, match="row_features is given, but fit had none"):
        als(max_iter=5).fit(likes).transform(likes, row_features=users)


def test_ranks_are_a_permutation_of_the_items():
    likes, *_ = counts()
    completer = als().fit(sp.csr_array(likes))
    items, _ = completer.recommend(range(SHAPE[0]), SHAPE[1], exclude_seen=False)
    assert (np.sort(items, axis=1) == np.arange(SHAPE[1])).all()
    items, _ = completer.recommend(range(SHAPE[0]), SHAPE[1])
    np.testing.assert_array_equal(items.count(1), (likes == 0).sum(1))


def test_equal_scores_are_no_success():
    """Ties count half a success at most: a constant score ranks by chance."""
    relevant = np.eye(20)
    assert auc(np.zeros((20, 20)), relevant) == pytest.approx(0.5)


def test_weights_of_counts():
    """Zero hides a count, and equal weights are those of counts."""
    likes = sp.csr_array(counts()[0])
    cells = Entries(likes)
    weight = np.ones(len(cells))
    plain = als(tol=1e-8).fit(cells).reconstruction_
    same = als(tol=1e-8).fit(cells, cell_weight=weight).reconstruction_
    np.testing.assert_allclose(same, plain, atol=1e-6)
    weight[::3] = 0
    hidden = als(tol=1e-8).fit(cells, cell_weight=weight).reconstruction_
    expected = als(tol=1e-8).fit(cells[weight > 0]).reconstruction_
    np.testing.assert_allclose(hidden, expected, atol=1e-6)


def test_held_out_likes_are_found_and_features_help_cold_users():
    likes, users, items = counts()
    cells = Entries(sp.csr_array(likes))
    train, test = next(CellSplit("mcar", 2, random_state=0).split(cells))
    known = {"row_features": users, "col_features": items}
    M = np.zeros(SHAPE)
    M[cells.rows[test], cells.cols[test]] = 1
    scores = {}
    for name, completer in (
        ("plain", als().fit(cells[train])),
        ("informed", als().fit(cells[train], **known)),
        ("strong", als(lambda_ridge=100.0).fit(cells[train])),
    ):
        X = completer.reconstruction_
        X[cells.rows[train], cells.cols[train]] = -1e3
        scores[name] = auc(X, M)
    assert scores["plain"] > 0.65 and scores["informed"] > scores["plain"]
    cold = Entries.from_triplets(
        *(x[cells.rows < 50] for x in (cells.rows, cells.cols, cells.values)), SHAPE
    )
    X = als(lambda_side=0.1).fit(cold, **known).reconstruction_[50:]
    popular = np.broadcast_to(likes[:50].mean(0), X.shape)
    assert auc(X, likes[50:]) > auc(popular, likes[50:]) + 0.05


@pytest.mark.parametrize(
    "cls", [FactorizationCompleter, BayesianFactorizationCompleter]
)
def test_the_seed_determines_the_fit(cls):
    X = sp.csr_array(counts()[0] * (1 + np.arange(SHAPE[1])))
    params = {"rank": 2, "random_state": 0}
    if cls is FactorizationCompleter:
        params |= {"alpha": 1.0, "lambda_ridge": 0.1, "max_iter": 3}
    first = cls(**params).fit(X)
    again, other = clone(first).fit(X), clone(first).set_params(random_state=1).fit(X)
    np.testing.assert_array_equal(again.col_factors_, first.col_factors_)
    assert not np.allclose(other.col_factors_, first.col_factors_)
    again.fit(X)  # forgets the last fit
    np.testing.assert_array_equal(again.col_factors_, first.col_factors_)


def test_scikit_learn_searches_parameters():
    cells = Entries(sp.csr_array(counts()[0]))
    grid = {"lambda_ridge": [0.001, 0.01, 0.1], "alpha": [1.0, 10.0]}
    cv = KFold(3, shuffle=True, random_state=0)
    search = RandomizedSearchCV(
        als(), grid, n_iter=3, cv=cv, scoring=RankingScorer(), random_state=0
    ).fit(cells)
    assert search.best_score_ > 0.2
    assert 0 <= recall_at_k(search.best_estimator_.reconstruction_, counts()[0], 5) <= 1


def test_two_items_are_enough():
    X = sp.random_array((100, 2), density=0.3, random_state=0)
    assert np.isfinite(als(1).fit(X).reconstruction_).all()
