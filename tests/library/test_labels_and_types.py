"""Labels are aligned or refused, and inputs of an unusual type say what they mean."""

from __future__ import annotations

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from conftest import KINDS, make

from skmc import (
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    GroupedCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SeriesCompleter,
    SVDCompleter,
    metrics,
)
from skmc.exceptions import DoubtfulCellsWarning
from skmc.model_selection import LeaveLastOut
from skmc.panel import effect
from skmc.uncertainty import little_test, pool

RNG = np.random.RandomState(0)
M = pd.DataFrame(
    RNG.randn(30, 1) @ RNG.randn(1, 4) + 0.1 * RNG.randn(30, 4),
    columns=list("abcd"),
    index=[f"r{k}" for k in range(30)],
)
X = M.mask(RNG.rand(30, 4) < 0.2)
TURNED = M.iloc[::-1, [2, 0, 3, 1]]
G = X.assign(g=[f"g{k // 6}" for k in range(30)])
S = X.set_axis(pd.date_range("2024-01-01", periods=30), axis=0)
MIXED = MixedCompleter(KNNCompleter())


def turned(frame):
    return frame.iloc[::-1, ::-1]


SCORES = {
    "matrix": (KNNCompleter(), X, M),
    "table": (MIXED, X, M),
    "groups": (GroupedCompleter(MIXED, by="g"), G, M.assign(g=G["g"])),
    "series": (
        SeriesCompleter(MeanCompleter(), period=None, random_state=0),
        S,
        M.set_axis(S.index, axis=0),
    ),
}


@pytest.mark.parametrize("name", SCORES)
def test_a_truth_in_another_order_has_the_same_score(name):
    completer, given, truth = SCORES[name]
    completer.fit(given)
    rows = truth.iloc[RNG.permutation(30)]
    assert completer.score(given, rows) == completer.score(given, truth)
    if name != "series":  # whose columns are those of the fit
        assert completer.score(given, turned(truth)) == completer.score(given, truth)
    with pytest.raises(ValueError, match=r"label|feature names|no row for the time"):
        if name == "series":
            later = pd.date_range("2025-01-01", periods=30)
            completer.score(given, truth.set_axis(later, axis=0))
        completer.score(given, truth.rename(index={"r3": "other"}))


def test_metrics_compare_labels():
    found = X.fillna(0.0)
    cells = X.isna()
    for metric in (metrics.rmse, metrics.mae, metrics.nmae, metrics.relative_error):
        expected = metric(found, M, cells)
        assert metric(turned(found), M, cells) == expected
        assert metric(found, M, turned(cells)) == expected
        assert metric(found.to_numpy(), M, cells.to_numpy()) == expected
        assert metric(found, M.reset_index(drop=True), cells.to_numpy()) == expected
        with pytest.raises(ValueError, match="columns of X have other labels than tho"):
            metric(found.set_axis(list("wxyz"), axis=1), M, cells)
    assert metrics.rmse(TURNED, M) == 0
    assert metrics.crps([TURNED, TURNED], M) == 0
    assert metrics.interval_score(TURNED, TURNED, M) == 0
    assert metrics.energy_distance(TURNED, M) < 1e-12
    for label in (np.nan, None, pd.NaT, pd.NA):
        named = M.set_axis([label, *range(29)], axis=0)
        assert metrics.rmse(named.copy(), named) == 0
        assert metrics.rmse(named[::-1], named) == 0
    polars = pl.DataFrame(M.to_dict("list"))
    assert metrics.rmse(polars.select("d", "a", "b", "c"), polars) == 0


def test_weights_and_side_information_follow_labels():
    weight = pd.Series(RNG.randint(1, 4, 30).astype(float), X.index)
    own = GaussianCompleter(0.1).fit(X, sample_weight=weight)
    other = GaussianCompleter(0.1).fit(X, sample_weight=weight[::-1])
    np.testing.assert_array_equal(own.covariance_, other.covariance_)
    cells = pd.DataFrame(RNG.randint(1, 4, X.shape) * 1.0, X.index, X.columns)
    one = SVDCompleter(1).fit(X, cell_weight=cells).transform(X)
    again = SVDCompleter(1).fit(X, cell_weight=turned(cells)).transform(X)
    np.testing.assert_array_equal(one, again)
    table = MIXED.__class__(SVDCompleter(1))
    one = table.fit(X, cell_weight=cells).transform(X)
    pd.testing.assert_frame_equal(
        table.fit(X, cell_weight=turned(cells)).transform(X), one
    )
    ratings = FactorizationCompleter(1, lambda_ridge=0.1, random_state=0)
    features = pd.DataFrame(RNG.randn(30, 2), X.index)
    one = ratings.fit(X, row_features=features).transform(X)
    found = ratings.fit(X, row_features=features[::-1])
    np.testing.assert_array_equal(found.transform(X), one)
    new = found.transform(X[:5], row_features=features[:5][::-1])
    np.testing.assert_array_equal(
        new, found.transform(X[:5], row_features=features[:5])
    )
    with pytest.raises(ValueError, match="rows of sample_weight have other labels"):
        GaussianCompleter().fit(X, sample_weight=weight.rename({"r1": "x"}))


AGES = pd.DataFrame(
    {"age": [30, -1, 52, 41, -1, 38.0] * 5, "debt": [-1.0, 2, 5, -1, 8, 3] * 5}
)


@pytest.mark.parametrize(
    "marks",
    [
        -1,
        "-1",
        [-1, "?"],
        pd.Series([-1, -999]),
        range(-1, 0),
        np.array([-1.0]),
        {-1},
        pd.Index(["-1"]),
    ],
    ids=str,
)
def test_marks_of_any_type(marks):
    completer = MixedCompleter(MeanCompleter(), missing_values=marks)
    completed = completer.fit_transform(AGES)
    assert (completed > 0).all(axis=None)
    words = AGES.astype(object).map(lambda v: f"{v:g}")
    words["kind"] = ["u", "v", "-1"] * 10
    found = completer.fit(words).transform(words)
    assert "-1" not in found["kind"].tolist()


def test_marks_of_single_columns():
    completer = MixedCompleter(MeanCompleter(), missing_values={"age": -1})
    completed = completer.fit_transform(AGES)
    assert (completed["age"] > 0).all()
    pd.testing.assert_series_equal(completed["debt"], AGES["debt"])
    assert completer.set_params(missing_values={0: [-1]}).fit(AGES)._table.marks
    with pytest.raises(ValueError, match="missing_values names column 'agee'"):
        completer.set_params(missing_values={"agee": -1}).fit(AGES)


@pytest.mark.parametrize(
    "fit",
    [
        lambda: MixedCompleter(missing_values=True).fit(AGES),
        lambda: MeanCompleter(missing_values=True).fit(AGES),
        lambda: MeanCompleter(missing_values="-1").fit(AGES),
        lambda: MeanCompleter(missing_values={"age": -1}).fit(AGES),
        lambda: little_test(AGES, missing_values="-1"),
        lambda: little_test(AGES, missing_values=True),
    ],
)
def test_marks_that_mean_nothing_are_refused(fit):
    with pytest.raises((TypeError, ValueError), match="missing_values"):
        fit()


def weeks(names):
    rng = np.random.RandomState(1)
    outcome = rng.randn(12, 1) + np.cumsum(rng.randn(12), 0) + 0.1 * rng.randn(12, 12)
    treated = np.zeros((12, 12), bool)
    treated[0, 9:] = True
    outcome[treated] -= 4
    unit, time = (part.ravel() for part in np.indices((12, 12)))
    return pd.DataFrame(
        {
            "unit": unit,
            "time": pd.Series(names)[time].to_numpy(),
            "y": outcome.ravel(),
            "d": treated.ravel(),
        }
    )


def test_times_that_are_texts():
    of = {"unit": "unit", "time": "time", "n_placebos": 0}
    expected = effect(weeks(range(12)), "d", **of).att
    days = [f"{k + 1}.2.2024" for k in range(12)]  # as texts, 10 is before 2
    found = effect(weeks(days), "d", **of)
    assert found.att == expected and list(found.times) == days
    words = [f"week {k}" for k in range(12)]
    with pytest.raises(ValueError, match="time='time' has texts such as 'week 0'"):
        effect(weeks(words), "d", **of)
    ordered = weeks(words)
    ordered["time"] = pd.Categorical(ordered["time"], words, ordered=True)
    assert effect(ordered, "d", **of).att == expected

    cells, split = Entries(np.arange(36.0).reshape(3, 12)), LeaveLastOut(2)
    order = np.tile(range(12), 3)
    (_, last), *_ = split.split(cells, groups=order)
    for names in (days, pd.Categorical(words, words, ordered=True)):
        times = names[order] if isinstance(names, pd.Categorical) else np.array(names)
        times = times if isinstance(names, pd.Categorical) else times[order]
        np.testing.assert_array_equal(next(split.split(cells, groups=times))[1], last)
    stamps = np.array([dt.datetime(2024, 1, 1 + k) for k in order], object)
    np.testing.assert_array_equal(next(split.split(cells, groups=stamps))[1], last)
    with pytest.raises(ValueError, match="the text 'week 0' at position 0"):
        next(split.split(cells, groups=np.array(words)[order]))


BIG = 2**53 + 1


@pytest.mark.parametrize("dtype", ["object", "Int64", "UInt64", "uint64[pyarrow]"])
def test_large_integers_are_not_changed(dtype):
    values = [BIG, BIG + 2, None, BIG + 4, BIG + 10]
    if dtype.lower().startswith("uint"):
        values = [2**64 - 1, 2**64 - 1, None, 2**64 - 1, 2**64 - 3]
    frame = pd.DataFrame({"id": pd.Series(values, dtype=dtype), "x": [1.0, 2, 3, 4, 5]})
    completed = MixedCompleter(MeanCompleter()).fit_transform(frame)["id"]
    kept = [0, 1, 3, 4]
    assert completed.iloc[kept].tolist() == frame["id"].iloc[kept].tolist()
    assert 0 < completed.iloc[2] < 2**64
    if dtype != "object":
        assert str(completed.dtype) == dtype
        return
    array = frame.astype(object).to_numpy()
    completed = MixedCompleter(MeanCompleter()).fit_transform(array)
    assert completed[kept, 0].tolist() == array[kept, 0].tolist()
    with pytest.raises(ValueError, match=rf"{BIG} at row 0.* a float cannot represent"):
        MeanCompleter().fit(array)


def test_columns_of_indicators_overwrite_none():
    frame = X.assign(missingindicator_a=1.0)
    series = frame.set_axis(S.index, axis=0)
    for completer, given in (
        (MeanCompleter(add_indicator=True), frame),
        (MixedCompleter(MeanCompleter(), add_indicator=True), frame),
        (SeriesCompleter(MeanCompleter(), add_indicator=True, period=None), series),
    ):
        with pytest.raises(ValueError, match="has a column 'missingindicator_a' alre"):
            completer.fit(given)
        completer.set_params(add_indicator=False).fit(given)
        completer.set_params(add_indicator=True)
        with pytest.raises(ValueError, match=r"add_indicator of .* was set after fit"):
            completer.transform(given)


@pytest.mark.parametrize(
    "make",
    [
        lambda days, last: pd.Series([*days, last]).astype("datetime64[s]"),
        lambda days, last: [*days, last],
        lambda days, last: [f"{day:%d.%m.}{day.year:04}" for day in (*days, last)],
    ],
    ids=["datetime64", "dates", "texts"],
)
@pytest.mark.parametrize("last", [dt.date(9999, 12, 31), dt.date(1, 1, 1)])
def test_a_date_that_marks_missing_cells_is_doubtful(make, last):
    days = [dt.date(2000 + k % 20, 1 + k % 12, 1 + k) for k in range(28)]
    if last.year == 1:
        days = [dt.date(2000, 1, 1 + k) for k in range(28)]
    frame = pd.DataFrame({"day": make(days, last), "x": np.arange(29.0)})
    frame.loc[3, "day"] = None
    with pytest.warns(DoubtfulCellsWarning, match="column 0 .'day'., row 28: .*far"):
        MixedCompleter(MeanCompleter()).fit(frame)
    MixedCompleter(MeanCompleter()).fit(frame[:-1])  # without a warning


def test_degrees_of_freedom_may_be_infinite():
    args = [1.0, 1.2, 0.8], [0.04, 0.05, 0.03]
    assert pool(*args, dof=np.inf) == pool(*args)
    np.testing.assert_allclose(pool(*args, dof=1e12).dof, pool(*args).dof)


IDS = np.array([76561198000000001, 76561198000000007, 76561198000000009])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Entries.from_triplets(IDS, [0, 1, 1], [1.0, 2.0, 3.0]),
        lambda: Entries.from_triplets([0, 1, 1], IDS, [1.0, 2.0, 3.0]),
        lambda: Entries(sp.coo_array(([1.0, 2, 3], (IDS, [0, 1, 1])))),
        lambda: MeanCompleter().fit(sp.coo_array(([1.0, 2, 3], (IDS, [0, 1, 1])))),
        lambda: FactorizationCompleter().fit(
            sp.coo_array(([1.0, 2, 3], (IDS, [0, 1, 1])))
        ),
    ],
)
def test_identifiers_are_not_positions(make):
    with pytest.raises((ValueError, MemoryError), match=r"use Entries\.from_frame"):
        make()


def test_counts_without_a_positive_one():
    zeros = np.where(np.isnan(X), np.nan, 0.0)
    completer = FactorizationCompleter(2, alpha=10.0, lambda_ridge=0.1, random_state=0)
    with pytest.raises(ValueError, match="X has no positive count"):
        completer.fit(zeros)


def test_a_unit_without_a_value():
    frame = pd.concat(
        [
            pd.DataFrame({"shop": shop, "day": range(20), "y": values})
            for shop, values in (("a", np.arange(20.0)), ("b", np.full(20, np.nan)))
        ]
    )
    frame.iloc[7, 2] = np.nan
    completer = SeriesCompleter(
        MeanCompleter(), unit="shop", time="day", period=None, random_state=0
    )
    with pytest.warns(UserWarning, match="stay missing: .*'y'. of 'b'"):
        completer.fit(frame)
    completed = completer.transform(frame)
    assert completed["y"].isna().tolist() == [False] * 20 + [True] * 20
    with pytest.raises(ValueError, match="unit='shop' has 'c' in row 0"):
        completer.transform(frame.replace("a", "c"))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)
def test_numbers_that_may_mark_missing_cells_are_named(cls):
    """Where columns have units of their own: a picture or ratings may have such."""
    rng = np.random.RandomState(0)
    X = np.round(20 + 3 * rng.randn(40, 4), 1)
    X[::7, 1], X[[3, 9, 21], 2] = np.nan, -999
    completer = make(cls)
    with pytest.warns(DoubtfulCellsWarning, match=r"-999: Column 2, row 3: .* 3 times"):
        completer.fit(X)
    X[[3, 9, 21], 2] = 30  # is as far from the others as it may be
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulCellsWarning)
        completer.fit(X)
