"""Parameters of inner completers are honored by wrappers, or refused by their names."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.impute import SimpleImputer

from skmc import (
    AutoCompleter,
    ChainedCompleter,
    FactorizationCompleter,
    GaussianCompleter,
    GroupedCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SeriesCompleter,
    SVDCompleter,
    pictures,
)
from skmc.exceptions import EmptyColumnsWarning
from skmc.model_selection import compare
from skmc.panel import effect
from skmc.persistence import load, save
from skmc.uncertainty import MultipleCompletion

RNG = np.random.RandomState(0)
N = 60
GROUP = np.arange(N) % 4
LEVEL = 10 + np.arange(4)[GROUP, None] + RNG.randn(N, 1) + 0.3 * RNG.randn(N, 3)
LEVEL[:, 2] -= 12  # of both signs
HOLED = np.where(RNG.rand(N, 3) < 0.2, np.nan, LEVEL)
HOLED[np.isnan(HOLED).all(1), 0] = 11.0
ARRAY = np.column_stack([GROUP, HOLED])
FRAME = pd.DataFrame(ARRAY, columns=["g", "a", "b", "c"])
WORDS = FRAME.assign(kind=np.where(LEVEL[:, 2] > 0, "up", "down"))
WORDS.loc[::7, "kind"] = None
HOURS = pd.DataFrame(
    HOLED, columns=list("abc"), index=pd.date_range("2024-01-01", periods=N, freq="h")
)
LOST = np.isnan(HOLED)

WRAPPERS = {
    "mixed": lambda inner: MixedCompleter(inner).fit(FRAME),
    "series": lambda inner: SeriesCompleter(inner, period=None).fit(HOURS),
    "groups": lambda inner: GroupedCompleter(inner, by="g").fit(FRAME),
    "stack": lambda inner: AutoCompleter({"one": inner}).fit(FRAME),
    "draws": lambda inner: MultipleCompletion(inner, 4).fit(FRAME),
    "panel": lambda inner: effect(LEVEL, np.tri(N, 3, -N + 1) > 0, inner),
    "picture": lambda inner: pictures.complete(HOLED, completer=inner),
}
OTHERS = {
    "min_value": 8.0,
    "max_value": {0: 3.0},
    "lower_limit": "min",
    "upper_limit": 30.0,
    "missing_values": -999.0,
    "add_indicator": True,
    "keep_empty_features": False,
    "keep_observed": False,
}
# The others change what the wrapper returns, see the tests below.
HONORED = {
    "groups": {*OTHERS} - {"add_indicator"},
    "draws": {"min_value", "max_value", "lower_limit", "upper_limit", "missing_values"},
    "stack": {"keep_observed", "keep_empty_features"},
    "panel": {"lower_limit", "upper_limit", "keep_observed", "keep_empty_features"},
}


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("parameter", OTHERS)
def test_each_parameter_is_honored_or_refused_by_name(name, parameter):
    inner = GaussianCompleter(0.1, rank=None, **{parameter: OTHERS[parameter]})
    if parameter in HONORED.get(name, ()):
        return
    match = rf"{parameter} of GaussianCompleter \(got .*\) would apply to"
    with pytest.raises(ValueError, match=match):
        WRAPPERS[name](inner)


def test_imputers_of_scikit_learn_in_a_stack():
    with pytest.raises(ValueError, match=r"missing_values of SimpleImputer \(got -999"):
        AutoCompleter({"mean": SimpleImputer(missing_values=-999)}).fit(FRAME)


@pytest.mark.parametrize("name", ["mixed", "series", "stack", "panel"])
def test_values_like_the_observed_ones_are_chosen_outside(name):
    inner = AutoCompleter(["mean"], like_observed=True)
    with pytest.raises(ValueError, match=r"like_observed of AutoCompleter .got True"):
        WRAPPERS[name](inner)


def test_groups_honor_values_of_the_model_and_limits():
    model = GroupedCompleter(GaussianCompleter(0.1, keep_observed=False), by="g")
    values = model.fit(FRAME).transform(FRAME)
    assert (values["g"] == GROUP).all()
    assert (values[list("abc")].to_numpy()[~LOST] != HOLED[~LOST]).mean() > 0.9
    low = np.full(ARRAY.shape, np.nan)
    low[:, 3] = -5.0  # smaller than all
    for limit in ({3: -5.0}, {"c": -5.0}, low):
        given = GaussianCompleter(0.1, tol=1e-2, lower_limit=limit, censored="all")
        X = FRAME if not isinstance(limit, np.ndarray) else ARRAY
        keys = "g" if X is FRAME else 0
        completed = np.asarray(GroupedCompleter(given, by=keys).fit_transform(X))
        assert (completed[LOST[:, 2], 3] < -5).all()
        assert (completed[LOST[:, 1], 2] > 0).all()


def inside(low, high, values):
    return ((low <= values) & (values <= high)).all()


def test_bounds_whole_numbers_and_marks_of_series():
    bounds = {"min_value": 10.5, "max_value": {"a": 12}}
    completer = SeriesCompleter(MeanCompleter(), period=None, random_state=0)
    plain = completer.fit(HOURS).transform(HOURS).to_numpy()
    completer.set_params(**bounds).fit(HOURS)
    completed = completer.transform(HOURS).to_numpy()
    high = np.array([12, np.inf, np.inf])
    np.testing.assert_array_equal(
        completed, np.where(LOST, plain.clip(10.5, high), HOLED)
    )
    for end in completer.predict_interval(HOURS):
        assert inside(
            10.5, np.broadcast_to(high, LOST.shape)[LOST], end.to_numpy()[LOST]
        )
    for wrong, match in (
        ({"min_value": {"d": 1}}, "names column 'd'"),
        ({"min_value": 3, "max_value": 1}, "above max_value"),
    ):
        with pytest.raises(ValueError, match=match):
            SeriesCompleter(MeanCompleter(), period=None, **wrong).fit(HOURS)
    with pytest.raises(ValueError, match="'w', which is not a series"), pytest.warns():
        SeriesCompleter(MeanCompleter(), min_value={"w": 1}).fit(HOURS.assign(w="word"))

    counts = (3 * HOURS).round().astype("Int64")
    completer.set_params(min_value=None, max_value=None, like_observed=True)
    completed = completer.fit_transform(counts)
    assert (completed.dtypes == "Int64").all()
    assert inside(counts.min(), counts.max(), completed).all()
    marked = completer.set_params(missing_values=-999, like_observed=False)
    found = marked.fit(HOURS.fillna(-999)).transform(HOURS.fillna(-999))
    again = completer.set_params(missing_values=np.nan).fit_transform(HOURS)
    pd.testing.assert_frame_equal(found, again)
    flagged = marked.set_params(missing_values={"b": -999}, add_indicator=True)
    some = HOURS.assign(b=HOURS["b"].fillna(-999))
    found = flagged.fit(some).transform(some)
    np.testing.assert_array_equal(found["missingindicator_b"], HOURS["b"].isna())


DAYS = pd.DataFrame(
    {
        "x": np.arange(40.0) + RNG.randn(40),
        "day": [dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(40)],
    }
)
DAYS.loc[30:, "day"] = None


@pytest.mark.parametrize("kind", ["dates", "datetime64", "texts", "durations"])
def test_bounds_of_dates(kind):
    frame, first, last = DAYS.copy(), dt.date(2024, 2, 1), dt.date(2024, 2, 4)
    if kind == "datetime64":
        frame["day"] = pd.to_datetime(frame["day"])
    elif kind == "texts":
        frame["day"] = pd.to_datetime(frame["day"]).dt.strftime("%d/%m/%Y")
        first, last = "01/02/2024", "04/02/2024"
    elif kind == "durations":
        start = pd.Timestamp("2024-01-01")
        frame["day"] = pd.to_datetime(frame["day"]) - start
        first, last = dt.timedelta(days=31), dt.timedelta(days=34)
    completer = MixedCompleter(
        GaussianCompleter(), min_value={"day": first}, max_value={"day": last}
    )
    tables = [completer.fit_transform(frame), *completer.sample(frame, 2, 0)]
    for completed in tables:
        new = completed["day"].iloc[30:]
        new = pd.to_datetime(new, dayfirst=True) if kind != "durations" else new
        if kind == "durations":
            new = pd.Timestamp("2024-01-01") + new
        assert inside(pd.Timestamp("2024-02-01"), pd.Timestamp("2024-02-04"), new)
        pd.testing.assert_series_equal(completed["day"][:30], frame["day"][:30])
    for given, match in (
        ({"day": 5}, "which has no numbers but is date; give a date"),
        ({"x": dt.date(2024, 1, 1)}, "is a date or text, but the column is numeric"),
    ):
        with pytest.raises(ValueError, match=match):
            completer.set_params(min_value=given).fit(frame)


@pytest.mark.parametrize("names", ["array", "numbers", "levels", "words", "polars"])
def test_columns_of_groups_are_those_of_the_table(names):
    X = {
        "array": ARRAY,
        "numbers": pd.DataFrame(ARRAY),
        "levels": pd.DataFrame(
            ARRAY, columns=pd.MultiIndex.from_product([["u", "v"], ["x", "y"]])
        ),
        "words": FRAME,
        "polars": pl.DataFrame(
            {c: FRAME[c].to_numpy() for c in FRAME}, nan_to_null=True
        ),
    }[names]
    keys = "g" if names in ("words", "polars") else 0
    for given in ({3: 9.0}, [np.nan, np.nan, np.nan, 9.0]):
        completer = GroupedCompleter(
            GaussianCompleter(0.1, tol=1e-2, min_value=given), by=keys
        )
        completed = completer.fit_transform(X)
        assert type(completed) is type(X) and completed.shape == X.shape
        values = np.asarray(completed, float)
        np.testing.assert_array_equal(values[:, 0], GROUP)
        np.testing.assert_array_equal(values[:, 1:][~LOST], HOLED[~LOST])
        assert (values[LOST[:, 2], 3] == 9).all()  # far above
        assert (values[LOST[:, 1], 2] < 25).all()
        draws = completer.sample(X, 2, random_state=0)
        assert all((np.asarray(d, float)[LOST[:, 2], 3] >= 9).all() for d in draws)
    with pytest.raises(ValueError, match="min_value names column 7"):
        GroupedCompleter(GaussianCompleter(min_value={7: 1}), by=keys).fit(X)


def test_kinds_and_marks_of_groups():
    whole = WORDS.assign(c=WORDS["c"].round())
    completer = GroupedCompleter(MixedCompleter(MeanCompleter(), categorical=[3]), by=0)
    completer.fit(whole)
    assert [*completer.completer_.categories_] == ["c", "kind"]
    marked = FRAME.fillna(-999)
    for inner in (
        GaussianCompleter(0.1, missing_values=-999),
        MixedCompleter(
            GaussianCompleter(0.1), missing_values={1: -999, 2: -999, 3: -999}
        ),
    ):
        found = GroupedCompleter(inner, by="g").fit_transform(marked)
        plain = GroupedCompleter(inner.set_params(missing_values=np.nan), by="g")
        pd.testing.assert_frame_equal(found, plain.fit_transform(FRAME))
    empty = FRAME.assign(b=np.nan)
    dropping = GroupedCompleter(GaussianCompleter(keep_empty_features=False), by="g")
    with pytest.warns(EmptyColumnsWarning, match="'b' .* is dropped"):
        dropping.fit(empty)
    assert [*dropping.transform(empty)] == ["g", "a", "c"]


def test_groups_with_weights_and_in_files(tmp_path):
    weights = RNG.randint(1, 3, N).astype(float)
    completer = GroupedCompleter(MixedCompleter(GaussianCompleter(0.1)), by="g")
    completer.fit(WORDS, sample_weight=weights)
    repeated = WORDS.loc[np.repeat(np.arange(N), weights.astype(int))]
    twice = GroupedCompleter(MixedCompleter(GaussianCompleter(0.1)), by="g")
    twice.fit(repeated.reset_index(drop=True))
    np.testing.assert_allclose(completer._means.mean, twice._means.mean)
    np.testing.assert_allclose(completer._means.sums, twice._means.sums)
    np.testing.assert_allclose(completer._means.counts, twice._means.counts)
    cells = GroupedCompleter(SVDCompleter(1), by="g").fit(FRAME, sample_weight=weights)
    unweighted = GroupedCompleter(SVDCompleter(1), by="g").fit(FRAME)
    assert not cells.transform(FRAME).equals(unweighted.transform(FRAME))
    with pytest.raises(TypeError, match="KNNCompleter takes no weights"):
        GroupedCompleter(KNNCompleter(), by="g").fit(FRAME, sample_weight=weights)
    save(completer, tmp_path / "groups.skmc")
    pd.testing.assert_frame_equal(
        load(tmp_path / "groups.skmc").transform(WORDS), completer.transform(WORDS)
    )


def test_draws_of_any_completer_stay_within_its_bounds():
    bounds = {"min_value": 9.5, "max_value": [np.nan, 11.0, np.nan]}
    for inner in (
        GaussianCompleter(0.1, tol=1e-2, **bounds),
        KNNCompleter(**bounds),
        AutoCompleter(["mean"], like_observed=True, **bounds),
    ):
        many = MultipleCompletion(inner, 3, random_state=0).fit(HOLED)
        high = np.array([np.inf, 11.0, np.inf])
        for draw in (*many.sample(6, 0), *many.interval()):
            assert inside(9.5, np.broadcast_to(high, LOST.shape)[LOST], draw[LOST])
            np.testing.assert_array_equal(draw[~LOST], HOLED[~LOST])
        assert many.sample(6, 0)[:, LOST].std(0).all()  # not clipped
    table = MixedCompleter(MeanCompleter(), min_value={"a": 9.5})
    for draw in MultipleCompletion(table, 2, random_state=0).fit(WORDS).sample(3, 0):
        assert (draw.loc[WORDS["a"].isna(), "a"] >= 9.5).all()


NESTED = {
    "groups": lambda: GroupedCompleter(
        MixedCompleter(ChainedCompleter(n_draws=2, max_iter=2)), by="g"
    ),
    "groups by default": lambda: GroupedCompleter(
        MixedCompleter(AutoCompleter(["mean", "knn"])), by=0
    ),
    "table": lambda: MixedCompleter(ChainedCompleter(n_draws=2, max_iter=2)),
}


@pytest.mark.parametrize("name", NESTED)
def test_draws_of_nested_completers(name):
    once, again = (
        MultipleCompletion(NESTED[name](), 2, random_state=0).fit(WORDS).sample(2, 1)
        for _ in range(2)
    )
    for one, other in zip(once, again, strict=True):
        pd.testing.assert_frame_equal(one, other)
        assert not one.isna().any(axis=None)
        pd.testing.assert_series_equal(one["g"], WORDS["g"])
        seen = WORDS.notna()
        assert one.where(seen).equals(WORDS.where(seen))


def test_nested_completers_are_compared():
    found = compare([NESTED["groups"](), NESTED["table"]()], WORDS, cv=2)
    assert found["error"].isna().all() and (found["mean"] < 0.25).all()


def test_series_have_draws_around_their_completion():
    many = MultipleCompletion(
        SeriesCompleter(MeanCompleter(), time="t", period=None, min_value=8),
        3,
        random_state=0,
    )
    frame = HOURS.reset_index(names="t")
    (draw,) = many.fit(frame).sample(1, 0)
    pd.testing.assert_series_equal(draw["t"], frame["t"])
    assert (draw[list("abc")].to_numpy()[LOST] >= 8).all()


def test_ratings_keep_their_columns():
    ratings = FactorizationCompleter(1, lambda_ridge=0.1, missing_values=0.0)
    zeros = np.nan_to_num(HOLED)
    many = MultipleCompletion(ratings, 3, random_state=0).fit(zeros)
    assert (many.sample(1, 0)[0][LOST] != 0).all()
