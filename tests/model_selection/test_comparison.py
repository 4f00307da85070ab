"""Splitters of cells, and the comparison that uses them."""

from __future__ import annotations

import functools
import pickle
import re
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import low_rank
from scipy import stats
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold

from skmc import (
    AutoCompleter,
    Entries,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SVDCompleter,
    metrics,
    patterns,
)
from skmc.completers import candidates_for
from skmc.model_selection import (
    METRICS,
    PATTERNS,
    CellSplit,
    ComparisonDisplay,
    compare,
    energy_i_score,
)

matplotlib.use("Agg")


@pytest.fixture
def matrix():
    truth = low_rank(40, 12) + 0.1 * np.random.RandomState(1).randn(40, 12)
    hidden = patterns.random(truth, 0.1, spare=True, random_state=0)
    return np.ma.masked_array(truth, hidden)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_splits(pattern, matrix):
    cells = Entries(matrix)
    split = CellSplit(pattern, n_splits=4, fraction=0.25, random_state=0)
    assert split.get_n_splits() == 4
    seen = list(split.split(matrix))
    for train, test in seen:
        assert len(train) + len(test) == len(cells)
        assert not np.intersect1d(train, test).size
        rel = 0.5 if pattern == "like_missing" else 0.3  # a third of a column at most
        assert len(test) == pytest.approx(0.25 * len(cells), rel=rel)
        rows, cols = cells.rows[test], cells.cols[test]
        if pattern == "rows":
            assert not np.isin(cells.rows[train], rows).any()
        if pattern == "patch":
            box = (np.ptp(rows) + 1) * (np.ptp(cols) + 1)
            assert box == pytest.approx(0.25 * matrix.size, rel=0.3)
        if pattern == "mnar":
            assert cells.values[test].mean() > cells.values[train].mean()
    assert len({tuple(test) for _, test in seen}) == 4
    again = next(split.split(cells))
    np.testing.assert_array_equal(again[1], seen[0][1])


def test_bad_splits(matrix):
    with pytest.raises(ValueError, match="pattern must be one of"):
        next(CellSplit("holes").split(matrix))
    with pytest.raises(ValueError, match=r"fraction must lie in \(0, 1\)"):
        next(CellSplit(fraction=1.0).split(matrix))
    with pytest.raises(ValueError, match=r"holds out 0 of .* change fraction"):
        next(CellSplit(fraction=1e-9).split(matrix))


def test_searches_accept_splits(matrix):
    search = GridSearchCV(
        SVDCompleter(), {"rank": [1, 2, 5]}, cv=CellSplit("patch", random_state=0)
    )
    assert search.fit(Entries(matrix)).best_params_ == {"rank": 2}


def test_comparison_equals_fits_by_hand(matrix):
    completers = {"mean": MeanCompleter(), "svd": SVDCompleter(rank=2)}
    table = compare(completers, matrix, cv=4, metrics=list(METRICS))
    cells = Entries(matrix)
    found = {name: {m: [] for m in METRICS} for name in completers}
    for train, test in CellSplit("mcar", 4, random_state=0).split(cells):
        hidden = np.zeros(matrix.shape, bool)
        hidden[cells.rows[test], cells.cols[test]] = True
        for name, completer in completers.items():
            X = completer.fit(cells[train]).reconstruction_
            for m in METRICS:
                score = getattr(metrics, m)(X, matrix, hidden)
                found[name][m].append(score)
    assert table["completer"].tolist() == ["svd", "mean"] * 4
    for _, row in table.iterrows():
        scores = np.array(found[row["completer"]][row["metric"]])
        assert row["mean"] == pytest.approx(scores.mean())
        assert row["std_error"] == pytest.approx(scores.std(ddof=1) / 2)
        assert row["seconds"] > 0
        assert row["memory_mib"] >= 0
        if row["completer"] == "svd":
            assert np.isnan(row["p_value"])
        else:
            gap = scores - np.array(found["svd"][row["metric"]])
            t = gap.mean() / np.sqrt((1 / 4 + 0.25) * gap.var(ddof=1))
            p = 2 * stats.t(3).sf(t)
            assert row["p_value"] == pytest.approx(p, rel=0.05)


def test_imputers_of_scikit_learn_take_part(matrix):
    table = compare(
        [KNNCompleter(scaling=None), KNNImputer(), MeanCompleter(), SimpleImputer()],
        matrix,
        cv=2,
        patterns=["mar", KFold(3, shuffle=True, random_state=0)],
    ).set_index(["pattern", "completer"])["mean"]
    assert sorted(table.index.unique(0)) == ["KFold", "mar"]
    for pattern in ("mar", "KFold"):
        means = table[pattern]
        assert means["KNNCompleter"] == pytest.approx(means["KNNImputer"])
        assert means["MeanCompleter"] == pytest.approx(means["SimpleImputer"])


def test_the_errors_are_printed_beside_long_names(matrix, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    named = {f"{'a long name ' * 8}{k}": MeanCompleter() for k in range(2)}
    table = compare(named, matrix, cv=2, patterns=["mcar", "patch"])
    lines = str(table).splitlines()
    assert max(map(len, lines[:-1])) <= 80 and "error" in lines[-1]
    for row, line in zip(table.itertuples(), lines[1:], strict=False):
        assert "a long name" in line and f"{row.mean:.4g}" in line
    assert type(table[["mean"]]) is type(pickle.loads(pickle.dumps(table))[["mean"]])


@pytest.mark.repository
def test_the_default_follows_the_guide():
    """On a table of usual size, among the methods that the guide names."""
    found = candidates_for(np.ones((500, 10)), random_state=0)
    assert next(iter(found)) == "mean" and {"gaussian", "copula"} <= set(found)
    tried = {type(one).__name__ for one in found.values()}
    page = (Path(__file__).parents[2] / "docs/choosing.md").read_text()
    row = page.partition("\n| A table |")[2].partition("\n")[0]
    named = set(re.findall(r"`(\w+Completer)", row))
    assert named
    assert named - tried <= {"AutoCompleter", "MixedCompleter"}


class Broken(MeanCompleter):
    def fit(self, X, y=None):
        raise RuntimeError("out of order")


def test_failures_are_in_the_table(matrix):
    table = compare([Broken(), MeanCompleter(), MeanCompleter()], matrix, cv=2)
    assert table["completer"].tolist() == [
        "MeanCompleter",
        "MeanCompleter 2",
        "Broken",
    ]
    assert table["error"].tolist()[2] == "RuntimeError('out of order')"
    assert table["error"].isna().tolist() == [True, True, False]
    assert np.isnan(table["mean"].iloc[2])
    assert np.isnan(table["p_value"].iloc[1])  # the same numbers: nothing to test
    with pytest.raises(ValueError, match="completers is empty"):
        compare([], matrix)
    with pytest.raises(ValueError, match=r"metrics must be among .* got \['r2'\]"):
        compare([MeanCompleter()], matrix, metrics=["r2"])


def test_draws_are_compared_by_their_crps(matrix):
    named = {
        "joint": GaussianCompleter(1.0),
        "wide": Wide(1.0),
        "no draws": MeanCompleter(),
    }
    units = np.array([10.0**k for k in range(12)])
    table = compare(named, matrix * units, cv=2, draws=30).set_index("completer")
    assert table.index.tolist() == ["joint", "wide", "no draws"]
    assert table.loc["no draws", "error"].endswith("it has no method sample')")
    again = compare(named, matrix, cv=2, draws=30)
    assert "in standard deviations" in str(again) and "error: no draws" in str(again)
    again = again.set_index("completer")
    np.testing.assert_allclose(again["mean"], table["mean"], rtol=1e-6)
    cells = Entries(matrix)
    unit = matrix.std(0).data
    scores = []
    for train, test in CellSplit("mcar", 2, random_state=0).split(cells):
        given = cells[train].to_cells()
        draws = named["joint"].fit(given).sample(given, 300, random_state=0)
        hidden = np.zeros(matrix.shape, bool)
        hidden[cells.rows[test], cells.cols[test]] = True
        scores.append(metrics.crps(draws / unit, matrix / unit, hidden))
    assert again.loc["joint", "mean"] == pytest.approx(np.mean(scores), rel=0.05)
    with pytest.raises(ValueError, match="draws must be at least 1, got 0"):
        compare(named, matrix, draws=0)
    with pytest.raises(ValueError, match="metrics of draws must be among"):
        compare(named, matrix, draws=2, metrics=["rmse"])
    with pytest.raises(ValueError, match="MeanCompleter have none"):
        compare([MeanCompleter()], matrix, draws=2)


class Wide(GaussianCompleter):
    """A Gaussian whose draws spread four times as far from their mean."""

    def sample(self, X, n_samples=1, random_state=None):
        draws = super().sample(X, n_samples, random_state)
        return draws.mean(0) + 4 * (draws - draws.mean(0))


def missing_at_random(n_rows=400):
    """Two columns, of which the second is missing where the first is large."""
    rng = np.random.RandomState(0)
    x = rng.randn(n_rows)
    y = x + rng.randn(n_rows)
    y[rng.uniform(size=n_rows) < 1 / (1 + np.exp(-2 * x))] = np.nan
    return np.column_stack([x, y])


def test_energy_i_score_of_the_true_distribution():
    """For draws of a normal distribution its expectation is sigma / sqrt(pi)."""
    X = missing_at_random(4000)
    found = energy_i_score(GaussianCompleter(1.0), X, 50)
    assert found == pytest.approx(1 / np.sqrt(np.pi) / np.nanstd(X[:, 1]), rel=0.03)
    # No column is complete where the second one is observed.
    X[np.isfinite(X[:, 1]).argmax(), 0] = np.nan
    again = energy_i_score(GaussianCompleter(1.0), X, 50)
    assert again == pytest.approx(found, rel=0.01)
    for few in (X[:, 1:], X[:5]):
        with pytest.raises(ValueError, match="needs two columns"):
            energy_i_score(GaussianCompleter(1.0), few)


def test_energy_i_score_weights_columns_by_their_missing_cells():
    X = np.column_stack([missing_at_random(), missing_at_random()[::-1]])
    X[:, [0, 2]] = np.random.RandomState(1).randn(400, 2)
    X[:300, 3] = np.nan
    parts = X[:, [0, 2, 1]], X[:, [0, 2, 3]]
    alone = [energy_i_score(GaussianCompleter(1.0), part, 50) for part in parts]
    share = np.isnan(X[:, [1, 3]]).mean(0)
    expected = np.average(alone, weights=share * (1 - share))
    both = energy_i_score(GaussianCompleter(1.0), X, 50)
    assert both == pytest.approx(expected, rel=0.05)


def test_comparison_by_the_energy_i_score():
    X = missing_at_random()
    named = {
        "wide": Wide(random_state=0),
        "right": GaussianCompleter(random_state=0),
    }
    both = ["energy_i_score", "crps"]
    table = compare(named, X, cv=2, draws=30, metrics=both)
    assert table["pattern"].tolist() == ["mcar", "mcar", "none", "none"]
    assert table["completer"].tolist() == ["right", "wide"] * 2
    assert str(table).count("energy_i_score: CRPS of draws") == 1
    alone = compare(named, X, draws=30, metrics=both[:1])
    np.testing.assert_allclose(alone["mean"], table["mean"][2:], rtol=1e-3)
    with pytest.raises(ValueError, match="must be"):
        words = pd.DataFrame(X).assign(kind=["up", "down"] * 200)
        compare({"mixed": MixedCompleter(Wide())}, words, draws=2, metrics=both)


def test_draws_of_tables_are_compared():
    """Numbers, levels and dates are scored; categories only inform them."""
    rng = np.random.RandomState(0)
    z = rng.randn(150)
    table = pd.DataFrame(
        {
            "x": z,
            "y": 100 * z + 30 * rng.randn(150),
            "day": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(np.rint(50 * z + 10 * rng.randn(150)), unit="D"),
            "kind": np.where(z > 0, "up", "down"),
        }
    )
    table = table.mask(rng.uniform(size=table.shape) < 0.1)
    named = {
        "related": MixedCompleter(GaussianCompleter()),
        "unrelated": MixedCompleter(GaussianCompleter(lambda_ridge=1e9)),
        "no draws": MixedCompleter(SVDCompleter()),
    }
    found = compare(named, table, cv=2, draws=10).set_index("completer")
    assert found.index.tolist() == ["related", "unrelated", "no draws"]
    assert found["mean"].iloc[0] < 0.6 * found["mean"].iloc[1]
    assert "no method sample" in found["error"].iloc[2]


def test_display(matrix):
    display = ComparisonDisplay.from_completers(
        [MeanCompleter(), SVDCompleter(rank=2)],
        matrix,
        cv=3,
        patterns=["mcar", "rows"],
        metrics=["nmae", "rmse"],
    )
    assert display.axes_.shape == (2, 2)
    labels = [tick.get_text() for tick in display.axes_[0, 0].get_yticklabels()]
    assert labels == ["SVDCompleter", "MeanCompleter"]
    matplotlib.pyplot.close(display.figure_)


def test_tables_are_compared_by_cell_errors():
    """Whatever the container; columns that are hard to recognize are completed too."""
    rng = np.random.RandomState(0)
    z = rng.randn(120)
    table = pd.DataFrame(
        {
            "x": z,
            "y": 100 * z + rng.randn(120),
            "code": np.where(z > 0, 7, -999),
            "kind": np.where(z > 0, "up", "down"),
            "empty": "?",
        }
    )
    table.loc[::3, "kind"] = "?"
    table.loc[::10, "code"] = 5
    make = functools.partial(
        MixedCompleter,
        missing_values=["?", 5],
        categorical=["code"],
        keep_empty_features=False,
    )
    named = {
        "SVD": make(SVDCompleter(rank=1)),
        "means": make(MeanCompleter()),
        "stack": make(AutoCompleter(["mean", "svd"], random_state=0)),
        "no table": SVDCompleter(),
    }
    found = compare(named, table, cv=3).set_index("completer")
    errors = found["mean"]
    assert errors["SVD"] < errors["means"] / 2 and errors["stack"] < errors["means"]
    assert np.isnan(errors["no table"]) and "text" in found.loc["no table", "error"]
    first = dict([*named.items()][:2])
    again = compare(first, pl.from_pandas(table), cv=3)["mean"]
    np.testing.assert_array_equal(again, errors[["SVD", "means"]])
    numbers = table[["x", "y", "code"]]  # with a column of categories
    assert compare(first, numbers, cv=2)["error"].isna().all()
    with pytest.raises(ValueError, match=r"metrics must be \['nmae'\]"):
        compare(named, table, metrics=["rmse"])
