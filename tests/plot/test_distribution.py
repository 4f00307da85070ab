"""Imputed beside observed values, and chains of draws."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest
from conftest import CONTAINERS
from matplotlib.colors import to_hex

from skmc import ChainedCompleter, GaussianCompleter, KNNCompleter, MixedCompleter
from skmc.exceptions import CompletionWarning
from skmc.metrics import scale_reduction
from skmc.plot import ConvergenceDisplay, DistributionDisplay, HistoryDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    rng = np.random.RandomState(0)
    size = rng.randn(120)
    frame = pd.DataFrame(
        {
            "size": size,
            "weight": size + rng.randn(120),
            "rooms": rng.randint(1, 4, 120).astype(float),
            "kind": rng.choice(["flat", "house", "boat"], 120, p=[0.6, 0.3, 0.1]),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(120), "D"),
            "note": [f"text {k}" for k in range(120)],
        }
    )
    hidden = rng.uniform(size=frame.shape) < 0.25
    hidden[:, 0] = False
    return frame.mask(hidden)


@pytest.fixture(scope="module")
def completed(table):
    return MixedCompleter(GaussianCompleter(), passthrough="note").fit_transform(table)


def areas(axis):
    """The integral of each curve, by its color."""
    found = {}
    for line in axis.lines:
        x, y = line.get_data()
        found.setdefault(to_hex(line.get_color()), []).append(np.trapezoid(y, x))
    return found


def test_each_completed_column_has_a_panel(table, completed):
    display = DistributionDisplay.from_completion(table, completed)
    assert list(display.observed) == ["weight", "rooms", "kind", "sold"]
    assert len(display.axes_) == 4
    for name in ("weight", "rooms", "kind"):
        gone = table[name].isna()
        np.testing.assert_array_equal(display.observed[name], table[name][~gone])
        (values,) = display.imputed[name]["imputed"]
        np.testing.assert_array_equal(values, completed[name][gone])
    share = table["weight"].isna().mean()
    assert display.axes_[0].get_title() == f"weight ({share:.0%} imputed)"
    texts = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert texts == ["observed", "imputed"]


def test_densities_have_area_one_and_stay_within_the_data(table, completed):
    axis = DistributionDisplay.from_completion(
        table, completed, columns="weight"
    ).axes_[0]
    for (area,) in areas(axis).values():
        assert area == pytest.approx(1, abs=0.02)
    both = np.append(table["weight"].dropna(), completed["weight"])
    for line in axis.lines:
        assert line.get_xdata().min() >= both.min()
        assert line.get_xdata().max() <= both.max()


def test_bars_are_the_shares_of_the_levels(table, completed):
    display = DistributionDisplay.from_completion(table, completed, columns=["kind"])
    observed, imputed = display.axes_[0].containers
    counts = table["kind"].value_counts()
    labels = [text.get_text() for text in display.axes_[0].get_xticklabels()]
    assert labels == list(counts.index)
    np.testing.assert_allclose(
        [bar.get_height() for bar in observed], counts / sum(counts)
    )
    assert sum(bar.get_height() for bar in imputed) == pytest.approx(1)
    numbers = DistributionDisplay.from_completion(table, completed, columns="rooms")
    labels = [text.get_text() for text in numbers.axes_[0].get_xticklabels()]
    assert labels == ["1", "2", "3"]


def test_many_levels_share_a_bar():
    words = [f"w{k // 3}" for k in range(60)]
    before = pd.DataFrame({"x": np.arange(60.0), "word": words})
    after = before.copy()
    before.loc[:2, "word"] = None
    axis = DistributionDisplay.from_completion(before, after).axes_[0]
    labels = [text.get_text() for text in axis.get_xticklabels()]
    assert len(labels) == 10 and labels[-1] == "others"
    for bars in axis.containers:
        assert sum(bar.get_height() for bar in bars) == pytest.approx(1)


def test_dates_have_densities(table, completed):
    display = DistributionDisplay.from_completion(table, completed, columns="sold")
    display.figure_.canvas.draw()
    first = matplotlib.dates.num2date(display.axes_[0].lines[0].get_xdata()[0])
    assert first.year in (2023, 2024)


def test_each_draw_has_a_curve():
    rng = np.random.RandomState(0)
    X = rng.randn(80, 1) + rng.randn(80, 3)
    X[:20, 1] = np.nan
    draws = GaussianCompleter().fit(X).sample(X, 4, random_state=0)
    for given in (draws, list(draws), tuple(pd.DataFrame(draw) for draw in draws)):
        display = DistributionDisplay.from_completion(X, given)
        (name,) = display.observed
        assert name == "column 1"
        np.testing.assert_array_equal(
            display.imputed[name]["imputed"], draws[:, :20, 1]
        )
        observed, imputed = areas(display.axes_[0]).values()
        assert len(observed) == 1 and len(imputed) == 4


def test_patterns_divide_the_imputed_cells():
    rng = np.random.RandomState(0)
    X = pd.DataFrame(rng.randn(90, 4), columns=list("abcd"))
    X.loc[:29, "a"] = np.nan
    X.loc[10:29, "b"] = np.nan
    X.loc[25:29, ["c", "d"]] = np.nan
    X.loc[0, "d"] = X.loc[1, "c"] = np.nan
    draws = [X.fillna(0.0), X.fillna(1.0)]
    display = DistributionDisplay.from_completion(
        X, draws, columns=["a", "b"], by_pattern=True
    )
    sizes = {k: [len(v) for v in draws] for k, draws in display.imputed["a"].items()}
    assert sizes == {
        "imputed, with b": [30],
        "imputed, alone": [16],
        "imputed, with b, c + 1": [10],
        "imputed, other patterns": [4],
    }
    assert all(axis.get_legend() for axis in display.axes_)


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container(container, small):
    truth, masked = small
    display = DistributionDisplay.from_completion(CONTAINERS[container](masked), truth)
    assert len(display.observed) == masked.mask.any(0).sum()


def test_given_axes_are_drawn_on(table, completed):
    _, (left, right) = plt.subplots(1, 2)
    display = DistributionDisplay.from_completion(
        table, completed, columns="weight", ax=right
    )
    assert display.axes_[0] is right and right.lines and not left.lines
    with pytest.raises(ValueError, match="ax holds 2 Axes for 1 panels"):
        display.plot(ax=[left, right])


def test_a_constant_column_and_one_imputed_cell():
    before = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, np.nan], [4.0, 5.0]])
    DistributionDisplay.from_completion(before, np.nan_to_num(before, nan=5.0))
    many = np.column_stack([np.arange(40.0), np.repeat(0.0, 40)])
    many[:20, 1] = np.nan
    after = np.where(np.isnan(many), np.arange(40.0)[:, None], many)
    display = DistributionDisplay.from_completion(many, after)
    assert np.isfinite(display.axes_[0].lines[1].get_ydata()).all()


def test_columns_with_most_imputed_cells_are_drawn():
    X = np.random.RandomState(0).randn(30, 20)
    for k in range(20):
        X[: k + 1, k] = np.nan
    with pytest.warns(CompletionWarning, match="12 of 20 columns"):
        display = DistributionDisplay.from_completion(X, np.nan_to_num(X))
    assert list(display.observed) == [f"column {k}" for k in range(8, 20)]
    whole = DistributionDisplay.from_completion(X, np.nan_to_num(X), columns=range(20))
    assert len(whole.axes_) == 20


def test_wrong_tables_are_named(table, completed):
    with pytest.raises(ValueError, match=r"after has shape \(119, 6\), before \(120"):
        DistributionDisplay.from_completion(table, completed[:119])
    with pytest.raises(ValueError, match="before has no column with both"):
        DistributionDisplay.from_completion(completed, completed)
    with pytest.raises(ValueError, match=r"columns \['size'\] has no column"):
        DistributionDisplay.from_completion(table, completed, columns="size")
    with pytest.raises(ValueError, match="columns"):
        DistributionDisplay.from_completion(table, completed, columns="weigth")


@pytest.fixture(scope="module")
def chained():
    rng = np.random.RandomState(0)
    X = 100 + 10 * (rng.randn(80, 1) + rng.randn(80, 4))
    X[:30, 1] = X[20:40, 2] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    return frame, ChainedCompleter(n_draws=8, random_state=0).fit(frame)


def test_history_of_chains(chained):
    frame, completer = chained
    history = completer.history_
    n_sweeps = completer.n_iter_ + 2
    assert history["mean"].shape == history["deviation"].shape == (n_sweeps, 4, 4)
    drawn = ~np.isnan(history["mean"]).any((0, 1))
    assert drawn.tolist() == [False, True, True, False]
    assert (history["mean"][..., 1] > 80).all() and (
        history["mean"][..., 1] < 120
    ).all()
    assert (history["deviation"][..., 1] < 40).all()
    assert np.isnan(history["reduction"][:2]).all()
    last = completer.n_iter_ - 1
    whole = np.nan_to_num(history["mean"][: last + 1])[..., [1, 2]]
    scaled = (whole - frame.mean()[["b", "c"]].to_numpy()) / frame.std(ddof=0)[
        ["b", "c"]
    ].to_numpy()
    assert scale_reduction(scaled) == pytest.approx(history["reduction"][last])
    assert list(HistoryDisplay.from_estimator(completer).lines_) == ["reduction"]


def test_chains_are_drawn(chained):
    _, completer = chained
    display = ConvergenceDisplay.from_estimator(completer)
    assert list(display.lines_) == ["b", "c"] and len(display.axes_) == 4
    for name, k in (("b", 1), ("c", 2)):
        for line, values in zip(
            display.lines_[name], completer.history_["mean"][..., k].T, strict=True
        ):
            np.testing.assert_array_equal(line.get_ydata(), values)
    reduction = scale_reduction(completer.history_["mean"][..., [1]])
    assert display.axes_[0].get_title() == f"b: R-hat {reduction:.2f}"
    _, (left, right) = plt.subplots(1, 2)
    display.plot(ax=right, columns="c")
    assert right.get_title().startswith("c") and not left.lines
    display.plot(ax=[left, right], columns="c")
    assert left.get_ylabel() == "mean" and right.get_ylabel() == "std. deviation"
    with pytest.raises(
        ValueError, match=r"columns must be of \['b', 'c'\], got \['a'\]"
    ):
        display.plot(columns="a")


def test_chains_of_a_table(table):
    mixed = MixedCompleter(
        ChainedCompleter(n_draws=4, max_iter=3, random_state=0), passthrough="note"
    ).fit(table)
    display = ConvergenceDisplay.from_estimator(mixed)
    names = list(display.feature_names)
    assert {"weight", "rooms", "kind = flat", "kind = house"} <= set(names)
    rooms = display.means[..., names.index("rooms")]
    assert (rooms > 1).all() and (rooms < 3).all()
    kinds = [k for k, name in enumerate(names) if name.startswith("kind")]
    np.testing.assert_allclose(display.means[..., kinds].sum(-1), 1)


def test_other_estimators_have_no_chains(chained):
    frame, _ = chained
    with pytest.raises(ValueError, match="KNNCompleter has no chains"):
        ConvergenceDisplay.from_estimator(KNNCompleter().fit(frame))
    whole = ChainedCompleter(n_draws=2, max_iter=1).fit(frame.fillna(frame.mean()))
    with pytest.raises(ValueError, match="no cell was missing"):
        ConvergenceDisplay.from_estimator(whole)


def test_scale_reduction():
    rng = np.random.RandomState(0)
    chains = rng.randn(200, 4)
    assert scale_reduction(chains) == pytest.approx(1, abs=0.05)
    assert scale_reduction(chains + 3 * np.arange(4)) > 3
    assert scale_reduction(chains[:, :1]) < 1
    assert np.isnan(scale_reduction(chains[:2]))
    late = np.vstack([chains[:100] + 50 * np.arange(4), chains[100:]])
    assert scale_reduction(late) == scale_reduction(chains)
