"""Problems and containers that several test files share."""

from __future__ import annotations

import gc
import os
from functools import wraps
from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from skmc import (
    AIRCompleter,
    AutoCompleter,
    BayesianFactorizationCompleter,
    FactorizationCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    TreesCompleter,
)
from skmc.checks import all_completers
from skmc.checks.problems import (
    CONTAINERS,
    devices,
    low_rank,
    quick,
    rank_two,
    small_problem,
)

__all__ = [  # also what other test files import from here
    "COMPLETERS",
    "CONTAINERS",
    "DEVICES",
    "KINDS",
    "low_rank",
    "make",
    "small_problem",
]
COMPLETERS = all_completers()
collect_ignore = ["typing"]  # scripts that are type-checked

# One thread in each process and in those that it starts: the matrices here are far too
# small to share out.
THREADS = int(os.environ.setdefault("SKMC_TEST_THREADS", "1"))
os.environ["OMP_NUM_THREADS"] = str(THREADS)
torch.set_num_threads(THREADS)
threadpool_limits(THREADS)  # NumPy and SciPy

DEVICES = devices()
# One for each kind of result. What does not depend on the method is tested on these.
KINDS = [
    AIRCompleter,
    AutoCompleter,
    BayesianFactorizationCompleter,
    FactorizationCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    TreesCompleter,
]
ROUNDING = 1e-6  # the largest relative tolerance that stands for rounding
ABSOLUTE = 1e-3  # the largest absolute one


def pytest_addoption(parser):
    parser.addoption(
        "--margin",
        action="store_true",
        help="divide tolerances of rounding in assert_allclose by ten, so that no test "
        "passes on one processor and fails on another",
    )
    parser.addoption(
        "--inputs",
        type=int,
        default=60,
        metavar="N",
        help="number of odd and wrong inputs of each completer in tests/long",
    )
    parser.addoption(
        "--input", type=int, metavar="NUMBER", help="repeat one of these inputs alone"
    )
    parser.addoption(
        "--update",
        action="store_true",
        help="write the errors of tests/library/test_accuracy.py as its references; "
        "not with -n",
    )


def pytest_configure(config):
    if config.getoption("--update") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--update writes one file; use it with -n 0")
    if not config.getoption("--margin"):
        return
    plain = np.testing.assert_allclose

    @wraps(plain)
    def with_margin(actual, desired, rtol=1e-7, atol=0, **options):
        if rtol <= ROUNDING and atol <= ABSOLUTE:
            rtol, atol = rtol / 10, atol / 10
        plain(actual, desired, rtol, atol, **options)

    np.testing.assert_allclose = with_margin


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the listed cases as long, and skip tests of what a source archive lacks."""
    names = {*Path(__file__).with_name("long_tests.txt").read_text().splitlines()}
    whole = (Path(__file__).parents[1] / "docs").exists()
    for item in items:
        if item.nodeid in names:
            item.add_marker(pytest.mark.long)
        if item.get_closest_marker("repository") and not whole:
            item.add_marker(pytest.mark.skip(reason="reads files of the repository"))


def pytest_collection_finish():
    gc.freeze()  # modules and tests: else each collection of garbage visits them


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device that there is."""
    return request.param


def pytest_terminal_summary(terminalreporter):
    if "cuda" not in DEVICES:
        terminalreporter.write_line("No CUDA device: tests that take one ran on a CPU.")


def make(cls, **params):
    """An instance that is quick and reproducible, whatever it has parameters for."""
    return quick(cls(), **params)


@pytest.fixture(scope="session")
def recovery():
    """The shared problem: 60 x 40 of rank 2, 30 % hidden at random."""
    return rank_two()


@pytest.fixture
def small():
    """12 x 6 with every fifth cell missing; the truth and the masked array."""
    return small_problem()
