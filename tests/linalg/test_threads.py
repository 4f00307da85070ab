"""The number of threads follows the size of the work, and is restored afterwards."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from threadpoolctl import ThreadpoolController, threadpool_limits

from skmc import MeanCompleter, Observed, SparseObserved, TreesCompleter, linalg
from skmc.completers import trees
from skmc.linalg import Workload, threads_for, work_of
from skmc.linalg.threads import PASS
from skmc.loop import solve
from skmc.sensing import DenseMeasurements
from skmc.sensing.measured import Measured
from skmc.solvers import Solver, State

SMALL, LARGE = (work_of(n * n, side=n) for n in (240, 2000))


def threads() -> list[int]:
    """Threads of Torch, of its MKL if it has one, and of NumPy's and SciPy's BLAS."""
    info = torch.__config__.parallel_info()
    mkl = re.findall(r"mkl_get_max_threads\(\) : (\d+)", info)
    libraries = ThreadpoolController().info()
    blas = [lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"]
    return [torch.get_num_threads(), *map(int, mkl), *blas]


@pytest.fixture
def two():
    before = torch.get_num_threads()
    try:
        with threadpool_limits(2):
            torch.set_num_threads(2)
            yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def one():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_one_thread_for_small_work_and_two_afterwards(two, error):
    try:
        with threads_for(SMALL):
            assert set(threads()) == {1}
            if error:
                raise error
    except (ValueError, KeyboardInterrupt):
        pass
    assert set(threads()) == {2}


def test_large_work_uses_the_users_limit(two):
    with threads_for(LARGE):
        assert set(threads()) == {2}
        with threads_for(SMALL):
            assert set(threads()) == {1}
        assert set(threads()) == {2}


def test_large_work_within_small_work(two):
    with threads_for(SMALL):
        with threads_for(LARGE), threads_for(LARGE):
            assert torch.get_num_threads() == 2
        assert set(threads()) == {1}
    assert set(threads()) == {2}


def test_the_limit_of_the_user_is_kept(one):
    with threads_for(LARGE):
        assert torch.get_num_threads() == 1
    with threads_for(SMALL), threads_for(LARGE):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 1


def test_threads_are_restored_if_torch_has_its_default():
    """MKL then follows OpenMP, also afterwards. This process has set it already."""
    code = (
        "import torch;"
        "from threadpoolctl import threadpool_limits;"
        "from test_threads import *;"
        "limits = threadpool_limits(2); assert set(threads()) == {2}, threads()\n"
        "with threads_for(SMALL):\n"
        "    assert set(threads()) == {1}, threads()\n"
        "assert set(threads()) == {2}, threads()\n"
        "with threadpool_limits(1):\n"
        "    assert set(threads()) == {1}, threads()"
    )
    # Dask's clusters set further ones.
    environment = {k: v for k, v in os.environ.items() if "_NUM_THREADS" not in k}
    environment["OMP_NUM_THREADS"] = "2"
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-W", "error", "-c", code]
    subprocess.run(command, check=True, timeout=120, env=environment)


def test_threads_of_python_do_not_disturb_each_other(two):
    """Blocks that overlap, and end in the order in which they began."""
    inside, left = threading.Barrier(3), threading.Barrier(3)

    def small(ends_first: bool) -> tuple[int, int]:
        torch.set_num_threads(2)
        with threads_for(SMALL):
            inside.wait()
            number = torch.get_num_threads()
            if not ends_first:
                left.wait()
        if ends_first:
            left.wait()
        return number, torch.get_num_threads()

    def large() -> int:
        torch.set_num_threads(2)
        inside.wait()
        with threads_for(LARGE):
            left.wait()
            return torch.get_num_threads()

    with ThreadPoolExecutor(3) as pool:
        first, last = pool.submit(small, True), pool.submit(small, False)
        other = pool.submit(large)
        assert first.result() == last.result() == (1, 2)
        assert other.result() == 2
    assert set(threads()) == {2}


def test_a_thread_that_begins_meanwhile_is_not_limited(two):
    with threads_for(SMALL), ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == 2


@dataclass(frozen=True, kw_only=True)
class Counted(State):
    X: torch.Tensor


class Counting(Solver):
    """Records the number of threads."""

    def __init__(self, workload: Workload):
        self.workload, self.seen = workload, []

    def init(self, data):
        return self.step(data, None)

    def step(self, data, state):
        self.seen.append(torch.get_num_threads())
        return Counted(objective=data.energy, X=data.values)

    def residual(self, data, previous, current):
        return torch.ones_like(data.energy)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("workload", Workload)
def test_all_steps_of_a_solve(workload, monkeypatch):
    values = torch.ones(4, 3)
    for work, expected in [(workload.value, 2), (workload.value - 1, 1)]:
        monkeypatch.setattr(Observed, "work", work)
        solve(solver := Counting(workload), Observed(values, values > 0), max_iter=2)
        assert solver.seen == 3 * [expected]
    assert torch.get_num_threads() == 2


def test_the_work_of_data():
    values = torch.ones(5, 4, 3)
    whole = Observed(values, values > 0)
    assert whole.work == 5 * 4 * 3 * (3 + PASS)
    assert whole.work == 5 * Observed(values[0].T, values[0].T > 0).work
    few = SparseObserved.of([0, 2], [1, 1], torch.ones(2), (1000, 1000))
    assert few.work == 2 * PASS
    measured = Measured.of(DenseMeasurements(torch.ones(6, 4, 3)), torch.ones(6))
    assert measured.work == 6 * 4 * 3 * PASS


class Watched(MeanCompleter):
    seen: ClassVar[list[int]] = []

    def _fit_cells(self, given, y=None):
        self.seen[:] = [torch.get_num_threads()]
        outcome = super()._fit_cells(given, y)
        predict = outcome.fitted.predict

        def counting(cells, everywhere):
            self.seen.append(torch.get_num_threads())
            return predict(cells, everywhere)

        outcome.fitted.predict = counting
        return outcome


@pytest.mark.usefixtures("two")
def test_the_rest_of_a_fit_and_new_rows(monkeypatch):
    X = np.ones((6, 4))
    X[2, 3] = np.nan
    completer = Watched().fit(X)
    completer.transform(X)
    completer.score(X, np.ones((6, 4)))
    assert completer.seen == [1, 1, 1]
    monkeypatch.setattr(linalg.threads, "PASS", Workload.PRODUCTS.value)
    completer.transform(X)
    assert completer.seen[3] == 2
    assert torch.get_num_threads() == 2


class Worker(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.n_threads_ = torch.get_num_threads()
        return self

    def predict(self, X):
        return np.full(len(X), self.n_threads_, float)


def threads_of_trees(**params):
    X = np.random.RandomState(0).randn(20, 3)
    X[0, 0] = np.nan
    trees = TreesCompleter(**params, random_state=0).fit(X)
    (models,) = trees._fitted.row_map.rounds
    return {model.regressor.n_threads_ for model in models}


@pytest.mark.usefixtures("two")
def test_threads_of_trees(monkeypatch):
    """Workers have one each; boosting few rows has one, and other regressors all."""
    assert threads_of_trees(estimator=Worker(), n_jobs=2) == {1}
    assert threads_of_trees(estimator=Worker()) == {2}
    name = "HistGradientBoostingRegressor"
    monkeypatch.setattr(trees, name, lambda **_: Worker())
    assert threads_of_trees(estimator="boosting") == {1}
    monkeypatch.setattr(linalg.threads, "PASS", Workload.PRODUCTS.value)
    assert threads_of_trees(estimator="boosting") == {2}
