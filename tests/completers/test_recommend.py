"""Lazy predictions, and the best columns of each row."""

from __future__ import annotations

import gc
import pickle
import shutil
import warnings
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import torch
from conftest import low_rank
from scipy.sparse import csr_array
from sklearn.base import clone
from stored_ratings import NAMES, SHAPE, films, triplets, users, write

from skmc import (
    BayesianFactorizationCompleter,
    Entries,
    FactorizationCompleter,
    KNNCompleter,
    MeanCompleter,
    SVDCompleter,
)
from skmc.completers import _recommend
from skmc.persistence import load, save

PARAMS = {"rank": 2, "lambda_ridge": 0.1, "random_state": 0, "device": "cpu"}


@pytest.mark.parametrize("scaling", ["global", "columns"])
@pytest.mark.parametrize("stored", [False, True])
def test_the_best_columns(stored, scaling, tmp_path, monkeypatch):
    monkeypatch.setattr(_recommend, "BLOCK", 7 * SHAPE[1])  # rows come in blocks
    rows, cols, values = triplets()
    cells = Entries.from_triplets(rows, cols, values, SHAPE)
    completer = FactorizationCompleter(**PARAMS, scaling=scaling).fit(cells)
    whole = completer.reconstruction_
    i = np.random.RandomState(0).permutation(SHAPE[0])
    asked, named = i, np.arange(SHAPE[1])
    if stored:
        files = write(tmp_path / "s", rows, cols, values)
        completer.fit(
            Entries.from_parquet(files, *NAMES, folder=tmp_path / "b", block_cells=100)
        )
        asked, named = users(i), films(named)
    items, found = completer.recommend(asked, 4, exclude_seen=False)
    order = np.argsort(-whole[i], axis=1)[:, :4]
    np.testing.assert_array_equal(items, named[order])
    np.testing.assert_allclose(found, np.take_along_axis(whole[i], order, 1), atol=1e-9)
    whole[rows, cols] = -np.inf
    items, found = completer.recommend(asked, SHAPE[1])
    order = np.argsort(-whole[i], axis=1, kind="stable")
    left = np.isfinite(np.take_along_axis(whole[i], order, 1))
    assert (found.mask == ~left).all()
    np.testing.assert_array_equal(items[left], named[order][left])


@pytest.mark.parametrize("n", [1, 2, 7, 60, 601])
@pytest.mark.parametrize("n_cols", [601, 1024])
def test_the_largest_values_are_found_in_groups(n_cols, n):
    """This holds for values in any order, for equal ones, and with few finite ones."""
    values = np.random.RandomState(0).randn(6, n_cols)
    values[1].sort()
    values[2] = values[1][::-1]
    values[3] = 1.0
    values[4, 5:] = -np.inf
    values[5] = values[5].round()
    found, cols = _recommend._top(torch.from_numpy(values), n)
    np.testing.assert_array_equal(found, -np.sort(-values)[:, :n])
    np.testing.assert_array_equal(np.take_along_axis(values, cols.numpy(), 1), found)
    assert all(len(np.unique(row)) == n for row in cols)


def test_errors_of_recommend(tmp_path):
    files = write(tmp_path / "s", *triplets())
    completer = FactorizationCompleter(**PARAMS)
    completer.fit(Entries.from_parquet(files, *NAMES))
    with pytest.warns(UserWarning, match="users: .* was not in the fit"):
        items, _ = completer.recommend(["nobody"], 1, exclude_seen=False)
    assert items[0, 0] == films(completer._priors.col_means.argmax())
    with pytest.raises(ValueError, match="n must be >= 1"):
        completer.recommend(users([1]), 0)
    for none in ([], csr_array((0, SHAPE[1]))):
        found, predicted = completer.recommend(none, 2)
        assert found.shape == predicted.shape == (0, 2)
    assert completer.similar_items([], 3)[0].shape == (0, 3)
    rows, cols, values = triplets()
    completer.fit(Entries.from_triplets(rows, cols, values))
    with pytest.raises(ValueError, match="outside"):
        completer.recommend([SHAPE[0]])


RECOMMENDERS = [
    FactorizationCompleter(**PARAMS),
    FactorizationCompleter(**PARAMS, biases="columns", scaling="columns"),
    BayesianFactorizationCompleter(2, n_draws=5, implicit=True, random_state=0),
]


@pytest.mark.parametrize("completer", RECOMMENDERS)
def test_new_rows_with_the_cells_of_a_row_have_its_recommendations(completer):
    rows, cols, values = triplets()
    frame = pd.DataFrame({"user": users(rows), "film": films(cols), "stars": values})
    completer.fit(Entries.from_frame(frame, *NAMES))
    asked = frame.user.unique()[[3, 1]]
    items, found = completer.recommend(asked, 5)
    shape = (2, SHAPE[1])
    for k, user in enumerate(asked):
        own = frame[frame.user == user]
        ratings = dict(zip(own.film, own.stars, strict=True))
        new = completer.recommend(ratings, 5)
        np.testing.assert_array_equal(new[0], items[[k]])
        np.testing.assert_allclose(new[1], found[[k]])
    # Both at once, in another order of rows and with fewer columns.
    both = frame[frame.user.isin(asked)]
    entries = Entries.from_frame(both, *NAMES)
    order = np.argsort(asked)
    new = completer.recommend(entries, 5, exclude_seen=False)
    again = completer.recommend(entries.ids[0], 5, exclude_seen=False)
    np.testing.assert_array_equal(new[0], again[0])
    place = np.searchsorted(asked, both.user, sorter=order), both.film // 10**15
    matrix = csr_array((both.stars, place), shape)
    np.testing.assert_array_equal(completer.recommend(matrix, 5)[0], items[order])
    with pytest.warns(UserWarning, match="columns of users: 17 was not in the fit"):
        completer.recommend(ratings | {17: 1.0}, 5)
    with pytest.warns(UserWarning, match="1 new rows without a value in a column of"):
        new = completer.recommend({}, 3)
    if not completer._priors.informed_rows:
        best = films(np.argsort(-completer._priors.col_means)[:3])
        np.testing.assert_array_equal(new[0][0], best)
    with pytest.raises(ValueError, match="users has no value of 17; leave it out"):
        completer.recommend({17: np.nan})
    with pytest.raises(ValueError, match="has no identifiers, unlike the fit"):
        completer.recommend(Entries([[1.0]]))


@pytest.mark.parametrize("named", [False, True])
def test_columns_to_rank_and_to_leave_out(named):
    rows, cols, values = triplets()
    cells = Entries.from_triplets(rows, cols, values, SHAPE)
    of = films if named else np.asarray
    if named:
        frame = {"user": rows, "film": films(cols), "stars": values}
        cells = Entries.from_frame(frame, *NAMES)
    completer = FactorizationCompleter(**PARAMS).fit(cells)
    every = completer.recommend([4, 9], SHAPE[1], exclude_seen=False)[0]
    out, some = of(range(0, 30, 7)), of(range(20))
    for params, kept in (
        ({"exclude": out}, ~np.isin(every, out)),
        ({"among": some}, np.isin(every, some)),
        ({"among": some, "exclude": out}, np.isin(every, np.setdiff1d(some, out))),
    ):
        items, _ = completer.recommend([4, 9], 30, exclude_seen=False, **params)
        for found, expected, chosen in zip(items, every, kept, strict=True):
            np.testing.assert_array_equal(found.compressed(), expected[chosen])
    if not named:
        with pytest.raises(ValueError, match=r"among contains 30 .* outside 0\.\.29"):
            completer.recommend([4], among=[30])
        with pytest.raises(ValueError, match="users has 31 columns, but the fit has 3"):
            completer.recommend(csr_array((1, 31)))


@pytest.fixture
def counts():
    """Counts, of which those of one column are equal; no row is empty."""
    rows, cols, values = triplets()
    values = np.where(cols == 5, 1.0, 1 + np.round(np.abs(values)))
    return rows, cols, values


IMPLICIT = FactorizationCompleter(**PARAMS, alpha=2.0, tol=1e-8, max_iter=500)


def as_array(i, j, x, shape):
    X = np.full(shape, np.nan)
    X[i, j] = x
    return X


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    "container",
    [
        Entries.from_triplets,
        as_array,
        lambda i, j, x, shape: csr_array((x, (i, j)), shape),
        lambda i, j, x, shape: pd.DataFrame(as_array(i, j, x, shape)),
        lambda i, j, x, shape: torch.from_numpy(as_array(i, j, x, shape)),
    ],
)
def test_rows_without_counts_get_popular_columns(container, zeros, counts):
    """Rows of the fit and new rows alike; a count of 0 is no count."""
    rows, cols, values = counts
    share = np.bincount(cols, minlength=SHAPE[1]) / (SHAPE[0] + 1)
    if zeros:
        rows, cols, values = (
            np.append(x, y)
            for x, y in zip((rows, cols, values), (SHAPE[0], 3, 0.0), strict=True)
        )
    X = container(rows, cols, values, (SHAPE[0] + 1, SHAPE[1]))
    with pytest.warns(UserWarning, match="1 row of X has no .* column means fill"):
        completer = clone(IMPLICIT).fit(X)
    popular = np.sort(share)[::-1]
    (items,), (found,) = completer.recommend([SHAPE[0]], SHAPE[1], exclude_seen=False)
    np.testing.assert_allclose(found, popular)
    np.testing.assert_allclose(share[items], popular)
    new = {3: 0.0} if zeros else {}
    with pytest.warns(UserWarning, match="1 new rows without a value in a column of"):
        np.testing.assert_allclose(completer.recommend(new, 4)[1][0], popular[:4])
    cells = np.full((1, SHAPE[1]), np.nan)
    cells[0, list(new)] = 0.0
    row = completer.set_params(keep_observed=False).transform(cells)[0]
    np.testing.assert_allclose(row, share)
    np.testing.assert_allclose(completer.reconstruction_[-1], share)
    np.testing.assert_allclose(completer.predict_entries([60], [7]), share[7])


def test_unknown_names_are_predicted_by_the_shares_of_counts(counts):
    rows, cols, values = counts
    frame = {"user": users(rows), "film": films(cols), "stars": values}
    completer = clone(IMPLICIT).fit(Entries.from_frame(frame, *NAMES))
    with pytest.warns(UserWarning, match="users: .* was not in the fit .* by means"):
        found = completer.recommend(["nobody"], 30)[1][0]
    np.testing.assert_allclose(found, np.sort(np.bincount(cols))[::-1] / SHAPE[0])
    with pytest.warns(UserWarning, match="by means"):
        found = completer.predict_entries(users([4, 4]), [17, films(7)])
    assert found[0] == pytest.approx((rows == 4).sum() / SHAPE[1])


def test_counts_of_a_constant_column_inform_new_rows(counts):
    rows, cols, values = counts
    completer = clone(IMPLICIT).fit(Entries.from_triplets(rows, cols, values, SHAPE))
    once, often = (completer.recommend({5: count}, 1)[1][0, 0] for count in (1, 50))
    assert often > 1.2 * once > 0


@pytest.mark.parametrize("known", [(), ("cell_weight",)])
def test_contributions_of_counts_sum_to_the_prediction(known, counts):
    """And each is what the prediction loses without the confidence in this count."""
    rows, cols, values = counts
    values[::9] = 0.0
    frame = {"user": users(rows), "film": films(cols), "stars": values}
    cells = Entries.from_frame(frame, *NAMES)
    weight = np.random.RandomState(0).uniform(0.5, 2, len(cells))
    completer = clone(IMPLICIT).fit(cells, **dict.fromkeys(known, weight))
    counted = values * weight if known else values
    for row, col in ((4, 7), (30, 0)):
        own = (rows == row) & (counted > 0)
        user, item = users([row])[0], films(col)
        explanation = completer.explain(None, user, item)
        assert (explanation.row, explanation.column) == (user, item)
        by_item = {c.label: c.amount for c in explanation.contributions}
        assert by_item.keys() == set(films(cols[own])) and explanation.base == 0
        value = completer.predict_entries(user, [item])[0]
        assert explanation.value == pytest.approx(value)
        assert sum(by_item.values()) == pytest.approx(value)
        ratings = dict(zip(films(cols[own]), counted[own], strict=True))
        again = completer.explain(ratings, 0, item)
        assert [c.label for c in again.contributions] == list(by_item)
        found = [c.amount for c in again.contributions]
        np.testing.assert_allclose(found, list(by_item.values()))
        counts_of = {c.label: c.cell for c in explanation.contributions}
        assert counts_of == pytest.approx(ratings)
        F = completer.col_factors_[:, :2]
        system = F.T @ F + (F[cols[own]].T * 2 * counted[own]) @ F[cols[own]]
        penalty = 0.1 * (SHAPE[1] + 2 * counted[own].sum())
        w = np.linalg.solve(system + penalty * np.eye(2), F[col])
        each = (1 + 2 * counted[own]) * (F[cols[own]] @ w)
        expected = each[np.argsort(-abs(each), kind="stable")]
        np.testing.assert_allclose(found, expected, atol=1e-9)
    for user, item in (("nobody", films(1)), (users([1])[0], "nothing")):
        with pytest.raises(ValueError, match=r"nobody|nothing"):
            completer.explain(None, user, item)


@pytest.mark.parametrize("completer", [*RECOMMENDERS, IMPLICIT])
def test_similar_rows_are_similar_columns_of_the_transpose(completer, counts):
    """With all filters, on both axes, and by names."""
    rows, cols, values = counts
    values = values + rows % 2  # a constant column has no factors
    frame = {"user": users(rows), "film": films(cols), "stars": values}
    completer.fit(Entries.from_frame(frame, *NAMES))
    rank = completer.rank_
    k = len(completer._fitted.models)
    for method, names, factors in (
        ("similar_users", users(range(SHAPE[0])), completer.row_factors_),
        ("similar_items", films(range(SHAPE[1])), completer.col_factors_),
    ):
        W = np.hstack([part[:, :rank] for part in np.split(factors[:, :-1], k, axis=1)])
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        order = np.argsort(-np.delete(W @ W[8], 8), kind="stable")
        expected = np.delete(names, 8)[order]
        ask = getattr(completer, method)
        (found,), (cosines,) = ask([names[8]], 100)
        np.testing.assert_array_equal(found.compressed(), expected)
        np.testing.assert_allclose(cosines.compressed(), np.sort(W @ W[8])[-2::-1])
        out, some = names[::7], names[:20]
        for params, kept in (
            ({"exclude": out}, ~np.isin(expected, out)),
            ({"among": some}, np.isin(expected, some)),
            (
                {"among": some, "exclude": out},
                np.isin(expected, np.setdiff1d(some, out)),
            ),
        ):
            (found,), _ = ask([names[8]], 100, **params)
            np.testing.assert_array_equal(found.compressed(), expected[kept])
        with pytest.raises((ValueError, TypeError), match=r"users|items"):
            ask(["nobody"])


@pytest.mark.parametrize("completer", RECOMMENDERS)
def test_similar_columns(completer):
    """Cosines are symmetric; no column is similar to itself or to an empty one."""
    rows, cols, values = triplets()
    keep = cols != 11
    shape = (SHAPE[0], SHAPE[1] + 1)
    cells = Entries.from_triplets(rows[keep], cols[keep], values[keep], shape)
    with pytest.warns(UserWarning, match="have no observed cell"):
        completer.fit(cells)
    items, cosines = completer.similar_items(np.arange(shape[1]), 40)
    n, empty = SHAPE[1] - 2, [11, 30]  # similar to a column, and similar to none
    count = np.where(np.isin(np.arange(31), empty), 0, n)
    np.testing.assert_array_equal(cosines.count(1), count)
    whole = np.full((31, 31), np.nan)
    for i, (found, cosine) in enumerate(zip(items, cosines, strict=True)):
        whole[i, found.compressed()] = cosine.compressed()
    np.testing.assert_allclose(whole, whole.T, atol=1e-12)
    assert np.isnan(np.diag(whole)).all() and np.isnan(whole[:, empty]).all()
    assert (np.diff(cosines[0].compressed()) <= 0).all()
    if isinstance(completer, FactorizationCompleter):
        V = np.delete(completer.col_factors_[:, :2], empty, 0)
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        found = np.delete(np.delete(whole, empty, 0), empty, 1)
        off = ~np.eye(len(V), dtype=bool)
        np.testing.assert_allclose(found[off], (V @ V.T)[off], atol=1e-9)
    with pytest.raises(ValueError, match="items contains 31"):
        completer.similar_items([31])


def test_the_cells_of_a_fit_exist_as_long_as_the_completer(tmp_path):
    """Without files and folder, answers are those of a fit in memory."""
    rows, cols, values = triplets()
    files = write(tmp_path / "s", rows, cols, values)
    frame = pd.DataFrame({"user": users(rows), "film": films(cols), "stars": values})
    expected = FactorizationCompleter(**PARAMS).fit(Entries.from_frame(frame, *NAMES))
    ratings = Entries.from_parquet(files, *NAMES, block_cells=200)
    completer = FactorizationCompleter(**PARAMS).fit(ratings)
    blocks = Path(completer._fitted.seen.folder)
    shutil.rmtree(files)
    del ratings
    gc.collect()
    asked = users(range(SHAPE[0]))
    np.testing.assert_array_equal(
        completer.recommend(asked, 5)[0], expected.recommend(asked, 5)[0]
    )
    save(completer, tmp_path / "als.skmc")
    copies = load(tmp_path / "als.skmc"), pickle.loads(pickle.dumps(completer))
    assert copies[0].recommend(asked, 1)[0].count() == len(asked)
    more = frame.head(90).assign(stars=frame.stars + 1)
    more.loc[0, "user"] = "new"
    for each in (completer, expected):
        each.partial_fit(Entries.from_frame(more, *NAMES))
    np.testing.assert_allclose(
        completer.reconstruction_, expected.reconstruction_, atol=1e-9
    )
    gc.collect()
    assert not blocks.exists()
    for copy in copies:
        with pytest.raises(FileNotFoundError, match="with a folder of their own"):
            copy.recommend(asked)


@pytest.mark.parametrize(
    "completer",
    [
        MeanCompleter(),
        KNNCompleter(),
        SVDCompleter(rank=2),
        FactorizationCompleter(**PARAMS),
    ],
)
def test_transform_of_dask_collections(completer):
    """Nothing is computed before its turn; columns have names."""
    X = low_rank(24, 8)
    X[np.random.RandomState(0).rand(*X.shape) < 0.2] = np.nan
    frame = pd.DataFrame(X, columns=list("abcdefgh"), index=range(100, 124))
    with warnings.catch_warnings(action="ignore"):
        completer.fit(frame)
        expected = completer.transform(frame)
        lazy = completer.transform(dd.from_pandas(frame, npartitions=3))
        assert list(lazy.columns) == list("abcdefgh")
        found = lazy.compute(scheduler="synchronous")
        pd.testing.assert_index_equal(found.index, frame.index)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        completer.fit(X)
        lazy = completer.transform(da.from_array(X, chunks=(10, 5)))
        assert lazy.shape == X.shape
        found = lazy.compute(scheduler="synchronous")
    np.testing.assert_allclose(found, expected, atol=1e-6)


# Dask itself.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_cells_of_dask_collections(tmp_path):
    rows, cols, values = triplets()
    files = write(tmp_path / "s", rows, cols, values)
    ratings = Entries.from_parquet(files, *NAMES)
    completer = FactorizationCompleter(**PARAMS).fit(ratings)
    expected = completer.predict_entries(users(rows), films(cols))
    frame = dd.read_parquet(files)
    lazy = completer.predict_entries(frame["user"], frame["film"])
    guess = lazy.compute(scheduler="synchronous")
    np.testing.assert_allclose(guess, expected)
    score = -np.abs(guess - values).mean() / np.ptp(values)
    assert completer.score(ratings) == pytest.approx(score)
    from_frame = Entries.from_dask(frame, *NAMES, folder=tmp_path / "b")
    assert completer.score(from_frame) == pytest.approx(score)
    completer.fit(Entries.from_triplets(rows, cols, values))
    lazy = completer.predict_entries(
        da.from_array(rows, chunks=100), da.from_array(cols, chunks=100)
    )
    found = lazy.compute(scheduler="synchronous")
    np.testing.assert_allclose(found, completer.predict_entries(rows, cols))


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_factors_of_rows_are_computed_on_demand(implicit, dtype):
    """From the cells, weights and features of the fit, and equal to those of all."""
    rng = np.random.RandomState(0)
    X = low_rank(40, 12) + 0.3 * rng.randn(40, 12)
    X[rng.rand(40, 12) < 0.4] = np.nan
    X[3] = np.nan
    known = {"row_features": rng.randn(40, 2), "cell_weight": 1 + rng.rand(40, 12)}
    completer = BayesianFactorizationCompleter(
        3, n_draws=8, implicit=implicit, random_state=0
    ).fit(X.astype(dtype), **known)
    whole = completer.reconstruction_
    product = completer.row_factors_ @ completer.col_factors_.T
    tol = {"float64": 1e-9, "float32": 1e-4}[dtype]
    scaled = completer._fitted.scaling.undo(torch.from_numpy(product)).numpy()
    np.testing.assert_allclose(scaled, whole, atol=tol)
    rows, cols = rng.randint(40, size=50), rng.randint(12, size=50)
    found = completer.predict_entries(rows, cols)
    np.testing.assert_allclose(found, whole[rows, cols], atol=tol)
    items, values = completer.recommend([7, 3], 12, exclude_seen=False)
    order = np.argsort(-whole[[7, 3]], 1)
    np.testing.assert_array_equal(items, order)
    expected = np.take_along_axis(whole[[7, 3]], order, 1)
    np.testing.assert_allclose(values, expected, atol=tol)
    again = pickle.loads(pickle.dumps(completer)).reconstruction_
    np.testing.assert_array_equal(again, whole)


@pytest.mark.parametrize("known", [(), ("row_features",)])
@pytest.mark.parametrize("heteroscedastic", [False, True])
def test_deviations_of_single_cells_are_those_of_the_matrix(heteroscedastic, known):
    """In columns of different units, and for rows without a cell."""
    rng = np.random.RandomState(0)
    X = low_rank(40, 12) * np.arange(1, 13) + 0.3 * rng.randn(40, 12)
    X[rng.rand(40, 12) < 0.4] = np.nan
    X[3] = X[:, 5] = np.nan
    completer = BayesianFactorizationCompleter(
        3,
        n_draws=8,
        implicit=True,
        heteroscedastic=heteroscedastic,
        scaling="columns",
        keep_observed=False,
        random_state=0,
    )
    known = {name: rng.randn(40, 2) for name in known}
    with warnings.catch_warnings(action="ignore"):
        dense = completer.fit(X, **known).predict_std(X)
    rows, cols = rng.randint(40, size=90), rng.randint(12, size=90)
    rows[0] = 3
    found = completer.predict_entries_std(rows, cols)
    np.testing.assert_allclose(found, dense[rows, cols], rtol=1e-9)
    assert np.isnan(found[cols == 5]).all() and (found[cols != 5] > 0).all()
    of_row = completer.predict_entries_std(7, range(12))
    np.testing.assert_allclose(of_row, dense[7], rtol=1e-9)


def test_heavier_cells_lower_the_deviation():
    """This holds in each draw for any values."""
    X = low_rank(30, 12) + 0.3 * np.random.RandomState(0).randn(30, 12)
    X[np.random.RandomState(1).rand(30, 12) < 0.4] = np.nan
    completer = BayesianFactorizationCompleter(2, n_draws=1, random_state=0)
    completer.fit(X, cell_weight=np.ones_like(X))
    light = completer.predict_entries_std(4, range(12))
    completer._fitted.weights = 2 * completer._fitted.weights
    assert (completer.predict_entries_std(4, range(12)) < light).all()


def test_a_row_takes_the_memory_of_its_cells():
    X = np.tile(low_rank(20, 10), (40, 1)) + np.random.RandomState(0).randn(800, 10)
    sizes = [
        len(pickle.dumps(BayesianFactorizationCompleter(8, n_draws=20).fit(X[:m])))
        for m in (400, 800)
    ]
    # A value, a column and a start; means and flags of the row.
    assert (sizes[1] - sizes[0]) / 400 < 10 * 12 + 40
