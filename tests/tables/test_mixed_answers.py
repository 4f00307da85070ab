"""Tables: uncertainty, marks of missing cells, and weights of cells."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from skmc import (
    AutoCompleter,
    Entries,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    TreesCompleter,
)
from skmc.exceptions import UnknownCategoriesWarning
from skmc.persistence import load, save
from skmc.tables import drawn_by, source_of

DAY = pd.Timestamp("2020-01-01")
SIZES = ["S", "M", "L", "XL"]


def simulated(n=400):
    """Columns of all kinds that depend on two hidden traits, and missing cells."""
    rng = np.random.RandomState(0)
    Z = rng.randn(n, 2)

    def follow():
        return Z @ rng.randn(2) + 0.4 * rng.randn(n)

    sizes = pd.Categorical.from_codes(np.digitize(follow(), [-1, 0, 1]), SIZES, True)
    truth = pd.DataFrame(
        {
            "grams": 1e4 + 1e3 * follow(),
            "count": np.rint(10 * follow()).astype(int),
            "day": DAY + pd.to_timedelta(np.rint(30 * follow()), unit="D"),
            "size": sizes,
            "kind": np.array(["x", "y", "z"])[np.digitize(follow(), [-0.5, 0.5])],
            "metres": follow(),
        }
    )
    return truth, rng.uniform(size=truth.shape) < 0.2


pytestmark = pytest.mark.filterwarnings("ignore:Rows? .* of X ha")


@pytest.fixture(scope="module")
def table():
    truth, hidden = simulated()
    return truth, hidden, truth.mask(hidden)


def test_tables_of_numbers_have_the_completers_deviations():
    truth, hidden = simulated(80)
    X = truth[["grams", "metres"]].assign(more=truth["grams"] / 7 + truth["metres"])
    X = X.mask(hidden[:, [0, 1, 2]])
    inner = GaussianCompleter(random_state=0).fit(X)
    mixed = MixedCompleter(GaussianCompleter(random_state=0), like_observed=False).fit(
        X
    )
    np.testing.assert_allclose(mixed.predict_std(X), inner.predict_std(X), rtol=1e-9)
    np.testing.assert_allclose(mixed.sample(X, 3, 0), inner.sample(X, 3, 0), rtol=1e-9)
    assert list(mixed.predict_std(X)) == list(X)
    auto = AutoCompleter(["mean", "svd"], random_state=0)
    mixed = MixedCompleter(clone(auto), like_observed=False).fit(X)
    both = zip(
        mixed.predict_interval(X, 0.8),
        auto.fit(X).predict_interval(X, 0.8),
        strict=True,
    )
    for found, expected in both:
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert not hasattr(mixed, "predict_proba")  # there are no categories


def test_methods_depend_on_the_completer():
    names = {"predict_std", "predict_interval", "sample"}
    for inner, can in (
        (SVDCompleter(), set()),
        (GaussianCompleter(), {"predict_std", "sample"}),
        (None, names),
    ):
        assert {n for n in names if hasattr(MixedCompleter(inner), n)} == can
    with pytest.raises(AttributeError, match="has no attribute 'sample'"):
        MixedCompleter(SVDCompleter()).sample([[1.0]])


def test_intervals_contain_hidden_cells(table):
    """They exist for numbers, dates and levels; categories stay missing."""
    truth, hidden, X = table
    completer = MixedCompleter(
        AutoCompleter(["mean", "svd", "gaussian"], random_state=0)
    ).fit(X)
    low, high = completer.predict_interval(X, 0.9)
    inside = []
    for k, name in enumerate(X):
        gone = hidden[:, k]
        assert (low[name][~gone] == X[name][~gone]).all()
        if name == "kind":
            assert low[name][gone].isna().all() and high[name][gone].isna().all()
            continue
        assert low[name].dtype == completer.transform(X)[name].dtype
        ends = (low[name] <= truth[name]) & (truth[name] <= high[name])
        inside += ends[gone].tolist()
    assert 0.85 < np.mean(inside) < 0.97


def test_deviations_are_in_the_units_of_the_table(table):
    """Errors divided by them have unit variance."""
    truth, hidden, X = table
    # The ridge is given: its choice on held-out cells depends on their random draw.
    completer = MixedCompleter(GaussianCompleter(1.0), like_observed=False).fit(X)
    std, completed = completer.predict_std(X), completer.transform(X)
    assert std["kind"].isna().all()
    for k, name in enumerate(X):
        if name in ("kind", "size"):
            continue
        gone, off = hidden[:, k], completed[name] - truth[name]
        assert (std[name][~gone] == 0 * std[name][~gone]).all()
        ratio = (off[gone] / std[name][gone]).to_numpy(float)
        assert np.sqrt(np.square(ratio).mean()) == pytest.approx(1, abs=0.25)
    array = X.to_numpy(object)
    array = completer.fit(array).predict_std(array[:9])[:, 2]
    assert {type(value) for value in array} == {dt.timedelta}
    years = pl.DataFrame({"year": [f"{y}-01-01" for y in range(1990, 2000)] + [None]})
    years = years.with_columns(pl.col("year").str.to_date())
    years = years.with_columns(x=pl.Series([0.1 * i for i in range(11)]))
    found = MixedCompleter(GaussianCompleter()).fit(years).predict_std(years)
    assert found.schema["year"] == pl.Duration
    assert found["year"][0] == dt.timedelta(0) < found["year"][10]


def test_samples_have_the_predicted_deviations(table):
    _, hidden, X = table
    completer = MixedCompleter(GaussianCompleter(), like_observed=False).fit(X)
    draws = completer.sample(X, 60, random_state=0)
    spread = np.std([draw["metres"] for draw in draws], axis=0)[hidden[:, 5]]
    expected = completer.predict_std(X)["metres"][hidden[:, 5]]
    assert spread.mean() == pytest.approx(expected.mean(), rel=0.05)
    seen = X["kind"].notna()
    assert draws[0]["kind"][seen].equals(X["kind"][seen])
    assert draws[0]["kind"].notna().all()
    assert draws[0]["day"].notna().all() and draws[0]["size"].dtype == X["size"].dtype


@pytest.mark.parametrize(
    "inner", [SoftImputeCompleter(random_state=0), GaussianCompleter()]
)
def test_probabilities_of_categories(inner, table):
    truth, hidden, X = table
    completer = MixedCompleter(inner).fit(X)
    found = completer.predict_proba(X)
    assert completer.categories_ == {"kind": ["x", "y", "z"]} and list(found) == [
        "kind"
    ]
    proba = found["kind"]
    assert proba.min() >= 0 and proba.sum(1) == pytest.approx(1)
    best = np.array(completer.categories_["kind"])[proba.argmax(1)]
    assert (best == completer.transform(X)["kind"]).all()
    gone = hidden[:, 4]
    assert (proba[~gone].max(1) == 1).all()
    sure = proba[gone].max(1) > 0.8
    right = (best == truth["kind"])[gone]
    assert right[sure].mean() > right[~sure].mean() + 0.15
    unknown = completer.predict_proba(X.assign(kind="new"))["kind"]
    assert np.isnan(unknown).all()


MARKED = {
    "kind": (object, "?"),
    "grams": (object, "?"),
    "count": (int, -999),
    "size": (pd.CategoricalDtype(["?", *SIZES], ordered=True), "?"),
    "day": (object, dt.datetime(1900, 1, 1)),
    "metres": (float, -999),
}


def test_marks_are_missing_cells(table, tmp_path):
    """This holds in every kind of column; dtypes that hold the marks are kept."""
    _, _, X = table
    marked = pd.DataFrame(
        {
            name: X[name].astype(object).where(X[name].notna(), mark).astype(dtype)
            for name, (dtype, mark) in MARKED.items()
        }
    )
    marks = [-999, "?", dt.datetime(1900, 1, 1)]
    completer = MixedCompleter(SVDCompleter(rank=2), missing_values=marks).fit(marked)
    found = completer.transform(marked)
    plain = MixedCompleter(SVDCompleter(rank=2)).fit(X[list(MARKED)])
    expected = plain.transform(X[list(MARKED)])
    assert completer.kinds_ == plain.kinds_
    for name in MARKED:
        assert found[name].tolist() == expected[name].tolist()
    assert found["count"].dtype == int and found["size"].dtype == marked["size"].dtype
    marked = marked.drop(columns="day")
    completer.set_params(missing_values=[-999, "?"]).fit(marked)
    save(completer, tmp_path / "table.skmc")
    pd.testing.assert_frame_equal(
        load(tmp_path / "table.skmc").transform(marked), completer.transform(marked)
    )
    with pytest.raises(ValueError, match="no missing cell that y knows"):
        completer.score(marked, marked)


def test_one_mark_and_booleans():
    flags = [True, False] * 6
    X = pd.DataFrame({"x": np.arange(12.0), "flag": flags})
    X.loc[3, "x"] = 0
    completer = MixedCompleter(SVDCompleter(rank=1), missing_values=0).fit(X)
    assert completer.transform(X)["flag"].tolist() == flags  # False is not 0
    completed = completer.transform(X)["x"]
    assert (completed[[0, 3]] > 0).all() and (
        completed.drop([0, 3]) == X["x"].drop([0, 3])
    ).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_empty_columns_are_dropped_on_request(kind):
    X = pd.DataFrame({"a": [1.0, 2, None], "b": [-1.0] * 3, "c": [2.0, 4, 6]})
    if kind == "polars":
        X = pl.from_pandas(X)
    elif kind == "array":
        X = X.to_numpy()
    completer = MixedCompleter(
        SVDCompleter(rank=1), missing_values=-1, keep_empty_features=False
    )
    with pytest.warns(UserWarning, match="of X has no observed cell and is dropped"):
        found = completer.fit_transform(X)
    names = ["x0", "x2"] if kind == "array" else ["a", "c"]
    assert found.shape == (3, 2)
    assert list(completer.get_feature_names_out()) == names


def test_weights_count_cells_several_times(table):
    _, _, X = table
    X = X[:60]
    inner = SVDCompleter(rank=1, tol=1e-10, max_iter=2000)
    mixed = MixedCompleter(inner, like_observed=False, min_frequency=0)
    plain = mixed.fit(X).transform(X)
    ones = clone(mixed).fit(X, cell_weight=np.ones(X.shape))
    pd.testing.assert_frame_equal(ones.transform(X), plain)
    twice = np.arange(60) % 3 == 0
    weights = np.repeat(1.0 + twice[:, None], X.shape[1], 1)
    weighted = clone(mixed).fit(X, cell_weight=weights)
    longer = pd.concat([X, X[twice]], ignore_index=True)
    doubled = clone(mixed).fit(longer)
    for one, other in zip(weighted._table.columns, doubled._table.columns, strict=True):
        assert one.deviation == pytest.approx(other.deviation)
    found, other = weighted.transform(X), doubled.transform(X)
    # The held-out cells of categories are others where rows occur twice.
    numbers = X.columns.drop("kind")
    pd.testing.assert_frame_equal(found[numbers], other[numbers], rtol=1e-6)
    one, other = (
        fitted.completer_.transform(fitted._source(X).matrix)
        for fitted in (weighted, doubled)
    )
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert not np.allclose(found["metres"], plain["metres"], rtol=1e-3)


def test_weight_zero_hides(table):
    _, _, X = table
    weights = np.where(np.random.RandomState(2).uniform(size=X.shape) < 0.2, 0.0, 1.0)
    inner = SVDCompleter(rank=2)
    hides = MixedCompleter(inner).fit(X[:300], cell_weight=weights[:300])
    without = MixedCompleter(inner).fit(X.mask(weights == 0)[:300])
    new = X[300:]
    pd.testing.assert_frame_equal(
        hides.transform(new), without.transform(new), check_dtype=False
    )


def test_invalid_weights(table):
    _, _, X = table
    ones = np.ones(X.shape)
    with pytest.raises(TypeError, match=r"GaussianCompleter.fit\(\) takes no cell_we"):
        MixedCompleter(GaussianCompleter()).fit(X, cell_weight=ones)
    with pytest.raises(ValueError, match="it must have the shape of X"):
        MixedCompleter(SVDCompleter()).fit(X, cell_weight=ones[:, 1:])
    with pytest.raises(ValueError, match="cell_weight is -1"):
        MixedCompleter(SVDCompleter()).fit(X, cell_weight=-ones)
    cells = Entries(X[["grams", "metres"]])
    cells.weights = np.ones(len(cells))
    with pytest.raises(TypeError, match="takes no cell_weight"):
        MixedCompleter(GaussianCompleter()).fit(cells)


def test_time_seed_and_jobs_are_those_of_the_completer(table):
    _, _, X = table
    inner = TreesCompleter(n_estimators=4, random_state=0)
    mixed = MixedCompleter(inner, max_time=50.0, n_jobs=2, random_state=7).fit(X)
    fitted = mixed.completer_.get_params()
    assert [fitted[k] for k in ("max_time", "n_jobs", "random_state")] == [50.0, 2, 7]
    seeded = MixedCompleter(clone(inner).set_params(random_state=7))
    pd.testing.assert_frame_equal(mixed.transform(X), seeded.fit_transform(X))
    assert inner.random_state == 0
    # A completer without randomness has no seed, and every fit can end early.
    MixedCompleter(MeanCompleter(), random_state=7, max_time=1.0).fit(X)


def test_a_frame_in_is_a_frame_out():
    """Also for numbers alone, for which completers of matrices return arrays."""
    truth, hidden = simulated(80)
    X = truth.mask(hidden).set_index(pd.Index([f"r{i}" for i in range(80)]))
    numbers = X[["grams", "count", "metres"]]
    for frame in (X, numbers):
        stack = AutoCompleter(["mean", "gaussian"])
        mixed = MixedCompleter(stack, random_state=0)
        completed = mixed.fit_transform(frame)
        answers = [completed, mixed.transform(frame), *mixed.sample(frame, 2, 0)]
        ends = mixed.predict_interval(frame)
        for found in (*answers, *ends, mixed.predict_std(frame)):
            assert type(found) is pd.DataFrame and list(found) == list(frame)
            pd.testing.assert_index_equal(found.index, frame.index)
        for found in (*answers, *ends):
            assert (found.dtypes == frame.dtypes).all()
        row = frame.index[frame["metres"].isna()][0]
        explained = mixed.explain(frame, row, "metres")
        assert explained.value == pytest.approx(completed.loc[row, "metres"])
        assert explained.row == row and mixed.score(frame) < 0
    array = numbers.to_numpy(float)
    assert isinstance(mixed.fit_transform(array), np.ndarray)


@pytest.mark.parametrize(
    "completer", [GaussianCompleter(1.0), MixedCompleter(GaussianCompleter(1.0))]
)
def test_draws_of_held_out_cells_follow_the_seed(completer):
    rng = np.random.RandomState(0)
    X = pd.DataFrame(rng.randn(30, 3)).mask(rng.rand(30, 3) < 0.1)
    source = source_of(X, completer)
    one, same, other = (
        drawn_by(clone(completer), source, source.numbers, 2, seed)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    missing = source.missing
    assert (one != other)[:, missing].mean() > 0.5
    np.testing.assert_array_equal(one[:, ~missing], other[:, ~missing])


def test_categories_that_the_fit_has_not_seen_are_named():
    rng = np.random.RandomState(0)
    table = pd.DataFrame({"a": rng.choice(list("xyz"), 60), "b": rng.randn(60)})
    table.loc[::7, "b"] = np.nan
    completer = MixedCompleter(KNNCompleter()).fit(table)
    new = table.head(4).assign(a=["q", "q", "w", "x"])
    with pytest.warns(UnknownCategoriesWarning, match=r"'a' has 'q' \(2\), 'w' \(1\)"):
        completed = completer.transform(new)
    assert [*completed["a"]] == ["q", "q", "w", "x"] and completed["b"].notna().all()
