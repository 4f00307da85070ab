"""Properties that implicit tests of every recommender, on a checkerboard of likes.

Two things differ: a column is not similar to itself, and there is no update of a fit.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from skmc import FactorizationCompleter
from skmc.metrics import recall_at_k
from skmc.persistence import load, save

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SIZE = 40


def checkerboard():
    """Even users like even items, odd users odd ones, but not that of their number."""
    likes = (np.add.outer(np.arange(SIZE), np.arange(SIZE)) % 2 == 0).astype(float)
    np.fill_diagonal(likes, 0)
    return sp.csr_array(likes)


def als(rank=2, **params):
    params = {"alpha": 5.0, "lambda_ridge": 1e-4, "random_state": 0} | params
    return FactorizationCompleter(rank, **params)


@pytest.fixture(scope="module")
def fitted():
    return als().fit(checkerboard())


def test_the_item_that_was_left_out_is_best(fitted):
    users = np.arange(SIZE)
    items, values = fitted.recommend(users, 1)
    np.testing.assert_array_equal(items[:, 0], users)
    for user in (0, 7):  # one at a time
        one = fitted.recommend([user], 1)
        assert one[0][0, 0] == user
        np.testing.assert_allclose(one[1][0], values[user])
    relevant = np.eye(SIZE)
    seen = checkerboard().toarray() > 0
    ranked = np.where(seen, -np.inf, fitted.reconstruction_)
    assert recall_at_k(np.where(seen, -1e9, ranked), relevant, 1) == 1


def test_more_items_than_there_are_are_masked(fitted):
    items, _ = fitted.recommend([0], 10_000)
    assert set(items[0].compressed()) == {0, *range(1, SIZE, 2)}


@pytest.mark.parametrize("seen", [False, True])
def test_filters(fitted, seen):
    users = np.arange(SIZE)
    items, values = fitted.recommend(users, 5, exclude=[0], exclude_seen=seen)
    assert not (items == 0).any() and (np.diff(values, axis=1) <= 0).all()
    items, _ = fitted.recommend(users, 10, among=range(10), exclude_seen=False)
    assert (np.sort(items, axis=1) == np.arange(10)).all()
    for wrong in (-1, SIZE):
        with pytest.raises(ValueError, match=f"among contains {wrong} .* outside"):
            fitted.recommend([0], among=[1, wrong])


def test_unseen_items_of_the_own_kind_precede_all_others(fitted):
    items, _ = fitted.recommend([0], 6, among=[0, 1, 2, 3, 4, 5], exclude_seen=False)
    assert set(items[0, :3]) == {0, 2, 4}


def test_users_are_recomputed_from_their_counts(fitted):
    likes = checkerboard()
    items, values = fitted.recommend(range(SIZE), 3)
    again, recomputed = fitted.recommend(likes, 3)
    np.testing.assert_array_equal(again[:, 0], items[:, 0])
    np.testing.assert_allclose(recomputed, values, atol=1e-6)


@pytest.mark.parametrize("method", ["similar_items", "similar_users"])
def test_neighbors_are_of_the_same_kind(fitted, method):
    asked = np.arange(SIZE)
    ask = getattr(fitted, method)
    found, cosines = ask(asked, 10)
    assert found.shape == (SIZE, 10) and (found % 2 == asked[:, None] % 2).all()
    assert not (found == asked[:, None]).any()  # unlike in implicit
    assert (cosines > 0.9).all()
    np.testing.assert_allclose(ask([7], 10)[1][0], cosines[7])
    found, _ = ask(asked, 10, exclude=np.arange(0, SIZE, 5))
    assert (found.compressed() % 5 != 0).all()
    found, _ = ask(asked[20:], 10, among=range(10))
    assert (np.sort(found, axis=1) == np.arange(10)).all()


@pytest.mark.filterwarnings("ignore:.*no observed cell")
def test_users_and_items_without_likes_resemble_nothing():
    likes = checkerboard().tolil()
    for k in (12, SIZE - 1):
        likes[k], likes[:, [k]] = 0, 0
    likes = likes.tocsr()
    likes.eliminate_zeros()
    completer = als().fit(likes)
    for method in (completer.similar_items, completer.similar_users):
        found, _ = method(range(11), SIZE)
        assert not np.isin(found.compressed(), [12, SIZE - 1]).any()
    _, values = completer.recommend([12], 3)
    assert np.isfinite(values).all() and (values > 0).all()


@pytest.mark.parametrize("kind", [sp.coo_array, sp.lil_array, sp.csc_array])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_formats_and_types_of_counts(kind, dtype, fitted):
    found = als().fit(kind(checkerboard().astype(dtype)))
    items, _ = found.recommend(range(SIZE), 1)
    np.testing.assert_array_equal(items[:, 0], np.arange(SIZE))


def test_answers_outlive_files(fitted, tmp_path):
    save(fitted, tmp_path / "als.skmc")
    for again in (
        load(tmp_path / "als.skmc"),
        pickle.loads(pickle.dumps(fitted)),
    ):
        for method in ("recommend", "similar_items", "similar_users"):
            expected, found = (getattr(c, method)([0, 3], 5) for c in (fitted, again))
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])
        assert again.explain(None, 0, 0) == fitted.explain(None, 0, 0)
    assert repr(pickle.loads(pickle.dumps(als()))) == repr(als())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_enough_factors_reproduce_binary_counts(dtype):
    likes = np.random.RandomState(0).rand(8, 6) < 0.5
    likes[:, 0] = likes[0] = True
    params = {"alpha": 2.0, "lambda_ridge": 1e-9, "tol": 1e-7, "max_iter": 5000}
    completer = als(6, **params, per_cell=0).fit(sp.csr_array(likes.astype(dtype)))
    np.testing.assert_allclose(completer.reconstruction_, likes, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*no observed cell")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nearly_empty_and_degenerate_counts_give_finite_factors(dtype):
    rng = np.random.RandomState(0)
    few = sp.csr_array(
        (np.ones(5), (rng.randint(60, size=5), rng.randint(50, size=5))), (60, 50)
    )
    triangle = sp.csr_array(np.triu(np.ones((12, 12)), 1) / np.arange(1, 13))
    for counts in (few, triangle, sp.csr_array(np.eye(10))):
        completer = als(8, lambda_ridge=1e-3).fit(counts.astype(dtype))
        for factors in (completer.row_factors_, completer.col_factors_):
            assert np.isfinite(factors).all()
    items, _ = completer.recommend([0], 10, exclude_seen=False)
    assert items[0, 0] == 0  # the only liked one


def test_explanations_name_what_the_user_has(fitted):
    likes = checkerboard()
    own = likes[[5]].nonzero()[1]
    explanation = fitted.explain(None, 5, 5)
    amounts = {c.label: c.amount for c in explanation.contributions}
    assert amounts.keys() == set(own)
    assert explanation.value == pytest.approx(fitted.predict_entries([5], [5])[0])
    again = fitted.explain(dict.fromkeys(own.tolist(), 1.0), 0, 5)
    assert again.value == pytest.approx(explanation.value, abs=1e-6)
