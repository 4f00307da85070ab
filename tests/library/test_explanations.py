"""Explanations add up to the values that ``transform`` returns."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from stored_ratings import NAMES, films, triplets, users, write

from skmc import (
    AutoCompleter,
    BayesianFactorizationCompleter,
    ChainedCompleter,
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    KNNCompleter,
    MixedCompleter,
    SVDCompleter,
)
from skmc.base import BOUNDS
from skmc.persistence import load, save

pytestmark = pytest.mark.filterwarnings("ignore:.*no observed cell")

CHAINED = ChainedCompleter(n_draws=6, max_iter=4, random_state=0)
BAYESIAN = BayesianFactorizationCompleter(2, n_draws=4, n_burn_in=2, random_state=0)
COMPLETERS = {
    "KNN": KNNCompleter(3),
    "KNN, distance": KNNCompleter(4, weights="distance", scaling=None),
    "KNN, recall": KNNCompleter(3, recall=0.6),
    "KNN, all cells": KNNCompleter(3, recall=0.6, keep_observed=False),
    "KNN, bounds": KNNCompleter(3, min_value=4.8, max_value=5.2),
    "Gaussian": GaussianCompleter(random_state=0),
    "Gaussian, factors": GaussianCompleter(1.0, rank=2, random_state=0),
    "Gaussian, bounds": GaussianCompleter(1.0, max_value=5.0),
    "chained": CHAINED,
    "factorization": FactorizationCompleter(2, lambda_ridge=0.1, random_state=0),
    "factorization, no biases": FactorizationCompleter(
        2, lambda_ridge=0.1, biases=None, per_cell=0.5, random_state=0
    ),
    "Bayesian": BAYESIAN,
    "Bayesian, implicit": clone(BAYESIAN).set_params(
        implicit=True, heteroscedastic=True
    ),
    "stack": AutoCompleter(["mean", "knn", "gaussian", "svd"], random_state=0),
}


def table(dtype=float):
    """Related columns of several units, with a constant one and an empty row."""
    rng = np.random.RandomState(0)
    X = rng.randn(40, 2) @ rng.randn(2, 5) + 0.3 * rng.randn(40, 5) + 5
    X[rng.uniform(size=X.shape) < 0.25] = np.nan
    X[~np.isnan(X[:, 3]), 3] = 2.0
    X[7] = np.nan
    return X.astype(dtype)


def missing(X, n=15):
    place = np.argwhere(np.isnan(X))
    return [tuple(map(int, cell)) for cell in place[:: max(1, len(place) // n)]]


def check_sum(explanation, value, rtol=1e-9):
    amounts = [c.amount for c in explanation.contributions]
    total = explanation.base + sum(amounts)
    assert total == pytest.approx(explanation.value, rel=1e-12, abs=1e-12)
    assert explanation.value == pytest.approx(value, rel=rtol)


@pytest.mark.parametrize("dtype", [float, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("name", COMPLETERS)
def test_contributions_sum_to_the_completed_value(name, dtype):
    """In rows of the fit and in new rows."""
    X, rtol = table(dtype), 1e-9 if dtype is float else 1e-4
    completer = clone(COMPLETERS[name]).fit(X)
    for rows in (X, X[:12] + dtype(0.1)):
        completed = completer.transform(rows)
        for i, j in [*missing(rows), (7, 0), (7, 3)]:
            explanation = completer.explain(rows, i, j)
            assert (explanation.row, explanation.column) == (i, j)
            check_sum(explanation, completed[i, j], rtol)
            if i == 7:  # filled by a mean
                assert {c.label for c in explanation.contributions} <= {BOUNDS}


def test_donors_are_the_nearest_rows_that_have_the_column():
    X = table()
    completer = KNNCompleter(3).fit(X)
    # Constant columns say nothing.
    scaled = (X - np.nanmean(X, 0)) / np.where(np.nanstd(X, 0), np.nanstd(X, 0), np.nan)
    for i, j in missing(X):
        if i == 7 or np.isnan(scaled[:, j]).all():
            continue
        off = np.ma.masked_invalid(scaled - scaled[i])
        squares = np.square(off).mean(1).filled(np.nan) * X.shape[1]
        squares[np.isnan(X[:, j])] = np.nan
        nearest = np.argsort(squares, kind="stable")[:3]
        donors = completer.explain(X, i, j).contributions
        assert [c.position for c in donors] == nearest.tolist()
        np.testing.assert_allclose(
            [c.distance for c in donors], squares[nearest] ** 0.5
        )
        assert [c.cell for c in donors] == X[nearest, j].tolist()
        assert [c.weight for c in donors] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("scaling", [None, "global"])
def test_a_row_that_is_no_donor_does_not_matter(scaling):
    """Nor does the unit without scaling: distances have the unit of the cells."""
    X = table()
    completer = KNNCompleter(2, scaling=scaling, weights="distance").fit(X)
    i, j = missing(X)[0]
    before = completer.explain(X, i, j)
    donors = {c.position for c in before.contributions}
    far = max(range(len(X)), key=lambda k: np.nan_to_num(abs(X[k] - 5)).max())
    assert far not in {*donors, i}
    other = X.copy()
    other[far] += np.sign(other[far] - 5)  # farther
    if scaling is None:
        found = clone(completer).fit(other).explain(other, i, j)
        assert {c.position for c in found.contributions} == donors
        assert found.value == pytest.approx(before.value)
        units = clone(completer).fit(10 * X).explain(10 * X, i, j)
        expected = [10 * c.distance for c in before.contributions]
        assert [c.distance for c in units.contributions] == pytest.approx(expected)
    else:
        found = copy.copy(completer)
        rows = X.copy()
        rows[far] = 0.0  # of the call, not of the fit
        assert found.explain(rows, i, j) == before


@pytest.mark.parametrize("name", ["Gaussian", "Gaussian, factors"])
def test_contributions_are_regression_coefficients_times_deviations(name):
    X = table()
    completer = clone(COMPLETERS[name]).fit(X)
    mean, S = completer.location_, completer.covariance_
    for i, j in missing(X):
        own = np.flatnonzero(~np.isnan(X[i]) & (np.arange(5) != 3))
        if j == 3 or not len(own):
            continue
        explanation = completer.explain(X, i, j)
        slopes = np.linalg.solve(S[np.ix_(own, own)], S[own, j])
        found = {c.position: c for c in explanation.contributions}
        assert explanation.base == pytest.approx(mean[j])
        assert sorted(found) == own.tolist()
        np.testing.assert_allclose([found[k].weight for k in own], slopes)
        amounts = slopes * (X[i] - mean)[own]
        np.testing.assert_allclose([found[k].amount for k in own], amounts)
        sizes = [abs(c.amount) for c in explanation.contributions]
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("name", ["Gaussian", "Gaussian, factors"])
def test_the_unit_of_a_column_changes_nothing_else(name):
    X, units = table(), np.array([1, 1000, 0.1, 1, 1])
    one, other = (clone(COMPLETERS[name]).fit(Y) for Y in (X, X * units))
    for i, j in missing(X):
        a, b = one.explain(X, i, j), other.explain(X * units, i, j)
        assert [c.position for c in a.contributions] == [
            c.position for c in b.contributions
        ]
        found = [c.amount / units[j] for c in b.contributions]
        np.testing.assert_allclose(found, [c.amount for c in a.contributions], 1e-6)
        assert b.base == pytest.approx(units[j] * a.base)


def test_weights_of_chained_donors_are_shares():
    X = table()
    completer = clone(CHAINED).fit(X)
    for i, j in missing(X):
        if i == 7 or j == 3:
            continue
        *donors, linear = completer.explain(X, i, j).contributions
        assert linear.label == "linear part" and linear.position == -1
        assert sum(c.weight for c in donors) == pytest.approx(1)
        assert all(X[c.position, j] == c.cell for c in donors)
        weights = [c.weight for c in donors]
        assert weights == sorted(weights, reverse=True) and weights[-1] > 0


def test_members_have_the_weights_of_the_column():
    X = table()
    completer = clone(COMPLETERS["stack"]).fit(X)
    i, j = missing(X)[0]
    members = completer.explain(X, i, j).contributions
    weights = {name: w[j] for name, w in completer.column_weights_.items() if w[j]}
    assert {c.label: c.weight for c in members} == weights


def test_cells_of_the_fit_need_not_be_passed_again():
    X = table()
    for name in ("factorization", "Bayesian"):
        completer = clone(COMPLETERS[name]).fit(X)
        for i, j in missing(X):
            expected = completer.explain(X, i, j)
            assert completer.explain(None, i, j).value == pytest.approx(expected.value)
            cells = {int(k): X[i, k] for k in np.flatnonzero(~np.isnan(X[i]))}
            if cells:
                found = completer.explain(cells, 0, j)
                assert found.value == pytest.approx(expected.value)


def test_features_of_a_row_are_a_contribution_of_their_own():
    X, rng = table(), np.random.RandomState(1)
    known = {"row_features": rng.randn(40, 3)}
    for completer in (
        FactorizationCompleter(2, lambda_ridge=0.1, lambda_side=0.1, random_state=0),
        clone(BAYESIAN),
    ):
        completed = completer.fit(X, **known).transform(X)
        for i, j in missing(X):
            explanation = completer.explain(X, i, j)
            check_sum(explanation, completed[i, j], 1e-7)
            labels = [c.label for c in explanation.contributions]
            assert ("features and graph of the row" in labels) == (j != 3)


def test_a_stack_does_not_explain_values_from_features():
    X, rng = table(), np.random.RandomState(1)
    factors = FactorizationCompleter(2, lambda_ridge=0.1, lambda_side=0.1)
    stack = AutoCompleter({"factors": factors}, random_state=0)
    stack.fit(X, row_features=rng.randn(40, 3))
    with pytest.raises(ValueError, match="Row 7 has no observed cell"):
        stack.explain(X, 7, 0)
    i, j = missing(X)[0]
    check_sum(stack.explain(X, i, j), stack.transform(X)[i, j])


@pytest.mark.parametrize("name", ["factorization", "Bayesian"])
def test_ratings_in_files(name, tmp_path):
    rows, cols, values = triplets()
    write(tmp_path / "ratings", rows, cols, values)
    stored = Entries.from_parquet(tmp_path / "ratings", *NAMES)
    completer = clone(COMPLETERS[name]).fit(stored)
    known = set(zip(rows.tolist(), cols.tolist(), strict=True))
    for i, j in [(i, j) for i in range(4) for j in range(6) if (i, j) not in known]:
        user, film = users([i])[0], int(films(j))
        explanation = completer.explain(None, user, film)
        check_sum(explanation, completer.predict_entries([user], [film])[0], 1e-6)
        own = {c.label: c.cell for c in explanation.contributions}
        expected = zip(films(cols[rows == i]).tolist(), values[rows == i], strict=True)
        assert own == pytest.approx(dict(expected))


def test_weights_of_cells_are_not_kept():
    X = table()
    weight = np.random.RandomState(0).uniform(0.5, 2, X.shape)
    completer = FactorizationCompleter(2, lambda_ridge=0.1).fit(X, cell_weight=weight)
    i, j = missing(X)[0]
    for rows in (X, None):
        with pytest.raises(ValueError, match="fit without cell_weight"):
            completer.explain(rows, i, j)
    bayesian = clone(BAYESIAN).fit(X, cell_weight=weight)
    check_sum(bayesian.explain(X, i, j), bayesian.transform(X)[i, j])


def mixed_table():
    X = table()
    frame = pd.DataFrame(X[:, [0, 1, 2, 4]], columns=list("abcd"))
    frame["b"] = (10 * frame["b"]).round()
    kind = np.where(np.nan_to_num(X[:, 0]) > 5, "high", "low").astype(object)
    kind[::9] = None
    frame["kind"] = kind
    frame.index = [f"row {k}" for k in range(len(frame))]
    return frame.drop(index="row 7")


@pytest.mark.parametrize(
    "inner",
    [GaussianCompleter(1.0), KNNCompleter(3), COMPLETERS["factorization"]],
    ids=lambda c: type(c).__name__,
)
@pytest.mark.parametrize("words", [True, False], ids=["words", "numbers"])
def test_numbers_of_tables(inner, words):
    X = mixed_table() if words else mixed_table().drop(columns="kind")
    completer = MixedCompleter(inner).fit(X)
    completed, columns = completer.transform(X), list(X.columns)
    for name in X.index[:15]:
        for column in "abcd":
            if not np.isnan(X.loc[name, column]):
                continue
            explanation = completer.explain(X, name, column)
            assert (explanation.row, explanation.column) == (name, column)
            check_sum(explanation, completed.loc[name, column])
            for c in explanation.contributions:
                if c.position == -1:
                    continue
                names = X.index if explanation.kind == "rows" else columns
                assert names[c.position] == c.label
                if c.label in list("abcd"):
                    assert c.cell == pytest.approx(X.loc[name, c.label])
                elif explanation.kind == "rows":
                    assert c.cell == pytest.approx(X.loc[c.label, column])


def test_words_and_dates_have_no_explanation():
    X = mixed_table()
    stack = MixedCompleter(AutoCompleter(["mean", "knn"], random_state=0)).fit(X)
    mixed = MixedCompleter(KNNCompleter(), passthrough=["d"]).fit(X)
    row = X.index[X["kind"].isna()][0]
    for completer in (stack, mixed):
        with pytest.raises(ValueError, match="'kind' is categorical: its"):
            completer.explain(X, row, "kind")
    with pytest.raises(ValueError, match="'d' is returned as it is"):
        mixed.explain(X, row, "d")
    row = X.index[X["b"].isna()][0]
    check_sum(stack.explain(X, row, "b"), stack.transform(X).loc[row, "b"])
    assert not hasattr(MixedCompleter(SVDCompleter()), "explain")


def test_names_of_rows_and_columns():
    X = mixed_table()[list("abcd")]
    completer = KNNCompleter(2).fit(X)
    name, column = next(
        (row, c) for row in X.index for c in "abcd" if np.isnan(X.loc[row, c])
    )
    expected = completer.explain(X, name, column)
    labels = [c.label for c in expected.contributions]
    assert (expected.row, expected.column) == (name, column)
    assert set(labels) < set(X.index) and labels[0] in str(expected)
    i, j = X.index.get_loc(name), "abcd".index(column)
    assert completer.explain(X, i, j) == expected
    numbers = X.set_axis(np.arange(len(X))[::-1] + 100)  # labels, not positions
    assert completer.explain(numbers, numbers.index[i], j).value == expected.value
    with pytest.raises(ValueError, match=f"row={i} is not a label"):
        completer.explain(numbers, i, j)
    with pytest.raises(ValueError, match="label of 2 rows"):
        completer.explain(pd.concat([X, X]), name, column)
    pairs = X.set_axis(pd.MultiIndex.from_product([["x"], range(len(X))]))
    found = KNNCompleter(2).fit(pairs).explain(pairs, ("x", i), j)
    assert (found.row, found.value) == (f"('x', {i})", expected.value)
    plain = KNNCompleter(2).fit(X.to_numpy()).explain(X.to_numpy(), i, j)
    assert [c.label for c in plain.contributions] == [
        c.position for c in expected.contributions
    ]


def test_identifiers_of_entries():
    rows, cols = np.array(["ann", "bob", "cid"]), np.array(["x", "y", "z"])
    X = np.array([[1.0, 2, np.nan], [2, 3, 4], [4, 1, 1]])
    i, j = np.nonzero(~np.isnan(X))
    frame = {"who": rows[i], "what": cols[j], "value": X[i, j]}
    cells = Entries.from_frame(frame, "who", "what", "value")
    for completer in (KNNCompleter(1), FactorizationCompleter(1, lambda_ridge=0.1)):
        explanation = completer.fit(cells).explain(cells, "ann", "z")
        assert (explanation.row, explanation.column) == ("ann", "z")
        labels = {c.label for c in explanation.contributions}
        assert labels == ({"bob"} if explanation.kind == "rows" else {"x", "y"})
        for row, column in (("dan", "z"), ("ann", "w")):
            with pytest.raises(ValueError, match=r"dan|'w'"):
                completer.explain(cells, row, column)


@pytest.mark.parametrize("name", ["KNN", "Gaussian", "factorization", "stack"])
def test_cells_that_cannot_be_explained(name):
    X = table()
    with pytest.raises(NotFittedError):
        clone(COMPLETERS[name]).explain(X, 0, 0)
    completer = clone(COMPLETERS[name]).fit(X)
    i, j = np.argwhere(~np.isnan(X))[0]
    with pytest.raises(ValueError, match="is observed at row"):
        completer.explain(X, i, j)
    i, j = missing(X)[0]
    for row in (40, -1, 1.5, "first", True, None):
        with pytest.raises(ValueError, match=f"row={row!r} must be a position"):
            completer.explain(X, row, j)
    for column in (5, -1, "first", None):
        with pytest.raises(ValueError, match=f"column={column!r} is not a column"):
            completer.explain(X, i, column)
    with pytest.raises(ValueError, match="features"):
        completer.explain(X[:, :4], i, j)


def test_a_copula_has_no_contributions():
    X = table()
    completer = GaussianCompleter(1.0, marginals="copula").fit(X)
    with pytest.raises(ValueError, match="needs marginals='normal'"):
        completer.explain(X, *missing(X)[0])


@pytest.mark.parametrize("name", ["KNN", "chained", "Gaussian", "factorization"])
def test_stored_completers_explain_the_same(name, tmp_path):
    X = mixed_table()[list("abcd")]
    completer = clone(COMPLETERS[name]).fit(X)
    save(completer, tmp_path / "completer.skmc")
    i, j = missing(X.to_numpy())[0]
    again = load(tmp_path / "completer.skmc")
    assert again.explain(X, i, j) == completer.explain(X, i, j)


def test_an_explanation_in_words():
    X = table()
    explanation = clone(CHAINED).fit(X).explain(X, *missing(X)[0])
    lines = str(explanation).splitlines()
    assert lines[0].startswith(explanation.title) and "base" in lines[1]
    assert lines[-1].split()[:2] == ["linear", "part"]
    for n in (1, 3, 100):
        parts = explanation.summarized(n)
        assert len(parts) <= n + 2
        total = sum(c.amount for c in parts)
        assert total == pytest.approx(explanation.value - explanation.base)


@pytest.mark.parametrize("name", ["Gaussian", "chained", "stack"])
def test_weights_of_rows_are_those_of_donors(name):
    """Rows of weight 0 are no donors, and are explained like new rows."""
    X, weight = table(), np.random.RandomState(0).randint(0, 4, 40)
    completer = clone(COMPLETERS[name]).fit(X, sample_weight=weight)
    completed = completer.transform(X)
    for i, j in missing(X):
        explanation = completer.explain(X, i, j)
        check_sum(explanation, completed[i, j])
        if explanation.kind == "rows":
            donors = [c.position for c in explanation.contributions]
            assert weight[[k for k in donors if k >= 0]].all()
            shares = [c.weight for c in explanation.contributions if c.position >= 0]
            assert i == 7 or j == 3 or sum(shares) == pytest.approx(1)
