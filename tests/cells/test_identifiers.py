"""Cells with identifiers, in memory."""

from __future__ import annotations

import uuid
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skmc import (
    AIRCompleter,
    AutoCompleter,
    BayesianFactorizationCompleter,
    Entries,
    FactorizationCompleter,
    IALMCompleter,
    KNNCompleter,
)
from skmc.model_selection import RankingScorer
from skmc.persistence import load, save

NAMES = "user", "film", "stars"


@pytest.fixture
def table():
    """Ratings of 30 users, of which a film and a user have no integers as names."""
    rng = np.random.RandomState(0)
    pairs = rng.permutation(30 * 12)[:240]
    stars = 3 + np.sin(pairs // 12 / 5) * np.cos(pairs % 12 / 3)
    users = [f"u{user}" for user in pairs // 12]
    return pd.DataFrame({"user": users, "film": 100 - pairs % 12, "stars": stars})


def fitted(X, **known):
    completer = FactorizationCompleter(2, lambda_ridge=0.05, random_state=0)
    return completer.fit(X, **known)


def by_position(table):
    """The same cells as positions, and the identifiers of these."""
    users, i = np.unique(table.user, return_inverse=True)
    films, j = np.unique(table.film, return_inverse=True)
    return Entries.from_triplets(i, j, table.stars), users.astype(str), films


@pytest.mark.parametrize(
    "convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, dict]
)
def test_identifiers_are_read_from_any_table(convert, table):
    cells, users, films = by_position(table)
    found = Entries.from_frame(convert(table), *NAMES)
    np.testing.assert_array_equal(found.to_cells(), cells.to_cells())
    np.testing.assert_array_equal(found.ids[0], users)
    np.testing.assert_array_equal(found.ids[1], films)


def test_predictions_equal_those_by_position(table, tmp_path):
    cells, users, films = by_position(table)
    expected, named = fitted(cells), Entries.from_frame(table, *NAMES)
    completer = fitted(named)
    np.testing.assert_array_equal(
        completer.predict_entries(table.user, table.film),
        expected.predict_entries(cells.rows, cells.cols),
    )
    items, values = completer.recommend(["u3", "u17"], 2)
    of_rows = expected.recommend(np.searchsorted(users, ["u3", "u17"]), 2)
    np.testing.assert_array_equal(items, films[of_rows[0]])
    np.testing.assert_array_equal(values, of_rows[1])
    np.testing.assert_array_equal(completer.row_ids_, users)
    for X, same in ((named, cells), (named[:99], cells[:99])):
        assert completer.score(X) == completer.score(same) == expected.score(same)
    rank = RankingScorer(threshold=3.0)
    left = (
        rank(fitted(named[:160]), named[160:]),
        rank(fitted(cells[:160]), cells[160:]),
    )
    assert left[0] == left[1] > 0
    # Only some of the users and films, which have other positions here.
    few = Entries.from_frame(table[table.user.isin(["u9", "u20"])], *NAMES)
    kept = np.isin(users[cells.rows], ["u9", "u20"])
    assert completer.score(few) == pytest.approx(expected.score(cells[kept]))
    save(completer, tmp_path / "fit.skmc")
    again = load(tmp_path / "fit.skmc").predict_entries(["u3"], [95])
    np.testing.assert_array_equal(again, completer.predict_entries(["u3"], [95]))


def test_dense_completers_answer_by_identifiers(table):
    cells, users, _ = by_position(table)
    completer = KNNCompleter().fit(Entries.from_frame(table, *NAMES))
    row = np.searchsorted(users, "u7")
    expected = KNNCompleter().fit(cells).predict_entries([row], [0])
    np.testing.assert_array_equal(completer.predict_entries(["u7"], [89]), expected)


def test_weights_are_a_column(table):
    table["times"] = np.arange(len(table)) % 3
    named = Entries.from_frame(table, *NAMES, weight="times")
    plain = Entries.from_frame(table, *NAMES)
    expected = fitted(plain, cell_weight=table.times.to_numpy(float))
    found = fitted(named)
    np.testing.assert_array_equal(found.row_factors_, expected.row_factors_)
    part = fitted(named[:150]).row_factors_
    weight = table.times.to_numpy(float)[:150]
    np.testing.assert_array_equal(
        part, fitted(plain[:150], cell_weight=weight).row_factors_
    )
    with pytest.raises(ValueError, match="IALMCompleter takes no weights, which X has"):
        IALMCompleter().fit(named)


def test_features_are_found_by_the_index(table):
    _, _, films = by_position(table)
    features = pd.DataFrame(np.random.RandomState(1).randn(12, 2), index=films)
    named = Entries.from_frame(table, *NAMES)
    expected = fitted(named, col_features=features.to_numpy())
    found = fitted(named, col_features=features.sample(frac=1, random_state=0))
    np.testing.assert_array_equal(found.col_factors_, expected.col_factors_)
    with pytest.raises(ValueError, match="col_features has no line for 89; set its"):
        fitted(named, col_features=features[1:])


def side_information(kind, ids, axis):
    """Features or a graph of rows or columns with these names, in any order."""
    ids = np.random.RandomState(2).permutation(ids)
    values = np.random.RandomState(1).rand(len(ids), len(ids))
    if kind == "graph":
        return {f"{axis}_graph": pd.DataFrame(values + values.T, ids, ids)}
    return {f"{axis}_features": pd.DataFrame(values[:, :3], ids)}


def in_order(frame):
    if frame.columns.equals(frame.index):
        frame = frame.sort_index(axis=1)
    return frame.sort_index().to_numpy()


@pytest.mark.parametrize("alpha", [None, 5.0])
@pytest.mark.parametrize("kind", ["features", "graph"])
def test_side_information_brings_rows_and_columns_without_cells(kind, alpha, table):
    """The fit is that of a matrix with empty rows and columns."""
    named = Entries.from_frame(table, *NAMES)
    users = np.sort([*named.ids[0], "a", "u100"])
    films = np.sort([*named.ids[1], 7, 95000])
    known = side_information(kind, users, "row") | side_information(kind, films, "col")
    i, j = np.searchsorted(users, named.labels[0]), np.searchsorted(films, table.film)
    cells = Entries.from_triplets(i, j, table.stars, (len(users), len(films)))
    params = {"alpha": alpha, "lambda_ridge": 0.05, "lambda_side": 1.0}
    completer, expected = (
        FactorizationCompleter(2, **params, random_state=0) for _ in range(2)
    )
    completer.fit(named, **known)
    expected.fit(cells, **{name: in_order(frame) for name, frame in known.items()})
    np.testing.assert_array_equal(completer.row_ids_, users)
    np.testing.assert_array_equal(completer.col_ids_, films)
    np.testing.assert_array_equal(completer.col_factors_, expected.col_factors_)
    asked = np.searchsorted(users, ["u100", "a"])
    for method in ("recommend", "similar_users"):
        found, values = getattr(completer, method)(["u100", "a"], 3)
        positions, same = getattr(expected, method)(asked, 3)
        names = films if method == "recommend" else users
        np.testing.assert_array_equal(found, names[positions])
        np.testing.assert_array_equal(values, same)
    assert completer.score(named) == expected.score(cells)
    whole = expected.transform(cells)
    np.testing.assert_array_equal(completer.transform(named), whole)
    np.testing.assert_array_equal(completer.fit_transform(named, **known), whole)


@pytest.mark.parametrize(
    "completer",
    [AutoCompleter(max_time=5, random_state=0), AIRCompleter(random_state=0)],
)
def test_graphs_bring_rows_without_cells_to_every_completer(completer, table):
    named = Entries.from_frame(table, *NAMES)
    known = side_information("graph", [*named.ids[0], "a"], "row")
    with warnings.catch_warnings(action="ignore"):
        whole = completer.fit(named, **known).reconstruction_
    assert completer.row_ids_[0] == "a" and np.isfinite(whole).all()


def test_side_information_must_have_every_name_once(table):
    named = Entries.from_frame(table, *NAMES)
    features = side_information("features", named.ids[1], "col")["col_features"]
    with pytest.raises(ValueError, match=r"col_features has several lines for \d+; ke"):
        fitted(named, col_features=pd.concat([features, features[3:4]]))
    with pytest.raises(ValueError, match=r"The index of col_features is missing at"):
        fitted(named, col_features=features.rename(index={89: None}))
    graph = side_information("graph", named.ids[1], "col")["col_graph"]
    with pytest.raises(ValueError, match="col_graph must have its index as columns"):
        fitted(named, col_graph=graph.set_axis(range(12), axis=1))


def test_rows_are_completed_by_the_names_of_their_columns(table):
    completer = fitted(Entries.from_frame(table, *NAMES))
    whole = completer.transform(Entries.from_frame(table, *NAMES))
    few = table[(table.user == "u7") & (table.film != 95)]
    new = pd.DataFrame({"user": ["u7"], "film": [7], "stars": [2.0]})
    with pytest.warns(UserWarning, match="columns of X: 7 was not in the fit"):
        (row,) = completer.transform(Entries.from_frame(pd.concat([few, new]), *NAMES))
    of_fit = whole[np.searchsorted(completer.row_ids_, "u7")].copy()
    cells = np.full(12, np.nan)
    cells[np.searchsorted(completer.col_ids_, few.film)] = few.stars
    np.testing.assert_allclose(row, completer.transform(cells[None])[0])
    if not (table[table.user == "u7"].film == 95).any():
        np.testing.assert_allclose(row, of_fit)
    with pytest.raises(
        ValueError, match="X has identifiers, unlike the fit; make both"
    ):
        fitted(by_position(table)[0]).transform(Entries.from_frame(few, *NAMES))


def test_features_of_new_rows_are_found_by_the_index(table):
    named = Entries.from_frame(table, *NAMES)
    known = side_information("features", named.ids[0], "row")
    completer = fitted(named, **known)
    few = Entries.from_frame(table[table.user.isin(["u7", "u20"])], *NAMES)
    features = known["row_features"].loc[["u7", "u20", "u3"]]
    found = completer.transform(few, row_features=features)
    cells = np.full((3, 12), np.nan)  # u20, u3, u7
    places = np.searchsorted(completer.col_ids_, few.labels[1])
    cells[2 * few.rows, places] = few.values
    expected = completer.transform(cells, row_features=in_order(features))
    np.testing.assert_array_equal(found, expected)


def test_more_cells_by_identifiers(table):
    completer = fitted(Entries.from_frame(table, *NAMES))
    before = completer.predict_entries(["u9"], [95])
    more = {"user": ["new", "new", "u9"], "film": [95, 7, 7], "stars": [2.0, 4.0, 4.0]}
    completer.partial_fit(Entries.from_frame(more, *NAMES))
    assert completer.row_ids_[-1] == "new" and completer.col_ids_[-1] == 7
    assert 1.5 < completer.predict_entries(["new"], [95])[0] < 4.5
    np.testing.assert_allclose(completer.predict_entries(["u9"], [95]), before, 0.2)
    assert set(completer.recommend(["new"], 12)[0].compressed()).isdisjoint({95, 7})
    whole = fitted(Entries.from_frame(pd.concat([table, pd.DataFrame(more)]), *NAMES))
    assert set(whole.row_ids_) == set(completer.row_ids_)
    with pytest.raises(ValueError, match=r"have identifiers.*Entries\.from_frame"):
        completer.partial_fit(Entries([[1.0]]))
    with pytest.raises(TypeError, match="Identifiers of X are int64"):
        completer.partial_fit(Entries.from_frame({**more, "user": [1, 2, 3]}, *NAMES))
    with pytest.raises(ValueError, match="but the fit had none"):
        fitted(by_position(table)[0]).partial_fit(Entries.from_frame(more, *NAMES))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user": ["a", None]}, "user is missing at position 1; leave that row out"),
        ({"film": [1.0, np.nan]}, "film is missing at position 1"),
        ({"film": pd.array([1, None], "Int64")}, "film is missing at position 1"),
        ({"stars": [np.nan, 1.0]}, "values contains NaN at position 0"),
        (
            {"user": ["a", "a"], "film": [1, 1]},
            "the cell at row 'a', column 1 comes more",
        ),
    ],
)
def test_missing_identifiers_are_named(change, message):
    table = {"user": ["a", "b"], "film": [1, 2], "stars": [1.0, 2.0]} | change
    with pytest.raises(ValueError, match=message):
        Entries.from_frame(pd.DataFrame(table), *NAMES)


def test_integers_that_pandas_keeps_as_floats():
    table = {"user": [1.0, 2.0], "film": ["x", "y"], "stars": [1.0, 2.0]}
    np.testing.assert_array_equal(Entries.from_frame(table, *NAMES).ids[0], [1, 2])


def test_the_bayesian_factorization_accepts_identifiers(table):
    completer = BayesianFactorizationCompleter(
        2, n_draws=3, n_burn_in=2, random_state=0
    )
    completer.fit(Entries.from_frame(table, *NAMES))
    assert np.isfinite(completer.predict_entries(["u3"], [95])).all()
    with pytest.warns(UserWarning, match="rows: 'nobody' was not in .* has no devia"):
        std = completer.predict_entries_std(["nobody", "u3"], [95, 95])
    assert np.isnan(std[0]) and std[1] > 0


@pytest.mark.parametrize("labels", [["1", 1, 2], [1, "1", 2], ["a", 1, "1"]])
def test_a_text_and_a_number_are_no_common_identifier(labels):
    for column in (labels, np.array(labels, object), pd.Series(labels, dtype=object)):
        table = {"user": column, "film": [1, 2, 3], "stars": [1.0, 2.0, 3.0]}
        with pytest.raises(ValueError, match=r"user has both .*1.* and .*1.*same"):
            Entries.from_frame(table, "user", "film", "stars")


@pytest.mark.parametrize("kind", ["uuid", "bool"])
def test_identifiers_of_other_types_are_found_as_they_were(kind):
    users = {
        "uuid": [uuid.UUID(int=k) for k in range(2)],
        "bool": [True, False],
    }[kind]
    frame = pd.DataFrame(
        {"user": users * 4, "film": [0, 0, 1, 1, 2, 2, 3, 3], "stars": np.arange(8.0)}
    )
    completer = fitted(Entries.from_frame(frame, *NAMES))
    values = completer.predict_entries(users, [1, 1])
    texts = completer.predict_entries([*map(str, users)], [1, 1])
    np.testing.assert_array_equal(values, texts)
    items, _ = completer.recommend(users[:1], 2, exclude_seen=False)
    assert items.shape == (1, 2)
    with pytest.raises(TypeError, match="rows must be integers"):
        fitted(Entries.from_frame(frame, "film", "user", "stars")).predict_entries(
            [True], [users[0]]
        )
