"""Series: arrangements, gaps, times, and their weighted completion."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmc import GaussianCompleter, KNNCompleter, MeanCompleter, SeriesCompleter
from skmc.completers.series._members import (
    Interpolation,
    SeasonalMean,
    Span,
    Windows,
    widest,
)
from skmc.completers.series._periods import find_periods
from skmc.completers.series._stack import Ends, _present, gap_classes
from skmc.completers.series._table import TimeGrid, ticks_of
from skmc.metrics import rmse
from skmc.persistence import load, save

HOURS = pd.date_range("2024-01-01", periods=24 * 15, freq="h")


def series(k):
    """Series with a daily profile whose size differs between days."""
    rng = np.random.RandomState(0)
    time = np.arange(len(HOURS))
    profile = 2 + np.sin(2 * np.pi * time / 24) + np.sin(4 * np.pi * time / 24 + 1)
    size = np.repeat(1 + 0.3 * rng.randn(15, 2) @ rng.randn(2, k), 24, axis=0)
    values = rng.uniform(1, 3, k) * size * profile[:, None] + 0.1 * rng.randn(360, k)
    return pd.DataFrame(20 + values, HOURS, [f"s{j}" for j in range(k)])


@pytest.fixture(scope="module")
def truth():
    return series(4)


def quick(**params):
    """For what is not about the completer of the matrices."""
    return SeriesCompleter(MeanCompleter(), random_state=0, **params)


def learned(**params):
    """With a completer that learns, and chooses nothing."""
    inner = GaussianCompleter(1.0, tol=0.03, random_state=0)
    return SeriesCompleter(inner, random_state=0, **params)


def with_gaps(truth, kind):
    rng = np.random.RandomState(1)
    if kind == "cells":
        hidden = rng.rand(*truth.shape) < 0.3
    elif kind == "days":
        hidden = np.repeat(rng.rand(15, truth.shape[1]) < 0.25, 24, axis=0)
    else:  # all series at once
        hidden = np.repeat(rng.rand(90, 1) < 0.2, 4, axis=0) & np.ones(
            (1, truth.shape[1]), bool
        )
    return truth.mask(hidden), hidden


@pytest.fixture(scope="module")
def fitted(truth):
    X, _ = with_gaps(truth, "cells")
    return learned().fit(X), X


@pytest.mark.long
@pytest.mark.parametrize("kind", ["days", "outages"])
def test_recovers_gaps_of_every_kind(kind):
    truth = series(8)
    X, _ = with_gaps(truth, kind)
    assert_recovered(SeriesCompleter(random_state=0).fit(X), truth, kind)


def test_recovers_single_cells(truth, fitted):
    assert_recovered(fitted[0], truth, "cells")


def assert_recovered(completer, truth, kind):
    X, hidden = with_gaps(truth, kind)
    completed = completer.transform(X)
    assert completer.periods_ == [24]
    error = rmse(completed, truth, hidden)
    cells = X.to_numpy()
    with warnings.catch_warnings(action="ignore"):  # times without a cell
        plain = GaussianCompleter(random_state=0).fit_transform(cells)
    seasonal = SeasonalMean(24).fit(cells, 0).predict(cells, 0)
    line = Interpolation().fit(cells, 0).predict(cells, 0)
    # The right one for whole days. Few of them are at ends, where weights say less.
    assert error < (1.1 if kind == "days" else 1.03) * rmse(plain, truth, hidden)
    for other in (seasonal, line):
        assert error < 0.3 * rmse(other, truth, hidden)
    low, high = completer.predict_interval(X)
    inside = (low <= truth) & (truth <= high)
    assert 0.8 < inside.to_numpy()[hidden].mean() < 0.97
    assert 0.4 < completer.error_ / error < 2.5
    pd.testing.assert_frame_equal(completed.mask(hidden), X)


def test_a_line_is_completed_like_interpolation():
    """Without anything to learn, interpolation gets the weight."""
    rng = np.random.RandomState(0)
    walks = rng.randn(300, 3).cumsum(0)
    hidden = rng.rand(300, 3) < 0.2
    cells = np.where(hidden, np.nan, walks)
    found = learned().fit_transform(cells)
    line = Interpolation().fit(cells, 0).predict(cells, 0)
    assert rmse(found, walks, hidden) < 1.03 * rmse(line, walks, hidden)


def test_order_and_gaps_of_times(truth):
    X, _ = with_gaps(truth, "cells")
    completer = quick().fit(X)
    whole = completer.transform(X)
    with pytest.warns(UserWarning, match="not sorted"):
        mixed = quick().fit_transform(X.sample(frac=1, random_state=0))
    pd.testing.assert_frame_equal(mixed.sort_index(), whole, check_freq=False)
    # A time without a row is one whose cells are missing.
    absent = X.drop(HOURS[100:103])
    empty = X.mask(~X.index.isin(absent.index)[:, None] & np.ones(X.shape, bool))
    np.testing.assert_allclose(
        completer.transform(absent), completer.transform(empty).loc[absent.index]
    )


@pytest.mark.parametrize("of", ["dates", "durations", "days"])
def test_dates_as_values_are_refused_by_name(of):
    time = pd.date_range("2024-01-01", periods=8)
    due = pd.Series(time + pd.Timedelta("3D"), time)
    due = {"dates": due, "durations": due - time[0], "days": due.dt.date}[of]
    X = pd.DataFrame({"due": due, "load": [1.0, 2, 3, 4, np.nan, 6, 7, 8]}, time)
    with pytest.warns(UserWarning, match=r"'due'.*make numbers of them"):
        found = quick().fit_transform(X)
    assert found["due"].equals(X["due"]) and found["load"].notna().all()


def test_containers_of_times(truth):
    X, _ = with_gaps(truth, "cells")
    whole = quick().fit_transform(X)
    column = X.reset_index(names="when").assign(note="a")
    with pytest.warns(UserWarning, match=r"not numbers.*'note'"):
        named = quick(time="when").fit(column)
    found = named.transform(column)
    assert (found[["when", "note"]] == column[["when", "note"]]).all(axis=None)
    np.testing.assert_allclose(found[X.columns], whole)
    text = column.drop(columns="note").astype({"when": str})
    for frame in (text, pl.from_pandas(column.drop(columns="note"))):
        found = quick(time="when").fit_transform(frame)
        assert type(found) is type(frame)
        np.testing.assert_allclose(found[list(X.columns)].to_numpy(), whole)
    words = X.set_axis(X.index.astype(str))
    found = quick().fit_transform(words)
    np.testing.assert_allclose(found, whole)
    zone = X.tz_localize("UTC").tz_convert("Europe/Berlin")
    found = quick().fit_transform(zone)
    np.testing.assert_allclose(found, whole)
    plain = quick().fit_transform(X.to_numpy())
    np.testing.assert_allclose(plain, whole)
    whole_numbers = X.round().astype("Int64")
    found = quick().fit_transform(whole_numbers)
    assert found.notna().all(axis=None)


@pytest.mark.long
def test_later_times_are_completed_from_what_was_learned(truth):
    X, hidden = with_gaps(truth, "cells")
    completer = learned().fit(X[:240])
    later = completer.transform(X[240:])
    error = rmse(later, truth[240:], hidden[240:])
    line = Interpolation().predict(X[240:].to_numpy(), 0)
    assert error < 0.7 * rmse(line, truth[240:], hidden[240:])
    # Other cells of the call, but not those of other calls, have an influence.
    day = completer.transform(X[264:288])
    far = completer.transform(X[240:])[24:48]
    assert rmse(day, truth[264:288], hidden[264:288]) < 0.5
    assert not np.allclose(day, far)
    # A gap can be longer than the fit.
    long = X.reindex(pd.date_range(HOURS[0], periods=1200, freq="h"))
    assert completer.transform(long).notna().all(axis=None)


def test_later_times_without_dates_are_those_after_the_fit(truth):
    X, _ = with_gaps(truth, "cells")
    later = quick(period=24).fit(X[:240]).transform(X[240:])
    plain = quick(period=24).fit(X[:240].to_numpy())
    np.testing.assert_allclose(plain.transform(X[240:].to_numpy()), later)


@pytest.mark.filterwarnings("ignore:X (does not have|has) .*feature names")
def test_times_that_do_not_fit_to_those_of_the_fit(truth):
    X, _ = with_gaps(truth, "cells")
    completer = quick().fit(X[7:])  # not from midnight
    whole = completer.transform(X[7:])
    np.testing.assert_allclose(completer.transform(X[7:].to_numpy()), whole)
    with pytest.raises(ValueError, match="both be dates"):
        completer.transform(X[7:].reset_index(drop=True))
    finer = pd.date_range(HOURS[7], periods=30, freq="10min")
    with pytest.raises(ValueError, match="finer than the steps"):
        completer.transform(X[:30].set_axis(finer))
    plain = quick(period=[24, 24]).fit(X.to_numpy())
    assert plain.periods_ == [24]
    with pytest.raises(ValueError, match="both be dates"):
        plain.transform(X)


def test_deviations_have_the_unit_of_the_series(truth):
    X, _ = with_gaps(truth, "cells")
    X.iloc[100:160, 0] = np.nan  # a class of gaps that is hardly ever hidden
    one = quick(scaling=None).fit(X).predict_std(X)
    many = quick(scaling=None).fit(1000 * X)
    np.testing.assert_allclose(many.predict_std(1000 * X), 1000 * one, rtol=1e-5)


def test_a_missing_end_still_weights_the_members(truth):
    for seed in range(3):
        cells = truth[["s0"]][:150].reindex(HOURS)
        completer = quick().set_params(random_state=seed).fit(cells)
        assert np.isfinite(completer.error_)


def ends(kind, seed, n_series, where):
    """A series, the cells at one of its ends, and the nearest values there."""
    rng = np.random.RandomState(seed)
    time = np.arange(100)[:, None]
    noise = rng.randn(100, n_series)
    truth = {
        "ramp": lambda: 100 + rng.choice([-1.0, 1.0], n_series) * time + noise,
        "step": lambda: 10 * (time > 40 + rng.randint(20, size=n_series)) + 0.3 * noise,
        "season": lambda: 0.3 * time + 5 * np.sin(2 * np.pi * time / 12) + noise,
        "walk": lambda: noise.cumsum(0),
    }[kind]()
    n_hidden = rng.randint(1, 20)
    hidden = np.zeros(truth.shape, bool)
    hidden[slice(n_hidden) if where == "start" else slice(-n_hidden, None)] = True
    cells = np.where(hidden | (rng.rand(*truth.shape) < 0.05), np.nan, truth)
    frame = pd.DataFrame(cells)
    nearest = (frame.bfill() if where == "start" else frame.ffill()).to_numpy()
    return truth, cells, hidden, nearest


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "most"), [("ramp", 0.8), ("season", 0.8), ("step", 1.05), ("walk", 1.05)]
)
def test_ends_do_not_jump_to_the_mean(kind, most):
    """Where nothing can be learned, the nearest value is the best answer."""
    errors = []
    for seed, where in itertools.product(range(2), ["start", "end"]):
        truth, cells, hidden, nearest = ends(kind, seed, 1 + seed % 2, where)
        found = learned().set_params(random_state=seed).fit_transform(cells)
        errors.append([rmse(each, truth, hidden) for each in (found, nearest)])
    ours, theirs = np.square(errors).mean(0)
    assert ours < most**2 * theirs


@pytest.mark.long
def test_ends_where_no_weighted_member_has_a_value():
    """Series that end together: other series of the same time say nothing there."""
    truth, cells, hidden, nearest = ends("ramp", 111, 2, "end")
    found = learned().set_params(random_state=111).fit_transform(cells)
    assert rmse(found, truth, hidden) < 1.2 * rmse(nearest, truth, hidden)


def test_the_nearest_value_is_used_where_no_weighted_member_has_one():
    weights, has = np.array([0.0, 1e-6, 1 - 1e-6]), np.array([True, True, False])
    shares = _present(weights, has)
    assert shares.sum() == pytest.approx(1) and shares[0] > 0.99
    np.testing.assert_allclose(
        _present(np.array([0.5, 0.3, 0.2]), has)[:2], [5 / 8, 3 / 8]
    )


def test_random_walks_have_no_period_of_two_waves():
    for seed in range(10):
        walk = np.random.RandomState(seed).randn(120, 1).cumsum(0)
        walk[:30] = np.nan
        assert all(3 * p <= 90 for p in find_periods(walk, []))


def test_gaps_longer_than_windows_do_not_jump_to_the_mean():
    rng = np.random.RandomState(0)
    truth = 5.0 * np.arange(150)[:, None] + rng.randn(150, 1)
    hidden = np.zeros(truth.shape, bool)
    for start in (20, 60, 100):
        hidden[start : start + 12] = True
    found = learned().fit_transform(np.where(hidden, np.nan, truth))
    assert rmse(found, truth, hidden) < 2


def test_a_small_series_is_completed_like_the_others():
    rng = np.random.RandomState(0)
    common = np.sin(np.arange(200) / 5)[:, None]
    truth = common * rng.uniform(1, 2, 5) + 0.1 * rng.randn(200, 5)
    truth[:, 4] *= 1e-4
    hidden = rng.rand(200, 5) < 0.2
    found = learned(period=None).fit_transform(np.where(hidden, np.nan, truth))
    error = np.sqrt(np.where(hidden, (found - truth) ** 2, 0).sum(0) / hidden.sum(0))
    error /= truth.std(0)
    assert error[4] < 1.5 * error[:4].max()


def test_classes_of_gaps_and_ends():
    missing = np.array([list("1101110000111111"), list("0000000000000000")]) == "1"
    found = gap_classes(missing.T, False, 4)
    assert found[:, 0].tolist() == [5, 4, 0, 1, 1, 1, 0, 0, 0, 0, 4, 5, 5, 6, 6, 6]
    assert (found[:, 1] == 0).all()
    so_far = gap_classes(missing.T, True, 4)
    assert so_far[:, 0].tolist() == [0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2]


def test_held_out_ends_lie_inside():
    rng = np.random.RandomState(0)
    missing = np.zeros((100, 3), bool)
    missing[90:, 0] = missing[95:, 1] = True
    found = Ends.of(missing, missing, rng)
    assert found.missing and found.after.tolist() == [10, 5, 0]
    for lot in (0.0, 0.5, 1.0):
        since, until = found.moved(missing, lot, 1, rng)
        assert (since >= 0).all() and (until <= 100).all()
        assert sorted(until[1] - since[1]) == [0, 5, 10]
        assert (until[1] == until[1, 0]).all() and (since[0] == since[0, 0]).all()
        assert (until[0] < since[1]).all()
    inner = missing.copy()
    inner[90:] = False
    inner[40:44] = True
    without = Ends.of(inner, inner, rng)
    assert not without.missing and set(without.before) | set(without.after) == {4}


def test_causal_completions_do_not_see_later_times(truth):
    X, hidden = with_gaps(truth, "cells")
    completer = learned(causal=True).fit(X)
    whole = completer.transform(X)
    rest = X.copy()
    rest[200:] = np.nan
    np.testing.assert_allclose(completer.transform(rest)[:200], whole[:200])
    last = X.ffill().bfill()
    assert rmse(whole, truth, hidden) < 0.7 * rmse(last, truth, hidden)


def test_a_completer_of_the_users_choice_in_a_pipeline(truth, fitted, tmp_path):
    X, hidden = with_gaps(truth, "cells")
    own = SeriesCompleter(KNNCompleter(), period=[24], random_state=0)
    pipeline = make_pipeline(clone(own), FunctionTransformer())
    assert rmse(pipeline.fit_transform(X), truth, hidden) < 0.5
    completer, X = fitted
    save(completer, tmp_path / "series.skmc")
    again = load(tmp_path / "series.skmc")
    pd.testing.assert_frame_equal(again.transform(X), completer.transform(X))
    std = completer.predict_std(X)
    assert ((std == 0) == X.notna()).all(axis=None)
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1\)"):
        completer.predict_interval(X, 1.0)


def frame(index, n=6):
    return pd.DataFrame({"a": np.arange(n) + 0.5, "b": [1.0, np.nan] * (n // 2)}, index)


BAD = {
    "a time twice": (lambda: frame([1, 2, 3, 4, 5, 6]).iloc[[0, 0, 1]], None),
    "duplicate dates": (
        lambda: frame(pd.to_datetime(["2024-01-01"] * 2 + ["2024-01-02"] * 4)),
        "has the time 2024-01-01.* 2 times.*name their column by unit=",
    ),
    "levels": (
        lambda: frame(pd.MultiIndex.from_product([["a", "b"], HOURS[:3]])),
        r"levels \[0, 1\].*X\[column\]\.unstack\(0\)",
    ),
    "shops": (
        lambda: frame(
            pd.MultiIndex.from_product([[1, 2, 3], ["a", "b"]], names=["day", "shop"])
        ).swaplevel(),
        r"levels \['shop', 'day'\].*unstack\('shop'\)",
    ),
    "days first": (
        lambda: frame(
            pd.MultiIndex.from_product([HOURS[:3], ["a", "b"]], names=["day", "shop"])
        ),
        r"unstack\('shop'\)",
    ),
    "the doubled hour": (
        lambda: frame(
            pd.date_range(
                "2024-10-27", periods=6, freq="h", tz="Europe/Berlin"
            ).tz_localize(None)
        ),
        "clocks were set back",
    ),
    "no time": (lambda: frame([pd.NaT, *HOURS[:5]]), "NaT in row 0"),
    "mixed": (lambda: frame([1, *HOURS[:5]]), "both dates and numbers"),
    "a single time": (lambda: frame(range(6))[:1], "single time"),
    "no series": (lambda: frame(range(6)) * np.nan, "no series"),
    "infinite": (lambda: frame(range(6)).replace(1.0, np.inf), "infinity in row 0"),
    "huge": (lambda: frame(range(6)) * 1e160, r"5e\+159, whose square"),
    "no rows": (lambda: frame(range(6))[:0], "no rows"),
    "far apart": (
        lambda: frame(HOURS[:2].append(HOURS[2:6] + pd.Timedelta("40000D"))),
        "most of the series would be empty",
    ),
}


@pytest.mark.filterwarnings("ignore:Series without")
@pytest.mark.parametrize("name", BAD)
def test_times_and_cells_that_are_refused(name):
    make, message = BAD[name]
    if message is None:  # rows that are only numbered
        SeriesCompleter().fit(make())
        return
    with pytest.raises(ValueError, match=message):
        SeriesCompleter().fit(make())


def test_other_input_that_is_refused(fitted):
    completer, X = fitted
    for period in (1, 1000, [24, 24.5]):
        with pytest.raises(ValueError, match="between 2 and half of the series, 180"):
            SeriesCompleter(period=period).fit(X)
    with pytest.raises(ValueError, match="time names column 'when'"):
        SeriesCompleter(time="when").fit(X)
    with pytest.raises(ValueError, match="holds 'high' in row 0, which is not"):
        completer.transform(X.assign(s0="high"))
    with pytest.warns(UserWarning, match="stay missing"):
        empty = quick(period=None).fit_transform(X[:50].assign(e=np.nan))
    assert empty["e"].isna().all()
    assert empty.drop(columns="e").notna().all(axis=None)


@pytest.mark.long
def test_scores_order_completers(truth):
    X, _ = with_gaps(truth, "cells")
    completer, worse = learned().fit(X), learned(period=None).fit(X)
    for y in (None, truth):
        assert -0.05 < completer.score(X, y) < 0
        assert completer.score(X, y) > worse.score(X, y)
    search = GridSearchCV(learned(), {"period": [None, 24]}, cv=TimeSeriesSplit(2)).fit(
        X
    )
    assert search.best_params_ == {"period": 24}
    with pytest.raises(ValueError, match="no cell to compare"):
        completer.score(X, X)


@pytest.mark.long
@parametrize_with_checks([SeriesCompleter(random_state=0)])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_with_default_members(estimator, check):
    """Inputs of all kinds; with other members, the other checks are run, too."""
    if not any(
        part in check.func.__name__ for part in ("fit2d", "dtypes", "idempotent")
    ):
        pytest.skip("with other members")
    check(estimator)


@pytest.mark.long
@pytest.mark.parametrize("shape", [(2, 3), (3, 1), (40, 1), (20, 60)])
def test_short_and_wide_series(shape):
    rng = np.random.RandomState(0)
    cells = rng.randn(*shape)
    cells[1, 0] = np.nan
    found = learned().fit_transform(cells)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("kind", ["times", "periods", "slots"])
def test_every_cell_is_in_one_row_of_an_arrangement(kind):
    span = Span(5, 17, 3)
    windows = Windows(kind, 4, (-1, 4))
    place = windows.places(np.arange(windows.n_rows(span)), span)
    n_own = windows.n_own(span)
    assert place.shape[1] == 3 * n_own
    own = place[:, :n_own]
    assert sorted(own[own < 51]) == list(range(51))
    # The cell of an offset belongs to the same series, so much later.
    for k, offset in enumerate((-1, 4), 1):
        there = place[:, k * n_own : (k + 1) * n_own]
        both = (own < 51) & (there < 51)
        assert both.any()
        assert (there[both] - own[both] == 3 * offset).all()
    cells = np.arange(51.0)
    rows = np.append(cells, np.nan)[own]
    position = rows // 3 + 5
    if kind == "periods":  # slot j of period d is at position 4 d + j
        assert (np.nanmax(position // 4, 1) == np.nanmin(position // 4, 1)).all()
    if kind == "slots":
        assert (np.nanmax(position % 4, 1) == np.nanmin(position % 4, 1)).all()


def test_wide_windows_have_few_columns():
    span = Span(0, 1000, 100)
    offsets = [(-24, 24), (-1, 1), (-2, 2)]
    assert widest(Windows("times"), offsets, span, 300).offsets == (-24, 24)
    assert widest(Windows("times"), offsets, span, 700).offsets == (-24, 24, -1, 1)
    assert widest(Windows("times"), offsets, span, 299).offsets == ()


def test_grids_of_times():
    def grid(index):
        ticks = ticks_of(list(index), "time")
        found = TimeGrid.of(ticks, "time")
        return found, found.positions(ticks).tolist()

    months, at = grid(pd.date_range("2020-01-31", periods=14, freq="ME"))
    assert months.unit == "M" and at == list(range(14)) and months.calendar == [12]
    quarters, at = grid(pd.date_range("2020-01-01", periods=8, freq="QS"))
    assert at == list(range(8)) and quarters.calendar == [4]
    hours, at = grid(HOURS[[7, 8, 9, 12]])
    assert at == [7, 8, 9, 12]  # from midnight
    assert hours.calendar[:2] == [24, 168]
    weeks, _ = grid(pd.date_range("2020-01-04", periods=5, freq="7D"))
    assert weeks.calendar == [1, 52]
    spring = pd.date_range("2024-03-31", periods=5, freq="h", tz="Europe/Berlin")
    assert grid(spring)[1] == [23, 24, 25, 26, 27]  # in UTC, from midnight
    years, at = grid([1970, 1971, 1974])
    assert at == [0, 1, 4] and years.calendar == []
    noise = pd.to_timedelta(np.random.RandomState(0).randint(0, 900, 360), unit="s")
    with pytest.warns(UserWarning, match="irregular"):
        _, at = grid(HOURS + noise)
    assert (np.diff(at) > 0).all()


def test_periods():
    rng = np.random.RandomState(0)
    time = np.arange(600)
    daily = np.sin(2 * np.pi * time / 24)[:, None] + 0.3 * rng.randn(600, 2)
    cells = np.where(rng.rand(600, 2) < 0.3, np.nan, daily + 0.01 * time[:, None])
    assert find_periods(cells, []) == [24]
    weekend = daily * np.where(time // 24 % 7 < 5, 1.0, 0.2)[:, None]
    assert find_periods(weekend, []) == [24, 168]
    assert find_periods(weekend, [24, 168, 8766]) == [24, 168]
    assert find_periods(daily, [24, 168]) == [24]
    assert find_periods(rng.randn(600, 2), [24, 168]) == []
    assert find_periods(np.ones((50, 2)), []) == []


@pytest.fixture(scope="module")
def long():
    """Sales of shops with different times, in a row for each shop and day."""
    rng, days = np.random.RandomState(0), pd.date_range("2024-01-01", periods=90)
    weekly = 10 + 3 * np.sin(2 * np.pi * np.arange(90) / 7)
    parts = []
    for k, (shop, a, b) in enumerate([("a", 0, 90), ("b", 10, 90), ("c", 0, 60)]):
        own = weekly[a:b] + 0.1 * rng.randn(2, b - a)
        values = {"sales": 10.0**k * own[0], "visits": own[1]}
        parts.append(pd.DataFrame({"shop": shop, "day": days[a:b], **values}))
    truth = pd.concat(parts, ignore_index=True).sample(frac=1, random_state=1)
    X = truth.copy()
    X.loc[rng.rand(len(X)) < 0.15, "sales"] = np.nan
    X.loc[(X["shop"] == "b") & (X["day"] > days[86]), "visits"] = np.nan
    return truth, X


def in_long_form(X, completer=None, **params):
    completer = SeriesCompleter(completer or MeanCompleter(), random_state=0, **params)
    return completer.set_params(time="day", unit="shop").fit(X)


@pytest.mark.long
def test_rows_of_units_are_completed_in_place(long):
    truth, X = long
    completer = in_long_form(X, GaussianCompleter(1.0, tol=1e-3, random_state=0))
    completed = completer.transform(X)
    assert completer.periods_ == [7] and completed.index.equals(X.index)
    seen = X.notna()
    pd.testing.assert_frame_equal(completed[seen], truth[seen])
    assert not completed.isna().any(axis=None)
    for shop, own in truth.groupby("shop"):
        off = (completed.loc[own.index, "sales"] - own["sales"])[X["sales"].isna()]
        assert np.sqrt(np.square(off).mean()) < 0.1 * own["sales"].std(), shop
    std = completer.predict_std(X)
    assert (std["sales"] > 0).equals(X["sales"].isna())
    assert -0.1 < completer.score(X) < 0


def test_the_kind_of_the_long_table_changes_nothing(long):
    _, X = long
    expected = in_long_form(X).transform(X)["sales"].to_numpy()
    levels = X.set_index(["shop", "day"])
    completer = SeriesCompleter(MeanCompleter(), unit="shop", random_state=0)
    found = completer.fit_transform(levels)
    np.testing.assert_array_equal(found["sales"], expected)
    frame = pl.from_pandas(X.reset_index(drop=True))
    np.testing.assert_array_equal(
        in_long_form(frame).transform(frame)["sales"], expected
    )
    order = np.random.RandomState(2).permutation(len(X))
    found = in_long_form(X).transform(X.iloc[order])["sales"]
    np.testing.assert_allclose(found, expected[order], rtol=1e-9)


def test_units_of_one_time_are_those_of_a_wide_table(long):
    """A row for each shop and day, or a column for each shop: the same completion."""
    X = long[1].loc[long[1]["shop"] != "c", ["shop", "day", "sales"]]
    X = X[X["day"] >= "2024-01-11"].sort_values(["shop", "day"])
    found = in_long_form(X).transform(X)["sales"].to_numpy()
    wide = X.pivot(index="day", columns="shop", values="sales")
    completer = SeriesCompleter(MeanCompleter(), random_state=0)
    expected = completer.fit_transform(wide)
    np.testing.assert_allclose(found, expected.to_numpy().T.ravel(), rtol=1e-9)


def test_long_gaps_stay_missing(long):
    _, X = long
    completed = in_long_form(X, max_gap=2).transform(X)
    for _, own in X.sort_values("day").groupby("shop"):
        for name in ("sales", "visits"):
            gone = own[name].isna()
            lengths = gone.groupby((~gone).cumsum()).transform("sum")
            left = completed.loc[own.index, name].isna()
            assert left.equals(gone & (lengths > 2))
    assert completed["visits"].isna().sum() == 3


def test_units_that_cannot_be_told_apart_are_errors(long):
    _, X = long
    completer = in_long_form(X)
    with pytest.raises(
        ValueError, match="'z' in row 0, which has no series in the fit"
    ):
        completer.transform(X.assign(shop="z"))
    with pytest.raises(ValueError, match="unit='shop' is missing in row 3"):
        in_long_form(X.assign(shop=X["shop"].where(np.arange(len(X)) != 3)))
    with pytest.raises(ValueError, match=r"of unit '\w' has the time .* 2 times"):
        in_long_form(pd.concat([X, X]))
    with pytest.raises(ValueError, match="unit names column 'store'"):
        SeriesCompleter(time="day", unit="store").fit(X)


def drifting(start, n_times, *, level=0.0, amplitude=1.0, phase=0, seed=0):
    """Series of a day's period and of noise, with gaps, and their truth."""
    hours, rng = (
        pd.date_range(start, periods=n_times, freq="h"),
        np.random.RandomState(seed),
    )
    angle = 2 * np.pi * (hours.hour.to_numpy() + phase) / 24
    cells = 10 + level + amplitude * 3 * np.sin(angle[:, None] + [0, 0.5, 1])
    truth = pd.DataFrame(cells + 0.5 * rng.randn(n_times, 3), hours, list("abc"))
    gone = np.zeros(truth.shape, bool)
    for first, series in zip(
        rng.randint(n_times, size=n_times // 10),
        rng.randint(3, size=n_times),
        strict=False,
    ):
        gone[first : first + rng.randint(1, 7), series] = True
    return truth.mask(gone), truth, gone


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        {"level": 7.0},
        {"amplitude": 3.0},
        {"phase": 9},
        {"level": -90.0, "amplitude": 0.2},
    ],
)
def test_other_series_than_those_of_the_fit_are_seen(change, causal):
    past, *_ = drifting("2024-01-01", 336)
    X, truth, gone = drifting("2024-01-15", 336, seed=1, **change)
    completer = SeriesCompleter(MeanCompleter(), random_state=0, causal=causal).fit(
        past
    )
    between = X.ffill() if causal else X.interpolate(limit_direction="both")
    late = gone & (np.arange(len(X)) >= (64 if causal else 0))[:, None]
    least = rmse(between.bfill(), truth, late)
    assert rmse(completer.transform(X), truth, late) < 1.05 * least
    low, high = completer.predict_interval(X)
    inside = (low <= truth) & (truth <= high)
    assert inside.to_numpy()[late].mean() > 0.75


def test_series_like_those_of_the_fit_keep_its_weights():
    past, *_ = drifting("2024-01-01", 336)
    X, truth, gone = drifting("2024-01-15", 336, seed=1)
    completer = SeriesCompleter(MeanCompleter(), random_state=0).fit(past)
    found = rmse(completer.transform(X), truth, gone)
    again = rmse(clone(completer).fit_transform(X), truth, gone)
    assert found < 1.1 * again


def test_days_for_a_fit_of_hours_are_a_warning():
    past, *_ = drifting("2024-01-01", 336)
    completer = SeriesCompleter(MeanCompleter(), random_state=0).fit(past)
    with pytest.warns(UserWarning, match="24 or more steps"):
        completer.transform(past.iloc[::24])
