"""Effects of treatments in panels."""

from __future__ import annotations

import warnings

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from skmc import GaussianCompleter, SoftImputeCompleter
from skmc.panel import effect
from skmc.panel.outcomes import Panel

matplotlib.use("Agg")

MCNNM = SoftImputeCompleter(0.3, fixed_effects="both")


def panel(seed=0, n_units=24, n_times=20, size=2.0, first=(14,)):
    """A panel with effects and two factors; the first units are treated."""
    rng = np.random.RandomState(seed)
    X = 5 * rng.randn(n_units, 1) + np.linspace(0, 4, n_times)
    X += rng.randn(n_units, 2) @ np.cumsum(rng.randn(2, n_times), 1) * 0.1
    X += 0.1 * rng.randn(n_units, n_times)
    treated = np.zeros(X.shape, bool)
    for unit, start in enumerate(first):
        treated[unit, start:] = True
    X[treated] += size
    return X, treated


@pytest.mark.parametrize("first", [(14,), (14, 14, 14), (10, 14, 17)])
def test_a_known_effect_is_found(first):
    X, treated = panel(size=2.0, first=first)
    found = effect(X, treated, n_placebos=0)
    assert found.att == pytest.approx(2.0, abs=0.4)
    assert found.att == np.nanmean(found.effects)
    np.testing.assert_array_equal(~np.isnan(found.effects), treated)
    np.testing.assert_array_equal(~np.isnan(found.by_period), treated.any(0))
    # An additive change of the treated cells changes only the effects.
    more = effect(X + 3.0 * treated, treated, n_placebos=0)
    assert more.att == pytest.approx(found.att + 3, abs=1e-9)
    np.testing.assert_allclose(more.counterfactual, found.counterfactual)
    # Means over the units that are treated at each time.
    one = np.array([np.mean(found.effects[treated[:, t], t]) for t in range(14, 20)])
    np.testing.assert_allclose(found.by_period[14:], one)


def test_the_counterfactual_is_the_completion_without_the_treated_cells():
    X, treated = panel()
    found = effect(X, treated, MCNNM, n_placebos=0)
    completed = MCNNM.fit_transform(np.where(treated, np.nan, X))
    np.testing.assert_allclose(found.counterfactual[treated], completed[treated])
    np.testing.assert_allclose(found.effects[treated], (X - completed)[treated])


def test_placebos_take_the_place_of_the_treated_unit():
    """Each once, without the treated unit; here the order does not matter."""
    X, treated = panel(n_units=8)
    found = effect(X, treated, MCNNM, level=0.5)
    expected = []
    for k in range(7):
        placebo = np.zeros((7, 20), bool)
        placebo[k, 14:] = True
        own = effect(X[1:], placebo, MCNNM, n_placebos=0)
        expected.append(own.att)
    np.testing.assert_allclose(sorted(found.placebo_att), sorted(expected))
    assert found.p_value == (1 + sum(np.abs(expected) >= found.att)) / 8
    # The same placebos again are no evidence.
    more = effect(X, treated, MCNNM, n_placebos=50, level=0.5)
    assert len(more.placebo_att) == 7 and more.p_value == found.p_value


def test_groups_take_the_place_of_several_units():
    X, treated = panel(n_units=11, first=(10, 14, 17))
    found = effect(X, treated, MCNNM, level=0.5, random_state=0)
    assert found.placebo_gaps.shape == (8, 2, 20)
    started = ~np.isnan(found.placebo_gaps[:, 0])
    np.testing.assert_array_equal(started, np.tile(treated.any(0), (8, 1)))
    again = effect(X, treated, MCNNM, level=0.5, random_state=0)
    np.testing.assert_array_equal(found.placebo_att, again.placebo_att)
    with pytest.warns(UserWarning, match="3 placebos give no interval of 90 %.* 9:"):
        few = effect(X, treated, MCNNM, n_placebos=3)
    assert len(few.placebo_att) == 3 and few.interval == (-np.inf, np.inf)


@pytest.mark.long
def test_intervals_hold_the_effect_as_often_as_they_say():
    inside = []
    for seed in range(25):
        X, treated = panel(seed, n_units=20, n_times=12, first=(8,))
        found = effect(X, treated, MCNNM, level=0.8)
        low, high = found.interval
        inside.append(low <= 2 <= high)
    assert 0.68 <= np.mean(inside) <= 0.95
    # The same rule for each time.
    assert found.period_intervals[:, 8:].shape == (2, 4)
    assert np.isfinite(found.period_intervals[:, 8:]).all()
    assert 0.7 <= found.coverage <= 0.9


@pytest.mark.long
def test_no_effect_has_large_p_values():
    p = []
    for seed in range(20):
        X, treated = panel(seed, n_units=12, n_times=12, size=0.0, first=(8,))
        p.append(effect(X, treated, MCNNM).p_value)
    assert 0.3 < np.mean(p) < 0.8
    X, treated = panel(0, n_units=12, n_times=12, size=20.0, first=(8,))
    assert effect(X, treated, MCNNM).p_value == pytest.approx(1 / 12)


def test_a_placebo_in_time_is_before_the_treatment():
    X, treated = panel(first=(12, 15))
    found = effect(X, treated, MCNNM, n_placebos=0)
    times = np.flatnonzero(~np.isnan(found.time_placebo))
    np.testing.assert_array_equal(times, [8, 9, 10, 11, 12, 13, 14])
    assert abs(np.nanmean(found.time_placebo)) < 1
    # It does not see the treated cells.
    other = effect(X + 50 * treated, treated, MCNNM, n_placebos=0)
    np.testing.assert_allclose(other.time_placebo, found.time_placebo)


def test_missing_cells_and_containers():
    X, treated = panel()
    X[3, 5] = X[7, 16] = np.nan
    frame = pd.DataFrame(X, [f"unit {i}" for i in range(24)], range(1990, 2010))
    mask = pd.DataFrame(treated, frame.index, frame.columns)
    answers = [
        effect(*args, MCNNM, random_state=0)
        for args in ((X, treated), (frame, mask), (frame, treated.astype(int)))
    ]
    for found in answers[1:]:
        assert found.effects.index.equals(frame.index)
        assert found.counterfactual.columns.equals(frame.columns)
        np.testing.assert_array_equal(found.effects, answers[0].effects)
        np.testing.assert_array_equal(found.placebo_gaps, answers[0].placebo_gaps)
    assert np.isfinite(answers[0].placebo_att).all()
    assert "2004" in str(answers[1]) and "placebo" in str(answers[1])


def test_any_container_of_treated_cells():
    """Lists have an ``index`` and tensors ``columns``-like methods, but no labels."""
    X, treated = panel(n_units=8)
    expected = effect(X, treated, MCNNM, n_placebos=0).effects
    frame, mask = pl.DataFrame(X), pl.DataFrame(treated)
    for args in (
        (X.tolist(), treated.tolist()),
        (torch.tensor(X), torch.tensor(treated)),
        (frame, mask),
        (pd.DataFrame(X), pd.DataFrame(treated).astype("boolean")),
    ):
        found = effect(*args, MCNNM, n_placebos=0)
        np.testing.assert_allclose(found.effects, expected)
    assert list(effect(frame, mask, MCNNM, n_placebos=0).times) == frame.columns
    with pytest.raises(ValueError, match="different labels in their columns"):
        effect(frame, mask[:, ::-1], MCNNM)


TIMES = {
    "years": (range(1990, 2010), "2004"),
    "dates": (pd.date_range("2000-01", periods=20, freq="MS"), "2001-03-01 "),
    "periods": (pd.period_range("2000-01", periods=20, freq="M"), "2001-03"),
    "names": ([f"wave {t}" for t in range(20)], "wave 14"),
    "pairs": (pd.MultiIndex.from_product([range(5), list("abcd")]), "(3, 'c')"),
}


@pytest.mark.parametrize("name", TIMES)
def test_labels_of_times(name):
    """The report and the plot have the labels of the times."""
    import matplotlib.pyplot as plt

    times, first = TIMES[name]
    X, treated = panel(n_units=6)
    frame = pd.DataFrame(X, columns=times)
    found = effect(frame, treated, MCNNM, n_placebos=0).plot()
    assert found.summary().splitlines()[3].strip().startswith(first)
    found.figure_.canvas.draw()
    shown = [label.get_text() for label in found.axes_[0].get_xticklabels()]
    assert len(shown) < 12
    if name in ("periods", "names", "pairs"):
        assert set(shown) <= {str(time) for time in frame.columns}
    plt.close("all")


def test_missing_cells_leave_placebos_that_others_predict():
    """No completion has a column without cells, or a unit without any."""
    X, treated = panel(n_units=8, n_times=12, first=(8,))
    X[3:, 9] = X[5] = np.nan
    X[2, 9] = X[1, 8:10] = np.nan
    X[1, 9] = 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "1 row of X")  # row 5
        found = effect(X, treated, MCNNM, level=0.5, random_state=0)
    assert found.placebo_gaps.shape == (6, 2, 12)
    assert np.isfinite(found.placebo_att).all()
    assert np.isnan(found.placebo_gaps[:, 0, 9]).all()


def test_plot_compares_the_same_cells():
    import matplotlib.pyplot as plt

    X, treated = panel(n_units=9, first=(14, 14))
    X[0] += 100
    X[0, 5] = np.nan
    found = effect(X, treated, MCNNM, n_placebos=0).plot()
    observed, counterfactual = (line.get_ydata() for line in found.axes_[0].lines[:2])
    assert abs(observed - counterfactual)[:14].max() < 5
    plt.close("all")


def test_draws_give_a_second_interval():
    X, treated = panel(n_units=60, n_times=10, first=(7,))
    found = effect(X, treated, GaussianCompleter(), n_placebos=0, random_state=0)
    assert found.draws.shape == (200,)
    low, high = found.interval_by_draws
    assert low < found.att < high < low + 8
    assert "Draws" in found.summary()
    assert effect(X, treated, MCNNM, n_placebos=0).interval_by_draws is None


def test_plot():
    import matplotlib.pyplot as plt

    X, treated = panel(n_units=9)
    found = effect(X, treated, MCNNM, level=0.5)
    display = found.plot()
    assert display is found
    outcomes, gaps = display.axes_
    observed, counterfactual = outcomes.lines[:2]
    np.testing.assert_array_equal(observed.get_ydata(), X[0])
    np.testing.assert_array_equal(counterfactual.get_ydata(), found.counterfactual[0])
    assert len([line for line in gaps.lines if line.get_color() == "0.8"]) == 8
    _, own = plt.subplots(1, 2)
    np.testing.assert_array_equal(found.plot(ax=own).axes_, own)
    plt.close("all")


def test_without_enough_units_there_are_no_placebos():
    X, treated = panel(n_units=5, first=(10, 14, 17))
    with pytest.warns(UserWarning, match="2 never-treated units"):
        found = effect(X, treated, MCNNM)
    assert np.isnan(found.p_value) and np.isnan(found.coverage)
    assert found.interval == (-np.inf, np.inf)
    assert found.summary() and found.plot()


BAD = {
    "shape": (lambda X, T: (X, T[:, 1:]), "treated has shape"),
    "none": (lambda X, T: (X, T & False), "no treated cell"),
    "values": (lambda X, T: (X, T * 2), "must hold bools"),
    "unknown": (
        lambda X, T: (X, np.ma.masked_array(T, T)),
        "must hold bools, none of which is missing",
    ),
    "na": (
        lambda X, T: (X, pd.DataFrame(T).astype("boolean").mask(T)),
        "must hold bools, none of which is missing",
    ),
    "order": (
        lambda X, T: (pd.DataFrame(X).iloc[:, ::-1], T),
        "times in the columns of X must increase, got 18 after 19",
    ),
    "axes": (lambda X, T: (X[0], T[0]), "two axes"),
    "missing": (lambda X, T: (np.where(T, np.nan, X), T), "unit 0 at time 14 is miss"),
    "always": (lambda X, T: (X, T | (np.arange(24) == 2)[:, None]), "Unit 2 has no"),
    "everyone": (lambda X, T: (X, T | (np.arange(20) == 15)), "At time 15"),
    "labels": (
        lambda X, T: (pd.DataFrame(X), pd.DataFrame(T).rename(index={0: "a"})),
        "different labels in their index",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    spoil, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        effect(*spoil(*panel()))


def test_bad_parameters():
    X, treated = panel()
    with pytest.raises(ValueError, match="level"):
        effect(X, treated, level=90)
    with pytest.raises(ValueError, match="n_placebos"):
        effect(X, treated, n_placebos=-1)
    with pytest.raises(TypeError, match="n_placebos"):
        effect(X, treated, n_placebos=1.5)
    with pytest.raises(TypeError, match="completer"):
        effect(X, treated, "MC-NNM")


def long_form(X, treated):
    unit, time = np.indices(X.shape)
    columns = {"unit": [f"u{k:02d}" for k in unit.ravel()], "year": 2000 + time.ravel()}
    table = pd.DataFrame({**columns, "sales": X.ravel(), "law": treated.ravel()})
    return table.sample(frac=1, random_state=0, ignore_index=True)


def test_a_long_table_has_the_effect_of_the_wide_one():
    X, treated = panel()
    expected, names = effect(X, treated, MCNNM), {"unit": "unit", "time": "year"}
    table = long_form(X, treated)
    for given in (table, pl.from_pandas(table), table.astype({"law": int})):
        found = effect(given, "law", MCNNM, **names)
        assert found.att == expected.att and found.p_value == expected.p_value
        assert list(found.units[:2]) == ["u00", "u01"] and found.times[0] == 2000
    # Rows that are not there are missing outcomes.
    gone = table.index[~table["law"]][:7]
    found = effect(table.drop(gone), "law", MCNNM, n_placebos=0, **names)
    X[
        tuple(
            np.array(
                [
                    [int(u[1:]), y - 2000]
                    for u, y in table.loc[gone, ["unit", "year"]].to_numpy()
                ]
            ).T
        )
    ] = np.nan
    assert found.att == effect(X, treated, MCNNM, n_placebos=0).att


BAD_TABLES = {
    "unit": ({"unit": "state"}, "unit must be a column of X, one of .*got 'state'"),
    "treated": ({"treated": np.ones(3)}, "treated must be a column of X"),
    "outcome": ({"outcome": "price"}, "outcome must be a column of X.*got 'price'"),
    "outcomes": ({"X": lambda t: t.assign(price=1)}, r"Name the outcome, one of \["),
    "twice": (
        {"X": lambda t: pd.concat([t, t[:1]])},
        "the unit u.. twice at the time 2",
    ),
    "time": (
        {"X": lambda t: t.assign(year=t["year"].where(t.index != 4))},
        "time is missing in row 4 of X",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_long_tables(name):
    changed, message = BAD_TABLES[name]
    given = {"treated": "law", "unit": "unit", "time": "year", **changed}
    X = given.pop("X", lambda t: t)(long_form(*panel()))
    with pytest.raises(ValueError, match=message):
        effect(X, **given)


def test_covariates_of_units_that_overlap_little_are_least_squares():
    """Units of three times each, of which the first and the last are far apart."""
    rng = np.random.RandomState(0)
    m, n = 150, 152
    rows, cols = (
        np.repeat(np.arange(m), 3),
        np.add.outer(np.arange(m), range(3)).ravel(),
    )
    Z, treated = rng.randn(m, n).cumsum(0), np.zeros((m, n), bool)
    X = np.full((m, n), np.nan)
    X[rows, cols] = rng.randn(3 * m)
    treated[0, 1] = True
    rows, cols = np.nonzero(~np.isnan(X) & ~treated)
    A = np.zeros((len(rows), m + n + 1))
    A[np.arange(len(rows)), rows] = A[np.arange(len(rows)), m + cols] = 1
    A[:, -1] = Z[rows, cols]
    slope = np.linalg.lstsq(A, X[rows, cols], rcond=None)[0][-1]
    explained = Panel.read(X, treated, None, None, None, [Z]).explained
    known = ~np.isnan(X)
    np.testing.assert_allclose(explained[known], slope * Z[known], rtol=1e-7)
