"""Raw tables: kinds of columns, dates, values like the observed ones."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skmc import AutoCompleter, MeanCompleter, MixedCompleter, SVDCompleter
from skmc.cells import LikeObserved
from skmc.persistence import load, save
from skmc.tables import doubtful_number
from skmc.tables.date_formats import FORMATS, DateFormat

N = 40
Z = np.random.RandomState(0).randn(N)
HOLES = slice(5, None, 7)


def mixed(**params):
    return MixedCompleter(SVDCompleter(rank=1), **params)


def frame(**columns):
    """A column of numbers with missing cells, another, and further columns."""
    table = pd.DataFrame({"x": Z.round(2), "y": (2 * Z).round(1)})
    table.loc[HOLES, "x"] = np.nan
    return table.assign(**columns)


def holed(values):
    column = pd.Series(values)
    column.iloc[3::8] = None
    return column


# Which columns are completed

IDENTIFIERS = {
    "name": [f"Person {i}" for i in range(N)],
    "note": [f"text {i % 30}" for i in range(N)],
    "rare": [None] * 30 + ["C23", "C25"] * 5,
    "once": [None] * 38 + ["a", "b"],
}


def test_identifiers_text_and_rare_categories_are_left_with_one_warning():
    table = frame(**IDENTIFIERS, kind=holed(["u", "v"] * 20))
    completer = mixed()
    with pytest.warns(UserWarning) as caught:
        completed = completer.fit_transform(table)
    (text,) = {str(w.message) for w in caught}
    for name, why in {
        "name": "40 different values in 40 cells",
        "rare": "75% missing, 2 different values in 10 cells",
        "once": "95% missing",
    }.items():
        assert f"{name!r} ({why}" in text
    assert "'kind'" not in text and __file__ == caught[0].filename
    for name in ("name", "rare", "once"):
        pd.testing.assert_series_equal(completed[name], table[name])
    assert not completed[["x", "kind"]].isna().any(axis=None)


def test_parameters_override_the_detected_kinds():
    table = frame(**IDENTIFIERS)
    completer = MixedCompleter(
        MeanCompleter(), categorical=["rare", "once"], passthrough=["name", "note"]
    ).fit(table)
    assert completer.kinds_[2:] == [None, None, "categorical", "categorical"]
    completed = completer.transform(table)
    assert not completed[["rare", "once"]].isna().any(axis=None)
    with pytest.raises(ValueError, match="in categorical and in passthrough"):
        mixed(categorical=["name"], passthrough=["name"]).fit(table)


@pytest.mark.parametrize("n", [200, 5000])
def test_only_common_values_become_categories(n):
    """At most 1 / min_frequency, and never the rare ones."""
    rng = np.random.RandomState(0)
    kind = np.where(
        rng.uniform(size=n) < 0.6, rng.randint(5, size=n), 100 + np.arange(n)
    )
    table = pd.DataFrame({"x": rng.randn(n), "kind": kind.astype(str)})
    table.loc[::9, "kind"] = None
    completer = MixedCompleter(MeanCompleter()).fit(table)
    levels = completer._table.columns[1].levels
    assert sorted(levels) == list("01234")
    assert set(completer.transform(table)["kind"][::9]) <= set(levels)
    many = pd.DataFrame({"x": rng.randn(n), "kind": [f"k{i % 90}" for i in range(n)]})
    width = completer.fit(many)._table.encode(completer._table.read(many)[0]).shape[1]
    assert width == 91 if n > 200 else 90 + 1


# Values like the observed ones


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=20),
    st.integers(0, 6),
    st.floats(-2e6, 2e6),
)
def test_values_have_decimals_and_range_of_the_observed(integers, digits, value):
    observed = np.round(np.array(integers) / 10**digits, digits)[:, None]
    like = LikeObserved.of(observed)
    (found,) = like.apply(np.array([[value]]))[0]
    assert observed.min() <= found <= observed.max()
    assert like.decimals[0] <= digits
    assert found == np.round(found, digits)
    np.testing.assert_array_equal(like.apply(observed), observed)
    # Rounding moves a value in the range by half a unit at most.
    inside = np.clip(value, observed.min(), observed.max())
    assert abs(found - inside) <= 0.5 * 10.0 ** -like.decimals[0] * (1 + 1e-9)


def test_decimals_are_those_of_the_precision_of_the_column():
    values = np.array([[0.1, 1.25, 1 / 3], [2.0, 3.5, 0.2]])
    assert LikeObserved.of(values).decimals[:2].tolist() == [1, 2]
    assert LikeObserved.of(values.astype(np.float32)).decimals[:2].tolist() == [1, 2]
    assert np.isnan(LikeObserved.of(values).decimals[2])


def test_integers_stay_integers_unless_the_caller_wants_means():
    table = frame(i=holed(np.arange(N)).astype("Int64"))
    completed = mixed().fit_transform(table)
    assert completed["i"].dtype == "Int64" and completed["i"].between(0, N).all()
    completed = mixed(like_observed=False).fit_transform(table)
    assert completed["i"].dtype == "Float64" and (completed["i"] % 1 > 0).any()
    arrow = table.convert_dtypes(dtype_backend="pyarrow")
    for like, dtype in ((True, "int64[pyarrow]"), (False, "double[pyarrow]")):
        completed = mixed(like_observed=like).fit_transform(arrow)
        assert completed["i"].dtype == dtype
    polars = pl.from_pandas(table)
    assert mixed().fit_transform(polars).schema["i"] == polars.schema["i"]


def test_bounds_replace_the_observed_range():
    table = frame()
    found = mixed(min_value=-0.5, max_value={"x": 0.25}).fit_transform(table)["x"]
    gone = table["x"].isna()
    assert found[gone].between(-0.5, 0.25).all() and found[~gone].min() < -0.5
    found = mixed(like_observed=False, min_value=[0, -np.inf]).fit_transform(table)["x"]
    assert found[gone].min() == 0 and (found[gone] * 100 % 1 > 0).any()


def test_matrices_are_not_rounded_unless_asked():
    X = np.array([[1.0, 2.0], [2.0, np.nan], [4.0, 5.0]])
    means = AutoCompleter(["mean"], random_state=0)
    assert means.fit_transform(X)[1, 1] == 3.5
    means.set_params(like_observed=True)
    assert means.fit_transform(X)[1, 1] in (3.0, 4.0)
    assert isinstance(means.fit_transform(pd.DataFrame(X)), np.ndarray)


def test_cells_of_a_category_are_held_out_together():
    table = frame(kind=holed(["u", "v", "w", "w"] * 10), y=Z)
    labels = []

    class Watched(MeanCompleter):
        def _fit_cells(self, given, y=None):
            labels.append(given.data.mask.numpy())
            return super()._fit_cells(given, y)

    MixedCompleter(AutoCompleter({"mean": Watched()}, random_state=0)).fit(table)
    for seen in labels:
        assert (seen[:, 2:] == seen[:, [2]]).all() and seen.shape[1] == 5
    assert len(labels) > 1


# Dates


@pytest.mark.parametrize(
    "values",
    [
        pd.date_range("2020-01-30", periods=N),
        pd.date_range("2020-03-01", periods=N, tz="Europe/Berlin"),
        pd.date_range("2020-03-01", periods=N, freq="37min", tz="UTC"),
        pd.date_range("2020-03-01", periods=N, freq="MS"),
        pd.date_range("2020-03-01", periods=N).tz_localize("+05:30"),
        pd.to_timedelta(np.arange(N), "h"),
        [dt.date(2020, 1, 1) + dt.timedelta(k) for k in range(N)],
        [f"{k % 28 + 1:02d}.0{k % 2 + 1}.2021" for k in range(N)],
        [f"{k % 12 + 1}/{k % 28 + 1}/2021 9:05" for k in range(N)],
        [f"2021-03-{k % 28 + 1:02d}T10:00:00" for k in range(N)],
        pd.Series(pd.date_range("2020", periods=N)).astype("date32[pyarrow]"),
    ],
)
def test_dates_are_returned_as_dates(values, tmp_path):
    truth = frame(when=values)
    table = frame(when=holed(values))
    table["when"] = table["when"].astype(truth["when"].dtype)
    completer = mixed().fit(table)
    assert completer.kinds_[2] == "date"
    completed = completer.transform(table)
    assert completed["when"].dtype == table["when"].dtype
    seen = table["when"].notna()
    assert (completed["when"][seen] == table["when"][seen]).all()
    known, new = completed["when"][seen], completed["when"][~seen]
    if not isinstance(values, list) or not isinstance(values[0], str):
        assert known.min() <= new.min() and new.max() <= known.max()
    if isinstance(values, list):
        assert {type(v) for v in new} == {type(values[0])}
        if isinstance(values[0], str):
            (form,) = DateFormat.of(values)
            assert all(map(form.reproduces, new))
    else:  # the answers are on the grid of the observed
        for part in ("day", "hour", "minute"):
            parts = [{getattr(v, part, 0) for v in column} for column in (known, new)]
            assert len(parts[0]) > 1 or parts[0] == parts[1]
    save(completer, tmp_path / "c")
    pd.testing.assert_frame_equal(load(tmp_path / "c").transform(table), completed)


@pytest.mark.parametrize("last", [9, 13])
def test_a_mean_of_dates_is_the_nearest_day(last):
    days = [1, 8, 10, last]
    when = [*(pd.Timestamp(2020, 1, day) for day in days), pd.NaT]
    table = pd.DataFrame({"x": [1.0, 2, 3, 4, 5], "when": when})
    found = MixedCompleter(MeanCompleter()).fit_transform(table)["when"].iloc[-1]
    assert found == pd.Timestamp(2020, 1, round(np.mean(days)))


def test_zeros_make_no_number_doubtful():
    values = np.array([0.0, 0, 0, 0, 5, 5, 5])
    assert doubtful_number(values) is None
    row, doubt = doubtful_number(np.append(values, 6e9))
    assert row == 7 and "a million times" in doubt


@given(st.datetimes(dt.datetime(1969, 1, 1), dt.datetime(2068, 1, 1)), st.data())
def test_formats_read_what_they_write(date, data):
    form = DateFormat(data.draw(st.sampled_from(FORMATS)), data.draw(st.booleans()))
    text = form.write(date)
    assert form.reproduces(text) and form.write(form.read(text)) == text


def test_ambiguous_dates_are_not_completed():
    table = frame(
        when=[f"0{k % 9 + 1}/0{k % 7 + 1}/2020" for k in range(N)],
        zones=[
            dt.datetime(
                2020, 1, 1, k % 24, tzinfo=dt.timezone(dt.timedelta(hours=k % 2))
            )
            for k in range(N)
        ],
    ).astype({"zones": object})
    with pytest.warns(UserWarning, match="day and month of its dates cannot be told"):
        completer = mixed().fit(table)
    assert completer.kinds_[2:] == [None, None]
    assert DateFormat.of(["01/02/2020", "01/13/2020"])[0].pattern == "%m/%d/%Y"


# Bad input: a right answer, or an error that names the column and the remedy


def nullable():
    whole = holed(np.arange(N)).astype("Int64")
    flag = holed(pd.array(Z > 0, "boolean"))
    return frame(i=whole, f=flag, s=holed(["u", "v"] * 20)).convert_dtypes()


def decimals():
    prices = holed(pd.Series([Decimal(k) / 4 for k in range(N)], dtype=object))
    kind = pd.ArrowDtype(pa.decimal128(8, 2))
    arrow = pa.array(
        [None if v != v or v is None else v for v in prices], kind.pyarrow_dtype
    )
    return frame(d=prices, arrow=pd.Series(arrow, dtype=kind))


RIGHT = {
    "nullable": nullable,
    "arrow": lambda: nullable().convert_dtypes(dtype_backend="pyarrow"),
    "decimal": decimals,
    "sparse": lambda: frame(k="u").assign(x=lambda t: pd.arrays.SparseArray(t["x"])),
    "unsorted": lambda: frame(
        k=holed(pd.Categorical(["z", "a"] * 20, ["z", "a", "q"]))
    ),
    "codes": lambda: frame(k=holed(pd.Categorical([3, 1] * 20))),
    "constant": lambda: frame(c=holed([3.0] * N), k=holed(["only"] * N)),
    "units": lambda: frame(
        big=holed(Z * 1e30), small=holed(Z * 1e-30), k=["u", "v"] * 20
    ),
    "one column": lambda: frame()[["x"]],
    "one category": lambda: pd.DataFrame({"k": ["u", None, "u"]}),
    "one row": lambda: pd.DataFrame({"x": [1.5]}),
    "missing row": lambda: frame(k=["u", "v"] * 20).drop(3).reindex(range(N)),
    "names": lambda: frame(k="u").set_axis(
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "k")]), axis=1
    ),
    "index": lambda: frame(k=["u", "v"] * 20).set_index([Z, np.arange(N)]),
    "boolean": lambda: frame(f=holed(pd.Series(Z > 0).astype(object))),
}


@pytest.mark.filterwarnings("ignore:.*no observed cell")
@pytest.mark.parametrize("name", RIGHT)
def test_columns_of_all_kinds_are_completed(name):
    table = RIGHT[name]()
    completed = mixed().fit_transform(table)
    assert (completed.dtypes.astype(str) == table.dtypes.astype(str)).all()
    assert completed.index.equals(table.index) and completed.columns.equals(
        table.columns
    )
    assert not completed.isna().any(axis=None)
    for k in range(table.shape[1]):
        seen = table.iloc[:, k].notna().to_numpy()
        old, new = (t.iloc[:, k].to_numpy(object) for t in (table, completed))
        assert (old[seen] == new[seen]).all()
        if seen.all() or name in ("one column", "missing row"):
            continue
        if isinstance(new[0], (int, float, Decimal)):
            assert (
                min(old[seen]) <= min(new[~seen]) <= max(new[~seen]) <= max(old[seen])
            )
        else:
            assert set(new[~seen]) <= set(old[seen])


def test_very_different_units_are_completed_as_precisely():
    """A column in other units gets the same completion, in these units."""
    plain = frame(a=holed(Z * 3), k=["u", "v"] * 20)
    wide = plain.assign(a=plain["a"] * 1e30, y=plain["y"] * 1e-30)
    found = mixed(like_observed=False).fit_transform(wide)
    expected = mixed(like_observed=False).fit_transform(plain)
    np.testing.assert_allclose(found["a"] / 1e30, expected["a"], rtol=1e-6)
    np.testing.assert_allclose(found["x"], expected["x"], rtol=1e-6)


BAD = {
    "twice": (
        lambda: frame().set_axis(["a", "a"], axis=1),
        r"2 columns named 'a'; give them different names",
    ),
    "infinite": (
        lambda: frame(b=1e200, k="u").replace({"x": {Z.round(2)[1]: np.inf}}),
        r"column 0 \('x'\) contains infinity in row 1; replace it .*column 2 \('b'\) "
        "contains 1e.200",
    ),
    "mixed": (
        lambda: frame().astype(object).replace({"x": {Z.round(2)[1]: "?"}}),
        r"column 0 \('x'\) has missing cells, and numbers mixed with text such as '\?'",
    ),
    "nothing": (
        lambda: pd.DataFrame({"name": ["a", "b", None]}),
        r"no column that can be completed: 'name' \(33% missing, 2 different",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_the_column_and_the_remedy(name):
    make, message = BAD[name]
    for completer in (mixed(), MixedCompleter()):
        with pytest.raises(ValueError, match=message):
            completer.fit(make())


def test_columns_of_other_types_are_not_completed():
    table = frame(
        lists=[[1]] * N, bytes=[b"a"] * N, period=pd.period_range("2020", periods=N)
    )
    with pytest.warns(UserWarning, match="cells of type list.*bytes.*Period"):
        completed = mixed().fit_transform(table)
    assert completed.isna().sum().sum() == 0
    pd.testing.assert_frame_equal(completed.iloc[:, 2:], table.iloc[:, 2:])


@pytest.mark.parametrize("bad", [frame(k="u"), [["a", 1.0], ["b", None]]])
@pytest.mark.parametrize("completer", [SVDCompleter(), AutoCompleter()])
def test_other_completers_name_the_one_that_takes_tables(completer, bad):
    with pytest.raises(ValueError, match="MixedCompleter completes tables"):
        completer.fit(bad)


# Columns without any value


def test_empty_columns_of_arrays_are_zero_as_in_scikit_learn():
    rng = np.random.RandomState(0)
    X = np.outer(rng.rand(30), [1, 2, 1, 2.0]) + 1
    X[:, 2], X[3, 0] = np.nan, np.nan
    for completer in (MeanCompleter(), SVDCompleter(rank=1)):
        with pytest.warns(UserWarning, match="2 .* filled with 0.*different units"):
            assert (completer.fit_transform(X)[:, 2] == 0).all()
    one_unit = SVDCompleter(rank=1, scaling="global")
    with pytest.warns(UserWarning, match="filled with the row means"):
        assert (one_unit.fit_transform(X)[:, 2] > 1).all()
    with pytest.warns(UserWarning, match="dropped"):
        assert MeanCompleter(keep_empty_features=False).fit_transform(X).shape == (
            30,
            3,
        )
