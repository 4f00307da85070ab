"""New rows of a table: their types, and the choice of columns."""

from __future__ import annotations

import datetime as dt
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_selector

from skmc import AutoCompleter, GaussianCompleter, MixedCompleter

rng = np.random.RandomState(0)
N = 60
WORDS = rng.rand(N) < 0.5
DAYS = [dt.date(2024, 1, int(k)) for k in rng.randint(1, 28, N)]

PANDAS = pd.DataFrame(
    {
        "number": rng.randn(N),
        "whole": pd.array(rng.randint(0, 5, N), dtype="Int64"),
        "text": np.where(WORDS, "m", "f"),
        "string": pd.array(np.where(WORDS, "m", "f"), dtype="string"),
        "category": pd.Categorical(np.where(WORDS, "u", "v")),
        "level": pd.Categorical(np.where(WORDS, "low", "high"), ["low", "high"], True),
        "bool": WORDS,
        "boolean": pd.array(WORDS, dtype="boolean"),
        "time": pd.to_datetime(DAYS),
        "zone": pd.to_datetime(DAYS).tz_localize("UTC"),
        "duration": pd.to_timedelta(rng.randint(1, 90, N), "h"),
        "day": DAYS,
    }
)
OTHERS = [name for name in PANDAS if name != "number"]
ARROW = PANDAS.drop(columns=["category", "level"]).convert_dtypes(
    dtype_backend="pyarrow"
)
POLARS = pl.DataFrame(
    {
        "number": PANDAS["number"].tolist(),
        "whole": PANDAS["whole"].tolist(),
        "text": PANDAS["text"].tolist(),
        "enum": pl.Series(PANDAS["text"].tolist(), dtype=pl.Enum(["m", "f"])),
        "bool": WORDS.tolist(),
        "time": PANDAS["time"].tolist(),
        "day": DAYS,
    }
)


def same_names(X, values):
    return X.head(3).assign(**{name: values for name in X if name != "number"})


NEW = {
    "reindexed": lambda X: X[["number"]].head(3).reindex(columns=X.columns),
    "None": lambda X: same_names(X, None),
    "strings": lambda X: same_names(X, pd.array([None] * 3, dtype="string")),
    "record": lambda X: pd.DataFrame([dict.fromkeys(X, np.nan) | {"number": 1.0}]),
    "null of Arrow": lambda X: same_names(
        X,
        pd.array([None] * 3, dtype=pd.ArrowDtype(pa.null())),
    ),
    "CSV": lambda X: pd.read_csv(
        io.StringIO("\n".join([",".join(X), "1" + "," * (X.shape[1] - 1)]))
    ),
}


@pytest.fixture(scope="module", params=["mixed", "auto"])
def make(request):
    if request.param == "auto":
        stack = AutoCompleter(["mean", "knn"], random_state=0)
        return lambda: MixedCompleter(stack)
    return lambda: MixedCompleter(GaussianCompleter(10.0))


@pytest.mark.parametrize("frame", [PANDAS, ARROW], ids=["pandas", "Arrow"])
def test_columns_without_a_type_get_that_of_the_fit(make, frame):
    completer = make().fit(frame)
    for name, new in NEW.items():
        filled = completer.transform(new(frame))
        assert not filled.isna().any(axis=None), name
        for column in OTHERS:
            if column in filled and column not in ("whole", "zone", "day"):
                own, in_fit = filled[column].dtype, frame[column].dtype
                texts = pd.api.types.is_string_dtype
                assert own == in_fit or (texts(own) and name == "strings")
        assert all(type(day) is dt.date for day in filled["day"])


def test_null_columns_of_polars_get_the_type_of_the_fit(make):
    new = POLARS[:3].with_columns(
        pl.lit(None).alias(name) for name in POLARS.columns if name != "number"
    )
    filled = make().fit(POLARS).transform(new)
    assert filled.schema == POLARS.schema
    assert not filled.null_count().sum_horizontal().item()


@pytest.mark.filterwarnings("ignore:Some categories were not in the fit")
def test_categories_that_lack_the_answer_get_it(make):
    completer = make().fit(PANDAS)
    narrow = pd.Categorical([None, "u", None], categories=["u"])
    other = pd.Categorical([None, "z", None], categories=["z"])
    for column in (narrow, other):
        filled = completer.transform(PANDAS.head(3).assign(category=column))["category"]
        assert isinstance(filled.dtype, pd.CategoricalDtype)
        assert filled[0] in ("u", "v")
        assert filled[1] == column[1]
    enum = pl.Series([None] * 3, dtype=pl.Enum(["z"]))
    filled = make().fit(POLARS).transform(POLARS[:3].with_columns(enum=enum))
    assert filled["enum"].dtype == POLARS["enum"].dtype
    assert not filled["enum"].null_count()


def test_arrays_of_numbers_take_words(make):
    completer = make().fit(PANDAS[["number", "text", "bool"]].to_numpy(object))
    filled = completer.transform(np.array([[1.0, np.nan, np.nan]]))
    assert filled[0, 1] in ("m", "f")
    assert isinstance(filled[0, 2], bool)


@pytest.mark.parametrize(
    "columns",
    [
        ["text"],
        [2],
        "text",
        np.arange(PANDAS.shape[1]) == 2,
        [k == 2 for k in range(PANDAS.shape[1])],
        slice("text", "text"),
        slice(2, 3),
        slice(-10, -9),
        make_column_selector(pattern="^text$"),
        lambda X: X.columns == "text",
    ],
)
def test_columns_are_selected_as_in_column_transformer(columns):
    inner = GaussianCompleter(10.0)
    chosen = MixedCompleter(inner, passthrough=columns).fit(PANDAS)
    assert [kind is None for kind in chosen.kinds_] == [
        name == "text" for name in PANDAS.columns
    ]
    chosen = MixedCompleter(inner, categorical=columns).fit(PANDAS)
    assert chosen.kinds_[2] == "categorical"
    assert chosen.kinds_[0] == "numeric"


def test_a_mask_of_another_length_is_an_error():
    with pytest.raises(ValueError, match="passthrough is a mask of 2 columns"):
        MixedCompleter(passthrough=[True, False]).fit(PANDAS)


@pytest.mark.parametrize("levels", [["none", "no", "yes"], ["no", "none", "yes"]])
def test_levels_that_nobody_has_are_not_completions(levels):
    q = pd.Categorical(["no", "yes"] * 20, levels, ordered=True)
    table = pd.DataFrame({"q": q, "x": rng.randn(40)})
    table.loc[:9, "q"] = None
    inner = GaussianCompleter(10.0)
    completer = MixedCompleter(inner).fit(table)
    filled = [completer.transform(table), *completer.sample(table, 3, 0)]
    assert all(set(found["q"]) == {"no", "yes"} for found in filled)
    free = MixedCompleter(inner, like_observed=False).fit(table)
    assert set(pd.concat(free.sample(table, 30, 0))["q"]) == set(levels)


def test_words_that_mean_missing_are_named_with_the_remedy():
    table = pl.DataFrame({"x": rng.randn(20), "k": ["a", "NA", "b", "a"] * 5})
    completer = MixedCompleter(GaussianCompleter(10.0))
    with pytest.warns(UserWarning, match=r"missing_values=\['NA'\].*'k'.*row 1"):
        completer.fit(table)
    completer.set_params(missing_values=["NA"]).fit(table)
    assert completer.categories_ == {"k": ["a", "b"]}
