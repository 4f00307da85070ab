"""Progress and time limits of every completer."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import COMPLETERS, make, small_problem
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from skmc import AIRCompleter, AutoCompleter, MixedCompleter, SVDCompleter, sensing
from skmc.base import CannotBatch
from skmc.loop import seconds_left, time_limit
from skmc.model_selection import BatchedGridSearchCV, fit_batch
from skmc.persistence import checkpoint
from skmc.uncertainty import MultipleCompletion

X = small_problem()[1]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_completer = pytest.mark.parametrize("cls", COMPLETERS)
REGRESSORS = [
    getattr(sensing, name)
    for name in sensing.__all__
    if "max_iter" in getattr(getattr(sensing, name), "_parameter_constraints", {})
]
LIMITED = [
    cls
    for cls in [*COMPLETERS, *REGRESSORS]
    if "max_iter" in cls.__init__.__code__.co_varnames
    or isinstance(getattr(cls, "max_iter", None), property)
]


class Record:
    """A callback that notes the names of the tasks that end."""

    def __init__(self, stop_at=None):
        self.ended, self.open, self.stop_at = [], 0, stop_at

    def setup(self, estimator, context):
        self.open += 1

    def teardown(self, estimator, context):
        self.open -= 1

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return context.task_name == self.stop_at


@every_completer
def test_every_completer_reports_its_progress(cls):
    record = Record()
    watched = make(cls).set_callbacks(record)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        completed = watched.fit_transform(X)
        expected = make(cls).fit_transform(X)
    assert record.ended[-1] in ("fit", "transform") and record.open == 0
    np.testing.assert_allclose(completed, expected, atol=1e-10)
    if hasattr(watched, "max_iter"):
        assert len(record.ended) > 1  # and not the end alone


@pytest.mark.parametrize(
    "estimator",
    [
        MixedCompleter(SVDCompleter(rank=1)),
        MultipleCompletion(make(SVDCompleter, rank=1), n_draws=8, random_state=0),
        GridSearchCV(SVDCompleter(), {"rank": [1]}, cv=2),
        BatchedGridSearchCV(make(AIRCompleter), {"lambda_row": [0.1]}, cv=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_progress_bars_of_nested_completers(estimator, capsys):
    estimator = clone(estimator).set_callbacks(ProgressBar()).fit(X)
    shown = capsys.readouterr().out
    assert type(estimator).__name__ in shown and "100%" in shown


def test_progress_bars_of_a_mixed_table_name_the_completer(capsys):
    table = pd.DataFrame(np.asarray(X.filled(np.nan)))
    completer = MixedCompleter(make(SVDCompleter)).set_callbacks(ProgressBar())
    completer.fit(table)
    shown = capsys.readouterr().out
    assert "MixedCompleter" in shown and "SVDCompleter" in shown
    assert not hasattr(completer.completer_, "_skl_callbacks")


def test_the_progress_bar_of_a_comparison_names_its_steps(capsys):
    completer = make(AutoCompleter, candidates=("mean", "svd"))
    completer.set_callbacks(ProgressBar()).fit(X)
    shown = " ".join(capsys.readouterr().out.split())
    for step in ("candidates", "further parts", "last fits"):
        assert f"AutoCompleter - {step}" in shown or step in shown


@pytest.mark.parametrize("cls", LIMITED)
def test_time_limits(cls):
    """A tiny limit ends a fit after a step, with a completion and a warning."""
    if "candidates" in cls().get_params():
        return  # its own order of fits, see tests/completers/test_auto.py
    hurried = make(cls, max_iter=10_000, max_time=1e-9)
    if cls in REGRESSORS:
        A = np.random.RandomState(0).randn(40, 5, 4)
        given = A, np.einsum("kij,ij->k", A, np.outer(np.arange(5.0), np.arange(4)))
    else:
        given = (X,)
    with pytest.warns(ConvergenceWarning, match=r"max_time=1e-09 s.*raise max_time"):
        hurried.fit(*given)
    if cls in REGRESSORS:
        assert np.isfinite(hurried.matrix_).all()
    else:
        assert np.isfinite(hurried.transform(X)).all()
    assert getattr(hurried, "n_iter_", 1) <= 2
    assert getattr(hurried, "status_", "max_time") in ("max_time", "converged")
    unlimited = make(cls, max_iter=20, max_time=1e6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unlimited.fit(*given)
    assert not any("max_time" in str(w.message) for w in caught)


def test_estimators_with_max_iter_have_max_time():
    assert len(LIMITED) > 20
    for cls in LIMITED:
        assert cls().max_time in (None, 60.0), cls
        with pytest.raises(ValueError, match="'max_time' parameter"):
            cls(max_time=0).fit(*((X,) if cls in COMPLETERS else (X, X[:, 0])))


def test_the_inner_limit_cannot_outlast_the_outer_one():
    assert seconds_left() == np.inf
    with time_limit(5), time_limit(None), time_limit(100):
        assert seconds_left() <= 5
    assert seconds_left() == np.inf


def test_an_outer_limit_ends_fits_without_one():
    with (
        time_limit(1e-9),
        pytest.warns(ConvergenceWarning, match="at the time limit; raise max_time"),
    ):
        make(SVDCompleter, rank=1).fit(X)


def test_fits_with_a_limit_are_not_batched():
    grid = [make(AIRCompleter, lambda_row=w, max_time=9) for w in (0.1, 1.0)]
    with pytest.raises(CannotBatch, match="max_time=9 is for single fits"):
        fit_batch(grid, [X, X])


def test_a_checkpoint_keeps_fits_that_a_limit_has_ended(tmp_path):
    def fit():
        completer = make(SVDCompleter, rank=1, max_time=1e-9)
        with pytest.warns(ConvergenceWarning, match="max_time"):
            return completer.fit(X).reconstruction_

    with pytest.raises(ZeroDivisionError), checkpoint(tmp_path / "fit", every=0):
        first = fit()
        make(SVDCompleter, rank=2).fit(X)  # writes what has finished before it
        raise ZeroDivisionError
    with checkpoint(tmp_path / "fit", every=0):
        np.testing.assert_array_equal(fit(), first)
        make(SVDCompleter, rank=2).fit(X)


def test_a_callback_ends_the_trials_of_candidates():
    auto = make(COMPLETERS[1]).set_callbacks(Record(stop_at="mean")).fit(X)
    assert type(auto).__name__ == "AutoCompleter"
    assert auto.leaderboard_["error"].notna().sum() == 1
