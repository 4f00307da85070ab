"""skops stores estimators, pipelines and searches, and asks for trust in few types."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest import COMPLETERS, low_rank, make
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmc import (
    AutoCompleter,
    Entries,
    GaussianCompleter,
    GroupedCompleter,
    MixedCompleter,
    SeriesCompleter,
    SoftImputeCompleter,
    SVDCompleter,
)
from skmc.base import BaseCompleter
from skmc.uncertainty import MultipleCompletion

sio = pytest.importorskip("skops.io")

rng = np.random.RandomState(0)
X = np.where(rng.rand(30, 12) < 0.2, np.nan, low_rank(30, 12) + 12)
NEW = X[:5] + 0.1
TABLE = pd.DataFrame(X[:, :3]).rename(columns=str)
TABLE["word"] = np.where(X[:, 3] > 12, "a", "b").astype(object)
TABLE.loc[:3, "word"] = None
GROUPS = TABLE.fillna({"word": "c"})
# What completers consist of, and what holds them or is held by them.
OWN, OTHERS = {"skmc", "torch"}, {"numpy", "sklearn"}


def stored(estimator):
    data = sio.dumps(estimator)
    types = sio.get_untrusted_types(data=data)
    roots = {name.split(".")[0] for name in types}
    assert roots <= (OWN if isinstance(estimator, BaseCompleter) else OWN | OTHERS)
    assert len(types) <= 25
    return sio.loads(data, trusted=types)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", COMPLETERS)
def test_a_completer_answers_as_before(cls):
    completer = make(cls, max_iter=10).fit(X)
    again = stored(completer)
    for rows in (X, NEW):
        np.testing.assert_array_equal(again.transform(rows), completer.transform(rows))
    assert repr(again) == repr(completer)
    assert again.score(X) == completer.score(X)


@pytest.mark.parametrize(
    ("outer", "data"),
    [
        (MixedCompleter(GaussianCompleter(10.0)), TABLE),
        (MixedCompleter(AutoCompleter(["mean", "trees-rounds"])), TABLE),
        (
            GroupedCompleter(GaussianCompleter(10.0), by="word"),
            TABLE.fillna({"word": "c"}),
        ),
        (SeriesCompleter(SVDCompleter(1, tol=0.1), random_state=0), X),
        (make_pipeline(StandardScaler(), SVDCompleter(2)), X),
    ],
    ids=["mixed", "auto", "grouped", "series", "pipeline"],
)
def test_what_holds_completers_answers_as_before(outer, data):
    outer.fit(data)
    found, expected = stored(outer).transform(data), outer.transform(data)
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected))


def test_a_model_behind_a_completer_predicts_as_before():
    model = make_pipeline(SoftImputeCompleter(1.0), LinearRegression())
    y = np.nan_to_num(X).sum(1)
    model.fit(X, y)
    np.testing.assert_array_equal(stored(model).predict(NEW), model.predict(NEW))


def test_a_search_keeps_its_results_and_its_best_completer():
    folds = KFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(SVDCompleter(tol=0.1), {"rank": [1, 2]}, cv=folds).fit(
        Entries(X)
    )
    again = stored(search)
    assert again.best_params_ == search.best_params_
    np.testing.assert_array_equal(again.transform(NEW), search.transform(NEW))


def test_draws_are_kept():
    draws = MultipleCompletion(SVDCompleter(1), 2, random_state=0).fit(X)
    np.testing.assert_array_equal(stored(draws).draws_, draws.draws_)
