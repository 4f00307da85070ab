"""Completers inside scikit-learn: searches, pipelines, callbacks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from conftest import low_rank, make
from sklearn import config_context
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmc import (
    AIRCompleter,
    DMFCompleter,
    Entries,
    KNNCompleter,
    MaskedToNaN,
    MeanCompleter,
    MixedCompleter,
    SVDCompleter,
    patterns,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # fits are cut short

GRID = {"lambda_row": [1e-3, 3.0], "lambda_col": [1e-3, 3.0]}


@pytest.fixture(scope="module")
def problem():
    truth = low_rank(40, 25, rank=2)
    hidden = patterns.random(truth, 0.2, random_state=0)
    return truth, np.ma.masked_array(np.where(hidden, 1e9, truth), hidden)


def test_grid_search_over_rows(problem):
    """A masked array: folds are rows, and test rows are folded in."""
    truth, X = problem
    completer = make(AIRCompleter, max_iter=200)
    search = GridSearchCV(completer, GRID, cv=3, error_score="raise").fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert (scores < 0).all()
    # The matrix has no rows that resemble each other: little weight is best.
    assert search.best_params_ == {"lambda_row": 1e-3, "lambda_col": 1e-3}
    assert search.best_score_ > -0.1
    assert search.score(X, truth) > -0.1


def test_grid_search_over_cells(problem):
    """`Entries`: folds are cells of the same matrix."""
    truth, X = problem
    folds = KFold(4, shuffle=True, random_state=0)
    completer = make(AIRCompleter, max_iter=200)
    search = GridSearchCV(completer, GRID, cv=folds, error_score="raise")
    search.fit(Entries(X))
    assert search.best_params_ == {"lambda_row": 1e-3, "lambda_col": 1e-3}
    assert search.best_score_ > -0.1
    # What it estimated is what it then does on the missing cells.
    assert search.score(X, truth) == pytest.approx(search.best_score_, abs=0.03)
    rank = GridSearchCV(make(SVDCompleter), {"rank": [1, 3, 12]}, cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rank.fit(Entries(X)).best_params_ == {"rank": 3}


@pytest.fixture(scope="module")
def regression():
    rng = np.random.RandomState(0)
    X = low_rank(150, 12, rank=3, seed=1)
    y = X @ rng.randn(12) + 0.1 * rng.randn(150)
    hidden = patterns.random(X, 0.3, spare=True, random_state=0)
    return np.ma.masked_array(np.where(hidden, 1e9, X), hidden), y


def test_a_completer_in_the_middle_of_a_pipeline(regression):
    X, y = regression
    folds = KFold(3, shuffle=True, random_state=0)
    means = cross_val_score(make_pipeline(MeanCompleter(), Ridge()), X, y, cv=folds)
    for completer in (
        make(AIRCompleter, max_iter=400, lambda_row=0.01, lambda_col=0.01),
        make(SVDCompleter, max_iter=400),
        make(DMFCompleter, max_iter=1000),
    ):
        model = make_pipeline(completer, StandardScaler(), Ridge())
        scores = cross_val_score(model, X, y, cv=folds)
        assert scores.mean() > means.mean() + 0.05


def test_a_preceding_scaler_needs_masked_to_nan(regression):
    """Without `MaskedToNaN` the number under the mask, 1e9, becomes data."""
    X, y = regression
    model = make_pipeline(MaskedToNaN(), StandardScaler(), KNNCompleter(), Ridge())
    assert model.fit(X, y).score(X, y) > 0.5
    dropped = make_pipeline(StandardScaler(), KNNCompleter()).fit(X)
    assert dropped[0].scale_.max() > 1e8


def test_column_transformer_and_search_over_a_pipeline(regression):
    X, y = regression
    columns = ColumnTransformer(
        [("complete", make(AIRCompleter), [0, 2, 3, 4, 5, 6])], remainder="drop"
    )
    model = make_pipeline(columns, Ridge())
    search = GridSearchCV(
        model,
        {"columntransformer__complete__lambda_col": [0.0, 1.0]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_progress_bar_nested_in_a_search(problem, capsys):
    search = GridSearchCV(make(AIRCompleter, max_iter=50), {"lambda_row": [0.1]}, cv=2)
    search.set_callbacks(ProgressBar())
    search.fit(problem[1])
    shown = capsys.readouterr().out
    assert "GridSearchCV" in shown
    assert "100%" in shown
    make(AIRCompleter, max_iter=50).fit(problem[1])
    assert capsys.readouterr().out == ""  # nothing prints unasked


def test_scoring_monitor_draws_a_learning_curve(problem):
    truth, X = problem
    monitor = ScoringMonitor(scoring={"nmae": lambda est, X, y: est.score(X, y)})
    completer = make(SVDCompleter, rank=3, max_iter=100, tol=0.0)
    completer.set_callbacks(monitor)
    with pytest.warns(UserWarning, match="stopped after 100 iterations with residual"):
        completer.fit(X, truth)
    scores = monitor.get_logs().data_as_pandas["nmae"].to_numpy()
    assert len(scores) == 5  # the fit and four checks in it
    assert scores[-1] > scores[1]
    assert scores[-1] == pytest.approx(completer.score(X, truth))


def test_learning_curves_of_a_search(problem):
    """All fits of a search report to the same monitor, each by its own clone."""
    truth, X = problem
    monitor = ScoringMonitor(scoring={"nmae": lambda est, X, y: est.score(X, y)})
    completer = make(SVDCompleter, max_iter=50, tol=0.0).set_callbacks(monitor)
    search = GridSearchCV(completer, {"rank": [1, 2]}, cv=2, error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, truth)
    logs = monitor.get_logs().data_as_pandas
    levels = logs["task_id_path"].map(len)
    # Two candidates in two folds: each fit ends, after two checks.
    assert (levels == 3).sum() == 4 + 2  # ... and the two checks of the refit
    assert (levels == 4).sum() == 4 * 2
    assert np.isfinite(logs["nmae"]).all()
    assert not hasattr(MeanCompleter(), "_skl_callbacks")


def test_callbacks_of_the_completer_in_a_mixed_table(problem, capsys):
    completer = make(SVDCompleter, rank=2).set_callbacks(ProgressBar())
    search = GridSearchCV(MixedCompleter(completer), {"completer__rank": [2]}, cv=2)
    search.fit(problem[1])
    assert "SVDCompleter" in capsys.readouterr().out


def test_weights_are_routed_to_estimators_that_request_them(regression):
    """They bypass completers without weights, and raise an error there."""
    X, y = regression
    weights = np.random.RandomState(0).uniform(size=len(y))
    weights[::2] = 0
    alone = Ridge().fit(SVDCompleter(rank=2).fit_transform(X)[1::2], y[1::2])
    with config_context(enable_metadata_routing=True):
        ridge = Ridge().set_fit_request(sample_weight=True)
        ridge.set_score_request(sample_weight=True)
        model = make_pipeline(SVDCompleter(rank=2), ridge)
        model.fit(X, y, sample_weight=(weights > 0).astype(float))
        assert model[-1].coef_ == pytest.approx(alone.coef_)
        grid = {"svdcompleter__rank": [1, 2]}
        search = GridSearchCV(model, grid, cv=2, error_score="raise")
        search.fit(X, y, sample_weight=weights)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        with pytest.raises(TypeError, match=r"sample_weight.*not routed to any object"):
            GridSearchCV(SVDCompleter(), {"rank": [1]}).fit(X, sample_weight=weights)
    model = make_pipeline(SVDCompleter(rank=2), Ridge())
    with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
        model.fit(X, y, svdcompleter__sample_weight=weights)


def test_a_callback_can_stop_a_fit(problem):
    class Stop:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            return context.task_id == 1 and context.parent is not None

    completer = make(AIRCompleter, max_iter=500).set_callbacks(Stop())
    completer.fit(problem[1])
    assert (completer.status_, completer.n_iter_) == ("stopped", 50)
