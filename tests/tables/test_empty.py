"""Columns without an observed cell in tables, and columns of `add_indicator`."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skmc import (
    AutoCompleter,
    GaussianCompleter,
    GroupedCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SeriesCompleter,
)
from skmc.base import CompleterTags
from skmc.completers import completer_classes

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*no observed cell:UserWarning",
    "ignore:Series:UserWarning",
    "ignore:Columns:UserWarning",
)
rng = np.random.RandomState(0)
N = 60
NUMBERS = rng.randn(N, 4)
NUMBERS[rng.rand(N, 4) < 0.1] = np.nan
NUMBERS[20:, 3] = np.nan  # observed in the first fold only
y = np.nan_to_num(NUMBERS[:, 0]) > 0
WORDS = pd.DataFrame(NUMBERS, columns=list("abcd")).assign(
    w=["u", "v", None] * (N // 3), e=["p", "q"] * 10 + [None] * (N - 20)
)
NO_PICTURES = CompleterTags(recovers=1.0)
IN_TABLES = {
    "mixed": MixedCompleter(GaussianCompleter(10.0)),
    "auto": MixedCompleter(AutoCompleter(["mean", "knn"], random_state=0)),
}


@pytest.mark.parametrize("cls", completer_classes(), ids=lambda cls: cls.__name__)
def test_no_default_puts_nan_into_the_next_estimator(cls):
    others = GroupedCompleter, SeriesCompleter
    if cls in others or getattr(cls, "completer_tags", NO_PICTURES).pictures:
        pytest.skip("leaves series without a cell, or completes them from neighbors")
    fast = {"max_iter": 2, "random_state": 0, "candidates": ["mean", "knn"]}
    completer = cls()
    completer.set_params(**{k: v for k, v in fast.items() if k in cls().get_params()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filled = completer.fit(NUMBERS[20:]).transform(NUMBERS)
    assert np.isfinite(filled).all()
    assert (filled[20:, 3] == 0).all()


@pytest.mark.parametrize("name", IN_TABLES)
def test_a_column_that_is_empty_in_a_fold_does_not_stop_a_pipeline(name):
    columns = ColumnTransformer(
        [("words", OneHotEncoder(handle_unknown="ignore"), ["w", "e"])],
        remainder="passthrough",
    )
    model = make_pipeline(
        IN_TABLES[name], columns, StandardScaler(with_mean=False), LogisticRegression()
    )
    score = cross_val_score(model, WORDS, y, cv=KFold(3), error_score="raise")
    assert np.isfinite(score).all()


@pytest.mark.parametrize(
    ("dtype", "zero"),
    [
        ("float64", 0.0),
        ("float32", 0.0),
        ("Int64", 0),
        ("object", 0.0),
        ("boolean", False),
        ("int64[pyarrow]", 0),
        ("bool[pyarrow]", False),
        ("string", None),
        ("category", None),
        ("datetime64[ns]", None),
        ("timedelta64[ns]", None),
        ("date32[pyarrow]", None),
    ],
)
@pytest.mark.parametrize("name", IN_TABLES)
def test_empty_columns_are_zero_unless_they_are_of_words_or_dates(name, dtype, zero):
    table = WORDS[["a", "w"]].assign(new=pd.array([None] * N, dtype=dtype))
    completer = IN_TABLES[name].fit(table)
    filled = completer.transform(table)["new"]
    if zero is None:
        assert filled.isna().all()
    else:
        assert (filled == zero).all()
        assert all(
            isinstance(v, bool) is isinstance(zero, bool) for v in filled.tolist()
        )
    assert filled.dtype == (float if dtype == "object" else table["new"].dtype)
    words = completer.transform(table.assign(new=["z"] + [None] * (N - 1)))["new"]
    assert words[0] == "z"
    assert words[1:].isna().all()


@pytest.mark.parametrize("name", IN_TABLES)
def test_empty_columns_of_polars_and_arrays_are_zero(name):
    table = pl.DataFrame(
        {"a": NUMBERS[:, 0], "w": ["u", "v"] * (N // 2), "new": [None] * N}
    )
    filled = IN_TABLES[name].fit_transform(table)
    assert filled["new"].to_list() == [0.0] * N
    array = table.to_pandas().to_numpy(object)
    assert (IN_TABLES[name].fit_transform(array)[:, 2] == 0).all()


@pytest.mark.parametrize(
    "completer",
    [
        *IN_TABLES.values(),
        SeriesCompleter(MeanCompleter(), period=None, random_state=0),
        MixedCompleter(KNNCompleter(), keep_empty_features=False),
        MixedCompleter(KNNCompleter(), missing_values=["u"]),
    ],
    ids=["mixed", "auto", "series", "dropped", "marks"],
)
@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_columns_of_the_indicator_follow(completer, kind):
    table = WORDS.assign(d=np.arange(float(N)), e=np.nan)
    missing = table.isna()
    if getattr(completer, "missing_values", None) == ["u"]:
        missing |= table == "u"
    X = {"pandas": table, "polars": pl.from_pandas(table), "array": table.to_numpy()}
    X = X[kind]
    plain = completer.set_params(add_indicator=False).fit(X)
    width = np.shape(plain.transform(X))[1]
    assert plain.indicator_ is None
    completer.set_params(add_indicator=True)
    filled = completer.fit_transform(X)
    names = list(completer.get_feature_names_out())
    flags = np.asarray(filled)[:, width:].astype(bool)
    holed = missing.any()
    np.testing.assert_array_equal(flags, missing.loc[:, holed])
    own = np.array([f"x{k}" for k in range(6)] if kind == "array" else list(table))
    assert names[width:] == [f"missingindicator_{name}" for name in own[holed]]
    if kind != "array":
        assert list(filled.columns) == names
    again = np.asarray(completer.transform(X[:5]))[:, width:].astype(bool)
    np.testing.assert_array_equal(again, flags[:5])
    completer.set_params(add_indicator=False)


def test_the_indicator_is_public_as_in_scikit_learn():
    own = KNNCompleter(add_indicator=True).fit(NUMBERS)
    theirs = SimpleImputer(add_indicator=True).fit(NUMBERS)
    np.testing.assert_array_equal(own.indicator_.features_, theirs.indicator_.features_)
    assert KNNCompleter().fit(NUMBERS).indicator_ is None
