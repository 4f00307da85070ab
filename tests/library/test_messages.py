"""Names and arguments of other packages, and single names, are answered by ours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer

import skmc
from skmc import (
    Entries,
    FactorizationCompleter,
    MeanCompleter,
    SeriesCompleter,
    SVDCompleter,
)
from skmc.base import BaseCompleter, CompleterTags, IterativeCompleter
from skmc.completers import FOREIGN, title_of
from skmc.model_selection import compare
from skmc.panel import effect
from skmc.plot import CompletionDisplay

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # fits are cut short


@pytest.mark.parametrize("name", FOREIGN)
def test_names_of_other_packages(name):
    own = FOREIGN[name]
    assert hasattr(skmc, own)
    with pytest.raises(AttributeError, match=f"{name!r}; did you mean {own!r}"):
        getattr(skmc, name)
    with pytest.raises(AttributeError, match=f"did you mean {own!r}"):
        getattr(skmc.completers, name)
    if own.removesuffix("Completer").lower() != name.lower():
        with pytest.raises(ValueError, match="did you mean"):
            title_of(name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("KNNComplete", "did you mean 'KNNCompleter'"),
        ("rmse", "use skmc.metrics.rmse"),
        ("compare", "use skmc.model_selection.compare"),
        ("pool", "use skmc.uncertainty.pool"),
        ("pooled_fit", "use skmc.uncertainty.pooled_fit"),
        ("DistributionDisplay", "use skmc.plot.DistributionDisplay"),
        ("patern", "did you mean 'patterns'"),
        ("xyz", "has no attribute 'xyz'$"),
    ],
)
def test_names_that_are_elsewhere(name, hint):
    with pytest.raises(AttributeError, match=hint):
        getattr(skmc, name)


def test_single_names_stand_for_lists(small):
    _, masked = small
    several = compare(
        [MeanCompleter()], masked, cv=2, metrics=["rmse"], patterns=["mcar"]
    )
    single = compare(MeanCompleter(), masked, cv=2, metrics="rmse", patterns="mcar")
    assert several["mean"].tolist() == single["mean"].tolist()
    assert compare(SimpleImputer(), masked, cv=2)["error"].tolist() == [None]
    with pytest.raises(ValueError, match=r"got \['mse'\]"):
        compare(MeanCompleter(), masked, metrics="mse")
    with pytest.raises(ValueError, match=r"pattern.*'random'"):
        compare(MeanCompleter(), masked, patterns="random")
    pytest.importorskip("matplotlib").use("Agg")
    fitted = SVDCompleter(rank=1).fit(masked)
    display = CompletionDisplay.from_estimator(fitted, masked, panels="completed")
    assert list(display.images_) == ["completed"]


def test_a_single_covariate_is_named():
    rng = np.random.RandomState(0)
    long = pd.DataFrame({"u": np.repeat(range(12), 8), "t": np.tile(range(8), 12)})
    long["y"], long["z"] = rng.randn(2, 96)
    long["d"] = (long["u"] == 0) & (long["t"] > 5)
    given = {"unit": "u", "time": "t", "outcome": "y", "weights": "averaged"}
    single = effect(long, "d", covariates="z", **given)
    several = effect(long, "d", covariates=["z"], **given)
    np.testing.assert_array_equal(single.effects, several.effects)


RATINGS = pd.DataFrame(
    {
        "user": ["ann", "ann", "bob", "bob", "cid", "cid"],
        "film": ["A", "B", "A", "C", "B", "C"],
        "stars": [5.0, 2, 5, 1, 2, 1],
    }
)
ENTRIES = r"Entries.from_frame\(X, 'user', 'film', 'stars'\)"


def rank_one():
    return FactorizationCompleter(1, lambda_ridge=0.1, max_iter=2, random_state=0)


def test_a_row_for_each_rating_is_not_a_matrix():
    with pytest.raises(ValueError, match=ENTRIES):
        rank_one().fit(RATINGS)
    with pytest.raises(TypeError, match=r"Entries.from_frame"):
        Entries.from_triplets(*(RATINGS[name] for name in RATINGS))
    coded = RATINGS.assign(
        user=RATINGS["user"].astype("category").cat.codes,
        film=RATINGS["film"].astype("category").cat.codes,
    )
    with pytest.warns(UserWarning, match=ENTRIES):
        rank_one().fit(coded)
    wide = RATINGS.pivot(index="user", columns="film", values="stars")
    with pytest.raises(TypeError, match=r"Entries.from_frame"):
        rank_one().fit(wide).recommend(["ann"])
    rank_one().fit(pd.DataFrame(np.random.RandomState(0).randn(6, 3)))  # no warning


def test_cells_in_files_say_what_reads_them(tmp_path):
    RATINGS.to_parquet(tmp_path / "r.parquet")
    stored = Entries.from_parquet(tmp_path / "r.parquet", *RATINGS)
    fitted = rank_one().fit(stored)
    with pytest.raises(TypeError, match=r"Only the method fit of .* recommend"):
        fitted.transform(stored)


def test_recommendations_as_a_table():
    fitted = rank_one().fit(Entries.from_frame(RATINGS, *RATINGS))
    table = fitted.recommend(["bob", "ann"], 2, as_frame=True)
    assert list(table) == ["user", "item", "score"]
    items, scores = fitted.recommend(["bob", "ann"], 2)
    assert table["user"].tolist() == ["bob", "ann"]  # each has one unseen film
    assert table["item"].tolist() == items.compressed().tolist()
    assert table["score"].tolist() == scores.compressed().tolist()
    assert fitted.recommend("bob", as_frame=True)["item"].tolist() == ["B"]
    new = fitted.recommend({"C": 1.0}, 1, as_frame=True)
    assert new.shape == (1, 3) and new["user"].tolist() == [0]
    some = Entries.from_frame(RATINGS.iloc[[0, 3]], *RATINGS)
    assert set(fitted.recommend(some, as_frame=True)["user"]) == {"ann", "bob"}
    for found, one in (
        (fitted.similar_items("A", 1, as_frame=True), "item"),
        (fitted.similar_users("ann", 1, as_frame=True), "user"),
    ):
        assert list(found) == [one, f"similar_{one}", "score"] and len(found) == 1
    by_position = rank_one().fit(
        RATINGS.pivot(index="user", columns="film", values="stars")
    )
    assert by_position.recommend([2, 0], 1, as_frame=True)["user"].tolist() == [2, 0]


def test_a_method_of_ones_own_without_its_function():
    class Own(BaseCompleter):
        completer_tags = CompleterTags(recovers=0.1)

    class Wrong(Own):
        def _fit_cells(self, given, y=None):
            return 3

    class Iterates(IterativeCompleter):
        completer_tags = CompleterTags(recovers=0.1)
        max_iter: int = 5
        tol: float = 1e-3
        scaling: None = None
        device: str = "cpu"
        random_state: None = None

    for cls, message in (
        (Own, "Own must define _fit_cells, which returns a skmc.base.Outcome"),
        (Wrong, "Wrong._fit_cells must return a skmc.base.Outcome, got int"),
        (Iterates, "Iterates must define _make_solver, which returns a skmc.solvers"),
    ):
        with pytest.raises(TypeError, match=message):
            cls().fit([[1.0, np.nan], [2.0, 3.0]])


@pytest.fixture(scope="module")
def series():
    days = pd.date_range("2024-01-01", periods=40, freq="D")
    found = pd.Series(np.sin(np.arange(40.0)), days, name="load")
    found[5:8] = np.nan
    return found


def quick():
    return SeriesCompleter(MeanCompleter(), period=None, random_state=0)


def test_a_series_is_completed_as_a_series(series):
    frame = series.to_frame()
    fitted = quick().fit(series)
    completed = fitted.transform(series)
    expected = quick().fit(frame).transform(frame)["load"]
    pd.testing.assert_series_equal(completed, expected, check_freq=False)
    pd.testing.assert_series_equal(quick().fit_transform(series), completed)
    for low, high in (
        fitted.predict_interval(series),
        [fitted.predict_std(series)] * 2,
    ):
        assert low.name == high.name == "load" and (low <= high).all()
    assert fitted.score(series) == fitted.score(frame)
    nameless = quick().fit_transform(series.rename(None))
    assert nameless.name is None and nameless.tolist() == completed.tolist()


def test_a_column_of_dates_is_named(series):
    table = series.rename_axis("day").reset_index()
    with pytest.warns(
        UserWarning, match=r"column 0 \('day'\) has dates; pass time='day'"
    ):
        quick().fit(table)
    with pytest.warns(UserWarning, match="Columns that are not numbers"):
        quick().fit(series.to_frame().assign(word="a"))
