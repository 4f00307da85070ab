"""Batched searches give the results of scikit-learn's searches."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
import torch
from conftest import low_rank
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ParameterSampler,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.pipeline import Pipeline

from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    DMFCompleter,
    Entries,
    KNNCompleter,
    LinkedFactorizationCompleter,
    MaskedToNaN,
    NSRCompleter,
    SNNCompleter,
    SVDCompleter,
    patterns,
)
from skmc.base import IterativeCompleter
from skmc.loop import Run
from skmc.model_selection import (
    BatchedGridSearchCV,
    ErrorScorer,
    batch,
)

# Fits are cut short.
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:.* of X ha(s|ve) no observed cell",
    "ignore:.*outside of a batch",
)

CELLS = KFold(3, shuffle=True, random_state=0)
WEIGHTS = {"lambda_row": [0.0, 0.1, 10.0], "lambda_col": [0.1, 30.0]}
TIMES = ("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time")


@pytest.fixture(scope="module")
def damaged():
    truth = np.cos(np.add.outer(np.arange(18), np.arange(14)) / 5) + 3
    noise = 0.1 * np.random.RandomState(0).standard_normal(truth.shape)
    return np.ma.masked_array(truth + noise, patterns.random(truth, 0.3, spare=True))


@pytest.fixture
def sizes(monkeypatch):
    """The sizes of the batches that are begun."""
    begun = []
    original = IterativeCompleter.batch_run

    def run(self, estimators, prepared, seeds):
        begun.append(len(estimators))
        return original(self, estimators, prepared, seeds)

    monkeypatch.setattr(IterativeCompleter, "batch_run", run)
    return begun


def air(**params):
    given = {"lambda_row": 0.25, "lambda_col": 0.25, "random_state": 0}
    return AIRCompleter(**{"max_iter": 100, **given, **params})


def assert_same(ours, theirs, rtol=1e-4):
    assert list(ours.cv_results_) == list(theirs.cv_results_)
    for name, values in theirs.cv_results_.items():
        if name == "params" or values.dtype == object:
            assert list(map(repr, ours.cv_results_[name])) == list(map(repr, values))
        elif name not in TIMES:
            np.testing.assert_allclose(
                ours.cv_results_[name].astype(float), values.astype(float), rtol=rtol
            )
    fitted = [n for n in vars(theirs) if n.endswith("_") and n[0] != "_"]
    assert {n for n in vars(ours) if n.endswith("_") and n[0] != "_"} == set(fitted)
    assert repr(getattr(ours, "best_params_", "")) == repr(
        getattr(theirs, "best_params_", "")
    )
    for name in ("best_index_", "n_splits_", "multimetric_"):
        assert getattr(ours, name, None) == getattr(theirs, name, None)


def bias(completer, X, y=None):
    guess = completer.predict_entries(X.rows, X.cols)
    return -float(abs((guess - X.values).mean()))


SEARCHES = {
    "cells": (air(), WEIGHTS, {"cv": CELLS}),
    "train scores": (air(), WEIGHTS, {"cv": CELLS, "return_train_score": True}),
    "stopping early": (
        air(early_stopping=True, n_iter_no_change=25, lr=0.05),
        WEIGHTS,
        {"cv": CELLS},
    ),
    "seeds": (air(), {"random_state": [0, 1], "lambda_row": [0.1, 1]}, {"cv": CELLS}),
    "groups": (air(), [{"depth": [2, 3]}, {"max_iter": [60, 80]}], {"cv": CELLS}),
    "one metric": (air(), WEIGHTS, {"cv": CELLS, "scoring": bias}),
    "two metrics": (
        air(),
        WEIGHTS,
        {
            "cv": CELLS,
            "scoring": {"a": bias, "b": lambda c, X, y=None: c.score(X)},
            "refit": "b",
        },
    ),
    "chosen otherwise": (
        air(),
        WEIGHTS,
        {"cv": CELLS, "refit": lambda results: len(results["params"]) - 1},
    ),
    "no refit": (air(), WEIGHTS, {"cv": CELLS, "refit": False}),
    "dmf": (DMFCompleter("tv", max_iter=75, random_state=0), WEIGHTS, {"cv": CELLS}),
    "snn": (SNNCompleter(max_iter=50), {"random_state": [0, 1]}, {"cv": CELLS}),
    "linked": (
        LinkedFactorizationCompleter(2, max_iter=50, scaling="columns", random_state=0),
        {"lambda_ridge": [0.1, 3.0]},
        {"cv": CELLS},
    ),
    "nsr": (
        NSRCompleter(rank=2, lambda_decoder=1.0, max_iter=50, random_state=0),
        {"lambda_skip": [0.1, 3.0]},
        {"cv": CELLS},
    ),
    "autoencoder": (
        AutoencoderCompleter((9,), max_iter=75, random_state=0),
        {"lambda_weights": [0.1, 3.0]},
        {"cv": CELLS},
    ),
    "not batched": (SVDCompleter(random_state=0), {"rank": [1, 2]}, {"cv": CELLS}),
    "two kinds": (
        Pipeline([("nan", MaskedToNaN()), ("completer", SVDCompleter(random_state=0))]),
        {"completer": [SVDCompleter(random_state=0), air(max_iter=25)]},
        {"cv": 2},
    ),
    "rows": (air(), WEIGHTS, {"cv": KFold(2)}),
    "rows of two shapes": (air(), {"lambda_row": [0.1, 1.0]}, {"cv": KFold(4)}),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_results_equal_those_of_grid_search(name, damaged, sizes):
    completer, grid, options = SEARCHES[name]
    cells = options["cv"] is CELLS
    X = Entries(damaged) if cells else damaged
    theirs = GridSearchCV(completer, grid, **options).fit(X)
    ours = BatchedGridSearchCV(completer, grid, **options).fit(X)
    assert_same(ours, theirs)
    assert bool(sizes) is (name not in ("not batched", "two kinds"))
    if options.get("refit", True):
        np.testing.assert_array_equal(
            ours.best_estimator_.transform(damaged),
            theirs.best_estimator_.transform(damaged),
        )
        assert ours.score(X) == theirs.score(X)


def test_fits_of_equal_shape_share_a_batch(damaged, sizes):
    X = Entries(damaged)
    BatchedGridSearchCV(air(max_iter=25), WEIGHTS, cv=CELLS).fit(X)
    assert sizes == [18]
    sizes.clear()
    grid = {**WEIGHTS, "depth": [2, 3]}
    BatchedGridSearchCV(air(max_iter=25), grid, cv=CELLS).fit(X)
    assert sizes == [18, 18]


def test_large_matrices_are_fitted_alone(damaged, sizes, monkeypatch):
    """A batch of them saves nothing on a CPU."""
    monkeypatch.setattr(batch, "MAX_BATCHED_CELLS", 100)
    search = BatchedGridSearchCV(air(max_iter=25), WEIGHTS, cv=CELLS)
    search.fit(Entries(damaged))
    assert sizes == []


def test_batches_respect_the_memory(damaged, sizes, monkeypatch):
    """The size of a batch follows from the memory of its members."""
    X = Entries(damaged)
    member = air().batch_memory(X)
    assert 8 * (18**2 + 14**2) * 10 < member < 8 * (18**2 + 14**2) * 100
    monkeypatch.setattr(batch, "memory_of", lambda device: 4 * 6.5 * member)
    BatchedGridSearchCV(air(max_iter=25), WEIGHTS, cv=CELLS).fit(X)
    assert sizes == [6, 6, 6]


def test_batches_fit_the_caches(damaged, sizes, monkeypatch):
    """Equally many for each worker."""
    X = Entries(damaged)
    monkeypatch.setattr(batch, "MAX_CACHED", 6.5 * air().batch_memory(X))
    search = BatchedGridSearchCV(air(max_iter=25), WEIGHTS, cv=CELLS)
    search.fit(X)
    with joblib.parallel_config(backend="threading"):
        search.set_params(n_jobs=2).fit(X)
    # Workers start in any order.
    assert sizes[:3] == [6, 6, 6] and sorted(sizes[3:]) == [4, 4, 5, 5]


def test_workers_give_equal_results(damaged, sizes, monkeypatch):
    X = Entries(damaged)
    search = BatchedGridSearchCV(air(), WEIGHTS, cv=CELLS)
    with joblib.parallel_config(backend="threading"):
        assert_same(clone(search).set_params(n_jobs=2).fit(X), search.fit(X))
    assert sizes == [9, 9, 18]


def test_drawn_candidates_share_a_batch(damaged, sizes):
    """A randomized search is a grid search over what was drawn."""
    where = {"lambda_row": loguniform(1e-2, 1e1), "lambda_col": loguniform(1e-2, 1e1)}
    options, X = {"cv": CELLS}, Entries(damaged)
    drawn = [
        {name: [value] for name, value in params.items()}
        for params in ParameterSampler(where, 4, random_state=0)
    ]
    theirs = RandomizedSearchCV(air(max_iter=50), where, n_iter=4, random_state=0)
    theirs.set_params(**options).fit(X)
    ours = BatchedGridSearchCV(air(max_iter=50), drawn, **options).fit(X)
    assert ours.best_params_ == theirs.best_params_ and sizes == [12]


# Faults.


def test_a_diverging_candidate_does_not_affect_others(damaged, sizes):
    X = Entries(damaged)
    grid = {"lambda_row": [0.1, 1e308, 1.0]}
    search = BatchedGridSearchCV(air(), grid, cv=CELLS).fit(X)
    assert sizes == [9]
    assert_same(search, GridSearchCV(air(), grid, cv=CELLS).fit(X))
    assert search.best_params_ != {"lambda_row": 1e308}


def test_a_failed_decomposition_affects_one_member(damaged, monkeypatch):
    """A batched SVD fails as a whole; halves restart until the member is known."""
    X = Entries(damaged)
    search = BatchedGridSearchCV(
        SNNCompleter(max_iter=25), {"random_state": [0, 1, 2, 3]}, cv=CELLS
    )
    calm = clone(search).fit(X)
    original = SNNCompleter._make_solver

    def make(self, data, params, rng):
        made = original(self, data, params, rng)
        if 2 in [generator.initial_seed() for generator in rng.generators]:
            made.step = broken
        return made

    def broken(*args):
        raise torch.linalg.LinAlgError("no convergence")

    monkeypatch.setattr(SNNCompleter, "_make_solver", make)
    search.fit(X)
    scores = search.cv_results_["mean_test_score"]
    usual = calm.cv_results_["mean_test_score"]
    np.testing.assert_allclose(np.delete(scores, 2), np.delete(usual, 2))
    assert scores[2] < usual[2]


def test_a_batch_that_is_too_large_is_halved(damaged, monkeypatch):
    X = Entries(damaged)
    search = BatchedGridSearchCV(air(), WEIGHTS, cv=CELLS, refit=False)
    enough = clone(search).fit(X)
    tried = []
    original = Run.advance

    def advance(self, until):
        tried.append(self.answers.running.numel())
        if self.answers.running.numel() > 5:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        original(self, until)

    monkeypatch.setattr(Run, "advance", advance)
    assert_same(search.fit(X), enough)
    assert tried[:4] == [18, 9, 5, 4]


def test_a_fold_without_cells_is_the_only_one_to_fail():
    """The first fold trains on nothing but missing values."""
    X = np.ma.masked_all((8, 6))
    X[:4] = low_rank(4, 6)
    folds = [(np.arange(4, 8), np.arange(4)), (np.arange(4), np.arange(4))]
    search = BatchedGridSearchCV(air(max_iter=25), {"lambda_row": [0.1, 1]}, cv=folds)
    with (
        pytest.warns(FitFailedWarning, match="X has no observed cell"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search.fit(X)
    assert np.isnan(search.cv_results_["split0_test_score"]).all()
    assert np.isfinite(search.cv_results_["split1_test_score"]).all()


def test_rows_that_are_empty_in_a_fold_get_means():
    X = low_rank(6, 5)
    X[2, 1:] = np.nan
    search = BatchedGridSearchCV(air(max_iter=25), {"lambda_row": [0.1, 1]}, cv=CELLS)
    search.fit(Entries(X))  # without a warning
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(("metric", "power"), [("rmse", 2), ("mae", 1)])
def test_errors_are_those_of_held_out_cells(metric, power, named, damaged):
    """Cells that are marked as missing do not count."""
    cells = Entries(np.where(np.arange(damaged.shape[1]) < 1, -1.0, damaged))
    if named:
        rows, cols = cells.rows, cells.cols
        table = {"row": [f"r{i}" for i in rows], "col": cols, "value": cells.values}
        cells = Entries.from_frame(table, "row", "col", "value")
    completer = KNNCompleter(missing_values=-1.0)
    scores = cross_val_score(completer, cells, scoring=ErrorScorer(metric), cv=CELLS)
    for score, (train, test) in zip(scores, CELLS.split(cells), strict=True):
        whole = completer.fit(cells[train]).reconstruction_
        held = cells[test]
        off = np.abs(whole[held.rows, held.cols] - held.values)[held.values != -1]
        assert score == pytest.approx(-(np.power(off, power).mean() ** (1 / power)))


def test_mistakes_are_named(damaged):
    X = Entries(damaged)
    with pytest.raises(ValueError, match="no candidates"):
        BatchedGridSearchCV(air(), [], cv=CELLS).fit(X)
    with pytest.raises(ValueError, match="Invalid parameter 'lamda'"):
        BatchedGridSearchCV(air(), {"lamda": [1.0]}, cv=CELLS).fit(X)
    with pytest.raises(ValueError, match=r"All the 3 fits failed(.|\n)*'lambda_row'"):
        BatchedGridSearchCV(air(), {"lambda_row": [-1.0]}, cv=CELLS).fit(X)
    named = BatchedGridSearchCV(air(), WEIGHTS, scoring="neg_root_mean_squared_error")
    with pytest.raises(ValueError, match=r"pass scoring=ErrorScorer\('rmse'\)"):
        named.fit(X)
    with pytest.raises(ValueError, match="metric must be among"):
        ErrorScorer("mse")(air(), X)
    search = BatchedGridSearchCV(air(max_iter=25), {"lambda_row": [0.1]}, cv=CELLS)
    search.fit(X)
    with pytest.raises(ValueError, match="fitted matrix, which has shape"):
        search.score(Entries(damaged[:5]))


def test_a_search_is_an_estimator(damaged):
    search = BatchedGridSearchCV(air(max_iter=25), {"lambda_row": [0.1, 1]}, cv=CELLS)
    again = pickle.loads(pickle.dumps(clone(search).fit(Entries(damaged))))
    assert again.transform(damaged).shape == damaged.shape
    assert not hasattr(search, "best_estimator_")
