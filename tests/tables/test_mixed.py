"""Tables of numbers, levels and categories: dtypes are kept, errors are by kind."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skmc import (
    AutoCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SoftImputeCompleter,
    SVDCompleter,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SIZES = ["none", "some", "much", "all"]


@pytest.fixture(scope="module")
def tables():
    """Columns that depend on two hidden traits, complete and with missing cells."""
    rng = np.random.RandomState(0)
    Z = rng.randn(120, 2)

    def follow():
        return Z @ rng.randn(2) + 0.05 * rng.randn(len(Z))

    corners = np.array([[1, -0.5, -0.5], [0, 0.9, -0.9]])
    names = np.array(["ant", "bee", "cat"], object)
    truth = pd.DataFrame(
        {
            "metres": follow(),
            "grams": 1e4 + 1e3 * follow(),
            "small": follow().astype(np.float32),
            "size": pd.Categorical.from_codes(
                np.digitize(follow(), [-1, 0, 1]), SIZES, ordered=True
            ),
            "kind": pd.Categorical(
                names[(Z @ corners).argmax(1)], ["bee", "ant", "cat", "never"]
            ),
            "word": names[(Z @ -corners).argmax(1)],
            "flag": pd.array(follow() > 0, "boolean"),
            "count": pd.array(np.rint(10 * follow()).astype(int), "Int64"),
        }
    )
    holes = truth.mask(rng.uniform(size=truth.shape) < 0.15)
    return truth, holes.astype(truth.dtypes)


def test_types_are_kept_and_nothing_is_missing(tables):
    truth, holes = tables
    completed = MixedCompleter(SVDCompleter(rank=2)).fit_transform(holes)
    assert not completed.isna().any().any()
    for name in truth:
        assert completed[name].dtype == truth[name].dtype
        seen = holes[name].notna()
        assert (completed[name][seen] == holes[name][seen]).all()
    assert set(completed["kind"]) == {"ant", "bee", "cat"}
    assert holes["kind"].isna().any()  # the input is left alone


def test_more_accurate_than_single_columns(tables):
    truth, holes = tables
    errors = (
        MixedCompleter(SoftImputeCompleter(random_state=0))
        .fit(holes)
        .error_by_type(holes, truth)
    )
    alone = MixedCompleter(MeanCompleter()).fit(holes).error_by_type(holes, truth)
    assert list(errors) == ["numeric", "ordinal", "categorical"]
    for kind in errors:
        assert errors[kind] < alone[kind] / 2.5


def test_means_and_modes(tables):
    """With column means, the completions are means, middle levels and modes."""
    _, holes = tables
    completed = MixedCompleter(MeanCompleter()).fit_transform(holes)
    gone = holes.isna()
    for name in ("word", "kind"):
        assert set(completed[name][gone[name]]) == {holes[name].mode()[0]}
    middle = SIZES[round(holes["size"].cat.codes[~gone["size"]].mean())]
    assert set(completed["size"][gone["size"]]) == {middle}
    assert completed["grams"][gone["grams"]].to_numpy() == pytest.approx(
        holes["grams"].mean()
    )


def test_every_column_has_unit_variance(tables):
    _, holes = tables
    completer = MixedCompleter(SVDCompleter(rank=2)).fit(holes)
    table = completer._table
    numbers, missing = table.read(holes)
    matrix = table.encode(numbers)
    assert np.nanmean(matrix, 0) == pytest.approx(0, abs=1e-12)
    start = 0
    for k, column in enumerate(table.columns):
        block = matrix[:, start : start + column.width]
        start += column.width
        assert np.nanvar(block, 0).sum() == pytest.approx(1)
        # All or none of a category's columns are missing.
        assert np.array_equal(
            np.isnan(block), np.repeat(missing[:, [k]], column.width, 1)
        )
    again = table.decode(matrix)
    assert again[~missing] == pytest.approx(numbers[~missing])


def test_polars_and_arrays_give_equal_results(tables):
    _, holes = tables
    plain = holes.drop(columns=["small", "count"])
    expected = MixedCompleter(SVDCompleter(rank=2)).fit_transform(plain)
    frame = pl.DataFrame(
        {
            name: [None if pd.isna(v) else v for v in plain[name].tolist()]
            for name in plain
        },
        schema_overrides={"kind": pl.Enum(["ant", "bee", "cat"])},
    )
    ordinal = {"size": SIZES}
    found = MixedCompleter(SVDCompleter(rank=2), ordinal=ordinal).fit_transform(frame)
    assert found.schema == frame.schema
    array = np.array(plain.astype(object))
    objects = MixedCompleter(SVDCompleter(rank=2), ordinal={2: SIZES})
    objects = objects.fit_transform(array)
    assert objects.dtype == object
    for k, name in enumerate(plain):
        for other in (found[name].to_list(), objects[:, k].tolist()):
            if k < 2:
                assert np.allclose(other, expected[name])
            else:
                assert other == expected[name].tolist()


def test_numbers_may_be_categories():
    table = pd.DataFrame(
        {"code": [7, 7, 30, 30, np.nan], "x": [0.0, 0.1, 5.0, 5.1, 5.0]}
    )
    inner = SVDCompleter(rank=1)
    assert MixedCompleter(inner).fit(table).kinds_ == ["numeric", "numeric"]
    completer = MixedCompleter(inner, categorical=["code"]).fit(table)
    assert completer.kinds_ == ["categorical", "numeric"]
    assert completer.transform(table)["code"].tolist() == [7, 7, 30, 30, 30]
    completer = MixedCompleter(inner, categorical=[0]).fit(table.to_numpy())
    assert completer.kinds_[0] == "categorical"


def test_rows_are_completed_independently(tables):
    _, holes = tables
    completer = MixedCompleter(SVDCompleter(rank=2)).fit(holes[:80])
    whole = completer.transform(holes)
    for rows in (holes[80:], holes[::-1], holes[70:90:3]):
        part = completer.transform(rows)
        pd.testing.assert_frame_equal(part, whole.loc[part.index], check_dtype=False)


def test_levels_and_categories_not_seen_in_fit(tables):
    _, holes = tables
    completer = MixedCompleter(SVDCompleter(rank=2)).fit(holes)
    new = holes[:3].assign(word=["yak", None, "bee"])
    with pytest.warns(UserWarning, match=r"'word' has 'yak' \(1\)"):
        completed = completer.transform(new)
    assert completed["word"].tolist()[::2] == ["yak", "bee"]
    assert completed["word"][1] in ("ant", "bee", "cat")
    empty = holes.assign(word=pd.Series([None] * len(holes), dtype=object))
    with pytest.warns(UserWarning, match="'word' .* no observed cell .*False"):
        completer = MixedCompleter(SVDCompleter(rank=2)).fit(empty)
    assert completer.kinds_[5] is None
    # The type of the column says nothing of words.
    assert (completer.transform(empty)["word"] == 0).all()
    assert "categorical" in completer.error_by_type(empty)


def test_cells_that_may_mark_missing_ones_are_named(tables):
    marked = tables[1].copy()
    marked.loc[[3, 8], "metres"] = -999.0
    marked.loc[4, "word"] = "?"
    said = r"column 0 \('metres'\), row 3: -999 occurs twice .*\('word'\), row 4: '\?'"
    with pytest.warns(UserWarning, match=said):
        MixedCompleter(MeanCompleter()).fit(marked)


def test_score_is_the_mean_over_cells(tables):
    truth, holes = tables
    completer = MixedCompleter(SVDCompleter(rank=2)).fit(holes)
    errors = completer.error_by_type(holes, truth)
    count = holes.isna().sum()
    by_type = {
        "numeric": count[["metres", "grams", "small", "count"]].sum(),
        "ordinal": count["size"],
        "categorical": count[["kind", "word", "flag"]].sum(),
    }
    mean = sum(errors[k] * by_type[k] for k in errors) / count.sum()
    assert completer.score(holes, truth) == pytest.approx(-mean)
    # An error by hand: wrong categories are counted, not how wrong.
    completed = completer.transform(holes)
    gone = holes["size"].isna()
    levels = (completed["size"].cat.codes - truth["size"].cat.codes)[gone].abs() / 3
    assert errors["ordinal"] == pytest.approx(levels.mean())
    assert completer.score(holes) == completer.score(holes)


def test_search_pipeline_and_column_transformer(tables):
    truth, holes = tables
    search = GridSearchCV(
        MixedCompleter(SVDCompleter()),
        {"completer__rank": [1, 2, 5]},
        cv=3,
        error_score="raise",
    ).fit(holes)
    assert search.best_params_["completer__rank"] > 1
    means = MixedCompleter(MeanCompleter()).fit(holes)
    assert search.score(holes, truth) > means.score(holes, truth) / 2

    inputs = holes.drop(columns="flag")
    columns = ColumnTransformer(
        [("mixed", MixedCompleter(SVDCompleter(rank=2)), list(inputs))],
        remainder="drop",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    frame = columns.fit_transform(inputs)
    assert list(frame) == list(columns.get_feature_names_out()) == list(inputs)
    assert frame["kind"].dtype == inputs["kind"].dtype
    numeric = ["metres", "grams", "small", "count"]
    model = make_pipeline(
        columns,
        ColumnTransformer(
            [("number", StandardScaler(), numeric)],
            remainder=OneHotEncoder(handle_unknown="ignore"),
        ),
        LogisticRegression(),
    )
    y = truth["flag"].to_numpy(bool)
    assert model.fit(inputs[:80], y[:80]).score(inputs[80:], y[80:]) > 0.9


@pytest.mark.parametrize(
    "completer",
    [MixedCompleter(SVDCompleter()), MixedCompleter(AutoCompleter(["mean"]))],
)
def test_an_empty_column_does_not_stop_a_pipeline(tables, completer):
    truth, holes = tables
    X = holes[["metres", "grams", "kind"]].assign(empty=np.nan)
    words = OneHotEncoder(handle_unknown="ignore")
    step = ColumnTransformer([("word", words, [2])], remainder="passthrough")
    model = make_pipeline(completer, step, LogisticRegression(max_iter=10_000))
    y = truth["flag"].to_numpy(bool)
    with pytest.warns(UserWarning, match="'empty' .* 0; set keep_empty_features=False"):
        model.fit(X, y)
    assert (model[0].transform(X)["empty"] == 0).all()
    with pytest.warns(UserWarning, match="'empty' .* is dropped"):
        model[0].set_params(keep_empty_features=False)
        assert model.fit(X, y).score(X, y) > 0.5
    assert list(model[0].get_feature_names_out()) == list(X)[:-1]


def test_set_output_of_arrays(tables):
    array = np.array(tables[1][["metres", "grams", "kind"]].astype(object))
    completer = MixedCompleter(KNNCompleter()).set_output(transform="pandas")
    frame = completer.fit_transform(array)
    assert list(frame) == ["x0", "x1", "x2"]
    assert isinstance(clone(completer).completer, KNNCompleter)


@pytest.mark.parametrize(
    ("params", "change", "error", "match"),
    [
        (
            {"categorical": ["colour"]},
            {},
            ValueError,
            "categorical names column 'colou",
        ),
        ({"ordinal": {9: [1, 2]}}, {}, ValueError, "ordinal names column 9"),
        (
            {"ordinal": {"word": ["ant", "bee"]}},
            {},
            ValueError,
            r"column 5 \('word'\) holds 'cat', which is not among its levels",
        ),
        (
            {"ordinal": {"word": SIZES}, "categorical": [5]},
            {},
            ValueError,
            "column 5 is in categorical and in ordinal",
        ),
        (
            {"categorical": ["metres"]},
            {"metres": datetime.datetime(2020, 1, 1)},
            ValueError,
            r"column 0 \('metres'\) holds .*, which is no category",
        ),
        ({}, {"metres": np.inf}, ValueError, "contains infinity"),
        ({"completer": StandardScaler()}, {}, ValueError, "'completer' parameter"),
    ],
)
def test_bad_input_names_the_position(tables, params, change, error, match):
    with pytest.raises(error, match=match):
        MixedCompleter(**params).fit(tables[1].assign(**change))


def test_empty_training_or_comparison_sets(tables):
    truth, holes = tables
    with pytest.raises(ValueError, match="no observed cell"):
        MixedCompleter(SVDCompleter(rank=2)).fit(pd.DataFrame({"a": [None, None]}))
    completer = MixedCompleter(SVDCompleter(rank=2)).fit(holes)
    with pytest.raises(ValueError, match="no missing cell that y knows"):
        completer.score(truth, truth)
    with pytest.raises(ValueError, match=r"y has shape \(5, 8\), X has \(120, 8\)"):
        completer.score(holes, truth[:5])
