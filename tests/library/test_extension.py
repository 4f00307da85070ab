"""The features of the base class, for a method from outside of the package.

`outside.py` has its own term, model, state and solver; the tutorial's class has its own
term.
"""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from conftest import low_rank
from outside import Bending, OutsideCompleter
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

from skmc import AutoCompleter, Entries, patterns
from skmc.checks import check_completer
from skmc.model_selection import BatchedGridSearchCV, fit_batch
from skmc.persistence import checkpoint, load, save

FOLDER = Path(__file__).parent
# A source distribution has no examples.
TUTORIAL = FOLDER.parents[1] / "examples/extending/plot_new_method.py"
GRID = {"lambda_bending": [0.01, 0.1, 1.0, 10.0]}
FOLDS = KFold(2, shuffle=True, random_state=0)


def tutorial():
    """The class of the tutorial, whose file also prints and draws."""
    above = TUTORIAL.read_text().split("# Does it behave like a completer?")[0]
    module = sys.modules["plot_new_method"] = types.ModuleType("plot_new_method")
    exec(compile(above, "plot_new_method.py", "exec"), vars(module))
    return module.SmoothCompleter


CLASSES = [OutsideCompleter, *([tutorial()] if TUTORIAL.exists() else [])]
each = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


@pytest.fixture(scope="module")
def X():
    truth = np.cumsum(low_rank(24, 18), 0)
    return np.ma.masked_array(truth, patterns.random(truth, 0.3, random_state=0))


def quick(cls, **params):
    return cls(max_iter=60, random_state=0, **params)


@pytest.mark.long
@each
def test_it_passes_the_completer_checks(cls):
    check_completer(cls())


@each
def test_batched_fits_equal_separate_fits(cls, X):
    weights = [0.01, 1.0, 10.0]
    together = fit_batch([quick(cls, lambda_bending=w) for w in weights], [X] * 3)
    for weight, fitted in zip(weights, together, strict=True):
        alone = quick(cls, lambda_bending=weight).fit(X)
        np.testing.assert_allclose(
            fitted.reconstruction_, alone.reconstruction_, rtol=1e-6, atol=1e-8
        )
    different = together[0].reconstruction_ - together[-1].reconstruction_
    assert np.abs(different).max() > 1e-3


@each
def test_searches_batch_it_without_warnings(cls, X):
    found = BatchedGridSearchCV(quick(cls), GRID, cv=FOLDS).fit(Entries(X))
    expected = GridSearchCV(quick(cls), GRID, cv=FOLDS).fit(Entries(X))
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"],
        expected.cv_results_["mean_test_score"],
        rtol=1e-5,
    )


def test_converged_members_are_removed_from_the_batch(X):
    weights = [1e-3, 10.0, 10.0, 10.0]
    grid = [
        OutsideCompleter(w, max_iter=400, tol=1e-2, random_state=0) for w in weights
    ]
    for together, alone in zip(fit_batch(grid, [X] * 4), grid, strict=True):
        assert together.n_iter_ == clone(alone).fit(X).n_iter_
    assert len({completer.n_iter_ for completer in grid}) > 1


def test_a_term_that_cannot_be_batched_is_named(X):
    class Broken(OutsideCompleter):
        def _make_solver(self, data, params, rng):
            if data.batch_shape:
                raise RuntimeError("size of tensor a (6) must match b (2)")
            return super()._make_solver(data, params, rng)

    search = BatchedGridSearchCV(quick(Broken), GRID, cv=FOLDS)
    with pytest.warns(UserWarning, match="outside of a batch: RuntimeError: size of"):
        search.fit(Entries(X))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


class Flat(Bending):
    def forward(self, X):
        return (X - X).sum((-2, -1)) / (X - X).abs().sum((-2, -1))


def test_a_term_that_is_nan_is_named(X):
    class Broken(OutsideCompleter):
        def _make_solver(self, data, params, rng):
            solver = super()._make_solver(data, params, rng)
            solver.terms.append(Flat(1.0))
            return solver

    with pytest.warns(ConvergenceWarning, match="diverged.* To do: correct Flat, who"):
        completer = quick(Broken).fit(X)
    assert np.isfinite(completer.transform(X)).all()

    # Large steps are no fault of a term.
    class Fast(OutsideCompleter):
        def _make_solver(self, data, params, rng):
            solver = super()._make_solver(data, params, rng)
            solver.lr = 1e6
            return solver

    with pytest.warns(ConvergenceWarning, match="To do: let scaling standardize"):
        quick(Fast).fit(X)


@each
def test_save_and_load(cls, X, tmp_path):
    fitted = quick(cls).fit(X)
    save(fitted, tmp_path / "completer.skmc")
    loaded = load(tmp_path / "completer.skmc")
    assert type(loaded) is cls
    np.testing.assert_array_equal(loaded.transform(X[:5]), fitted.transform(X[:5]))
    np.testing.assert_array_equal(loaded.reconstruction_, fitted.reconstruction_)


CHILD = """
import os, sys
import numpy as np, torch
torch.set_num_threads(1)
import torch._dynamo  # Adam's first step would
from test_extension import CLASSES
from skmc.persistence import checkpoint
cls = {cls.__name__: cls for cls in CLASSES}[sys.argv[1]]
X, folder = np.load(sys.argv[2]), sys.argv[3]
steps = 0
completer = cls(max_iter=60, random_state=0)
make = completer._make_solver
def counted(data, params, rng):
    solver = make(data, params, rng)
    step = type(solver).step
    def one(self, data, state):
        global steps
        steps += 1
        if steps == 25:
            os._exit(9)
        return step(self, data, state)
    type(solver).step = one
    return solver
completer.__dict__["_make_solver"] = counted
with checkpoint(folder, every=0):
    completer.fit(X)
"""


@pytest.mark.long
@each
def test_a_fit_that_is_killed_is_resumed(cls, X, tmp_path):
    np.save(tmp_path / "X.npy", X.filled(np.nan))
    expected = quick(cls).fit(X).reconstruction_
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            CHILD,
            cls.__name__,
            tmp_path / "X.npy",
            tmp_path / "fit",
        ],
        cwd=FOLDER,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 9, ran.stderr
    assert (tmp_path / "fit" / "running.skmc").exists()
    resumed, steps = quick(cls), []
    make = resumed._make_solver

    def counted(*args):
        solver = make(*args)
        step = solver.step
        solver.step = lambda *pair: steps.append(1) or step(*pair)
        return solver

    resumed.__dict__["_make_solver"] = counted
    with checkpoint(tmp_path / "fit"):
        resumed.fit(X)
    np.testing.assert_array_equal(resumed.reconstruction_, expected)
    assert len(steps) == resumed.n_iter_ - 24
    assert not (tmp_path / "fit").exists()


@each
def test_entries_and_checkpoints_and_auto(cls, X, tmp_path):
    fitted = quick(cls).fit(Entries(X))
    expected = quick(cls).fit(X).reconstruction_
    np.testing.assert_array_equal(fitted.reconstruction_, expected)
    with checkpoint(tmp_path / "here"):
        again = quick(cls).fit(X)
    np.testing.assert_array_equal(again.reconstruction_, fitted.reconstruction_)
    auto = AutoCompleter({"ours": quick(cls)}, random_state=0).fit(X)
    assert auto.weights_ == {"ours": 1.0}
    assert auto.verdict_.startswith("ours alone")
